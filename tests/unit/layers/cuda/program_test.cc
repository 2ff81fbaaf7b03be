// Combined launches give the same bits as launches one by one, whatever is asked for, in whatever order, and however it
// is cut into programs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "runtime/core/arena.h"
#ifndef WISP_TEST_GPU
#include "kernels/cuda/emulate/emulate.h"
#endif

namespace wisp::kernels::program_test {
namespace {

const Memory& DeviceMemory() {
  static const Memory memory(cuda::DeviceMemory(), nullptr);
  return memory;
}
const OpTable& Ops() { return cuda::Ops(); }

template <class T>
AlignedArray<T> OnDevice(const std::vector<T>& values) {
  AlignedArray<T> array(values.size(), DeviceMemory());
  DeviceMemory().copy_in(array.data(), values.data(), values.size() * sizeof(T));
  return array;
}

std::vector<float> Numbers(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(size);
  for (float& x : numbers) x = normal(random);
  return numbers;
}

// The memory of the ops: one float array in which each has places to read and to write.
class Board {
 public:
  static constexpr size_t kSize = 40000;
  explicit Board(uint32_t seed) : floats_(OnDevice(Numbers(kSize, seed))) {}
  float* at(size_t i) const { return floats_.data() + i; }
  std::vector<float> Values() const {
    std::vector<float> values(kSize);
    DeviceMemory().copy_out(values.data(), floats_.data(), kSize * sizeof(float));
    return values;
  }

 private:
  AlignedArray<float> floats_;
};

// A piece of work on the board: it reads anywhere and writes to [20000, 40000).
using Work = std::function<void(const Board&)>;

std::vector<float> Run(const std::vector<Work>& works, Launches launches) {
  const Board board(7);
  DeviceMemory().gather(launches);
  for (const Work& work : works) work(board);
  DeviceMemory().gather(Launches::kEach);
  return board.Values();
}

void ExpectSame(const std::vector<Work>& works) {
  const std::vector<float> each = Run(works, Launches::kEach), together = Run(works, Launches::kTogether);
  ASSERT_EQ(std::memcmp(each.data(), together.data(), each.size() * sizeof(float)), 0);
}

Work Product(size_t rows, size_t n, size_t k, size_t from, size_t to) {
  return [=](const Board& b) {
    Ops().linear_forward({.x_RK = b.at(from),
                          .ldx = k,
                          .packed = b.at(1000),
                          .bias_N = b.at(3),
                          .y_RN = b.at(to),
                          .ldy = n,
                          .rows = rows,
                          .n = n,
                          .k = k,
                          .store = Store::kAssign});
  };
}
Work Scale(size_t n, size_t from, size_t to, Store store = Store::kAssign) {
  return [=](const Board& b) { Ops().scale({.x = b.at(from), .y = b.at(to), .n = n, .a = 0.5f, .store = store}); };
}
Work Norm(size_t rows, size_t d, size_t from, size_t to) {
  return [=](const Board& b) {
    Ops().layer_norm_forward({.x_RD = b.at(from),
                              .gain_D = b.at(0),
                              .bias_D = b.at(100),
                              .y_RD = b.at(to),
                              .mean_R = b.at(39000),
                              .rstd_R = b.at(39500),
                              .rows = rows,
                              .d = d,
                              .epsilon = 1e-5f});
  };
}
Work Attend(size_t queries, size_t keys, size_t width) {
  return [=](const Board& b) {
    Ops().attention_forward({.q = b.at(20000),
                             .k = b.at(500),
                             .v = b.at(700),
                             .ldq = 2 * width,
                             .ldkv = 2 * width,
                             .out = b.at(30000),
                             .ldout = 2 * width,
                             .lse_HQ = b.at(38000),
                             .keep_scale = 1,
                             .num_queries = queries,
                             .num_keys = keys,
                             .heads = 2,
                             .head_width = width,
                             .first_key = 0,
                             .scale = 0.3f,
                             .mask = AttentionMask::kCausal});
  };
}

// Each op follows one that writes its input, and precedes one that reads its output: narrow and wide.
TEST(Program, EveryStageGivesTheBitsOfItsOwnLaunch) {
  for (const size_t rows : {1, 3, 8, 9, 40}) {
    for (const size_t d : {8, 33, 64}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows of " << d);
      const std::vector<Work> middle = {
          Product(rows, d, d, 20000, 30000),
          Norm(rows, d, 20000, 30000),
          Attend(rows, rows + 5, d),
          [=](const Board& b) {
            Ops().rms_norm_forward({.x_RD = b.at(20000),
                                    .gain_D = b.at(5),
                                    .y_RD = b.at(30000),
                                    .rstd_R = b.at(39500),
                                    .rows = rows,
                                    .d = d,
                                    .epsilon = 1e-5f});
          },
          [=](const Board& b) {
            Ops().activation_forward({.x = b.at(20000), .y = b.at(30000), .n = rows * d, .kind = Activation::kGelu});
          },
          [=](const Board& b) {
            Ops().gated_activation_forward({.gate_RF = b.at(20000),
                                            .ldgate = d,
                                            .up_RF = b.at(400),
                                            .ldup = d,
                                            .y_RF = b.at(30000),
                                            .ldy = d,
                                            .rows = rows,
                                            .n = d,
                                            .kind = Activation::kSilu});
          },
          [=](const Board& b) {
            Ops().rotary({.x_RD = b.at(20000),
                          .ldx = d,
                          .cos_TP = b.at(0),
                          .sin_TP = b.at(4000),
                          .rows = rows,
                          .heads = 1,
                          .head_width = d,
                          .rotated = d / 2 * 2,
                          .first_position = 2,
                          .pairs = RotaryPairs::kHalves,
                          .rotation = Rotation::kForward});
          },
          [=](const Board& b) {
            Ops().score_tiles({.x_RK = b.at(20000),
                               .packed = b.at(1000),
                               .tile = 16,
                               .tile_stride = 16 * d,
                               .bias_N = nullptr,
                               .y_RN = b.at(30000),
                               .rows = std::min<size_t>(rows, 8),
                               .n = 100,
                               .k = d});
          }};
      for (const Work& work : middle)
        ExpectSame({Scale(rows * d, 300, 20000), work, Scale(rows * d, 30000, 36000), Scale(3, 36000, 37500)});
    }
  }
}

// Rows by id, of floats and of float16, and the best of scores: data other than floats.
TEST(Program, LookUpsAndTheBestOfScoresToo) {
  const auto ids = OnDevice<int32_t>({3, -1, 0, 7, 2});
  const auto halves = OnDevice(std::vector<Half>(8 * 12 + 2000, Half{0x3a01}));
  const auto excluded = OnDevice(std::vector<uint32_t>(100, 0x11));
  const AlignedArray<Scored> best(20, DeviceMemory());
  const AlignedArray<TopKSummary> summary(1, DeviceMemory());
  const AlignedArray<uint64_t> scratch(Ops().top_k_scratch_size(1, 2000, 9), DeviceMemory());
  ExpectSame({[&](const Board& b) {
                Ops().embed_forward({.table_MD = b.at(0),
                                     .positions_TD = b.at(200),
                                     .ids_T = ids.data(),
                                     .y_TD = b.at(20000),
                                     .rows = 5,
                                     .d = 12,
                                     .scale = 2});
              },
              [&](const Board& b) {
                Ops().embed_half({.table_MD = nullptr,
                                  .half_table_MD = halves.data(),
                                  .positions_TD = b.at(20000),
                                  .half_positions_TD = nullptr,
                                  .ids_T = ids.data(),
                                  .y_TD = b.at(21000),
                                  .rows = 5,
                                  .d = 12,
                                  .scale = 2});
              },
              [&](const Board& b) {
                Ops().multiply_half({.w_NK = halves.data(),
                                     .ldw = 8,
                                     .x_K = b.at(21000),
                                     .bias_N = b.at(9),
                                     .y_N = b.at(22000),
                                     .n = 200,
                                     .k = 8});
              }});
  const auto best_of = [&](Launches launches) {
    const Board board(8);
    DeviceMemory().gather(launches);
    Scale(2000, 100, 20000)(board);
    Ops().top_k({.score_RN = board.at(20000),
                 .excluded_RW = excluded.data(),
                 .best_RK = best.data(),
                 .summary_R = summary.data(),
                 .scratch = scratch.data(),
                 .rows = 1,
                 .n = 2000,
                 .k = 9});
    std::vector<Scored> found(9);
    DeviceMemory().copy_out(found.data(), best.data(), 9 * sizeof(Scored));
    DeviceMemory().gather(Launches::kEach);
    return found;
  };
  const std::vector<Scored> each = best_of(Launches::kEach), together = best_of(Launches::kTogether);
  EXPECT_EQ(std::memcmp(each.data(), together.data(), 9 * sizeof(Scored)), 0);
  EXPECT_GE(together[0].score, together[8].score);
}

// Chains of narrow and wide work, each on the output of the one before, with ops in between that are not stages.
TEST(Program, ChainsOfAnyWorkAreDoneInTheirOrder) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<Work> works = {Scale(3000, 100, 20000)};
    for (int i = 0; i < 30; ++i) {
      const size_t from = 20000 + random() % 3 * 4000, to = 20000 + random() % 3 * 4000;
      const size_t rows = 1 + random() % 30;
      if (from == to) continue;
      switch (random() % 5) {
        case 0:
          works.push_back(Product(rows, 60, 60, from, to));
          break;
        case 1:
          works.push_back(Norm(rows, 64, from, to));
          break;
        case 2:
          works.push_back(Scale(1 + random() % 3500, from, to, random() % 2 == 0 ? Store::kAdd : Store::kAssign));
          break;
        case 3:  // not a stage
          works.emplace_back([=](const Board& b) {
            Ops().map({.x = b.at(from), .y = b.at(to), .n = 100, .function = Function::kTanh});
          });
          break;
        default:  // the host's bytes, aligned or not for a program to take them along
          works.emplace_back([=](const Board& b) {
            const std::vector<float> numbers = Numbers(rows * 100, seed);
            DeviceMemory().copy_in(b.at(to), numbers.data(), numbers.size() * sizeof(float) - rows % 2);
          });
      }
    }
    SCOPED_TRACE(seed);
    ExpectSame(works);
  }
}

// Work that is too much for one program, or for any.
TEST(Program, LongAndLargeWorkIsCut) {
  std::vector<Work> works;
  for (size_t i = 0; i < 700; ++i) {
    works.push_back(Scale(40, 20000 + i % 7 * 50, 20000 + (i + 1) % 7 * 50, Store::kAdd));
  }
  works.emplace_back([](const Board& b) {
    const std::vector<float> many = Numbers(9000, 3);
    DeviceMemory().copy_in(b.at(21000), many.data(), many.size() * sizeof(float));
  });
  works.push_back(Scale(9000, 21000, 30000, Store::kAdd));
  ExpectSame(works);
}

// A copy out brings the results of all earlier work, of any size. Each time they are different.
TEST(Program, CopiesOutSeeAllThatCameBefore) {
  const Board board(9);
  const std::vector<float> before = board.Values();
  DeviceMemory().gather(Launches::kTogether);
  size_t first = 100;
  for (const size_t size : {1, 3, 500, 4096, 9000, 2}) {
    Scale(9000, ++first, 20000)(board);
    Scale(9000, 20000, 30000)(board);
    std::vector<float> values(size);
    DeviceMemory().copy_out(values.data(), board.at(30000), size * sizeof(float));
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(values[i], before[first + i] * 0.25f) << i << " of " << size;
  }
  Scale(4, 100, 20000)(board);
  EXPECT_TRUE(DeviceMemory().wait());
  DeviceMemory().gather(Launches::kEach);
}

#ifndef WISP_TEST_GPU
TEST(Program, IsOneLaunch) {
  const Board board(2);
  DeviceMemory().gather(Launches::kTogether);
  const uint64_t before = cuda::emulate::NumLaunches();
  const std::vector<float> numbers(1000);
  DeviceMemory().copy_in(board.at(0), numbers.data(), numbers.size() * sizeof(float));
  for (int i = 0; i < 40; ++i) Norm(20, 64, 100, 20000)(board);
  EXPECT_EQ(cuda::emulate::NumLaunches(), before);
  float one = 0;
  DeviceMemory().copy_out(&one, board.at(20000), sizeof one);
  EXPECT_EQ(cuda::emulate::NumLaunches(), before + 1);
  DeviceMemory().gather(Launches::kEach);
  Norm(20, 64, 100, 20000)(board);
  EXPECT_EQ(cuda::emulate::NumLaunches(), before + 2);
}

// A device that refuses launches whose blocks wait for each other, as a share of a GPU may: for the rest of the process
// every op is launched by itself.
TEST(ProgramDeathTest, RefusedLaunch_fallsBackWithTheSameBits) {
  std::vector<Work> works = {Scale(9000, 100, 20000), Norm(20, 64, 20000, 30000), Product(30, 60, 60, 20000, 30000),
                             Scale(3, 30000, 36000)};
  for (size_t i = 0; i < 200; ++i) works.push_back(Scale(9000, 30000, 20000 + i % 2, Store::kAdd));
  const std::vector<float> each = program_test::Run(works, Launches::kEach);
  const auto falls_back = [&] {
    cuda::emulate::RefuseTogether(true);
    const std::vector<float> refused = program_test::Run(works, Launches::kTogether);
    const uint64_t before = cuda::emulate::NumLaunches();
    const std::vector<float> later = program_test::Run(works, Launches::kTogether);
    return std::memcmp(each.data(), refused.data(), each.size() * sizeof(float)) == 0 && later == refused &&
           cuda::emulate::NumLaunches() == before + works.size();
  };
  EXPECT_EXIT(std::_Exit(falls_back() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace wisp::kernels::program_test
