// Adds the bench's cases of products, attention, tables and the optimizer.
#include "tools/lab/bench/bench_ops_cases.h"

#include <algorithm>
#include <cmath>

namespace wisp::tools {

using kernels::Activation;
using kernels::OpTable;
using kernels::Store;

OpCases::OpCases(const BenchArguments& a)
    : t_(a.length), f_(a.inner_width), m_(a.items), tile_(std::min<size_t>(a.items, kHeadTile)) {
  AddProducts("qkv", t_, 3 * kWidth, kWidth);
  AddProducts("feed-forward in", t_, f_, kWidth);
  AddProducts("feed-forward out", t_, kWidth, f_);
  AddProducts("logits, a tile of items", t_, tile_, kWidth);
  AddAttention();
  AddLayerNorm();
  AddActivation(Activation::kGelu, "gelu", kGelu);
  AddActivation(Activation::kRelu, "relu", kRelu);
  AddSoftmax();
  AddEmbedding();
  AddAdam();
  AddTopK();
  AddQuantise();
  AddRmsNorm();
  AddActivation(Activation::kGeluTanh, "gelu_tanh", kGeluTanh);
  AddActivation(Activation::kSilu, "silu", kLogistic);
  AddActivation(Activation::kSigmoid, "sigmoid", kLogistic);
  AddGated(Activation::kSilu, "silu", kLogistic);
  AddGated(Activation::kGeluTanh, "gelu_tanh", kGeluTanh);
  AddRotary(kernels::RotaryPairs::kHalves, "halves");
  AddRotary(kernels::RotaryPairs::kInterleaved, "interleaved");
  AddGroupedAttention();
}

void OpCases::AddProducts(const std::string& what, size_t rows, size_t n, size_t k) {
  const auto x = Input(rows * k), w = Input(n * k, 0.1f), dy = Input(rows * n), bias = Input(n), y = Output(rows * n),
             dx = Output(rows * k), dw = Output(n * k);
  const OpTable *best = &kernels::BestOps(), *reference = &kernels::ReferenceOps();
  const auto packed = Output(best->packed_size(n, k)), packed_for_reference = Output(reference->packed_size(n, k));
  for (const OpTable* ops : {best, reference}) {
    ops->pack_weights(
        {.w_NK = w.data(), .ldw = k, .packed = (ops == best ? packed : packed_for_reference).data(), .n = n, .k = k});
  }
  const double operations = 2.0 * static_cast<double>(rows * n * k),
               bytes = 4.0 * static_cast<double>(rows * k + n * k + rows * n);
  const std::string shape = Shape({rows, n, k}) + " " + what;
  cases_.push_back({"linear_forward",
                    shape,
                    operations,
                    bytes,
                    [=](const OpTable& ops) {
                      ops.linear_forward({.x_RK = x.data(),
                                          .ldx = k,
                                          .packed = (&ops == reference ? packed_for_reference : packed).data(),
                                          .bias_N = bias.data(),
                                          .y_RN = y.data(),
                                          .ldy = n,
                                          .rows = rows,
                                          .n = n,
                                          .k = k,
                                          .store = Store::kAssign});
                    },
                    {y},
                    1e-5});
  cases_.push_back({"linear_backward_input",
                    shape,
                    operations,
                    bytes,
                    [=](const OpTable& ops) {
                      ops.linear_backward_input({.dy_RN = dy.data(),
                                                 .lddy = n,
                                                 .w_NK = w.data(),
                                                 .ldw = k,
                                                 .dx_RK = dx.data(),
                                                 .lddx = k,
                                                 .rows = rows,
                                                 .n = n,
                                                 .k = k,
                                                 .store = Store::kAssign});
                    },
                    {dx},
                    1e-5});
  cases_.push_back({"linear_backward_weight",
                    shape,
                    operations,
                    bytes,
                    [=](const OpTable& ops) {
                      ops.linear_backward_weight({.dy_RN = dy.data(),
                                                  .lddy = n,
                                                  .x_RK = x.data(),
                                                  .ldx = k,
                                                  .dw_NK = dw.data(),
                                                  .lddw = k,
                                                  .rows = rows,
                                                  .n = n,
                                                  .k = k,
                                                  .scale = 1.0f,
                                                  .store = Store::kAssign});
                    },
                    {dw},
                    1e-5});
}

// Causal attention with one head. Query, key and value lie side by side.
// The scratch is large enough for either table and for both passes.
std::span<float> OpCases::AttentionScratch(size_t width) {
  constexpr auto kPass = kernels::AttentionPass::kBackward;
  return Output(std::max(kernels::BestOps().attention_scratch_size(kPass, t_, width),
                         kernels::ReferenceOps().attention_scratch_size(kPass, t_, width)));
}

void OpCases::AddAttention() {
  const size_t t = t_, d = kWidth, ld = 3 * d;
  const auto qkv = Input(t * ld), out = Output(t * d), lse = Output(t), dout = Input(t * d), dqkv = Output(t * ld);
  const auto scratch = AttentionScratch(d);
  const auto forward = [=](const OpTable& ops) {
    ops.attention_forward({.q = qkv.data(),
                           .k = qkv.data() + d,
                           .v = qkv.data() + 2 * d,
                           .ldq = ld,
                           .ldkv = ld,
                           .out = out.data(),
                           .ldout = d,
                           .lse_HQ = lse.data(),
                           .keep_HQT = nullptr,
                           .keep_scale = 1,
                           .scratch = scratch.data(),
                           .num_queries = t,
                           .num_keys = t,
                           .heads = 1,
                           .head_width = d,
                           .first_key = 0,
                           .scale = 0.125f,
                           .mask = kernels::AttentionMask::kCausal});
  };
  forward(kernels::ReferenceOps());  // writes what the backward pass reads
  const double pairs = static_cast<double>(t) * static_cast<double>(t + 1) / 2, elements = static_cast<double>(t * d);
  cases_.push_back(
      {"attention_forward", Shape({t, d}), pairs * (4.0 * d + kExp), 4 * 4 * elements, forward, {out, lse}, 2e-5});
  cases_.push_back({"attention_backward",
                    Shape({t, d}),
                    pairs * (10.0 * d + kExp),
                    4 * 8 * elements,
                    [=](const OpTable& ops) {
                      ops.attention_backward({.q = qkv.data(),
                                              .k = qkv.data() + d,
                                              .v = qkv.data() + 2 * d,
                                              .ldq = ld,
                                              .ldkv = ld,
                                              .out = out.data(),
                                              .dout = dout.data(),
                                              .ldout = d,
                                              .lse_HQ = lse.data(),
                                              .keep_HQT = nullptr,
                                              .keep_scale = 1,
                                              .dq = dqkv.data(),
                                              .dk = dqkv.data() + d,
                                              .dv = dqkv.data() + 2 * d,
                                              .scratch = scratch.data(),
                                              .num_queries = t,
                                              .num_keys = t,
                                              .heads = 1,
                                              .head_width = d,
                                              .first_key = 0,
                                              .scale = 0.125f,
                                              .mask = kernels::AttentionMask::kCausal});
                    },
                    {dqkv},
                    2e-5});
}

// Causal attention with four query heads of a quarter of the width, over one head of keys and values.
void OpCases::AddGroupedAttention() {
  const size_t t = t_, heads = 4, width = kWidth / heads, d = kWidth, ld = d + 2 * width;
  const auto qkv = Input(t * ld), out = Output(t * d), lse = Output(heads * t), dout = Input(t * d),
             dqkv = Output(t * ld);
  const auto scratch = AttentionScratch(width);
  const auto forward = [=](const OpTable& ops) {
    ops.attention_forward({.q = qkv.data(),
                           .k = qkv.data() + d,
                           .v = qkv.data() + d + width,
                           .ldq = ld,
                           .ldkv = ld,
                           .out = out.data(),
                           .ldout = d,
                           .lse_HQ = lse.data(),
                           .keep_HQT = nullptr,
                           .keep_scale = 1,
                           .scratch = scratch.data(),
                           .num_queries = t,
                           .num_keys = t,
                           .heads = heads,
                           .head_width = width,
                           .first_key = 0,
                           .scale = 0.25f,
                           .mask = kernels::AttentionMask::kCausal,
                           .kv_heads = 1});
  };
  forward(kernels::ReferenceOps());  // writes what the backward pass reads
  const double pairs = static_cast<double>(heads * t) * static_cast<double>(t + 1) / 2,
               elements = static_cast<double>(t * (d + width));
  const std::string shape = Shape({t, d}) + ", 4 heads over 1";
  cases_.push_back({"attention_forward",
                    shape,
                    pairs * (4.0 * static_cast<double>(width) + kExp),
                    4 * 2 * elements,
                    forward,
                    {out, lse},
                    2e-5});
  cases_.push_back({"attention_backward",
                    shape,
                    pairs * (10.0 * static_cast<double>(width) + kExp),
                    4 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.attention_backward({.q = qkv.data(),
                                              .k = qkv.data() + d,
                                              .v = qkv.data() + d + width,
                                              .ldq = ld,
                                              .ldkv = ld,
                                              .out = out.data(),
                                              .dout = dout.data(),
                                              .ldout = d,
                                              .lse_HQ = lse.data(),
                                              .keep_HQT = nullptr,
                                              .keep_scale = 1,
                                              .dq = dqkv.data(),
                                              .dk = dqkv.data() + d,
                                              .dv = dqkv.data() + d + width,
                                              .scratch = scratch.data(),
                                              .num_queries = t,
                                              .num_keys = t,
                                              .heads = heads,
                                              .head_width = width,
                                              .first_key = 0,
                                              .scale = 0.25f,
                                              .mask = kernels::AttentionMask::kCausal,
                                              .kv_heads = 1});
                    },
                    {dqkv},
                    2e-5});
}

void OpCases::AddEmbedding() {
  const size_t t = t_, d = kWidth;
  const auto table = Input(m_ * d), positions = Input(t * d), y = Output(t * d), dx = Input(t * d, 1e-3f),
             gradient = Output(m_ * d);
  ids_.resize(t);
  for (size_t i = 0; i < t; ++i) ids_[i] = static_cast<int32_t>(i * 7919 % m_);
  const int32_t* ids = ids_.data();
  const double elements = static_cast<double>(t * d);
  cases_.push_back({"embed_forward",
                    Shape({t, d}) + " of " + std::to_string(m_),
                    2 * elements,
                    3 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.embed_forward({.table_MD = table.data(),
                                         .positions_TD = positions.data(),
                                         .ids_T = ids,
                                         .y_TD = y.data(),
                                         .rows = t,
                                         .d = d,
                                         .scale = 8});
                    },
                    {y},
                    1e-6});
  cases_.push_back({"scatter_add",
                    Shape({t, d}) + " of " + std::to_string(m_),
                    2 * elements,
                    3 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.scatter_add({.dx_TD = dx.data(),
                                       .lddx = d,
                                       .ids_T = ids,
                                       .table_MD = gradient.data(),
                                       .ldtable = d,
                                       .rows = t,
                                       .d = d,
                                       .scale = 8});
                    },
                    {gradient},
                    1e-6});
}

void OpCases::AddAdam() {
  const size_t n = m_ * kWidth;
  const auto w = Input(n), m = Input(n, 0.01f), v = Output(n), g = Input(n, 0.1f);
  const double elements = static_cast<double>(n);
  cases_.push_back({"adam",
                    Shape({m_, kWidth}),
                    kAdam * elements,
                    7 * 4 * elements,
                    [=](const OpTable& ops) {
                      ops.adam({.w = w.data(),
                                .m = m.data(),
                                .v = v.data(),
                                .g = g.data(),
                                .n = n,
                                .rate = 1e-3f,
                                .beta1 = 0.9f,
                                .beta2 = 0.999f,
                                .epsilon = 1e-8f,
                                .decay = 0.01f,
                                .correction1 = 10,
                                .correction2 = 1000});
                    },
                    {w, m, v},
                    1e-6});
}

// This op is no entry of the table, but the last part of every recommendation. The reference sorts all scores.
void OpCases::AddTopK() {
  const auto scores = Input(m_);
  best_.resize(std::min<size_t>(10, m_));
  const double items = static_cast<double>(m_);
  OpCase c{"top_k",
           std::to_string(best_.size()) + " of " + std::to_string(m_),
           items,
           4 * items,
           [this, scores](const OpTable&) {
             TopK top(best_);
             top.OfferAll(0, scores, [](size_t) { return false; });
             top.Finish();
           },
           {},
           0};
  c.check = [this, scores]() -> Status {
    std::vector<int32_t> order(scores.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int32_t x, int32_t y) {
      return scores[static_cast<size_t>(x)] > scores[static_cast<size_t>(y)];
    });
    for (size_t i = 0; i < best_.size(); ++i) {
      if (best_[i].item != order[i])
        return WrongOp("top_k", "item " + std::to_string(best_[i].item) + " stands where a sort has " +
                                    std::to_string(order[i]));
    }
    return OkStatus();
  };
  cases_.push_back(std::move(c));
}

// Converts floats to int8 with a scale for each row, in the layout of products. The result is read through a product
// with unit rows, whose own quantisation is exact.
void OpCases::AddQuantise() {
  const OpTable* int8 = kernels::Int8Ops();
  if (int8 == nullptr) return;
  const size_t n = m_, k = kWidth;
  const auto w = Input(n * k), packed = Output(int8->packed_size(n, k));
  const double elements = static_cast<double>(n * k);
  OpCase c{"f32_to_int8",
           Shape({n, k}) + " packed",
           2 * elements,
           5 * elements,
           [=](const OpTable&) {
             int8->pack_weights({.w_NK = w.data(), .ldw = k, .packed = packed.data(), .n = n, .k = k});
           },
           {},
           0};
  c.check = [=]() -> Status {
    std::vector<float> unit(k * k, 0.0f), seen(k * n);
    for (size_t i = 0; i < k; ++i) unit[i * k + i] = 1;
    int8->linear_forward({.x_RK = unit.data(),
                          .ldx = k,
                          .packed = packed.data(),
                          .bias_N = nullptr,
                          .y_RN = seen.data(),
                          .ldy = n,
                          .rows = k,
                          .n = n,
                          .k = k,
                          .store = Store::kAssign});
    for (size_t j = 0; j < n; ++j) {
      float largest = 0;
      for (size_t i = 0; i < k; ++i) largest = std::max(largest, std::abs(w[j * k + i]));
      for (size_t i = 0; i < k; ++i) {
        const float off = std::abs(seen[i * n + j] - w[j * k + i]);
        if (off <= largest * (0.5f / 127 + 1e-6f)) continue;
        return WrongOp("f32_to_int8",
                       "row " + std::to_string(j) + " is off by " + std::to_string(off / largest) + " of its largest");
      }
    }
    return OkStatus();
  };
  cases_.push_back(std::move(c));
}

}  // namespace wisp::tools
