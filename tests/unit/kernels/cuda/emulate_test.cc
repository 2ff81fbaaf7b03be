// The emulator of a GPU finds the faults that it promises to find: each kernel here has one fault, and its twin has
// none.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

#include "kernels/cuda/device_code.h"
#include "kernels/cuda/results.h"

namespace wisp::kernels::cuda::emulate_test {
namespace {

constexpr unsigned kThreads = 64;

enum class Fault { kNone, kNoBarrier, kOutOfBounds, kUnwritten, kTwoWriters, kWriteUnderRead };

// y <- x in reverse, through shared memory.
template <Fault kFault>
__global__ void Reverse(const int* x, int* y) {
  __shared__ Shared<int, kThreads> row;
  const unsigned i = threadIdx.x;
  if (kFault != Fault::kUnwritten || i > 0) row[kFault == Fault::kTwoWriters ? i / 2 : i] = x[i];
  if (kFault != Fault::kNoBarrier) __syncthreads();
  y[i] = row[kThreads - 1 - i + (kFault == Fault::kOutOfBounds ? 1 : 0)];
  if (kFault == Fault::kWriteUnderRead) row[i] = 0;
}

template <Fault kFault>
std::vector<int> Reversed() {
  std::vector<int> x(kThreads), y(kThreads);
  for (unsigned i = 0; i < kThreads; ++i) x[i] = static_cast<int>(i);
  Launch<Reverse<kFault>>({.threads = kThreads}, x.data(), y.data());
  return y;
}

TEST(Emulate, ASoundKernelRuns) {
  const std::vector<int> y = Reversed<Fault::kNone>();
  for (unsigned i = 0; i < kThreads; ++i) EXPECT_EQ(y[i], static_cast<int>(kThreads - 1 - i));
}

TEST(EmulateDeathTest, FaultsOfSharedMemoryEndTheProcess) {
  EXPECT_DEATH(Reversed<Fault::kNoBarrier>(), "emulate_test.cc:[0-9]+: shared memory is read");
  EXPECT_DEATH(Reversed<Fault::kOutOfBounds>(), "emulate_test.cc:[0-9]+: an access of shared memory out of bounds");
  EXPECT_DEATH(Reversed<Fault::kUnwritten>(), "emulate_test.cc:[0-9]+: shared memory is read that nothing has written");
  EXPECT_DEATH(Reversed<Fault::kTwoWriters>(), "emulate_test.cc:[0-9]+: two threads write the same place");
  EXPECT_DEATH(Reversed<Fault::kWriteUnderRead>(),
               "emulate_test.cc:[0-9]+: shared memory is (read|written) while another");
}

template <unsigned kSize>
__global__ void Fill(int* y) {
  __shared__ Shared<int, kSize> row;
  __shared__ Shared<int, 1024> more;
  row[threadIdx.x] = 1;
  more[threadIdx.x] = 2;
  y[threadIdx.x] = row[threadIdx.x] + more[threadIdx.x];
}

template <size_t kBytes>
struct Parameter {
  char bytes[kBytes];
};
template <size_t kBytes>
__global__ void Take(Parameter<kBytes>) {}

TEST(EmulateDeathTest, LaunchesThatAGpuRefusesEndTheProcess) {
  std::vector<int> y(kThreads);
  const auto fill = [&](const Grid& grid) { Launch<Fill<1024>>(grid, y.data()); };
  fill({.threads = kThreads});
  EXPECT_DEATH(fill({.blocks = 0, .threads = kThreads}), "a launch has no blocks");
  EXPECT_DEATH(fill({.blocks_y = 0, .threads = kThreads}), "a launch has no blocks");
  EXPECT_DEATH(fill({.blocks_y = 65536, .threads = kThreads}), "more than 65,535 rows of blocks");
  EXPECT_DEATH(fill({.threads = 48}), "whole warps");
  Launch<Fill<11 * 1024>>({.threads = kThreads}, y.data());  // 48 KB in all
  EXPECT_DEATH(Launch<Fill<11 * 1024 + 1>>({.threads = kThreads}, y.data()),
               "emulate_test.cc:[0-9]+: a kernel has more than 48 KB of shared memory");
  Launch<Take<32764>>({.threads = kThreads}, Parameter<32764>());
  EXPECT_DEATH(Launch<Take<32768>>({.threads = kThreads}, Parameter<32768>()), "more bytes of parameters");
}

template <unsigned kMask>
__global__ void Shuffle(int* y) {
  y[threadIdx.x] = __shfl_sync(kMask, static_cast<int>(Lane()), 3);
}

TEST(EmulateDeathTest, AMaskNamesTheWholeWarp) {
  std::vector<int> y(kWarp);
  Launch<Shuffle<kWholeWarp>>({.threads = kWarp}, y.data());
  EXPECT_EQ(y, std::vector<int>(kWarp, 3));
  EXPECT_DEATH(Launch<Shuffle<0x7fffffffu>>({.threads = kWarp}, y.data()), "emulate_test.cc:[0-9]+: a shuffle or vote");
}

__global__ void Return(double* result) {
  if (threadIdx.x == 0) *result = 5;
}

TEST(Emulate, ResultsAreNoNumbersUntilTheHostWaits) {
  double* const result = Results(1);
  Launch<Return>({.threads = kWarp}, result);
  EXPECT_TRUE(std::isnan(*result));
  Launch<Return>({.threads = kWarp}, result);
  EXPECT_TRUE(std::isnan(*result));
  EXPECT_TRUE(Wait());
  EXPECT_EQ(*result, 5.0);
}

// Every thread of a warp reads a value. Only lane 1 may write it without a barrier of the warp.
template <bool kBarrier>
__global__ void ReadThenWrite(int* y) {
  __shared__ Shared<int, 1> one;
  if (Lane() == 0) one[0] = 7;
  __syncwarp();
  y[threadIdx.x] = one[0];
  if (kBarrier) __syncwarp();
  if (Lane() == 1) one[0] = 8;
}

TEST(EmulateDeathTest, ABarrierOfAWarpOrdersItsLanes) {
  std::vector<int> y(kWarp);
  Launch<ReadThenWrite<true>>({.threads = kWarp}, y.data());
  EXPECT_EQ(y, std::vector<int>(kWarp, 7));
  EXPECT_DEATH(Launch<ReadThenWrite<false>>({.threads = kWarp}, y.data()), "while another thread");
}

// A warp's barrier does not order the threads of another warp.
__global__ void ReadAnotherWarp(int* y) {
  __shared__ Shared<int, 1> one;
  if (threadIdx.x == 0) one[0] = 7;
  __syncwarp();
  y[threadIdx.x] = one[0];
}

TEST(EmulateDeathTest, ABarrierOfAWarpDoesNotOrderOtherWarps) {
  std::vector<int> y(kThreads);
  EXPECT_DEATH(Launch<ReadAnotherWarp>({.threads = kThreads}, y.data()), "shared memory is read");
}

enum class Diverges { kBarrier, kShuffle, kPlaces };

template <Diverges kWhere>
__global__ void Diverge(int* y) {
  const bool first = threadIdx.x == 0;
  if (kWhere == Diverges::kBarrier && !first) __syncthreads();
  if (kWhere == Diverges::kShuffle && !first) y[threadIdx.x] = __shfl_xor_sync(kWholeWarp, y[threadIdx.x], 1);
  if (kWhere == Diverges::kPlaces) {
    if (first) {
      __syncthreads();
    } else {
      y[threadIdx.x] = 0;
      __syncthreads();
    }
  }
}

TEST(EmulateDeathTest, BarriersThatNotAllReachEndTheProcess) {
  std::vector<int> y(kThreads);
  const Grid grid = {.threads = kThreads};
  EXPECT_DEATH(Launch<Diverge<Diverges::kBarrier>>(grid, y.data()),
               "emulate_test.cc:[0-9]+: a barrier, shuffle or vote");
  EXPECT_DEATH(Launch<Diverge<Diverges::kShuffle>>(grid, y.data()),
               "emulate_test.cc:[0-9]+: a barrier, shuffle or vote");
  EXPECT_DEATH(Launch<Diverge<Diverges::kPlaces>>(grid, y.data()), "emulate_test.cc:[0-9]+: threads wait at different");
}

struct Order {
  unsigned* ids;
  int64_t* next;
};
__global__ void NoteOrder(Order order) {
  order.ids[__atomic_fetch_add(order.next, 1, __ATOMIC_RELAXED)] = blockIdx.x * kThreads + threadIdx.x;
}

std::vector<unsigned> GetOrder(uint64_t seed) {
  std::vector<unsigned> order(3 * kThreads);
  int64_t next = 0;
  emulate::Seed(seed);
  Launch<NoteOrder>({.blocks = 3, .threads = kThreads}, Order{order.data(), &next});
  return order;
}

TEST(Emulate, TheSeedSaysTheOrderOfThreadsAndBlocks) {
  const std::vector<unsigned> order = GetOrder(5);
  EXPECT_EQ(order, GetOrder(5));
  EXPECT_NE(order, GetOrder(6));
  EXPECT_EQ(std::set<unsigned>(order.begin(), order.end()).size(), 3 * kThreads);
}

__global__ void SumAll(int* y) {
  __shared__ Shared<int, kThreads / kWarp> scratch;
  y[threadIdx.x] = BlockSum<kThreads>(static_cast<int>(threadIdx.x), scratch);
  const int largest = WarpMax(static_cast<int>(Lane()));
  if (largest != kWarp - 1 || __ballot_sync(kWholeWarp, Lane() % 2 == 1) != 0xaaaaaaaau) y[threadIdx.x] = -1;
}

TEST(Emulate, EveryThreadGetsTheSumTheLargestAndTheVotes) {
  std::vector<int> y(kThreads);
  Launch<SumAll>({.threads = kThreads}, y.data());
  EXPECT_EQ(y, std::vector<int>(kThreads, kThreads * (kThreads - 1) / 2));
}

struct Arrays {
  int *x, *y;
};

enum class Grids { kSound, kNoBarrier, kOneBlockLess, kPlaces, kOneThreadLess, kKeepsShared };

// Sets y[block] to what the next block has written to x.
template <Grids kGrids>
__global__ void ReadNext(const Arrays& arrays) {
  __shared__ Shared<int, 1> one;
  if (threadIdx.x == 0) {
    one[0] = 1;
    arrays.x[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
  }
  if (kGrids == Grids::kOneThreadLess && threadIdx.x == 1) return;
  if (kGrids == Grids::kPlaces && blockIdx.x == 0) {
    arrays.y[0] = 0;
    GridBarrier();
  } else if (kGrids != Grids::kNoBarrier && (kGrids != Grids::kOneBlockLess || blockIdx.x > 0)) {
    GridBarrier();
  }
  if (threadIdx.x == 0) arrays.y[blockIdx.x] = arrays.x[(blockIdx.x + 1) % gridDim.x];
  if (kGrids == Grids::kKeepsShared && threadIdx.x == 0) arrays.y[blockIdx.x] = one[0];
}

template <Grids kGrids>
std::vector<int> ReadNeighbour(uint64_t seed = 1) {
  constexpr unsigned kBlocks = emulate::kBlocksTogether;
  std::vector<int> x(kBlocks), y(kBlocks);
  emulate::Seed(seed);
  LaunchTogether<ReadNext<kGrids>>(kBlocks, kThreads, Arrays{x.data(), y.data()});
  return y;
}

TEST(Emulate, BlocksThatRunTogetherWaitForEachOther) {
  bool missed = false;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(ReadNeighbour<Grids::kSound>(seed), (std::vector<int>{2, 3, 1}));
#ifdef WISP_FINDS_RACES
    missed = true;  // RacesInGlobalMemoryAreReported
#else
    missed = missed || ReadNeighbour<Grids::kNoBarrier>(seed) != std::vector<int>{2, 3, 1};
#endif
  }
  EXPECT_TRUE(missed) << "a barrier that is not there makes no difference";
}

__global__ void WaitForTheGrid(int*) { GridBarrier(); }

TEST(EmulateDeathTest, BarriersOfTheGridThatNotAllReachEndTheProcess) {
  EXPECT_DEATH(ReadNeighbour<Grids::kOneBlockLess>(),
               "emulate_test.cc:[0-9]+: a barrier of the grid that not all blocks");
  EXPECT_DEATH(ReadNeighbour<Grids::kPlaces>(), "emulate_test.cc:[0-9]+: blocks wait at different barriers");
  EXPECT_DEATH(ReadNeighbour<Grids::kOneThreadLess>(),
               "emulate_test.cc:[0-9]+: a barrier, shuffle or vote that not all");
  EXPECT_DEATH(ReadNeighbour<Grids::kKeepsShared>(), "emulate_test.cc:[0-9]+: shared memory is read that nothing");
  EXPECT_DEATH(Launch<WaitForTheGrid>({.blocks = 2, .threads = kThreads}, static_cast<int*>(nullptr)),
               "emulate_test.cc:[0-9]+: a barrier of the grid in blocks that do not run together");
}

#ifdef WISP_FINDS_RACES

enum class Races { kNone, kNoAtomic, kNoBarrier, kNoGridBarrier };

struct Sums {
  int64_t* sum;
  int *x, *y;
};

// Adds all threads of two blocks, hands numbers on within a block and from one block to the other.
template <Races kRaces>
__global__ void HandOn(const Sums& s) {
  if (kRaces == Races::kNoAtomic) {
    *s.sum += 1;
  } else {
    AtomicAdd(s.sum, 1);
  }
  const size_t i = GlobalThread();
  s.x[i] = static_cast<int>(i);
  if (kRaces != Races::kNoBarrier) __syncthreads();
  s.y[i] = s.x[i ^ 1];
  if (kRaces != Races::kNoGridBarrier) GridBarrier();
  s.y[i] += s.x[(i + blockDim.x) % AllThreads()];
}

template <Races kRaces>
[[noreturn]] void HandOnAndExit() {
  int64_t sum = 0;
  std::vector<int> x(2 * kThreads), y(2 * kThreads);
  LaunchTogether<HandOn<kRaces>>(2, kThreads, Sums{&sum, x.data(), y.data()});
  std::exit(0);
}

TEST(EmulateDeathTest, RacesInGlobalMemoryAreReported) {
  // The process is started anew: after a fork ThreadSanitizer ignores what orders the fibers of before.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  constexpr int kRaced = 66;  // the exit code of ThreadSanitizer
  EXPECT_EXIT(HandOnAndExit<Races::kNone>(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(HandOnAndExit<Races::kNoAtomic>(), testing::ExitedWithCode(kRaced), "data race");
  EXPECT_EXIT(HandOnAndExit<Races::kNoBarrier>(), testing::ExitedWithCode(kRaced), "data race");
  EXPECT_EXIT(HandOnAndExit<Races::kNoGridBarrier>(), testing::ExitedWithCode(kRaced), "data race");
}

#endif

}  // namespace
}  // namespace wisp::kernels::cuda::emulate_test
