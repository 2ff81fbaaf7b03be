#include "runtime/methods/dp_fp/dp_fp_method.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/methods/dp_fp/dp_fp_report.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/exact_sum.h"

namespace wisp {

const bool kHasDpFp = true;

Status HeadStep::Run(StepReport& report) {
  report.num_head_records = pass_.num_drawn();
  context_->ForParts([this](size_t w) {
    RecordContext context{.weights = context_->weights.view(), .buffers = context_->of_workers[w].buffers};
    dropped_[w] = pass_.Add(w, context, context_->records, context_->states.get());
  });
  report.num_dropped += std::accumulate(dropped_.begin(), dropped_.end(), size_t{0});
  pass_.Fit(context_->GetNoise(0), context_->weights.current());
  return OkStatus();
}

Status HeadStep::Check(const Checkpoint& c) const {
  if (pass_.Fits(c.head_releases)) return OkStatus();
  return InvalidData("checkpoint: its head's releases are not those of such a run");
}

void HeadStep::AddMemory(TrainingMemory& m) const {
  m.gradient_sums += pass_.release_bytes();
  m.lists += pass_.list_bytes() + dropped_.capacity() * sizeof(size_t);
}

std::unique_ptr<StepPart> MakeHeadStep(StepContext& context) {
  return ReleasesHead(context.options) ? std::make_unique<HeadStep>(context) : nullptr;
}

void AddHeadMemory(const Graph& graph, size_t num_records, const TrainingOptions& o, TrainingMemory& m) {
  if (!ReleasesHead(o)) return;
  const HeadPass::Bytes head = HeadPass::PlanBytes(graph, o, num_records);
  m.gradient_sums += head.releases;
  m.lists += head.lists + NumCallers(o) * sizeof(size_t);
  m.records_at_most = head.records_at_most;
}

// The m releases of a step are m steps of one mechanism, each with the coordinates of one matrix.
PrivacyPlan::Part HeadPart(const Architecture& a, const TrainingOptions& o) {
  const uint64_t coordinates = uint64_t{a.head.num_classes} * a.width;
  return {.purpose = kHeadPurpose,
          .noise = {.multiplier = o.dp_fp.noise_multiplier},
          .law = {.probability = MicroBatchProbability(o)},
          .releases = o.dp_fp.micro_batches,
          .noises = {{o.dp_fp.clipping_norm, {.multiplier = o.dp_fp.noise_multiplier}, coordinates, coordinates}}};
}

namespace {

Status CheckHeadReleases(const Architecture& a, const DpFpOptions& d) {
  if (!(d.release_decay > 0 && d.release_decay <= 1)) {
    return InvalidArgument("release_decay is ", d.release_decay, ", allowed is 0 < decay <= 1");
  }
  if (!(d.effective_dimensions >= 1 && d.effective_dimensions <= a.width)) {
    return InvalidArgument("effective_dimensions is ", d.effective_dimensions, ", allowed are 1 to the width ",
                           a.width);
  }
  if (d.class_prior.empty()) return OkStatus();
  bool good = d.class_prior.size() == a.head.num_classes;
  for (double p : d.class_prior) good = good && p > 0;
  if (good && std::abs(std::accumulate(d.class_prior.begin(), d.class_prior.end(), -1.0)) < 1e-6) return OkStatus();
  return InvalidArgument("class_prior must name a positive probability for each class, together 1");
}

}  // namespace

Status CheckHead(const Architecture& a, const TrainingOptions& o) {
  if (o.method != Method::kDpFp) return OkStatus();
  if (a.head.kind != HeadKind::kClasses)
    return Unsupported("dp-fp is for classifiers: this model has no head of classes");
  if (a.adapter) return Unsupported("dp-fp replaces the head, which an adapter does not hold: train without one");
  if (o.dp_fp.micro_batches == 0 || o.expected_batch == 0)
    return InvalidArgument("`expected_batch` and micro_batches must be 1 or above");
  WISP_RETURN_IF_ERROR(privacy::ExactGrid::Validate({.clipping_norm = o.dp_fp.clipping_norm,
                                                     .num_coordinates = uint64_t{a.head.num_classes} * a.width,
                                                     .noise_multiplier = o.dp_fp.noise_multiplier}));
  if (IsPaper(o) && o.privacy.ledger != nullptr) {
    return PrivacyRefused("mode paper on a data set with a ledger: no charge could cover it. ", ExplainPaperMode());
  }
  return IsPaper(o) ? OkStatus() : CheckHeadReleases(a, o.dp_fp);
}

PaperNoise::PaperNoise(const TrainingOptions& o, size_t width, size_t max_records)
    : norm_bound_(o.dp_fp.clipping_norm),
      steps_(width),
      values_(width * max_records),
      memory_(o.device.memory),
      on_device_(memory_.is_host() ? 0 : values_.size(), memory_) {
  const privacy::ExactGrid grid(o.dp_fp.clipping_norm, width);
  grid_ = grid.grid();
  sigma_ = grid.sigma_in_steps(o.dp_fp.noise_multiplier);
}

void PaperNoise::Draw(privacy::RandomStream& noise, size_t b) {
  std::fill(steps_.begin(), steps_.end(), 0);
  privacy::AddDiscreteGaussian(noise, sigma_, steps_);
  float* values = values_.data() + b * steps_.size();
  for (size_t k = 0; k < steps_.size(); ++k) values[k] = static_cast<float>(static_cast<double>(steps_[k]) * grid_);
}

HeadInput PaperNoise::Input() {
  if (memory_.is_host()) return {.norm_bound = norm_bound_, .noise_BD = values_.data()};
  memory_.copy_in(on_device_.data(), values_.data(), values_.size() * sizeof(float));
  return {.norm_bound = norm_bound_, .noise_BD = on_device_.data()};
}

std::unique_ptr<HeadNoise> MakeHeadNoise(const Graph& graph, const TrainingOptions& o) {
  return IsPaper(o) ? std::make_unique<PaperNoise>(o, graph.architecture().width, graph.max_records()) : nullptr;
}

size_t PlanHeadNoise(const Graph& graph, const TrainingOptions& o) {
  if (!IsPaper(o)) return 0;
  const size_t width = graph.architecture().width, numbers = width * graph.max_records();
  return width * sizeof(int64_t) + numbers * sizeof(float) +
         AlignedArray<float>::AllocatedBytes(o.device.memory.is_host() ? 0 : numbers);
}

}  // namespace wisp
