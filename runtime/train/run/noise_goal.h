// What a run may cost, and the noise with which it costs that.
#ifndef WISP_RUNTIME_TRAIN_RUN_NOISE_GOAL_H_
#define WISP_RUNTIME_TRAIN_RUN_NOISE_GOAL_H_

#include <optional>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/train/options.h"

namespace wisp {

// What the run may cost and how the cost is found.
struct PrivacyGoal {
  std::optional<double> epsilon;           // calibrate the noise to this, everything of the run included; 1e-6 to 100
  std::optional<double> noise_multiplier;  // or this noise, whatever it costs; exactly one of the two
  double delta = 0;                        // required, above 0, below 1 / records and at most privacy::LargestDelta
  bool allow_delta_of_one_record = false;  // accept delta = 1 / records, as papers have it; never more
};

// What a goal must be with so many records, a public number. kPrivacyRefused: a delta with which some record could be
// published.
Status CheckPrivacyGoal(const PrivacyGoal& goal, double num_records);

// What a goal is to pay for beside the steps of one run.
struct GoalShare {
  uint32_t planned_runs = 1;
  double histogram_noise = 0;  // of a popularity histogram in each run; 0: none
  // DP-FP's mode clipped: the part of goal.epsilon that the releases for the head would cost alone; the gradients'
  // noise is the smallest with which both together meet the goal. Composition is sublinear: they get more than the
  // rest.
  double head_share = 0.3;
};

// What each run spends beside its steps.
Result<std::vector<privacy::Mechanism>> Overheads(const GoalShare& share);

// Fills in the noise of `options`, whose num_steps are set. The slack of the discrete noise is paid out of the goal
// too: the ledger, which counts it, must be able to pay for the last step of the last planned run out of a budget that
// equals the goal. A noise_multiplier of the goal is that of the gradients; with DP-FP of the releases for the head,
// and mode clipped has the gradients' in the options.
Status FillInNoise(const Architecture& architecture, const PrivacyGoal& goal, const GoalShare& share,
                   TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_NOISE_GOAL_H_
