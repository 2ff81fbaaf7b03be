// Built for speed: noise and sums over every weight of a round.
#include "runtime/fleet/server/fleet_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/core/date.h"
#include "runtime/core/hex.h"
#include "runtime/core/platform.h"
#include "runtime/fleet/fleet_budget.h"
#include "runtime/fleet/fleet_gain.h"
#include "runtime/model/checkpoint.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/noise_process.h"
#include "runtime/train/gain_sums.h"
#include "runtime/train/sum_method.h"

namespace wisp::fleet {
namespace {

using privacy::Ledger;
using privacy::RandomStream;

// A ledger of the fleet, with its plan written before the first charge.
Result<Ledger> OpenLedger(const FleetServerOptions& o, const char* file, Role role) {
  const std::string path = o.folder + "/" + file;
  WISP_ASSIGN_OR_RETURN(Ledger ledger,
                        Ledger::Open(path, {.dataset = o.plan.name, .record = privacy::RecordSpec::OfDevice()}));
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  const std::string run = o.plan.name;
  for (const privacy::LedgerEntry& entry : entries) {
    if (entry.run == run) continue;
    return PrivacyRefused(path, ": was charged by '", entry.run, "'; a plan of a fleet has a folder of its own");
  }
  if (!entries.empty()) return ledger;
  WISP_ASSIGN_OR_RETURN(privacy::ChargeRequest all, BlockCharge(o.plan, role, o.plan.takes_part));
  if (o.reproducible_seed) all.noise = privacy::NoiseKind::kReproducible;
  WISP_RETURN_IF_ERROR(ledger.WritePlan(run, all.purpose, {{all}}));
  return ledger;
}

}  // namespace

FleetServer::FleetServer(const FleetServerOptions& o, RoundModel model, Ledger rounds,
                         std::optional<Ledger> evaluations, std::vector<RandomStream> streams)
    : plan_(o.plan),
      plan_hash_(o.plan.hash()),
      folder_(o.folder),
      seed_(o.reproducible_seed),
      model_(std::move(model)),
      grid_(plan_),
      rounds_(std::move(rounds)),
      evaluations_(std::move(evaluations)),
      noise_(std::move(streams[0])),
      allocation_(streams[1].NextKey()),
      held_(model_.start().begin(), model_.start().end()),
      optimizer_(model_.graph().device(), plan_.optimizer, model_.trained().size()) {}

Result<std::unique_ptr<FleetServer>> FleetServer::Open(const FleetServerOptions& o) {
  WISP_RETURN_IF_ERROR(o.plan.Check());
  WISP_RETURN_IF_ERROR(CheckBudget(o.plan));
  WISP_ASSIGN_OR_RETURN(RoundModel model, RoundModel::Create(*o.base, o.plan));
  WISP_ASSIGN_OR_RETURN(Ledger rounds, OpenLedger(o, "fleet.ledger", Role::kTrains));
  std::optional<Ledger> evaluations;
  if (o.plan.evaluations > 0) {
    WISP_ASSIGN_OR_RETURN(evaluations, OpenLedger(o, "evaluators.ledger", Role::kEvaluates));
  }
  std::vector<RandomStream> streams;
  if (o.reproducible_seed) {
    // The streams of a trainer with one thread: a central run with this seed draws the same noise.
    streams.push_back(
        RandomStream::Reproducible(*o.reproducible_seed + (uint64_t{1} << 32), privacy::StreamPurpose::kNoise));
    streams.push_back(RandomStream::Reproducible(*o.reproducible_seed, privacy::StreamPurpose::kSampling));
  } else {
    for (int i = 0; i < 2; ++i) {
      WISP_ASSIGN_OR_RETURN(RandomStream stream, RandomStream::Secure());
      streams.push_back(std::move(stream));
    }
  }
  std::unique_ptr<FleetServer> server(
      new FleetServer(o, std::move(model), std::move(rounds), std::move(evaluations), std::move(streams)));
  WISP_RETURN_IF_ERROR(server->Restore());
  WISP_ASSIGN_OR_RETURN(server->wire_, server->model_.Encode(server->held_));
  return server;
}

Status FleetServer::ChargeBlock(Ledger& ledger, uint32_t block, bool evaluation) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  for (size_t paid = entries.size(); paid <= block; ++paid) {
    WISP_ASSIGN_OR_RETURN(privacy::ChargeRequest charge,
                          BlockCharge(plan_, evaluation ? Role::kEvaluates : Role::kTrains, 1));
    if (seed_) charge.noise = privacy::NoiseKind::kReproducible;
    WISP_RETURN_IF_ERROR(ledger.Charge(charge).status());
  }
  return OkStatus();
}

Status FleetServer::BeginRound() {
  if (done()) return InvalidArgument("all ", plan_.rounds, " rounds of the fleet's plan have been taken");
  WISP_RETURN_IF_ERROR(ChargeBlock(rounds_, plan_.BlockOf(round_), false));
  open_ = Open::kRound;
  added_.clear();
  sum_.assign(plan_.num_weights, 0);
  return OkStatus();
}

// A uniform choice of one place of the block, by a hash under the secret key. The bias of the remainder is below
// 2^-32 for blocks of any plan.
bool FleetServer::IsAllocated(uint64_t node_id, uint32_t block, uint32_t length, uint32_t place,
                              bool evaluation) const {
  uint8_t message[sizeof(node_id) + sizeof(block) + 1];
  std::memcpy(message, &node_id, sizeof(node_id));
  std::memcpy(message + sizeof(node_id), &block, sizeof(block));
  message[sizeof(message) - 1] = evaluation ? 1 : 0;
  uint64_t hash;
  crypto_generichash(reinterpret_cast<uint8_t*>(&hash), sizeof(hash), message, sizeof(message), allocation_.bytes,
                     sizeof(allocation_.bytes));
  return hash % length == place;
}

bool FleetServer::Asks(uint64_t node_id) const {
  const bool evaluates = IsEvaluator(plan_, plan_hash_, node_id);
  if (open_ == Open::kRound && !evaluates) {
    const uint32_t length = plan_.rounds_per_block();
    return IsAllocated(node_id, plan_.BlockOf(round_), length, round_ % length, false);
  }
  if (open_ == Open::kEvaluation && evaluates) {
    const uint32_t length = plan_.evaluations / plan_.takes_part;
    return IsAllocated(node_id, *due_ / length, length, *due_ % length, true);
  }
  return false;
}

Added FleetServer::Add(uint64_t node_id, std::string_view update) {
  if (open_ != Open::kRound || !Asks(node_id)) return Added::kNotAsked;
  if (!grid_.Within(update)) return Added::kOutOfBound;
  if (!added_.insert(node_id).second) return Added::kTwice;
  grid_.Add(update, sum_);
  return Added::kAdded;
}

Status FleetServer::EndRound() {
  if (open_ != Open::kRound) return InvalidArgument("no round of the fleet was begun");
  open_ = Open::kNothing;
  noise_.Freshen();
  const std::unique_ptr<privacy::NoiseProcess> noise =
      privacy::MakeNoiseProcess({.multiplier = plan_.noise_multiplier});
  const auto scale = static_cast<float>(grid_.fine().Scale(plan_.cohort()));
  const float rate = LearningRate(plan_.optimizer, round_, plan_.rounds);
  std::vector<float> before = held_;
  // The ranges, and their order, are those of a training step with one thread (FlatMethod).
  model_.ForEachTrained([&](const ParameterSpec& p, size_t at, size_t trained, size_t travels) {
    float g[kUpdateChunk];
    for (size_t first = 0; first < p.size(); first += kUpdateChunk) {
      const size_t n = std::min(kUpdateChunk, p.size() - first);
      const std::span<int64_t> sum = std::span(sum_).subspan(travels + first, n);
      noise->Add(round_, grid_.fine(), travels + first, sum, noise_);
      for (size_t i = 0; i < n; ++i) g[i] = static_cast<float>(sum[i]) * scale;
      optimizer_.Update(p.shape, trained + first, g, n, rate, round_, held_.data() + at + first);
    }
  });
  sum_ = {};
  Result<std::string> wire = model_.Encode(held_);
  if (!wire.ok()) {
    held_ = std::move(before);
    return wire.status();
  }
  wire_ = *std::move(wire);
  due_ = plan_.EvaluationAfter(round_);
  ++round_;
  return Save();
}

Status FleetServer::BeginEvaluation() {
  if (!due_) return InvalidArgument("no evaluation of the fleet is due after round ", round_);
  WISP_RETURN_IF_ERROR(ChargeBlock(*evaluations_, *due_ / (plan_.evaluations / plan_.takes_part), true));
  open_ = Open::kEvaluation;
  added_.clear();
  sum_.assign(2, 0);
  return OkStatus();
}

Added FleetServer::AddGain(uint64_t node_id, std::string_view gain) {
  if (open_ != Open::kEvaluation || !Asks(node_id)) return Added::kNotAsked;
  const std::optional<DeviceGain> found = DeviceGain::Parse(gain);
  if (!found) return Added::kOutOfBound;
  if (!added_.insert(node_id).second) return Added::kTwice;
  sum_[0] += found->gain;
  sum_[1] += found->square;
  return Added::kAdded;
}

Result<FleetEvaluation> FleetServer::EndEvaluation() {
  if (open_ != Open::kEvaluation) return InvalidArgument("no evaluation of the fleet was begun");
  open_ = Open::kNothing;
  noise_.Freshen();
  privacy::AddDiscreteGaussian(noise_, GainSigma(plan_.noise_multiplier), sum_);
  FleetEvaluation result{.round = round_,
                         .sums = {.gains = static_cast<double>(sum_[0]) / kGainSteps,
                                  .squares = static_cast<double>(sum_[1]) / (kSquareWeight * kGainSteps),
                                  .noise_multiplier = plan_.noise_multiplier,
                                  .base = plan_.base_hash}};
  const double scale = kGainScale / plan_.cohort_of_evaluation();
  result.mean_gain = result.sums.gains * scale;
  result.deviation = result.sums.gain_noise() * scale;
  result.verdict = Decide({.num_evaluations = plan_.evaluations}, {&result.sums, 1});
  sum_ = {};
  evaluated_ = *due_ + 1;
  due_.reset();
  WISP_RETURN_IF_ERROR(Save());
  return result;
}

Status FleetServer::Save() const {
  Checkpoint c;
  c.architecture = model_.architecture();
  c.weights = held_;
  if (model_.architecture().adapter) {
    c.weights.resize(model_.trained().size());
    model_.trained().Gather(model_.parameters(), held_, c.weights, model_.first_held());
  }
  c.first_moment.assign(optimizer_.first().data(), optimizer_.first().data() + optimizer_.first().size());
  c.second_moment.assign(optimizer_.second().data(), optimizer_.second().data() + optimizer_.second().size());
  c.step = round_;
  c.epoch = evaluated_;
  c.random = seed_ ? RandomSource::kReproducible : RandomSource::kSecure;
  if (seed_) c.streams = {{"noise", noise_.position()}};
  c.run_id = plan_.name;
  c.config = ToHex(plan_hash_);
  c.base_model_hash = plan_.base_hash;
  WISP_ASSIGN_OR_RETURN(c.receipt, rounds_.MakeReceipt(c.run_id));
  return WriteCheckpoint(CheckpointPath(), c);
}

Status FleetServer::Restore() {
  if (!platform::IsThere(CheckpointPath())) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const Checkpoint c, ReadCheckpoint(CheckpointPath()));
  const size_t kept = model_.architecture().adapter ? model_.trained().size() : held_.size();
  if (c.config != ToHex(plan_hash_) || c.weights.size() != kept || c.step > plan_.rounds ||
      c.first_moment.size() != optimizer_.first().size() || c.second_moment.size() != optimizer_.second().size())
    return InvalidData(CheckpointPath(), ": belongs to another plan; a plan of a fleet has a folder of its own");
  WISP_ASSIGN_OR_RETURN(const bool paid, rounds_.HasPaid(c.receipt));
  if (!paid) return PrivacyRefused(CheckpointPath(), ": fleet.ledger beside it did not pay for its rounds");
  if (model_.architecture().adapter) {
    model_.trained().Scatter(model_.parameters(), c.weights, held_, model_.first_held());
  } else {
    held_ = c.weights;
  }
  std::copy(c.first_moment.begin(), c.first_moment.end(), optimizer_.first().data());
  std::copy(c.second_moment.begin(), c.second_moment.end(), optimizer_.second().data());
  round_ = static_cast<uint32_t>(c.step);
  evaluated_ = static_cast<uint32_t>(c.epoch);
  if (round_ > 0) due_ = plan_.EvaluationAfter(round_ - 1);
  if (due_ && *due_ < evaluated_) due_.reset();
  if (seed_ && !c.streams.empty()) return noise_.Seek(c.streams[0].position);
  return OkStatus();
}

Status FleetServer::WriteModel(const std::string& path) const {
  ProvenanceEntry entry{.description = "a fleet of " + std::to_string(plan_.devices) + " devices, plan " + plan_.name,
                        .privacy_unit = std::string(privacy::ToText(privacy::PrivacyUnit::kDevice)),
                        .adjacency = "add_remove",
                        .noise = seed_ ? NoiseOrigin::kReproducible : NoiseOrigin::kSecure,
                        .sampling = "allocation",
                        .steps = round_,
                        .dataset = plan_.name,
                        .date = Today()};
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, rounds_.Entries());
  for (const privacy::LedgerEntry& charged : entries) entry.mechanisms.push_back(charged.mechanism.Describe());
  entry.delta = plan_.delta;
  if (!seed_ && !entries.empty()) {
    WISP_ASSIGN_OR_RETURN(const privacy::LedgerFigures figures, GetFigures());
    entry.epsilon = figures.stated.epsilon;
    entry.accountant = "PLD";
  }
  WISP_ASSIGN_OR_RETURN(entry.receipt, rounds_.MakeReceipt(plan_.name));
  return model_.Write(path, held_, std::move(entry));
}

Result<privacy::LedgerFigures> FleetServer::GetFigures() const {
  WISP_ASSIGN_OR_RETURN(const privacy::Delta delta, privacy::Delta::Create(plan_.delta));
  return rounds_.Figures(delta);
}

}  // namespace wisp::fleet
