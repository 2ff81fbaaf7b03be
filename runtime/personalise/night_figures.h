// What nights saw of the records that trained, kept for the device's own report: loss, and how many gradients were
// clipped. Counted without noise, so it is private like the log and never leaves the device.
#ifndef WISP_RUNTIME_PERSONALISE_NIGHT_FIGURES_H_
#define WISP_RUNTIME_PERSONALISE_NIGHT_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace wisp {

struct NightFigures {
  uint64_t steps_of_model = 0;  // after the night
  double mean_loss = 0;         // of its steps, per position
  double clipped_share = 0;     // of the gradients that its steps took; 0 where they took none
};

// Of the newest nights, oldest first; none where there is no such file. kInvalidData: it is another file.
Result<std::vector<NightFigures>> ReadNightFigures(const std::string& path);

// Adds one. Of more than kMostNightFigures the oldest go; a file that has something else begins anew.
constexpr size_t kMostNightFigures = 1000;
Status AddNightFigures(const std::string& path, const NightFigures& night);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_NIGHT_FIGURES_H_
