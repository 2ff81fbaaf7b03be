#include "runtime/layers/model_view.h"

#include <algorithm>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/layers/recommender.h"

namespace wisp {
namespace {

// The most one-item histories to average over. More of them give no better recommendations (docs/gains.md).
constexpr size_t kMostAsked = 256;

// The item with this number when items in `untrained` (ascending) are not counted.
int32_t KnownItem(size_t number, std::span<const int32_t> untrained) {
  auto item = static_cast<int32_t>(number);
  for (const int32_t id : untrained) {
    if (id > item) break;
    ++item;
  }
  return item;
}

}  // namespace

ModelView::ModelView(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : GraphBase(a, device, options), head_(a, parameters_, plan_) {
  if (options.use != GraphUse::kInference || plan_.max_records == 1) return;
  together_ = plan_.forward.Reserve<float>(plan_.max_records * a.width);
  last_row_ = plan_.host.Reserve<uint32_t>(plan_.max_records);
  last_row_on_device_ = plan_.forward.Reserve<uint32_t>(plan_.max_records);
}

bool ModelView::KeepsKeys(size_t before, size_t now) const {
  if (architecture_.attend != Attend::kCausal) return false;
  return before == now || architecture_.positions == PositionAlignment::kStart;
}

const float* ModelView::Represent(RecordContext& context, std::span<const int32_t> history) const {
  const std::span<const int32_t> inputs = history.subspan(context.past);
  return Encode(context, EnterOne(context, inputs), /*wanted=*/1);
}

const float* ModelView::RepresentEach(RecordContext& context, std::span<const int32_t> history) const {
  return Encode(context, EnterOne(context, history), /*wanted=*/0);
}

void ModelView::Represent(RecordContext& context, Batch batch, float* h_BD) const {
  for (const Record& record : batch) {
    device_.memory.copy_out(h_BD, Represent(context, record.inputs), architecture_.width * sizeof(float));
    h_BD += architecture_.width;
  }
}

const float* ModelView::RepresentTogether(RecordContext& context, Batch histories) const {
  if (histories.size() == 1) return Represent(context, histories[0].inputs);
  Enter(context, histories);
  uint32_t *row = context.buffers.host[last_row_], *row_on_device = context.forward(last_row_on_device_);
  for (size_t b = 0; b < histories.size(); ++b) row[b] = context.records.begin_B[b + 1] - 1;
  device_.memory.copy_in(row_on_device, row, histories.size() * sizeof(uint32_t));
  const size_t d = architecture_.width;
  const float* h = Encode(context, context.forward(inputs_), /*wanted=*/0);
  float* last = context.forward(together_);
  ops().copy_rows({.x_RD = h,
                   .ldx = d,
                   .from_R = row_on_device,
                   .y_RD = last,
                   .ldy = d,
                   .to_R = nullptr,
                   .rows = histories.size(),
                   .d = d});
  return last;
}

void ModelView::ScoreColdStart(RecordContext& context, const ModelLists& lists, float* room, float* scores) const {
  const size_t width = architecture_.width;
  const kernels::Memory& memory = device_.memory;
  const auto bias = FindParameter(parameters_, ParameterRole::kOutputBias);
  if (lists.bias_is_popularity && bias) {
    memory.copy_out(scores, context.weights.at(*bias), num_items() * sizeof(float));
    return;
  }
  const size_t known = num_items() - lists.untrained.size(), asked = std::min(known, kMostAsked);
  // Scores are linear in the head's input. So the scores of the mean state are the mean of the scores.
  const float weight = 1 / static_cast<float>(asked);
  std::vector<float> mean(width, 0), state(width);
  context.past = 0;
  for (size_t a = 0; a < asked; ++a) {
    const int32_t item = KnownItem(a * known / asked, lists.untrained);
    const Record record{.inputs = {&item, 1}};
    Represent(context, {&record, 1}, state.data());
    for (size_t i = 0; i < width; ++i) mean[i] += weight * state[i];
  }
  const AlignedArray<float> where_ops_read(width, memory);
  memory.copy_in(where_ops_read.data(), mean.data(), width * sizeof(float));
  ScoreState(context, where_ops_read.data(), room);
  if (room != scores) memory.copy_out(scores, room, num_items() * sizeof(float));
}

std::unique_ptr<const ModelView> MakeModelView(const Architecture& a, const kernels::Device& device,
                                               const GraphOptions& options) {
  // The item rows of a model of two towers are stored (two_tower.h), so this class scores it as well.
  return std::make_unique<Recommender>(a, device, options);
}

}  // namespace wisp
