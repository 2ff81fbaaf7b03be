// Membership inference by a threshold on the loss: a record is held to be a member of the training data if the model's
// loss on it is at most the threshold (Sablayrolles et al. 2019; as an empirical check of private training: Yu et al.
// 2021, "Large Scale Private Learning via Low-rank Reparametrization", section 5.3).
//
//   WISP_ASSIGN_OR_RETURN(MembershipReport report, InferMembership({.members = a, .non_members = b}, 0.95));
//   report.accuracy, report.at_fpr_1_percent.true_positives.rate()
//
// What it is not: a bound on epsilon (audit.h), nor evidence of privacy where it fails: a stronger attack may not.
// The report tells about the records it was made of: local-only, never released. Pure function, any thread.
#ifndef WISP_RUNTIME_PRIVACY_AUDIT_MEMBERSHIP_H_
#define WISP_RUNTIME_PRIVACY_AUDIT_MEMBERSHIP_H_

#include <span>

#include "runtime/core/status.h"
#include "runtime/privacy/audit/binomial.h"

namespace wisp::privacy {

// One loss per record, in any one unit (nats, say), plus infinity allowed; in an order that does not depend on the
// losses. The numbers may differ; at least 2 of each.
struct MembershipLosses {
  std::span<const double> members;
  std::span<const double> non_members;
};

// What one threshold does on the half it was not chosen on.
struct ThresholdAttack {
  double threshold = 0;        // loss <= threshold: "member"; minus infinity: never
  Proportion true_positives;   // members called members
  Proportion false_positives;  // non-members called members
};

struct MembershipReport {
  // (TPR + 1 - FPR) / 2 at the threshold best by that measure on the choosing half: the share of right answers where
  // members and non-members are as many, as in the paper. 0.5: no better than guessing. The interval joins
  // Clopper-Pearson's of both rates, each at confidence 1 - (1 - confidence) / 2.
  ThresholdAttack best;
  double accuracy = 0;
  Interval accuracy_interval;

  // P[loss of a member < loss of a non-member], ties half, over all records (no choice is made); the interval by
  // Hoeffding's inequality for U-statistics (1963, section 5): wide, free of assumptions.
  double auc = 0;
  Interval auc_interval;

  // The largest threshold whose false-positive rate on the choosing half is at most 0.1% (1%): with fewer non-members
  // there than 1000 (100) it is one that has none. The rate measured, with its interval, is reported beside.
  ThresholdAttack at_fpr_01_percent, at_fpr_1_percent;
};

// Thresholds are chosen on the records of even index and measured on those of odd index. kInvalidArgument for fewer
// than 2 losses of a kind, a NaN or minus infinity, or a confidence outside of (0, 1). Every interval holds by itself
// with the confidence given, not all together.
Result<MembershipReport> InferMembership(const MembershipLosses& losses, double confidence);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_AUDIT_MEMBERSHIP_H_
