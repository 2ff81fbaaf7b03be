#include "runtime/train/head_pass.h"

#include <algorithm>

#include "runtime/privacy/discrete_gaussian.h"
#include "runtime/privacy/exact_sum.h"
#include "runtime/train/memory.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {
namespace {

HeadReleaseOptions ReleaseOptions(const Architecture& a, const TrainingOptions& o) {
  return {.num_classes = a.head.num_classes,
          .width = a.width,
          .micro_batches = o.dp_fp.micro_batches,
          .clipping_norm = o.dp_fp.clipping_norm,
          .noise_multiplier = o.dp_fp.noise_multiplier,
          .sampling_probability = MicroBatchProbability(o),
          .num_records_public = o.num_records_public,
          .release_decay = o.dp_fp.release_decay,
          .effective_dimensions = o.dp_fp.effective_dimensions,
          .class_prior = o.dp_fp.class_prior};
}

}  // namespace

size_t MicroBatchDrawsAtMost(const TrainingOptions& o, size_t num_records) {
  return BinomialUpperQuantile(num_records * o.dp_fp.micro_batches, MicroBatchProbability(o));
}

HeadPass::HeadPass(const Graph& graph, const TrainingOptions& o, size_t num_records)
    : graph_(&graph),
      num_workers_(o.num_threads),
      micro_batches_(o.dp_fp.micro_batches),
      probability_(MicroBatchProbability(o)),
      releases_(graph.ops(), ReleaseOptions(graph.architecture(), o)) {
  sample_.reserve(num_records);
  draws_.reserve(MicroBatchDrawsAtMost(o, num_records));
}

HeadPass::Bytes HeadPass::PlanBytes(const Architecture& a, const TrainingOptions& o, size_t num_records) {
  const size_t draws = MicroBatchDrawsAtMost(o, num_records);
  return {.releases = HeadReleases::PlanBytes(ReleaseOptions(a, o)),
          .lists = num_records * sizeof(uint32_t) + draws * sizeof(Drawn),
          .records_at_most = draws};
}

void HeadPass::Draw(privacy::RandomStream& sampling, size_t num_records) {
  draws_.clear();
  for (uint32_t m = 0; m < micro_batches_; ++m) {
    privacy::PoissonSample(sampling, probability_, static_cast<uint32_t>(num_records), sample_);
    for (uint32_t record : sample_) draws_.push_back({record, m});
  }
  releases_.Clear();
}

size_t HeadPass::Add(size_t worker, RecordContext& context, std::span<const Record> records) {
  size_t dropped = 0;
  for (size_t i = worker; i < draws_.size(); i += num_workers_) {
    const Record& record = records[draws_[i].record];
    const float* h = graph_->Represent(context, record.inputs);
    if (!releases_.Add(worker, draws_[i].micro_batch, h, static_cast<uint32_t>(record.targets[0]))) ++dropped;
  }
  return dropped;
}

void HeadPass::Fit(privacy::RandomStream& noise, std::span<float> weights) {
  releases_.Release(noise);
  const std::vector<ParameterSpec>& parameters = graph_->parameters();
  const auto at = [&](ParameterRole role) {
    return weights.data() + parameters[RequireParameter(parameters, role)].offset;
  };
  releases_.FitHead(at(ParameterRole::kClassWeight), at(ParameterRole::kClassBias));
}

PaperNoise::PaperNoise(const TrainingOptions& o, size_t width)
    : norm_bound_(o.dp_fp.clipping_norm), steps_(width), values_(width) {
  const privacy::ExactGrid grid(o.dp_fp.clipping_norm, width);
  grid_ = grid.grid();
  sigma_ = grid.sigma_in_steps(o.dp_fp.noise_multiplier);
}

HeadInput PaperNoise::Draw(privacy::RandomStream& noise) {
  std::fill(steps_.begin(), steps_.end(), 0);
  privacy::AddDiscreteGaussian(noise, sigma_, steps_);
  for (size_t k = 0; k < steps_.size(); ++k) values_[k] = static_cast<float>(static_cast<double>(steps_[k]) * grid_);
  return {.norm_bound = norm_bound_, .noise_D = values_.data()};
}

}  // namespace wisp
