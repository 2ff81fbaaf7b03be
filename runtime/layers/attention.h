// Multi-head self-attention: one stacked matrix for queries, keys and values, the fused kernel, the output product.
#ifndef WISP_RUNTIME_LAYERS_ATTENTION_H_
#define WISP_RUNTIME_LAYERS_ATTENTION_H_

#include "runtime/layers/context.h"
#include "runtime/layers/dropout.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/linear.h"

namespace wisp {

class Attention {
 public:
  // Of block `index`; `site` is that of its dropout.
  [[gnu::cold]] Attention(const Architecture& architecture, const kernels::OpTable& ops,
                          const std::vector<ParameterSpec>& parameters, uint32_t index, uint64_t site,
                          BufferPlan& plan);

  // Forward in two halves: keys and values of x [rows, D] with the queries of its last `queries` rows, and what is made
  // of them, y [wanted rows, D] before the residual is added. A graph for inference has keys and values in the
  // context's cache; where all positions are attended, those of the rows behind (`after`) must be there before the
  // second half.
  void Project(const RecordContext& context, const float* x, size_t queries) const;
  void Attend(const RecordContext& context, float* y) const;

  // dy, dx [rows, D]; dx is assigned or added to.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

  // Re-Attention, before Forward: the variance of the keys (and values), which corrects the logits, from that of x.
  void KeyVariance(const RecordContext& context, const float* x, const float* var_x) const;
  // After Forward: var_y [wanted rows, D]. Not of the last block, where nobody reads it.
  void Variance(const RecordContext& context, float* var_y) const;

 private:
  // What the kernel reads: rows of so many floats from one position to the next.
  struct Projected {
    float *q, *k, *v;
    size_t ldq, ldkv;
    size_t first_query = 0;  // queries of earlier rows are not there
  };
  // With the keys and values of the rows that pass, k and v of the first of them.
  Projected Of(const RecordContext& context) const;
  // The cache of record b, in which its rows attend what came before; null where they attend each other alone.
  const KeyValueCache* CacheOf(const RecordContext& context, size_t b) const;
  // Puts what is new of keys and values where the table keeps them.
  void KeepNewKeys(const RecordContext& context, const Projected& p) const;
  // Turns queries and keys by their positions; turns the gradients of both back.
  void Rotate(const RecordContext& context, const Projected& p, kernels::Rotation rotation) const;
  void RotateBack(const RecordContext& context, float* dqkv) const;
  // What one call of a kernel attends: record b or, where the table takes several at once, all of them.
  struct Scope {
    size_t b = 0, begin = 0;  // of all: 0
    size_t rows = 0;          // of all: of all together
    bool all = false;
  };
  template <class F>
  void ForScopes(const RecordContext& context, const F& f) const;
  void MixTexts(const RecordContext& context) const;
  // Of one record: heads on as many threads as pays.
  void MixHeads(const RecordContext& context) const;
  // Heads of keys, with the heads of queries that read them.
  struct Heads {
    size_t first, count;
  };
  void Mix(const RecordContext& context, const Scope& scope, const Heads& heads, float* scratch) const;
  void MixBackward(const RecordContext& context, const Scope& scope) const;
  // What the arguments of both passes say alike.
  template <class Args>
  void Describe(const RecordContext& context, const Scope& scope, Args& args) const;
  Heads all_heads() const { return {.first = 0, .count = spec_.num_kv_heads}; }
  // Of so many queries with so many keys, in multiply-adds.
  double CostOf(size_t queries, size_t keys) const;
  float* ScratchOf(const RecordContext& context, size_t range) const;
  const uint8_t* DrawKeep(const RecordContext& context, const Scope& scope, size_t queries, size_t keys) const;
  // The variances of keys (and values) from this row on; null without Re-Attention.
  float* KeyVariances(const RecordContext& context, size_t row) const;
  // Where the mask of a record from this row on begins: a record has at most max_length queries for each of its keys.
  size_t FirstKeep(size_t begin) const { return keep_row() * begin; }
  size_t keep_row() const { return spec_.num_heads * max_length_; }
  bool wants_variance() const { return variance_width_ > keys_width_; }
  float Rate(const RecordContext& context) const { return context.dropout != nullptr ? context.dropout->attention : 0; }

  AttentionSpec spec_;
  size_t block_;
  size_t queries_width_, keys_width_, max_length_;
  kernels::AttentionMask mask_;
  float scale_;
  Linear qkv_, out_;
  Dropout dropout_;
  bool cached_;  // keys and values lie in the cache, queries alone in projected_
  bool kept_;    // and there in the table's own order
  size_t cache_index_ = 0;
  Slot<float> projected_, mixed_, lse_, scratch_;
  Slot<float> new_keys_;  // [rows, keys and values], on their way to the cache
  // Re-Attention. Floats of each position's variances: of keys and values; in the last block of keys alone, for nobody
  // reads those of the values; 0 without.
  size_t variance_width_ = 0;
  Slot<float> key_value_variance_, mixed_variance_;  // [T, variance width], where there is no cache; [T, D]
  Slot<float> dprojected_, dmixed_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_ATTENTION_H_
