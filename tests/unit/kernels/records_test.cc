// Attention and rotary positions of several records in one call give, to the bit, the results of each alone.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::records_test {
namespace {

// Records of uneven size, 140 of them: more than one launch takes.
struct Records : RecordRows {
  explicit Records(size_t num) {
    for (size_t b = 0; b < num; ++b) {
      Add(b == 1 ? 40 : 1 + b * 7 % 5);
      first_key.push_back(b % 3 == 0 ? 0 : 1);
    }
  }
  std::vector<uint32_t> first_key;
};

std::vector<const OpTable*> Tables() {
  std::vector<const OpTable*> tables;
  for (const OpTable* ops : TestedOps()) {
    if (ops->takes_records) tables.push_back(ops);
  }
  return tables;
}

constexpr size_t kHeads = 4, kKeyHeads = 2, kWidth = 3, kMostRows = 40, kKeepRow = kHeads * kMostRows;
constexpr size_t kQueries = kHeads * kWidth, kKeys = kKeyHeads * kWidth;

// All that attention reads and writes, for all rows.
struct Attention {
  Attention(std::mt19937_64& random, size_t rows) {
    std::normal_distribution<float> normal;
    for (std::vector<float>* x : {&q, &out, &dout, &dq, &out_variance}) x->resize(rows * kQueries);
    for (std::vector<float>* x : {&k, &v, &dk, &dv}) x->resize(rows * kKeys);
    variance.resize(rows * 2 * kKeys), lse.resize(rows * kHeads), keep.resize(rows * kKeepRow);
    for (std::vector<float>* x : {&q, &k, &v, &dout}) {
      for (float& value : *x) value = normal(random);
    }
    for (float& value : variance) value = std::abs(normal(random));
    for (uint8_t& value : keep) value = random() % 4 != 0;
    slopes = {0.1f, 0.2f, 0.3f, 0.4f};
  }
  template <class Args>
  void Describe(Args& a, size_t row, size_t rows, size_t first_key) const {
    a.q = q.data() + row * kQueries, a.k = k.data() + row * kKeys, a.v = v.data() + row * kKeys;
    a.ldq = kQueries, a.ldkv = kKeys, a.ldout = kQueries;
    a.keep_HQT = keep.data() + row * kKeepRow, a.keep_scale = 1.25f;
    a.num_queries = a.num_keys = rows, a.heads = kHeads, a.kv_heads = kKeyHeads, a.head_width = kWidth;
    a.first_key = first_key, a.scale = 0.5f, a.mask = AttentionMask::kCausal;
    a.key_variance = variance.data() + row * 2 * kKeys, a.ldvariance = 2 * kKeys, a.slope_H = slopes.data();
  }
  AttentionForwardArgs<> Forward(size_t row, size_t rows, size_t first_key) {
    AttentionForwardArgs<> a{};
    Describe(a, row, rows, first_key);
    a.out = out.data() + row * kQueries, a.lse_HQ = lse.data() + row * kHeads;
    a.value_variance = a.key_variance + kKeys, a.out_variance = out_variance.data() + row * kQueries;
    a.ldout_variance = kQueries;
    return a;
  }
  AttentionBackwardArgs<> Backward(size_t row, size_t rows, size_t first_key) {
    AttentionBackwardArgs<> a{};
    Describe(a, row, rows, first_key);
    a.out = out.data() + row * kQueries, a.dout = dout.data() + row * kQueries, a.lse_HQ = lse.data() + row * kHeads;
    a.dq = dq.data() + row * kQueries, a.dk = dk.data() + row * kKeys, a.dv = dv.data() + row * kKeys;
    return a;
  }
  template <class Args>
  static Args Of(Args a, const Records& records) {
    a.records = records.segments(), a.first_key_B = records.first_key.data(), a.keep_row = kKeepRow;
    return a;
  }

  std::vector<float> q, k, v, out, dout, dq, dk, dv, variance, out_variance, lse, slopes;
  std::vector<uint8_t> keep;
};

TEST(Records, AttentionOfSeveralIsThatOfEach) {
  if (Tables().empty()) GTEST_SKIP() << "tables of the host take one record in a call";
  for (const OpTable* ops : Tables()) {
    for (size_t num : {size_t{1}, size_t{3}, size_t{140}}) {
      const Records records(num);
      std::mt19937_64 random(TestSeed(1)), again(TestSeed(1));
      Attention together(random, records.rows()), alone(again, records.rows());
      ops->attention_forward(Attention::Of(together.Forward(0, 0, 0), records));
      ops->attention_backward(Attention::Of(together.Backward(0, 0, 0), records));
      for (size_t b = 0; b < num; ++b) {
        ops->attention_forward(alone.Forward(records.begin[b], records.size(b), records.first_key[b]));
        ops->attention_backward(alone.Backward(records.begin[b], records.size(b), records.first_key[b]));
      }
      EXPECT_EQ(together.out, alone.out) << num;
      EXPECT_EQ(together.out_variance, alone.out_variance) << num;
      EXPECT_EQ(together.lse, alone.lse) << num;
      EXPECT_EQ(together.dq, alone.dq) << num;
      EXPECT_EQ(together.dk, alone.dk) << num;
      EXPECT_EQ(together.dv, alone.dv) << num;
    }
  }
}

TEST(Records, RotationOfSeveralIsThatOfEach) {
  if (Tables().empty()) GTEST_SKIP() << "tables of the host take one record in a call";
  constexpr size_t kRotated = 2;
  for (const OpTable* ops : Tables()) {
    for (size_t num : {size_t{1}, size_t{3}, size_t{140}}) {
      const Records records(num);
      std::mt19937_64 random(TestSeed(2));
      std::vector<float> together(records.rows() * kQueries), cos(kMostRows * kRotated / 2), sin(cos.size());
      for (std::vector<float>* x : {&together, &cos, &sin}) {
        for (float& value : *x) value = std::normal_distribution<float>()(random);
      }
      std::vector<float> alone = together;
      RotaryArgs<> a{.x_RD = together.data(),
                     .ldx = kQueries,
                     .cos_TP = cos.data(),
                     .sin_TP = sin.data(),
                     .heads = kHeads,
                     .head_width = kWidth,
                     .rotated = kRotated,
                     .pairs = RotaryPairs::kHalves,
                     .rotation = Rotation::kInverse,
                     .records = records.segments()};
      ops->rotary(a);
      a.records = {};
      for (size_t b = 0; b < num; ++b) {
        a.x_RD = alone.data() + records.begin[b] * kQueries, a.rows = records.size(b);
        ops->rotary(a);
      }
      EXPECT_EQ(together, alone) << num;
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::records_test
