// Runs ops under the emulator and records their launches: what a GPU gets, and its memory before and after.
//
//   cuda_ptx_record FOLDER [PATTERN]    the cases whose names match: FOLDER/launches (a line of JSON for each launch)
//                                       and FOLDER/memory
//   cuda_ptx_record --list              the names of its cases
//
// tests/cuda/ptx/run gives each launch to an interpreter of the code that nvcc made, and compares the memory. Numbers
// that go to tensor cores are small whole numbers: their sums are exact in every order.
#include <dlfcn.h>
#include <fnmatch.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/emulate/emulate.h"
#include "kernels/cuda/results.h"
#include "kernels/kernels.h"

namespace wisp::kernels::cuda {
namespace {

constexpr size_t kMostResults = 4096;

struct Region {
  void* memory;
  size_t bytes;
  bool defined;  // before the first launch of a case
};

// The files, and the memory that the running case gave to kernels.
struct Recording {
  std::ofstream launches, memory;
  std::string running;
  std::vector<Region> regions;
  uint32_t random = 1;

  uint32_t Next() { return random = random * 1664525u + 1013904223u; }
};

Recording& The() {
  static Recording recording;
  return recording;
}

void WriteMemory() {
  for (const Region& r : The().regions) {
    The().memory.write(static_cast<const char*>(r.memory), static_cast<std::streamsize>(r.bytes));
  }
}

void OnLaunch(const emulate::LaunchedKernel& launch, emulate::LaunchState state) {
  WriteMemory();
  if (state == emulate::LaunchState::kHasRun) return;
  Dl_info program = {};
  dladdr(launch.kernel, &program);
  std::ofstream& out = The().launches;
  out << "{\"case\": \"" << The().running << "\", \"kernel\": "
      << reinterpret_cast<uintptr_t>(launch.kernel) - reinterpret_cast<uintptr_t>(program.dli_fbase) << ", \"grid\": ["
      << launch.grid.x << ", " << launch.grid.y << "], \"threads\": " << launch.threads << ", \"parameters\": \"";
  for (const std::byte b : launch.parameters) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out << kDigits[std::to_integer<unsigned>(b) / 16] << kDigits[std::to_integer<unsigned>(b) % 16];
  }
  out << "\", \"regions\": [";
  const char* separator = "";
  for (const Region& r : The().regions) {
    out << separator << '[' << reinterpret_cast<uintptr_t>(r.memory) << ", " << r.bytes << ", "
        << (r.defined ? "true" : "false") << ']';
    separator = ", ";
  }
  out << "]}\n";
}

// ---- Memory of the device. Its first address is `skip` elements after one that every vector may begin at. -----------
template <class T>
T* Allocate(size_t count, const T* from, size_t skip) {
  auto* memory = static_cast<T*>(DeviceMemory().allocate(nullptr, (count + skip) * sizeof(T))) + skip;
  if (from != nullptr) DeviceMemory().copy_in(nullptr, memory, from, count * sizeof(T));
  The().regions.push_back({memory, count * sizeof(T), from != nullptr});
  return memory;
}
template <class T>
T* Put(const std::vector<T>& values) {
  return Allocate(values.size(), values.data(), 0);
}
template <class T>
T* Empty(size_t count) {
  return Allocate<T>(count, nullptr, 0);
}
float* Numbers(size_t count, float scale = 1.0f, size_t skip = 0) {
  std::vector<float> values(count);
  for (float& v : values) v = scale * (static_cast<float>(The().Next() >> 8) * 0x1p-23f - 1.0f);
  return Allocate(count, values.data(), skip);
}
float* WholeNumbers(size_t count) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(The().Next() >> 24 & 7) - 3.0f;
  return Put(values);
}
std::vector<int32_t> Indices(size_t count, uint32_t end, int32_t every_other = -1) {
  std::vector<int32_t> values(count);
  for (int32_t& v : values) v = The().Next() >> 28 == 0 ? every_other : static_cast<int32_t>((The().Next() >> 8) % end);
  return values;
}

const std::vector<uint32_t> kBegins = {0, 5, 5, 42, 53};  // one record is empty
const Segments kRecords = {.begin_B = kBegins.data(), .num_records = 4, .rows = 53};

// ---- Cases. ---------------------------------------------------------------------------------------------------------
void Product(size_t rows, size_t n, size_t k, size_t skip = 0) {
  Ops().linear_forward({.x_RK = Numbers(rows * k, 1.0f, skip),
                        .ldx = k,
                        .packed = Numbers(k * n),
                        .bias_N = Numbers(n),
                        .y_RN = Empty<float>(rows * n),
                        .ldy = n,
                        .rows = rows,
                        .n = n,
                        .k = k,
                        .store = Store::kAssign});
}

void ProductGradients(const OpTable& ops, size_t rows, size_t n, size_t k, float* (*numbers)(size_t)) {
  const float *dy = numbers(rows * n), *x = numbers(rows * k);
  ops.linear_backward_input({.dy_RN = dy,
                             .lddy = n,
                             .w_NK = numbers(n * k),
                             .ldw = k,
                             .dx_RK = numbers(rows * k),
                             .lddx = k,
                             .rows = rows,
                             .n = n,
                             .k = k,
                             .store = Store::kAdd});
  ops.linear_backward_weight({.dy_RN = dy,
                              .lddy = n,
                              .x_RK = x,
                              .ldx = k,
                              .dw_NK = Empty<float>(n * k),
                              .lddw = k,
                              .rows = rows,
                              .n = n,
                              .k = k,
                              .scale = 0.5f,
                              .store = Store::kAssign});
}

void RecordGradients(const OpTable& ops, size_t n, size_t k, float* (*numbers)(size_t)) {
  ops.record_weight_gradients({.dy_RN = numbers(kRecords.rows * n),
                               .lddy = n,
                               .x_RK = numbers(kRecords.rows * k),
                               .ldx = k,
                               .dw_BNK = numbers(kRecords.num_records * (n * k + 3)),
                               .stride = n * k + 3,
                               .records = kRecords,
                               .n = n,
                               .k = k});
}

float* AnyNumbers(size_t count) { return Numbers(count); }

void Scores(size_t rows) {
  constexpr size_t kTile = 128, kN = 300, kK = 37;
  Ops().score_tiles({.x_RK = Numbers(rows * kK),
                     .packed = Numbers(kN * kK),
                     .tile = kTile,
                     .tile_stride = kTile * kK,
                     .bias_N = Numbers(kN),
                     .y_RN = Empty<float>(rows * kN),
                     .rows = rows,
                     .n = kN,
                     .k = kK});
}

void TensorProduct(Arithmetic arithmetic, size_t rows, size_t n, size_t k) {
  const OpTable& ops = Ops(arithmetic);
  float* packed = Empty<float>(ops.packed_size(n, k));
  ops.pack_weights({.w_NK = Numbers(n * k, 3.0f), .ldw = k, .packed = packed, .n = n, .k = k});
  ops.pack_weights({.w_NK = WholeNumbers(n * k), .ldw = k, .packed = packed, .n = n, .k = k});
  ops.linear_forward({.x_RK = WholeNumbers(rows * k),
                      .ldx = k,
                      .packed = packed,
                      .bias_N = WholeNumbers(n),
                      .y_RN = Empty<float>(rows * n),
                      .ldy = n,
                      .rows = rows,
                      .n = n,
                      .k = k,
                      .store = Store::kAssign});
}

// Causal attention of four records, with grouped queries. `extras`: a keep mask, variances and slopes.
void Attention(size_t width, bool extras, bool backward) {
  constexpr size_t kHeads = 4, kKeyHeads = 2, kRow = 37;
  const size_t rows = kRecords.rows, ldq = kHeads * width, ldkv = kKeyHeads * width;
  std::vector<uint8_t> keep(rows * kRow * kHeads);
  for (uint8_t& k : keep) k = The().Next() >> 30 != 0;
  static const std::vector<uint32_t> first_keys = {1, 0, 4, 0};
  const float *q = Numbers(rows * ldq), *k = Numbers(rows * ldkv), *v = Numbers(rows * ldkv);
  float *out = Empty<float>(rows * ldq), *lse = Empty<float>(rows * kHeads);
  AttentionForwardArgs<> a = {.q = q,
                              .k = k,
                              .v = v,
                              .ldq = ldq,
                              .ldkv = ldkv,
                              .out = out,
                              .ldout = ldq,
                              .lse_HQ = lse,
                              .keep_HQT = extras ? Put(keep) : nullptr,
                              .keep_scale = 1.25f,
                              .scratch = nullptr,
                              .num_queries = 0,
                              .num_keys = 0,
                              .heads = kHeads,
                              .head_width = width,
                              .first_key = 0,
                              .scale = 0.25f,
                              .mask = AttentionMask::kCausal};
  a.kv_heads = kKeyHeads;
  a.records = kRecords;
  a.first_key_B = first_keys.data();
  a.keep_row = kRow * kHeads;
  if (extras) {
    std::vector<float> variance(rows * ldkv, 0.125f);
    a.key_variance = Put(variance);
    a.value_variance = backward ? nullptr : Put(variance);
    a.ldvariance = ldkv;
    a.out_variance = backward ? nullptr : Empty<float>(rows * ldq);
    a.ldout_variance = ldq;
    a.slope_H = Numbers(kHeads);
  }
  Ops().attention_forward(a);
  if (!backward) return;
  AttentionBackwardArgs<> b = {.q = q,
                               .k = k,
                               .v = v,
                               .ldq = ldq,
                               .ldkv = ldkv,
                               .out = out,
                               .dout = Numbers(rows * ldq),
                               .ldout = ldq,
                               .lse_HQ = lse,
                               .keep_HQT = a.keep_HQT,
                               .keep_scale = a.keep_scale,
                               .dq = Empty<float>(rows * ldq),
                               .dk = Empty<float>(rows * ldkv),
                               .dv = Empty<float>(rows * ldkv),
                               .scratch = nullptr,
                               .num_queries = 0,
                               .num_keys = 0,
                               .heads = kHeads,
                               .head_width = width,
                               .first_key = 0,
                               .scale = a.scale,
                               .mask = a.mask};
  b.key_variance = a.key_variance;
  b.ldvariance = a.ldvariance;
  b.slope_H = a.slope_H;
  b.kv_heads = kKeyHeads;
  b.records = kRecords;
  b.first_key_B = a.first_key_B;
  b.keep_row = a.keep_row;
  Ops().attention_backward(b);
}

void Formed() {
  constexpr size_t kRows = 7, kN = 1500, kSlots = 9, kWidth = 33, kItems = 40;
  std::vector<double> squares(kRows);
  const std::vector<float> scale = {100, 0, 3e4f, 17, 1e6f, 1, 255};
  std::vector<int64_t> sum(kN, -3);
  const float* x = Numbers(kRows * kN);
  Ops().squares_of_rows({.x_BN = x, .ldx = kN, .rows = kRows, .n = kN, .squares_B = squares.data()});
  Ops().accumulate_rows_on_grid({.x_BN = x,
                                 .ldx = kN,
                                 .sum = Put(sum),
                                 .rows = kRows,
                                 .n = kN,
                                 .scale_B = scale.data(),
                                 .sign = -1,
                                 .squares_B = squares.data()});
  sum.resize(kItems * kWidth);
  Ops().accumulate_slots_on_grid({.x_BJD = Numbers(kRows * kSlots * kWidth),
                                  .stride = kSlots * kWidth,
                                  .slot_BJ = Put(Indices(kRows * kSlots, kItems)),
                                  .sum = Put(sum),
                                  .rows = kRows,
                                  .slots = kSlots,
                                  .d = kWidth,
                                  .scale_B = scale.data(),
                                  .sign = 1,
                                  .squares_B = squares.data()});
  Ops().add_rows({.x_BN = x, .ldx = kN, .y_BN = Numbers(kRows * kN), .ldy = kN, .rows = kRows, .n = kN});
  Ops().record_scatter_add({.dx_RD = Numbers(kRecords.rows * kWidth),
                            .lddx = kWidth,
                            .ids_R = Put(Indices(kRecords.rows, 11)),
                            .table_BMD = Numbers(kRecords.num_records * 11 * kWidth),
                            .stride = 11 * kWidth,
                            .records = kRecords,
                            .d = kWidth,
                            .scale = 0.75f});
}

void Softmax() {
  constexpr size_t kN = 333;
  const size_t rows = kRecords.rows;
  const int32_t* target = Put(Indices(rows, kN));
  float *max = Empty<float>(rows), *sum = Empty<float>(rows), *target_logit = Empty<float>(rows);
  float *weight = Empty<float>(rows), *lse = Empty<float>(rows), *z = Numbers(rows * kN, 12.0f);
  std::vector<double> loss(kRecords.num_records);
  Ops().softmax_start({.target_R = target,
                       .max_R = max,
                       .sum_R = sum,
                       .target_logit_R = target_logit,
                       .weight_R = weight,
                       .records = kRecords,
                       .options_B = nullptr});
  Ops().softmax_stats({.z_RN = z,
                       .ldz = kN,
                       .target_R = target,
                       .max_R = max,
                       .sum_R = sum,
                       .target_logit_R = target_logit,
                       .rows = rows,
                       .n = kN,
                       .first = 0});
  Ops().cross_entropy_loss({.max_R = max,
                            .sum_R = sum,
                            .target_logit_R = target_logit,
                            .weight_R = weight,
                            .lse_R = lse,
                            .loss_B = loss.data(),
                            .records = kRecords,
                            .target = TargetTerm::kInSum});
  Ops().cross_entropy_gradient(
      {.z_RN = z, .ldz = kN, .target_R = target, .lse_R = lse, .weight_R = weight, .rows = rows, .n = kN, .first = 0});
}

void SoftmaxAtOnce() {
  constexpr size_t kN = 333;
  const size_t rows = kRecords.rows;
  std::vector<float> weight(rows, 0.5f);
  weight[3] = 0;
  Ops().softmax_gradient({.z_RN = Numbers(rows * kN, 12.0f),
                          .ldz = kN,
                          .target_R = Put(Indices(rows, kN)),
                          .weight_R = Put(weight),
                          .max_R = Numbers(rows),
                          .sum_R = Numbers(rows),
                          .target_logit_R = Numbers(rows),
                          .rows = rows,
                          .n = kN});
}

void Best(size_t n, size_t k) {
  constexpr size_t kRows = 3;
  const size_t words = (n + 31) / 32;
  std::vector<uint32_t> excluded(kRows * words);
  for (uint32_t& e : excluded) e = The().Next() & The().Next() >> 3;
  std::vector<float> scores(kRows * n);
  for (float& s : scores) s = static_cast<float>(The().Next() >> 28) - 15.0f;  // many are equal, and the best 0
  for (size_t i = 0; i < scores.size(); i += 2) scores[i] = scores[i] == 0 ? -0.0f : scores[i];
  scores[n / 2] = std::numeric_limits<float>::quiet_NaN();
  Ops().top_k({.score_RN = Put(scores),
               .excluded_RW = Put(excluded),
               .best_RK = Empty<Scored>(kRows * k),
               .summary_R = Empty<TopKSummary>(kRows),
               .scratch = Empty<uint64_t>(Ops().top_k_scratch_size(kRows, n, k)),
               .rows = kRows,
               .n = n,
               .k = k});
}

void Norms() {
  constexpr size_t kD = 100;
  const size_t rows = kRecords.rows;
  const float *x = Numbers(rows * kD), *gain = Numbers(kD), *bias = Numbers(kD);
  float *mean = Empty<float>(rows), *rstd = Empty<float>(rows);
  Ops().layer_norm_forward({.x_RD = x,
                            .gain_D = gain,
                            .bias_D = bias,
                            .y_RD = Empty<float>(rows * kD),
                            .mean_R = mean,
                            .rstd_R = rstd,
                            .rows = rows,
                            .d = kD,
                            .epsilon = 1e-5f});
  LayerNormBackwardArgs<> a = {.dy_RD = Numbers(rows * kD),
                               .x_RD = x,
                               .gain_D = gain,
                               .mean_R = mean,
                               .rstd_R = rstd,
                               .dx_RD = Empty<float>(rows * kD),
                               .dgain_D = Empty<float>(kRecords.num_records * kD),
                               .dbias_D = Empty<float>(kRecords.num_records * kD),
                               .rows = rows,
                               .d = kD,
                               .store = Store::kAssign};
  a.records = kRecords;
  Ops().layer_norm_backward(a);
}

struct Case {
  std::string name;
  std::function<void()> run;
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"product-few-rows", [] { Product(5, 70, 37); }},
      {"product-small-tiles", [] { Product(70, 33, 37); }},
      {"product-middle-tiles", [] { Product(150, 70, 37); }},
      {"product-aligned", [] { Product(68, 64, 48); }},
      {"product-not-aligned", [] { Product(68, 64, 48, 1); }},
      {"product-large-tiles", [] { Product(1030, 1024, 20); }},
      {"product-gradients", [] { ProductGradients(Ops(), 40, 33, 65, AnyNumbers); }},
      {"product-gradients-few-columns", [] { ProductGradients(Ops(), 40, 5, 64, AnyNumbers); }},
      {"product-gradients-many-rows", [] { ProductGradients(Ops(), 300, 33, 65, AnyNumbers); }},
      {"product-records", [] { RecordGradients(Ops(), 33, 65, AnyNumbers); }},
      {"product-records-large-tiles", [] { RecordGradients(Ops(), 520, 512, AnyNumbers); }},
      {"product-scores", [] { Scores(17); }},
      {"product-scores-few-rows", [] { Scores(3); }},
      {"product-scores-large-tiles", [] { Scores(70); }},
      {"tensor-tf32", [] { TensorProduct(Arithmetic::kTf32, 70, 65, 100); }},
      {"tensor-float16", [] { TensorProduct(Arithmetic::kFloat16, 70, 65, 101); }},
      {"tensor-bfloat16", [] { TensorProduct(Arithmetic::kBfloat16, 70, 65, 101); }},
      {"tensor-int8", [] { TensorProduct(Arithmetic::kInt8, 70, 65, 101); }},
      {"tensor-gradients", [] { ProductGradients(Ops(Arithmetic::kTf32), 40, 33, 65, WholeNumbers); }},
      {"tensor-gradients-many-rows", [] { ProductGradients(Ops(Arithmetic::kTf32), 300, 33, 65, WholeNumbers); }},
      {"tensor-records", [] { RecordGradients(Ops(Arithmetic::kTf32), 33, 65, WholeNumbers); }},
      {"formed", Formed},
      {"softmax", Softmax},
      {"softmax-at-once", SoftmaxAtOnce},
      {"top-k", [] { Best(300, 10); }},
      {"top-k-in-steps", [] { Best(1500, 100); }},
      {"norms", Norms},
  };
  for (const size_t width : {24, 48, 100, 160}) {
    for (const bool backward : {false, true}) {
      const std::string name = (backward ? "attention-backward-" : "attention-") + std::to_string(width);
      cases.push_back({name, [=] { Attention(width, false, backward); }});
      cases.push_back({name + "-extras", [=] { Attention(width, true, backward); }});
    }
  }
  return cases;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.size() > 2) return 2;
  const std::string &folder = arguments[0], pattern = arguments.size() == 2 ? arguments[1] : "*";
  if (folder != "--list") {
    The().launches.open(folder + "/launches");
    The().memory.open(folder + "/memory", std::ios::binary);
    emulate::Observe(OnLaunch);
  }
  for (const Case& c : Cases()) {
    if (fnmatch(pattern.c_str(), c.name.c_str(), 0) != 0) continue;
    if (folder == "--list") {
      std::printf("%s\n", c.name.c_str());
      continue;
    }
    The().running = c.name;
    The().regions = {{Results(kMostResults), kMostResults * sizeof(double), false},
                     {Scratch(), kScratchFloats * sizeof(float), true}};
    c.run();
  }
  The().launches.close();
  The().memory.close();
  return The().launches && The().memory ? 0 : 1;
}

}  // namespace
}  // namespace wisp::kernels::cuda

int main(int argc, char** argv) { return wisp::kernels::cuda::Main({argv + 1, argv + argc}); }
