// Audits of what training really does: lower bounds on epsilon, from runs of the code that trains, held against the
// claim that is charged for them (statistics: privacy/audit.h, privacy/membership.h).
//
//   step         many releases of one step, with a canary record and without, as one number each   white box, sharp
//   run          one training run with canaries, each included by a coin; their losses afterwards   black box, weak
//   membership   a model trained on half of the records; a threshold on the loss                    an attack, no bound
//
//   WISP_ASSIGN_OR_RETURN(StepAuditResult seen, AuditStep({.architecture = a, .weights = w, .training = o,
//       .canary = c}));
//   if (seen.refuted) ...   // the claim is false, up to a chance of 1 - confidence
//
// "Not refuted" proves nothing: it says that this attack did not see a breach.
//
// Ledger: an audit trains on the records it is given, so it charges options.training.privacy.ledger like training does,
// before any noise is drawn. On synthetic records that is a ledger of their own. Canaries are public. Results are
// local-only where the records are private: they were computed with the records, the coins and the losses in hand. One
// thread calls; training options' num_threads is used. Errors: those of Trainer, and kInvalidArgument for numbers.
#ifndef WISP_RUNTIME_TRAIN_AUDIT_AUDIT_TRAINING_H_
#define WISP_RUNTIME_TRAIN_AUDIT_AUDIT_TRAINING_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/privacy/audit/audit.h"
#include "runtime/privacy/audit/membership.h"
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
// `count` records of `length` random transitions.
SyntheticRecords RandomRecords(size_t count, size_t length, uint32_t num_items, privacy::RandomStream& random);
// `count` records of one transition, no two the same, from an item to another; each item is asked for once before any
// is asked for twice. `count` at most num_items * (num_items - 1).
SyntheticRecords RandomPairs(size_t count, uint32_t num_items, privacy::RandomStream& random);

// ---- One step ----

// Makes what a step releases; MakeStepRelease where none is given. Here stand the mechanisms that tests break on
// purpose: training itself has no such seam.
using ReleaseFactory = std::function<std::unique_ptr<StepRelease>(
    const Graph& graph, const TrainedSet& trained, std::span<const float> start, const TrainingOptions& options)>;

struct StepAuditOptions {
  Architecture architecture;
  std::span<const float> weights;  // flat; the step is taken from here, and RGP's carriers have these as their start
  // A private method with its ledger. Read: method, privacy, q = expected_batch / num_records_public, rgp, seed. The
  // optimizer is replaced by one whose update is the gradient; dropout, averaging and Re-Attention's updates are left
  // out.
  TrainingOptions training;
  std::span<const Record> others = {};              // the data beside the canary; may be empty
  Record canary;                                    // public
  uint64_t observations = 2000;                     // of each: with the canary and without; 4 and above
  std::vector<double> deltas = {1e-5, 1e-2, 1e-1};  // where epsilon(delta) is tested
  double confidence = 0.95;                         // of all the bounds together
  // kTrainer: the training loop itself (sampling, charge, weights before and after), taken back to the start each time.
  // kRelease: the release alone, driven as the trainer drives it; charged once; `make_release` is read.
  enum class Through { kTrainer, kRelease } through = Through::kTrainer;
  ReleaseFactory make_release = {};
};

struct StepAuditResult {
  privacy::GdpBound mu;
  double claimed_mu = 0;  // 1 / noise multiplier: a sample of the records releases no more than all of them
  struct AtDelta {
    double delta = 0, claimed = 0;  // epsilon of one step by PLD, the slack of the discrete noise included
    privacy::CanaryBound bound;
  };
  std::vector<AtDelta> at_delta;
  // What the canary adds to the product's release, in clipping norms, 0 to 1; above it clipping does not hold, which
  // refutes the claim without any statistics. No bound on mu can be expected above reach / noise multiplier: a small
  // reach says that the audit is weak, not that the mechanism is good.
  double reach = 0;
  double level = 0;  // the confidence of each bound by itself, so that all hold together
  bool refuted = false;
};

// What is observed: the released gradient's inner product with the direction of the canary's clipped gradient, which is
// the sound mechanism's release for the canary alone with hardly any noise. The neighbours: `others` and `others` +
// canary.
Result<StepAuditResult> AuditStep(const StepAuditOptions& options);
// Whether a canary whose release of so many coordinates, with hardly any noise, has this length in clipping norms adds
// more than the noise and rounding explain: then clipping does not hold, whatever the noise.
bool PassesClippingNorm(double reach, uint64_t coordinates);

// The candidate with the largest reach; 0 where there is none.
Result<size_t> StrongestCanary(const StepAuditOptions& options, std::span<const Record> candidates);

// ---- One run ----

struct RunAuditOptions {
  Architecture architecture;
  std::span<const float> weights;   // the start
  std::span<const Record> records;  // the data beside the canaries; may be empty where the method is private
  TrainingOptions training;         // num_steps set
  uint32_t canaries = 500;          // RandomPairs, 10 and above; each included with probability 1/2
  privacy::AuditLevel level = {.delta = 1e-5};
  // The claim; the accountant's figure for the run where absent, which is none for ordinary training.
  std::optional<double> claimed_epsilon = std::nullopt;
  std::optional<uint64_t> reproducible_coins = std::nullopt;  // for tests; else the canaries' coins are secure
};

struct RunAuditResult {
  privacy::OneRunBest bound;
  std::optional<double> claimed;
  uint64_t included = 0;          // canaries in the data
  double mean_drop_included = 0;  // how far training brought the loss down, in nats
  double mean_drop_excluded = 0;
  bool refuted = false;
};

// Scores: the loss of each canary before training minus that after it.
Result<RunAuditResult> AuditRun(const RunAuditOptions& options);

// ---- Membership ----

struct MembershipAuditOptions {
  Architecture architecture;
  std::span<const float> weights;
  std::span<const Record> records;  // those without a target take no part
  TrainingOptions training;         // num_records_public: of the members, half of `records`
  double confidence = 0.95;
  std::optional<uint64_t> reproducible_coins = std::nullopt;
};

struct MembershipAuditResult {
  privacy::MembershipReport report;
  uint64_t members = 0, non_members = 0;
  double mean_loss_members = 0, mean_loss_non_members = 0;  // nats per position
};

// A random half of the records is trained on, whole; then all losses are taken from the final weights.
Result<MembershipAuditResult> AuditMembership(const MembershipAuditOptions& options);

// ---- What they share ----

// Mean cross-entropy per position of each record. NaN for a record without a target.
std::vector<double> RecordLosses(const Graph& graph, std::span<const float> weights, std::span<const Record> records);

// What so many steps cost at delta, as the ledger counts them: an upper bound.
Result<double> ClaimedEpsilon(const PrivacyPlan& plan, uint64_t steps, double delta);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_AUDIT_AUDIT_TRAINING_H_
