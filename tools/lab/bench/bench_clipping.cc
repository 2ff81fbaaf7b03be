// Implements `wisp-lab bench --what clipping`: records per second and bytes of a training step, ordinary, private, and
// with ghost clipping's way to compute the embedding's norms (Ding et al. 2024, figure 8).
//
// Ghost clipping takes the squared norm of the scores' part of the embedding's gradient, G = grad e_C [M x d], from the
// inner product of the Gram matrix G G^T [M x M] with the identity (equation 25). Phantom clipping takes it from
// ||G||^2 (equation 26). Our own product computes the Gram matrices here, record by record, one record per thread. For
// the rest of ghost clipping we take the time of our private step. So this compares that one product in this program,
// not two libraries. As published, ghost clipping holds the Gram matrices of a batch at once: B M^2 floats. These are
// counted here, not allocated.
#include <cmath>

#include "tools/lab/bench/bench_parts.h"

namespace wisp::tools {
namespace {

constexpr size_t kGradients = 4;        // each thread takes these gradients in turns
constexpr size_t kGramsPerThread = 64;  // at least, over all repeats, unless a step has fewer
constexpr double kLargestTraceError = 1e-4;

size_t RoundedUp(size_t a, size_t b) { return (a + b - 1) / b; }

// Computes the Gram matrices of one thread. G has the form that the backward pass gives it, from softmax-like and
// hidden random numbers.
class GramWorker {
 public:
  GramWorker(const Architecture& a, size_t worker) : ops_(kernels::BestOps()), m_(a.num_items), d_(a.width) {
    auto random = privacy::RandomStream::Reproducible(worker + 1, privacy::StreamPurpose::kInitialisation);
    const size_t t = a.max_length;
    std::vector<float> dz_TM(t * m_), h_TD(t * d_);
    for (float& x : dz_TM) x = static_cast<float>(random.UniformDouble()) / static_cast<float>(m_);
    for (auto& gradient : gradients_) {
      for (float& x : h_TD) x = static_cast<float>(2 * random.UniformDouble() - 1);
      gradient.resize(m_ * d_);
      ops_.linear_backward_weight({.dy_RN = dz_TM.data(),
                                   .lddy = m_,
                                   .x_RK = h_TD.data(),
                                   .ldx = d_,
                                   .dw_NK = gradient.data(),
                                   .lddw = d_,
                                   .rows = t,
                                   .n = m_,
                                   .k = d_,
                                   .scale = 1,
                                   .store = kernels::Store::kAssign});
    }
    packed_ = AlignedArray<float>(ops_.packed_size(m_, d_));
    gram_MM_ = AlignedArray<float>(m_ * m_);
  }
  ~GramWorker() {
    if (ops_.release_packed != nullptr) ops_.release_packed(packed_.data());
  }
  GramWorker(const GramWorker&) = delete;
  GramWorker& operator=(const GramWorker&) = delete;

  // Returns <I, G G^T> of the next record.
  double SquaredNorm() {
    const std::vector<float>& g = gradients_[next_++ % kGradients];
    ops_.pack_weights({.w_NK = g.data(), .ldw = d_, .packed = packed_.data(), .n = m_, .k = d_});
    ops_.linear_forward({.x_RK = g.data(),
                         .ldx = d_,
                         .packed = packed_.data(),
                         .bias_N = nullptr,
                         .y_RN = gram_MM_.data(),
                         .ldy = m_,
                         .rows = m_,
                         .n = m_,
                         .k = d_,
                         .store = kernels::Store::kAssign});
    double trace = 0;
    for (size_t i = 0; i < m_; ++i) trace += gram_MM_.data()[i * m_ + i];
    return trace;
  }

  // Warms up, and compares the result with the sum of squares.
  Status Check() {
    const double expected = ops_.sum_squares(gradients_[next_ % kGradients].data(), m_ * d_), trace = SquaredNorm();
    if (std::abs(trace - expected) <= kLargestTraceError * expected) return OkStatus();
    return InvalidData("the Gram matrix has the trace ", trace, ", the gradient's squared norm is ", expected,
                       ": the measurement is void");
  }

 private:
  const kernels::OpTable& ops_;
  size_t m_, d_, next_ = 0;
  std::vector<float> gradients_[kGradients];
  AlignedArray<float> packed_, gram_MM_;
};

class ClippingBench {
 public:
  explicit ClippingBench(const BenchArguments& arguments) : a_(arguments) {}

  Result<std::vector<MethodFigures>> Run() {
    double total = 0;
    Status status;
    total = Seconds([&] { status = Measure(); });
    WISP_RETURN_IF_ERROR(status);
    std::vector<MethodFigures> all = {Ordinary(), Phantom(), Ghost()};
    for (MethodFigures& m : all) m.figures["measured_seconds"] = total;
    return all;
  }

 private:
  size_t threads() { return pair_->ordinary().workers().size(); }
  size_t RecordsPerThread() { return RoundedUp(a_.batch, threads()); }  // in a step
  size_t GramsPerSample() { return RoundedUp(std::min(kGramsPerThread, RecordsPerThread()), a_.repeats); }

  Status Measure() {
    WISP_ASSIGN_OR_RETURN(pair_, StepPair::Create(a_));
    std::vector<std::unique_ptr<GramWorker>> grams;
    for (size_t w = 0; w < threads(); ++w)
      grams.push_back(std::make_unique<GramWorker>(pair_->problem().architecture, w));
    for (auto& gram : grams) WISP_RETURN_IF_ERROR(gram->Check());
    std::vector<double> kept(grams.size());  // keeps the compiler from dropping the products
    for (uint32_t i = 0; i < a_.repeats; ++i) {
      WISP_RETURN_IF_ERROR(pair_->Sample());
      const double seconds = Seconds([&] {
        pair_->ordinary().workers().Run([&](size_t w) {
          for (size_t r = 0; r < GramsPerSample(); ++r) kept[w] += grams[w]->SquaredNorm();
        });
      });
      extra_.push_back(seconds * static_cast<double>(RecordsPerThread()) / static_cast<double>(GramsPerSample()));
      ghost_.push_back(pair_->private_seconds().back() + extra_.back());
    }
    return OkStatus();
  }

  Json Step(const std::vector<double>& seconds, double bytes) const {
    const Spread s = ComputeSpread(seconds);
    return {{"batch", a_.batch},
            {"items", a_.items},
            {"positions", a_.length},
            {"records_per_second", a_.batch / s.median},
            {"step_seconds", s.median},
            {"step_seconds_quartile_1", s.low},
            {"step_seconds_quartile_3", s.high},
            {"steps_measured", seconds.size()},
            {"memory_bytes", bytes},
            {"memory_bytes_one_record_per_thread", bytes}};
  }

  MethodFigures Ordinary() {
    return {"ordinary", Step(pair_->ordinary_seconds(), static_cast<double>(pair_->ordinary().planned_bytes()))};
  }

  MethodFigures Phantom() {
    MethodFigures m{"phantom",
                    Step(pair_->private_seconds(), static_cast<double>(pair_->with_privacy().planned_bytes()))};
    m.figures["step_over_ordinary"] = ComputeSpread(pair_->ratios()).median;
    return m;
  }

  MethodFigures Ghost() {
    const double gram = 4.0 * a_.items * a_.items, planned = static_cast<double>(pair_->with_privacy().planned_bytes());
    MethodFigures m{"ghost", Step(ghost_, planned)};
    std::vector<double> ratios;
    for (size_t i = 0; i < ghost_.size(); ++i) ratios.push_back(ghost_[i] / pair_->ordinary_seconds()[i]);
    Json& j = m.figures;
    j["step_over_ordinary"] = ComputeSpread(ratios).median;
    j["memory_bytes"] = planned + gram * a_.batch;
    j["memory_bytes_one_record_per_thread"] = planned + gram * static_cast<double>(threads());
    j["gram_bytes_of_batch_computed_not_held"] = gram * a_.batch;
    j["gram_bytes_one_record_per_thread"] = gram * static_cast<double>(threads());
    j["gram_seconds_of_a_step"] = ComputeSpread(extra_).median;
    j["gram_records_of_a_step"] = a_.batch;
    j["gram_records_measured"] = GramsPerSample() * a_.repeats * threads();
    j["gram_sample_multiplied_by"] = static_cast<double>(RecordsPerThread()) / static_cast<double>(GramsPerSample());
    return m;
  }

  const BenchArguments& a_;
  std::unique_ptr<StepPair> pair_;
  std::vector<double> extra_, ghost_;  // seconds of a step: of its Gram matrices alone, and with them
};

}  // namespace

Result<std::vector<MethodFigures>> MeasureClipping(const BenchArguments& a) { return ClippingBench(a).Run(); }

Status BenchClipping(const BenchArguments& a, Json& result) {
  WISP_ASSIGN_OR_RETURN(const std::vector<MethodFigures> all, MeasureClipping(a));
  for (const MethodFigures& m : all) result["clipping"][m.method] = m.figures;
  return OkStatus();
}

}  // namespace wisp::tools
