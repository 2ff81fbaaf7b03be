// Charges the steps of a private run to its ledger, before they draw anything.
#ifndef WISP_RUNTIME_TRAIN_STEP_CHARGES_H_
#define WISP_RUNTIME_TRAIN_STEP_CHARGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/checkpoint.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {

class StepCharges {
 public:
  // `options` must outlive this object.
  StepCharges(PrivacyPlan plan, const PrivateTraining& options);

  // Charges all parts of the coming steps unless step `step` is paid for: steps_per_charge steps, none from `until` on.
  // `end` is the end of the run. Each part remembers how far it is charged: if the second charge is refused, the first
  // one serves the next try. While the ledger is still empty, every step is written as one plan before the first
  // charge: the steps' number and parameters do not depend on released values.
  Status Pay(uint64_t step, uint64_t until, uint64_t end);

  // True if every charged step before `step` was taken.
  bool all_taken(uint64_t step) const;
  // The steps charged by this object, taken or not.
  uint64_t num_charged() const { return num_charged_; }
  const PrivacyPlan& plan() const { return plan_; }

  void Save(Checkpoint& checkpoint) const;
  // Refuses a checkpoint for whose steps the ledger was not charged: their cost would be forgotten.
  Status Check(const Checkpoint& checkpoint) const;
  // The other process's charges are spent, and this one pays for its own steps. That includes steps of a block that was
  // charged and not taken: nobody can tell whether this checkpoint resumes for the first time, and two draws of noise
  // on one charge would cost twice what is counted.
  void Restore(const Checkpoint& checkpoint);

 private:
  PrivacyPlan plan_;
  const PrivateTraining* options_;
  std::string run_;                      // the run's name in the ledger
  privacy::Receipt receipt_;             // covers all charges so far, those of a resumed checkpoint included
  std::vector<uint64_t> charged_until_;  // per part of the plan
  uint64_t num_charged_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_STEP_CHARGES_H_
