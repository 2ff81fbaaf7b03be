// The claims that a DP-FP run may make: a description in words, and the paper's formula restated.
#ifndef WISP_RUNTIME_METHODS_DP_FP_DP_FP_REPORT_H_
#define WISP_RUNTIME_METHODS_DP_FP_DP_FP_REPORT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/train/method_table.h"
#include "runtime/train/options.h"

namespace wisp {

const char* ToText(DpFpMode mode);  // "aggregate", "clipped", "paper"
std::optional<DpFpMode> DpFpModeFromText(std::string_view text);

// The paper's run, by the paper's own parameters.
struct PaperRun {
  double sampling_probability = 0;  // p = B / (m D)
  uint64_t steps = 0;               // T
  uint64_t micro_batches = 0;       // m
};

// mu_tot = p sqrt(T m (exp((C / sigma)^2) - 1)), equation 11. NOT A GUARANTEE: asymptotic, may understate, and about a
// mechanism that kPaper does not run. Use it only to restate the paper beside PLD. noise_multiplier = sigma / C.
double PaperMuTotNoGuarantee(const PaperRun& run, double noise_multiplier);

// The noise multiplier that the paper calibrates for mu_tot: the formula solved for sigma / C.
double PaperNoiseMultiplier(const PaperRun& run, double mu_tot);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_DP_FP_DP_FP_REPORT_H_
