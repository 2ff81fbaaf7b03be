// Which records a step reads, and by which law. The accountant asks the law, never the class.
//
//   const std::unique_ptr<Sampler> sampler = MakeSampler(options, records.size());
//   sampler->Draw(step, stream, batch);
#ifndef WISP_RUNTIME_TRAIN_SAMPLER_H_
#define WISP_RUNTIME_TRAIN_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/model/checkpoint.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/options.h"

namespace wisp {

class Sampler {
 public:
  virtual ~Sampler() = default;
  // Sets `records` to the indices of a step's records, allocating nothing if it has room for all of them. Steps come in
  // order; after Restore the next one may be any.
  virtual void Draw(uint64_t step, privacy::RandomStream& stream, std::vector<uint32_t>& records) = 0;

  // Saves all that a later process needs to continue, beside the stream's position.
  virtual void Save(Checkpoint& /*checkpoint*/) const {}
  // Check refuses a checkpoint that Restore could not take.
  virtual Status Check(const Checkpoint& checkpoint) const;
  virtual void Restore(const Checkpoint& /*checkpoint*/) {}

  virtual size_t size_bytes() const { return 0; }
};

std::unique_ptr<Sampler> MakeSampler(const TrainingOptions& options, size_t num_records);
// The planned size of a sampler, without making it, and the most records of a step: more have a probability below
// kSeldom.
struct SamplerPlan {
  size_t bytes = 0, most_records = 0;
};
SamplerPlan PlanSampler(const TrainingOptions& options, size_t num_records);

// The law by which a step's records are sampled for the sum of gradients.
struct SamplingLaw {
  Sampling kind = Sampling::kPoisson;
  double probability = 0;    // kPoisson: each record enters each step independently with this probability
  uint64_t epoch_steps = 1;  // kAllocation, kCyclic: steps of an epoch, of which each record enters exactly one
};
// The law of a private run. num_records_public must be set.
SamplingLaw MakeLaw(const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_SAMPLER_H_
