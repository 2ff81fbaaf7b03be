// The costs of products, norms, attention, elementwise ops, reductions and optimizers.
#include "tools/lab/roofline/op_cost.h"

#include <algorithm>

namespace wisp::tools {
namespace {

using kernels::Activation;

// Returns the operations of an activation or of its derivative.
double Operations(Activation kind) { return kind == Activation::kRelu ? 1 : 8; }

// Reads dy and x and writes dx of a product, or the other way round.
OpCost ProductCost(size_t rows, size_t n, size_t k, double outputs_twice) {
  return {.bytes = Floats(Product(rows, n) + Product(n, k) + Product(rows, k) + outputs_twice),
          .operations = 2 * Product(rows, n) * static_cast<double>(k)};
}

// The work of one attention call: rows of queries and keys, and pairs of both.
struct Attended {
  double queries = 0, keys = 0, pairs = 0;
};

void AddRecord(size_t num_queries, size_t num_keys, size_t first_key, kernels::AttentionMask mask, Attended& sum) {
  sum.queries += static_cast<double>(num_queries);
  sum.keys += static_cast<double>(num_keys);
  for (size_t i = 0; i < num_queries; ++i) {
    const size_t end = mask == kernels::AttentionMask::kCausal ? num_keys - num_queries + i + 1 : num_keys;
    sum.pairs += static_cast<double>(end - std::min(first_key, end));
  }
}

template <class Args>
Attended CountAttended(const Args& a) {
  Attended sum;
  if (a.records.begin_B == nullptr) {
    AddRecord(a.num_queries, a.num_keys, a.first_key, a.mask, sum);
    return sum;
  }
  for (size_t b = 0; b < a.records.num_records; ++b) {
    const size_t rows = a.records.size(b);
    AddRecord(rows, rows, a.first_key_B != nullptr ? a.first_key_B[b] : 0, a.mask, sum);
  }
  return sum;
}

// Returns the widths of a row of queries and of a row of keys.
template <class Args>
std::pair<double, double> GetWidths(const Args& a) {
  return {Product(a.heads, a.head_width), Product(a.kv_heads == 0 ? a.heads : a.kv_heads, a.head_width)};
}

}  // namespace

OpCost ComputeCost(const kernels::PackWeightsArgs<>& a) { return {.bytes = Floats(2 * Product(a.n, a.k))}; }

OpCost ComputeCost(const kernels::LinearForwardArgs<>& a) {
  OpCost cost = ProductCost(a.rows, a.n, a.k, (Touches(a.store) - 1) * Product(a.rows, a.n));
  if (a.bias_N != nullptr) cost.bytes += Floats(static_cast<double>(a.n)), cost.operations += Product(a.rows, a.n);
  return cost;
}

OpCost ComputeCost(const kernels::LinearBackwardInputArgs<>& a) {
  return ProductCost(a.rows, a.n, a.k, (Touches(a.store) - 1) * Product(a.rows, a.k));
}

OpCost ComputeCost(const kernels::LinearBackwardWeightArgs<>& a) {
  return ProductCost(a.rows, a.n, a.k, (Touches(a.store) - 1) * Product(a.n, a.k));
}

OpCost ComputeCost(const kernels::ColumnSumArgs<>& a) {
  const size_t rows = a.records.begin_B == nullptr ? a.rows : a.records.rows;
  return {.bytes = Floats(Product(rows, a.n) + Touches(a.store) * Product(NumRecords(a.records), a.n)),
          .operations = Product(rows, a.n)};
}

OpCost ComputeCost(const kernels::LayerNormForwardArgs<>& a) {
  return {.bytes = Floats(2 * Product(a.rows, a.d) + 2.0 * (a.d + a.rows)), .operations = 8 * Product(a.rows, a.d)};
}

OpCost ComputeCost(const kernels::LayerNormBackwardArgs<>& a) {
  const size_t rows = a.records.begin_B == nullptr ? a.rows : a.records.rows;
  return {.bytes = Floats((2 + Touches(a.store)) * Product(rows, a.d) + static_cast<double>(a.d) + 2.0 * rows +
                          2 * Product(NumRecords(a.records), a.d)),
          .operations = 13 * Product(rows, a.d)};
}

OpCost ComputeCost(const kernels::RmsNormForwardArgs<>& a) {
  return {.bytes = Floats(2 * Product(a.rows, a.d) + static_cast<double>(a.d + a.rows)),
          .operations = 4 * Product(a.rows, a.d)};
}

OpCost ComputeCost(const kernels::RmsNormBackwardArgs<>& a) {
  const size_t rows = a.records.begin_B == nullptr ? a.rows : a.records.rows;
  return {.bytes = Floats((2 + Touches(a.store)) * Product(rows, a.d) + static_cast<double>(a.d + rows) +
                          Product(NumRecords(a.records), a.d)),
          .operations = 9 * Product(rows, a.d)};
}

OpCost ComputeCost(const kernels::RotaryArgs<>& a) {
  const size_t rows = a.records.begin_B == nullptr ? a.rows : a.records.rows;
  size_t positions = rows;
  for (size_t b = 0; a.records.begin_B != nullptr && b < a.records.num_records; ++b)
    positions = b == 0 ? a.records.size(0) : std::max(positions, a.records.size(b));
  const double entries = Product(rows, a.heads) * static_cast<double>(a.rotated);
  return {.bytes = Floats(2 * entries + Product(positions, a.rotated)), .operations = 3 * entries};
}

OpCost ComputeCost(const kernels::AttentionForwardArgs<>& a) {
  const Attended sum = CountAttended(a);
  const auto [q, kv] = GetWidths(a);
  const double pairs = sum.pairs * static_cast<double>(a.heads), width = static_cast<double>(a.head_width);
  OpCost cost = {.bytes = Floats(2 * sum.queries * q + 2 * sum.keys * kv + sum.queries * static_cast<double>(a.heads)),
                 .operations = pairs * (4 * width + 5)};
  if (a.keep_HQT != nullptr) cost.bytes += pairs;
  if (a.key_variance != nullptr) cost.bytes += Floats(sum.keys * kv), cost.operations += 3 * pairs * width;
  if (a.value_variance != nullptr)
    cost.bytes += Floats(sum.keys * kv + sum.queries * q), cost.operations += 3 * pairs * width;
  return cost;
}

OpCost ComputeCost(const kernels::AttendCachedArgs& a) {
  const kernels::AttentionForwardArgs<>& of_floats = a;
  OpCost cost = ComputeCost(of_floats);
  const double kept = 2 * CountAttended(of_floats).keys * GetWidths(of_floats).second;
  cost.bytes -= kept * static_cast<double>(sizeof(float) - kernels::CacheElementBytes(a.kept.type));
  return cost;
}

OpCost ComputeCost(const kernels::KeepKeysArgs& a) {
  const double n = 2 * Product(a.rows, a.heads * a.head_width);
  return {.bytes = n * static_cast<double>(sizeof(float) + kernels::CacheElementBytes(a.kept.type))};
}

// Computes the probabilities again, then dout V^T, dq, dk and dv: five products.
OpCost ComputeCost(const kernels::AttentionBackwardArgs<>& a) {
  const Attended sum = CountAttended(a);
  const auto [q, kv] = GetWidths(a);
  const double pairs = sum.pairs * static_cast<double>(a.heads), width = static_cast<double>(a.head_width);
  OpCost cost = {.bytes = Floats(4 * sum.queries * q + 4 * sum.keys * kv + sum.queries * static_cast<double>(a.heads)),
                 .operations = pairs * (10 * width + 8)};
  if (a.keep_HQT != nullptr) cost.bytes += pairs;
  if (a.key_variance != nullptr) cost.bytes += Floats(sum.keys * kv), cost.operations += 6 * pairs * width;
  return cost;
}

OpCost ComputeCost(const kernels::ActivationForwardArgs<>& a) {
  return {.bytes = Floats(2.0 * a.n), .operations = Operations(a.kind) * static_cast<double>(a.n)};
}

OpCost ComputeCost(const kernels::ActivationBackwardArgs<>& a) {
  return {.bytes = Floats(3.0 * a.n), .operations = (1 + Operations(a.kind)) * static_cast<double>(a.n)};
}

OpCost ComputeCost(const kernels::GatedActivationForwardArgs<>& a) {
  const double n = Product(a.rows, a.n);
  return {.bytes = Floats(3 * n), .operations = (1 + Operations(a.kind)) * n};
}

OpCost ComputeCost(const kernels::GatedActivationBackwardArgs<>& a) {
  const double n = Product(a.rows, a.n);
  return {.bytes = Floats(5 * n), .operations = (3 + 2 * Operations(a.kind)) * n};
}

OpCost ComputeCost(const kernels::MapArgs<>& a) {
  return {.bytes = Floats(2.0 * a.n), .operations = static_cast<double>(a.n)};
}

OpCost ComputeCost(const kernels::ScaleArgs<>& a) {
  const double n = static_cast<double>(a.n);
  return {.bytes = Floats((1 + Touches(a.store)) * n), .operations = Touches(a.store) * n};
}

OpCost ComputeCost(const kernels::ApplyKeepArgs<>& a) {
  const double n = static_cast<double>(a.n);
  return {.bytes = Floats(2 * n) + n, .operations = 2 * n};
}

OpCost ComputeCost(const kernels::LinearVarianceArgs<>& a) {
  const double in = Product(a.rows, a.k), out = Product(a.rows, a.n), inputs = a.variance_RK != nullptr ? 2 : 1;
  return {.bytes = Floats(inputs * in + 2 * out), .operations = 3 * in + 3 * out};
}

OpCost ComputeCost(const kernels::LayerNormVarianceArgs<>& a) {
  const double n = Product(a.rows, a.d);
  return {.bytes = Floats(2 * n + static_cast<double>(a.d + a.rows)), .operations = 3 * n};
}

OpCost ComputeCost(const kernels::ActivationVarianceArgs<>& a) {
  const double n = static_cast<double>(a.n);
  return {.bytes = Floats(3 * n), .operations = 12 * n};
}

OpCost ComputeCost(const kernels::DotRowsArgs<>& a) {
  const double n = Product(a.rows, a.d);
  return {.bytes = Floats(2 * n + static_cast<double>(a.rows)), .operations = 2 * n};
}

OpCost ComputeCost(const kernels::AccumulateOnGridArgs<>& a) {
  const double n = static_cast<double>(a.n);
  return {.bytes = Floats(n) + 16 * n, .operations = 5 * n};
}

OpCost ComputeCost(const kernels::ExpDoubleArgs& a) {
  const double n = static_cast<double>(a.n);
  return {.bytes = 16 * n, .operations = n};
}

OpCost ComputeCost(const kernels::AdamArgs<>& a) {
  const double n = static_cast<double>(a.n);
  return {.bytes = Floats(7 * n), .operations = 15 * n};
}

OpCost ComputeCost(const kernels::SgdArgs<>& a) {
  const double n = static_cast<double>(a.n), moments = a.m != nullptr ? 2 : 0;
  return {.bytes = Floats((3 + moments) * n), .operations = (4 + moments) * n};
}

}  // namespace wisp::tools
