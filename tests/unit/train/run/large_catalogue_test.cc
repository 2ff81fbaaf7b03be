// Catalogues of several tiles: one whose logits are not kept, so that the head computes each tile twice, and one whose
// exponentials are kept, each tile's relative to the maxima up to it. They are compared with the gradient written by
// hand for the graph without blocks, where hidden states are embeddings.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/layers/next_item_head.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::large_catalogue_test {
namespace {

constexpr UniformArchitecture kLarge{.num_items = 20011,
                                     .max_length = 64,
                                     .width = 4,
                                     .num_heads = 1,
                                     .num_blocks = 0,
                                     .inner_width = 4,
                                     .embedding_scale = 2.0f,
                                     .norm = NormPlacement::kPost};
static_assert(size_t{kLarge.num_items} * kLarge.max_length * sizeof(float) > kStoredLogitsBytes);

Architecture ArchitectureWithItems(uint32_t num_items) {
  Architecture a = kLarge;
  a.num_items = num_items;
  return a;
}

std::vector<double> GradientByHand(const Architecture& a, std::span<const float> w, const Record& record) {
  const size_t m = a.num_items, d = a.width, rows = record.inputs.size();
  const size_t positions = ListParameters(a)[1].offset;
  std::vector<double> g(w.size(), 0.0), h(d), z(m), dh(d);
  for (size_t t = 0; t < rows; ++t) {
    const auto id = static_cast<size_t>(record.inputs[t]);
    for (size_t k = 0; k < d; ++k) h[k] = 2.0 * w[id * d + k] + w[positions + t * d + k];
    double sum = 0;
    for (size_t j = 0; j < m; ++j) {
      z[j] = 0;
      for (size_t k = 0; k < d; ++k) z[j] += h[k] * w[j * d + k];
      sum += std::exp(z[j]);
    }
    std::fill(dh.begin(), dh.end(), 0.0);
    for (size_t j = 0; j < m; ++j) {
      const double hit = static_cast<size_t>(record.targets[t]) == j ? 1 : 0;
      const double dz = (std::exp(z[j]) / sum - hit) / static_cast<double>(rows);
      for (size_t k = 0; k < d; ++k) {
        g[j * d + k] += dz * h[k];
        dh[k] += dz * w[j * d + k];
      }
    }
    for (size_t k = 0; k < d; ++k) {
      g[id * d + k] += 2.0 * dh[k];
      g[positions + t * d + k] += dh[k];
    }
  }
  return g;
}

void HoldToGradientByHand(test::Harness& h, const test::OwnedRecord& record) {
  const Architecture& a = h.graph.architecture();
  const std::vector<double> expected = GradientByHand(a, h.flat, record.view());
  const double norm = test::Norm(expected);
  for (NormForm form : {NormForm::kFormed, NormForm::kGram}) {
    FloatGradientSum sum(h.graph.ops(), h.flat.size(), 1);
    PhantomGradients gradients(h.graph.ops(), h.Setup(), {.clip = ClipRule::Flat(1e9), .form = form}, sum);
    EXPECT_NEAR(h.Add(record.view(), gradients).norm, norm, 1e-5 * norm);
    std::vector<double> difference(expected.size());
    for (size_t i = 0; i < expected.size(); ++i) difference[i] = sum.sum()[i] - expected[i];
    EXPECT_LT(test::Norm(difference), 2e-5 * norm);
  }
}

TEST(LargeCatalogue, GradientAndNormEqualThoseWrittenOut) {
  test::Harness h(kLarge, test::RandomWeights(kLarge, 1), kernels::BestOps());
  test::OwnedRecord record = test::RandomRecord(kLarge.num_items, 50, 2);
  record.inputs[7] = record.inputs[3];  // the same item twice: the cross term
  HoldToGradientByHand(h, record);
}

// The largest logit of a row is in the first tile, in the last, or anywhere.
TEST(LargeCatalogue, KeptExponentialsGiveTheGradientWhereverTheMaximumLies) {
  const Architecture a = ArchitectureWithItems(2 * kHeadTile + 200);
  for (const kernels::OpTable* ops : {&kernels::BestOps(), &kernels::ReferenceOps()}) {
    for (const size_t loud : {size_t{0}, size_t{2 * kHeadTile + 150}, size_t{kHeadTile + 7}}) {
      std::vector<float> weights = test::RandomWeights(a, 3);
      for (size_t k = 0; k < a.width; ++k) weights[loud * a.width + k] *= 12;
      test::Harness h(a, weights, *ops);
      HoldToGradientByHand(h, test::RandomRecord(a.num_items, 50, 4));
    }
  }
}

// Above max_formed_bytes the automatic choice must not hold scratch of the table's size.
TEST(LargeCatalogue, AutomaticFormKeepsTheScratchSmall) {
  const kernels::OpTable& ops = kernels::BestOps();
  test::Harness h(kLarge, test::RandomWeights(kLarge, 1), ops);
  FloatGradientSum sum(ops, h.flat.size(), 1);
  const PhantomGradients formed(ops, h.Setup(), {.clip = ClipRule::Flat(1)}, sum);
  const PhantomGradients gram(ops, h.Setup(), {.clip = ClipRule::Flat(1), .max_formed_bytes = 100000}, sum);
  EXPECT_GE(formed.scratch_bytes(), size_t{kLarge.num_items} * kLarge.width * sizeof(float));
  EXPECT_LT(gram.scratch_bytes(), formed.scratch_bytes() / 2);
}

}  // namespace
}  // namespace wisp::large_catalogue_test
