#include "runtime/private_sampling/decoding_need.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/text.h"
#include "runtime/privacy/json.h"

namespace wisp {
namespace {

using Kind = DecodingNeed::Kind;

bool IsPublic(const ProvenanceEntry& entry, const DecodingPolicy& policy) {
  const auto& labels = policy.public_datasets;
  return !entry.dataset.empty() && entry.dataset != kUnknownDataset &&
         std::find(labels.begin(), labels.end(), entry.dataset) != labels.end();
}

// Why the entry carries no guarantee; empty if it carries one.
std::string ExplainEntry(const ProvenanceEntry& entry) {
  if (!entry.epsilon) return "states no epsilon";
  if (!(*entry.epsilon >= 0 && std::isfinite(*entry.epsilon))) return "states an epsilon that is not finite";
  if (!(entry.delta >= 0 && entry.delta < 1)) return "states a delta that is no probability";
  if (entry.noise != NoiseOrigin::kSecure) return "had noise that was not from the secure generator";
  if (entry.mechanisms.empty()) return "names no mechanism";
  if (entry.sampling == "shuffled") return "was sampled by shuffling, which no accountant here covers";
  return "";
}

DecodingNeed Charge(std::string reason) { return {Kind::kCharge, std::move(reason)}; }

void AddOnce(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

bool IsNamed(const std::string& dataset) { return !dataset.empty() && dataset != kUnknownDataset; }

// Tells the user how to declare a named data set public.
std::string DescribeDeclaration(const std::string& dataset) {
  return " (`public_datasets` " + InShell(OneLine(dataset)) + ")";
}

// True if samples reveal the entry's data set: it is not public, and the entry's guarantee is missing or too weak.
bool IsShown(const ProvenanceEntry& entry, const DecodingPolicy& policy) {
  if (IsPublic(entry, policy)) return false;
  return !ExplainEntry(entry).empty() ||
         (policy.num_records_public > 0 && entry.delta >= 1 / static_cast<double>(policy.num_records_public));
}

DecodingNeed FindEntriesNeed(std::span<const ProvenanceEntry> provenance, const DecodingPolicy& policy) {
  if (provenance.empty()) return Charge("the weights have no provenance: nothing is known of the data they came from");
  if (provenance.front().base_model_hash != 0) {
    return Charge(
        "the weights began as those of another model, of which no entry tells: nothing is known of the data that it "
        "came from");
  }
  const ProvenanceEntry* first = nullptr;
  double epsilon = 0, delta = 0;
  bool some_public = false;
  for (size_t i = 0; i < provenance.size(); ++i) {
    const ProvenanceEntry& entry = provenance[i];
    if (IsPublic(entry, policy)) {
      some_public = true;
      continue;
    }
    const bool named = IsNamed(entry.dataset);
    const std::string name = "run " + std::to_string(i + 1) + " of the provenance, on " +
                             (named ? "the data set '" + OneLine(entry.dataset) + "'," : "data that nobody named,");
    if (const std::string why = ExplainEntry(entry); !why.empty()) {
      return Charge(name + " " + why +
                    (named ? ", and its data set is not declared public" + DescribeDeclaration(entry.dataset)
                           : ", and data without a name cannot be declared public"));
    }
    if (policy.num_records_public > 0 && entry.delta >= 1 / static_cast<double>(policy.num_records_public)) {
      return Charge(name + " states its epsilon at a delta that is not below 1 / " +
                    std::to_string(policy.num_records_public) +
                    " records: such a guarantee allows publishing some record whole");
    }
    if (first == nullptr) first = &entry;
    if (policy.wanted && (entry.privacy_unit != first->privacy_unit || entry.adjacency != first->adjacency)) {
      return Charge(name +
                    " protects another unit or adjacency than the entries before it: their guarantees do not add up");
    }
    epsilon += *entry.epsilon;
    delta += entry.delta;
  }
  if (first == nullptr) return {Kind::kFree, "every data set the weights came from is declared public"};
  if (policy.wanted && !(epsilon <= policy.wanted->epsilon() && delta <= policy.wanted->delta())) {
    return Charge("the weights' guarantees add up to epsilon " + privacy::EpsilonText(epsilon) + " at delta " +
                  privacy::EpsilonText(delta) + ", wanted is epsilon " + privacy::DoubleText(policy.wanted->epsilon()) +
                  " at delta " + privacy::DoubleText(policy.wanted->delta()));
  }
  return {Kind::kFree, std::string("the weights carry a guarantee") +
                           (some_public ? " for all data that is not declared public" : "") +
                           ": sampling is free post-processing"};
}

}  // namespace

DecodingNeed FindNeed(std::span<const ProvenanceEntry> provenance, const DecodingPolicy& policy) {
  DecodingNeed need = FindEntriesNeed(provenance, policy);
  if (need.kind == Kind::kFree) return need;
  if (provenance.empty() || provenance.front().base_model_hash != 0) AddOnce(need.datasets, "");
  for (const ProvenanceEntry& entry : provenance) {
    if (IsShown(entry, policy)) AddOnce(need.datasets, entry.dataset == kUnknownDataset ? "" : entry.dataset);
  }
  // The guarantees are too weak only when added up, so samples reveal all of the data sets.
  const bool together = need.datasets.empty();
  for (const ProvenanceEntry& entry : provenance) {
    if (together && !IsPublic(entry, policy)) AddOnce(need.datasets, entry.dataset);
  }
  return need;
}

DecodingNeed FindNeed(const ModelFile& file, const DecodingPolicy& policy) {
  DecodingNeed need = FindNeed(file.provenance(), policy);
  if (file.output_bias_origin() != OutputBiasOrigin::kExactCounts) return need;
  // Counts are set when a model is made, by the run of its first entry (model_file.h). No later entry's guarantee
  // covers them.
  if (!file.provenance().empty() && IsPublic(file.provenance().front(), policy)) return need;
  need.kind = Kind::kCharge;
  const std::string counted = file.provenance().empty() ? "" : file.provenance().front().dataset;
  need.reason = "its output bias is exact counts of what it was trained on, which is not declared public" +
                (IsNamed(counted) ? DescribeDeclaration(counted) : "");
  AddOnce(need.datasets, IsNamed(counted) ? counted : "");
  return need;
}

Result<std::string> DatasetToCharge(const DecodingNeed& need) {
  if (need.datasets.size() > 1) {
    std::vector<std::string> names = need.datasets;
    std::replace(names.begin(), names.end(), std::string(), std::string("data that nobody named"));
    return PrivacyRefused("samples from this model show the data sets ", Listed(names),
                          ", and a ledger pays for one of them: declare public those that are ",
                          "(`public_datasets`), or train on the others with a guarantee");
  }
  return need.datasets.empty() ? std::string() : need.datasets.front();
}

}  // namespace wisp
