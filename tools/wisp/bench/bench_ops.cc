// Each op of the kernels at the recommender's shapes, on one thread: held to the reference first, then timed, beside
// the roof that it stands under.
//
// An op's time cannot be less than its arithmetic takes at the measured peak of multiply-adds, nor less than its bytes
// take at the measured bandwidth of memory; the larger of the two is its roof. Bytes are what is read and written once,
// counted as if it lay in memory. In this loop, as in a step, most of it lies in caches: such an op passes 100 % of the
// bandwidth of memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/inference/top_k.h"
#include "runtime/layers/weights.h"
#include "tools/wisp/bench/bench_parts.h"
#include "tools/wisp/bench/fma_peak.h"
#include "tools/wisp/bench/memory_bandwidth.h"

namespace wisp::tools {
namespace {

using kernels::OpTable;
using kernels::Store;

constexpr double kSampleSeconds = 2e-4;
constexpr size_t kWidth = 64;
// Operations of an element that are counted beside its loads, for what is no product: an exponential as 8
// multiply-adds.
constexpr double kExp = 16, kGelu = kExp + 18, kNorm = 8, kNormBackward = 14, kAdam = 15;

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

// One op at one shape. `run` leaves its results in `out` and may be called again and again.
struct OpCase {
  std::string op, shape;
  double operations, bytes;
  std::function<void(const OpTable&)> run;
  std::vector<std::span<float>> out;
  // Of an element of `out`, relative to the largest one of that buffer by the reference.
  double tolerance;
  std::function<Status()> check = {};  // instead of the comparison with the reference
};

std::string Shape(std::initializer_list<size_t> sizes) {
  std::string text;
  for (const size_t s : sizes) text += (text.empty() ? "" : " x ") + std::to_string(s);
  return text;
}

class OpsBench {
 public:
  explicit OpsBench(const BenchArguments& a)
      : a_(a), t_(a.length), f_(a.inner_width), m_(a.items), tile_(std::min<size_t>(a.items, kHeadTile)) {}

  Status Run(std::vector<Json>& lines) {
    AddProducts("qkv", t_, 3 * kWidth, kWidth);
    AddProducts("feed-forward in", t_, f_, kWidth);
    AddProducts("feed-forward out", t_, kWidth, f_);
    AddProducts("logits, a tile of items", t_, tile_, kWidth);
    AddAttention();
    AddLayerNorm();
    AddActivations();
    AddSoftmax();
    AddEmbedding();
    AddAdam();
    AddTopK();
    AddQuantise();
    for (const OpCase& c : cases_) WISP_RETURN_IF_ERROR(Check(c));
    const MemoryBandwidth memory = MeasureMemoryBandwidth();
    double peak = 0;
    std::vector<Json> figures;
    for (const OpCase& c : cases_) figures.push_back(Measure(c, memory.gb_per_s, peak));
    lines.push_back({{"ops", kernels::BestOps().name},
                     {"threads", 1},
                     {"fma_peak_gflops", peak},
                     {"memory_gb_per_s", memory.gb_per_s},
                     {"memory_measured_over_bytes", memory.bytes},
                     {"last_cache_bytes", memory.last_cache_bytes}});
    lines.insert(lines.end(), figures.begin(), figures.end());
    return OkStatus();
  }

 private:
  // Room that cases share or own; lives as long as the bench.
  std::span<float> Keep(std::vector<float> x) {
    kept_.push_back(std::move(x));
    return kept_.back();
  }
  std::span<float> Input(size_t n, float scale = 1) { return Keep(random_.Numbers(n, scale)); }
  std::span<float> Output(size_t n) { return Keep(std::vector<float>(n)); }

  void AddProducts(const std::string& what, size_t rows, size_t n, size_t k) {
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

  // Causal, one head, query, key and value side by side.
  void AddAttention() {
    const size_t t = t_, d = kWidth, ld = 3 * d;
    const auto qkv = Input(t * ld), out = Output(t * d), lse = Output(t), dout = Input(t * d), dqkv = Output(t * ld);
    const OpTable *best = &kernels::BestOps(), *reference = &kernels::ReferenceOps();
    const auto scratch =
        Output(std::max(best->attention_scratch_size(t, t, d), reference->attention_scratch_size(t, t, d)));
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
    forward(*reference);  // what backward reads
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

  void AddLayerNorm() {
    const size_t t = t_, d = kWidth;
    const auto x = Input(t * d), gain = Input(d), bias = Input(d), y = Output(t * d), mean = Output(t),
               rstd = Output(t), dy = Input(t * d), dx = Output(t * d), dgain = Output(d), dbias = Output(d);
    const auto forward = [=](const OpTable& ops) {
      ops.layer_norm_forward({.x_RD = x.data(),
                              .gain_D = gain.data(),
                              .bias_D = bias.data(),
                              .y_RD = y.data(),
                              .mean_R = mean.data(),
                              .rstd_R = rstd.data(),
                              .rows = t,
                              .d = d,
                              .epsilon = 1e-5f});
    };
    forward(kernels::ReferenceOps());
    const double elements = static_cast<double>(t * d);
    cases_.push_back(
        {"layer_norm_forward", Shape({t, d}), kNorm * elements, 2 * 4 * elements, forward, {y, mean, rstd}, 1e-5});
    cases_.push_back({"layer_norm_backward",
                      Shape({t, d}),
                      kNormBackward * elements,
                      3 * 4 * elements,
                      [=](const OpTable& ops) {
                        ops.layer_norm_backward({.dy_RD = dy.data(),
                                                 .x_RD = x.data(),
                                                 .gain_D = gain.data(),
                                                 .mean_R = mean.data(),
                                                 .rstd_R = rstd.data(),
                                                 .dx_RD = dx.data(),
                                                 .dgain_D = dgain.data(),
                                                 .dbias_D = dbias.data(),
                                                 .rows = t,
                                                 .d = d,
                                                 .store = Store::kAssign});
                      },
                      {dx, dgain, dbias},
                      1e-5});
  }

  void AddActivations() {
    const size_t n = t_ * f_;
    const auto x = Input(n, 4), dy = Input(n), y = Output(n), dx = Output(n);
    for (const auto kind : {kernels::Activation::kGelu, kernels::Activation::kRelu}) {
      const bool gelu = kind == kernels::Activation::kGelu;
      const std::string name = gelu ? "gelu" : "relu";
      const double elements = static_cast<double>(n), operations = (gelu ? kGelu : 1) * elements;
      cases_.push_back(
          {name + "_forward",
           Shape({t_, f_}),
           operations,
           2 * 4 * elements,
           [=](const OpTable& ops) { ops.activation_forward({.x = x.data(), .y = y.data(), .n = n, .kind = kind}); },
           {y},
           2e-6});
      cases_.push_back({name + "_backward",
                        Shape({t_, f_}),
                        operations,
                        3 * 4 * elements,
                        [=](const OpTable& ops) {
                          ops.activation_backward(
                              {.dy = dy.data(), .x = x.data(), .dx = dx.data(), .n = n, .kind = kind});
                        },
                        {dx},
                        4e-6});
    }
  }

  // One tile of the catalogue, as the head walks over it.
  void AddSoftmax() {
    const size_t rows = t_, n = tile_;
    const auto z = Input(rows * n, 5), max = Output(rows), sum = Output(rows), target_logit = Output(rows),
               lse = Output(rows), weight = Input(rows), gradient = Output(rows * n), exps = Output(rows * n),
               zeros = Output(rows), kept = Input(rows * n);
    for (float& x : kept) x = std::abs(x);
    targets_.resize(rows);
    for (size_t r = 0; r < rows; ++r) targets_[r] = static_cast<int32_t>(r * 7 % n);
    std::fill(lse.begin(), lse.end(), 8.0f);
    const int32_t* targets = targets_.data();
    const double elements = static_cast<double>(rows * n);
    cases_.push_back({"softmax_stats",
                      Shape({rows, n}) + " exponentials kept",
                      (kExp + 3) * elements,
                      2 * 4 * elements,
                      [=](const OpTable& ops) {
                        std::fill(max.begin(), max.end(), -std::numeric_limits<float>::infinity());
                        std::fill(sum.begin(), sum.end(), 0.0f);
                        ops.softmax_stats({.z_RN = z.data(),
                                           .ldz = n,
                                           .target_R = targets,
                                           .max_R = max.data(),
                                           .sum_R = sum.data(),
                                           .target_logit_R = target_logit.data(),
                                           .rows = rows,
                                           .n = n,
                                           .first = 0,
                                           .exp_RN = exps.data()});
                      },
                      {max, sum, target_logit, exps},
                      1e-5});
    // In place: what it works on is copied first, which is part of the time.
    cases_.push_back({"cross_entropy_gradient",
                      Shape({rows, n}),
                      (kExp + 3) * elements,
                      4 * 4 * elements,
                      [=](const OpTable& ops) {
                        std::memcpy(gradient.data(), z.data(), rows * n * sizeof(float));
                        ops.cross_entropy_gradient({.z_RN = gradient.data(),
                                                    .ldz = n,
                                                    .target_R = targets,
                                                    .lse_R = lse.data(),
                                                    .weight_R = weight.data(),
                                                    .rows = rows,
                                                    .n = n,
                                                    .first = 0});
                      },
                      {gradient},
                      4e-6});
    cases_.push_back({"cross_entropy_gradient",
                      Shape({rows, n}) + " of exponentials",
                      elements,
                      4 * 4 * elements,
                      [=](const OpTable& ops) {
                        std::memcpy(gradient.data(), kept.data(), rows * n * sizeof(float));
                        ops.cross_entropy_gradient({.z_RN = gradient.data(),
                                                    .ldz = n,
                                                    .target_R = targets,
                                                    .lse_R = lse.data(),
                                                    .weight_R = weight.data(),
                                                    .rows = rows,
                                                    .n = n,
                                                    .first = 0,
                                                    .max_R = zeros.data()});
                      },
                      {gradient},
                      4e-6});
  }

  void AddEmbedding() {
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

  void AddAdam() {
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

  // No entry of the table, but every recommendation's last part. The reference: a sort of all.
  void AddTopK() {
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
          return Wrong("top_k", "item " + std::to_string(best_[i].item) + " stands where a sort has " +
                                    std::to_string(order[i]));
      }
      return OkStatus();
    };
    cases_.push_back(std::move(c));
  }

  // Floats to int8, a scale for each row, in the layout of products. Seen through a product with unit rows, whose own
  // quantisation is exact.
  void AddQuantise() {
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
          return Wrong("f32_to_int8",
                       "row " + std::to_string(j) + " is off by " + std::to_string(off / largest) + " of its largest");
        }
      }
      return OkStatus();
    };
    cases_.push_back(std::move(c));
  }

  static Status Wrong(const std::string& op, const std::string& how) {
    return InvalidData("op ", op, " of ", kernels::BestOps().name, " is wrong, nothing was timed: ", how);
  }

  // Runs the reference, then the best table from the same start, and compares.
  Status Check(const OpCase& c) const {
    if (c.check) {
      c.run(kernels::BestOps());
      return c.check();
    }
    std::vector<std::vector<float>> start, expected;
    for (const auto& out : c.out) start.emplace_back(out.begin(), out.end());
    c.run(kernels::ReferenceOps());
    for (size_t i = 0; i < c.out.size(); ++i) {
      expected.emplace_back(c.out[i].begin(), c.out[i].end());
      std::copy(start[i].begin(), start[i].end(), c.out[i].begin());
    }
    c.run(kernels::BestOps());
    for (size_t i = 0; i < c.out.size(); ++i) {
      double largest = 0, off = 0;
      for (size_t j = 0; j < expected[i].size(); ++j) {
        largest = std::max(largest, std::abs(static_cast<double>(expected[i][j])));
        const double here = std::abs(static_cast<double>(c.out[i][j]) - expected[i][j]);
        off = here <= off ? off : here;  // a NaN stays
      }
      if (!(off <= c.tolerance * largest)) {
        return Wrong(c.op, "at " + c.shape + " it is off by " + Json(off / largest).dump() +
                               " of the largest, allowed are " + Json(c.tolerance).dump());
      }
    }
    return OkStatus();
  }

  Json Measure(const OpCase& c, double memory_gb_per_s, double& best_peak) const {
    const OpTable& ops = kernels::BestOps();
    double once = 1;
    for (int i = 0; i < 3; ++i) once = std::min(once, Seconds([&] { c.run(ops); }));
    const auto calls = static_cast<size_t>(std::clamp(kSampleSeconds / std::max(once, 1e-9), 1.0, 1e5));
    std::vector<double> us, percents;
    std::string roof;
    for (uint32_t i = 0; i < a_.repeats; ++i) {
      double peak = 0;
      for (int probe = 0; probe < 10; ++probe) peak = std::max(peak, FmaProbe());
      best_peak = std::max(best_peak, peak);
      const double seconds = Seconds([&] {
                               for (size_t call = 0; call < calls; ++call) c.run(ops);
                             }) /
                             static_cast<double>(calls);
      const double least_arithmetic = c.operations / peak / 1e9, least_memory = c.bytes / memory_gb_per_s / 1e9;
      us.push_back(1e6 * seconds);
      percents.push_back(100 * std::max(least_arithmetic, least_memory) / seconds);
      roof = least_arithmetic >= least_memory ? "arithmetic" : "memory";
    }
    const double median = SpreadOf(us).median;
    return {{"op", c.op},
            {"shape", c.shape},
            {"us", ToJson(SpreadOf(us))},
            {"gflops", c.operations / median / 1e3},
            {"gb_per_s", c.bytes / median / 1e3},
            {"roof", roof},
            {"percent_of_roof", ToJson(SpreadOf(percents))}};
  }

  const BenchArguments& a_;
  const size_t t_, f_, m_, tile_;
  Random random_;
  std::vector<std::vector<float>> kept_;
  std::vector<int32_t> targets_, ids_;
  std::vector<Recommendation> best_;
  std::vector<OpCase> cases_;
};

}  // namespace

Status BenchOps(const BenchArguments& a, std::vector<Json>& lines) {
  if (a.items > 1u << 22 || a.length > 4096)
    return InvalidArgument("--items and --length are at most 4194304 and 4096 for the ops");
  return OpsBench(a).Run(lines);
}

}  // namespace wisp::tools
