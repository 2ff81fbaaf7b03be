// Implements `wisp-lab audit step` for recipes of classifiers. It audits one step of DP-FP, in the mode that the recipe
// or --method names.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/privacy/json.h"
#include "runtime/methods/dp_fp/audit_dp_fp.h"
#include "runtime/methods/dp_fp/dp_fp_report.h"
#include "runtime/train/run/classification.h"
#include "tools/lab/audit_classifier.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/temporary_folder.h"

namespace wisp::tools {
namespace {

constexpr uint32_t kAuditedRecords = 10000;  // the sampling probability is a share of these
constexpr uint32_t kAuditedTokens = 64;      // only the canary uses the upper half
constexpr size_t kOthers = 4;

struct MadeUpRecords {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<int32_t> labels;
  std::vector<Record> others;
  Record canary;
};

MadeUpRecords MakeUpRecords(const Architecture& a, privacy::RandomStream& random) {
  MadeUpRecords made;
  for (size_t i = 0; i <= kOthers; ++i) {
    const uint32_t first = i < kOthers ? 0 : kAuditedTokens / 2;
    std::vector<int32_t> tokens(std::min<size_t>(8, a.max_length));
    for (int32_t& token : tokens) token = static_cast<int32_t>(first + random.UniformBelow(kAuditedTokens / 2));
    made.tokens.push_back(std::move(tokens));
  }
  for (size_t i = 0; i <= kOthers; ++i)
    made.labels.push_back(i < kOthers ? static_cast<int32_t>(i % a.head.num_classes) : 0);
  for (size_t i = 0; i < kOthers; ++i) made.others.push_back({made.tokens[i], {&made.labels[i], 1}});
  made.canary = {made.tokens.back(), {&made.labels.back(), 1}};
  return made;
}

// The weights are those that training would start from, except for the head: a head of zeros would send no gradient
// down.
std::vector<float> MakeStart(const Architecture& a, const InitialisationOptions& initialisation,
                             privacy::RandomStream& random) {
  const auto parameters = ListParameters(a);
  std::vector<float> weights(FlatSize(parameters));
  InitialiseWeights(a, initialisation, random, weights);
  const ParameterSpec& head = parameters[RequireParameter(parameters, ParameterRole::kClassWeight)];
  for (size_t i = 0; i < head.size(); ++i) weights[head.offset + i] = static_cast<float>(random.Normal());
  return weights;
}

Status Override(const AuditArguments& a, RunSpec& r) {
  TrainingOptions& o = r.training;
  if (!a.method.empty()) {
    const auto mode = DpFpModeFromText(a.method);
    if (!mode)
      return InvalidArgument("--method is '", a.method,
                             "', allowed with a recipe of a classifier are aggregate, clipped and paper");
    o.dp_fp.mode = *mode;
  }
  if (o.method != Method::kDpFp)
    return Unsupported("a step of a classifier is audited of dp-fp alone; the recipe's method is ", GetName(o.method));
  if (!a.model.empty())
    return InvalidArgument(
        "--model does not go with a recipe of a classifier: its step is audited from random weights");
  if (!(a.sampling_probability > 0 && a.sampling_probability <= 1))
    return InvalidArgument("--q is not above 0 and up to 1");
  o.num_records_public = kAuditedRecords;
  o.expected_batch = std::max(1u, static_cast<uint32_t>(std::lround(a.sampling_probability * kAuditedRecords)));
  if (o.dp_fp.mode != DpFpMode::kPaper) o.dp_fp.noise_multiplier = r.goal.noise_multiplier.value_or(1.0);
  if (a.noise_multiplier) o.dp_fp.noise_multiplier = *a.noise_multiplier;
  if (!(o.dp_fp.noise_multiplier > 0))
    return InvalidArgument("--noise-multiplier is not above 0: without noise there is no claim to audit");
  if (o.dp_fp.mode == DpFpMode::kClipped && o.privacy.noise_multiplier == 0)
    o.privacy.noise_multiplier = o.dp_fp.noise_multiplier;
  if (a.clipping_norm) o.dp_fp.clipping_norm = *a.clipping_norm;
  o.privacy.reproducible_seed = a.reproducible_noise_seed;
  o.privacy.run = "audit";
  return OkStatus();
}

void Print(const DpFpAuditOptions& o, const DpFpAuditResult& r, OutputFormat format) {
  const bool paper = o.training.dp_fp.mode == DpFpMode::kPaper;
  const double q = BatchProbability(o.training);
  const bool powerless = std::all_of(r.at_delta.begin(), r.at_delta.end(),
                                     [](const auto& at) { return at.rows.epsilon <= 0 && at.head.epsilon <= 0; });
  if (format == OutputFormat::kJson) {
    Json j = {{"mode", ToText(o.training.dp_fp.mode)},
              {"claim_of", paper ? "the paper's limit theorem" : "the accountant"},
              {"noise_multiplier", o.training.dp_fp.noise_multiplier},
              {"sampling_probability", q},
              {"observations", o.observations}};
    for (const auto& at : r.at_delta) {
      j["epsilon"].push_back({{"delta", at.delta},
                              {"claimed", std::isinf(at.claimed) ? Json("infinity") : Json(at.claimed)},
                              {"bound_by_rows", at.rows.epsilon},
                              {"bound_by_head", at.head.epsilon}});
    }
    j["confidence"] = o.confidence;
    j["refuted"] = r.refuted;
    j["no_power"] = powerless;
    if (paper) j["no_guarantee"] = ExplainPaperMode();
    PrintJson(j);
    return;
  }
  PrintText(
      "audit of one step of DP-FP, mode %s: noise multiplier %g, %s of the records a step, %llu steps with the canary "
      "and as many without\n",
      ToText(o.training.dp_fp.mode), o.training.dp_fp.noise_multiplier,
      q == 1 ? "all" : (Json(100 * q).dump() + " %").c_str(), static_cast<unsigned long long>(o.observations));
  for (const auto& at : r.at_delta) {
    PrintText("  claimed%s %8s  delta %-8s  bound %8.4f by the table's rows, %8.4f by the head\n",
              paper ? " by the paper" : " epsilon", privacy::EpsilonText(at.claimed).c_str(),
              privacy::DoubleText(at.delta).c_str(), Down(at.rows.epsilon), Down(at.head.epsilon));
  }
  PrintText("%s, with %g%% confidence in all bounds together\n", r.refuted ? "REFUTED" : "not refuted",
            100 * o.confidence);
  if (powerless)
    PrintText(
        "bounds of 0 say that this attack saw nothing, not that there is nothing to see; more --observations make it "
        "stronger\n");
  if (paper) PrintText("%s\n", ExplainPaperMode().c_str());
}

}  // namespace

Result<bool> IsClassifyRecipe(const std::string& path) {
  if (path.empty()) return false;
  WISP_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(path));
  return DescribesClassifier(json);
}

Status AuditClassifierStep(const AuditArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(RunSpec recipe, ReadClassifyRecipe(a.recipe));
  WISP_RETURN_IF_ERROR(Override(a, recipe));
  recipe.architecture.num_items = kAuditedTokens;
  const Architecture architecture = WithClasses(recipe.architecture, static_cast<uint32_t>(recipe.classes.size()));
  WISP_RETURN_IF_ERROR(Validate(architecture));
  auto random = privacy::RandomStream::Reproducible(recipe.training.seed, privacy::StreamPurpose::kInitialisation);
  const std::vector<float> start = MakeStart(architecture, recipe.initialisation, random);
  const MadeUpRecords records = MakeUpRecords(architecture, random);
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  std::optional<privacy::Ledger> ledger;  // made-up data is charged too, but nobody needs to know
  if (recipe.training.dp_fp.mode != DpFpMode::kPaper) {
    const auto record = privacy::RecordSpec::OfTexts(recipe.unit, privacy::RecordSpec::kLabelledText);
    WISP_ASSIGN_OR_RETURN(privacy::Ledger opened,
                          privacy::Ledger::Open(folder.File("ledger"), {.dataset = "made up", .record = record}));
    ledger.emplace(std::move(opened));
    recipe.training.privacy.ledger = &*ledger;
  }
  DpFpAuditOptions options{.architecture = architecture,
                           .weights = start,
                           .training = MakeOptions(recipe),
                           .others = records.others,
                           .canary = records.canary};
  options.observations = a.observations;
  options.confidence = a.confidence;
  options.deltas = {a.delta, 1e-2, 1e-1};
  WISP_ASSIGN_OR_RETURN(const DpFpAuditResult result, AuditDpFpStep(options));
  Print(options, result, format);
  return result.refuted ? PrivacyRefused("REFUTED: the step is worse than what is claimed for it") : OkStatus();
}

}  // namespace wisp::tools
