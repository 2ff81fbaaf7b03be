// The allowed cost of a run, and the noise with which it costs that.
#ifndef WISP_RUNTIME_TRAIN_RUN_NOISE_GOAL_H_
#define WISP_RUNTIME_TRAIN_RUN_NOISE_GOAL_H_

#include <optional>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/train/options.h"

namespace wisp {

// The allowed cost of a run, and how it is met.
struct PrivacyGoal {
  std::optional<double> epsilon;           // noise is calibrated to this, for everything in the run; 1e-6 to 100
  std::optional<double> noise_multiplier;  // or this noise, whatever it costs; set exactly one of the two
  double delta = 0;                        // required, above 0, below 1 / records and at most privacy::LargestDelta
  bool allow_delta_of_one_record = false;  // accept delta = 1 / records, as papers have it; never more
};

// Checks a goal for so many records, a public number. kPrivacyRefused: a delta with which some record could be
// published.
Status CheckPrivacyGoal(const PrivacyGoal& goal, double num_records);

// The costs that a goal must pay for besides the steps of one run.
struct GoalShare {
  uint32_t planned_runs = 1;
  double histogram_noise = 0;  // a popularity histogram in each run; 0: none
  // DP-FP's mode clipped: the share of goal.epsilon that the releases for the head would cost alone. The gradients'
  // noise is then the smallest with which both together meet the goal. Composition is sublinear, so the gradients get
  // more than the rest.
  double head_share = 0.3;
};

// The mechanisms that each run is charged for besides its steps.
Result<std::vector<privacy::Mechanism>> Overheads(const GoalShare& share);

// Fills in the noise of `options`, whose num_steps are set. The goal also pays for the slack of the discrete noise: the
// ledger counts it, and must be able to pay for the last step of the last planned run out of a budget that equals the
// goal. A noise_multiplier in the goal is that of the gradients; with DP-FP it is that of the releases for the head,
// and mode clipped takes the gradients' from the options.
Status FillInNoise(const Architecture& architecture, const PrivacyGoal& goal, const GoalShare& share,
                   TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_NOISE_GOAL_H_
