#include "runtime/personalise/evaluate_candidate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/layers/model_view.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/budget.h"
#include "runtime/train/list_scorer.h"

namespace wisp {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

constexpr double kMostEvaluationNoise = 1e6;

// Returns the indices of the newest events that both models are tested on, at most num_targets. The first event is
// never among them, because it has no history.
std::vector<size_t> ChooseTargets(std::span<const int32_t> record, std::span<const int64_t> times,
                                  const EvaluationOptions& o) {
  std::vector<size_t> targets;
  for (size_t t = record.size(); t-- > 1 && targets.size() < o.num_targets;) {
    if (!o.after || (!times.empty() && o.after->IsBefore(times[t]))) targets.push_back(t);
  }
  std::reverse(targets.begin(), targets.end());
  return targets;
}

// Returns the mean gain over the targets; 0 without targets.
double MeanGain(ListScorer& base, ListScorer& candidate, std::span<const int32_t> record,
                std::span<const size_t> targets) {
  if (targets.empty()) return 0;
  double sum = 0;
  for (const size_t t : targets) {
    const auto history = record.first(t);
    const auto quality = [&](ListScorer& scorer) {
      return Ndcg(scorer.FindPosition(record[t], scorer.Score(history, t != targets.front()), history));
    };
    sum += quality(candidate) - quality(base);
  }
  return sum / static_cast<double>(targets.size());
}

Evaluation FromSums(std::span<const int64_t, 2> sums, double noise_multiplier, const EvaluationOptions& o) {
  return {.gains = static_cast<double>(sums[0]) / kGainSteps,
          .squares = static_cast<double>(sums[1]) / (kSquareWeight * kGainSteps),
          .noise_multiplier = noise_multiplier,
          .base = o.base,
          .candidate = o.candidate,
          .line = o.line};
}

Status Check(const EvaluationOptions& o) {
  if (o.ledger == nullptr)
    return PrivacyRefused("evaluation needs a ledger: without one the budget spent would be forgotten");
  if (!(o.gain_scale > 0 && std::isfinite(o.gain_scale)))
    return InvalidArgument("the gain that counts as 1 is ", privacy::DoubleText(o.gain_scale), ", allowed is above 0");
  if (o.num_targets == 0)
    return InvalidArgument("the number of events to test in each record is 0, allowed are 1 and more");
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  return OkStatus();
}

Status CheckNoise(const EvaluationOptions& o) {
  if (o.noise_multiplier > 0 && o.noise_multiplier <= kMostEvaluationNoise) return OkStatus();
  return InvalidArgument("the noise multiplier of the evaluation is ", privacy::DoubleText(o.noise_multiplier),
                         ", allowed is above 0, up to ", kMostEvaluationNoise);
}

}  // namespace

GainOnGrid OnGrid(double mean_gain, double gain_scale) {
  std::array<int64_t, 2> on_grid;
  PutOnGrid(std::array{mean_gain / gain_scale}, on_grid);
  return {.gain = on_grid[0], .square = on_grid[1]};
}

Result<privacy::ChargeRequest> EvaluationCharge(const EvaluationOptions& o, uint64_t num_evaluations) {
  return MakeCharge({.noise_multiplier = o.noise_multiplier,
                     .count = num_evaluations,
                     .sigma_in_steps = GainSigma(o.noise_multiplier),
                     .num_coordinates = 2,
                     .run = o.run,
                     .purpose = kEvaluationPurpose,
                     .noise = o.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure});
}

std::vector<GainOnGrid> Gains(const Architecture& architecture, const ParameterSource& base,
                              const ParameterSource& candidate, const data::Sequences& records,
                              const EvaluationOptions& o) {
  // Each model is evaluated as it is served; their tables may have different types.
  const auto graph_of = [&](const ParameterSource& source) {
    return MakeModelView(
        architecture, kernels::Device(kernels::BestOps()),
        {.use = GraphUse::kInference, .head = HeadPackingFor(kernels::BestOps(), architecture, source)});
  };
  const std::unique_ptr<const ModelView> base_graph = graph_of(base), candidate_graph = graph_of(candidate);
  const PackedWeights of_base(*base_graph, base), of_candidate(*candidate_graph, candidate);
  std::vector<GainOnGrid> gains(records.num_users());
  Workers workers(o.num_threads, o.executor);
  workers.Run([&](size_t worker) {
    ListScorer by_base(*base_graph, of_base.view(), o.lists_of_base, CacheBlocks::kAll),
        by_candidate(*candidate_graph, of_candidate.view(), o.lists_of_candidate, CacheBlocks::kAll);
    for (size_t u = worker; u < records.num_users(); u += workers.size()) {
      const std::span<const int32_t> record = records.User(u);
      const std::vector<size_t> targets = ChooseTargets(record, records.GetTimes(u), o);
      gains[u] = OnGrid(MeanGain(by_base, by_candidate, record, targets), o.gain_scale);
    }
  });
  return gains;
}

namespace {

std::array<int64_t, 2> SumGains(const Architecture& architecture, const ParameterSource& base,
                                const ParameterSource& candidate, const data::Sequences& records,
                                const EvaluationOptions& o) {
  std::array<int64_t, 2> sums = {0, 0};
  for (const GainOnGrid& g : Gains(architecture, base, candidate, records, o)) {
    sums[0] += g.gain;
    sums[1] += g.square;
  }
  return sums;
}

Status CheckModels(const Architecture& architecture, const data::Sequences& records) {
  WISP_RETURN_IF_ERROR(Validate(architecture));
  if (records.item_keys.size() == architecture.num_items) return OkStatus();
  return InvalidArgument("the records have ", records.item_keys.size(), " items, the models have ",
                         architecture.num_items);
}

}  // namespace

Result<Evaluation> EvaluateCandidate(const Architecture& architecture, const ParameterSource& base,
                                     const ParameterSource& candidate, const data::Sequences& records,
                                     const EvaluationOptions& o) {
  WISP_RETURN_IF_ERROR(Check(o));
  WISP_RETURN_IF_ERROR(CheckNoise(o));
  WISP_RETURN_IF_ERROR(CheckModels(architecture, records));
  RandomStream noise = RandomStream::Reproducible(o.reproducible_seed.value_or(0), StreamPurpose::kNoise);
  if (!o.reproducible_seed) {
    WISP_ASSIGN_OR_RETURN(noise, RandomStream::Secure());
  }
  WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest charge, EvaluationCharge(o));
  WISP_ASSIGN_OR_RETURN(const privacy::ChargeId id, o.ledger->Charge(charge));
  auto sums = SumGains(architecture, base, candidate, records, o);
  privacy::AddDiscreteGaussian(noise, GainSigma(o.noise_multiplier), sums);
  const Evaluation evaluation = FromSums(sums, o.noise_multiplier, o);
  WISP_RETURN_IF_ERROR(o.ledger->AddResult(id, ToText(evaluation)));
  WISP_RETURN_IF_ERROR(o.ledger->MarkReleased(id));
  return evaluation;
}

Result<uint64_t> CountEvaluationEvents(const data::Sequences& records, const EvaluationOptions& o) {
  WISP_RETURN_IF_ERROR(Check(o));
  uint64_t events = 0;
  for (size_t u = 0; u < records.num_users(); ++u)
    events += ChooseTargets(records.User(u), records.GetTimes(u), o).size();
  return events;
}

Result<Evaluation> EvaluateLocally(const Architecture& architecture, const ParameterSource& base,
                                   const ParameterSource& candidate, const data::Sequences& records,
                                   const EvaluationOptions& o) {
  WISP_RETURN_IF_ERROR(Check(o));
  WISP_RETURN_IF_ERROR(CheckModels(architecture, records));
  const auto sums = SumGains(architecture, base, candidate, records, o);
  return FromSums(sums, 0, o);
}

}  // namespace wisp
