// Built for speed: searches among the losses of all records.
#include "runtime/privacy/audit/membership.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace wisp::privacy {
namespace {

struct Half {
  std::vector<double> members, non_members;  // ascending
};

std::vector<double> Sorted(std::span<const double> values, size_t first, size_t stride) {
  std::vector<double> sorted;
  sorted.reserve(values.size() / stride + 1);
  for (size_t i = first; i < values.size(); i += stride) sorted.push_back(values[i]);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

Half HalfOf(const MembershipLosses& losses, size_t first) {
  return {Sorted(losses.members, first, 2), Sorted(losses.non_members, first, 2)};
}

Count AtMost(const std::vector<double>& sorted, double threshold) {
  return {static_cast<uint64_t>(std::upper_bound(sorted.begin(), sorted.end(), threshold) - sorted.begin()),
          sorted.size()};
}

double Share(Count c) { return static_cast<double>(c.hits) / static_cast<double>(c.trials); }

Status CheckLosses(std::span<const double> losses, const char* whose) {
  if (losses.size() < 2) return InvalidArgument(losses.size(), " losses of ", whose, "; at least 2 are needed");
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!(losses[i] > -std::numeric_limits<double>::infinity())) {
      return InvalidArgument("loss ", i, " of ", whose, " is ", losses[i]);
    }
  }
  return OkStatus();
}

// "Never" is one of the thresholds. Only members' losses need to be tried, because between two of them accuracy can
// only fall.
double MostAccurateThreshold(const Half& half) {
  double best = -std::numeric_limits<double>::infinity();
  double most = Share(AtMost(half.members, best)) - Share(AtMost(half.non_members, best));
  for (double threshold : half.members) {
    const double advantage = Share(AtMost(half.members, threshold)) - Share(AtMost(half.non_members, threshold));
    if (advantage > most) most = advantage, best = threshold;
  }
  return best;
}

// The largest float below the first non-member that must not be called a member.
double ThresholdAtRate(const Half& half, double rate) {
  const auto allowed = static_cast<size_t>(rate * static_cast<double>(half.non_members.size()));
  return std::nextafter(half.non_members[allowed], -std::numeric_limits<double>::infinity());
}

Result<ThresholdAttack> Measure(const Half& half, double threshold, double confidence) {
  ThresholdAttack attack;
  attack.threshold = threshold;
  WISP_ASSIGN_OR_RETURN(attack.true_positives, Proportion::Of(AtMost(half.members, threshold), confidence));
  WISP_ASSIGN_OR_RETURN(attack.false_positives, Proportion::Of(AtMost(half.non_members, threshold), confidence));
  return attack;
}

// Mann and Whitney's statistic divided by its maximum.
double Auc(const Half& all) {
  double wins = 0;
  for (double loss : all.members) {
    const auto [first, last] = std::equal_range(all.non_members.begin(), all.non_members.end(), loss);
    wins += static_cast<double>(all.non_members.end() - last) + 0.5 * static_cast<double>(last - first);
  }
  return wins / (static_cast<double>(all.members.size()) * static_cast<double>(all.non_members.size()));
}

}  // namespace

Result<MembershipReport> InferMembership(const MembershipLosses& losses, double confidence) {
  WISP_RETURN_IF_ERROR(CheckConfidence(confidence));
  WISP_RETURN_IF_ERROR(CheckLosses(losses.members, "members"));
  WISP_RETURN_IF_ERROR(CheckLosses(losses.non_members, "non-members"));
  const Half choosing = HalfOf(losses, 0), measuring = HalfOf(losses, 1);
  MembershipReport report;
  const double threshold = MostAccurateThreshold(choosing);
  WISP_ASSIGN_OR_RETURN(report.best, Measure(measuring, threshold, confidence));
  report.accuracy = (report.best.true_positives.rate() + 1 - report.best.false_positives.rate()) / 2;
  WISP_ASSIGN_OR_RETURN(const ThresholdAttack joint, Measure(measuring, threshold, 1 - (1 - confidence) / 2));
  report.accuracy_interval = {(joint.true_positives.interval.low + 1 - joint.false_positives.interval.high) / 2,
                              (joint.true_positives.interval.high + 1 - joint.false_positives.interval.low) / 2};

  const Half all{Sorted(losses.members, 0, 1), Sorted(losses.non_members, 0, 1)};
  report.auc = Auc(all);
  const double pairs = static_cast<double>(std::min(all.members.size(), all.non_members.size()));
  const double width = std::sqrt(std::log(2 / (1 - confidence)) / (2 * pairs));
  report.auc_interval = {std::max(0.0, report.auc - width), std::min(1.0, report.auc + width)};

  WISP_ASSIGN_OR_RETURN(report.at_fpr_01_percent, Measure(measuring, ThresholdAtRate(choosing, 0.001), confidence));
  WISP_ASSIGN_OR_RETURN(report.at_fpr_1_percent, Measure(measuring, ThresholdAtRate(choosing, 0.01), confidence));
  return report;
}

}  // namespace wisp::privacy
