#include "runtime/fleet/round_worker.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "runtime/core/hex.h"
#include "runtime/fleet/fleet_gain.h"
#include "runtime/personalise/evaluate_candidate.h"
#include "runtime/train/run/records.h"

namespace wisp::fleet {
namespace {

// The seed of a device's rounding in a round. It is public: nothing secret follows from it.
uint64_t RoundingSeed(const Sha256Hash& plan, uint64_t node_id, uint32_t round) {
  const Sha256Hash hash =
      Sha256("wisp rounding\n" + ToHex(plan) + "\n" + std::to_string(node_id) + "\n" + std::to_string(round));
  uint64_t seed = 0;
  std::memcpy(&seed, hash.data(), sizeof(seed));
  return seed;
}

}  // namespace

std::string Participation::ToText() const { return plan + " " + std::to_string(block) + " " + std::to_string(round); }

std::optional<Participation> Participation::Parse(std::string_view text) {
  constexpr size_t kDigits = 16;
  if (text.size() < kDigits) return std::nullopt;
  Participation p{.plan = std::string(text.substr(0, kDigits))};
  const char* at = text.data() + kDigits;
  for (uint32_t* number : {&p.block, &p.round}) {
    if (at == text.data() + text.size() || *at != ' ') return std::nullopt;
    const auto [end, error] = std::from_chars(at + 1, text.data() + text.size(), *number);
    if (error != std::errc()) return std::nullopt;
    at = end;
  }
  return p.ToText() == std::string_view(text.data(), static_cast<size_t>(at - text.data())) ? std::optional(p)
                                                                                            : std::nullopt;
}

const char* GetName(TaskKind kind) { return kTaskNames[static_cast<size_t>(kind)].first; }

std::string TextToSign(const RoundRequest& r) {
  return "wisp fleet\n" + std::string(r.task) + "\n" + std::to_string(r.round) + "\n" + ToHex(Sha256(r.plan)) + "\n" +
         ToHex(Sha256(r.weights));
}

RoundWorker::RoundWorker(FleetPolicy policy, const ModelFile& base, Verify verify)
    : policy_(std::move(policy)), base_(&base), verify_(std::move(verify)) {}

Status RoundWorker::TakePlan(std::string_view text) {
  if (update_ && text == plan_text_) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const FleetPlan plan, FleetPlan::FromText(text, "the plan"));
  WISP_RETURN_IF_ERROR(policy_.Allows(plan));
  // A text that ToText would write differently would be another plan to the operator's hash than to ours.
  if (plan.ToText() != text) return InvalidData("the plan is not written as `wisp fleet plan` writes it");
  WISP_ASSIGN_OR_RETURN(update_, DeviceUpdate::Create(*base_, plan));
  plan_ = plan;
  plan_text_ = text;
  plan_hash_ = plan.hash();
  weights_.clear();
  return OkStatus();
}

// Empty if the node takes part. All reasons are public facts.
std::string RoundWorker::FindReason(const RoundRequest& r, uint64_t node_id, std::span<const Participation> before,
                                    Task& task) {
  const auto named = std::find_if(std::begin(kTaskNames), std::end(kTaskNames),
                                  [&](const auto& name) { return r.task == name.first; });
  if (named == std::end(kTaskNames)) return "the server asks for a task that no policy knows";
  task.kind = named->second;
  if (!policy_.operator_key.empty()) {
    if (!verify_) return "the policy names an operator's key, and nothing here can check signatures";
    if (const Status signed_ = verify_(policy_.operator_key, TextToSign(r), r.signature); !signed_.ok())
      return signed_.message();
  }
  if (const Status taken = TakePlan(r.plan); !taken.ok()) return taken.message();
  if (r.round < 0 || r.round > plan_.rounds) return "the plan has no such round";
  const auto round = static_cast<uint32_t>(r.round);
  const bool evaluates = task.kind == TaskKind::kEvaluate;
  if (evaluates && !policy_.evaluates) return "the policy has no evaluations";
  if (task.kind != TaskKind::kKeep) {
    if (evaluates != IsEvaluator(plan_, plan_hash_, node_id)) return "this node has the other role in the plan";
    const std::optional<uint32_t> evaluation = evaluates && round > 0 ? plan_.EvaluationAfter(round - 1) : std::nullopt;
    if (evaluates ? !evaluation : round == plan_.rounds) return "the plan has no such round";
    task.participation = {
        .plan = ToHex(plan_hash_).substr(0, 16), .block = plan_.BlockOf(evaluates ? round - 1 : round), .round = round};
    if (before.size() >= policy_.takes_part) return "all participations of the policy are used";
    for (const Participation& p : before) {
      if (p.plan == task.participation.plan && p.block == task.participation.block)
        return "this node took part in this block of the plan, in round " + std::to_string(p.round);
    }
  }
  if (r.weights == weights_) return "";
  if (const Status taken = update_->TakeWeights(r.weights); !taken.ok()) return taken.message();
  weights_ = r.weights;
  return "";
}

RoundWorker::Task RoundWorker::Accept(const RoundRequest& request, uint64_t node_id,
                                      std::span<const Participation> before) {
  Task task;
  task.why_absent = FindReason(request, node_id, before, task);
  return task;
}

Result<RoundWorker::Answer> RoundWorker::Compute(const Task& task, uint64_t node_id, const data::Sequences& sequences,
                                                 privacy::Ledger* records) {
  if (policy_.protects_records() != (records != nullptr))
    return InvalidArgument("a policy that protects records needs their ledger, and no other policy has one");
  const uint64_t seed = RoundingSeed(plan_hash_, node_id, task.participation.round);
  if (records != nullptr) return ComputePrivately(task, seed, sequences, *records);
  if (task.kind == TaskKind::kEvaluate) {
    int64_t square = 0;
    const int64_t gain = FindGain(sequences, &square);
    return Answer{DeviceGain{static_cast<int32_t>(gain), static_cast<int32_t>(square)}.ToBytes()};
  }
  const RecordSet set = MakeRecords(sequences, model().architecture().max_length, HoldOut::kNothing);
  return Answer{update_->Compute(set.records, seed)};
}

Result<RoundWorker::Answer> RoundWorker::ComputePrivately(const Task& task, uint64_t seed,
                                                          const data::Sequences& sequences, privacy::Ledger& records) {
  if (task.kind != TaskKind::kTrain) return InvalidArgument("a policy that protects records has no evaluations");
  Result<std::string> update = update_->ComputePrivately(sequences,
                                                         {.ledger = &records,
                                                          .epsilon = policy_.records_epsilon,
                                                          .delta = policy_.records_delta,
                                                          .num_records_public = policy_.records_public,
                                                          .expected_batch = policy_.records_batch,
                                                          .participations = policy_.takes_part},
                                                         seed);
  if (update.ok()) return Answer{*std::move(update)};
  if (update.status().code() == StatusCode::kIo) return update.status();
  return Answer{std::string(update_->grid().bytes(), '\0'), update.status().message()};
}

// The device's gain is the mean over its sequences.
int64_t RoundWorker::FindGain(const data::Sequences& sequences, int64_t* square) {
  EvaluationOptions options{.gain_scale = kGainScale,
                            .lists_of_base = base_->lists(),
                            .lists_of_candidate = base_->lists(),
                            .num_threads = 1};
  const RoundModel& m = model();
  const std::vector<StoredTensor> base = LocateTensors(m.parameters(), m.options().base, m.start().data()),
                                  candidate = LocateTensors(m.parameters(), m.options().base, held().data());
  double sum = 0;
  size_t count = 0;
  for (const GainOnGrid& g :
       Gains(m.architecture(), ParameterSource(base), ParameterSource(candidate), sequences, options)) {
    sum += static_cast<double>(g.gain) / kGainSteps;
    ++count;
  }
  const GainOnGrid mean = OnGrid(count > 0 ? sum / static_cast<double>(count) * kGainScale : 0, kGainScale);
  if (square != nullptr) *square = mean.square;
  return mean.gain;
}

}  // namespace wisp::fleet
