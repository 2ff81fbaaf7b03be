#include "runtime/fleet/device_update.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/gradients/sum_gradients.h"
#include "runtime/methods/phantom/phantom_method.h"
#include "runtime/train/check_records.h"
#include "runtime/train/run/job.h"
#include "runtime/train/trainer.h"

namespace wisp::fleet {
namespace {

// Attempts at a rounding within the bound. One fails with a probability below 1e-8 (UpdateGrid's reserve).
constexpr int kRoundings = 8;
// The norm of a record's gradient in a private run. The noise follows it, and the local learning rate scales both.
constexpr double kClippingNormOfRecords = 1;

std::vector<uint8_t> ListChanges(const RoundModel& model) {
  std::vector<uint8_t> changes;
  const std::optional<size_t> derived = model.graph().derived(model.trained());
  for (size_t i = 0; i < model.parameters().size(); ++i)
    changes.push_back(model.trained().contains(i) || i == derived ? 1 : 0);
  return changes;
}

}  // namespace

DeviceUpdate::DeviceUpdate(RoundModel model, const FleetPlan& plan)
    : plan_(plan),
      model_(std::move(model)),
      grid_(plan),
      weights_(model_.graph(), model_.trained(), model_.start(), ListChanges(model_), model_.options()),
      buffers_(model_.graph().AllocateForTraining()),
      pass_(model_.graph()),
      clip_(ClipRule::Automatic(grid_.clip_bound())),
      sum_(model_.graph().device(), model_.trained().size(),
           {.steps_per_unit = static_cast<float>(grid_.fine().steps_per_unit()),
            .max_sum_squares = grid_.fine().max_sum_squares()}),
      gradients_(MakePhantomGradients(model_.graph(), model_.trained(), model_.options(), clip_, 0, sum_)) {}

Result<std::unique_ptr<DeviceUpdate>> DeviceUpdate::Create(const ModelFile& base, const FleetPlan& plan) {
  WISP_ASSIGN_OR_RETURN(RoundModel model, RoundModel::Create(base, plan));
  return std::unique_ptr<DeviceUpdate>(new DeviceUpdate(std::move(model), plan));
}

Status DeviceUpdate::TakeWeights(std::string_view wire) {
  Status taken;
  weights_.ChangeOnHost([&](std::span<float> held) { taken = model_.Decode(wire, held); });
  WISP_RETURN_IF_ERROR(taken);
  weights_.Pack(0, 1);
  weights_.Packed();
  return OkStatus();
}

bool DeviceUpdate::IsUsable(const Record& record) const {
  return IsTrainable(model_.architecture(), record, LongestRecord(model_.architecture(), 0)) && NumTargets(record) > 0;
}

template <class Outcomes>
void DeviceUpdate::Pass(std::span<const Record> records, Gradients gradients, const Outcomes& outcomes) {
  RecordContext context{
      .weights = weights_.view(), .buffers = buffers_, .dropout = &model_.options().dropout, .negatives = nullptr};
  const auto run = [&] {
    if (!pass_.empty()) outcomes(pass_.Run(context, gradients));
  };
  for (const Record& record : records) {
    if (!pass_.Fits(record)) run();
    pass_.Push(record, {.target_weight = 1.0f / static_cast<float>(NumTargets(record))});
  }
  run();
}

// A record whose gradient is not finite, or not within the bound, adds nothing.
void DeviceUpdate::AddOne(const Record& record) {
  Pass({&record, 1}, gradients_.get(), [](const auto&) {});
}

void DeviceUpdate::AddMeanGradient(std::span<const Record> records) {
  FloatGradientSum sum(model_.graph().device(), model_.trained().size(), 1);
  sum.Clear();
  SumGradients gradients(model_.graph().device(), MakeBatchSetup(model_.graph(), model_.trained()), 0, sum, 0);
  Pass(records, Gradients(gradients), [](const auto&) {});
  AddClipped(sum.Reduce());
}

TrainingOptions DeviceUpdate::LocalOptions() const {
  TrainingOptions options = model_.options();
  options.num_steps = plan_.local_steps;
  options.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = static_cast<float>(plan_.local_learning_rate)};
  return options;
}

void DeviceUpdate::AddLocalChange(std::span<const Record> records, uint64_t seed) {
  TrainingOptions options = LocalOptions();
  options.method = Method::kOrdinary;
  options.expected_batch = static_cast<uint32_t>(std::clamp<size_t>(records.size(), 1, 32));
  options.seed = seed;
  Result<std::unique_ptr<Trainer>> trainer =
      Trainer::Create(model_.architecture(), weights_.current(), records, options);
  if (!trainer.ok()) return;
  for (uint32_t i = 0; i < plan_.local_steps; ++i) {
    if (!(*trainer)->Step().ok()) return;
  }
  AddChange((*trainer)->weights());
}

// The change points like a gradient, from the new weights to the old ones.
void DeviceUpdate::AddChange(std::span<const float> after) {
  std::vector<float> change(model_.trained().size());
  model_.ForEachTrained([&](const ParameterSpec& p, size_t at, size_t trained, size_t) {
    for (size_t i = 0; i < p.size(); ++i) change[trained + i] = weights_.current()[at + i] - after[at + i];
  });
  AddClipped(change);
}

void DeviceUpdate::AddClipped(std::span<const float> change) {
  double squares = 0;
  for (const float x : change) squares += static_cast<double>(x) * static_cast<double>(x);
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return;
  const double added = sum_.Add(0, 0, change.data(), change.size(), static_cast<float>(clip_.Factor(norm)), 1);
  if (!(added <= sum_.MaxSumSquares())) sum_.Clear();
}

std::string DeviceUpdate::Compute(std::span<const Record> given, uint64_t seed) {
  sum_.Clear();
  std::vector<Record> records;
  std::copy_if(given.begin(), given.end(), std::back_inserter(records),
               [this](const Record& r) { return IsUsable(r); });
  if (!records.empty()) {
    if (plan_.method == FleetPlan::Method::kLocal) {
      AddLocalChange(records, seed);
    } else if (records.size() == 1) {
      AddOne(records[0]);
    } else {
      AddMeanGradient(records);
    }
  }
  return Rounded(seed);
}

Result<std::string> DeviceUpdate::ComputePrivately(const data::Sequences& sequences, const RecordProtection& p,
                                                   uint64_t seed) {
  TrainingJob job{
      .spec = {.architecture = model_.architecture(), .training = LocalOptions(), .hold_out = HoldOut::kNothing},
      .sequences = &sequences};
  TrainingOptions& options = job.spec.training;
  options.sampling = Sampling::kPoisson;
  options.expected_batch = p.expected_batch;
  options.num_records_public = p.num_records_public;
  options.privacy = {.clipping_norm = kClippingNormOfRecords, .ledger = p.ledger, .run = "fleet"};
  // One charge, so that a run is paid for whole or not at all.
  options.privacy.steps_per_charge = plan_.local_steps;
  WISP_ASSIGN_OR_RETURN(const auto limit, privacy::EpsilonDelta::Create(p.epsilon, p.delta));
  job.spec.goal = {.epsilon = p.epsilon, .delta = p.delta, .planned_runs = p.participations, .new_limit = limit};
  job.start_weights = weights_.current();
  WISP_ASSIGN_OR_RETURN(const JobResult result, RunTrainingJob(job));
  sum_.Clear();
  AddChange(result.weights);
  return Rounded(seed);
}

std::string DeviceUpdate::Rounded(uint64_t seed) {
  std::vector<int64_t> fine(grid_.fine().num_coordinates());
  model_.ForEachTrained([&](const ParameterSpec& p, size_t, size_t trained, size_t travels) {
    std::copy_n(sum_.sum().data() + trained, p.size(), fine.data() + travels);
  });
  auto stream = privacy::RandomStream::Reproducible(seed, privacy::StreamPurpose::kRounding);
  std::string update;
  for (int i = 0; i < kRoundings; ++i) {
    if (grid_.Round(fine, stream, update)) return update;
  }
  return std::string(grid_.bytes(), '\0');
}

}  // namespace wisp::fleet
