// What a trainer leaves behind for another process to go on with, and how it goes on.
//
// A reproducible run continues bit for bit: its streams' positions are saved. A private run with a secure generator
// draws fresh randomness; its ledger charges are never part of a checkpoint, so a step that is done again is charged
// again.
#include <algorithm>
#include <charconv>
#include <string>

#include "runtime/train/trainer.h"

namespace wisp {
namespace {

// Shortest text that reads back as the same number.
std::string Text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

std::string StreamName(size_t index) { return index == 0 ? "sampling" : "noise" + std::to_string(index - 1); }

Status CheckSize(const char* what, size_t found, size_t needed) {
  if (found == needed) return OkStatus();
  return InvalidData(std::string("checkpoint: ") + what + " has " + std::to_string(found) + " numbers, this run needs " + std::to_string(needed));
}

std::vector<float> Copy(const AlignedArray<float>& array) { return {array.data(), array.data() + array.size()}; }

// A ledger that was not charged for the steps of a checkpoint, another one or an old copy, would report less than was spent.
Status CheckCharged(const privacy::Ledger& ledger, const Checkpoint& c) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  uint64_t charged = 0;
  for (const privacy::LedgerEntry& entry : entries) charged += entry.run == c.run_id && entry.purpose == "training" ? entry.mechanism.steps() : 0;
  if (charged >= c.step) return OkStatus();
  return PrivacyRefused("checkpoint: the ledger was charged for " + std::to_string(charged) + " of the " + std::to_string(c.step) + " steps of run '" +
                        c.run_id + "'; go on with the ledger that paid for them");
}

}  // namespace

// Every option that decides what the next step computes. Data and weights are given again or lie in the checkpoint.
std::string Trainer::Config() const {
  const TrainingOptions& o = options_;
  const OptimizerOptions& p = o.optimizer;
  std::string text = "method " + std::to_string(static_cast<int>(o.method)) + " sampling " + std::to_string(static_cast<int>(o.sampling)) +
                     " loss " + std::to_string(static_cast<int>(o.loss)) + " steps " + std::to_string(o.num_steps) + " batch " +
                     std::to_string(o.expected_batch) + " of " + std::to_string(o.num_records_public) + " records " +
                     std::to_string(records_.size()) + " threads " + std::to_string(workers_.size()) + " ema " + Text(o.ema_decay);
  text += " optimizer " + std::to_string(static_cast<int>(p.kind));
  for (float v : {p.learning_rate, p.beta1, p.beta2, p.epsilon, p.momentum, p.weight_decay, p.final_fraction,
                  static_cast<float>(p.warmup_steps), static_cast<float>(p.decay), o.dropout.embedding, o.dropout.attention, o.dropout.residual}) {
    text += " " + Text(v);
  }
  if (o.num_negatives > 0) text += " negatives " + std::to_string(o.num_negatives);
  if (is_private()) {
    text += " noise " + Text(o.privacy.noise_multiplier) + " clip " + Text(o.privacy.clipping_norm) + " kind " +
            std::to_string(static_cast<int>(o.privacy.clipping));
    if (IsSparse(o.method)) {
      text += " map " + Text(o.sparse.map_clipping_norm) + " " + Text(o.sparse.map_threshold) + " " + Text(o.sparse.map_noise_ratio);
    }
    if (o.method == Method::kRgp) {
      const RgpOptions& r = o.rgp;
      for (uint32_t v : {r.rank, r.power_iterations, r.warmup_steps, static_cast<uint32_t>(r.item_tables), static_cast<uint32_t>(r.positions),
                         static_cast<uint32_t>(r.matrices), static_cast<uint32_t>(r.vectors)}) {
        text += " " + std::to_string(v);
      }
    }
    if (noise_variance_) text += " re-attention " + std::to_string(static_cast<int>(o.re_attention.source)) + " scale " + Text(o.re_attention.scale);
  }
  return text;
}

Checkpoint Trainer::Save() {
  Checkpoint c;
  c.architecture = graph_.architecture();
  c.weights = Copy(weights_);
  c.first_moment = Copy(optimizer_.first());
  c.second_moment = Copy(optimizer_.second());
  c.average = Copy(ema_);
  if (options_.sampling == Sampling::kShuffled && order_next_ > 0) {
    c.order = order_;
    c.order_next = order_next_;
  }
  c.item_rows.assign(sparse_rows_.begin(), sparse_rows_.end());
  c.step = step_;
  c.seed = options_.seed;
  c.run_id = options_.privacy.run;
  c.base_model_hash = options_.base_model_hash;
  c.config = Config();
  c.random = sampling_stream_.IsSecure() ? RandomSource::kSecure : RandomSource::kReproducible;
  if (c.random == RandomSource::kSecure) return c;
  c.streams.push_back({StreamName(0), sampling_stream_.position()});
  for (size_t w = 0; w < workers_.size(); ++w) c.streams.push_back({StreamName(w + 1), NoiseStream(w).position()});
  return c;
}

Status Trainer::Restore(const Checkpoint& c) {
  if (!(c.architecture == graph_.architecture())) return InvalidData("checkpoint: it belongs to a model of another architecture");
  if (c.config != Config() || c.seed != options_.seed) {
    return InvalidData("checkpoint: it belongs to a run with other options: '" + c.config + "', here: '" + Config() + "'");
  }
  // Or the weights would come with the provenance of another base.
  if (c.base_model_hash != options_.base_model_hash) return InvalidData("checkpoint: it belongs to a run that began with another model");
  const RandomSource random = sampling_stream_.IsSecure() ? RandomSource::kSecure : RandomSource::kReproducible;
  if (c.random != random || (random == RandomSource::kReproducible && c.streams.size() != workers_.size() + 1)) {
    return InvalidData("checkpoint: it belongs to a run with another source of randomness");
  }
  WISP_RETURN_IF_ERROR(CheckSize("weights", c.weights.size(), weights_.size()));
  WISP_RETURN_IF_ERROR(CheckSize("first moment", c.first_moment.size(), optimizer_.first().size()));
  WISP_RETURN_IF_ERROR(CheckSize("second moment", c.second_moment.size(), optimizer_.second().size()));
  WISP_RETURN_IF_ERROR(CheckSize("average", c.average.size(), ema_.size()));
  if (is_private()) WISP_RETURN_IF_ERROR(CheckCharged(*options_.privacy.ledger, c));
  if (!std::equal(c.item_rows.begin(), c.item_rows.end(), sparse_rows_.begin(), sparse_rows_.end())) {
    return InvalidData("checkpoint: it belongs to a run that trains other rows of the item table");
  }
  for (uint32_t index : c.order) {
    if (index >= records_.size()) return InvalidData("checkpoint: its order names record " + std::to_string(index) + " of " + std::to_string(records_.size()));
  }
  if (!c.order.empty()) WISP_RETURN_IF_ERROR(CheckSize("order", c.order.size(), records_.size()));
  for (size_t i = 0; random == RandomSource::kReproducible && i < c.streams.size(); ++i) {
    if (c.streams[i].name != StreamName(i)) return InvalidData("checkpoint: stream '" + c.streams[i].name + "' where '" + StreamName(i) + "' should be");
    WISP_RETURN_IF_ERROR((i == 0 ? sampling_stream_ : NoiseStream(i - 1)).Seek(c.streams[i].position));
  }
  std::copy(c.weights.begin(), c.weights.end(), weights_.data());
  std::copy(c.first_moment.begin(), c.first_moment.end(), optimizer_.first().data());
  std::copy(c.second_moment.begin(), c.second_moment.end(), optimizer_.second().data());
  std::copy(c.average.begin(), c.average.end(), ema_.data());
  std::copy(c.order.begin(), c.order.end(), order_.begin());
  order_next_ = c.order_next;
  step_ = c.step;
  options_.privacy.run = c.run_id;
  charged_until_ = 0;  // what the other process was charged for is spent; this one pays for its own steps
  return OkStatus();
}

}  // namespace wisp
