// The key/value cache: attention reads it as it reads rows, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/kernels/attention_test_util.h"

namespace wisp::kernels::cached_keys_test {
namespace {

constexpr float kGuard = 777;

// Keys and values of a problem, cached in pieces, with a guard after them.
struct Kept {
  Kept(const OpTable& ops, const Shape& s, const Problem& p, CacheType type, size_t piece)
      : kv_heads(s.KvWidth() / s.width), room((s.keys + ops.cached_panel - 1) / ops.cached_panel * ops.cached_panel) {
    const size_t bytes = kv_heads * 2 * room * s.width * CacheElementBytes(type);
    memory.assign(bytes / sizeof(float), 0);
    memory.push_back(kGuard);
    heads = {.data = memory.data(), .room = room, .type = type};
    // The later pieces come first: each writes its own positions alone.
    const size_t pieces = (s.keys + piece - 1) / piece;
    for (size_t i = pieces; i-- > 0;) {
      const size_t first = i * piece;
      ops.keep_keys({.k = p.k.data() + first * p.k.ld(),
                     .v = p.v.data() + first * p.v.ld(),
                     .ldkv = p.k.ld(),
                     .rows = std::min(piece, s.keys - first),
                     .heads = kv_heads,
                     .head_width = s.width,
                     .position = first,
                     .kept = heads});
    }
  }
  size_t kv_heads, room;
  std::vector<float> memory;
  CachedHeads heads;
};

std::vector<Shape> Shapes() {
  const Shape prompt{.queries = 77, .keys = 77, .heads = 3, .width = 20, .mask = AttentionMask::kCausal};
  const Shape token{.queries = 1, .keys = 65, .heads = 4, .width = 64, .mask = AttentionMask::kCausal};
  const Shape full{.queries = 31, .keys = 32, .heads = 2, .width = 7, .mask = AttentionMask::kFull};
  return {prompt, token, full, prompt.Grouped(2, 3), token.From(9), token.Within(5), token.Sloped(), full.From(3)};
}

std::vector<float> Attended(const OpTable& ops, const Shape& s, const Problem& p, const CachedHeads& kept) {
  Outputs to(ops, s, p);
  AttentionForwardArgs<> args = ForwardArgs(s, p, to);
  if (kept.data == nullptr) {
    ops.attention_forward(args);
  } else {
    args.k = args.v = nullptr;
    ops.attend_cached({args, kept});
  }
  EXPECT_EQ(to.scratch.back(), kScratchGuard);
  std::vector<float> numbers;
  for (size_t r = 0; r < s.queries; ++r) numbers.insert(numbers.end(), to.out.at(r, 0), to.out.at(r, 0) + p.d);
  numbers.insert(numbers.end(), to.lse.at(0, 0), to.lse.at(0, 0) + s.heads * s.queries);
  return numbers;
}

void RoundToHalves(GuardedMatrix& m) {
  for (size_t r = 0; r < m.rows(); ++r) {
    for (size_t c = 0; c < m.cols(); ++c) *m.at(r, c) = ToFloat(ToHalf(*m.at(r, c)));
  }
}

template <class F>
void ForEachKeeping(const F& f) {
  for (const OpTable* ops : TestedOps()) {
    if (ops->keep_keys == nullptr) {
      EXPECT_EQ(ops->cached_panel, 0u) << ops->name;
      continue;
    }
    for (const Shape& s : Shapes()) {
      for (size_t piece : {size_t{1}, size_t{5}, size_t{32}, s.keys}) {
        SCOPED_TRACE(testing::Message() << ops->name << ": " << s.queries << " queries, " << s.keys << " keys, "
                                        << s.heads << " x " << s.width << ", in pieces of " << piece);
        f(*ops, s, piece);
      }
    }
  }
}

TEST(CachedKeys, FloatsAreReadAsRowsAre) {
  ForEachKeeping([](const OpTable& ops, const Shape& s, size_t piece) {
    const Problem p(s, 21);
    const Kept kept(ops, s, p, CacheType::kFloat, piece);
    EXPECT_EQ(kept.memory.back(), kGuard);
    EXPECT_EQ(Attended(ops, s, p, kept.heads), Attended(ops, s, p, {}));
  });
}

TEST(CachedKeys, Float16Cache_IsReadLikeRoundedRows) {
  ForEachKeeping([](const OpTable& ops, const Shape& s, size_t piece) {
    Problem p(s, 22);
    const Kept kept(ops, s, p, CacheType::kHalf, piece);
    EXPECT_EQ(kept.memory.back(), kGuard);
    const std::vector<float> exact = Attended(ops, s, p, {});
    RoundToHalves(p.k);
    RoundToHalves(p.v);
    EXPECT_EQ(Attended(ops, s, p, kept.heads), Attended(ops, s, p, {}));
    EXPECT_NE(Attended(ops, s, p, kept.heads), exact) << "rounding changed nothing: these are no halves";
  });
}

// A NaN, or a number too large for float16, does not turn into a number.
TEST(CachedKeys, NonFiniteFloat16_IsNoticed) {
  const Shape s{.queries = 1, .keys = 40, .heads = 1, .width = 32, .mask = AttentionMask::kCausal};
  for (const OpTable* ops : TestedOps()) {
    if (ops->keep_keys == nullptr) continue;
    for (float wrong : {NAN, INFINITY, -INFINITY, 7e4f}) {
      Problem p(s, 23);
      *p.v.at(11, 3) = wrong;
      const Kept kept(*ops, s, p, CacheType::kHalf, 8);
      EXPECT_FALSE(std::isfinite(Attended(*ops, s, p, kept.heads)[3])) << ops->name << ", " << wrong;
    }
  }
}

// Returns number `at` of the cache, as it is after rounding.
float GetNumber(const Kept& kept, size_t at) {
  return kept.heads.type == CacheType::kHalf ? ToFloat(static_cast<const Half*>(kept.heads.data)[at])
                                             : static_cast<const float*>(kept.heads.data)[at];
}
float AsKept(float x, CacheType type) { return type == CacheType::kHalf ? ToFloat(ToHalf(x)) : x; }

// The layout of the cache: for each head its keys in panels (rows, in a table with panels of one), then values by rows.
// So any reader finds what one op wrote, and no op can hide the mistakes of another.
TEST(CachedKeys, LieWhereTheContractSays) {
  const Shape plain{.queries = 1, .keys = 37, .heads = 3, .width = 5, .mask = AttentionMask::kCausal};
  for (const OpTable* ops : TestedOps()) {
    if (ops->keep_keys == nullptr) continue;
    for (const CacheType type : {CacheType::kFloat, CacheType::kHalf}) {
      for (const Shape& s : {plain, plain.Grouped(2, 2)}) {
        const Problem p(s, 25);
        const Kept kept(*ops, s, p, type, 6);
        const size_t panel = ops->cached_panel, head = 2 * kept.room * s.width;
        std::vector<bool> written(kept.kv_heads * head);
        const auto expect = [&](size_t at, float number) {
          EXPECT_EQ(GetNumber(kept, at), AsKept(number, type)) << ops->name << ", " << at;
          EXPECT_FALSE(written[at]);
          written[at] = true;
        };
        for (size_t h = 0; h < kept.kv_heads; ++h) {
          for (size_t t = 0; t < s.keys; ++t) {
            for (size_t c = 0; c < s.width; ++c) {
              expect(h * head + t / panel * panel * s.width + c * panel + t % panel, *p.k.at(t, h * s.width + c));
              expect(h * head + (kept.room + t) * s.width + c, *p.v.at(t, h * s.width + c));
            }
          }
        }
        for (size_t at = 0; at < written.size(); ++at) {
          if (!written[at]) {
            EXPECT_EQ(GetNumber(kept, at), 0) << ops->name << ": no position is kept at " << at;
          }
        }
        EXPECT_EQ(kept.memory.back(), kGuard);
      }
    }
  }
}

// Each head is written alone, as by threads that share them.
TEST(CachedKeys, HeadsLieBehindEachOther) {
  const Shape all{.queries = 2, .keys = 50, .heads = 3, .width = 16, .mask = AttentionMask::kCausal};
  for (const OpTable* ops : TestedOps()) {
    if (ops->keep_keys == nullptr) continue;
    for (CacheType type : {CacheType::kFloat, CacheType::kHalf}) {
      const Problem p(all, 24);
      const Kept kept(*ops, all, p, type, 50);
      const std::vector<float> together = Attended(*ops, all, p, kept.heads);
      Shape one = all;
      one.heads = 1;
      Outputs to(*ops, one, p);
      AttentionForwardArgs<> args = ForwardArgs(one, p, to);
      args.q += 2 * 16;
      ops->attend_cached({args, kept.heads.From(2, 16)});
      for (size_t r = 0; r < 2; ++r) {
        for (size_t c = 0; c < 16; ++c) EXPECT_EQ(*to.out.at(r, c), together[r * p.d + 2 * 16 + c]) << ops->name;
      }
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::cached_keys_test
