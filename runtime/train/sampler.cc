#include "runtime/train/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "runtime/train/checkpoint_parts.h"
#include "runtime/train/memory.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {
namespace {

class PoissonSampler final : public Sampler {
 public:
  PoissonSampler(double probability, size_t num_records)
      : probability_(probability), num_records_(static_cast<uint32_t>(num_records)) {}
  void Draw(uint64_t, privacy::RandomStream& stream, std::vector<uint32_t>& records) override {
    privacy::PoissonSample(stream, probability_, num_records_, records);
  }

 private:
  double probability_;
  uint32_t num_records_;
};

// Samples all micro-batches of a step, one after another, for DpFpMode::kPaper.
class MicroBatchSampler final : public Sampler {
 public:
  MicroBatchSampler(double probability, uint32_t micro_batches, size_t num_records)
      : probability_(probability), micro_batches_(micro_batches), num_records_(static_cast<uint32_t>(num_records)) {
    sample_.reserve(num_records);
  }
  void Draw(uint64_t, privacy::RandomStream& stream, std::vector<uint32_t>& records) override {
    records.clear();
    for (uint32_t m = 0; m < micro_batches_; ++m) {
      privacy::PoissonSample(stream, probability_, num_records_, sample_);
      records.insert(records.end(), sample_.begin(), sample_.end());
    }
  }
  size_t size_bytes() const override { return sample_.capacity() * sizeof(uint32_t); }

 private:
  double probability_;
  uint32_t micro_batches_, num_records_;
  std::vector<uint32_t> sample_;
};

// Every record once an epoch, in a new order each time. An epoch's last batch may be smaller.
class ShuffledSampler final : public Sampler {
 public:
  ShuffledSampler(uint32_t batch, size_t num_records) : batch_(batch), order_(num_records) {}

  void Draw(uint64_t, privacy::RandomStream& stream, std::vector<uint32_t>& records) override {
    const uint32_t n = static_cast<uint32_t>(order_.size());
    records.clear();
    while (records.size() < batch_) {
      if (next_ == 0) {
        std::iota(order_.begin(), order_.end(), 0u);
        for (uint32_t i = n; i > 1; --i) std::swap(order_[i - 1], order_[stream.UniformBelow(i)]);
      }
      records.push_back(order_[next_]);
      next_ = (next_ + 1) % n;
      if (next_ == 0) break;
    }
  }

  void Save(Checkpoint& c) const override {
    if (next_ == 0) return;
    c.order = order_;
    c.order_next = next_;
  }
  Status Check(const Checkpoint& c) const override {
    for (const uint32_t index : c.order) {
      if (index >= order_.size())
        return InvalidData("checkpoint: its order names record ", index, " of ", order_.size());
    }
    return c.order.empty() ? OkStatus() : checkpoint_parts::CheckSize("order", c.order.size(), order_.size());
  }
  void Restore(const Checkpoint& c) override {
    std::copy(c.order.begin(), c.order.end(), order_.begin());
    next_ = c.order_next;
  }
  size_t size_bytes() const override { return order_.capacity() * sizeof(uint32_t); }

 private:
  size_t batch_;
  std::vector<uint32_t> order_;
  size_t next_ = 0;
};

// Each record enters one step of each epoch, chosen uniformly and independently of other records. A process that
// resumes begins a new epoch, and pays for it: which records the last one has used is not saved.
class AllocationSampler final : public Sampler {
 public:
  AllocationSampler(const SamplingLaw& law, size_t num_records)
      : epoch_steps_(law.epoch_steps), once_(law.kind == Sampling::kCyclic), step_of_(num_records) {}

  void Draw(uint64_t step, privacy::RandomStream& stream, std::vector<uint32_t>& records) override {
    if (!first_) first_ = step;
    const uint64_t done = step - *first_, now = done % epoch_steps_;
    if (now == 0 && (done == 0 || !once_)) {
      for (uint32_t& of_record : step_of_) of_record = static_cast<uint32_t>(stream.UniformBelow(epoch_steps_));
    }
    records.clear();
    for (uint32_t i = 0; i < step_of_.size(); ++i) {
      if (step_of_[i] == now) records.push_back(i);
    }
  }
  void Restore(const Checkpoint&) override { first_.reset(); }
  size_t size_bytes() const override { return step_of_.capacity() * sizeof(uint32_t); }

 private:
  uint64_t epoch_steps_;
  bool once_;
  std::vector<uint32_t> step_of_;  // of each record: its step of the epoch
  std::optional<uint64_t> first_;  // the first step that this process has drawn
};

}  // namespace

Status Sampler::Check(const Checkpoint& c) const {
  return c.order.empty() ? OkStatus() : InvalidData("checkpoint: it has an order of records, which such a run has not");
}

std::unique_ptr<Sampler> MakeSampler(const TrainingOptions& o, size_t num_records) {
  if (IsPaper(o))
    return std::make_unique<MicroBatchSampler>(MicroBatchProbability(o), o.dp_fp.micro_batches, num_records);
  if (o.sampling == Sampling::kPoisson) return std::make_unique<PoissonSampler>(MakeLaw(o).probability, num_records);
  if (o.sampling != Sampling::kShuffled) return std::make_unique<AllocationSampler>(MakeLaw(o), num_records);
  return std::make_unique<ShuffledSampler>(o.expected_batch, num_records);
}

SamplerPlan PlanSampler(const TrainingOptions& o, size_t num_records) {
  if (IsPaper(o)) {
    return {.bytes = num_records * sizeof(uint32_t),
            .most_records = BinomialUpperQuantile(num_records * o.dp_fp.micro_batches, MicroBatchProbability(o))};
  }
  const bool by_record = o.sampling != Sampling::kPoisson;
  return {.bytes = by_record ? num_records * sizeof(uint32_t) : 0, .most_records = num_records};
}

// DP-FP samples by Poisson, whatever the options say.
SamplingLaw MakeLaw(const TrainingOptions& o) {
  const double steps = std::round(1 / BatchProbability(o));
  return {.kind = o.sampling == Sampling::kShuffled ? Sampling::kPoisson : o.sampling,
          .probability = BatchProbability(o),
          .epoch_steps = static_cast<uint64_t>(std::max(1.0, steps))};
}

}  // namespace wisp
