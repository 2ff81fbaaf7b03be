// Helpers for tests of op tables: guarded buffers, errors relative to tolerances, and tables broken on purpose.
//
//   GuardedMatrix y(rows, n, ld);                       // misaligned, guarded around and between the rows
//   ErrorMeter meter;
//   PlanPerturbation(y.at(r, j), 4 * tolerance);        // does nothing unless the table is a perturbed one
//   ops.linear_forward(...);
//   meter.Add(*y.at(r, j), expected, tolerance);
//   EXPECT_TRUE(y.GuardsIntact());
//
// A check is a function of an op table that returns meter.worst(), the largest error / tolerance. A test asserts that
// it is at most 1 for every table of TestedOps(), and above 1 for PerturbedTable<&OpTable::linear_forward>(table).
#ifndef WISP_TESTS_UNIT_KERNELS_KERNEL_TEST_UTIL_H_
#define WISP_TESTS_UNIT_KERNELS_KERNEL_TEST_UTIL_H_

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#define NOGDI
#include <windows.h>
#undef far
#undef near
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernels.h"
#ifdef WISP_TEST_CUDA
#include "kernels/cuda/cuda.h"
#endif

namespace wisp::kernels {

inline constexpr size_t kTestSizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129};
inline constexpr double kEpsilon = 1.0 / (1 << 24);  // half the distance from 1 to the next float
inline constexpr double kUlp = 2 * kEpsilon;

// The tables under test: all of this processor's, or the GPU's if the tests are built for it.
inline std::span<const OpTable* const> TestedOps() {
#ifdef WISP_TEST_CUDA
  static const OpTable* const tables[] = {&cuda::Ops()};
  return tables;
#else
  return AllOps();
#endif
}

// Returns the unperturbed table of this name: a perturbed table has the name of its base.
inline const OpTable& TestedTable(std::string_view name) {
  for (const OpTable* ops : TestedOps()) {
    if (name == ops->name) return *ops;
  }
  std::abort();
}

// Records that lie one after the other: the beginning of each, and the end of the last.
struct RecordRows {
  void Add(size_t more) { begin.push_back(begin.back() + static_cast<uint32_t>(more)); }
  size_t num() const { return begin.size() - 1; }
  size_t rows() const { return begin.back(); }
  size_t size(size_t b) const { return begin[b + 1] - begin[b]; }
  Segments segments() const { return {.begin_B = begin.data(), .num_records = num(), .rows = rows()}; }

  std::vector<uint32_t> begin{0};
};

// Prints the seed once for each call; WISP_TEST_SEED overrides it.
inline uint64_t TestSeed(uint64_t usual) {
  const char* given = std::getenv("WISP_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : usual;
  std::cout << "seed " << seed << " (WISP_TEST_SEED overrides)\n";
  return seed;
}

template <size_t kCount>
size_t PickSize(std::mt19937_64& random, const size_t (&sizes)[kCount]) {
  return sizes[std::uniform_int_distribution<size_t>(0, kCount - 1)(random)];
}

inline size_t PickSize(std::mt19937_64& random) { return PickSize(random, kTestSizes); }

// A [rows, cols] matrix with row stride `ld` inside a larger buffer. Its first element is aligned to 64 bytes if `ld`
// is a multiple of 8, otherwise to exactly 4. Everything that is not an element holds a guard pattern.
template <class T>
class BasicGuardedMatrix {
 public:
  BasicGuardedMatrix(size_t rows, size_t cols, size_t ld)
      : rows_(rows), cols_(cols), ld_(ld), buffer_(2 * kMargin + rows * ld) {
    std::memset(buffer_.data(), kPattern, buffer_.size() * sizeof(T));
    // Rows of whole vectors begin at a cache line, others one number after it.
    const size_t past = ld % 8 == 0 ? 0 : sizeof(T) % 64;
    size_t offset = kMargin;
    while (reinterpret_cast<uintptr_t>(&buffer_[offset]) % 64 != past) --offset;
    data_ = &buffer_[offset];
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t c = 0; c < cols_; ++c) *at(r, c) = T{};
    }
  }
  BasicGuardedMatrix(const BasicGuardedMatrix&) = delete;
  BasicGuardedMatrix& operator=(const BasicGuardedMatrix&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  T* at(size_t row, size_t col) { return data_ + row * ld_ + col; }
  const T* at(size_t row, size_t col) const { return data_ + row * ld_ + col; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  size_t ld() const { return ld_; }

  void Fill(T value) {
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t c = 0; c < cols_; ++c) *at(r, c) = value;
    }
  }

  template <class Distribution>
  void Fill(std::mt19937_64& random, Distribution distribution) {
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t c = 0; c < cols_; ++c) *at(r, c) = static_cast<T>(distribution(random));
    }
  }

  // Returns true if every byte outside the elements still has the guard pattern.
  bool GuardsIntact() const {
    const size_t first = static_cast<size_t>(data_ - buffer_.data());
    for (size_t i = 0; i < buffer_.size(); ++i) {
      const bool inside = i >= first && i - first < rows_ * ld_ && (i - first) % ld_ < cols_;
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, &buffer_[i], sizeof(T));
      for (unsigned char byte : bytes) {
        if (!inside && byte != kPattern) return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kMargin = 128;           // elements; more than any vector or register tile is wide
  static constexpr unsigned char kPattern = 0xFF;  // as floats: NaN, so that a value read from outside shows too
  size_t rows_, cols_, ld_;
  std::vector<T> buffer_;
  T* data_;
};

using GuardedMatrix = BasicGuardedMatrix<float>;

// One row of n numbers, misaligned and guarded.
struct Row : GuardedMatrix {
  explicit Row(size_t n) : GuardedMatrix(1, n, std::max<size_t>(1, n)) {}
  Row(size_t n, std::mt19937_64& random, float deviation) : Row(n) {
    Fill(random, std::normal_distribution<float>(0, deviation));
  }
  std::vector<double> Double() const { return std::vector<double>(data(), data() + cols()); }
};

inline double Largest(const double* v, size_t n) {
  double largest = 1e-30;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(v[i]));
  return largest;
}

#ifdef WISP_TEST_GPU
// On a GPU, compute-sanitizer finds reads and writes outside (tests/cuda/gpu).
class PageEndFloats {
 public:
  explicit PageEndFloats(size_t size) : floats_(size) {}
  float* data() { return floats_.data(); }

 private:
  std::vector<float> floats_;
};
#else
// `size` floats that end where an inaccessible page begins, so a read or write past the end crashes. This finds reads
// that do not affect the result.
class PageEndFloats {
 public:
  explicit PageEndFloats(size_t size) {
#if defined(_WIN32)
    bytes_ = (size * sizeof(float) + page_ - 1) / page_ * page_ + page_;
    map_ = static_cast<char*>(VirtualAlloc(nullptr, bytes_, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE));
    DWORD before = 0;
    if (map_ == nullptr || !VirtualProtect(map_ + bytes_ - page_, page_, PAGE_NOACCESS, &before)) std::abort();
#else
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (size * sizeof(float) + page_ - 1) / page_ * page_ + page_;
    map_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (map_ == MAP_FAILED || mprotect(map_ + bytes_ - page_, page_, PROT_NONE) != 0) std::abort();
#endif
    data_ = reinterpret_cast<float*>(map_ + bytes_ - page_) - size;
  }
  PageEndFloats(const PageEndFloats&) = delete;
  PageEndFloats& operator=(const PageEndFloats&) = delete;
#if defined(_WIN32)
  ~PageEndFloats() { VirtualFree(map_, 0, MEM_RELEASE); }
#else
  ~PageEndFloats() { munmap(map_, bytes_); }
#endif

  float* data() { return data_; }

 private:
  size_t page_ = 4096, bytes_ = 0;
  char* map_ = nullptr;
  float* data_;
};
#endif

// The largest error relative to its tolerance. A NaN where a number is expected counts as infinite.
class ErrorMeter {
 public:
  void Add(double actual, double expected, double tolerance) {
    const double error = std::abs(actual - expected);
    double ratio = error == 0 ? 0 : error / tolerance;
    if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
    if (ratio > worst_) worst_ = ratio;
  }
  double worst() const { return worst_; }

 private:
  double worst_ = 0;
};

// ---- Tables broken on purpose. --------------------------------------------------------------------------------------

struct Perturbation {
  const OpTable* base = nullptr;
  void* at = nullptr;
  double amount = 0;
  void (*add)(void* at, double amount) = nullptr;
};

inline Perturbation& ThePerturbation() {
  static Perturbation perturbation;
  return perturbation;
}

// The element and amount by which a perturbed table is wrong in its next call; `at` null: no element.
template <class T>
void PlanPerturbation(T* at, double amount) {
  Perturbation& p = ThePerturbation();
  p.at = at;
  p.amount = amount;
  p.add = [](void* to, double by) {
    *static_cast<T*>(to) = static_cast<T>(static_cast<double>(*static_cast<T*>(to)) + by);
  };
}
inline void PlanNoPerturbation() { PlanPerturbation<float>(nullptr, 0); }

template <auto kEntry>
struct PerturbedEntry;

template <class Result, class Args, Result (*OpTable::*kEntry)(const Args&)>
struct PerturbedEntry<kEntry> {
  static Result Call(const Args& args) {
    const Perturbation& p = ThePerturbation();
    if constexpr (std::is_void_v<Result>) {
      (p.base->*kEntry)(args);
      if (p.at != nullptr) p.add(p.at, p.amount);
    } else {
      const Result result = (p.base->*kEntry)(args);
      if (p.at != nullptr) p.add(p.at, p.amount);
      return result;
    }
  }
};

// Returns a copy of `base` in which one entry is followed by the planned perturbation. `base` must outlive its use.
template <auto kEntry>
OpTable PerturbedTable(const OpTable& base) {
  ThePerturbation().base = &base;
  OpTable table = base;
  table.*kEntry = PerturbedEntry<kEntry>::Call;
  return table;
}

// Checks every table's op against the reference: check(ops, n, variant, seed) returns the largest error in units of the
// tolerance. It must also notice a wrong element (PerturbedTable).
template <auto kEntry, class Check>
void Hold(uint64_t usual_seed, Check check, int variants = 4) {
  std::mt19937_64 random(TestSeed(usual_seed));
  for (const OpTable* ops : TestedOps()) {
    const OpTable perturbed = PerturbedTable<kEntry>(*ops);
    double worst = 0;
    for (size_t n : kTestSizes) {
      for (int variant = 0; variant < variants; ++variant) {
        const uint64_t seed = random();
        SCOPED_TRACE(::testing::Message() << ops->name << ", n " << n << ", variant " << variant);
        PlanNoPerturbation();
        const double error = check(*ops, n, variant, seed);
        EXPECT_LE(error, 1);
        worst = std::max(worst, error);
        if (n > 0) {
          EXPECT_GT(check(perturbed, n, variant, seed), 1) << "a wrong element went unnoticed";
        }
      }
    }
    std::cout << ops->name << ": largest error " << worst << " of the tolerance\n";
  }
}

}  // namespace wisp::kernels

#endif  // WISP_TESTS_UNIT_KERNELS_KERNEL_TEST_UTIL_H_
