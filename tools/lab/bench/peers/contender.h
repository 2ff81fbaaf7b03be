// The interface between gemm_peers.cc and the units of the measured libraries: one product, and the ways to compute it.
//
// No library is named here. Each peer has a unit of its own, which is compiled only if the library is installed; the
// program works with any of them missing.
#ifndef WISP_TOOLS_LAB_BENCH_PEERS_CONTENDER_H_
#define WISP_TOOLS_LAB_BENCH_PEERS_CONTENDER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace wisp::bench {

enum class Orientation { kForward, kBackwardInput, kBackwardWeight };

// Row-major, without gaps: x [rows, k], w [n, k], dy [rows, n]. All are readable for 64 bytes past their end.
//   kForward         out [rows, n] = x w^T
//   kBackwardInput   out [rows, k] = dy w
//   kBackwardWeight  out [n, k]    = dy^T x
// The buffers outlive every contender.
struct Product {
  Orientation orientation;
  size_t rows, n, k;
  const float* x;
  const float* w;
  const float* dy;
  float* out;

  size_t out_rows() const { return orientation == Orientation::kBackwardWeight ? n : rows; }
  size_t out_cols() const { return orientation == Orientation::kForward ? n : k; }
  size_t inner() const {
    return orientation == Orientation::kForward ? k : orientation == Orientation::kBackwardInput ? n : rows;
  }
};

// `run` assigns out, on the calling thread. If `run` reads w in its original layout, `pack` is empty. Otherwise `pack`
// lays w out ahead of time; it was called once when the contender was made, and its time does not count.
struct Contender {
  std::string name;
  std::string implementation;  // the library's own name of its implementation; may be empty
  std::function<void()> run;
  std::function<void()> pack;
};

using Contenders = std::vector<Contender>;

// Each function adds its ways to compute the product, if it has such an operation.
void AddWisp(const Product& product, Contenders& contenders);
void AddOpenBlas(const Product& product, Contenders& contenders);
void AddOneDnn(const Product& product, Contenders& contenders);
void AddEigen(const Product& product, Contenders& contenders);
void AddXnnpack(const Product& product, Contenders& contenders);

// Describes the library in words: its name, its version, and its choice for this processor. Also limits it to one
// thread.
std::string DescribeOpenBlas();
std::string DescribeOneDnn();
std::string DescribeEigen();
std::string DescribeXnnpack();

}  // namespace wisp::bench

#endif  // WISP_TOOLS_LAB_BENCH_PEERS_CONTENDER_H_
