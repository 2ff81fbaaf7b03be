#include "tools/lab/bench/peers/measure.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>

#include "tools/lab/bench/fma_peak.h"

namespace wisp::bench {
namespace {

// A batch is long compared with the clock's resolution (0.3 us) and short compared with the noise of a shared machine.
constexpr double kBatchSeconds = 200e-6;
constexpr int kPeakProbes = 20;  // 10 us each; an interrupted probe is never the best of a round

double Now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double Time(const std::function<void()>& work, size_t times) {
  const double start = Now();
  for (size_t i = 0; i < times; ++i) work();
  return (Now() - start) / static_cast<double>(times);
}

size_t CallsPerBatch(const std::function<void()>& work) {
  work();
  double once = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) once = std::min(once, Time(work, 1));
  return static_cast<size_t>(std::clamp(kBatchSeconds / std::max(once, 1e-9), 1.0, 10000.0));
}

Spread ComputeSpread(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return {samples[n / 4], samples[n / 2], samples[n * 3 / 4]};
}

// Aligned to 64 bytes and readable for 64 past the end. The numbers are a fixed sequence, uniform in [-1, 1).
class Buffer {
 public:
  explicit Buffer(size_t size)
      : size_(size), data_(static_cast<float*>(std::aligned_alloc(64, (size / 16 + 2) * 64)), std::free) {
    std::fill_n(data_.get(), (size / 16 + 2) * 16, 0.0f);
  }
  void FillRandom(uint32_t seed) {
    for (size_t i = 0; i < size_; ++i) {
      seed = seed * 1664525u + 1013904223u;
      data_.get()[i] = static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f;
    }
  }
  float* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::unique_ptr<float, void (*)(void*)> data_;
};

// The product in double, and the sums of |a b| that errors are relative to.
struct Truth {
  std::vector<double> sum, magnitude;

  explicit Truth(const Product& p) : sum(p.out_rows() * p.out_cols()), magnitude(sum.size()) {
    for (size_t i = 0; i < p.out_rows(); ++i) {
      for (size_t l = 0; l < p.inner(); ++l) {
        const double a = p.orientation == Orientation::kForward         ? p.x[i * p.k + l]
                         : p.orientation == Orientation::kBackwardInput ? p.dy[i * p.n + l]
                                                                        : p.dy[l * p.n + i];
        // `stride` leads from one column of b to the next.
        const bool forward = p.orientation == Orientation::kForward;
        const float* b = forward                                        ? p.w + l
                         : p.orientation == Orientation::kBackwardInput ? p.w + l * p.k
                                                                        : p.x + l * p.k;
        const size_t stride = forward ? p.k : 1;
        for (size_t j = 0; j < p.out_cols(); ++j) {
          const double term = a * b[j * stride];
          sum[i * p.out_cols() + j] += term;
          magnitude[i * p.out_cols() + j] += std::abs(term);
        }
      }
    }
  }
};

// Returns the error in units of 2^-24; infinite if something is not a number.
template <class T>
double Error(const float* out, const T* expected, const std::vector<double>& magnitude) {
  double worst = 0;
  for (size_t i = 0; i < magnitude.size(); ++i) {
    const double difference = std::abs(static_cast<double>(out[i]) - static_cast<double>(expected[i]));
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    if (difference > 0) worst = std::max(worst, difference / magnitude[i] * 0x1p24);
  }
  return worst;
}

// Runs each contender once into a buffer full of NaN.
std::vector<Measured> Check(const Product& p, const Contenders& contenders) {
  const Truth truth(p);
  const double bound = 4 * (static_cast<double>(p.inner()) + 4);  // kernels.h, "Products"
  std::vector<float> ours;
  std::vector<Measured> measured;
  for (const Contender& c : contenders) {
    std::fill_n(p.out, truth.sum.size(), std::numeric_limits<float>::quiet_NaN());
    c.run();
    Measured m{.contender = c.name, .implementation = c.implementation, .packs_ahead = static_cast<bool>(c.pack)};
    if (ours.empty()) {
      ours.assign(p.out, p.out + truth.sum.size());
      m.error = Error(p.out, truth.sum.data(), truth.magnitude);
      m.agrees = m.error <= bound;
    } else {
      m.error = Error(p.out, ours.data(), truth.magnitude);
      m.agrees = m.error <= 2 * bound;
    }
    measured.push_back(std::move(m));
  }
  return measured;
}

struct Samples {
  size_t calls = 1, packs = 1;
  std::vector<double> gflops, percent, ratio, pack_us;
};

// Runs one batch of every contender that agrees. Another contender begins in each round.
void Round(const Cell& cell, const Contenders& contenders, uint32_t round, double peak, std::vector<Samples>& samples) {
  const size_t count = contenders.size();
  std::vector<double> gflops(count, 0);
  for (size_t turn = 0; turn < count; ++turn) {
    const size_t i = (turn + round) % count;
    if (!cell.measured[i].agrees) continue;
    const Contender& c = contenders[i];
    c.run();  // brings its own data back into the cache
    gflops[i] = cell.shape.gflop() / Time(c.run, samples[i].calls);
    if (c.pack) samples[i].pack_us.push_back(1e6 * Time(c.pack, samples[i].packs));
  }
  for (size_t i = 0; i < count; ++i) {
    if (gflops[i] == 0 || gflops[0] == 0) continue;
    samples[i].gflops.push_back(gflops[i]);
    samples[i].percent.push_back(100 * gflops[i] / peak);
    samples[i].ratio.push_back(gflops[0] / gflops[i]);
  }
}

}  // namespace

const Measured* Cell::Best(bool same_work) const {
  const Measured* best = nullptr;
  if (!measured[0].agrees) return nullptr;
  for (size_t i = 1; i < measured.size(); ++i) {
    const Measured& m = measured[i];
    if (!m.agrees || (same_work && m.packs_ahead && !measured[0].packs_ahead)) continue;
    if (best == nullptr || m.ours_over_this.median < best->ours_over_this.median) best = &m;
  }
  return best;
}

Cell MeasureCell(const Shape& shape, uint32_t rounds) {
  Buffer x(shape.rows * shape.k), w(shape.n * shape.k), dy(shape.rows * shape.n);
  x.FillRandom(1);
  w.FillRandom(2);
  dy.FillRandom(3);
  Product p{.orientation = shape.orientation,
            .rows = shape.rows,
            .n = shape.n,
            .k = shape.k,
            .x = x.data(),
            .w = w.data(),
            .dy = dy.data(),
            .out = nullptr};
  const Buffer out(p.out_rows() * p.out_cols());
  p.out = out.data();

  Contenders contenders;
  AddWisp(p, contenders);
#ifdef WISP_PEER_OPENBLAS
  AddOpenBlas(p, contenders);
#endif
#ifdef WISP_PEER_ONEDNN
  AddOneDnn(p, contenders);
#endif
#ifdef WISP_PEER_EIGEN
  AddEigen(p, contenders);
#endif
#ifdef WISP_PEER_XNNPACK
  AddXnnpack(p, contenders);
#endif

  Cell cell{.shape = shape, .measured = Check(p, contenders)};
  std::vector<Samples> samples(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) {
    samples[i].calls = CallsPerBatch(contenders[i].run);
    if (contenders[i].pack) samples[i].packs = CallsPerBatch(contenders[i].pack);
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    double peak = 0;
    for (int i = 0; i < kPeakProbes; ++i) peak = std::max(peak, tools::FmaProbe());
    cell.peak_gflops = std::max(cell.peak_gflops, peak);
    Round(cell, contenders, round, peak, samples);
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    Measured& m = cell.measured[i];
    m.gflops = ComputeSpread(samples[i].gflops);
    m.percent_of_peak = ComputeSpread(samples[i].percent);
    m.ours_over_this = ComputeSpread(samples[i].ratio);
    m.pack_us = ComputeSpread(samples[i].pack_us);
  }
  return cell;
}

double OtherThreadsSeconds() {
  const auto seconds = [](int who) {
    rusage u;
    getrusage(who, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
  };
  return std::max(0.0, seconds(RUSAGE_SELF) - seconds(RUSAGE_THREAD));
}

}  // namespace wisp::bench
