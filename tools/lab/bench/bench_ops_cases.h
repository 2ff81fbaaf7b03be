// The cases of `wisp-lab bench --what ops`: every op of the kernels at the recommender's shapes, with the operations
// and bytes that it needs. bench_ops.cc checks and times them.
//
//   OpCases cases(arguments);
//   for (const OpCase& c : cases.all()) c.run(kernels::BestOps());
#ifndef WISP_TOOLS_LAB_BENCH_BENCH_OPS_CASES_H_
#define WISP_TOOLS_LAB_BENCH_BENCH_OPS_CASES_H_

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/core/served_list.h"
#include "runtime/layers/weights.h"
#include "tools/lab/bench/bench_parts.h"

namespace wisp::tools {

// One op at one shape. `run` leaves its results in `out` and may be called again and again.
struct OpCase {
  std::string op, shape;
  double operations, bytes;
  std::function<void(const kernels::OpTable&)> run;
  std::vector<std::span<float>> out;
  // The largest error of an element of `out`, relative to the largest element of that buffer in the reference.
  double tolerance;
  std::function<Status()> check = {};  // if set, replaces the comparison with the reference
};

Status WrongOp(const std::string& op, const std::string& how);

class OpCases {
 public:
  explicit OpCases(const BenchArguments& arguments);
  OpCases(const OpCases&) = delete;  // the cases point into it
  OpCases& operator=(const OpCases&) = delete;
  const std::vector<OpCase>& all() const { return cases_; }

 private:
  class Random {
   public:
    float Next() {  // -1 to 1
      state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
      return static_cast<float>(static_cast<int64_t>(state_) >> 40) * 0x1p-23f;
    }
    std::vector<float> Numbers(size_t n, float scale = 1) {
      std::vector<float> x(n);
      for (float& v : x) v = scale * Next();
      return x;
    }

   private:
    uint64_t state_ = 1;
  };

  static constexpr size_t kWidth = 64;
  // Operations of an element other than products, counted beside its loads. An exponential counts as 8 multiply-adds.
  static constexpr double kExp = 16, kGelu = kExp + 18, kLogistic = kExp + 10, kGeluTanh = kLogistic + 6, kRelu = 1,
                          kNorm = 8, kNormBackward = 14, kRmsNorm = 4, kRmsNormBackward = 10, kRotation = 3, kAdam = 15;

  static std::string Shape(std::initializer_list<size_t> sizes) {
    std::string text;
    for (const size_t s : sizes) text += (text.empty() ? "" : " x ") + std::to_string(s);
    return text;
  }

  // Buffers that cases share or own. They live as long as this object.
  std::span<float> Keep(std::vector<float> x) {
    kept_.push_back(std::move(x));
    return kept_.back();
  }
  std::span<float> Input(size_t n, float scale = 1) { return Keep(random_.Numbers(n, scale)); }
  std::span<float> AttentionScratch(size_t width);
  std::span<float> Output(size_t n) { return Keep(std::vector<float>(n)); }

  // Defined in bench_ops_cases.cc.
  void AddProducts(const std::string& what, size_t rows, size_t n, size_t k);
  void AddAttention();
  void AddGroupedAttention();
  void AddEmbedding();
  void AddAdam();
  void AddTopK();
  void AddQuantise();
  // Defined in bench_ops_rows.cc.
  void AddLayerNorm();
  void AddActivation(kernels::Activation kind, const std::string& name, double operations_each);
  void AddRmsNorm();
  void AddGated(kernels::Activation kind, const std::string& name, double operations_each);
  void AddRotary(kernels::RotaryPairs pairs, const std::string& name);
  void AddSoftmax();

  const size_t t_, f_, m_, tile_;
  Random random_;
  std::vector<std::vector<float>> kept_;
  std::vector<int32_t> targets_, ids_;
  std::vector<Recommendation> best_;
  std::vector<OpCase> cases_;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_BENCH_BENCH_OPS_CASES_H_
