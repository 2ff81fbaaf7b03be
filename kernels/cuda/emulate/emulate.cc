#include "kernels/cuda/emulate/emulate.h"

#include "kernels/cuda/emulate/memory.h"
#include "kernels/cuda/emulate/races.h"

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace wisp::kernels::cuda::emulate {
namespace {

constexpr unsigned kLanes = 32, kMostThreads = 1024;
constexpr uint32_t kMostBlocks = (1 << 24) - 1, kMostBarriers = (1 << 14) - 1,
                   kMostWarpBarriers = (1 << 15) - 1;  // limits of a Stamp
#ifdef WISP_FINDS_RACES
constexpr size_t kStackBytes = 256 * 1024;  // frames are larger
#else
constexpr size_t kStackBytes = 64 * 1024;
#endif
// Limits of every GPU that kernels are compiled for: rows of blocks, bytes of shared memory that a kernel declares, and
// bytes of a kernel's parameters.
constexpr unsigned kMostRowsOfBlocks = 65535;
constexpr size_t kMostSharedBytes = 48 << 10, kMostParameterBytes = 32764;

enum class Waits { kForNothing, kForBlock, kForWarp, kForGrid, kHasEnded };

struct Thread {
  boost::context::fiber fiber;
  WatchedFiber watched = nullptr;
  Waits waits = Waits::kForNothing;
  Location location = {};  // where it waits
};

// The values that lanes of a warp exchange. Two rounds alternate: slow lanes may still read one while fast lanes fill
// the next.
struct Round {
  uint64_t bits[kLanes];
};
struct Warp {
  Round rounds[2];
  unsigned round = 0;     // rounds that are done
  uint32_t barriers = 0;  // how many of these were barriers
};

bool SamePlace(const Location& a, const Location& b) { return a.line == b.line && std::string_view(a.file) == b.file; }

std::string Sentence(const char* what, const Location& location) {
  return std::string(location.file) + ":" + std::to_string(location.line) + ": " + what;
}

uint64_t FirstSeed() {
  const char* given = std::getenv("WISP_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

// The places by which a block's barriers order its threads. Blocks that are near each other in time share none, because
// nothing orders two blocks but the end of a launch or a barrier of the grid.
struct Places {
  char of_warp[kMostThreads / kLanes], of_block;
};
constexpr size_t kPlaces = 1024;

// A block with living threads.
struct Block {
  Index index;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  uint32_t serial = 0, barriers = 0;

  bool All(Waits what) const {
    return std::all_of(threads.begin(), threads.end(), [what](const Thread& t) { return t.waits == what; });
  }
  const Thread& OneThatWaits() const {
    return *std::find_if(threads.begin(), threads.end(), [](const Thread& t) { return t.waits != Waits::kHasEnded; });
  }
};

struct Emulator {
  std::mt19937_64 random{FirstSeed()};
  boost::context::pooled_fixedsize_stack stacks{kStackBytes};
  boost::context::fiber scheduler;
  WatchedFiber host = nullptr;  // the fiber of the scheduler
  std::array<Places, kPlaces> places = {};
  char at_launch = 0, at_end = 0, of_grid = 0;  // places too
  std::vector<Block> blocks;                    // one block, or those that run together
  Block* block = nullptr;                       // the block that runs
  Place place;
  uint32_t last_serial = 0;
  bool running = false;
  bool refuses_together = std::getenv("WISP_TEST_REFUSES_TOGETHER") != nullptr;
  LaunchedKernel launch;  // the next one
  Observer observer = nullptr;

  Warp& CurrentWarp() { return block->warps[place.thread.x / kLanes]; }

  void SetNow() {
    const unsigned index = place.thread.x, warp = index / kLanes;
    g_now = Stamp{block->serial} << kBlockShift | Stamp{block->barriers} << kBarrierShift |
            Stamp{block->warps[warp].barriers} << kWarpBarrierShift | warp << kWarpShift | index % kLanes << kLaneShift;
  }

  // Returns to the scheduler until what this thread waits for has come.
  void Wait(Waits what, const Location& location) {
    const unsigned index = place.thread.x;
    block->threads[index].waits = what;
    block->threads[index].location = location;
    Places& of_block = places[block->serial % kPlaces];
    char* const order = what == Waits::kForWarp    ? &of_block.of_warp[index / kLanes]
                        : what == Waits::kForBlock ? &of_block.of_block
                                                   : &of_grid;
    Publish(order);
    SwitchTo(host);
    scheduler = std::move(scheduler).resume();
    place.thread.x = index;
    Receive(order);
  }

  void Start(Block& starting, Index index, unsigned count, const std::function<void()>& kernel) {
    starting.index = index;
    starting.threads.resize(count);
    starting.warps.assign(count / kLanes, {});
    starting.serial = last_serial = last_serial % kMostBlocks + 1;
    starting.barriers = 0;
    for (Thread& thread : starting.threads) {
      thread.waits = Waits::kForNothing;
      const boost::context::stack_context stack = stacks.allocate();
      thread.watched = FiberOf(stack.sp);
      thread.fiber =
          boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), stacks,
                                [this, &thread, &kernel](boost::context::fiber&& from) {
                                  scheduler = std::move(from);
                                  Receive(&at_launch);
                                  kernel();
                                  Publish(&at_end);
                                  thread.waits = Waits::kHasEnded;
                                  SwitchTo(host);
                                  return std::move(scheduler);
                                });
    }
    Publish(&at_launch);
  }

  void Resume(unsigned index) {
    place.thread = {index, 0};
    SetNow();
    host = RunningFiber();
    SwitchTo(block->threads[index].watched);
    boost::context::fiber back = std::move(block->threads[index].fiber).resume();
    block->threads[index].fiber = std::move(back);
  }

  // Releases threads [first, first + count) if all of them wait for the same thing at the same place. Returns false
  // while some still run.
  bool Release(unsigned first, unsigned count, Waits what) {
    std::vector<Thread>& threads = block->threads;
    for (unsigned i = first; i < first + count; ++i) {
      if (threads[i].waits != what) return false;
    }
    for (unsigned i = first + 1; i < first + count; ++i) {
      if (!SamePlace(threads[i].location, threads[first].location)) {
        Fail("threads wait at different barriers, this one and another", threads[i].location);
      }
    }
    for (unsigned i = first; i < first + count; ++i) threads[i].waits = Waits::kForNothing;
    return true;
  }

  // Releases the whole block, at a barrier of the block or of the grid.
  bool ReleaseBlock(Waits what) {
    if (!Release(0, static_cast<unsigned>(block->threads.size()), what)) return false;
    if (++block->barriers > kMostBarriers)
      Fail("a block has too many barriers for the emulator", block->threads[0].location);
    return true;
  }

  // Runs every thread that can run, in a random order. False if none could.
  bool Turn(std::vector<unsigned>& order) {
    std::shuffle(order.begin(), order.end(), random);
    bool any = false;
    for (unsigned index : order) {
      Thread& thread = block->threads[index];
      if (thread.waits != Waits::kForNothing) continue;
      any = true;
      Resume(index);
      const unsigned first = index / kLanes * kLanes;
      if (thread.waits == Waits::kForWarp && Release(first, kLanes, Waits::kForWarp)) {
        if (++block->warps[first / kLanes].round > kMostWarpBarriers)
          Fail("a warp has too many barriers for the emulator", thread.location);
      }
    }
    return any;
  }

  // Runs the block until it has ended or waits for other blocks.
  void Advance(Block& advancing) {
    block = &advancing;
    place.block = advancing.index;
    std::vector<unsigned> order(advancing.threads.size());
    std::iota(order.begin(), order.end(), 0u);
    for (;;) {
      if (Turn(order)) continue;
      if (block->All(Waits::kHasEnded) || block->All(Waits::kForGrid)) return;
      if (!ReleaseBlock(Waits::kForBlock))
        Fail("a barrier, shuffle or vote that not all threads reach", block->OneThatWaits().location);
    }
  }

  // When all blocks have ended or wait: releases those that wait. False if all have ended.
  bool ReleaseGrid() {
    const auto waits = [](const Block& b) { return b.All(Waits::kForGrid); };
    const auto first = std::find_if(blocks.begin(), blocks.end(), waits);
    if (first == blocks.end()) return false;
    const Location& location = first->threads[0].location;
    for (Block& each : blocks) {
      if (!waits(each)) Fail("a barrier of the grid that not all blocks reach", location);
      if (!SamePlace(each.threads[0].location, location))
        Fail("blocks wait at different barriers of the grid, this one and another", location);
      block = &each;
      ReleaseBlock(Waits::kForGrid);
    }
    return true;
  }
};

Emulator& The() {
  static Emulator emulator;
  return emulator;
}

}  // namespace

void Fail(const char* what, const Location& location) {
  std::fprintf(stderr, "%s\n", Sentence(what, location).c_str());
  std::abort();
}

const Place& Here() { return The().place; }

uint64_t NumLaunches() { return g_launch; }

void AddParameter(const void* kernel, const void* parameter, size_t bytes, size_t alignment) {
  LaunchedKernel& launch = The().launch;
  launch.kernel = kernel;
  const size_t begin = (launch.parameters.size() + alignment - 1) / alignment * alignment;
  launch.parameters.resize(begin + bytes);
  std::memcpy(launch.parameters.data() + begin, parameter, bytes);
}

void Observe(Observer observer) { The().observer = observer; }

void CountShared(size_t bytes, const Location& location) {
  g_shared_bytes += bytes;
  if (g_shared_bytes > kMostSharedBytes) Fail("a kernel has more than 48 KB of shared memory", location);
}

void Seed(uint64_t seed) { The().random.seed(seed); }

void CheckBytes(const void* argument, size_t bytes) {
  if (HoldsHostAddress(argument, bytes))
    Fail("a kernel is handed an address of the host's memory", Location::Current());
}

namespace {

// Exists while a kernel runs.
class Running {
 public:
  Running(Index grid, unsigned threads) {
    Emulator& e = The();
    const Location here = Location::Current();
    if (e.running) Fail("a kernel is launched by a kernel", here);
    if (threads == 0 || threads > kMostThreads || threads % kLanes != 0) Fail("a block has whole warps, 1 to 32", here);
    if (grid.x == 0 || grid.y == 0) Fail("a launch has no blocks, which a GPU refuses", here);
    if (grid.y > kMostRowsOfBlocks) Fail("a launch has more than 65,535 rows of blocks, which a GPU refuses", here);
    if (e.launch.parameters.size() > kMostParameterBytes)
      Fail("a launch has more bytes of parameters than a GPU takes", here);
    e.running = true;
    g_shared_bytes = 0;
    ShowResults();
    ++g_launch;
    e.place = {.thread = {0, 0}, .block = {0, 0}, .block_size = {threads, 1}, .grid_size = grid};
    e.launch.grid = grid;
    e.launch.threads = threads;
    if (e.observer != nullptr) e.observer(e.launch, LaunchState::kBegins);
  }
  ~Running() {
    Emulator& e = The();
    if (e.observer != nullptr) e.observer(e.launch, LaunchState::kHasRun);
    e.launch = {};
    e.running = false;
    Receive(&The().at_end);
    HideResults();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const OpenMemory open_;
};

}  // namespace

void Run(Index grid, unsigned threads, const std::function<void()>& kernel) {
  Emulator& e = The();
  const Running running(grid, threads);
  e.blocks.resize(1);
  std::vector<unsigned> order(size_t{grid.x} * grid.y);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), e.random);
  for (unsigned block : order) {
    e.Start(e.blocks[0], {block % grid.x, block / grid.x}, threads, kernel);
    e.Advance(e.blocks[0]);
    if (e.blocks[0].All(Waits::kForGrid))
      Fail("a barrier of the grid in blocks that do not run together", e.blocks[0].threads[0].location);
  }
}

void RunTogether(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  Emulator& e = The();
  const Running running({.x = blocks, .y = 1}, threads);
  if (blocks > kBlocksTogether) Fail("more blocks than can run together", Location::Current());
  e.blocks.resize(blocks);
  for (unsigned block = 0; block < blocks; ++block) e.Start(e.blocks[block], {block, 0}, threads, kernel);
  std::vector<unsigned> order(blocks);
  std::iota(order.begin(), order.end(), 0u);
  do {
    std::shuffle(order.begin(), order.end(), e.random);
    for (unsigned block : order) {
      if (!e.blocks[block].All(Waits::kHasEnded)) e.Advance(e.blocks[block]);
    }
  } while (e.ReleaseGrid());
}

void RefuseTogether(bool refuse) { The().refuses_together = refuse; }

bool RefusesTogether() { return The().refuses_together; }

unsigned CountProcessors() {
  static const unsigned count = [] {
    const char* said = std::getenv("WISP_TEST_PROCESSORS");
    return said != nullptr ? static_cast<unsigned>(std::strtoul(said, nullptr, 10)) : kBlocksTogether;
  }();
  return count;
}

void GridBarrier(const Location& location) { The().Wait(Waits::kForGrid, location); }

void Barrier(const Location& location) { The().Wait(Waits::kForBlock, location); }

void WarpBarrier(const Location& location) {
  Emulator& e = The();
  e.Wait(Waits::kForWarp, location);
  // The first lane that continues counts the round for all lanes.
  Warp& warp = e.CurrentWarp();
  warp.barriers = std::max(warp.barriers, warp.round);
  e.SetNow();
}

namespace {

void CheckMask(unsigned mask, const Location& location) {
  if (mask != ~0u) Fail("a shuffle or vote with a mask of some lanes; all lanes of a warp call it", location);
}

}  // namespace

uint64_t Exchange(unsigned mask, uint64_t bits, unsigned from, const Location& location) {
  CheckMask(mask, location);
  Emulator& e = The();
  Warp& warp = e.CurrentWarp();
  Round& round = warp.rounds[warp.round % 2];
  round.bits[e.place.thread.x % kLanes] = bits;
  e.Wait(Waits::kForWarp, location);
  return round.bits[from];
}

unsigned Ballot(unsigned mask, bool vote, const Location& location) {
  CheckMask(mask, location);
  Emulator& e = The();
  Warp& warp = e.CurrentWarp();
  Round& round = warp.rounds[warp.round % 2];
  round.bits[e.place.thread.x % kLanes] = vote ? 1 : 0;
  e.Wait(Waits::kForWarp, location);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) votes |= static_cast<unsigned>(round.bits[lane]) << lane;
  return votes;
}

}  // namespace wisp::kernels::cuda::emulate
