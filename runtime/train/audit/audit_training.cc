// Audits by whole training runs.
#include "runtime/train/audit/audit_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/train/audit/audit_device.h"

namespace wisp {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

Result<RandomStream> Coins(const std::optional<uint64_t>& seed) {
  if (seed) return RandomStream::Reproducible(*seed, StreamPurpose::kSampling);
  return RandomStream::Secure();
}

Result<std::unique_ptr<Trainer>> Trained(const Architecture& architecture, std::span<const float> weights,
                                         std::span<const Record> records, const TrainingOptions& options) {
  if (options.num_steps == 0) return InvalidArgument("an audit of a training run needs the number of steps; it is 0");
  WISP_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, Trainer::Create(architecture, weights, records, options));
  while (trainer->step() < options.num_steps) WISP_RETURN_IF_ERROR(trainer->Step().status());
  return trainer;
}

double MeanWhere(std::span<const double> values, std::span<const uint8_t> chosen, uint8_t what) {
  double sum = 0, n = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (chosen[i] == what) sum += values[i], ++n;
  }
  return n > 0 ? sum / n : 0;
}

// Numbers of guesses, from only the surest to half of the canaries; each at least 2.
std::vector<uint64_t> GuessCountsFor(uint64_t canaries) {
  std::vector<uint64_t> counts;
  for (uint64_t share : {20, 10, 5, 2}) counts.push_back(std::max<uint64_t>(2, canaries / share / 2 * 2));
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace

SyntheticRecords RandomRecords(size_t count, size_t length, uint32_t num_items, RandomStream& random) {
  SyntheticRecords all;
  for (size_t i = 0; i < count * (length + 1); ++i)
    all.items.push_back(static_cast<int32_t>(random.UniformBelow(num_items)));
  for (size_t i = 0; i < count; ++i) {
    const std::span<const int32_t> items(all.items.data() + i * (length + 1), length + 1);
    all.records.push_back({items.first(length), items.last(length)});
  }
  return all;
}

SyntheticRecords RandomPairs(size_t count, uint32_t num_items, RandomStream& random) {
  std::vector<int32_t> from(num_items);
  std::iota(from.begin(), from.end(), 0);
  for (uint32_t i = num_items; i > 1; --i) std::swap(from[i - 1], from[random.UniformBelow(i)]);
  // Round r pairs each item with the one r + shift places further on, so no pair repeats within num_items - 1 rounds.
  const uint64_t shift = num_items > 1 ? random.UniformBelow(num_items - 1) : 0;
  SyntheticRecords all;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t step = 1 + (i / num_items + shift) % (num_items - 1);
    all.items.push_back(from[i % num_items]);
    all.items.push_back(from[(i + step) % num_items]);
  }
  for (size_t i = 0; i < count; ++i) {
    const std::span<const int32_t> pair(all.items.data() + 2 * i, 2);
    all.records.push_back({pair.first(1), pair.last(1)});
  }
  return all;
}

std::vector<double> RecordLosses(const Graph& graph, std::span<const float> flat, std::span<const Record> records) {
  const PackedWeights weights(graph.base(), flat.data());
  const Buffers buffers = graph.AllocateForTraining();
  RecordContext context{.weights = weights.view(), .buffers = buffers};
  std::vector<double> losses;
  losses.reserve(records.size());
  for (const Record& record : records) {
    const size_t targets = NumTargets(record);
    double loss = std::nan("");
    if (targets > 0) graph.Forward(context, {&record, 1}, &loss);
    losses.push_back(loss / static_cast<double>(targets));
  }
  return losses;
}

Result<double> ClaimedEpsilon(const PrivacyPlan& plan, uint64_t steps, double delta) {
  WISP_ASSIGN_OR_RETURN(const auto mechanisms, plan.Mechanisms(steps));
  const double slack = plan.LossSlack(steps);
  // By exact_sum.h: epsilon + 2 slack at exp(slack) delta, and a tail that is below 1e-6 of delta.
  WISP_ASSIGN_OR_RETURN(const auto reduced, privacy::Delta::Create(delta * std::exp(-slack) * (1 - 1e-6)));
  WISP_ASSIGN_OR_RETURN(const double epsilon, privacy::PldEpsilon(mechanisms, reduced));
  return epsilon + 2 * slack;
}

Result<RunAuditResult> AuditRun(const RunAuditOptions& o) {
  WISP_RETURN_IF_ERROR(RefuseDevice(o.training));
  WISP_RETURN_IF_ERROR(Validate(o.architecture));
  WISP_RETURN_IF_ERROR(privacy::CheckAuditLevel(o.level));
  if (o.claimed_epsilon) WISP_RETURN_IF_ERROR(privacy::CheckClaimedEpsilon(*o.claimed_epsilon));
  const uint64_t pairs = uint64_t{o.architecture.num_items} * (o.architecture.num_items - 1);
  if (o.canaries < 10 || o.canaries > std::min(pairs, privacy::kMostCanaries)) {
    return InvalidArgument("canaries is ", o.canaries, ", allowed are 10 to ", std::min(pairs, privacy::kMostCanaries),
                           ": each is another pair of items");
  }
  WISP_ASSIGN_OR_RETURN(RandomStream coins, Coins(o.reproducible_coins));
  const SyntheticRecords canaries = RandomPairs(o.canaries, o.architecture.num_items, coins);
  std::vector<uint8_t> included(o.canaries);
  std::vector<Record> records(o.records.begin(), o.records.end());
  RunAuditResult result;
  for (size_t i = 0; i < included.size(); ++i) {
    included[i] = coins.Bernoulli(0.5) ? 1 : 0;
    if (included[i] == 1) records.push_back(canaries.records[i]);
    result.included += included[i];
  }
  WISP_ASSIGN_OR_RETURN(const auto trainer, Trained(o.architecture, o.weights, records, o.training));
  const std::vector<double> before = RecordLosses(trainer->graph(), o.weights, canaries.records);
  std::vector<double> scores = RecordLosses(trainer->graph(), trainer->final_weights(), canaries.records);
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = before[i] - scores[i];
    if (!std::isfinite(scores[i]))
      return InvalidData("the loss of a canary is not finite: training diverged, which is no audit");
  }
  result.mean_drop_included = MeanWhere(scores, included, 1);
  result.mean_drop_excluded = MeanWhere(scores, included, 0);
  WISP_ASSIGN_OR_RETURN(result.bound,
                        privacy::OneRunBestEpsilon(scores, included, GuessCountsFor(o.canaries), o.level));
  result.claimed = o.claimed_epsilon;
  if (!result.claimed && o.training.method != Method::kOrdinary) {
    WISP_ASSIGN_OR_RETURN(result.claimed, ClaimedEpsilon(trainer->privacy_plan(), o.training.num_steps, o.level.delta));
  }
  result.refuted = result.claimed && result.bound.epsilon > *result.claimed;
  return result;
}

Result<MembershipAuditResult> AuditMembership(const MembershipAuditOptions& o) {
  WISP_RETURN_IF_ERROR(RefuseDevice(o.training));
  WISP_RETURN_IF_ERROR(Validate(o.architecture));
  WISP_ASSIGN_OR_RETURN(RandomStream coins, Coins(o.reproducible_coins));
  std::vector<Record> shuffled;
  for (const Record& record : o.records) {
    if (NumTargets(record) > 0) shuffled.push_back(record);
  }
  if (shuffled.size() < 4)
    return InvalidData("membership inference needs 4 records or more, there are ", shuffled.size());
  for (size_t i = shuffled.size(); i > 1; --i) std::swap(shuffled[i - 1], shuffled[coins.UniformBelow(i)]);
  const std::span<const Record> all(shuffled);
  const std::span<const Record> members = all.first(all.size() / 2), others = all.subspan(all.size() / 2);
  WISP_ASSIGN_OR_RETURN(const auto trainer, Trained(o.architecture, o.weights, members, o.training));
  const std::vector<double> in = RecordLosses(trainer->graph(), trainer->final_weights(), members);
  const std::vector<double> out = RecordLosses(trainer->graph(), trainer->final_weights(), others);
  MembershipAuditResult result{.members = in.size(), .non_members = out.size()};
  result.mean_loss_members = std::accumulate(in.begin(), in.end(), 0.0) / static_cast<double>(in.size());
  result.mean_loss_non_members = std::accumulate(out.begin(), out.end(), 0.0) / static_cast<double>(out.size());
  WISP_ASSIGN_OR_RETURN(result.report, privacy::InferMembership({.members = in, .non_members = out}, o.confidence));
  return result;
}

}  // namespace wisp
