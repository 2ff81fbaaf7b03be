#include "runtime/inference/decoding_need.h"

#include <algorithm>
#include <cmath>

namespace wisp {
namespace {

using Kind = DecodingNeed::Kind;

bool IsPublic(const ProvenanceEntry& entry, const DecodingPolicy& policy) {
  const auto& labels = policy.public_datasets;
  return !entry.dataset.empty() && entry.dataset != kUnknownDataset && std::find(labels.begin(), labels.end(), entry.dataset) != labels.end();
}

// Empty where the entry carries a guarantee.
std::string WhyNone(const ProvenanceEntry& entry) {
  if (!entry.epsilon) return "states no epsilon";
  if (!(*entry.epsilon >= 0 && std::isfinite(*entry.epsilon))) return "states an epsilon that is not finite";
  if (!(entry.delta >= 0 && entry.delta < 1)) return "states a delta that is no probability";
  if (entry.noise != NoiseOrigin::kSecure) return "had noise that was not from the secure generator";
  if (entry.mechanisms.empty()) return "names no mechanism";
  if (entry.sampling == "shuffled") return "was sampled by shuffling, which no accountant here covers";
  return "";
}

DecodingNeed Charge(std::string reason) { return {Kind::kCharge, std::move(reason)}; }

}  // namespace

DecodingNeed NeedOf(std::span<const ProvenanceEntry> provenance, const DecodingPolicy& policy) {
  if (provenance.empty()) return Charge("the weights have no provenance: nothing is known of the data they came from");
  if (provenance.front().base_model_hash != 0) {
    return Charge("the weights began as those of another model, of which no entry tells: nothing is known of the data that it came from");
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
    const std::string name = "provenance[" + std::to_string(i) + "]" + (entry.dataset.empty() ? "" : " (data set '" + entry.dataset + "')");
    if (const std::string why = WhyNone(entry); !why.empty()) return Charge(name + " " + why + ", and its data set is not declared public");
    if (policy.num_records_public > 0 && entry.delta >= 1 / static_cast<double>(policy.num_records_public)) {
      return Charge(name + " states its epsilon at a delta that is not below 1 / " + std::to_string(policy.num_records_public) +
                    " records: such a guarantee allows publishing some record whole");
    }
    if (first == nullptr) first = &entry;
    if (policy.wanted && (entry.privacy_unit != first->privacy_unit || entry.adjacency != first->adjacency)) {
      return Charge(name + " protects another unit or adjacency than the entries before it: their guarantees do not add up");
    }
    epsilon += *entry.epsilon;
    delta += entry.delta;
  }
  if (first == nullptr) return {Kind::kFree, "every data set the weights came from is declared public"};
  if (policy.wanted && !(epsilon <= policy.wanted->epsilon() && delta <= policy.wanted->delta())) {
    return Charge("the weights' guarantees add up to epsilon " + std::to_string(epsilon) + " at delta " + std::to_string(delta) +
                  ", wanted is epsilon " + std::to_string(policy.wanted->epsilon()) + " at delta " + std::to_string(policy.wanted->delta()));
  }
  return {Kind::kFree, std::string("the weights carry a guarantee") + (some_public ? " for all data that is not declared public" : "") +
                           ": drawing is free post-processing"};
}

DecodingNeed NeedOf(const ModelFile& file, const DecodingPolicy& policy) {
  if (file.output_bias_origin() == OutputBiasOrigin::kExactCounts) {
    for (const ProvenanceEntry& entry : file.provenance()) {
      if (!IsPublic(entry, policy)) return Charge("the output bias is exact counts of the training data, which are not all declared public");
    }
  }
  return NeedOf(file.provenance(), policy);
}

}  // namespace wisp
