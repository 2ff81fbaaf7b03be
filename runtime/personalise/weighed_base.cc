#include "runtime/personalise/weighed_base.h"

#include <algorithm>
#include <vector>

#include "runtime/core/platform.h"
#include "runtime/model/provenance.h"
#include "runtime/personalise/evaluation_rule.h"
#include "runtime/personalise/plan_files.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger/ledger_composition.h"
#include "runtime/train/bias_weight.h"

namespace wisp {
namespace {

constexpr char kBegins[] = "its output bias counts ";

std::string Describe(const BetterWeight& better) {
  return kBegins + privacy::ShortText(better.weight) + " times, as row " + std::to_string(better.result.seq) +
         " of the ledger found better";
}

Verdict DecideWeight(const EvaluationRule& rule, const WeighedBias& weighed, size_t k) {
  const Evaluation evaluation{
      .gains = weighed.gains[k], .squares = weighed.squares[k], .noise_multiplier = weighed.noise_multiplier};
  return Decide(rule, std::span(&evaluation, 1));
}

size_t IndexOf(float weight) {
  return static_cast<size_t>(std::find(kBiasWeights.begin(), kBiasWeights.end(), weight) - kBiasWeights.begin());
}

// The provenance of what the release said.
Result<ProvenanceEntry> Provenance(const ModelFile& base, const BetterWeight& better, const privacy::Ledger& ledger,
                                   const DeploymentSettings& settings) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  const auto paid = std::find_if(entries.begin(), entries.end(),
                                 [&](const privacy::LedgerEntry& e) { return e.id == better.result.entry; });
  if (paid == entries.end()) return InvalidData(ledger.path(), ": the charge of a result is missing");
  ProvenanceEntry entry{.description = Describe(better),
                        .mechanisms = {paid->mechanism.Describe()},
                        .delta = settings.delta,
                        .privacy_unit = std::string(privacy::ToText(ledger.unit())),
                        .adjacency = "add_remove",
                        .noise = NoiseOrigin::kSecure,
                        .dataset = ledger.dataset(),
                        .date = better.result.time_utc.substr(0, 10),
                        .base_model_hash = base.content_hash()};
  privacy::Composition cost;
  cost.Add(paid->mechanism, paid->noise, paid->loss_slack);
  WISP_ASSIGN_OR_RETURN(const privacy::Delta delta, privacy::Delta::Create(settings.delta));
  WISP_ASSIGN_OR_RETURN(const privacy::StatedEpsilon stated, cost.State(delta));
  entry.epsilon = stated.epsilon;
  entry.accountant = ToText(stated.accountant);
  WISP_ASSIGN_OR_RETURN(entry.receipt, ledger.MakeReceipt(paid->run, paid->id));
  return entry;
}

Status Write(const std::string& path, const ModelFile& base, const BetterWeight& better, const privacy::Ledger& ledger,
             const DeploymentSettings& settings) {
  const std::vector<ParameterSpec> parameters = ListParameters(base.architecture());
  const size_t bias = RequireParameter(parameters, ParameterRole::kOutputBias);
  ModelContents contents = ContentsWithoutWeights(base);
  contents.before = base.tensors().first(bias);
  contents.first_weight = parameters[bias].offset;
  std::vector<float> weights(FlatSize(parameters) - contents.first_weight);
  for (size_t i = bias; i < parameters.size(); ++i)
    CopyAsFloats(parameters[i], base.tensors()[i], weights.data() + (parameters[i].offset - contents.first_weight));
  for (float& b : std::span(weights).first(parameters[bias].size())) b *= better.weight;
  contents.weights = weights;
  contents.provenance = JoinProvenance({base.provenance()});
  WISP_ASSIGN_OR_RETURN(ProvenanceEntry entry, Provenance(base, better, ledger, settings));
  contents.provenance.push_back(std::move(entry));
  return WriteModel(path, contents);
}

}  // namespace

Result<std::optional<BetterWeight>> FindBetterWeight(const privacy::Ledger& ledger, const DeploymentSettings& settings,
                                                     uint64_t base_hash) {
  WISP_ASSIGN_OR_RETURN(std::vector<StoredWeighedBias> stored, ReadWeighedBiases(ledger, base_hash));
  std::optional<BetterWeight> better;
  for (auto& [weighed, result] : stored) {
    // A changed plan has no releases, and the error that was stated for those before it holds.
    WISP_ASSIGN_OR_RETURN(const auto then, SettingsBefore(ledger, result.seq));
    const EvaluationRule rule = then.value_or(settings).weight_rule();
    const float weight = weighed.Choose();
    if (weight != 1 && DecideWeight(rule, weighed, IndexOf(weight)).kind == Verdict::Kind::kBetter) {
      better = {weight, std::move(result)};
    } else if (better && DecideWeight(rule, weighed, IndexOf(better->weight)).kind == Verdict::Kind::kWorse) {
      better.reset();
    }
  }
  return better;
}

Result<ModelFile> OpenWeighedBase(const std::string& path, const ModelFile& base, const BetterWeight& better,
                                  const privacy::Ledger& ledger, const DeploymentSettings& settings) {
  if (platform::IsThere(path)) {
    Result<ModelFile> there = ModelFile::Open(path, Verify::kFull);
    if (there.ok() && IsWeighedFrom(*there, base) && there->provenance().back().description == Describe(better))
      return there;
  }
  WISP_RETURN_IF_ERROR(Write(path, base, better, ledger, settings));
  return ModelFile::Open(path, Verify::kFull);
}

Status CheckWeighedBase(const std::string& path, const ModelFile& base) {
  const Result<ModelFile> there = ModelFile::Open(path);
  if (!there.ok() || IsWeighedFrom(*there, base)) return OkStatus();
  return InvalidArgument(path, ": it is not ", base.name(),
                         " with another weight of its bias: delete it, or name another output");
}

bool IsWeighedFrom(const ModelFile& model, const ModelFile& base) {
  return BeganWith(model, base) && model.provenance().size() == base.provenance().size() + 1 &&
         model.provenance().back().description.starts_with(kBegins);
}

}  // namespace wisp
