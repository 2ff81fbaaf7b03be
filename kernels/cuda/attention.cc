// Fused attention, forward and backward, of one record or several (stages/attention.h explains the method). Records
// that pass together lie along y; each is computed as if it were alone.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/stages/attention.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = kStageThreads;

// The records of a launch. If an op has only one record, the arguments describe it.
struct Attended {
  bool several;
  unsigned blocks_y;  // blocks of each record
  LaunchedRecords records;
  uint32_t first_key[kMaxLaunchRecords];
};

// Moves a record's pointers to its first row.
__device__ inline void Begin(AttentionForwardArgs<>& a, size_t row) {
  a.out += row * a.ldout;
  if (a.value_variance != nullptr) {
    a.value_variance += row * a.ldvariance;
    a.out_variance += row * a.ldout_variance;
  }
}
__device__ inline void Begin(AttentionBackwardArgs<>& a, size_t row) {
  a.out += row * a.ldout;
  a.dout += row * a.ldout;
  a.dq += row * a.ldq;
  a.dk += row * a.ldkv;
  a.dv += row * a.ldkv;
}

// The arguments of this block's record, as if it were alone.
template <class Args>
__device__ inline Args SliceRecordArgs(Args a, const Attended& attended) {
  if (!attended.several) return a;
  const unsigned b = blockIdx.y / attended.blocks_y;
  const size_t row = attended.records.begin[b];
  a.num_queries = a.num_keys = attended.records.begin[b + 1] - row;
  a.first_key = attended.first_key[b];
  a.q += row * a.ldq;
  a.k += row * a.ldkv;
  a.v += row * a.ldkv;
  a.lse_HQ += row * a.heads;
  if (a.keep_HQT != nullptr) a.keep_HQT += row * a.keep_row;
  if (a.key_variance != nullptr) a.key_variance += row * a.ldvariance;
  Begin(a, row);
  return a;
}

// ---- Forward. -------------------------------------------------------------------------------------------------------
template <unsigned kChunks, bool kVariances>
__global__ void __launch_bounds__(kThreads) AttendQueries(AttentionForwardArgs<> all, Attended attended) {
  const AttentionForwardArgs<> a = SliceRecordArgs(all, attended);
  if (blockIdx.x * kWarps >= a.num_queries) return;  // the record is shorter
  AreGlobal(a.q, a.k, a.v, a.out, a.lse_HQ, a.keep_HQT, a.key_variance, a.value_variance, a.out_variance);
  AttendBlockQueries<kChunks, kVariances>(a, blockIdx.x, blockIdx.y % attended.blocks_y);
}

// ---- Backward. ------------------------------------------------------------------------------------------------------
// P and dS of one query and one key, from the products of q with k and of dout with v.
struct Weights {
  float kept, slope;  // P times keep; dS
};
__device__ inline Weights ComputeWeights(const AttentionBackwardArgs<>& a, unsigned head, size_t query, size_t key,
                                         float product, float lowering, float dp, float delta) {
  if (!Attends(a, query, key)) return {0, 0};
  const Logit logit = ComputeLogit(a, head, query, key, product, lowering);
  const float p = expf(logit.value - a.lse_HQ[head * a.num_queries + query]), keep = Keep(a, head, query, key);
  return {p * keep, logit.held ? 0.0f : p * (keep * dp - delta) * a.scale};
}

// <dout, out> for a query's head, in every lane.
__device__ inline float Delta(const AttentionBackwardArgs<>& a, unsigned head, size_t query) {
  const size_t at = query * a.ldout + head * a.head_width;
  float sum = 0;
  for (size_t c = Lane(); c < a.head_width; c += kWarp) sum += a.dout[at + c] * a.out[at + c];
  return WarpSum(sum);
}

// Computes dq, with a warp for each query.
template <unsigned kChunks>
__global__ void __launch_bounds__(kThreads) QueryGradients(AttentionBackwardArgs<> all, Attended attended) {
  __shared__ Tile tile;
  __shared__ Numbers numbers;
  const AttentionBackwardArgs<> a = SliceRecordArgs(all, attended);
  if (blockIdx.x * kWarps >= a.num_queries) return;  // the record is shorter
  AreGlobal(a.q, a.k, a.v, a.out, a.dout, a.dq, a.lse_HQ, a.keep_HQT, a.key_variance);
  const auto width = static_cast<unsigned>(a.head_width);
  const Share share = ComputeShare<kChunks>(a, blockIdx.y % attended.blocks_y);
  const size_t query = size_t{blockIdx.x} * kWarps + WarpInBlock();
  const bool real = query < a.num_queries;
  const float* q = real ? a.q + query * a.ldq + share.head * width : nullptr;
  const float* dout = real ? a.dout + query * a.ldout + share.head * width : nullptr;
  const float delta = real ? Delta(a, share.head, query) : 0.0f;
  const size_t last_query = size_t{blockIdx.x} * kWarps + kWarps - 1;
  const size_t end = AttendEnd(a, last_query < a.num_queries ? last_query : a.num_queries - 1);
  Columns<kChunks> dq, through_variance;
  for (size_t first = AttendBegin(a, size_t{blockIdx.x} * kWarps); first < end; first += kWarp) {
    const auto count = static_cast<unsigned>(end - first < kWarp ? end - first : kWarp);
    const float* keys = a.k + first * a.ldkv + share.key_head * width;
    const float* values = a.v + first * a.ldkv + share.key_head * width;
    const float product = MultiplyRows(tile, numbers, keys, a.ldkv, count, q, width);
    const float dp = MultiplyRows(tile, numbers, values, a.ldkv, count, dout, width);
    float lowering = 0;
    if (a.key_variance != nullptr) {
      const float* variances = a.key_variance + first * a.ldvariance + share.key_head * width;
      lowering = MultiplyRows<Squared::kMine>(tile, numbers, variances, a.ldvariance, count, q, width);
    }
    const Weights w = ComputeWeights(a, share.head, query, first + Lane(), product, lowering, dp, delta);
    dq.Add(numbers, w.slope, keys, a.ldkv, count, share.first_column, width);
    if (a.key_variance != nullptr)
      through_variance.Add(numbers, w.slope, a.key_variance + first * a.ldvariance + share.key_head * width,
                           a.ldvariance, count, share.first_column, width);
  }
  if (!real) return;
  WISP_UNROLL for (unsigned i = 0; i < kChunks; ++i) {
    const unsigned column = share.first_column + i * kWarp + Lane();
    if (a.key_variance != nullptr && column < width) dq.of[i] -= a.scale * q[column] * through_variance.of[i];
  }
  dq.Store(a.dq + query * a.ldq + share.head * width, share.first_column, width);
}

// Computes dk and dv, with a warp for each key, over all query heads that read it.
template <unsigned kChunks>
__global__ void __launch_bounds__(kThreads) KeyGradients(AttentionBackwardArgs<> all, Attended attended) {
  __shared__ Tile tile;
  __shared__ Numbers numbers;
  __shared__ Shared<float, kWarp> deltas;
  const AttentionBackwardArgs<> a = SliceRecordArgs(all, attended);
  if (blockIdx.x * kWarps >= a.num_keys) return;  // the record is shorter
  AreGlobal(a.q, a.k, a.v, a.out, a.dout, a.dk, a.dv, a.lse_HQ, a.keep_HQT, a.key_variance);
  const auto width = static_cast<unsigned>(a.head_width);
  const Share share = ComputeShare<kChunks>(a, blockIdx.y % attended.blocks_y);  // a share of the key heads
  const auto kv_heads = static_cast<unsigned>(a.kv_heads == 0 ? a.heads : a.kv_heads);
  const auto group = static_cast<unsigned>(a.heads) / kv_heads;
  const size_t key = size_t{blockIdx.x} * kWarps + WarpInBlock();
  const bool real = key < a.num_keys;
  const size_t key_at = key * a.ldkv + share.head * width;
  const float *k = real ? a.k + key_at : nullptr, *v = real ? a.v + key_at : nullptr;
  const float* variance =
      real && a.key_variance != nullptr ? a.key_variance + key * a.ldvariance + share.head * width : nullptr;
  // Earlier queries attend to none of the block's keys.
  const size_t first_key = size_t{blockIdx.x} * kWarps, past = a.num_keys - a.num_queries;
  const size_t first_query =
      a.mask == AttentionMask::kCausal && first_key > past ? (first_key - past) / kWarp * kWarp : size_t{0};
  Columns<kChunks> dk, dv;
  for (unsigned head = share.head * group; head < (share.head + 1) * group; ++head) {
    for (size_t first = first_query; first < a.num_queries; first += kWarp) {
      const auto count = static_cast<unsigned>(a.num_queries - first < kWarp ? a.num_queries - first : kWarp);
      const float* queries = a.q + first * a.ldq + head * width;
      const float* douts = a.dout + first * a.ldout + head * width;
      __syncthreads();  // all have read the previous deltas
      for (unsigned l = WarpInBlock(); l < kWarp; l += kWarps) {
        const float delta = l < count ? Delta(a, head, first + l) : 0.0f;
        if (Lane() == 0) deltas[l] = delta;
      }
      const float product = MultiplyRows(tile, numbers, queries, a.ldq, count, k, width);
      const float dp = MultiplyRows(tile, numbers, douts, a.ldout, count, v, width);
      float lowering = 0;
      if (a.key_variance != nullptr) {
        lowering = MultiplyRows<Squared::kRows>(tile, numbers, queries, a.ldq, count, variance, width);
      }
      const Weights w =
          ComputeWeights(a, head, first + Lane(), real ? key : a.num_keys, product, lowering, dp, deltas[Lane()]);
      dk.Add(numbers, w.slope, queries, a.ldq, count, share.first_column, width);
      dv.Add(numbers, w.kept, douts, a.ldout, count, share.first_column, width);
    }
  }
  if (!real) return;
  dk.Store(a.dk + key_at, share.first_column, width);
  dv.Store(a.dv + key_at, share.first_column, width);
}

// Calls f.operator()<chunks>(grid, attended) for all records. A lane keeps as many columns as it must, at most 8.
// `rows`: rows of the only record.
template <class Args, class F>
void ForAttended(const Args& a, size_t rows, size_t heads, const F& f) {
  if (heads == 0 || a.head_width == 0) return;
  const auto launch = [&]<unsigned kChunks>(Attended& attended) {
    attended.blocks_y = static_cast<unsigned>(heads) * BlocksFor(a.head_width, kChunks * kWarp);
    const Grid grid = {.blocks = BlocksFor(FindLongest(attended.records), kWarps, kAllBlocks),
                       .blocks_y = attended.blocks_y * attended.records.count,
                       .threads = kThreads};
    if (grid.blocks > 0) f.template operator()<kChunks>(grid, attended);
  };
  ForRecords(a.records, rows, [&](const LaunchedRecords& records) {
    Attended attended = {.several = a.records.begin_B != nullptr, .blocks_y = 0, .records = records, .first_key = {}};
    for (uint32_t b = 0; b < records.count && a.first_key_B != nullptr; ++b)
      attended.first_key[b] = a.first_key_B[records.first + b];
    if (a.head_width <= kWarp) return launch.template operator()<1>(attended);
    if (a.head_width <= 2 * kWarp) return launch.template operator()<2>(attended);
    if (a.head_width <= 4 * kWarp) return launch.template operator()<4>(attended);
    launch.template operator()<8>(attended);
  });
}

// Removes pointers to host memory from the arguments.
template <class Args>
Args ForDevice(const Args& args) {
  Args a = WithoutRecords(args);
  a.first_key_B = nullptr;
  return a;
}

size_t NoScratch(AttentionPass, size_t, size_t) { return 0; }

template <unsigned kChunks>
void AttendOne(const AttentionForwardArgs<>& a) {
  const unsigned blocks_x = BlocksFor(a.num_queries, kWarps, kAllBlocks);
  const auto parts = static_cast<unsigned>(a.heads) * BlocksFor(a.head_width, kChunks * kWarp);
  RunStage<AttendStage<kChunks>>(blocks_x * parts, {.attention = a, .blocks_x = blocks_x});
}

void ForwardOneRecord(const AttentionForwardArgs<>& a) {
  if (a.heads == 0 || a.head_width == 0 || a.num_queries == 0) return;
  if (a.head_width <= kWarp) return AttendOne<1>(a);
  if (a.head_width <= 2 * kWarp) return AttendOne<2>(a);
  if (a.head_width <= 4 * kWarp) return AttendOne<4>(a);
  AttendOne<8>(a);
}

// While a program is recorded, a record that is alone becomes one of its stages. Otherwise it uses the kernel for
// several records: in a private step, a record that happens to pass alone must not be computed by other code.
void Forward(const AttentionForwardArgs<>& args) {
  const AttentionForwardArgs<> a = ForDevice(args);
  if (IsGathering() && args.records.begin_B == nullptr && a.value_variance == nullptr) return ForwardOneRecord(a);
  ForAttended(args, a.num_queries, a.heads, [&]<unsigned kChunks>(const Grid& grid, const Attended& attended) {
    a.value_variance != nullptr ? Launch<AttendQueries<kChunks, true>>(grid, a, attended)
                                : Launch<AttendQueries<kChunks, false>>(grid, a, attended);
  });
}

void Backward(const AttentionBackwardArgs<>& args) {
  const AttentionBackwardArgs<> a = ForDevice(args);
  const size_t kv_heads = a.kv_heads == 0 ? a.heads : a.kv_heads;
  ForAttended(args, a.num_queries, a.heads, [&]<unsigned kChunks>(const Grid& grid, const Attended& attended) {
    Launch<QueryGradients<kChunks>>(grid, a, attended);
  });
  ForAttended(args, a.num_keys, kv_heads, [&]<unsigned kChunks>(const Grid& grid, const Attended& attended) {
    Launch<KeyGradients<kChunks>>(grid, a, attended);
  });
}

}  // namespace

void FillAttention(OpTable& table) {
  table.attention_scratch_size = NoScratch;
  table.attention_forward = Forward;
  table.attention_backward = ForTraining(Backward);
}

}  // namespace wisp::kernels::cuda
