// Audits of what training really does: lower bounds on epsilon, from runs of the training code, compared with the claim
// that is charged for them (statistics: privacy/audit.h, privacy/membership.h).
//
//   step         many releases of one step, with a canary record and without, as one number each   white box, sharp
//   run          one training run with canaries, each included by a coin; their losses afterwards   black box, weak
//   membership   a model trained on half of the records; a threshold on the loss                    an attack, no bound
//
//   WISP_ASSIGN_OR_RETURN(StepAuditResult seen, AuditStep({.architecture = a, .weights = w, .training = o,
//       .canary = c}));
//   if (seen.refuted) ...   // the claim is false, except with probability 1 - confidence
//
// "Not refuted" proves nothing: it says that this attack did not see a breach.
//
// Ledger: an audit trains on the records it is given, so it charges options.training.privacy.ledger as training does,
// before any noise is drawn. Synthetic records need a ledger of their own. Canaries are public. If the records are
// private, results are local-only, because they were computed from the records, the coins and the losses. Call from one
// thread; training options' num_threads is used. Errors: those of Trainer, and kInvalidArgument for numbers out of
// range.
#ifndef WISP_RUNTIME_TRAIN_AUDIT_AUDIT_TRAINING_H_
#define WISP_RUNTIME_TRAIN_AUDIT_AUDIT_TRAINING_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/privacy/audit/audit.h"
#include "runtime/privacy/audit/membership.h"
#include "runtime/train/sum_method.h"
#include "runtime/train/trainer.h"

namespace wisp {

// Records that own their items.
struct SyntheticRecords {
  std::vector<int32_t> items;
  std::vector<Record> records;  // views into items: move, do not copy
  SyntheticRecords() = default;
  SyntheticRecords(SyntheticRecords&&) = default;
  SyntheticRecords& operator=(SyntheticRecords&&) = default;
};
// `count` records, each a sequence of `length` random transitions between items.
SyntheticRecords RandomRecords(size_t count, size_t length, uint32_t num_items, privacy::RandomStream& random);
// `count` records of one transition from an item to another, all different. Each item is the start once before any is
// twice. `count` is at most num_items * (num_items - 1).
SyntheticRecords RandomPairs(size_t count, uint32_t num_items, privacy::RandomStream& random);

// ---- One step ----

// Makes the gradient method of a step; empty: the one of the options. Through this seam tests plant mechanisms that are
// broken on purpose; training itself has no such seam.
using MethodFactory = std::function<std::unique_ptr<GradientMethod>(const MethodSetup& setup)>;

struct StepAuditOptions {
  Architecture architecture;
  std::span<const float> weights;  // flat; the step starts here, and RGP's carriers take these as W_0
  // A private method with its ledger. Read: method, privacy, q = expected_batch / num_records_public, rgp, seed. The
  // optimizer is replaced by one whose update is the gradient; dropout, averaging and Re-Attention's updates are left
  // out.
  TrainingOptions training;
  std::span<const Record> others = {};              // the data beside the canary; may be empty
  Record canary;                                    // public
  uint64_t observations = 2000;                     // releases with the canary, and as many without; 4 and above
  std::vector<double> deltas = {1e-5, 1e-2, 1e-1};  // where epsilon(delta) is tested
  double confidence = 0.95;                         // probability that all bounds hold together
  // kTrainer: audits the whole training loop (sampling, charge, weights before and after), restored to the start each
  // time. kRelease: audits the release alone, called as the trainer calls it, and charged once. Only kRelease reads
  // `make_method`.
  enum class Through { kTrainer, kRelease } through = Through::kTrainer;
  MethodFactory make_method = {};
};

struct StepAuditResult {
  privacy::GdpBound mu;
  // 1 / noise multiplier; valid with sampling too, since a sample of the records releases no more than all of them
  double claimed_mu = 0;
  struct AtDelta {
    double delta = 0, claimed = 0;  // epsilon of one step by PLD, including the slack of the discrete noise
    privacy::CanaryBound bound;
  };
  std::vector<AtDelta> at_delta;
  // The length of what the canary adds to the product's release, in clipping norms, 0 to 1. Above 1 clipping does not
  // hold, which refutes the claim without any statistics. No bound on mu above reach / noise multiplier can be
  // expected: a small reach says that the audit is weak, not that the mechanism is good.
  double reach = 0;
  double level = 0;  // the confidence of each single bound, such that all hold together
  bool refuted = false;
};

// Observes the released gradient's inner product with the direction of the canary's clipped gradient. That direction is
// the sound mechanism's release for the canary alone with hardly any noise. The neighbouring data sets are `others` and
// `others` + canary.
Result<StepAuditResult> AuditStep(const StepAuditOptions& options);
// True if a canary adds more than the noise and rounding explain: then clipping does not hold, whatever the noise.
// `reach` is the length of its release with hardly any noise, in clipping norms; `coordinates` their number.
bool PassesClippingNorm(double reach, uint64_t coordinates);

// The candidate with the largest reach; 0 if there are no candidates.
Result<size_t> StrongestCanary(const StepAuditOptions& options, std::span<const Record> candidates);

// ---- One run ----

struct RunAuditOptions {
  Architecture architecture;
  std::span<const float> weights;   // the start
  std::span<const Record> records;  // the data beside the canaries; may be empty if the method is private
  TrainingOptions training;         // num_steps set
  uint32_t canaries = 500;          // RandomPairs, 10 and above; each included with probability 1/2
  privacy::AuditLevel level = {.delta = 1e-5};
  // The claim. Absent: the accountant's figure for the run; ordinary training has none.
  std::optional<double> claimed_epsilon = std::nullopt;
  std::optional<uint64_t> reproducible_coins = std::nullopt;  // for tests; otherwise the canaries' coins are secure
};

struct RunAuditResult {
  privacy::OneRunBest bound;
  std::optional<double> claimed;
  uint64_t included = 0;          // canaries in the data
  double mean_drop_included = 0;  // mean fall of the loss through training, in nats
  double mean_drop_excluded = 0;
  bool refuted = false;
};

// The score of a canary is its loss before training minus its loss afterwards.
Result<RunAuditResult> AuditRun(const RunAuditOptions& options);

// ---- Membership ----

struct MembershipAuditOptions {
  Architecture architecture;
  std::span<const float> weights;
  std::span<const Record> records;  // records without a target take no part
  TrainingOptions training;         // num_records_public is that of the members, half of `records`
  double confidence = 0.95;
  std::optional<uint64_t> reproducible_coins = std::nullopt;
};

struct MembershipAuditResult {
  privacy::MembershipReport report;
  uint64_t members = 0, non_members = 0;
  double mean_loss_members = 0, mean_loss_non_members = 0;  // nats per position
};

// Trains on a random half of the records, then computes all losses from the final weights.
Result<MembershipAuditResult> AuditMembership(const MembershipAuditOptions& options);

// ---- Shared functions ----

// Mean cross-entropy per position of each record. NaN for a record without a target.
std::vector<double> RecordLosses(const Graph& graph, std::span<const float> weights, std::span<const Record> records);

// The cost of so many steps at delta, as the ledger counts it: an upper bound.
Result<double> ClaimedEpsilon(const PrivacyPlan& plan, uint64_t steps, double delta);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_AUDIT_AUDIT_TRAINING_H_
