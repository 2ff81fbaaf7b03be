// What a plan for a life will take and bring, before anything is charged: noise against signal, what the judges can
// find, memory, and time, measured on this device with made-up records. Nothing here reads the log.
//
//   WISP_ASSIGN_OR_RETURN(const Lifetime life, PlanLife(architecture, {.num_records_public = 2000, .epsilon = 4,
//                                                                      .delta = 1e-5, .runs = 365}));
//   const Outlook outlook = OutlookOf(architecture, life.settings);
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
#include "runtime/personalise/lifetime.h"

namespace wisp {

// What an app says of its life; what is left at 0 is chosen.
struct LifeRequest {
  uint32_t num_records_public = 0, num_records_at_start = 0;
  double epsilon = 0, delta = 0;
  uint32_t runs = 0;
  uint64_t steps_per_run = 0;
  uint32_t expected_batch = 0;
  double learning_rate = 0;
  std::optional<uint32_t> judgings = {};
  double judging_share = 0;
  bool judges_locally = false;
  int64_t trains_until = 0;  // LifetimeSettings::trains_until
};
// Settings without noise, which PlanLifetime finds. docs/gains.md has the measurements behind each choice.
LifetimeSettings SuggestLife(const LifeRequest& request);
// Both, with a learning rate that follows from noise and catalogue where none is asked for, and with shrinkage of rows
// (shrink_rows.h) where there are few events for each item, however long the records.
Result<Lifetime> PlanLife(const Architecture& architecture, const LifeRequest& request);

// The learning rate that follows from noise and catalogue.
double SuggestRate(const Architecture& architecture, const LifetimeSettings& settings);

// How much of what training releases over the whole life is noise. All steps' noise, spread over every trained number,
// against what records agree on at most: noise * sqrt(trained) / (batch * sqrt(steps)), over the share of the records
// that is there. Public numbers alone.
double NoiseToSignal(const Architecture& architecture, const LifetimeSettings& settings);

// Noise to signal in one item's row, where a record's gradient is shared by the rows of so many events:
// noise * sqrt(width) * items / (batch * sqrt(steps) * sqrt(events)). In a sparse catalogue each item has few events,
// and its row is noise though the whole is not.
double NoiseOfAnItem(const Architecture& architecture, const LifetimeSettings& settings, uint32_t events);

struct Outlook {
  double noise_to_signal = 0, noise_of_an_item = 0;
  uint32_t typical_events = 0;  // that noise_of_an_item assumes
  // Below kSomeGain and kSomeGainOfAnItem a clear gain was measured, above kNoGain none: docs/gains.md has what
  // was measured. kNewItems: above kNoGainOfAnItem a gain was measured only where the base lacked items that people
  // choose.
  enum class Kind { kGain, kSomeGain, kHopeless, kNewItems } kind = Kind::kGain;
  // The chance that candidates whose mean gain is `gain` (in the measure's unit) are found better, after the first, the
  // middle and the last judging. Empty without private judges.
  struct PowerRow {
    double gain = 0, after_first = 0, after_half = 0, after_all = 0;
  };
  std::vector<PowerRow> power;
  // The smallest of these gains that is found by the last judging in four lives of five; none: no decision is possible.
  std::optional<double> found;
  std::vector<std::string> advice;  // sentences: what would help; empty where nothing is amiss
};
inline constexpr double kSomeGain = 0.1, kNoGain = 0.8, kSomeGainOfAnItem = 0.5, kNoGainOfAnItem = 1.2;
// Events of a record where nobody says how many: a cautious guess, as few events are the worse case.
inline constexpr uint32_t kTypicalEvents = 10;
// For settings with their noise. `typical_events` of a record: a public guess; 0: kTypicalEvents.
Outlook OutlookOf(const Architecture& architecture, const LifetimeSettings& settings, uint32_t typical_events = 0);

// Processor seconds, all threads together, and seconds of waiting, of one run with its accounting and of one judging.
// The log is read beside them.
struct LifeTime {
  double cpu_of_run = 0, wall_of_run = 0, cpu_of_judging = 0, wall_of_judging = 0;
};
struct MeasureOptions {
  std::string ledger_path;      // beside it a folder with made-up ledgers is made, and taken away again
  uint32_t typical_events = 0;  // of a record: a public guess; 0: as many as the model reads
  uint32_t num_threads = 0;
  double seconds = 2;
};
// Trains and judges made-up records with these weights, and accounts for them, for about so long. Of `life` the
// settings are enough.
Result<LifeTime> MeasureLife(const Architecture& architecture, std::span<const float> weights, const Lifetime& life,
                             const MeasureOptions& options);

// Bytes that a run holds while it steps, as PlanTrainingMemory counts them: of as many records as the public number.
Result<size_t> MemoryOfRun(const Architecture& architecture, const LifetimeSettings& settings, uint32_t num_threads);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_FORECAST_H_
