// Uses of the charged popularity histogram: the output bias, the frequencies for Re-Attention, and the rows of the item
// table that FEST and AdaFEST+ train. Internal to runtime/train/run/job.cc.
#ifndef WISP_RUNTIME_TRAIN_RUN_JOB_POPULARITY_H_
#define WISP_RUNTIME_TRAIN_RUN_JOB_POPULARITY_H_

#include <span>
#include <vector>

#include "runtime/model/checkpoint.h"
#include "runtime/train/popularity.h"
#include "runtime/train/run/job.h"

namespace wisp {

// Writes the output bias into `weights` and returns the rest of the release. A private run pays for it.
Result<Popularity> SetPopularity(const TrainingJob& job, std::span<const Record> records, std::span<float> weights);

// The histogram was released once: the job of a run that resumes must describe the release that was charged then. The
// first of `overheads` is its charge.
Status CheckHistogram(const TrainingJob& job, const privacy::Ledger& ledger, const Checkpoint& checkpoint,
                      std::span<const privacy::Mechanism> overheads);

class JobPopularity {
 public:
  // `job` and `options` must outlive this object. It owns the data that `options` will point to.
  JobPopularity(const TrainingJob& job, TrainingOptions& options) : job_(job), options_(options) {}

  // Sets placeholders of the shape that a release will have, for checks before anything is paid.
  Status Prepare();
  void Use(const Popularity& popularity);
  // Uses the rows that an earlier process was given.
  void UseRows(std::span<const uint32_t> rows);
  size_t num_rows() const { return rows_.size(); }

 private:
  bool SelectsRows() const;

  const TrainingJob& job_;
  TrainingOptions& options_;
  std::vector<float> frequencies_;
  std::vector<int32_t> rows_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_JOB_POPULARITY_H_
