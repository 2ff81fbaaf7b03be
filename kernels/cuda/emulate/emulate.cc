#include "kernels/cuda/emulate/emulate.h"

#include "kernels/cuda/emulate/memory.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
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
                   kMostWarpBarriers = (1 << 15) - 1;  // what a Stamp holds
constexpr size_t kStackBytes = 64 * 1024;

enum class Waits { kForNothing, kForBlock, kForWarp, kHasEnded };

struct Thread {
  boost::context::fiber fiber;
  Waits waits = Waits::kForNothing;
  Location location = {};  // of what it waits at
};

// What the lanes of a warp hand each other. Two of them, taken in turns: the slow lanes still read one while the fast
// ones fill the next.
struct Round {
  uint64_t bits[kLanes];
};
struct Warp {
  Round rounds[2];
  unsigned round = 0;     // how many are done
  uint32_t barriers = 0;  // as many of them were barriers
};

bool SamePlace(const Location& a, const Location& b) { return a.line == b.line && std::string_view(a.file) == b.file; }

std::string Sentence(const char* what, const Location& location) {
  return std::string(location.file) + ":" + std::to_string(location.line) + ": " + what;
}

uint64_t FirstSeed() {
  const char* given = std::getenv("WISP_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

struct Emulator {
  std::mt19937_64 random{FirstSeed()};
  boost::context::pooled_fixedsize_stack stacks{kStackBytes};
  boost::context::fiber scheduler;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Place place;
  uint32_t block_serial = 0, barriers = 0;
  bool running = false;

  Thread& Current() { return threads[place.thread.x]; }
  Warp& CurrentWarp() { return warps[place.thread.x / kLanes]; }

  void SetNow() {
    const unsigned index = place.thread.x, warp = index / kLanes;
    g_now = Stamp{block_serial} << kBlockShift | Stamp{barriers} << kBarrierShift |
            Stamp{warps[warp].barriers} << kWarpBarrierShift | warp << kWarpShift | index % kLanes << kLaneShift;
  }

  // Back to the scheduler, until what this thread waits for has come.
  void Wait(Waits what, const Location& location) {
    const unsigned index = place.thread.x;
    threads[index].waits = what;
    threads[index].location = location;
    scheduler = std::move(scheduler).resume();
    place.thread.x = index;
  }

  void Start(unsigned index, const std::function<void()>& kernel) {
    threads[index].waits = Waits::kForNothing;
    threads[index].fiber =
        boost::context::fiber(std::allocator_arg, stacks, [this, index, &kernel](boost::context::fiber&& from) {
          scheduler = std::move(from);
          kernel();
          threads[index].waits = Waits::kHasEnded;
          return std::move(scheduler);
        });
  }

  void Resume(unsigned index) {
    place.thread = {index, 0};
    SetNow();
    boost::context::fiber back = std::move(threads[index].fiber).resume();
    threads[index].fiber = std::move(back);
  }

  // All [first, first + count) wait for the same thing at the same place: they may go on. False where some still run.
  bool Release(unsigned first, unsigned count, Waits what) {
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

  // Lets every thread that can run go on, in a drawn order; false where none could.
  bool Turn(std::vector<unsigned>& order) {
    std::shuffle(order.begin(), order.end(), random);
    bool any = false;
    for (unsigned index : order) {
      if (threads[index].waits != Waits::kForNothing) continue;
      any = true;
      Resume(index);
      const unsigned first = index / kLanes * kLanes;
      if (threads[index].waits == Waits::kForWarp && Release(first, kLanes, Waits::kForWarp)) {
        if (++warps[first / kLanes].round > kMostWarpBarriers)
          Fail("a warp has too many barriers for the emulator", threads[index].location);
      }
    }
    return any;
  }

  void RunBlock(const std::function<void()>& kernel) {
    const auto count = static_cast<unsigned>(threads.size());
    block_serial = block_serial % kMostBlocks + 1;
    barriers = 0;
    for (Warp& warp : warps) warp = {};
    for (unsigned i = 0; i < count; ++i) Start(i, kernel);
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0u);
    for (;;) {
      if (Turn(order)) continue;
      const auto ended = [](const Thread& t) { return t.waits == Waits::kHasEnded; };
      if (std::all_of(threads.begin(), threads.end(), ended)) return;
      if (Release(0, count, Waits::kForBlock)) {
        if (++barriers > kMostBarriers) Fail("a block has too many barriers for the emulator", threads[0].location);
        continue;
      }
      const auto waiting = std::find_if_not(threads.begin(), threads.end(), ended);
      Fail("a barrier, shuffle or vote that not all threads reach", waiting->location);
    }
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

void Seed(uint64_t seed) { The().random.seed(seed); }

void CheckBytes(const void* argument, size_t bytes) {
  if (HoldsHostAddress(argument, bytes))
    Fail("a kernel is handed an address of the host's memory", Location::Current());
}

void Run(Index grid, unsigned threads, const std::function<void()>& kernel) {
  Emulator& e = The();
  const Location here = Location::Current();
  if (e.running) Fail("a kernel is launched by a kernel", here);
  if (threads == 0 || threads > kMostThreads || threads % kLanes != 0) Fail("a block has whole warps, 1 to 32", here);
  e.running = true;
  const OpenMemory open;
  e.threads.resize(threads);
  e.warps.resize(threads / kLanes);
  std::vector<unsigned> order(size_t{grid.x} * grid.y);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), e.random);
  for (unsigned block : order) {
    e.place = {
        .thread = {0, 0}, .block = {block % grid.x, block / grid.x}, .block_size = {threads, 1}, .grid_size = grid};
    e.RunBlock(kernel);
  }
  e.running = false;
}

void Barrier(const Location& location) { The().Wait(Waits::kForBlock, location); }

void WarpBarrier(const Location& location) {
  Emulator& e = The();
  e.Wait(Waits::kForWarp, location);
  // The first of the lanes that goes on counts it for all.
  Warp& warp = e.CurrentWarp();
  warp.barriers = std::max(warp.barriers, warp.round);
  e.SetNow();
}

uint64_t Exchange(uint64_t bits, unsigned from, const Location& location) {
  Emulator& e = The();
  Warp& warp = e.CurrentWarp();
  Round& round = warp.rounds[warp.round % 2];
  round.bits[e.place.thread.x % kLanes] = bits;
  e.Wait(Waits::kForWarp, location);
  return round.bits[from];
}

unsigned Ballot(bool vote, const Location& location) {
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
