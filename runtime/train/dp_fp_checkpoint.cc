// What a DP-FP trainer leaves behind for another process to go on with, and how it goes on: trainer_checkpoint.cc says
// under which rules.
#include <algorithm>

#include "runtime/train/checkpoint_parts.h"
#include "runtime/train/dp_fp_report.h"

namespace wisp {

using namespace checkpoint_parts;

bool DpFpTrainer::at_end_of_charge() const {
  return std::all_of(charged_until_.begin(), charged_until_.end(), [this](uint64_t until) { return step_ >= until; });
}

// Every option that decides what the next step computes, and no count of records.
std::string DpFpTrainer::Config() const {
  const DpFpOptions& o = options_;
  std::string text = "dp-fp mode " + std::to_string(static_cast<int>(o.mode)) + " steps " +
                     std::to_string(o.num_steps) + " batch " + std::to_string(o.expected_batch) + " in " +
                     std::to_string(o.micro_batches) + " of " + std::to_string(o.num_records_public) + " threads " +
                     std::to_string(workers_.size()) + " clip " + Text(o.clipping_norm) + " noise " +
                     Text(o.noise_multiplier) + " releases " + Text(o.release_decay) + " " +
                     Text(o.effective_dimensions);
  for (double p : o.class_prior) text += " " + Text(p);
  if (o.mode == DpFpMode::kClipped) {
    text += " encoder " + Text(o.encoder.noise_multiplier) + " " + Text(o.encoder.clipping_norm) + " " +
            std::to_string(static_cast<int>(o.encoder.clipping));
  }
  if (o.mode != DpFpMode::kAggregate) text += Text(o.optimizer);
  return text;
}

Checkpoint DpFpTrainer::Save() {
  Checkpoint c;
  c.architecture = graph_.architecture();
  c.weights = Copy(weights_);
  if (optimizer_) {
    c.first_moment = Copy(optimizer_->first());
    c.second_moment = Copy(optimizer_->second());
  }
  if (releases_) c.head_releases = releases_->State();
  c.step = step_;
  c.seed = options_.reproducible_seed.value_or(0);
  c.run_id = options_.run;
  c.base_model_hash = options_.base_model_hash;
  c.config = Config();
  checkpoint_parts::Save(AllStreams(), c);
  return c;
}

Status DpFpTrainer::Restore(const Checkpoint& c) {
  if (!(c.architecture == graph_.architecture()))
    return InvalidData("checkpoint: it belongs to a model of another architecture");
  if (c.config != Config() || c.seed != options_.reproducible_seed.value_or(0)) {
    return InvalidData("checkpoint: it belongs to a run with other options: '", c.config, "', here: '", Config(), "'");
  }
  if (c.base_model_hash != options_.base_model_hash)
    return InvalidData("checkpoint: it belongs to a run that began with another model");
  WISP_RETURN_IF_ERROR(checkpoint_parts::Check(AllStreams(), c));
  WISP_RETURN_IF_ERROR(CheckSize("weights", c.weights.size(), weights_.size()));
  WISP_RETURN_IF_ERROR(CheckSize("first moment", c.first_moment.size(), optimizer_ ? optimizer_->first().size() : 0));
  WISP_RETURN_IF_ERROR(
      CheckSize("second moment", c.second_moment.size(), optimizer_ ? optimizer_->second().size() : 0));
  if (is_private()) {
    WISP_RETURN_IF_ERROR(checkpoint_parts::CheckTuning(c, options_.run));
    WISP_RETURN_IF_ERROR(CheckCharged(*options_.ledger, c, kHeadPurpose, c.step * options_.micro_batches));
    if (options_.mode == DpFpMode::kClipped)
      WISP_RETURN_IF_ERROR(CheckCharged(*options_.ledger, c, kEncoderPurpose, c.step));
  }
  if (releases_ ? !releases_->Restore(c.head_releases) : !c.head_releases.empty())
    return InvalidData("checkpoint: its head's releases are not those of such a run");
  WISP_RETURN_IF_ERROR(checkpoint_parts::Restore(AllStreams(), c));
  std::copy(c.weights.begin(), c.weights.end(), weights_.data());
  if (optimizer_) {
    std::copy(c.first_moment.begin(), c.first_moment.end(), optimizer_->first().data());
    std::copy(c.second_moment.begin(), c.second_moment.end(), optimizer_->second().data());
  }
  step_ = c.step;
  options_.run = c.run_id;
  // As in Trainer::Restore: what the other process was charged for is spent.
  std::fill(charged_until_.begin(), charged_until_.end(), 0);
  num_charged_ = 0;
  return OkStatus();
}

}  // namespace wisp
