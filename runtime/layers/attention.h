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
  // The attention of block `index`. `site` is the site of its dropout.
  [[gnu::cold]] Attention(const Architecture& architecture, const kernels::OpTable& ops,
                          const std::vector<ParameterSpec>& parameters, uint32_t index, uint64_t site,
                          BufferPlan& plan);

  // Forward in two halves. Project computes keys and values of x [rows, D], and queries of its last `queries` rows.
  // Attend computes y [wanted rows, D], before the residual is added. A graph for inference keeps keys and values in
  // the context's cache. With full attention, the keys and values of later rows (`after`) must be in the cache before
  // Attend.
  void Project(const RecordContext& context, const float* x, size_t queries) const;
  void Attend(const RecordContext& context, float* y) const;

  // dy, dx [rows, D]; dx is assigned or added to, as `store` says.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

  // Re-Attention: computes the variance of keys (and values) from that of x. It corrects the logits. Call it before
  // Forward.
  void KeyVariance(const RecordContext& context, const float* x, const float* var_x) const;
  // Computes var_y [wanted rows, D] after Forward. Not for the last block, whose variance nobody reads.
  void Variance(const RecordContext& context, float* var_y) const;

 private:
  // The kernel's inputs. ldq and ldkv are the floats from one position to the next.
  struct Projected {
    float *q, *k, *v;
    size_t ldq, ldkv;
    size_t first_query = 0;  // there are no queries of rows before this one
  };
  // The inputs of this pass. k and v point to the first row that passes.
  Projected Of(const RecordContext& context) const;
  // The cache in which record b finds its past. Null where its rows attend only to each other.
  const KeyValueCache* GetCache(const RecordContext& context, size_t b) const;
  // Copies new keys and values into the cache where the op table keeps them in its own order.
  void KeepNewKeys(const RecordContext& context, const Projected& p) const;
  // Rotates queries and keys by their positions; or rotates both gradients back.
  void Rotate(const RecordContext& context, const Projected& p, kernels::Rotation rotation) const;
  void RotateBack(const RecordContext& context, float* dqkv) const;
  // The rows that one kernel call works on: those of record b or, if the op table takes several records, of all.
  struct Scope {
    size_t b = 0, begin = 0;  // 0 if the call takes all records
    size_t rows = 0;          // rows of the record, or of all records together
    bool all = false;
  };
  template <class F>
  void ForScopes(const RecordContext& context, const F& f) const;
  void MixTexts(const RecordContext& context) const;
  // Attends for one record: its heads are shared among as many threads as pays.
  void MixHeads(const RecordContext& context) const;
  // A range of key heads, with the query heads that read them.
  struct Heads {
    size_t first, count;
  };
  void Mix(const RecordContext& context, const Scope& scope, const Heads& heads, float* scratch) const;
  void MixBackward(const RecordContext& context, const Scope& scope) const;
  // Fills in the arguments that the forward and backward kernels share.
  template <class Args>
  void Describe(const RecordContext& context, const Scope& scope, Args& args) const;
  Heads all_heads() const { return {.first = 0, .count = spec_.num_kv_heads}; }
  // The cost of attending with `queries` queries and `keys` keys, in multiply-adds.
  double ComputeCost(size_t queries, size_t keys) const;
  float* CountScratch(const RecordContext& context, size_t range) const;
  const uint8_t* DrawKeep(const RecordContext& context, const Scope& scope, size_t queries, size_t keys) const;
  // The variances of keys (and values) from `row` on; null without Re-Attention.
  float* KeyVariances(const RecordContext& context, size_t row) const;
  // The offset of the mask of a record whose first row is `begin`: a record has at most max_length queries for each
  // key.
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
  bool cached_;  // keys and values lie in the cache; projected_ holds only queries
  bool kept_;    // the cache is in the op table's own order
  size_t cache_index_ = 0;
  Slot<float> projected_, mixed_, lse_, scratch_;
  Slot<float> new_keys_;  // [rows, keys and values], before they are copied into the cache
  // Re-Attention: floats of variance for each position, of keys and values. The last block has only those of keys,
  // because nobody reads those of its values. 0 without Re-Attention.
  size_t variance_width_ = 0;
  Slot<float> key_value_variance_, mixed_variance_;  // [T, variance width], unused with a cache; [T, D]
  Slot<float> dprojected_, dmixed_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_ATTENTION_H_
