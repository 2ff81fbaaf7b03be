// Saves a trainer's state for another process, and restores it.
//
// A reproducible run continues bit for bit, because its streams' positions are saved. A private run with a secure
// generator draws fresh randomness. A checkpoint never carries unused ledger charges, so a step that is repeated is
// charged again.
#include <algorithm>
#include <string>

#include "runtime/train/checkpoint_parts.h"
#include "runtime/train/method_table.h"
#include "runtime/train/trainer.h"

namespace wisp {

using checkpoint_parts::CheckSize;

std::string Trainer::Config() const {
  return RunIdentity(options_, context_.records.size(), FollowsUpdates(graph_->architecture(), options_));
}

// DP-FP whose noise has no seed saves 0.
uint64_t Trainer::SavedSeed() const {
  return options_.method == Method::kDpFp ? options_.privacy.reproducible_seed.value_or(0) : options_.seed;
}

checkpoint_parts::Streams Trainer::AllStreams() {
  checkpoint_parts::Streams streams = {&sampling_};
  for (StepContext::Worker& worker : context_.of_workers) streams.push_back(&worker.noise);
  return streams;
}

Result<Checkpoint> Trainer::Save() {
  Checkpoint c;
  c.architecture = graph_->architecture();
  c.weights = weights_.Kept();
  c.average = weights_.CachedAverage();
  for (const auto& part : parts_) part->Save(c);
  c.item_rows.assign(sparse_rows_.begin(), sparse_rows_.end());
  c.step = step();
  c.seed = SavedSeed();
  c.run_id = options_.privacy.run;
  c.base_model_hash = options_.base_model_hash;
  if (charges_) charges_->Save(c);
  c.config = Config();
  checkpoint_parts::Save(AllStreams(), c);
  WISP_RETURN_IF_ERROR(weights_.WaitForDevice("a checkpoint was made"));
  return c;
}

// Refuses a checkpoint of another run.
Status Trainer::CheckRun(const Checkpoint& c) {
  if (!(c.architecture == graph_->architecture()))
    return InvalidData("checkpoint: it belongs to a model of another architecture");
  const auto comparable = [this](const std::string& config) {
    return sampling_.IsSecure() ? checkpoint_parts::WithoutThreads(config) : config;
  };
  const std::string then = comparable(c.config), now = comparable(Config());
  if (then != now) {
    return InvalidData(
        "checkpoint: it belongs to a run with other options: ", checkpoint_parts::ListDifferences(then, now),
        "; resume with the options that it began with, or name another checkpoint");
  }
  if (c.seed != SavedSeed()) return InvalidData("checkpoint: it belongs to a run with another seed");
  // Otherwise the weights would carry the provenance of another base.
  if (c.base_model_hash != options_.base_model_hash)
    return InvalidData("checkpoint: it belongs to a run that began with another model");
  if (!std::equal(c.item_rows.begin(), c.item_rows.end(), sparse_rows_.begin(), sparse_rows_.end()))
    return InvalidData("checkpoint: it belongs to a run that trains other rows of the item table");
  return checkpoint_parts::Check(AllStreams(), c);
}

Status Trainer::Restore(const Checkpoint& c) {
  WISP_RETURN_IF_ERROR(CheckDevice());
  WISP_RETURN_IF_ERROR(CheckRun(c));
  WISP_RETURN_IF_ERROR(CheckSize("weights", c.weights.size(), weights_.kept_size()));
  WISP_RETURN_IF_ERROR(CheckSize("average", c.average.size(), weights_.has_average() ? weights_.kept_size() : 0));
  if (charges_) WISP_RETURN_IF_ERROR(charges_->Check(c));
  for (const auto& part : parts_) WISP_RETURN_IF_ERROR(part->Check(c));
  WISP_RETURN_IF_ERROR(checkpoint_parts::Restore(AllStreams(), c));
  weights_.Take(c.weights, c.average);
  if (context_.states) context_.states->Forget();
  for (const auto& part : parts_) part->Restore(c);
  context_.step = c.step;
  options_.privacy.run = c.run_id;
  if (charges_) charges_->Restore(c);
  return weights_.WaitForDevice("a checkpoint was restored");
}

}  // namespace wisp
