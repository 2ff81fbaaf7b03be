#include "runtime/model/provenance.h"

#include <algorithm>

#include "runtime/core/date.h"

namespace wisp {
namespace {

using Entries = std::span<const ProvenanceEntry>;

bool IsKnown(Entries entries) { return !entries.empty() && entries.front().base_model_hash == 0; }

// Two runs may have made equal entries. The result has as many copies of an entry as the input with the most.
void AddMissing(Entries input, std::vector<ProvenanceEntry>& joined) {
  for (size_t i = 0; i < input.size(); ++i) {
    const auto of_input = std::count(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(i) + 1, input[i]);
    if (of_input > std::count(joined.begin(), joined.end(), input[i])) joined.push_back(input[i]);
  }
}

}  // namespace

std::vector<ProvenanceEntry> JoinProvenance(const std::vector<Entries>& inputs) {
  std::vector<ProvenanceEntry> joined;
  for (const Entries& input : inputs) AddMissing(input, joined);
  const ProvenanceEntry unknown{.description = "weights of which nothing says what data they learned from",
                                .dataset = kUnknownDataset};
  if (inputs.size() > 1 && !std::all_of(inputs.begin(), inputs.end(), IsKnown)) AddMissing({&unknown, 1}, joined);
  return joined;
}

Mixture::Mixture(const ModelFile& main, std::span<const ModelFile* const> others, const char* description)
    : rooms_(others.size() + 1) {
  std::vector<ProvenanceEntry> of_main(main.provenance().begin(), main.provenance().end());
  of_main.push_back({.description = description,
                     .mechanisms = {"weights of models that are there, from no data of its own"},
                     .epsilon = 0,
                     .noise = NoiseOrigin::kSecure,
                     .date = Today(),
                     .base_model_hash = main.content_hash()});
  std::vector<Entries> pasts = {of_main};
  contents_ = GetContents(main, rooms_[0]);
  weights_.push_back(contents_.weights);
  for (size_t i = 0; i < others.size(); ++i) {
    weights_.push_back(others[i]->AllWeights(rooms_[i + 1]));
    pasts.push_back(others[i]->provenance());
  }
  contents_.provenance = JoinProvenance(pasts);
}

}  // namespace wisp
