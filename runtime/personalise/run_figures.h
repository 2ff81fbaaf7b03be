// Figures of the records that runs trained on, stored for the device's own report: loss, and the share of clipped
// gradients. They are computed without noise, so they are private like the log and never leave the device.
#ifndef WISP_RUNTIME_PERSONALISE_RUN_FIGURES_H_
#define WISP_RUNTIME_PERSONALISE_RUN_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace wisp {

struct RunFigures {
  uint64_t steps_of_model = 0;  // PlannedRunResult::steps_of_model
  double mean_loss = 0;         // over its steps, per position
  double clipped_share = 0;     // share of its steps' gradients; 0 if there were no gradients
};

// The figures of the newest runs, oldest first; empty without the file. kInvalidData: it is another kind of file.
Result<std::vector<RunFigures>> ReadRunFigures(const std::string& path);

// Appends a run's figures. Beyond kMostRunFigures the oldest are dropped; a file with other contents is replaced.
constexpr size_t kMostRunFigures = 1000;
Status AddRunFigures(const std::string& path, const RunFigures& planned_run);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_RUN_FIGURES_H_
