// Forecasts a plan before anything is charged: noise against signal, the gains that evaluation can detect, memory, and
// time measured on this device with made-up records. Nothing here reads the log.
//
//   WISP_ASSIGN_OR_RETURN(const Deployment deployment, PlanDeployment(architecture, {.num_records_public = 2000,
//       .epsilon = 4, .delta = 1e-5, .runs = 365}));
//   const Outlook outlook = MakeOutlook(architecture, deployment.settings);
#ifndef WISP_RUNTIME_PERSONALISE_FORECAST_H_
#define WISP_RUNTIME_PERSONALISE_FORECAST_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/layers/weights.h"
#include "runtime/personalise/deployment.h"
#include "runtime/personalise/expected_gain.h"

namespace wisp {

// An app's request for a plan; fields that are 0 are chosen for it.
struct DeploymentRequest {
  uint32_t num_records_public = 0, num_records_at_start = 0;
  double epsilon = 0, delta = 0;
  uint32_t runs = 0;
  uint64_t steps_per_run = 0;
  uint32_t expected_batch = 0;
  double learning_rate = 0;
  std::optional<uint32_t> evaluations = {};
  bool evaluates_locally = false;
  int64_t trains_until = 0;  // DeploymentSettings::trains_until
  uint64_t every = 0;        // DeploymentSettings::every
};
// Settings without noise, which CalibrateDeployment finds. docs/gains.md has the measurements behind each choice.
DeploymentSettings SuggestDeployment(const DeploymentRequest& request);
// SuggestDeployment and CalibrateDeployment. If no learning rate is requested, it follows from noise and catalogue. If
// noise is much beside the signal, changes are shrunk (shrink_changes.h).
Result<Deployment> PlanDeployment(const Architecture& architecture, const DeploymentRequest& request);

// Sets the releases of the output bias's weight and of successions, and their shares of the budget; 0 where they are
// not worth it. They follow from the public numbers of records, items and runs, and from the architecture. `without` is
// the same plan without them, with its noise.
void ChooseReleases(const Architecture& architecture, const DeploymentSettings& without, DeploymentSettings& settings);

// The learning rate that follows from noise and catalogue.
double SuggestRate(const Architecture& architecture, const DeploymentSettings& settings);

// The share of noise in what training releases over the whole plan. It compares all steps' noise, spread over every
// trained number, with the most that records can agree on: noise * sqrt(trained) / (batch * sqrt(steps)), divided by
// the share of the records that is there. It uses public numbers alone.
double NoiseToSignal(const Architecture& architecture, const DeploymentSettings& settings);

// Noise to signal in one item's row, if a record's gradient is shared by the rows of so many events: noise *
// sqrt(width) * items / (batch * sqrt(steps) * sqrt(events)). In a sparse catalogue each item has few events, so its
// row is noise although the whole is not.
double ComputeItemNoise(const Architecture& architecture, const DeploymentSettings& settings, uint32_t events);

// The counts of each item in a release of successions, beside its noise: records * sqrt(events) / (items *
// noise). 0 without releases.
double ComputeSuccessionSignal(const Architecture& architecture, const DeploymentSettings& settings, uint32_t events);

struct Outlook {
  double noise_to_signal = 0, noise_of_an_item = 0, succession_signal = 0;
  uint32_t typical_events = 0;  // assumed by noise_of_an_item
  GainForecast expected;
  // By the gain of the nearest measured deployment; by noise alone (kSomeGain and so on) if nothing like it was
  // measured. kNewItems: a gain was measured only if the base lacked items that people choose.
  enum class Kind { kGain, kSomeGain, kHopeless, kNewItems } kind = Kind::kGain;
  // The probability that candidates with the mean gain `gain` (in the measure's unit) are found better, after the
  // first, the middle and the last evaluation; and that the first release finds a weight of the bias with that gain, 0
  // without such releases. Empty without private evaluation.
  struct PowerRow {
    double gain = 0, after_first = 0, after_half = 0, after_all = 0, by_weight = 0;
  };
  std::vector<PowerRow> power;
  // The smallest of these gains that the last evaluation detects in four of five plans; nullopt: no decision is
  // possible.
  std::optional<double> found;
  std::vector<std::string> advice;  // sentences that say what would help; empty if nothing is wrong
};
// Without a measurement near by: a clear gain below kSomeGain and kSomeItemGain, none above kNoGain; above kNoItemGain
// of new items only.
inline constexpr double kSomeGain = 0.1, kNoGain = 0.8, kSomeItemGain = 0.5, kNoItemGain = 1.2;
// Events of a record if nobody says how many: a cautious guess, because few events are the worse case.
inline constexpr uint32_t kTypicalEvents = 10;
// The numbers by which a measured deployment is found, for kTypicalEvents.
PublicNumbers GetPublicNumbers(const Architecture& architecture, const DeploymentSettings& settings);
// For settings with their noise. `typical_events` is a public guess of a record's length; 0: kTypicalEvents. With
// another unit than the user an evaluation has only the records that came since the one before.
Outlook MakeOutlook(const Architecture& architecture, const DeploymentSettings& settings, uint32_t typical_events = 0,
                    privacy::PrivacyUnit unit = privacy::PrivacyUnit::kUser);

// Processor seconds of all threads together, and wall-clock seconds, for one run and for one evaluation. A run comes
// with its accounting and, if the plan has any, with a release of successions. Reading the log comes on top.
struct DeploymentTime {
  double cpu_of_run = 0, wall_of_run = 0, cpu_of_evaluation = 0, wall_of_evaluation = 0;
};
struct MeasureOptions {
  std::string ledger_path;      // a folder with made-up ledgers is created beside it, and deleted again
  uint32_t typical_events = 0;  // length of a record, a public guess; 0: as many as the model reads
  uint32_t num_threads = 0;
  double seconds = 2;
};
// Trains and evaluates made-up records with these weights, and accounts for them, for about the requested time. Only
// the settings of `deployment` are needed.
Result<DeploymentTime> MeasureDeployment(const Architecture& architecture, std::span<const float> weights,
                                         const Deployment& deployment, const MeasureOptions& options);

// Bytes that a run holds while it steps, as PlanTrainingMemory counts them, for the public number of records.
Result<size_t> CountRunMemory(const Architecture& architecture, const DeploymentSettings& settings,
                              uint32_t num_threads);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_FORECAST_H_
