// Matrices in panels and products with them, for tests.
#ifndef WISP_TESTS_UNIT_KERNELS_PANELS_TEST_UTIL_H_
#define WISP_TESTS_UNIT_KERNELS_PANELS_TEST_UTIL_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/panels.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr PanelBits kIntegerBits[] = {PanelBits::kEight, PanelBits::kFour};
inline constexpr PanelBits kAllBits[] = {PanelBits::kEight, PanelBits::kFour, PanelBits::kThirtyTwo};

struct PanelShape {
  size_t rows, n, k;
  size_t first = 0;  // the first row of W that is used
};

// W with the rows that are used after `first`, and three more.
class StoredPanels {
 public:
  StoredPanels(PanelBits bits, size_t n, size_t k, std::mt19937_64& random) : n_(n), k_(k), w_(n * k), bytes_(1) {
    std::normal_distribution<float> normal;
    for (float& w : w_) w = normal(random) * std::exp(normal(random));
    bytes_ = AlignedBytes(PanelMatrixBytes(bits, n, k));
    EXPECT_TRUE(PackPanels(bits, w_.data(), n, k, bytes_.data()));
    matrix_ = {.data = bytes_.data(), .bits = bits};
  }
  const PanelMatrix& matrix() const { return matrix_; }
  const std::vector<float>& floats() const { return w_; }
  double Weight(size_t n, size_t k) const { return reference::PanelWeight(matrix_, n, k, k_); }
  size_t n() const { return n_; }

 private:
  struct AlignedBytes {
    explicit AlignedBytes(size_t size) : room(size + 64) {}
    std::byte* data() { return room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64; }
    std::vector<std::byte> room;
  };
  size_t n_, k_;
  std::vector<float> w_;
  AlignedBytes bytes_;
  PanelMatrix matrix_;
};

struct PanelProduct {
  GuardedMatrix x, bias, y;
  std::vector<float> before;

  PanelProduct(const PanelShape& s, Store store, std::mt19937_64& random)
      : x(s.rows, s.k, s.k + 3), bias(1, s.n, s.n), y(s.rows, s.n, s.n + 5), before(s.rows * s.n) {
    std::normal_distribution<float> normal;
    x.Fill(random, normal), bias.Fill(random, normal), y.Fill(random, normal);
    if (store == Store::kAssign) y.Fill(kNan);
    for (size_t r = 0; r < s.rows; ++r) {
      for (size_t j = 0; j < s.n; ++j) before[r * s.n + j] = store == Store::kAdd ? *y.at(r, j) : 0.0f;
    }
  }
  MultiplyPanelsArgs Args(const PanelShape& s, const StoredPanels& w, Store store, bool biased) {
    return {.w = w.matrix(),
            .first = s.first,
            .x_RK = x.data(),
            .ldx = x.ld(),
            .bias_N = biased ? bias.data() : nullptr,
            .y_RN = y.data(),
            .ldy = y.ld(),
            .rows = s.rows,
            .n = s.n,
            .k = s.k,
            .store = store};
  }
};

}  // namespace wisp::kernels

#endif  // WISP_TESTS_UNIT_KERNELS_PANELS_TEST_UTIL_H_
