#include <algorithm>

#include "runtime/layers/graph.h"

namespace wisp {
namespace {

uint32_t NumPadding(std::span<const int32_t> inputs) {
  return static_cast<uint32_t>(std::find_if(inputs.begin(), inputs.end(), [](int32_t id) { return id >= 0; }) -
                               inputs.begin());
}

}  // namespace

GraphBase::GraphBase(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : architecture_(a),
      device_(device),
      parameters_(ParametersOf(a)),
      pack_plan_(*device.ops, a, options.num_negatives > 0 ? HeadPacking::kNone : options.head,
                 options.use == GraphUse::kTraining),
      plan_(options.use, a.max_length, options.max_records) {
  if (plan_.max_records == 1) return;
  begin_ = plan_.forward.Reserve<uint32_t>(plan_.max_records + 1);
  first_valid_ = plan_.forward.Reserve<uint32_t>(plan_.max_records);
  inputs_ = plan_.forward.Reserve<int32_t>(plan_.max_rows());
  targets_ = plan_.backward.Reserve<int32_t>(plan_.max_rows());
}

std::unique_ptr<Helpers> GraphBase::AllocateHelpers(size_t num_threads, Executor executor) const {
  if (num_threads <= 1) return nullptr;
  auto helpers = std::make_unique<Helpers>(num_threads, std::move(executor));
  helpers->buffers.reserve(helpers->team.size() - 1);
  for (size_t i = 1; i < helpers->team.size(); ++i) helpers->buffers.push_back(AllocateForInference());
  return helpers;
}

void GraphBase::EnterOne(RecordContext& context, std::span<const int32_t> inputs) const {
  context.records = {.rows = inputs.size()};
  context.first_valid = NumPadding(inputs);
  context.first_valid_B = nullptr;
}

void GraphBase::Enter(RecordContext& context, Batch batch) const {
  if (batch.size() == 1) return EnterOne(context, batch[0].inputs);
  uint32_t *begin = context.forward(begin_), *first_valid = context.forward(first_valid_);
  int32_t *inputs = context.forward(inputs_), *targets = context.backward(targets_);
  begin[0] = 0;
  for (size_t b = 0; b < batch.size(); ++b) {
    const Record& record = batch[b];
    begin[b + 1] = begin[b] + static_cast<uint32_t>(record.inputs.size());
    first_valid[b] = NumPadding(record.inputs);
    inputs = std::copy(record.inputs.begin(), record.inputs.end(), inputs);
    targets = std::copy(record.targets.begin(), record.targets.end(), targets);
  }
  context.records = {.begin_B = begin, .num_records = batch.size(), .rows = begin[batch.size()]};
  context.first_valid_B = first_valid;
}

}  // namespace wisp
