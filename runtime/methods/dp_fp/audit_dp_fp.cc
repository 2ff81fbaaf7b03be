#include "runtime/methods/dp_fp/audit_dp_fp.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/train/audit/audit_training.h"
#include "runtime/methods/dp_fp/dp_fp_report.h"

namespace wisp {
namespace {

struct Observations {
  std::vector<double> rows, head;
};

Status CheckOptions(const DpFpAuditOptions& o) {
  if (o.observations < 4) return InvalidArgument("observations is ", o.observations, ", allowed are 4 and above");
  if (o.deltas.empty()) return InvalidArgument("there is no delta at which a claim could be tested");
  for (double delta : o.deltas) WISP_RETURN_IF_ERROR(privacy::Delta::Create(delta).status());
  if (o.claimed_epsilon) WISP_RETURN_IF_ERROR(privacy::CheckClaimedEpsilon(*o.claimed_epsilon));
  return privacy::CheckAuditLevel({.delta = 0, .confidence = o.confidence});
}

// The tokens that only the canary names, each once.
std::vector<int32_t> FindOwnTokens(const DpFpAuditOptions& o) {
  std::vector<int32_t> tokens(o.canary.inputs.begin(), o.canary.inputs.end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  std::erase_if(tokens, [&](int32_t token) {
    return std::any_of(o.others.begin(), o.others.end(), [&](const Record& r) {
      return std::find(r.inputs.begin(), r.inputs.end(), token) != r.inputs.end();
    });
  });
  return tokens;
}

// The canary's representation with the weights that every step starts from.
std::vector<float> CanaryRepresentation(const DpFpAuditOptions& o, const Graph& graph) {
  const PackedWeights weights(graph.base(), o.weights.data());
  const Buffers buffers = graph.AllocateForInference();
  RecordContext context{.weights = weights.view(), .buffers = buffers};
  std::vector<float> h(graph.architecture().width);
  graph.Represent(context, {&o.canary, 1}, h.data());
  return h;
}

double RowsMoved(const DpFpAuditOptions& o, const Trainer& after, std::span<const int32_t> tokens) {
  const size_t d = o.architecture.width;  // the table is the first parameter
  double squares = 0;
  for (int32_t token : tokens) {
    for (size_t i = static_cast<size_t>(token) * d; i < (static_cast<size_t>(token) + 1) * d; ++i) {
      squares += std::pow(static_cast<double>(after.weights()[i]) - o.weights[i], 2);
    }
  }
  return std::sqrt(squares);
}

// The logit of the canary's label minus the mean of all logits, without the bias.
double HeadAnswer(const DpFpAuditOptions& o, const Trainer& after, std::span<const float> h) {
  const ParameterSpec& head = after.graph().parameters()[after.graph().head_parameter()];
  double answer = 0;
  for (uint32_t c = 0; c < o.architecture.head.num_classes; ++c) {
    const double share =
        (c == static_cast<uint32_t>(o.canary.targets[0]) ? 1.0 : 0.0) - 1.0 / o.architecture.head.num_classes;
    for (size_t k = 0; k < h.size(); ++k)
      answer += share * static_cast<double>(after.weights()[head.offset + c * h.size() + k]) * h[k];
  }
  return answer;
}

// Runs single steps one after another, each from the start. `first` is the seed of this world's first step if noise is
// reproducible.
Result<Observations> Observe(const DpFpAuditOptions& o, std::span<const Record> records, uint64_t first) {
  TrainingOptions step = o.training;
  step.num_steps = step.privacy.steps_per_charge = 1;
  step.num_threads = 1;
  const std::vector<int32_t> tokens = FindOwnTokens(o);
  Observations seen;
  std::vector<float> h;
  for (uint64_t i = 0; i < o.observations; ++i) {
    if (const auto seed = o.training.privacy.reproducible_seed) step.privacy.reproducible_seed = *seed + first + i;
    WISP_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(o.architecture, o.weights, records, step));
    WISP_RETURN_IF_ERROR(trainer->Step().status());
    if (h.empty()) h = CanaryRepresentation(o, trainer->graph());
    seen.rows.push_back(RowsMoved(o, *trainer, tokens));
    seen.head.push_back(HeadAnswer(o, *trainer, h));
  }
  return seen;
}

// The claim for one step at delta: the charge or, in kPaper, the paper's mu as a Gaussian mechanism.
Result<double> Claimed(const DpFpAuditOptions& o, double delta) {
  if (o.claimed_epsilon) return *o.claimed_epsilon;
  const TrainingOptions& t = o.training;
  if (!IsPaper(t)) {
    WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(o.architecture, t));
    return ClaimedEpsilon(plan, 1, delta);
  }
  const double mu = PaperMuTotNoGuarantee(
      {.sampling_probability = MicroBatchProbability(t), .steps = 1, .micro_batches = t.dp_fp.micro_batches},
      t.dp_fp.noise_multiplier);
  WISP_ASSIGN_OR_RETURN(const auto gaussian, privacy::Mechanism::Gaussian({.noise_multiplier = 1 / mu}));
  WISP_ASSIGN_OR_RETURN(const auto at, privacy::Delta::Create(delta));
  return privacy::PldEpsilon({&gaussian, 1}, at);
}

}  // namespace

Result<DpFpAuditResult> AuditDpFpStep(const DpFpAuditOptions& o) {
  WISP_RETURN_IF_ERROR(CheckOptions(o));
  if (o.training.num_records_public == 0)
    return InvalidArgument("an audit of a step needs num_records_public: both worlds are sampled with it");
  std::vector<Record> with(o.others.begin(), o.others.end());
  with.push_back(o.canary);
  WISP_RETURN_IF_ERROR(Trainer::Check(o.architecture, o.weights, with, o.training));
  if (FindOwnTokens(o).empty()) return InvalidArgument("the canary needs a token that no other record names");
  WISP_ASSIGN_OR_RETURN(const Observations in, Observe(o, with, 0));
  WISP_ASSIGN_OR_RETURN(const Observations out, Observe(o, o.others, o.observations));

  DpFpAuditResult result{.level = 1 - (1 - o.confidence) / static_cast<double>(2 * o.deltas.size())};
  for (double delta : o.deltas) {
    DpFpAuditResult::AtDelta at{.delta = delta};
    WISP_ASSIGN_OR_RETURN(at.claimed, Claimed(o, delta));
    const privacy::AuditLevel level{.delta = delta, .confidence = result.level};
    WISP_ASSIGN_OR_RETURN(at.rows, privacy::CanaryEpsilon({.with = in.rows, .without = out.rows}, level));
    WISP_ASSIGN_OR_RETURN(at.head, privacy::CanaryEpsilon({.with = in.head, .without = out.head}, level));
    result.refuted |= std::max(at.rows.epsilon, at.head.epsilon) > at.claimed;
    result.at_delta.push_back(at);
  }
  return result;
}

}  // namespace wisp
