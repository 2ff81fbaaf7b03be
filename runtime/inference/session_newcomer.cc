// What a session knows of a person without any history: what is popular.
#include <algorithm>
#include <cmath>

#include "runtime/inference/session.h"

namespace wisp {
namespace {

// Of the histories of one item that are asked. ML-1M's and the cafe's catalogues are asked whole.
constexpr size_t kMostAsked = 4096;

// Adds exp(score) over its sum over all items.
void AddShares(std::span<const float> scores, std::vector<double>& shares, std::vector<double>& room) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) sum += room[i] = std::exp(scores[i] - largest);
  for (size_t i = 0; i < scores.size(); ++i) shares[i] += room[i] / sum;
}

}  // namespace

bool Session::CopiesBias(const ModelFile& file) {
  const auto parameters = file.parameters();
  return file.output_bias_origin() != OutputBiasOrigin::kNone &&
         std::any_of(parameters.begin(), parameters.end(),
                     [](const ParameterSpec& p) { return p.role == ParameterRole::kOutputBias; });
}

size_t Session::NewcomerBytes(const Architecture& architecture, bool copies_bias) {
  return architecture.num_items * (sizeof(float) + (copies_bias ? 0 : 2 * sizeof(double)));
}

Status Session::FindPopular() {
  if (!popular_.empty()) return OkStatus();
  const size_t num_items = scores_.size();
  if (CopiesBias(file_)) {
    const float* values = file_.Tensor(*FindParameter(graph_.parameters(), ParameterRole::kOutputBias));
    popular_.assign(values, values + num_items);
    return OkStatus();
  }
  std::vector<double> shares(num_items, 0), room(num_items);
  const size_t asked = std::min(num_items, kMostAsked);
  for (size_t a = 0; a < asked; ++a) {
    const auto item = static_cast<int32_t>(a * num_items / asked);
    WISP_RETURN_IF_ERROR(Score({&item, 1}, scores_));
    AddShares(scores_, shares, room);
  }
  for (const double share : shares) {
    if (!std::isfinite(share)) return NotFinite();
  }
  popular_.resize(num_items);
  std::transform(shares.begin(), shares.end(), popular_.begin(), [asked](double share) {
    return static_cast<float>(std::log(std::max(share / static_cast<double>(asked), 1e-30)));
  });
  return OkStatus();
}

}  // namespace wisp
