#include "tools/lab/roofline/counting_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <type_traits>

namespace wisp::tools {
namespace {

using kernels::OpTable;

constexpr std::align_val_t kAlignment{64};

// Writes the numbers that the host expects from an op that does nothing.
template <class Args>
void LeaveNumbers(const Args&) {}
void LeaveNumbers(const kernels::CrossEntropyLossArgs<>& a) { std::fill_n(a.loss_B, NumRecords(a.records), 1.0); }
void LeaveNumbers(const kernels::ClassCrossEntropyArgs<>& a) {
  if (a.loss_R != nullptr) std::fill_n(a.loss_R, a.rows, 1.0);
}
void LeaveNumbers(const kernels::SquaresOfRowsArgs<>& a) { std::fill_n(a.squares_B, a.rows, 1.0); }
void LeaveNumbers(const kernels::AccumulateRowsOnGridArgs<>& a) { std::fill_n(a.squares_B, a.rows, 0.0); }
void LeaveNumbers(const kernels::AccumulateSlotsOnGridArgs<>& a) { std::fill_n(a.squares_B, a.rows, 0.0); }

}  // namespace

CountingDevice* CountingDevice::g_current = nullptr;

CountingDevice::CountingDevice(const kernels::Device* inner, std::span<const Roofline> rooflines)
    : inner_(inner), rooflines_(rooflines), table_(inner != nullptr ? *inner->ops : kernels::ReferenceOps()) {
  g_current = this;
  if (inner == nullptr) {
    table_.name = "counting";
    table_.takes_records = true;
    table_.processors = 132;  // of an H100
    table_.release_packed = nullptr;
    table_.cached_panel = 0;  // in rows, as devices have them
    table_.keep_keys = nullptr;
    table_.attend_cached = nullptr;
  }
  CountTraining();
  CountRows();
  CountNumbers();
}

CountingDevice::~CountingDevice() { g_current = nullptr; }

kernels::Device CountingDevice::device() const {
  return {table_, kernels::Memory(CountingMemory(), inner_ != nullptr ? inner_->memory.stream : nullptr)};
}

void CountingDevice::Clear() {
  for (OpTotals& op : totals_)
    op = {.op = op.op, .cost = {}, .roofline_seconds = std::vector<double>(rooflines_.size()), .seconds = 0};
  bytes_in_ = bytes_out_ = 0;
}

size_t CountingDevice::Add(const char* name) {
  totals_.push_back({.op = name, .cost = {}, .roofline_seconds = std::vector<double>(rooflines_.size())});
  return totals_.size() - 1;
}

void CountingDevice::Wait() const {
  if (inner_ != nullptr) (void)inner_->memory.wait();
}

template <class Work>
auto CountingDevice::Measure(size_t index, const OpCost& cost, const Work& work) {
  OpTotals& op = totals_[index];
  ++op.calls;
  op.cost.bytes += cost.bytes;
  op.cost.operations += cost.operations;
  for (size_t i = 0; i < rooflines_.size(); ++i) op.roofline_seconds[i] += rooflines_[i].ComputeSeconds(cost);
  Wait();
  const auto start = std::chrono::steady_clock::now();
  const auto end = [&] {
    Wait();
    op.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if constexpr (std::is_void_v<decltype(work())>) {
    work();
    end();
  } else {
    const auto number = work();
    end();
    return number;
  }
}

template <auto kOp, class R, class Args>
R CountingDevice::Counted(const Args& args) {
  CountingDevice& self = *g_current;
  return self.Measure(g_index<kOp>, ComputeCost(args), [&]() -> R {
    if (self.inner_ != nullptr) return (self.inner_->ops->*kOp)(args);
    LeaveNumbers(args);
    return R();
  });
}

// Adds no op that the table lacks.
template <auto kOp, class R, class Args>
void CountingDevice::Wrap(const char* name, R (*OpTable::*)(const Args&)) {
  if (table_.*kOp == nullptr) return;
  g_index<kOp> = Add(name);
  table_.*kOp = &Counted<kOp, R, Args>;
}

void CountingDevice::CountTraining() {
  Count<&OpTable::pack_weights>("pack_weights");
  Count<&OpTable::linear_forward>("linear_forward");
  Count<&OpTable::linear_backward_input>("linear_backward_input");
  Count<&OpTable::linear_backward_weight>("linear_backward_weight");
  Count<&OpTable::column_sum>("column_sum");
  Count<&OpTable::layer_norm_forward>("layer_norm_forward");
  Count<&OpTable::layer_norm_backward>("layer_norm_backward");
  Count<&OpTable::rms_norm_forward>("rms_norm_forward");
  Count<&OpTable::rms_norm_backward>("rms_norm_backward");
  Count<&OpTable::rotary>("rotary");
  Count<&OpTable::attention_forward>("attention_forward");
  Count<&OpTable::attention_backward>("attention_backward");
  Count<&OpTable::keep_keys>("keep_keys");
  Count<&OpTable::attend_cached>("attend_cached");
  Count<&OpTable::activation_forward>("activation_forward");
  Count<&OpTable::activation_backward>("activation_backward");
  Count<&OpTable::gated_activation_forward>("gated_activation_forward");
  Count<&OpTable::gated_activation_backward>("gated_activation_backward");
  Count<&OpTable::map>("map");
  Count<&OpTable::scale>("scale");
  Count<&OpTable::clear>("clear");
  Count<&OpTable::apply_keep>("apply_keep");
  Count<&OpTable::draw_keep>("draw_keep");
  Count<&OpTable::linear_variance>("linear_variance");
  Count<&OpTable::layer_norm_variance>("layer_norm_variance");
  Count<&OpTable::activation_variance>("activation_variance");
}

void CountingDevice::CountRows() {
  Count<&OpTable::embed_forward>("embed_forward");
  Count<&OpTable::embed_half>("embed_half");
  Count<&OpTable::embed_variance>("embed_variance");
  Count<&OpTable::position_ids>("position_ids");
  Count<&OpTable::scatter_add>("scatter_add");
  Count<&OpTable::copy_rows>("copy_rows");
  Count<&OpTable::gather_columns>("gather_columns");
  Count<&OpTable::scale_half>("scale_half");
  Count<&OpTable::multiply_half>("multiply_half");
  Count<&OpTable::multiply_panels>("multiply_panels");
  Count<&OpTable::embed_panels>("embed_panels");
  Count<&OpTable::softmax_start>("softmax_start");
  Count<&OpTable::softmax_stats>("softmax_stats");
  Count<&OpTable::cross_entropy_loss>("cross_entropy_loss");
  Count<&OpTable::cross_entropy_gradient>("cross_entropy_gradient");
  Count<&OpTable::softmax_gradient>("softmax_gradient");
  Count<&OpTable::target_logits>("target_logits");
  Count<&OpTable::target_gradient>("target_gradient");
  Count<&OpTable::class_cross_entropy>("class_cross_entropy");
  Count<&OpTable::clip_rows>("clip_rows");
  Count<&OpTable::clip_rows_backward>("clip_rows_backward");
  Count<&OpTable::mean_rows>("mean_rows");
  Count<&OpTable::mean_rows_backward>("mean_rows_backward");
}

void CountingDevice::CountNumbers() {
  Count<&OpTable::dot_rows>("dot_rows");
  Count<&OpTable::accumulate_on_grid>("accumulate_on_grid");
  Count<&OpTable::exp_double>("exp_double");
  Count<&OpTable::adam>("adam");
  Count<&OpTable::sgd>("sgd");
  Count<&OpTable::record_weight_gradients>("record_weight_gradients");
  Count<&OpTable::record_scatter_add>("record_scatter_add");
  Count<&OpTable::add_rows>("add_rows");
  Count<&OpTable::squares_of_rows>("squares_of_rows");
  Count<&OpTable::accumulate_rows_on_grid>("accumulate_rows_on_grid");
  Count<&OpTable::accumulate_slots_on_grid>("accumulate_slots_on_grid");
  Count<&OpTable::score_tiles>("score_tiles");
  Count<&OpTable::top_k>("top_k");
  Count<&OpTable::noised_sum>("noised_sum");
  Count<&OpTable::add_squared_moves>("add_squared_moves");
  g_index<& OpTable::dot> = Add("dot");
  table_.dot = [](const float* x, const float* y, size_t n) {
    const OpCost cost = {.bytes = Floats(2.0 * n), .operations = 2.0 * n};
    return g_current->Measure(g_index<&OpTable::dot>, cost, [&] {
      return g_current->inner_ != nullptr ? g_current->inner_->ops->dot(x, y, n) : 0.0;
    });
  };
  g_index<& OpTable::sum_squares> = Add("sum_squares");
  table_.sum_squares = [](const float* x, size_t n) {
    const OpCost cost = {.bytes = Floats(static_cast<double>(n)), .operations = 2.0 * n};
    return g_current->Measure(g_index<&OpTable::sum_squares>, cost, [&] {
      return g_current->inner_ != nullptr ? g_current->inner_->ops->sum_squares(x, n) : 0.0;
    });
  };
}

// Without an inner device, memory is the host's, and no op touches it.
const kernels::MemoryTable& CountingDevice::CountingMemory() const {
  static constexpr auto kBehind = []() -> const kernels::Device* { return g_current->inner_; };
  static constexpr kernels::MemoryTable kTable = {
      .allocate =
          [](void*, size_t bytes) {
            return kBehind() != nullptr ? kBehind()->memory.allocate(bytes) : ::operator new(bytes, kAlignment);
          },
      .release =
          [](void*, void* memory, size_t bytes) {
            if (kBehind() != nullptr) return kBehind()->memory.release(memory, bytes);
            ::operator delete(memory, kAlignment);
          },
      .copy_in =
          [](void*, void* to, const void* from, size_t bytes) {
            g_current->bytes_in_ += static_cast<double>(bytes);
            if (kBehind() != nullptr) kBehind()->memory.copy_in(to, from, bytes);
          },
      .copy_out =
          [](void*, void* to, const void* from, size_t bytes) {
            g_current->bytes_out_ += static_cast<double>(bytes);
            if (kBehind() != nullptr) return kBehind()->memory.copy_out(to, from, bytes);
            std::memset(to, 0, bytes);
          },
      .wait = [](void*) { return kBehind() == nullptr || kBehind()->memory.wait(); },
      .failure = [](void*) { return kBehind() == nullptr ? "" : kBehind()->memory.failure(); }};
  return kTable;
}

}  // namespace wisp::tools
