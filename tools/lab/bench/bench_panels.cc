// Implements `wisp-lab bench --what panels`. It compares products whose weights lie in the panels of a model file with
// products whose weights were packed, on every instruction set of this processor. Weights are read from memory, as
// those of a large model are.
#include <cmath>

#include "runtime/core/arena.h"
#include "tools/lab/bench/bench_checks.h"
#include "tools/lab/bench/bench_parts.h"

namespace wisp::tools {
namespace {

using kernels::OpTable;
using kernels::PanelBits;

constexpr size_t kRows[] = {1, 2, 3, 8, 16, 128};
// The shapes of MiniLM's and GPT-2's layers, and of a table of tokens.
constexpr size_t kShapes[][2] = {{384, 384}, {1536, 384}, {384, 1536}, {2304, 768}, {768, 3072}, {30522, 384}};
constexpr size_t kFewFloats = 6'000'000, kFloats = 16'000'000;  // total floats of all copies, beyond the caches

// Copies of one matrix, in panels and packed, which are multiplied one after the other.
class PanelsBench {
 public:
  PanelsBench(const OpTable& ops, size_t rows, size_t n, size_t k)
      : ops_(ops),
        rows_(rows),
        n_(n),
        k_(k),
        size_(std::max(ops.packed_size(n, k), kernels::PanelMatrixBytes(PanelBits::kThirtyTwo, n, k) / sizeof(float))),
        copies_(std::max<size_t>(1, (rows > 16 ? kFewFloats : kFloats) / (n * k))),
        x_(rows * k),
        y_{std::vector<float>(rows * n), std::vector<float>(rows * n)},
        packed_(size_ * copies_),
        panels_(size_ * copies_) {
    std::vector<float> w(n * k);
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 7919 % 1000) / 1000 - 0.5f;
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i * 104729 % 1000) / 1000 - 0.5f;
    for (size_t i = 0; i < copies_; ++i) {
      ops.pack_weights({.w_NK = w.data(), .ldw = k, .packed = packed_.data() + i * size_, .n = n, .k = k});
      kernels::PackPanels(PanelBits::kThirtyTwo, w.data(), n, k,
                          reinterpret_cast<std::byte*>(panels_.data() + i * size_));
    }
  }

  // Returns the times of pairs. It is an error if the two do not give the same bits.
  Result<Json> Run(uint32_t repeats) {
    std::vector<double> ratios, seconds;
    for (uint32_t i = 0; i < repeats; ++i) {
      seconds.push_back(Seconds([&] { MultiplyPacked(); }));
      ratios.push_back(Seconds([&] { MultiplyPanels(); }) / seconds.back());
    }
    WISP_RETURN_IF_ERROR(CheckNear("a product with panels", y_[1], y_[0], /*tolerance=*/0));
    return Json{
        {"ops", ops_.name},
        {"rows", rows_},
        {"n", n_},
        {"k", k_},
        {"gflops_packed", 2e-9 * static_cast<double>(rows_ * n_ * k_ * copies_) / ComputeSpread(seconds).median},
        {"panels_over_packed", ToJson(ComputeSpread(ratios))}};
  }

 private:
  void MultiplyPacked() {
    for (size_t i = 0; i < copies_; ++i) {
      ops_.linear_forward({.x_RK = x_.data(),
                           .ldx = k_,
                           .packed = packed_.data() + i * size_,
                           .bias_N = nullptr,
                           .y_RN = y_[0].data(),
                           .ldy = n_,
                           .rows = rows_,
                           .n = n_,
                           .k = k_,
                           .store = kernels::Store::kAssign});
    }
  }
  void MultiplyPanels() {
    for (size_t i = 0; i < copies_; ++i) {
      ops_.multiply_panels(
          {.w = {reinterpret_cast<const std::byte*>(panels_.data() + i * size_), PanelBits::kThirtyTwo},
           .first = 0,
           .x_RK = x_.data(),
           .ldx = k_,
           .bias_N = nullptr,
           .y_RN = y_[1].data(),
           .ldy = n_,
           .rows = rows_,
           .n = n_,
           .k = k_,
           .store = kernels::Store::kAssign});
    }
  }

  const OpTable& ops_;
  size_t rows_, n_, k_, size_, copies_;
  std::vector<float> x_, y_[2];
  AlignedArray<float> packed_, panels_;
};

}  // namespace

Status BenchPanels(const BenchArguments& a, Json& result) {
  result["panels"] = Json::array();
  for (const OpTable* ops : kernels::AllOps()) {
    if (ops == &kernels::ReferenceOps()) continue;
    for (const size_t rows : kRows) {
      for (const auto& [n, k] : kShapes) {
        WISP_ASSIGN_OR_RETURN(Json row, PanelsBench(*ops, rows, n, k).Run(a.repeats));
        result["panels"].push_back(std::move(row));
      }
    }
  }
  return OkStatus();
}

}  // namespace wisp::tools
