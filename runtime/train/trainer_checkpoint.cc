// Saves a trainer's state for another process, and restores it.
//
// A reproducible run continues bit for bit, because its streams' positions are saved. A private run with a secure
// generator draws fresh randomness. A checkpoint never carries unused ledger charges, so a step that is repeated is
// charged again.
#include <algorithm>
#include <string>

#include "runtime/train/checkpoint_parts.h"
#include "runtime/train/trainer.h"

namespace wisp {

using namespace checkpoint_parts;

// DP-FP whose noise has no seed saves 0.
uint64_t Trainer::SavedSeed() const {
  return options_.method == Method::kDpFp ? options_.privacy.reproducible_seed.value_or(0) : options_.seed;
}

// With an adapter only the trained weights are saved: the base does not change, and the resuming process has it.
std::vector<float> Trainer::Kept(const AlignedArray<float>& flat) const {
  std::vector<float> all = CopyOf(flat);
  if (!keeps_trained()) return all;
  std::vector<float> kept(trained_.size());
  trained_.Gather(graph_->parameters(), all, kept, first_held_);
  return kept;
}

void Trainer::TakeKept(const std::vector<float>& kept, AlignedArray<float>& flat) const {
  const kernels::Memory& memory = options_.device.memory;
  if (!keeps_trained()) return memory.copy_in(flat.data(), kept.data(), kept.size() * sizeof(float));
  std::vector<float> all = CopyOf(flat);
  trained_.Scatter(graph_->parameters(), kept, all, first_held_);
  memory.copy_in(flat.data(), all.data(), all.size() * sizeof(float));
}

Result<Checkpoint> Trainer::Save() {
  Checkpoint c;
  c.architecture = graph_->architecture();
  c.weights = Kept(weights_);
  if (optimizer_) {
    c.first_moment = CopyOf(optimizer_->first());
    c.second_moment = CopyOf(optimizer_->second());
  }
  if (ema_.size() > 0) c.average = Kept(ema_);
  if (options_.sampling == Sampling::kShuffled && order_next_ > 0) {
    c.order = order_;
    c.order_next = order_next_;
  }
  if (head_) c.head_releases = head_->State();
  c.item_rows.assign(sparse_rows_.begin(), sparse_rows_.end());
  c.step = step_;
  c.seed = SavedSeed();
  c.run_id = options_.privacy.run;
  c.base_model_hash = options_.base_model_hash;
  c.receipt = receipt_;
  c.config = Config();
  checkpoint_parts::Save(AllStreams(), c);
  WISP_RETURN_IF_ERROR(WaitForDevice("a checkpoint was made"));
  return c;
}

checkpoint_parts::Streams Trainer::AllStreams() {
  Streams streams = {&sampling_stream_};
  for (size_t w = 0; w < workers_.size(); ++w) streams.push_back(&NoiseStream(w));
  return streams;
}

// Up to wisp 0.1.0 a checkpoint's moments covered all parameters, trained or not.
std::vector<float> Trainer::MomentOf(const std::vector<float>& saved) const {
  if (saved.size() == trained_.size() || saved.size() != FlatSize(graph_->parameters())) return saved;
  std::vector<float> moment(trained_.size());
  trained_.Gather(graph_->parameters(), saved, moment);
  return moment;
}

// Up to wisp 0.1.0 a checkpoint held all weights, including those that the run reads in its base's file.
std::vector<float> Trainer::HeldOf(const std::vector<float>& saved) const {
  if (first_held_ == 0 || saved.size() != FlatSize(graph_->parameters())) return saved;
  return {saved.begin() + static_cast<std::ptrdiff_t>(first_held_), saved.end()};
}

Status Trainer::Restore(const Checkpoint& c) {
  WISP_RETURN_IF_ERROR(CheckDevice());
  if (!(c.architecture == graph_->architecture()))
    return InvalidData("checkpoint: it belongs to a model of another architecture");
  const auto comparable = [this](const std::string& config) {
    return sampling_stream_.IsSecure() ? WithoutThreads(config) : config;
  };
  const std::string then = comparable(is_private() ? WithoutRecords(c.config) : c.config), now = comparable(Config());
  if (then != now) {
    return InvalidData("checkpoint: it belongs to a run with other options: ", checkpoint_parts::WhatDiffers(then, now),
                       "; go on with the options that it began with, or name another checkpoint");
  }
  if (c.seed != SavedSeed()) return InvalidData("checkpoint: it belongs to a run with another seed");
  // Otherwise the weights would carry the provenance of another base.
  if (c.base_model_hash != options_.base_model_hash)
    return InvalidData("checkpoint: it belongs to a run that began with another model");
  WISP_RETURN_IF_ERROR(checkpoint_parts::Check(AllStreams(), c));
  const size_t kept = keeps_trained() ? trained_.size() : weights_.size();
  const std::vector<float> weights = HeldOf(c.weights), average = HeldOf(c.average);
  WISP_RETURN_IF_ERROR(CheckSize("weights", weights.size(), kept));
  const std::vector<float> first = MomentOf(c.first_moment), second = MomentOf(c.second_moment);
  WISP_RETURN_IF_ERROR(CheckSize("first moment", first.size(), optimizer_ ? optimizer_->first().size() : 0));
  WISP_RETURN_IF_ERROR(CheckSize("second moment", second.size(), optimizer_ ? optimizer_->second().size() : 0));
  WISP_RETURN_IF_ERROR(CheckSize("average", average.size(), ema_.size() > 0 ? kept : 0));
  if (is_private()) {
    WISP_RETURN_IF_ERROR(checkpoint_parts::CheckTuning(c, options_.privacy.run));
    WISP_RETURN_IF_ERROR(checkpoint_parts::CheckPaid(*options_.privacy.ledger, c));
    for (const PrivacyPlan::Part& part : plan_->parts())
      WISP_RETURN_IF_ERROR(CheckCharged(*options_.privacy.ledger, c, part.purpose, c.step * part.releases));
  }
  if (!head_ && !c.head_releases.empty())
    return InvalidData("checkpoint: its head's releases are not those of such a run");
  if (!std::equal(c.item_rows.begin(), c.item_rows.end(), sparse_rows_.begin(), sparse_rows_.end())) {
    return InvalidData("checkpoint: it belongs to a run that trains other rows of the item table");
  }
  for (uint32_t index : c.order) {
    if (index >= records_.size())
      return InvalidData("checkpoint: its order names record ", index, " of ", records_.size());
  }
  if (!c.order.empty()) WISP_RETURN_IF_ERROR(CheckSize("order", c.order.size(), records_.size()));
  if (head_ && !head_->Restore(c.head_releases))
    return InvalidData("checkpoint: its head's releases are not those of such a run");
  WISP_RETURN_IF_ERROR(checkpoint_parts::Restore(AllStreams(), c));
  TakeKept(weights, weights_);
  packed_once_ = false;
  if (pooled_) pooled_->Forget();
  if (optimizer_) {
    const kernels::Memory& memory = options_.device.memory;
    memory.copy_in(optimizer_->first().data(), first.data(), first.size() * sizeof(float));
    memory.copy_in(optimizer_->second().data(), second.data(), second.size() * sizeof(float));
  }
  if (ema_.size() > 0) TakeKept(average, ema_);
  std::copy(c.order.begin(), c.order.end(), order_.begin());
  order_next_ = c.order_next;
  step_ = c.step;
  options_.privacy.run = c.run_id;
  if (plan_) plan_->SetRun(c.run_id);
  // The other process's charges are spent, and this one pays for its own steps. That includes steps of a block that was
  // charged and not taken: nobody can tell whether this checkpoint resumes for the first time, and two draws of noise
  // on one charge would cost twice what is counted.
  std::fill(charged_until_.begin(), charged_until_.end(), 0);
  num_charged_ = 0;
  receipt_ = c.receipt;
  return WaitForDevice("a checkpoint was restored");
}

}  // namespace wisp
