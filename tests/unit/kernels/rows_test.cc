// Ops that look rows up and move them, masks, and sums over several records, for every table: correct and perturbed,
// over the test sizes, misaligned, with guards. Ops that only move data must be exact to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/reference/reference.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::rows_test {
namespace {

constexpr double kNothing = 1e-30;  // the tolerance of exact results

std::vector<int32_t> Ids(std::mt19937_64& random, size_t rows, size_t items) {
  std::vector<int32_t> ids(rows);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % (items + 1)) - 1;
  return ids;
}

// Records of `rows` rows in total; some may be empty.
struct SomeRecords : RecordRows {
  SomeRecords(std::mt19937_64& random, size_t all) {
    for (size_t more = random() % 3; more > 0; --more) Add(random() % (all - rows() + 1));
    Add(all - rows());
  }
};

double CheckMap(const OpTable& ops, size_t n, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Function function = variant % 2 == 0 ? Function::kTanh : Function::kSquare;
  Row x(n, random, 2.0f), y(n);
  const std::vector<double> xd = x.Double();
  GuardedMatrix& out = variant < 2 ? x : y;
  if (n > 0) PlanPerturbation(out.data(), 1e-4 * (1 + xd[0] * xd[0]));
  ops.map({.x = x.data(), .y = out.data(), .n = n, .function = function});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) {
    const double expected = function == Function::kTanh ? std::tanh(xd[i]) : xd[i] * xd[i];
    meter.Add(out.data()[i], expected, 4 * kUlp * std::abs(expected));
  }
  EXPECT_TRUE(out.GuardsIntact());
  return meter.worst();
}

double CheckClear(const OpTable& ops, size_t n, int, uint64_t seed) {
  std::mt19937_64 random(seed);
  Row y(n, random, 1.0f);
  if (n > 0) PlanPerturbation(y.at(0, n - 1), 1e-3);
  ops.clear({.y = y.data(), .bytes = n * sizeof(float)});
  ErrorMeter meter;
  for (size_t i = 0; i < n; ++i) meter.Add(y.data()[i], 0, kNothing);
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

double CheckCopyRows(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 5, all = rows + 3;
  GuardedMatrix x(all, d, d + 3), y(all, d, d + 2);
  x.Fill(random, std::normal_distribution<float>());
  y.Fill(-7.0f);
  std::vector<uint32_t> from(all), to(all);
  std::iota(from.begin(), from.end(), 0u);
  std::iota(to.begin(), to.end(), 0u);
  if (variant % 2 == 1) std::shuffle(from.begin(), from.end(), random);
  if (variant >= 2) std::shuffle(to.begin(), to.end(), random);
  if (d > 0) PlanPerturbation(y.at(to[0], d - 1), 1e-3);
  ops.copy_rows({.x_RD = x.data(),
                 .ldx = x.ld(),
                 .from_R = variant % 2 == 1 ? from.data() : nullptr,
                 .y_RD = y.data(),
                 .ldy = y.ld(),
                 .to_R = variant >= 2 ? to.data() : nullptr,
                 .rows = rows,
                 .d = d});
  ErrorMeter meter;
  for (size_t r = 0; r < all; ++r) {
    for (size_t i = 0; i < d; ++i) meter.Add(*y.at(to[r], i), r < rows ? *x.at(from[r], i) : -7.0f, kNothing);
  }
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

double CheckMeanRows(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = random() % 9;
  const SomeRecords some(random, rows);
  const Segments records = variant == 0 ? Segments{.rows = rows} : some.segments();
  Row x(rows * d, random, 1.0f), y(records.num_records * d);
  y.Fill(NAN);
  if (d > 0) PlanPerturbation(y.at(0, d - 1), 1e-3);
  ops.mean_rows({.x_RD = x.data(), .y_BD = y.data(), .records = records, .d = d});
  ErrorMeter meter;
  for (size_t b = 0; b < records.num_records; ++b) {
    const auto n = static_cast<double>(records.size(b));
    for (size_t i = 0; i < d; ++i) {
      double sum = 0, magnitudes = 0;
      for (size_t r = records.begin(b); r < records.begin(b) + records.size(b); ++r)
        sum += x.data()[r * d + i], magnitudes += std::abs(x.data()[r * d + i]);
      meter.Add(y.data()[b * d + i], n > 0 ? sum / n : 0, 4 * kUlp * magnitudes + kNothing);
    }
  }
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

double CheckMeanRowsBackward(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 8;
  const SomeRecords some(random, rows);
  const Segments records = variant == 0 ? Segments{.rows = rows} : some.segments();
  Row dy(records.num_records * d, random, 1.0f), dx(rows * d);
  dx.Fill(NAN);
  if (d > 0) PlanPerturbation(dx.at(0, d - 1), 1e-3);
  ops.mean_rows_backward({.dy_BD = dy.data(), .dx_RD = dx.data(), .records = records, .d = d});
  ErrorMeter meter;
  for (size_t b = 0; b < records.num_records; ++b) {
    for (size_t r = records.begin(b); r < records.begin(b) + records.size(b); ++r) {
      for (size_t i = 0; i < d; ++i) {
        const double expected = dy.data()[b * d + i] / static_cast<double>(records.size(b));
        meter.Add(dx.data()[r * d + i], expected, 4 * kUlp * std::abs(expected) + kNothing);
      }
    }
  }
  EXPECT_TRUE(dx.GuardsIntact());
  return meter.worst();
}

double CheckGatherColumns(const OpTable& ops, size_t columns, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 5, n = 6;
  const int32_t first = variant % 2 == 0 ? 0 : 4;
  GuardedMatrix x(rows, n, n + 1), y(rows, columns, columns + 2);
  x.Fill(random, std::normal_distribution<float>());
  y.Fill(-7.0f);
  std::vector<int32_t> wanted = Ids(random, columns, 12);  // some before, some within and some after
  if (columns > 0) PlanPerturbation(y.at(rows - 1, columns - 1), 1e-3);
  ops.gather_columns({.x_RN = x.data(),
                      .ldx = x.ld(),
                      .column_J = wanted.data(),
                      .first = first,
                      .y_RJ = y.data(),
                      .ldy = y.ld(),
                      .rows = rows,
                      .n = n,
                      .columns = columns});
  ErrorMeter meter;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t j = 0; j < columns; ++j) {
      const bool there = wanted[j] >= first && wanted[j] < first + static_cast<int32_t>(n);
      meter.Add(*y.at(r, j), there ? *x.at(r, static_cast<size_t>(wanted[j] - first)) : -7.0f, kNothing);
    }
  }
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

double CheckPositionIds(const OpTable& ops, size_t rows, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const SomeRecords records(random, rows);
  const std::vector<int32_t> ids = Ids(random, rows, 3);
  const size_t end = variant % 2 == 0 ? 0 : rows + 5;
  BasicGuardedMatrix<int32_t> positions(1, rows, rows + 1);
  if (rows > 0) PlanPerturbation(positions.data(), 1);
  ops.position_ids({.ids_R = ids.data(), .position_R = positions.data(), .records = records.segments(), .end = end});
  ErrorMeter meter;
  for (size_t b = 0; b < records.num(); ++b) {
    for (size_t r = records.begin[b]; r < records.begin[b + 1]; ++r) {
      const size_t position = end == 0 ? r - records.begin[b] : end - (records.begin[b + 1] - r);
      meter.Add(positions.data()[r], ids[r] < 0 ? -1 : static_cast<double>(position), kNothing);
    }
  }
  EXPECT_TRUE(positions.GuardsIntact());
  return meter.worst();
}

double CheckEmbedVariance(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 6, items = 5;
  Row variance(items), y(rows * d);
  for (size_t i = 0; i < items; ++i) variance.data()[i] = static_cast<float>(i) * (variant % 2 == 0 ? 0.3f : 1e18f);
  std::vector<int32_t> ids = Ids(random, rows, items);
  ids[0] = 2;
  y.Fill(NAN);
  if (d > 0) PlanPerturbation(y.data(), variant % 2 == 0 ? 1e-3 : 1e15);
  ops.embed_variance({.variance_M = variance.data(),
                      .ids_T = ids.data(),
                      .y_TD = y.data(),
                      .rows = rows,
                      .d = d,
                      .scale = 1.5f,
                      .position_variance = 0.25f});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * d; ++i) {
    const int32_t id = ids[i / d];
    const double expected = id < 0 ? 0 : std::min<double>(2.25 * variance.data()[id] + 0.25, kMaxVariance);
    meter.Add(y.data()[i], expected, 4 * kUlp * expected + kNothing);
  }
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

// Variant: which of the two tables is float16; 3 has no positions.
double CheckEmbedHalf(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const size_t rows = 1 + random() % 6, items = 5;
  const bool half_table = variant != 1, half_positions = variant == 1 || variant == 2, positions = variant != 3;
  Row table(items * d, random, 1.0f), position(rows * d, random, 1.0f), y(rows * d);
  std::vector<Half> tables(items * d), of_positions(rows * d);
  for (size_t i = 0; i < items * d; ++i) {
    tables[i] = ToHalf(table.data()[i] * (i % 5 == 0 ? 1e-6f : 1.0f));
    if (half_table) table.data()[i] = ToFloat(tables[i]);
  }
  for (size_t i = 0; i < rows * d; ++i) {
    of_positions[i] = ToHalf(position.data()[i]);
    if (half_positions) position.data()[i] = ToFloat(of_positions[i]);
  }
  std::vector<int32_t> ids = Ids(random, rows, items);
  y.Fill(NAN);
  if (d > 0) PlanPerturbation(y.data(), 1e-3);
  ops.embed_half({.table_MD = half_table ? nullptr : table.data(),
                  .half_table_MD = half_table ? tables.data() : nullptr,
                  .positions_TD = positions && !half_positions ? position.data() : nullptr,
                  .half_positions_TD = positions && half_positions ? of_positions.data() : nullptr,
                  .ids_T = ids.data(),
                  .y_TD = y.data(),
                  .rows = rows,
                  .d = d,
                  .scale = 3.3f});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * d; ++i) {
    const int32_t id = ids[i / d];
    float expected = id < 0 ? 0.0f : 3.3f * table.data()[static_cast<size_t>(id) * d + i % d];
    if (id >= 0 && positions) expected += position.data()[i];
    meter.Add(y.data()[i], expected, kNothing);
  }
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Checks the words of the contract one by one.
double CheckDrawKeep(const OpTable& ops, size_t rows, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  const SomeRecords records(random, rows);
  const size_t width = 1 + random() % 7;
  const uint32_t threshold = std::vector<uint32_t>{0, 6554, 32768, 65536}[static_cast<size_t>(variant)];
  const uint64_t site = random() % 9, golden = 0x9e3779b97f4a7c15u;
  std::vector<RecordOptions> options(records.begin.size());
  for (RecordOptions& o : options) o.dropout_seed = random();
  const bool with_options = random() % 3 != 0;
  BasicGuardedMatrix<uint8_t> keep(1, rows * width, rows * width + 1);
  if (rows > 0) PlanPerturbation(keep.data(), 1);
  ops.draw_keep({.keep_RW = keep.data(),
                 .records = records.segments(),
                 .options_B = with_options ? options.data() : nullptr,
                 .width = width,
                 .site = site,
                 .threshold = threshold});
  ErrorMeter meter;
  for (size_t b = 0; b < records.num(); ++b) {
    const uint64_t key = MixBits((with_options ? options[b].dropout_seed : 0) + golden * (site + 1));
    for (size_t i = 0; i < records.size(b) * width; ++i) {
      const uint64_t word = MixBits(key + golden * (i / 4)) >> 16 * (i % 4) & 0xffff;
      meter.Add(keep.data()[records.begin[b] * width + i], word < threshold ? 0 : 1, kNothing);
    }
  }
  EXPECT_TRUE(keep.GuardsIntact());
  return meter.worst();
}

TEST(Map, EqualsTheFunctionInDouble) { Hold<&OpTable::map>(1, CheckMap); }
TEST(Clear, LeavesZeros) { Hold<&OpTable::clear>(2, CheckClear); }
TEST(CopyRows, CopiesTheNamedRowsAlone) { Hold<&OpTable::copy_rows>(3, CheckCopyRows); }
TEST(MeanRows, IsTheMeanOfEachRecordsRows) { Hold<&OpTable::mean_rows>(10, CheckMeanRows); }
TEST(MeanRowsBackward, GivesEachRowItsShare) { Hold<&OpTable::mean_rows_backward>(11, CheckMeanRowsBackward); }
TEST(GatherColumns, CopiesTheColumnsThatAreThere) { Hold<&OpTable::gather_columns>(4, CheckGatherColumns); }
TEST(PositionIds, CountFromTheStartOrToTheEnd) { Hold<&OpTable::position_ids>(5, CheckPositionIds); }
TEST(EmbedVariance, EqualsItsFormula) { Hold<&OpTable::embed_variance>(6, CheckEmbedVariance); }
TEST(EmbedHalf, EqualsItsFormulaToTheBit) { Hold<&OpTable::embed_half>(7, CheckEmbedHalf); }
TEST(DrawKeep, EqualsItsContractToTheBit) { Hold<&OpTable::draw_keep>(8, CheckDrawKeep); }

TEST(DotRows, IsTheSumOfTheProductsOfRowsThatCount) {
  std::mt19937_64 random(TestSeed(9));
  for (const OpTable* ops : TestedOps()) {
    for (size_t d : kTestSizes) {
      const size_t rows = random() % 6;
      GuardedMatrix x(rows, d, d + 1), y(rows, d, d + 3);
      x.Fill(random, std::normal_distribution<float>());
      y.Fill(random, std::normal_distribution<float>());
      const std::vector<int32_t> ids = Ids(random, rows, 2);
      double expected = 0, magnitudes = 0;
      for (size_t i = 0; i < rows * d; ++i) {
        if (ids[i / d] < 0) continue;
        const double product = double{*x.at(i / d, i % d)} * double{*y.at(i / d, i % d)};
        expected += product;
        magnitudes += std::abs(product);
      }
      const double sum = ops->dot_rows({.x_RD = x.data(),
                                        .ldx = x.ld(),
                                        .y_RD = y.data(),
                                        .ldy = y.ld(),
                                        .ids_R = ids.data(),
                                        .rows = rows,
                                        .d = d});
      EXPECT_NEAR(sum, expected, 1e-12 * magnitudes) << ops->name << " " << d;
    }
  }
}

// ---- Sums over the rows of several records: the bits of one call a record. ------------------------------------------

struct Inputs {
  size_t rows, d;
  SomeRecords records;
  Row x, dy, gain, mean, rstd, dx, dx_alone, sums, sums_alone, more_sums, more_sums_alone;
  Inputs(std::mt19937_64& random, size_t width)
      : rows(1 + random() % 9),
        d(width),
        records(random, rows),
        x(rows * d, random, 1.0f),
        dy(rows * d, random, 1.0f),
        gain(d, random, 1.0f),
        mean(rows, random, 0.1f),
        rstd(rows, random, 1.0f),
        dx(rows * d),
        dx_alone(rows * d),
        sums(num() * d),
        sums_alone(num() * d),
        more_sums(num() * d),
        more_sums_alone(num() * d) {}
  size_t num() const { return records.num(); }
  size_t begin(size_t b) const { return records.begin[b]; }
  size_t size(size_t b) const { return records.size(b); }
  double Differences() const {
    ErrorMeter meter;
    for (size_t i = 0; i < rows * d; ++i) meter.Add(dx.data()[i], dx_alone.data()[i], kNothing);
    for (size_t i = 0; i < num() * d; ++i) {
      meter.Add(sums.data()[i], sums_alone.data()[i], kNothing);
      meter.Add(more_sums.data()[i], more_sums_alone.data()[i], kNothing);
    }
    EXPECT_TRUE(dx.GuardsIntact() && sums.GuardsIntact() && more_sums.GuardsIntact());
    return meter.worst();
  }
};

double CheckColumnSums(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Inputs in(random, d);
  const Store store = variant % 2 == 0 ? Store::kAssign : Store::kAdd;
  ColumnSumArgs<> args{.ldx = d, .n = d, .scale = -0.37f, .store = store};
  const OpTable& whole = TestedTable(ops.name);
  for (size_t b = 0; b < in.num(); ++b) {
    args.x_RN = in.x.data() + in.begin(b) * d, args.out_N = in.sums_alone.data() + b * d, args.rows = in.size(b);
    whole.column_sum(args);
  }
  args.x_RN = in.x.data(), args.out_N = in.sums.data(), args.rows = in.rows, args.records = in.records.segments();
  if (d > 0) PlanPerturbation(in.sums.at(0, in.num() * d - 1), 1e-3);
  ops.column_sum(args);
  return in.Differences();
}

double CheckLayerNormSums(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Inputs in(random, d);
  LayerNormBackwardArgs<> args{
      .gain_D = in.gain.data(), .d = d, .store = variant % 2 == 0 ? Store::kAssign : Store::kAdd};
  const OpTable& whole = TestedTable(ops.name);
  for (size_t b = 0; b < in.num(); ++b) {
    const size_t begin = in.begin(b);
    args.dy_RD = in.dy.data() + begin * d, args.x_RD = in.x.data() + begin * d, args.rows = in.size(b);
    args.dx_RD = in.dx_alone.data() + begin * d, args.mean_R = in.mean.data() + begin;
    args.rstd_R = in.rstd.data() + begin, args.dgain_D = in.sums_alone.data() + b * d;
    args.dbias_D = in.more_sums_alone.data() + b * d;
    whole.layer_norm_backward(args);
  }
  args.dy_RD = in.dy.data(), args.x_RD = in.x.data(), args.rows = in.rows, args.records = in.records.segments();
  args.dx_RD = in.dx.data(), args.mean_R = in.mean.data(), args.rstd_R = in.rstd.data();
  args.dgain_D = in.sums.data(), args.dbias_D = in.more_sums.data();
  if (d > 0) PlanPerturbation(in.more_sums.at(0, in.num() * d - 1), 1e-3);
  ops.layer_norm_backward(args);
  return in.Differences();
}

double CheckRmsNormSums(const OpTable& ops, size_t d, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  Inputs in(random, d);
  RmsNormBackwardArgs<> args{
      .gain_D = in.gain.data(), .d = d, .store = variant % 2 == 0 ? Store::kAssign : Store::kAdd};
  const OpTable& whole = TestedTable(ops.name);
  for (size_t b = 0; b < in.num(); ++b) {
    const size_t begin = in.begin(b);
    args.dy_RD = in.dy.data() + begin * d, args.x_RD = in.x.data() + begin * d, args.rows = in.size(b);
    args.dx_RD = in.dx_alone.data() + begin * d, args.rstd_R = in.rstd.data() + begin;
    args.dgain_D = in.sums_alone.data() + b * d;
    whole.rms_norm_backward(args);
  }
  args.dy_RD = in.dy.data(), args.x_RD = in.x.data(), args.rows = in.rows, args.records = in.records.segments();
  args.dx_RD = in.dx.data(), args.rstd_R = in.rstd.data(), args.dgain_D = in.sums.data();
  if (d > 0) PlanPerturbation(in.sums.at(0, in.num() * d - 1), 1e-3);
  ops.rms_norm_backward(args);
  return in.Differences();
}

TEST(SeveralRecords, ColumnSumsAreThoseOfOneCallARecord) { Hold<&OpTable::column_sum>(10, CheckColumnSums); }
TEST(SeveralRecords, LayerNormsSumsAreThoseOfOneCallARecord) {
  Hold<&OpTable::layer_norm_backward>(11, CheckLayerNormSums);
}
TEST(SeveralRecords, RmsNormsSumsAreThoseOfOneCallARecord) { Hold<&OpTable::rms_norm_backward>(12, CheckRmsNormSums); }

// More records than a launch of a GPU takes at once.
TEST(SeveralRecords, HundredsPassTogether) {
  constexpr size_t kRecords = 300, kWidth = 3;
  RecordRows sizes;
  for (size_t b = 0; b < kRecords; ++b) sizes.Add(b % 4);
  const std::vector<uint32_t>& begin = sizes.begin;
  const size_t rows = sizes.rows();
  const Segments records = sizes.segments();
  std::vector<RecordOptions> options(kRecords);
  std::mt19937_64 random(TestSeed(17));
  for (RecordOptions& o : options) o = {.dropout_seed = random(), .target_weight = static_cast<float>(random() % 7)};
  const std::vector<int32_t> ids = Ids(random, rows, 9);
  const std::vector<float> x(rows * kWidth, 0.5f);
  for (const OpTable* ops : TestedOps()) {
    std::vector<uint8_t> keep(rows * kWidth);
    std::vector<int32_t> positions(rows);
    std::vector<float> sums(kRecords * kWidth), max(rows), sum(rows), logit(rows), weight(rows);
    ops->draw_keep({.keep_RW = keep.data(),
                    .records = records,
                    .options_B = options.data(),
                    .width = kWidth,
                    .site = 2,
                    .threshold = 30000});
    ops->position_ids({.ids_R = ids.data(), .position_R = positions.data(), .records = records, .end = 0});
    ops->column_sum({.x_RN = x.data(),
                     .ldx = kWidth,
                     .out_N = sums.data(),
                     .rows = rows,
                     .n = kWidth,
                     .scale = 2.0f,
                     .store = Store::kAssign,
                     .records = records});
    ops->softmax_start({.target_R = ids.data(),
                        .max_R = max.data(),
                        .sum_R = sum.data(),
                        .target_logit_R = logit.data(),
                        .weight_R = weight.data(),
                        .records = records,
                        .options_B = options.data()});
    for (size_t b = 0; b < kRecords; ++b) {
      const size_t size = begin[b + 1] - begin[b];
      std::vector<uint8_t> own(size * kWidth);
      reference::DrawKeep({.keep_RW = own.data(),
                           .records = {.rows = size},
                           .options_B = &options[b],
                           .width = kWidth,
                           .site = 2,
                           .threshold = 30000});
      EXPECT_TRUE(std::equal(own.begin(), own.end(), keep.begin() + begin[b] * kWidth))
          << ops->name << ", record " << b;
      for (size_t t = 0; t < size; ++t) {
        const size_t r = begin[b] + t;
        EXPECT_EQ(positions[r], ids[r] < 0 ? -1 : static_cast<int32_t>(t)) << ops->name << ", record " << b;
        EXPECT_EQ(weight[r], ids[r] < 0 ? 0.0f : options[b].target_weight) << ops->name << ", record " << b;
      }
      for (size_t j = 0; j < kWidth; ++j) EXPECT_EQ(sums[b * kWidth + j], static_cast<float>(size)) << ops->name;
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::rows_test
