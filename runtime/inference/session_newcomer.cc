// What a session knows of a person without any history: what is popular.
#include <algorithm>

#include "runtime/core/arena.h"
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
  const std::span<const int32_t> untrained = file_.untrained();
  const size_t known = num_items - untrained.size(), asked = std::min(known, kMostAsked);
  // Scores are linear in the hidden state that the head reads: those of the mean state are the mean of the scores.
  const size_t width = architecture().width;
  const float weight = 1 / static_cast<float>(asked);
  std::vector<float> mean(width, 0), state(width);
  RecordContext context{.weights = weights_.view(), .buffers = buffers_, .cache = &cache_, .helpers = helpers_.get()};
  encoded_.clear();
  for (size_t a = 0; a < asked; ++a) {
    const int32_t item = KnownItem(a * known / asked, untrained);
    const Record record{.inputs = {&item, 1}};
    graph_.Represent(context, {&record, 1}, state.data());
    for (size_t i = 0; i < width; ++i) mean[i] += weight * state[i];
  }
  return ScoreMean(context, mean);
}

Status Session::ScoreMean(const RecordContext& context, std::span<const float> mean) {
  const kernels::Memory& memory = graph_.device().memory;
  const AlignedArray<float> state(mean.size(), memory);
  memory.copy_in(state.data(), mean.data(), mean.size_bytes());
  std::vector<float> popular(scores_.size());
  float* const scores = is_host() ? popular.data() : top_->scores();
  graph_.ScoreState(context, state.data(), scores);
  if (!is_host()) memory.copy_out(popular.data(), scores, popular.size() * sizeof(float));
  WISP_RETURN_IF_ERROR(Arrived());
  popular_ = std::move(popular);
  return OkStatus();
}

}  // namespace wisp
