// What a session knows of a person without any history: what is popular.
#include <algorithm>

#include "runtime/inference/session.h"

namespace wisp {
namespace {

// Of the histories of one item that are asked: more of them recommend no better (docs/personalise.md).
constexpr size_t kMostAsked = 256;

// The item of that number among those that are not in `untrained`, which ascends.
int32_t KnownItem(size_t number, std::span<const int32_t> untrained) {
  auto item = static_cast<int32_t>(number);
  for (const int32_t id : untrained) {
    if (id > item) break;
    ++item;
  }
  return item;
}

}  // namespace

bool Session::CopiesBias(const ModelFile& file) {
  const auto parameters = file.parameters();
  return file.output_bias_origin() != OutputBiasOrigin::kNone &&
         std::any_of(parameters.begin(), parameters.end(),
                     [](const ParameterSpec& p) { return p.role == ParameterRole::kOutputBias; });
}

Status Session::FindPopular() {
  if (!popular_.empty()) return OkStatus();
  const size_t num_items = scores_.size();
  if (CopiesBias(file_)) {
    const float* values = file_.Tensor(*FindParameter(graph_.parameters(), ParameterRole::kOutputBias));
    popular_.assign(values, values + num_items);
    return OkStatus();
  }
  std::vector<float> mean(num_items, 0);
  const std::span<const int32_t> untrained = file_.untrained();
  const size_t known = num_items - untrained.size(), asked = std::min(known, kMostAsked);
  const float weight = 1 / static_cast<float>(asked);
  for (size_t a = 0; a < asked; ++a) {
    const int32_t item = KnownItem(a * known / asked, untrained);
    WISP_RETURN_IF_ERROR(Score({&item, 1}, scores_));
    for (size_t i = 0; i < num_items; ++i) mean[i] += weight * scores_[i];
  }
  popular_ = std::move(mean);
  return OkStatus();
}

}  // namespace wisp
