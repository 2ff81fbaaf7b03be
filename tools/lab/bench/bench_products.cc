// Implements `wisp-lab bench --what products`: the matrix products of a step, shape by shape. They are rows by weights,
// and the gradients of the rows, of the weights, and of each record's weights. tools/lab/bench/peers/products.py times
// the same products in PyTorch.
#include <set>

#include "runtime/core/arena.h"
#include "runtime/layers/weights.h"
#include "tools/lab/bench/bench_parts.h"
#include "tools/wisp/device.h"

namespace wisp::tools {
namespace {

constexpr double kProductSeconds = 2e-3;

struct ProductShape {
  size_t rows, n, k, records;
  double operations() const { return 2 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k); }
};

// Returns n and k of each distinct weight matrix of a block and of a tile of the head.
std::set<std::pair<size_t, size_t>> ComputeWeights(const Architecture& a) {
  std::set<std::pair<size_t, size_t>> found = {{std::min<size_t>(kHeadTile, a.num_items), a.width}};
  for (const ParameterSpec& p : ListParameters(a)) {
    if (p.shape == ParameterShape::kMatrix && p.block < a.blocks.size()) found.insert({p.rows, p.cols});
  }
  return found;
}

// Returns numbers between -1 and 1, in a device's memory.
AlignedArray<float> Numbers(size_t size, const kernels::Device& device) {
  std::vector<float> numbers(size);
  uint64_t state = 1;
  for (float& x : numbers) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    x = static_cast<float>(static_cast<int64_t>(state) >> 40) * 0x1p-23f;
  }
  AlignedArray<float> array(size, device.memory);
  device.memory.copy_in(array.data(), numbers.data(), size * sizeof(float));
  return array;
}

class ProductsBench {
 public:
  ProductsBench(const kernels::Device& device, const ProductShape& shape, uint32_t repeats)
      : device_(device),
        ops_(*device.ops),
        s_(shape),
        repeats_(repeats),
        x_(Numbers(s_.rows * s_.k, device)),
        w_(Numbers(s_.n * s_.k, device)),
        y_(Numbers(s_.rows * s_.n, device)),
        dw_(s_.records * s_.n * s_.k, device.memory),
        packed_(ops_.packed_size(s_.n, s_.k), device.memory) {
    ops_.pack_weights({.w_NK = w_.data(), .ldw = s_.k, .packed = packed_.data(), .n = s_.n, .k = s_.k});
  }

  void Run(Json& list) {
    Add(list, "forward", [&] {
      ops_.linear_forward({.x_RK = x_.data(),
                           .ldx = s_.k,
                           .packed = packed_.data(),
                           .bias_N = nullptr,
                           .y_RN = y_.data(),
                           .ldy = s_.n,
                           .rows = s_.rows,
                           .n = s_.n,
                           .k = s_.k,
                           .store = kernels::Store::kAssign});
    });
    Add(list, "gradient of rows", [&] {
      ops_.linear_backward_input({.dy_RN = y_.data(),
                                  .lddy = s_.n,
                                  .w_NK = w_.data(),
                                  .ldw = s_.k,
                                  .dx_RK = x_.data(),
                                  .lddx = s_.k,
                                  .rows = s_.rows,
                                  .n = s_.n,
                                  .k = s_.k,
                                  .store = kernels::Store::kAssign});
    });
    Add(list, "gradient of weights", [&] {
      ops_.linear_backward_weight({.dy_RN = y_.data(),
                                   .lddy = s_.n,
                                   .x_RK = x_.data(),
                                   .ldx = s_.k,
                                   .dw_NK = dw_.data(),
                                   .lddw = s_.k,
                                   .rows = s_.rows,
                                   .n = s_.n,
                                   .k = s_.k,
                                   .scale = 1,
                                   .store = kernels::Store::kAssign});
    });
    if (device_.memory.is_host()) return;  // the host takes one record at a time
    std::vector<uint32_t> begin;
    for (size_t b = 0; b <= s_.records; ++b) begin.push_back(static_cast<uint32_t>(b * (s_.rows / s_.records)));
    Add(list, "gradient of each record's weights", [&] {
      ops_.record_weight_gradients({.dy_RN = y_.data(),
                                    .lddy = s_.n,
                                    .x_RK = x_.data(),
                                    .ldx = s_.k,
                                    .dw_BNK = dw_.data(),
                                    .stride = s_.n * s_.k,
                                    .records = {.begin_B = begin.data(), .num_records = s_.records, .rows = s_.rows},
                                    .n = s_.n,
                                    .k = s_.k});
    });
  }

 private:
  // Runs enough products in a row to take a while. Launches then overlap, and only the cost that does not overlap
  // counts.
  template <class Product>
  void Add(Json& list, const char* name, const Product& product) {
    const auto run = [&](size_t calls) {
      return Seconds([&] {
               for (size_t i = 0; i < calls; ++i) product();
               (void)device_.memory.wait();
             }) /
             static_cast<double>(calls);
    };
    run(1);
    const auto calls = static_cast<size_t>(std::clamp(kProductSeconds / std::max(run(1), 1e-9), 1.0, 1e4));
    std::vector<double> us(repeats_);
    for (double& sample : us) sample = 1e6 * run(calls);
    list.push_back({{"product", name},
                    {"rows", s_.rows},
                    {"n", s_.n},
                    {"k", s_.k},
                    {"records", s_.records},
                    {"us", ToJson(ComputeSpread(us))},
                    {"gflops", s_.operations() / ComputeSpread(us).median / 1e3}});
  }

  const kernels::Device& device_;
  const kernels::OpTable& ops_;
  const ProductShape s_;
  const uint32_t repeats_;
  AlignedArray<float> x_, w_, y_, dw_, packed_;
};

}  // namespace

Status BenchProducts(const BenchArguments& a, Json& result) {
  WISP_ASSIGN_OR_RETURN(BenchSubject subject, MakeBenchSubject(a));
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, OpenDevice(a.device, DeviceUse::kTraining));
  // All records pass at once.
  subject.training.expected_batch = subject.batch;
  subject.training.device = device.device;
  const size_t records = device.is_processor() ? 1 : GraphFor(subject.architecture, subject.training).max_records;
  result["device"] = device.description;
  for (const auto& [n, k] : ComputeWeights(subject.architecture)) {
    const ProductShape shape = {.rows = records * subject.length, .n = n, .k = k, .records = records};
    ProductsBench(device.device, shape, a.repeats).Run(result["products"]);
    if (device.is_processor()) continue;
    if (!device.device.memory.wait()) return IoError("the device failed: ", device.device.memory.failure());
  }
  return OkStatus();
}

}  // namespace wisp::tools
