#include <algorithm>

#include "runtime/layers/graph.h"
#include "runtime/layers/dequantised.h"

namespace wisp {
namespace {

// Writes the type of each token of a text (TokenTypes). Returns the end of the types.
int32_t* WriteTypes(const TokenTypes& types, std::span<const int32_t> tokens, int32_t* to) {
  const auto last = static_cast<int32_t>(types.count) - 1;
  int32_t type = 0;
  for (const int32_t token : tokens) {
    *to++ = type;
    if (token == types.separator && type < last) ++type;
  }
  return to;
}

uint32_t NumPadding(std::span<const int32_t> inputs) {
  return static_cast<uint32_t>(std::find_if(inputs.begin(), inputs.end(), [](int32_t id) { return id >= 0; }) -
                               inputs.begin());
}

}  // namespace

// On a device, panels are stored as rows of floats (DeviceWeights).
GraphOptions MakeInferenceOptions(const kernels::Device& device, const Architecture& a,
                                  std::span<const StoredTensor> stored) {
  GraphOptions options{.use = GraphUse::kInference};
  if (stored.empty()) return options;
  options.head = HeadPackingFor(*device.ops, a, ParameterSource(stored));
  const std::optional<size_t> table = FindHeadTable(a, ListParameters(a));
  if (device.memory.is_host()) {
    options.stored = stored;
  } else if (table && stored[*table].panels.data != nullptr) {
    options.head = HeadPacking::kTiles;
  }
  return options;
}

GraphBase::GraphBase(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : architecture_(a),
      device_(device),
      parameters_(ListParameters(a)),
      pack_plan_(*device.ops, a, options.num_negatives > 0 ? HeadPacking::kNone : options.head,
                 options.use == GraphUse::kTraining || !device.memory.is_host(), options.stored),
      plan_(options.use, options.max_length > 0 ? std::min(options.max_length, a.max_length) : a.max_length,
            options.max_records, options.max_rows, device.memory.is_host()) {
  const bool is_host = device.memory.is_host();
  plan_.cache.set_panel(ops().cached_panel);
  plan_.recomputes = options.use == GraphUse::kTraining && options.recompute_blocks;
  if (options.use == GraphUse::kTraining)
    pack_plan_.WidenIn(ReserveDequantised(ops(), parameters_, options.stored, plan_));
  if (a.token_types.count > 0) types_ = plan_.forward.Reserve<int32_t>(plan_.max_rows());
  if (plan_.max_records > 1) {
    begin_ = plan_.host.Reserve<uint32_t>(plan_.max_records + 1);
    first_valid_ = plan_.host.Reserve<uint32_t>(plan_.max_records);
    if (!is_host) begin_on_device_ = plan_.forward.Reserve<uint32_t>(plan_.max_records + 1);
  } else if (is_host) {
    return;
  }
  inputs_ = plan_.forward.Reserve<int32_t>(plan_.max_rows());
  targets_ = plan_.backward.Reserve<int32_t>(plan_.max_rows());
  if (!is_host) ids_ = plan_.host.Reserve<int32_t>(plan_.max_rows());
}

std::unique_ptr<Helpers> GraphBase::AllocateHelpers(size_t num_threads, Executor executor) const {
  if (num_threads <= 1) return nullptr;
  auto helpers = std::make_unique<Helpers>(num_threads, std::move(executor));
  helpers->buffers.reserve(helpers->team.size() - 1);
  for (size_t i = 1; i < helpers->team.size(); ++i) helpers->buffers.push_back(AllocateForInference());
  return helpers;
}

const int32_t* GraphBase::EnterOne(RecordContext& context, std::span<const int32_t> inputs) const {
  context.records = {.rows = inputs.size()};
  context.first_valid = NumPadding(inputs);
  context.first_valid_B = nullptr;
  const Record record{.inputs = inputs, .targets = {}};
  EnterTypes(context, {&record, 1});
  if (device_.memory.is_host()) return inputs.data();
  int32_t* entered = context.forward(inputs_);
  device_.memory.copy_in(entered, inputs.data(), inputs.size_bytes());
  return entered;
}

void GraphBase::Enter(RecordContext& context, Batch batch) const {
  if (batch.size() == 1) {
    EnterOne(context, batch[0].inputs);
    if (!stays(batch))
      device_.memory.copy_in(context.backward(targets_), batch[0].targets.data(), batch[0].targets.size_bytes());
    return;
  }
  uint32_t *begin = context.buffers.host[begin_], *first_valid = context.buffers.host[first_valid_];
  begin[0] = 0;
  for (size_t b = 0; b < batch.size(); ++b) {
    begin[b + 1] = begin[b] + static_cast<uint32_t>(batch[b].inputs.size());
    first_valid[b] = NumPadding(batch[b].inputs);
  }
  context.records = {.begin_B = begin, .num_records = batch.size(), .rows = begin[batch.size()]};
  context.first_valid_B = first_valid;
  context.begin_on_device_B = begin;
  CopyIds(context, batch);
  EnterTypes(context, batch);
  if (device_.memory.is_host()) return;
  uint32_t* on_device = context.forward(begin_on_device_);
  device_.memory.copy_in(on_device, begin, (batch.size() + 1) * sizeof(uint32_t));
  context.begin_on_device_B = on_device;
}

void GraphBase::EnterTypes(RecordContext& context, Batch batch) const {
  context.type_R = nullptr;
  if (architecture_.token_types.count == 0) return;
  const bool is_host = device_.memory.is_host();
  int32_t* const to = context.forward(types_);
  int32_t* const first = is_host ? to : context.buffers.host[ids_];
  int32_t* end = first;
  for (const Record& record : batch) end = WriteTypes(architecture_.token_types, record.inputs, end);
  if (!is_host) device_.memory.copy_in(to, first, static_cast<size_t>(end - first) * sizeof(int32_t));
  context.type_R = to;
}

// On a device, all inputs are copied in one transfer, and so are all targets.
void GraphBase::CopyIds(RecordContext& context, Batch batch) const {
  const bool is_host = device_.memory.is_host();
  const auto copy = [&](int32_t* to, std::span<const int32_t> Record::*ids) {
    int32_t* const first = is_host ? to : context.buffers.host[ids_];
    int32_t* end = first;
    for (const Record& record : batch) end = std::copy((record.*ids).begin(), (record.*ids).end(), end);
    if (!is_host) device_.memory.copy_in(to, first, static_cast<size_t>(end - first) * sizeof(int32_t));
  };
  copy(context.forward(inputs_), &Record::inputs);
  if (plan_.use == GraphUse::kTraining) copy(context.backward(targets_), &Record::targets);
}

}  // namespace wisp
