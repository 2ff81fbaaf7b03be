// What a DP-FP run costs and may claim: its mechanisms, a description in words, and the paper's formula restated.
#ifndef WISP_RUNTIME_TRAIN_DP_FP_REPORT_H_
#define WISP_RUNTIME_TRAIN_DP_FP_REPORT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/privacy/mechanism.h"
#include "runtime/train/dp_fp.h"

namespace wisp {

const char* ToText(DpFpMode mode);  // "aggregate", "clipped", "paper"
std::optional<DpFpMode> DpFpModeFromText(std::string_view text);

// What the ledger calls the two.
inline constexpr const char *kHeadPurpose = "class sums of representations", *kEncoderPurpose = "encoder training";

// What `steps` steps are charged as: the releases for the head and, in kClipped, the encoder's gradients.
// kPrivacyRefused in kPaper: there is nothing that an accountant could be asked about.
Result<std::vector<privacy::Mechanism>> DpFpMechanisms(const DpFpOptions& options, uint64_t steps);

// eta of exact_sum.h for so many steps, as DpFpTrainer charges it: how far the discrete noise is from the Gaussian.
// Private modes.
double DpFpLossSlack(const Architecture& architecture, const DpFpOptions& options, uint64_t num_steps);

// Which of the paper's claims do not hold, in words. Holds no figure.
const std::string& WhyPaperHasNoGuarantee();

// For people: the mode, what is released, what is protected, the mechanisms. Never an epsilon: in the private modes
// that is the ledger's to state, in kPaper there is none, and the reason stands there instead.
std::string DescribeDpFp(const DpFpOptions& options, uint64_t steps);

// The paper's run, as it counts it.
struct PaperRun {
  double sampling_probability = 0;  // p = B / (m D)
  uint64_t steps = 0;               // T
  uint64_t micro_batches = 0;       // m
};

// mu_tot = p sqrt(T m (exp((C / sigma)^2) - 1)), equation 11. NOT A GUARANTEE: asymptotic, may understate, and about a
// mechanism that kPaper does not run. To restate the paper beside PLD, nothing else. noise_multiplier = sigma / C.
double PaperMuTotNoGuarantee(const PaperRun& run, double noise_multiplier);

// The noise multiplier that the paper calibrates for mu_tot: the formula solved for sigma / C.
double PaperNoiseMultiplier(const PaperRun& run, double mu_tot);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_DP_FP_REPORT_H_
