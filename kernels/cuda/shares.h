// A product whose inner dimension is long and whose matrix is small, as of the gradient of a weight over all rows of a
// pass: shares of the rows are multiplied side by side, and a second pass adds their products in order.
//
// The number of shares follows from the shape alone, so the sums have the same bits each time and on every device.
#ifndef WISP_KERNELS_CUDA_SHARES_H_
#define WISP_KERNELS_CUDA_SHARES_H_

#include <algorithm>
#include <mutex>

#include "kernels/cuda/for_each.h"
#include "kernels/cuda/results.h"
#include "kernels/cuda/stages/products.h"

namespace wisp::kernels::cuda {

// All shares together have at most this many tiles, which fill a large GPU; a share has at least this many rows.
inline constexpr unsigned kMostShareTiles = 128, kLeastShareRows = 64, kShareTile = 4 * kSideThreads;
static_assert(size_t{kMostShareTiles} * kShareTile * kShareTile <= kScratchFloats);

// `tiles` of 64 by 64 elements make the matrix.
inline unsigned CountShares(unsigned tiles, unsigned rows) {
  return std::max(1u, std::min(kMostShareTiles / tiles, rows / kLeastShareRows));
}

// Share `share` of a product of columns, which goes to a matrix of its own.
__device__ inline Product TakeShare(Product p, unsigned rows_of_share, unsigned share) {
  const unsigned first = share * rows_of_share;
  p.a += first * p.lda;
  p.b += first * p.ldb;
  p.c += size_t{share} * p.m * p.n;
  p.k = first >= p.k ? 0 : p.k - first < rows_of_share ? p.k - first : rows_of_share;
  return p;
}

inline void AddShares(const Product& p, unsigned shares, float* parts) {
  ForEachElement(p.m, p.n, [=] __device__(size_t m, size_t n) {
    float sum = 0;
    for (unsigned share = 0; share < shares; ++share) {
      float& part = parts[(size_t{share} * p.m + m) * p.n + n];
      sum += part;
      part = 0;  // nothing of a gradient stays
    }
    Finish(p, static_cast<unsigned>(m), static_cast<unsigned>(n), sum);
  });
}

// launch(of_shares, rows_of_share) multiplies all shares of this product.
template <class LaunchShares>
void MultiplyInShares(const Product& p, unsigned shares, const LaunchShares& launch) {
  static std::mutex mutex;  // between the two launches no other thread's may come
  const std::lock_guard lock(mutex);
  float* parts = Scratch();
  Product of_shares = p;
  of_shares.c = parts;
  of_shares.ldc = p.n;
  of_shares.scale = 1.0f;
  of_shares.store = Store::kAssign;
  // Whole slices, so that vectors stay aligned.
  launch(of_shares, (p.k + shares * kDepth - 1) / (shares * kDepth) * kDepth);
  AddShares(p, shares, parts);
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_SHARES_H_
