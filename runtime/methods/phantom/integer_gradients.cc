#include "runtime/methods/phantom/integer_gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wisp {
namespace {

// The squares of a row's integers add up to at most this, so that products of rows fit 32 bits. Below it no integer of
// the row can have been cut at 32,767.
constexpr int64_t kMostRowSquares = int64_t{32767} * 32767;
// Rows of integers start at multiples of a vector.
size_t Padded(size_t n) { return (n + 31) / 32 * 32; }

// SplitMix64's output function (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

OuterFactor SliceRecordArgs(const OuterFactor& f, size_t b) {
  OuterFactor own = f;
  own.dy_RN += f.records.begin(b) * f.lddy;
  own.x_RK += f.records.begin(b) * f.ldx;
  own.records = {.rows = f.records.size(b)};
  return own;
}

RowsFactor SliceRecordArgs(const RowsFactor& f, size_t b) {
  RowsFactor own = f;
  own.ids_R += f.records.begin(b);
  own.dx_RD += f.records.begin(b) * f.lddx;
  own.records = {.rows = f.records.size(b)};
  return own;
}

// The scales of a row of x (`x`) and of a row of dy (`dy`, steps / x). They make both rows equally long. Each is then
// as long as the root of the product's length, so for a record within its bound no integer exceeds 16 bits.
struct RowScales {
  float dy = 0, x = 0;
};
RowScales ComputeScales(float steps, double dy_squares, double x_squares) {
  const double ratio = steps * std::sqrt(dy_squares / x_squares);
  if (!(dy_squares > 0) || !(x_squares > 0) || !std::isnormal(ratio)) return {};
  const auto x = static_cast<float>(std::sqrt(ratio));
  return {.dy = steps / x, .x = x};
}

}  // namespace

IntegerGradients::Sizes IntegerGradients::ComputeSizes(const Setup& setup) {
  Sizes sizes;
  for (uint32_t i : setup.trained.parameters()) {
    const ParameterSpec& p = setup.parameters[i];
    if (p.shape == ParameterShape::kMatrix) {
      ++sizes.products;
      sizes.integers += setup.max_rows * (Padded(p.rows) + Padded(p.cols));
      sizes.numbers += 2 * setup.max_rows;
      sizes.scratch = std::max(sizes.scratch, kernels::OuterScratch(setup.max_rows, p.rows, p.cols));
    } else if (p.shape == ParameterShape::kTable) {
      ++sizes.rows;
      sizes.widest_table = std::max<size_t>(sizes.widest_table, p.cols);
    } else {
      ++sizes.vectors;
    }
  }
  return sizes;
}

IntegerGradients::IntegerGradients(const kernels::Device& device, const Setup& setup, const ClipRule& clip,
                                   GridGradientSum& sum)
    : ops_(device.ops),
      parameters_(&setup.parameters),
      trained_(&setup.trained),
      clip_(clip),
      sum_(&sum),
      sizes_(ComputeSizes(setup)),
      integers_(sizes_.integers),
      largest_(sizes_.numbers),
      squares_(sizes_.numbers),
      scratch_(sizes_.scratch),
      scale_R_(setup.max_rows),
      other_scale_R_(setup.max_rows),
      seed_R_(setup.max_rows),
      other_seed_R_(setup.max_rows),
      squares_R_(2 * setup.max_rows),
      seen_(setup.parameters.size()),
      row_gradient_(sizes_.rows == 0 ? 0 : setup.max_rows, sizes_.widest_table),
      outcomes_(setup.max_records) {
  products_.reserve(sizes_.products);
  rows_.reserve(sizes_.rows);
  vectors_.reserve(sizes_.vectors);
}

size_t IntegerGradients::PlanBytes(const Setup& setup) {
  const Sizes sizes = ComputeSizes(setup);
  return AlignedArray<int16_t>::AllocatedBytes(sizes.integers) + AlignedArray<int32_t>::AllocatedBytes(sizes.numbers) +
         AlignedArray<double>::AllocatedBytes(sizes.numbers) + AlignedArray<int32_t>::AllocatedBytes(sizes.scratch) +
         4 * AlignedArray<float>::AllocatedBytes(setup.max_rows) +
         AlignedArray<int64_t>::AllocatedBytes(2 * setup.max_rows) + setup.parameters.size() * sizeof(size_t) +
         RowGradient::PlanBytes(sizes.rows == 0 ? 0 : setup.max_rows, sizes.widest_table) +
         setup.max_records * sizeof(RecordOutcome) + sizes.products * sizeof(Product) +
         sizes.rows * sizeof(RowsFactor) + sizes.vectors * sizeof(VectorFactor);
}

size_t IntegerGradients::scratch_bytes() const {
  return integers_.allocated_bytes() + largest_.allocated_bytes() + squares_.allocated_bytes() +
         scratch_.allocated_bytes() + scale_R_.allocated_bytes() + other_scale_R_.allocated_bytes() +
         seed_R_.allocated_bytes() + other_seed_R_.allocated_bytes() + squares_R_.allocated_bytes() +
         seen_.size() * sizeof(size_t) + row_gradient_.size_bytes() + outcomes_.size() * sizeof(RecordOutcome) +
         products_.capacity() * sizeof(Product) + rows_.capacity() * sizeof(RowsFactor) +
         vectors_.capacity() * sizeof(VectorFactor);
}

void IntegerGradients::BeginRecords(Batch records) {
  num_records_ = records.size();
  integers_used_ = rows_used_ = 0;
  refused_ = false;
  products_.clear();
  rows_.clear();
  vectors_.clear();
  for (size_t& seen : seen_) seen = 0;
}

void IntegerGradients::Outer(const OuterFactor& f) {
  if (!Wants(f.parameter)) return;
  const ParameterSpec& p = (*parameters_)[f.parameter];
  // Refuse a second factor for a weight, or a norm in it: its share of the record's norm is not computed here.
  if (seen_[f.parameter] > 0 || p.shape != ParameterShape::kMatrix || f.row_norm || f.ids_N != nullptr) {
    refused_ = true;
    return;
  }
  seen_[f.parameter] = f.n;
  const size_t rows = f.records.rows;
  int16_t* const a = integers_.data() + integers_used_;
  products_.push_back({.factor = f,
                       .a_RN = a,
                       .b_RK = a + rows * Padded(f.n),
                       .largest_a_R = largest_.data() + rows_used_,
                       .largest_b_R = largest_.data() + rows_used_ + rows,
                       .dy_squares_R = squares_.data() + rows_used_,
                       .x_squares_R = squares_.data() + rows_used_ + rows});
  integers_used_ += rows * (Padded(f.n) + Padded(f.k));
  rows_used_ += 2 * rows;
}

void IntegerGradients::Rows(const RowsFactor& f) {
  if (!Wants(f.parameter)) return;
  if (seen_[f.parameter]++ > 0) {
    refused_ = true;
    return;
  }
  rows_.push_back(f);
}

void IntegerGradients::Vector(const VectorFactor& f) {
  if (!Wants(f.parameter)) return;
  if (f.first < seen_[f.parameter] || vectors_.size() == vectors_.capacity()) {
    refused_ = true;
    return;
  }
  seen_[f.parameter] = f.first + f.n;
  vectors_.push_back(f);
}

double IntegerGradients::SquaredNorm(size_t b) {
  double squares = refused_ ? std::nan("") : 0;
  for (const Product& p : products_) {
    const size_t begin = p.factor.records.begin(b);
    const OuterFactor f = SliceRecordArgs(p.factor, b);
    squares += ops_->outer_squares({.a_RN = f.dy_RN,
                                    .lda = f.lddy,
                                    .b_RK = f.x_RK,
                                    .ldb = f.ldx,
                                    .rows = f.records.rows,
                                    .n = f.n,
                                    .k = f.k,
                                    .a_squares_R = p.dy_squares_R + begin,
                                    .b_squares_R = p.x_squares_R + begin});
  }
  for (const VectorFactor& f : vectors_) squares += ops_->sum_squares(f.g_BN + b * f.n, f.n);
  for (const RowsFactor& f : rows_) {
    row_gradient_.Assign(*ops_, SliceRecordArgs(f, b));
    squares += row_gradient_.SumSquares(*ops_);
  }
  return squares;
}

// Makes record b's integers, with the clip factor in them. Returns the squared norm of their products; infinite if it
// could not be computed. With factor 0 all integers are zero.
double IntegerGradients::Quantise(size_t b, double factor) {
  const float steps = static_cast<float>(factor) * sum_->steps_per_unit();
  const uint64_t seed = options_B_ == nullptr ? 0 : options_B_[b].dropout_seed;
  double squares = 0;
  for (size_t i = 0; i < products_.size(); ++i) {
    const Product& p = products_[i];
    const size_t begin = p.factor.records.begin(b);
    const OuterFactor f = SliceRecordArgs(p.factor, b);
    const size_t rows = f.records.rows, lda = Padded(f.n), ldb = Padded(f.k);
    for (size_t r = 0; r < rows; ++r) {
      const RowScales scales =
          factor == 0 ? RowScales() : ComputeScales(steps, p.dy_squares_R[begin + r], p.x_squares_R[begin + r]);
      scale_R_[r] = scales.dy;
      other_scale_R_[r] = scales.x;
      const uint64_t word = Mix(Mix(seed + kGolden * (i + 1)) + kGolden * (r + 1));
      seed_R_[r] = static_cast<uint32_t>(word);
      other_seed_R_[r] = static_cast<uint32_t>(word >> 32);
    }
    int16_t *const a = p.a_RN + begin * lda, *const b_RK = p.b_RK + begin * ldb;
    ops_->quantise_rows({.x_RN = f.dy_RN,
                         .ldx = f.lddy,
                         .scale_R = scale_R_.data(),
                         .seed_R = seed_R_.data(),
                         .y_RN = a,
                         .ldy = lda,
                         .rows = rows,
                         .n = f.n,
                         .largest_R = p.largest_a_R + begin,
                         .squares_R = squares_R_.data()});
    ops_->quantise_rows({.x_RN = f.x_RK,
                         .ldx = f.ldx,
                         .scale_R = other_scale_R_.data(),
                         .seed_R = other_seed_R_.data(),
                         .y_RN = b_RK,
                         .ldy = ldb,
                         .rows = rows,
                         .n = f.k,
                         .largest_R = p.largest_b_R + begin,
                         .squares_R = squares_R_.data() + rows});
    if (factor == 0) continue;
    const bool fits =
        std::all_of(squares_R_.data(), squares_R_.data() + 2 * rows, [](int64_t s) { return s < kMostRowSquares; });
    if (!fits) return std::numeric_limits<double>::infinity();
    squares += ops_->integer_outer_squares(
        {.a_RN = a, .lda = lda, .b_RK = b_RK, .ldb = ldb, .rows = rows, .n = f.n, .k = f.k});
  }
  return squares;
}

// Adds the vectors and table rows of record b to the sum; with sign -1 subtracts them again. Returns the sum of
// squares.
double IntegerGradients::AddRest(size_t b, float factor, int32_t sign) {
  double squares = 0;
  for (const VectorFactor& f : vectors_) {
    squares += sum_->Add(0, trained_->offset(f.parameter) + f.first, f.g_BN + b * f.n, f.n, factor, sign);
  }
  for (const RowsFactor& f : rows_) {
    row_gradient_.Assign(*ops_, SliceRecordArgs(f, b));
    const std::span<const int32_t> ids = row_gradient_.ids();
    for (size_t r = 0; r < ids.size(); ++r) {
      squares += sum_->Add(0, trained_->offset(f.parameter) + static_cast<size_t>(ids[r]) * f.d, row_gradient_.row(r),
                           f.d, factor, sign);
    }
  }
  return squares;
}

// When this returns, record b's contribution is known and within the bound. Its products are not added yet.
void IntegerGradients::Bound(size_t b) {
  const double norm = std::sqrt(SquaredNorm(b));
  RecordOutcome& outcome = outcomes_[b] = MakeOutcome(clip_, norm);
  // Rounding makes the integers slightly longer than the numbers that they represent.
  double factor = outcome.factor;
  if (norm > 0) factor = std::min(factor, kShrink * clip_.l2_norm_bound() / norm);
  const double most = sum_->MaxSumSquares();
  for (int i = 0; i < kMostTries && outcome.finite && factor > 0; ++i) {
    const double products = Quantise(b, factor);
    const double squares = products + AddRest(b, static_cast<float>(factor), 1);
    // Check the bound on what will really be added, not on the norm of the floats.
    if (squares <= most) {
      outcome.factor = factor;
      return;
    }
    AddRest(b, static_cast<float>(factor), -1);
    factor *= std::isfinite(squares) ? kShrink * std::min(1.0, std::sqrt(most / squares)) : 0.5;
  }
  outcome.within = !outcome.finite || outcome.factor == 0;
  outcome.factor = 0;
  Quantise(b, 0);
}

std::span<const RecordOutcome> IntegerGradients::FinishRecords() {
  for (size_t b = 0; b < num_records_; ++b) Bound(b);
  for (const Product& p : products_) {
    const OuterFactor& f = p.factor;
    sum_->AddOuter(trained_->offset(f.parameter) + f.first_row * f.k, {.a_RN = p.a_RN,
                                                                       .lda = Padded(f.n),
                                                                       .largest_a_R = p.largest_a_R,
                                                                       .b_RK = p.b_RK,
                                                                       .ldb = Padded(f.k),
                                                                       .largest_b_R = p.largest_b_R,
                                                                       .sum_NK = nullptr,
                                                                       .ldsum = f.k,
                                                                       .rows = f.records.rows,
                                                                       .n = f.n,
                                                                       .k = f.k,
                                                                       .scratch = scratch_.data()});
  }
  return {outcomes_.data(), num_records_};
}

}  // namespace wisp
