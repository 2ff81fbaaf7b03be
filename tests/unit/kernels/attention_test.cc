// Fused attention of every op table against the reference in double, correct and perturbed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/dual.h"
#include "kernels/reference/reference.h"
#include "tests/unit/kernels/attention_test_util.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::attention_test {
namespace {

std::vector<Shape> Shapes() {
  const Shape large{
      .queries = 200, .keys = 200, .heads = 1, .width = 64, .mask = AttentionMask::kCausal, .dropped = false};
  std::vector<Shape> shapes = {large, large.Varied(), large.Grouped(2, 3), large.Within(50), large.Within(3).Varied()};
  for (size_t keys : {1, 2, 3, 7, 8, 15, 17, 29, 33, 57, 100}) {
    for (AttentionMask mask : {AttentionMask::kCausal, AttentionMask::kFull}) {
      for (bool dropped : {false, true}) {
        const size_t heads = keys % 3 == 0 ? 4 : 1 + keys % 2,
                     width = std::vector<size_t>{1, 3, 8, 16, 33, 64}[keys % 6];
        const Shape square{
            .queries = keys, .keys = keys, .heads = heads, .width = width, .mask = mask, .dropped = dropped};
        const Shape last_queries{
            .queries = 1 + keys / 2, .keys = keys, .heads = heads, .width = width, .mask = mask, .dropped = dropped};
        shapes.push_back(square);
        // Causal: the first queries attend to nothing.
        shapes.push_back(square.From(keys / 3));
        shapes.push_back(last_queries.From(keys / 4));
        shapes.push_back(square.From(keys / 3).Varied());
        shapes.push_back(last_queries.Varied());
        shapes.push_back(square.From(keys / 3).Sloped());
        shapes.push_back(last_queries.Varied().Sloped());
        shapes.push_back(square.From(keys / 3).Grouped(1, 3));
        shapes.push_back(last_queries.Varied().Sloped().Grouped(2, 2));
        if (mask == AttentionMask::kFull) continue;
        shapes.push_back(square.Within(1 + keys / 4).From(keys / 3));
        shapes.push_back(last_queries.Within(1));
        shapes.push_back(last_queries.Within(1 + keys / 2).Varied().Sloped().Grouped(2, 2));
      }
    }
  }
  for (float enormous : {1e12f, 1e20f, 3e38f}) {
    for (size_t keys : {1, 5, 29, 100}) {
      const size_t heads = 1 + keys % 2;
      const Shape causal{
          .queries = keys, .keys = keys, .heads = heads, .width = 33, .mask = AttentionMask::kCausal, .dropped = false};
      const Shape full{
          .queries = keys, .keys = keys, .heads = heads, .width = 16, .mask = AttentionMask::kFull, .dropped = true};
      shapes.push_back(causal.Varied(enormous));
      shapes.push_back(full.From(keys / 3).Varied(enormous));
    }
  }
  return shapes;
}

template <auto kEntry, class Check>
void Hold(Check check) {
  std::mt19937_64 random(TestSeed(71));
  for (const OpTable* ops : TestedOps()) {
    const OpTable perturbed = PerturbedTable<kEntry>(*ops);
    double worst = 0;
    for (const Shape& s : Shapes()) {
      const uint64_t seed = random();
      SCOPED_TRACE(testing::Message() << ops->name << ": " << s.queries << " queries, " << s.keys << " keys, "
                                      << s.heads << " x " << s.width << " over " << s.kv_heads << ", first "
                                      << s.first_key << (s.mask == AttentionMask::kCausal ? ", causal" : ", full")
                                      << (s.dropped ? ", dropped" : "") << (s.varied ? ", varied" : "")
                                      << (s.sloped ? ", sloped" : "") << ", window " << s.window << ", enormous "
                                      << s.enormous);
      const double error = check(*ops, s, seed);
      EXPECT_LE(error, 1);
      worst = std::max(worst, error);
      EXPECT_GT(check(perturbed, s, seed), 1) << "a wrong element went unnoticed";
    }
    std::cout << ops->name << ": largest error " << worst << " of the tolerance\n";
  }
}

TEST(Attention, ForwardEqualsReferenceInDouble) { Hold<&OpTable::attention_forward>(CheckForward); }
// Re-Attention without noise equals attention, to the bit.
TEST(Attention, ZeroVariancesChangeNoBit) {
  for (const OpTable* ops : TestedOps()) {
    for (Shape s : Shapes()) {
      if (!s.varied) continue;
      Problem p(s, 5);
      for (GuardedMatrix* m : {&p.key_variance, &p.value_variance}) m->Fill(0);
      Outputs with(*ops, s, p), without(*ops, s, p);
      ops->attention_forward(ForwardArgs(s, p, with));
      s.varied = false;
      ops->attention_forward(ForwardArgs(s, p, without));
      EXPECT_EQ(ToDouble(with.out), ToDouble(without.out)) << ops->name;
    }
  }
}

// A zero bias equals attention, to the bit.
TEST(Attention, SlopesOfZeroChangeNothing) {
  for (const OpTable* ops : TestedOps()) {
    for (Shape s : Shapes()) {
      if (!s.sloped) continue;
      Problem p(s, 6);
      std::fill(p.slopes.begin(), p.slopes.end(), 0.0f);
      Outputs with(*ops, s, p), without(*ops, s, p);
      ops->attention_forward(ForwardArgs(s, p, with));
      s.sloped = false;
      ops->attention_forward(ForwardArgs(s, p, without));
      EXPECT_EQ(ToDouble(with.out), ToDouble(without.out)) << ops->name;
    }
  }
}

TEST(Attention, BackwardEqualsReferenceInDouble) { Hold<&OpTable::attention_backward>(CheckBackward); }

// A NaN is passed on, but only to its own query; scores that result from it are refused further up.
TEST(Attention, AQueryThatIsNotANumberStaysOne) {
  const Shape plain{.queries = 20, .keys = 20, .heads = 1, .width = 16, .mask = AttentionMask::kCausal};
  for (const OpTable* ops : TestedOps()) {
    for (const Shape& s : {plain, plain.Varied(), plain.Sloped()}) {
      Problem p(s, 11);
      *p.q.at(7, 3) = NAN;
      Outputs to(*ops, s, p);
      ops->attention_forward(ForwardArgs(s, p, to));
      for (size_t i = 0; i < s.queries; ++i) {
        EXPECT_EQ(std::isnan(*to.lse.at(0, i)), i == 7) << ops->name << ", query " << i << ", varied " << s.varied;
        for (size_t c = 0; c < p.d; ++c)
          EXPECT_EQ(std::isnan(*to.out.at(i, c)), i == 7) << ops->name << ", query " << i;
      }
    }
  }
}

// The columns of the heads that each query head reads, one after the other.
struct Repeated : GuardedMatrix {
  Repeated(const GuardedMatrix& m, const Shape& s) : GuardedMatrix(m.rows(), s.heads * s.width, s.heads * s.width) {
    for (size_t r = 0; r < rows(); ++r) {
      for (size_t c = 0; c < cols(); ++c) {
        const size_t read = c / s.width / (s.heads / s.kv_heads);
        *at(r, c) = *m.at(r, read * s.width + c % s.width);
      }
    }
  }
};

// Grouped queries equal attention over keys and values that are repeated for each query head, to the bit.
TEST(Attention, GroupsReadTheHeadThatTheyShare) {
  for (const OpTable* ops : TestedOps()) {
    for (const Shape& s : Shapes()) {
      if (s.kv_heads == 0 || s.varied) continue;
      const Problem p(s, 8);
      const Repeated k(p.k, s), v(p.v, s);
      Outputs grouped(*ops, s, p), repeated(*ops, s, p);
      ops->attention_forward(ForwardArgs(s, p, grouped));
      AttentionForwardArgs<> args = ForwardArgs(s, p, repeated);
      args.k = k.data(), args.v = v.data(), args.ldkv = k.ld(), args.kv_heads = s.heads;
      ops->attention_forward(args);
      EXPECT_EQ(ToDouble(grouped.out), ToDouble(repeated.out)) << ops->name;
    }
  }
}

// If there are as many heads of keys and values as of queries, the bits are the same whether that is given or not.
TEST(Attention, AGroupOfOneChangesNothing) {
  for (const OpTable* ops : TestedOps()) {
    for (Shape s : Shapes()) {
      if (s.kv_heads != 0) continue;
      const Problem p(s, 9);
      Outputs silent(*ops, s, p), said(*ops, s, p);
      ops->attention_forward(ForwardArgs(s, p, silent));
      s.kv_heads = s.heads;
      ops->attention_forward(ForwardArgs(s, p, said));
      EXPECT_EQ(ToDouble(silent.out), ToDouble(said.out)) << ops->name;
    }
  }
}

// Computes the reference's backward pass, which is the oracle of the others, in another way: as the derivative of
// <dout, out>.
struct DualProblem {
  explicit DualProblem(const Shape& s, const Problem& p) : s(s), p(p) {
    for (const GuardedMatrix* m : {&p.q, &p.k, &p.v}) {
      const std::vector<double> values = ToDouble(*m);
      inputs.emplace_back(values.begin(), values.end());
    }
    slopes.assign(p.slopes.begin(), p.slopes.end());
  }
  double Derivative(size_t input, size_t i) {
    inputs[input][i].derivative = 1;
    std::vector<reference::Dual> out(s.queries * p.d), lse(s.heads * s.queries);
    reference::AttentionForward<reference::Dual>(
        Shaped<AttentionForwardArgs<reference::Dual>>(s, {.q = inputs[0].data(),
                                                          .k = inputs[1].data(),
                                                          .v = inputs[2].data(),
                                                          .ldq = p.d,
                                                          .ldkv = p.kv_width,
                                                          .out = out.data(),
                                                          .ldout = p.d,
                                                          .lse_HQ = lse.data(),
                                                          .keep_HQT = s.dropped ? p.keep.data() : nullptr,
                                                          .scratch = nullptr,
                                                          .scale = p.scale,
                                                          .slope_H = s.sloped ? slopes.data() : nullptr}));
    inputs[input][i].derivative = 0;
    const std::vector<double> dout = ToDouble(p.dout);
    double sum = 0;
    for (size_t j = 0; j < out.size(); ++j) sum += dout[j] * out[j].derivative;
    return sum;
  }
  const Shape& s;
  const Problem& p;
  std::vector<std::vector<reference::Dual>> inputs;
  std::vector<reference::Dual> slopes;
};

TEST(Attention, GradientsOfTheReferenceEqualDualNumbers) {
  const Shape plain{.queries = 4, .keys = 5, .heads = 2, .width = 3, .mask = AttentionMask::kCausal, .dropped = true};
  Shape full = plain;
  full.mask = AttentionMask::kFull, full.dropped = false;
  for (const Shape& s : {plain, plain.Grouped(1, 2), plain.Grouped(2, 3).From(1), full.Grouped(2, 2).Sloped()}) {
    const Problem p(s, 10);
    DualProblem dual(s, p);
    const std::vector<double>* gradients[] = {&p.dq, &p.dk, &p.dv};
    for (size_t input = 0; input < 3; ++input) {
      for (size_t i = 0; i < gradients[input]->size(); ++i)
        EXPECT_NEAR((*gradients[input])[i], dual.Derivative(input, i), 1e-12) << input << " " << i;
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::attention_test
