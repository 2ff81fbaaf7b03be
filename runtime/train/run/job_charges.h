// The charges of a run, and whether its ledger has room for them. Internal to runtime/train/run/job.cc.
#ifndef WISP_RUNTIME_TRAIN_RUN_JOB_CHARGES_H_
#define WISP_RUNTIME_TRAIN_RUN_JOB_CHARGES_H_

#include <string>
#include <vector>

#include "runtime/model/checkpoint.h"
#include "runtime/train/run/job.h"
#include "runtime/train/run/run_budget.h"

namespace wisp {

// The last step of a call that begins after step `done` of a job of `num_steps`, if all of them can be paid.
uint64_t FindLastCallStep(const TrainingJob& job, uint64_t num_steps, uint64_t done);

class JobCharges {
 public:
  // `options` are the job's as they run: noise and steps filled in. `overheads` are the mechanisms charged beside the
  // steps (Overheads), the histogram first. All must outlive this object.
  JobCharges(const TrainingJob& job, const TrainingOptions& options, const std::vector<privacy::Mechanism>& overheads)
      : job_(job), options_(options), overheads_(overheads) {}

  // Checks everything that this call will charge against the ledger's limit, before the first charge. Returns the step
  // at which the run ends. A run that resumes has paid for what its checkpoint holds (null: none) and pays for every
  // step after it; if not all of them fit, it ends sooner. A refusal is kPrivacyRefused and says what would be
  // accepted.
  struct End {
    uint64_t step = 0;
    std::string early;  // reason why the run ends before the last step of this call; or empty
  };
  Result<End> Check(const Checkpoint* checkpoint);

  // Call it after Check. Writes the new limit, and the coming charges into the ledger's plan. Nothing is refused after
  // it.
  Status Begin() const;

  // The next charge of a run that is at `step` and ends at `end`.
  RunBudget Next(uint64_t step, uint64_t end) const;

 private:
  Result<std::vector<privacy::ChargeRequest>> Of(StepRange steps, double noise_factor, bool histogram,
                                                 uint64_t runs = 1) const;
  Status CheckPlan();
  Status NoRoomInPlan() const;

  const TrainingJob& job_;
  const TrainingOptions& options_;
  const std::vector<privacy::Mechanism>& overheads_;
  std::vector<privacy::ChargeRequest> to_come_;
  std::vector<privacy::ChargeRequest> plan_;  // charges of all planned runs, if the plan is still to be written
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_JOB_CHARGES_H_
