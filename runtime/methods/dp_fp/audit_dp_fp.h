// An audit of one step of DP-FP, in any of its modes: runs Trainer itself many times, with a canary record and without.
//
//   WISP_ASSIGN_OR_RETURN(DpFpAuditResult seen, AuditDpFpStep({.architecture = a, .weights = w, .training = o,
//       .others = records, .canary = c}));
//   if (seen.refuted) ...   // the claim is false, except with probability 1 - confidence
//
// It observes two numbers of the weights that a step leaves behind, and tests each by itself (statistics:
// privacy/audit.h):
//   rows   how far the table's rows moved whose tokens the canary names and no other record does
//   head   how far the head answers to the canary's representation with the canary's label, rather than with another
//
// In kPaper the claim is the paper's own, which has no guarantee (ExplainPaperMode): this run refutes it. "Not
// refuted" proves nothing, least of all in kPaper: it says that this attack did not see a breach.
//
// Ledger: the private modes charge options.training.privacy.ledger for every step, as training does. If the records are
// made up, the audit needs a ledger of its own. Canaries are public. Call from one thread. Errors: those of Trainer,
// and kInvalidArgument for numbers out of range and for a canary without a token of its own.
#ifndef WISP_RUNTIME_METHODS_DP_FP_AUDIT_DP_FP_H_
#define WISP_RUNTIME_METHODS_DP_FP_AUDIT_DP_FP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/privacy/audit/audit.h"
#include "runtime/train/trainer.h"

namespace wisp {

struct DpFpAuditOptions {
  Architecture architecture;
  // The start of every step, in the flat layout. With a head of zeros kPaper's first step moves no row.
  std::span<const float> weights;
  // The method must be kDpFp. num_steps, steps_per_charge and num_threads are replaced, because each step is a run of
  // its own.
  TrainingOptions training;
  std::span<const Record> others = {};  // the data beside the canary; may be empty
  Record canary;                        // public
  uint64_t observations = 500;          // runs with the canary, and as many without; 4 and above
  std::vector<double> deltas = {1e-5, 1e-2, 1e-1};
  double confidence = 0.95;  // probability that all bounds hold together
  // The claim at every delta. Absent: the charge of a step or, in kPaper, what its limit theorem says.
  std::optional<double> claimed_epsilon = std::nullopt;
};

struct DpFpAuditResult {
  struct AtDelta {
    double delta = 0, claimed = 0;
    privacy::CanaryBound rows, head;
  };
  std::vector<AtDelta> at_delta;
  double level = 0;  // the confidence of each single bound, such that all hold together
  bool refuted = false;
};

// The neighbouring data sets are `others` and `others` + canary.
Result<DpFpAuditResult> AuditDpFpStep(const DpFpAuditOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_DP_FP_AUDIT_DP_FP_H_
