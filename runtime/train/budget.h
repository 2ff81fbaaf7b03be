// The privacy budget of runs. Budget finds the noise that a goal allows, says whether a run fits into a ledger and what
// would fit, and writes the ledger's plan. The mechanisms of steps are those of privacy_plan.h. No other file computes
// a sampling probability, a noise multiplier or a mechanism of a run (tests/structure.sh).
//
//   WISP_RETURN_IF_ERROR(CheckPrivacyGoal(goal, num_records));
//   WISP_RETURN_IF_ERROR(Budget::Calibrate(architecture, goal, options));
//   Budget budget(architecture, goal, options);
//   WISP_ASSIGN_OR_RETURN(const Budget::End end, budget.Check(steps_done, last_step, resumes));
//   WISP_RETURN_IF_ERROR(budget.Begin());  // then the trainer charges each step before it samples a record
#ifndef WISP_RUNTIME_TRAIN_BUDGET_H_
#define WISP_RUNTIME_TRAIN_BUDGET_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/options.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {

// The allowed cost of a run, how it is met, and what it pays for besides the steps.
struct PrivacyGoal {
  std::optional<double> epsilon;           // noise is calibrated to this, for everything in the run; 1e-6 to 100
  std::optional<double> noise_multiplier;  // or this noise, whatever it costs; set exactly one of the two
  double delta = 0;                        // required, above 0, below 1 / records and at most privacy::LargestDelta
  bool allow_delta_of_one_record = false;  // accept delta = 1 / records, as papers have it; never more
  // The number of runs like this one that are fixed before the first charge to the ledger, as its plan. `epsilon` is
  // that of all of them together, by PLD, however they are spread and whatever they show. Give it with each of them; a
  // run that the plan has no room for is refused.
  uint32_t planned_runs = 1;
  // Standard deviation of the charged popularity histogram in each run, in units of one record; 0: no bias is set.
  // Non-private training with an output bias uses the exact histogram.
  double histogram_noise = 0;
  // DP-FP's mode clipped: the share of epsilon that the releases for the head would cost alone. The gradients' noise is
  // then the smallest with which both together meet the goal. Composition is sublinear, so the gradients get more than
  // the rest.
  double head_share = 0.3;
  // If set, the ledger's limit from now on, over everything. Written when nothing else can be refused, before the first
  // charge.
  std::optional<privacy::EpsilonDelta> new_limit = {};
};

// Checks a goal for so many records, a public number. kPrivacyRefused: a delta with which some record could be
// published.
Status CheckPrivacyGoal(const PrivacyGoal& goal, double num_records);

class Budget {
 public:
  // `options` are those with which the run trains: noise and steps filled in before Check. All must outlive this
  // object.
  Budget(const Architecture& architecture, const PrivacyGoal& goal, const TrainingOptions& options)
      : architecture_(architecture), goal_(goal), options_(options) {}

  // Fills in the noise of `options`, whose num_steps are set. The goal also pays for the slack of the discrete noise:
  // the ledger counts it, and must be able to pay for the last step of the last planned run out of a budget that equals
  // the goal. A noise_multiplier in the goal is that of the gradients; with DP-FP it is that of the releases for the
  // head, and mode clipped takes the gradients' from the options.
  // The goal also pays for the charges `beside`. `cancelled` as in privacy::CalibrationRequest.
  static Status Calibrate(const Architecture& architecture, const PrivacyGoal& goal, TrainingOptions& options,
                          std::span<const privacy::ChargeRequest> beside = {},
                          const std::function<bool()>& cancelled = {});

  // Checks everything that a call will charge for the steps from `done` to `last` against the ledger's limit, before
  // the first charge. Returns the step at which it ends. A run that resumes pays for every step after its checkpoint,
  // and ends sooner if not all of them fit. A refusal is kPrivacyRefused and says what would be accepted.
  struct End {
    uint64_t step = 0;
    Status refusal;  // of the steps after `step`, if it is not the last
  };
  Result<End> Check(uint64_t done, uint64_t last, bool resumes);

  // Call it after Check. Writes the new limit, and the coming charges into the ledger's plan. Nothing is refused after
  // it.
  Status Begin() const;

  // True if the limit is the reason why the next charge of a run at `step`, which ends at `end`, was refused: fewer
  // steps fit. Any other refusal (an old copy of the ledger, say) must not end a run as complete.
  bool LimitRefuses(uint64_t step, uint64_t end) const;

  // The mechanisms that a run is charged for before its first step.
  Result<std::vector<privacy::Mechanism>> Overheads() const;

 private:
  // The charges for a range of steps, with what comes before the first of them; or for `runs` such runs.
  Result<std::vector<privacy::ChargeRequest>> Charges(StepRange steps, double noise_factor, bool histogram,
                                                      uint64_t runs = 1) const;
  Result<uint64_t> StepsThatFit(StepRange steps, bool histogram) const;
  Status AddAffordableSteps(StepRange steps, bool histogram, const Status& refusal) const;
  Status CheckPlan();
  Status NoRoomInPlan() const;

  const Architecture& architecture_;
  const PrivacyGoal& goal_;
  const TrainingOptions& options_;
  std::vector<privacy::ChargeRequest> to_come_;
  std::vector<privacy::ChargeRequest> plan_;  // charges of all planned runs, if the plan is still to be written
};

// A sum that reads all of its records and is released beside the steps: a histogram, the figures of an evaluation.
struct ReleasedSum {
  double noise_multiplier = 0;
  uint64_t count = 1;                                // such sums
  uint64_t sigma_in_steps = 0, num_coordinates = 0;  // of the discrete noise in each
  std::string run;
  const char* purpose = "";
  privacy::NoiseKind noise = privacy::NoiseKind::kSecure;
};
Result<privacy::ChargeRequest> MakeCharge(const ReleasedSum& sum);

// True if the ledger's limit, or `new_limit` in its place, has room for the charges. An error does not answer the
// question.
Result<bool> HasRoom(const privacy::Ledger& ledger, std::span<const privacy::ChargeRequest> charges,
                     const std::optional<privacy::EpsilonDelta>& new_limit = {});
// The smallest noise between two with which something fits, up to a factor `precision`; nullopt if even the most is not
// enough.
Result<std::optional<double>> FindNoiseThatFits(double too_little, double most, double precision,
                                                const std::function<Result<bool>(double noise)>& fits);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_BUDGET_H_
