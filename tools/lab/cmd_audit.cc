// Implements `wisp-lab audit step`, `run`, `membership` and `decoding`.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/core/text.h"
#include "runtime/private_sampling/audit_decoding.h"
#include "runtime/private_sampling/decoding_need.h"
#include "runtime/privacy/json.h"
#include "runtime/train/audit/audit_training.h"
#include "tools/lab/audit_classifier.h"
#include "tools/lab/commands.h"
#include "tools/wisp/output.h"
#include "tools/lab/training_audit.h"

namespace wisp::tools {
namespace {

constexpr uint32_t kStepRecords = 10000;  // the sampling probability of an audited step is a share of these
constexpr size_t kCandidates = 8;         // canaries, of which the strongest is taken

std::string General(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}
Json Figure(const std::optional<double>& value) {
  return !value ? Json() : std::isinf(*value) ? Json("infinity") : Json(*value);
}

// Returns the error for exit code 4 if the claim is refuted.
Status Verdict(bool refuted, const std::string& what) {
  return refuted ? PrivacyRefused("REFUTED: ", what, " is worse than what is claimed for it") : OkStatus();
}
const char* Word(bool refuted) { return refuted ? "REFUTED" : "not refuted"; }

// Keeps the names of those figures that reveal something about weights that nothing protects.
std::vector<std::string> FindNotPrivate(const ModelFile* model, std::vector<std::string> figures) {
  if (model == nullptr || FindNeed(*model).kind == DecodingNeed::Kind::kFree) figures.clear();
  return figures;
}

void PrintStep(const StepAuditOptions& o, const StepAuditResult& r, const ModelFile* model, OutputFormat format) {
  const std::vector<std::string> not_private = FindNotPrivate(model, {"reach", "mu", "epsilon", "refuted"});
  const double sigma = o.training.privacy.noise_multiplier, q = BatchProbability(o.training);
  if (format == OutputFormat::kJson) {
    Json j = {{"noise_multiplier", sigma},
              {"sampling_probability", q},
              {"observations", o.observations},
              {"coordinates", NumReleased(o.architecture, o.training)},
              {"reach", r.reach},
              {"mu", {{"claimed", r.claimed_mu}, {"bound", r.mu.mu}}}};
    for (const auto& at : r.at_delta)
      j["epsilon"].push_back({{"delta", at.delta}, {"claimed", Figure(at.claimed)}, {"bound", at.bound.epsilon}});
    j["confidence"] = o.confidence;
    j["refuted"] = r.refuted;
    j["not_private"] = not_private;
    PrintJson(j);
    return;
  }
  PrintText(
      "audit of one step: noise multiplier %g, sampling probability %g, %llu releases with the canary and as many "
      "without\n",
      sigma, q, static_cast<unsigned long long>(o.observations));
  PrintText("  claimed mu      %8.4f                  bound %8.4f\n", r.claimed_mu, Down(r.mu.mu));
  for (const auto& at : r.at_delta) {
    PrintText("  claimed epsilon %8s  delta %-8s  bound %8.4f\n", privacy::EpsilonText(at.claimed).c_str(),
              privacy::DoubleText(at.delta).c_str(), Down(at.bound.epsilon));
  }
  if (r.reach > 1.001) {
    PrintText("  the canary adds %.3f clipping norms: clipping does not hold\n", r.reach);
  } else {
    PrintText("  the canary adds %.3f clipping norms: no bound on mu above %.3f can be expected\n", r.reach,
              r.reach / sigma);
  }
  PrintText("%s, with %g%% confidence in all bounds together\n", Word(r.refuted), 100 * o.confidence);
  if (!not_private.empty())
    PrintText("local only: these figures tell something of the model's weights, which have no guarantee\n");
}

}  // namespace

Status AuditStepCommand(const AuditArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const bool of_classifier, IsClassifyRecipe(a.recipe));
  if (of_classifier) return AuditClassifierStep(a, format);
  TrainingAudit audit(a);
  WISP_RETURN_IF_ERROR(audit.PrepareOptions());
  if (audit.base() == nullptr && a.recipe.empty()) {
    // The model is small and its weights are far from 0. So a canary's gradient passes the clipping norm, and many
    // releases take only seconds.
    audit.recipe().architecture = UniformArchitecture{.num_items = 12,
                                                      .max_length = 4,
                                                      .width = 8,
                                                      .num_heads = 2,
                                                      .num_blocks = 1,
                                                      .inner_width = 8,
                                                      .embedding_scale = 2.0f};
    audit.recipe().initialisation = {.table_deviation = 0.5f, .position_deviation = 0.5f};
  }
  WISP_RETURN_IF_ERROR(audit.Initialise(std::max(12u, audit.architecture().num_items)));
  WISP_RETURN_IF_ERROR(audit.OpenTemporaryLedger());
  TrainingOptions& o = audit.training();
  if (!(a.sampling_probability > 0 && a.sampling_probability <= 1)) {
    return InvalidArgument("--q is ", General(a.sampling_probability), ", allowed is 0 < q <= 1");
  }
  o.num_records_public = kStepRecords;
  o.expected_batch = std::max(1u, static_cast<uint32_t>(std::lround(a.sampling_probability * kStepRecords)));
  o.privacy.noise_multiplier = audit.recipe().goal.noise_multiplier.value_or(1.0);
  if (!(o.privacy.noise_multiplier > 0)) {
    return InvalidArgument("--noise-multiplier is ", General(o.privacy.noise_multiplier),
                           ", allowed is above 0: without noise there is no claim to audit");
  }
  StepAuditOptions options{.architecture = audit.architecture(), .weights = audit.weights(), .training = o};
  options.observations = a.observations;
  options.confidence = a.confidence;
  options.deltas = {a.delta, 1e-2, 1e-1};
  if (a.through != "release" && a.through != "trainer")
    return InvalidArgument("--through is '", a.through, "', allowed are release and trainer");
  options.through = a.through == "release" ? StepAuditOptions::Through::kRelease : StepAuditOptions::Through::kTrainer;
  auto random = privacy::RandomStream::Reproducible(o.seed, privacy::StreamPurpose::kSampling);
  const size_t length = std::min<size_t>(8, options.architecture.max_length);
  const SyntheticRecords candidates = RandomRecords(kCandidates, length, options.architecture.num_items, random);
  const SyntheticRecords others = RandomRecords(2, length, options.architecture.num_items, random);
  options.others = others.records;
  WISP_ASSIGN_OR_RETURN(const size_t strongest, StrongestCanary(options, candidates.records));
  options.canary = candidates.records[strongest];
  WISP_ASSIGN_OR_RETURN(const StepAuditResult result, AuditStep(options));
  PrintStep(options, result, audit.base(), format);
  return Verdict(result.refuted, "the step");
}

Status AuditRunCommand(const AuditArguments& a, OutputFormat format) {
  TrainingAudit audit(a);
  WISP_RETURN_IF_ERROR(audit.PrepareOptions());
  WISP_RETURN_IF_ERROR(audit.ReadRecords());
  WISP_RETURN_IF_ERROR(audit.PrepareRun(static_cast<uint32_t>(audit.records().size() + a.canaries / 2)));
  RunAuditOptions options{.architecture = audit.architecture(),
                          .weights = audit.weights(),
                          .records = audit.records(),
                          .training = audit.training(),
                          .canaries = a.canaries};
  const double delta = audit.RunDelta();
  options.level = {.delta = delta, .confidence = a.confidence};
  options.claimed_epsilon = a.claim;
  WISP_ASSIGN_OR_RETURN(const RunAuditResult r, AuditRun(options));
  const TrainingOptions& o = options.training;
  if (format == OutputFormat::kJson) {
    PrintJson(
        Json({{"steps", o.num_steps},
              {"records", audit.records().size()},
              {"canaries", a.canaries},
              {"included", r.included},
              {"guesses", r.bound.outcome.guesses},
              {"correct", r.bound.outcome.correct},
              {"mean_drop_included", r.mean_drop_included},
              {"mean_drop_excluded", r.mean_drop_excluded},
              {"noise_multiplier", audit.is_private() ? Json(o.privacy.noise_multiplier) : Json()},
              {"delta", delta},
              {"claimed", Figure(r.claimed)},
              {"bound", r.bound.epsilon},
              {"confidence", a.confidence},
              {"refuted", r.refuted},
              {"charged_to", audit.charges_data() ? Json(a.ledger) : Json()},
              {"not_private", a.data.path.empty()
                                  ? Json::array()
                                  : Json(audit.NotPrivate({"records", "guesses", "mean_drop_included",
                                                           "mean_drop_excluded", "correct", "bound", "refuted"}))}}));
  } else {
    PrintText("audit of one run: %llu steps, %zu records, %u canaries of which %llu took part\n",
              static_cast<unsigned long long>(o.num_steps), audit.records().size(), a.canaries,
              static_cast<unsigned long long>(r.included));
    PrintText(
        "  loss of the canaries fell by %.3f in the data, by %.3f outside of it; %llu of %llu guesses were right\n",
        r.mean_drop_included, r.mean_drop_excluded, static_cast<unsigned long long>(r.bound.outcome.correct),
        static_cast<unsigned long long>(r.bound.outcome.guesses));
    PrintText("  claimed epsilon %s  bound %.4f  at delta %s\n",
              r.claimed ? privacy::EpsilonText(*r.claimed).c_str() : "none", Down(r.bound.epsilon),
              privacy::DoubleText(delta).c_str());
    if (r.claimed) PrintText("%s, with %g%% confidence\n", Word(r.refuted), 100 * a.confidence);
    if (!r.claimed) {
      PrintText(
          "nothing was tested: this run trains without a guarantee (method ordinary) and claims no epsilon; --claim "
          "tests one, --method phantom a private run\n");
    }
    if (audit.charges_data())
      PrintText("charged to %s like training: %llu steps\n", OneLine(a.ledger).c_str(),
                static_cast<unsigned long long>(o.num_steps));
    if (!a.data.path.empty()) PrintText("%s\n", kLocalOnly);
  }
  return Verdict(r.refuted, "the run");
}

Status AuditMembershipCommand(const AuditArguments& a, OutputFormat format) {
  TrainingAudit audit(a);
  WISP_RETURN_IF_ERROR(audit.PrepareOptions());
  WISP_RETURN_IF_ERROR(audit.ReadRecords());
  WISP_RETURN_IF_ERROR(audit.PrepareRun(static_cast<uint32_t>(audit.records().size() / 2)));
  MembershipAuditOptions options{.architecture = audit.architecture(),
                                 .weights = audit.weights(),
                                 .records = audit.records(),
                                 .training = audit.training(),
                                 .confidence = a.confidence};
  WISP_ASSIGN_OR_RETURN(const MembershipAuditResult r, AuditMembership(options));
  const privacy::MembershipReport& m = r.report;
  if (format == OutputFormat::kJson) {
    const auto rate = [](const privacy::ThresholdAttack& t) {
      return Json({{"true_positive_rate", t.true_positives.rate()}, {"false_positive_rate", t.false_positives.rate()}});
    };
    PrintJson(Json(
        {{"members", r.members},
         {"non_members", r.non_members},
         {"steps", options.training.num_steps},
         {"mean_loss_members", r.mean_loss_members},
         {"mean_loss_non_members", r.mean_loss_non_members},
         {"accuracy", m.accuracy},
         {"accuracy_interval", {m.accuracy_interval.low, m.accuracy_interval.high}},
         {"auc", m.auc},
         {"auc_interval", {m.auc_interval.low, m.auc_interval.high}},
         {"at_fpr_1_percent", rate(m.at_fpr_1_percent)},
         {"at_fpr_0.1_percent", rate(m.at_fpr_01_percent)},
         {"confidence", a.confidence},
         {"not_private", a.data.path.empty()
                             ? Json::array()
                             : Json(audit.NotPrivate({"members", "non_members", "mean_loss_members",
                                                      "mean_loss_non_members", "accuracy", "accuracy_interval", "auc",
                                                      "auc_interval", "at_fpr_1_percent", "at_fpr_0.1_percent"}))}}));
    return OkStatus();
  }
  PrintText("membership inference by loss: %llu members, %llu others, %llu steps\n",
            static_cast<unsigned long long>(r.members), static_cast<unsigned long long>(r.non_members),
            static_cast<unsigned long long>(options.training.num_steps));
  PrintText("  loss per position %.3f of members, %.3f of others\n", r.mean_loss_members, r.mean_loss_non_members);
  PrintText("  accuracy %.3f [%.3f, %.3f], 0.5 is guessing; area under the curve %.3f [%.3f, %.3f]\n", m.accuracy,
            m.accuracy_interval.low, m.accuracy_interval.high, m.auc, m.auc_interval.low, m.auc_interval.high);
  PrintText("  at 1%% false positives %.3f true ones, at 0.1%% %.3f\n", m.at_fpr_1_percent.true_positives.rate(),
            m.at_fpr_01_percent.true_positives.rate());
  PrintText("an attack, not a bound on epsilon: a stronger one may do better; each interval has %g%% confidence%s\n",
            100 * a.confidence, a.data.path.empty() ? "" : (std::string("\n") + kLocalOnly).c_str());
  return OkStatus();
}

Status AuditDecodingCommand(const AuditArguments& a, OutputFormat format) {
  DecodingAuditOptions o{.num_items = a.items,
                         .samples = a.samples,
                         .lambda = a.lambda,
                         .clip = a.clip,
                         .temperature = a.temperature,
                         .delta = a.delta};
  // uniform, non-uniform and base-anchored are accepted as other names of these modes.
  const bool anchored = a.mode == "anchored" || a.mode == "base-anchored";
  if (a.mode == "non-uniform" || (a.mode == "mixed" && !a.mixing.empty())) {
    o.mode = DecodingMode::kNonUniform;
    for (const std::string& u : SplitCommas(a.mixing)) o.mixing.push_back(std::strtod(u.c_str(), nullptr));
  } else if (anchored) {
    o.mode = DecodingMode::kBaseAnchored;
  } else if (a.mode != "mixed" && a.mode != "uniform") {
    return InvalidArgument("--mode is '", a.mode, "', allowed are mixed and anchored");
  }
  const char* mode = anchored ? "anchored" : "mixed";
  TemporaryLedger ledger;
  o.claimed_epsilon = a.claim;
  o.observations = a.observations;
  o.confidence = a.confidence;
  o.reproducible_seed = a.reproducible_noise_seed;
  if (o.observations > 0) {
    WISP_ASSIGN_OR_RETURN(o.ledger, ledger.Open());
  }
  WISP_ASSIGN_OR_RETURN(const DecodingAuditResult r, AuditDecoding(o));
  if (format == OutputFormat::kJson) {
    PrintJson(Json({{"mode", mode},
                    {"models", r.models},
                    {"samples", o.samples},
                    {"items", o.num_items},
                    {"claimed", Figure(r.claimed)},
                    {"exact", Figure(r.exact)},
                    {"delta", o.delta},
                    {"claimed_at_delta", Figure(r.claimed_at_delta)},
                    {"exact_at_delta", Figure(r.exact_at_delta)},
                    {"sampled", Figure(r.sampled)},
                    {"refuted", r.refuted}}));
  } else {
    PrintText("audit of decoding (%s): %u of %u items, all outcomes under all pairs of %llu models\n", mode, o.samples,
              o.num_items, static_cast<unsigned long long>(r.models));
    const auto up = [](double epsilon) { return privacy::EpsilonText(epsilon, 5); };
    PrintText("  claimed epsilon %8s                  exact %8s\n", up(r.claimed).c_str(), up(r.exact).c_str());
    if (r.claimed_at_delta) {
      PrintText("  claimed epsilon %8s  delta %-8s  exact %8s\n", up(*r.claimed_at_delta).c_str(),
                privacy::DoubleText(o.delta).c_str(), up(*r.exact_at_delta).c_str());
    }
    if (r.sampled) {
      PrintText("  the sampler itself, %llu times under each of two models: bound %.4f, with %g%% confidence\n",
                static_cast<unsigned long long>(o.observations), Down(*r.sampled), 100 * o.confidence);
    }
    PrintText("%s\n", Word(r.refuted));
  }
  return Verdict(r.refuted, "decoding");
}

}  // namespace wisp::tools
