#include "runtime/train/run/job_popularity.h"

#include <optional>
#include <string>

#include "runtime/train/checkpoint_parts.h"

namespace wisp {

using privacy::RandomStream;
using privacy::StreamPurpose;

Result<Popularity> SetPopularity(const TrainingJob& job, std::span<const Record> records, std::span<float> weights) {
  const Architecture& a = job.spec.architecture;
  Popularity popularity;
  if (IsPrivate(job.spec.training) && NeedsFrequencies(job.spec) && job.spec.goal.histogram_noise <= 0 &&
      job.spec.training.re_attention.item_frequencies.empty()) {
    return InvalidArgument(
        "re-attention with the printed deviations needs item frequencies: set `histogram_noise`, "
        "or use the optimizer's deviations");
  }
  if (IsPrivate(job.spec.training) ? job.spec.goal.histogram_noise <= 0 : a.head.output_bias == OutputBias::kNone)
    return popularity;
  if (!IsPrivate(job.spec.training)) {
    if (job.start_weights.empty()) SetOutputBias(a, PopularityBias(records, a.num_items), weights);
    return popularity;
  }
  const PrivateTraining& p = job.spec.training.privacy;
  std::optional<RandomStream> noise;
  if (p.reproducible_seed) {
    noise = RandomStream::Reproducible(*p.reproducible_seed + 1, StreamPurpose::kNoise);
  } else {
    WISP_ASSIGN_OR_RETURN(noise, RandomStream::Secure());
  }
  WISP_ASSIGN_OR_RETURN(
      popularity,
      PrivatePopularity(records, a.num_items,
                        {.noise_multiplier = job.spec.goal.histogram_noise,
                         .ledger = p.ledger,
                         .run = p.run,
                         .num_records_public = NeedsFrequencies(job.spec) ? job.spec.training.num_records_public : 0},
                        *noise));
  if (a.head.output_bias == OutputBias::kFixed && job.start_weights.empty()) SetOutputBias(a, popularity.bias, weights);
  return popularity;
}

Status CheckHistogram(const TrainingJob& job, const privacy::Ledger& ledger, const Checkpoint& checkpoint,
                      std::span<const privacy::Mechanism> overheads) {
  const bool has_one = job.spec.goal.histogram_noise > 0;
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  for (const privacy::LedgerEntry& e : entries) {
    if (e.run != checkpoint.run_id || e.purpose != "item popularity") continue;
    if (has_one && e.mechanism == overheads.front()) continue;
    return InvalidArgument("checkpoint: its run released an item histogram, charged as ", e.mechanism.Describe(),
                           "; this run has ", has_one ? overheads.front().Describe() : std::string("none"),
                           ", allowed is the same");
  }
  return OkStatus();
}

bool JobPopularity::SelectsRows() const {
  const Method method = job_.spec.training.method;
  return NamesRows(method) && job_.spec.training.sparse.rows.empty();
}

Status JobPopularity::Prepare() {
  if (NeedsFrequencies(job_.spec) && options_.re_attention.item_frequencies.empty()) {
    frequencies_.assign(job_.spec.architecture.num_items, 1.0f);
    options_.re_attention.item_frequencies = frequencies_;
  }
  if (!SelectsRows()) return OkStatus();
  const RowSelection& selection = job_.spec.rows;
  const char* method = GetName(job_.spec.training.method);
  const uint32_t num_items = job_.spec.architecture.num_items;
  if (selection.count == 0 || selection.count > num_items) {
    return InvalidArgument(method, ": rows of the item table to train (`rows`) are ", selection.count,
                           ", allowed are 1 to ", num_items);
  }
  if (selection.source == RowSelection::Source::kPrivate && job_.spec.goal.histogram_noise <= 0) {
    return InvalidArgument(method, " with a private selection needs the popularity histogram: set `histogram_noise`");
  }
  if (selection.source == RowSelection::Source::kPublic && selection.public_scores.size() != num_items) {
    return InvalidArgument(method, " with a public selection needs a public score for each of the ", num_items,
                           " items; ", selection.public_scores.size(), " are given");
  }
  const std::vector<float> none(num_items, 0.0f);
  rows_ = LargestRows(selection.source == RowSelection::Source::kPublic ? selection.public_scores
                                                                        : std::span<const float>(none),
                      selection.count);
  options_.sparse.rows = rows_;
  return OkStatus();
}

void JobPopularity::Use(const Popularity& popularity) {
  if (NeedsFrequencies(job_.spec) && !popularity.frequencies.empty()) {
    frequencies_ = popularity.frequencies;
    options_.re_attention.item_frequencies = frequencies_;
  }
  if (!SelectsRows() || job_.spec.rows.source != RowSelection::Source::kPrivate) return;
  rows_ = LargestRows(popularity.histogram, job_.spec.rows.count);
  options_.sparse.rows = rows_;
}

void JobPopularity::UseRows(std::span<const uint32_t> rows) {
  rows_.assign(rows.begin(), rows.end());
  if (!rows_.empty()) options_.sparse.rows = rows_;
}

}  // namespace wisp
