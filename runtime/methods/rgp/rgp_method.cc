// Built for speed: noise and sums over every carrier of a step.
#include "runtime/methods/rgp/rgp_method.h"

#include <algorithm>
#include <vector>

#include "runtime/methods/rgp/rgp_batch_gradients.h"
#include "runtime/methods/rgp/rgp_gradients.h"
#include "runtime/methods/rgp/rgp_randomness.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/method_table.h"

namespace wisp {

const bool kHasRgp = true;

namespace {

// The rows of a parameter whose gradient is made at a time: on the host about kUpdateChunk numbers, on a device all.
size_t ChunkRows(const ParameterSpec& p, bool is_on_device) {
  return is_on_device ? p.rows : std::max<size_t>(1, kUpdateChunk / p.cols);
}

// The number of floats in the largest piece of a gradient that a worker makes.
size_t BufferSize(const std::vector<ParameterSpec>& parameters, bool is_on_device) {
  size_t size = is_on_device ? 0 : kUpdateChunk;
  for (const ParameterSpec& p : parameters) size = std::max<size_t>(size, is_on_device ? p.size() : p.cols);
  return size;
}

class RgpMethod final : public SumMethod {
 public:
  RgpMethod(const MethodSetup& s, const RgpCarriers::Plan& plan)
      : SumMethod(s, plan.release_size, NumReleasedByRgp(s.graph.architecture(), s.options)),
        carriers_(s.graph.device(), s.graph.parameters(), s.trained, s.options.rgp),
        start_(s.trained.size()),
        first_held_(FirstHeld(s.graph.parameters(), s.options)),
        randomness_(s.options.seed) {
    const kernels::Device& device = s.graph.device();
    s.trained.Gather(s.graph.parameters(), s.start, start_, first_held_);
    if (sum_.is_on_device()) {
      weights_.resize(FlatSize(s.graph.parameters()));
      Own(std::make_unique<RgpBatchGradients>(device, s.graph.max_records(), s.graph.max_rows(), carriers_, sum_.clip(),
                                              sum_.integers()));
    } else {
      released_ = AlignedArray<float>(plan.release_size);
      for (size_t w = 0; w < num_workers_; ++w)
        Own(std::make_unique<RgpGradients>(device,
                                           RgpGradients::Setup{.max_rows = s.graph.max_record_rows(), .worker = w},
                                           carriers_, sum_.clip(), sum_.integers()));
    }
    buffers_.reserve(NumCallers(s.options));
    for (size_t w = 0; w < NumCallers(s.options); ++w)
      buffers_.emplace_back(BufferSize(s.graph.parameters(), sum_.is_on_device()), device.memory);
  }

  // Makes the carriers from released weights and a public stream.
  void Begin(uint64_t step, std::span<const float> weights, const StepBatch&, privacy::RandomStream& noise) override {
    if (sum_.is_on_device()) {
      graph_->device().memory.copy_out(weights_.data(), weights.data(), weights.size_bytes());
      weights = weights_;
    }
    carriers_.Update(weights, start_, step, randomness_.OfStep(step), first_held_);
    BeginSum(step, carriers_.release_size(), noise);
  }

  void AddNoise(size_t worker, privacy::RandomStream& noise) override {
    if (sum_.is_on_device()) return;
    ForEachPiece(worker, [&](const Piece& piece) {
      sum_.Take(piece.offset, piece.n, 1.0f, noise, released_.data() + piece.offset);
    });
  }

  void Prepare() override {
    sum_.Send();
    if (!sum_.is_on_device()) carriers_.Prepare({released_.data(), released_.size()});
  }

  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    const float scale = sum_.Scale(divisor);
    if (!sum_.is_on_device()) return ApplyShare(worker, num_workers_, released_.data(), scale, apply);
    if (worker > 0) return;
    const float* released = sum_.TakeAll(scale);
    carriers_.Prepare({released, carriers_.release_size()});
    ApplyAll(released, apply);
    Forget();
  }

  size_t planned_bytes() const override {
    size_t bytes = SumMethod::planned_bytes() + carriers_.size_bytes() + released_.allocated_bytes() +
                   (start_.capacity() + weights_.capacity()) * sizeof(float);
    for (const AlignedArray<float>& buffer : buffers_) bytes += buffer.allocated_bytes();
    return bytes;
  }

 protected:
  void ForEachPiece(size_t worker, const Visit& visit) const override {
    const size_t size = carriers_.release_size();
    for (size_t chunk = worker; chunk * kUpdateChunk < size; chunk += num_workers_)
      visit({.offset = chunk * kUpdateChunk, .n = std::min(kUpdateChunk, size - chunk * kUpdateChunk)});
  }

  void ApplyAll(const float* released, const Apply& apply) override { ApplyShare(0, 1, released, 1.0f, apply); }

 private:
  // Makes and applies one worker's share of the gradient, scaled.
  void ApplyShare(size_t worker, size_t num_workers, const float* released, float scale, const Apply& apply) {
    float* g = buffers_[worker].data();
    size_t turn = 0;
    for (const uint32_t i : trained_->parameters()) {
      const ParameterSpec& p = graph_->parameters()[i];
      const RgpCarriers::Entry& entry = carriers_.entry(i);
      const size_t chunk_rows = ChunkRows(p, sum_.is_on_device());
      for (size_t first = 0; first < p.rows; first += chunk_rows) {
        if (turn++ % num_workers != worker) continue;
        const size_t rows = std::min<size_t>(chunk_rows, p.rows - first), n = rows * p.cols;
        const float* gradient = released + entry.left_offset + first * p.cols;
        if (entry.train == RgpTrain::kProjected) {
          carriers_.Gradient({released, carriers_.release_size()}, i, first, rows, g);
          gradient = g;
        }
        if (scale != 1.0f) {
          graph_->ops().scale({.x = gradient, .y = g, .n = n, .a = scale, .store = kernels::Store::kAssign});
          gradient = g;
        }
        apply({i, first * p.cols, gradient, n});
      }
    }
  }

  RgpCarriers carriers_;
  AlignedArray<float> released_;        // on the host, in steps of the grid
  std::vector<float> start_, weights_;  // W_0 of the trained set; on a device: all weights of the step, on the host
  size_t first_held_;                   // FirstHeld
  RgpRandomness randomness_;
  std::vector<AlignedArray<float>> buffers_;  // for each caller: one piece of a gradient
};

RgpCarriers::Plan GetPlan(const Architecture& a, const TrainingOptions& o) {
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  return RgpCarriers::GetPlan(parameters, TrainedBy(parameters, o), o.rgp, o.device.memory);
}

}  // namespace

std::unique_ptr<GradientMethod> MakeRgpMethod(const MethodSetup& s) {
  return std::make_unique<RgpMethod>(s, GetPlan(s.graph.architecture(), s.options));
}

MethodBytes PlanRgpMethod(const Graph& graph, const TrainedSet& trained, size_t, const TrainingOptions& o) {
  const RgpCarriers::Plan carriers = GetPlan(graph.architecture(), o);
  const bool is_on_device = !o.device.memory.is_host();
  const size_t size = carriers.release_size, callers = NumCallers(o);
  MethodBytes bytes{.sums =
                        carriers.size_bytes + StepSum::PlanBytes(o, size) + trained.size() * sizeof(float) +
                        callers * AlignedArray<float>::AllocatedBytes(BufferSize(graph.parameters(), is_on_device))};
  if (is_on_device) {
    bytes.sums += FlatSize(graph.parameters()) * sizeof(float);
    bytes.records = RgpBatchGradients::PlanBytes(graph.max_records(), graph.max_rows(), size, o.rgp.rank);
  } else {
    bytes.sums += AlignedArray<float>::AllocatedBytes(size);
    bytes.records = callers * RgpGradients::PlanBytes(size, graph.max_record_rows(), o.rgp.rank);
  }
  return bytes;
}

bool TrainsByRgp(const ParameterSpec& p, const TrainingOptions& o) { return Trains(o.rgp, p); }

Status CheckRgp(const Architecture& a, const TrainingOptions& o) {
  if (a.head.temperature > 0)
    return Unsupported("rgp projects rows that pass no norm: it is not offered with a cosine head (temperature)");
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  return Validate(o.rgp, parameters, TrainedBy(parameters, o));
}

uint64_t NumReleasedByRgp(const Architecture& a, const TrainingOptions& o) {
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  return RgpReleaseSize(o.rgp, parameters, TrainedBy(parameters, o));
}

size_t RgpRowFloats(const Architecture& a, const TrainingOptions& o) { return GetPlan(a, o).release_size; }

}  // namespace wisp
