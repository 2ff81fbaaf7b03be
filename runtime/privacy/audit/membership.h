// Membership inference by a threshold on the loss: a record is called a member of the training data if the model's loss
// on it is at most the threshold (Sablayrolles et al. 2019; as an empirical check of private training: Yu et al. 2021,
// "Large Scale Private Learning via Low-rank Reparametrization", section 5.3).
//
//   WISP_ASSIGN_OR_RETURN(MembershipReport report, InferMembership({.members = a, .non_members = b}, 0.95));
//   report.accuracy, report.at_fpr_1_percent.true_positives.rate()
//
// It is not a bound on epsilon (audit.h). If it fails, that is no evidence of privacy, because a stronger attack may
// succeed. The report reveals something about its records: local-only, never released. Pure function, any thread.
#ifndef WISP_RUNTIME_PRIVACY_AUDIT_MEMBERSHIP_H_
#define WISP_RUNTIME_PRIVACY_AUDIT_MEMBERSHIP_H_

#include <span>

#include "runtime/core/status.h"
#include "runtime/privacy/audit/binomial.h"

namespace wisp::privacy {

// Losses, one for each record, all in the same unit (such as nats); +infinity is allowed. Their order must not depend
// on the losses. The two lists may differ in length; each needs at least 2 losses.
struct MembershipLosses {
  std::span<const double> members;
  std::span<const double> non_members;
};

// The performance of one threshold on the half of the records on which it was not chosen.
struct ThresholdAttack {
  double threshold = 0;        // loss <= threshold: "member"; minus infinity: never
  Proportion true_positives;   // members called members
  Proportion false_positives;  // non-members called members
};

struct MembershipReport {
  // (TPR + 1 - FPR) / 2 at the threshold that is best by this measure on the choosing half. As in the paper, it is the
  // share of right answers if there are as many members as non-members; 0.5 is no better than guessing. The interval
  // joins Clopper-Pearson's of both rates, each at confidence 1 - (1 - confidence) / 2.
  ThresholdAttack best;
  double accuracy = 0;
  Interval accuracy_interval;

  // P[loss of a member < loss of a non-member], where ties count half, over all records (nothing is chosen). The
  // interval is by Hoeffding's inequality for U-statistics (1963, section 5): wide, free of assumptions.
  double auc = 0;
  Interval auc_interval;

  // The largest threshold whose false-positive rate on the choosing half is at most 0.1% (1%). With fewer than 1000
  // (100) non-members there, the rate is 0. The measured rate is reported with its interval.
  ThresholdAttack at_fpr_01_percent, at_fpr_1_percent;
};

// Thresholds are chosen on the records of even index and measured on those of odd index. kInvalidArgument for fewer
// than 2 losses of a kind, a NaN or minus infinity, or a confidence outside of (0, 1). Every interval holds by itself
// with the given confidence, not all together.
Result<MembershipReport> InferMembership(const MembershipLosses& losses, double confidence);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_AUDIT_MEMBERSHIP_H_
