// The ledger records what a data set's privacy has been spent on, in one SQLite database on the device.
//
// A charge comes before spending. Charge returns after the charge is on disk, and only then may noise be drawn; a crash
// in between leaves the charge counted, never a release uncounted. The ledger belongs to the data, not to a model or a
// checkpoint, and no function gives spent budget back. A limit set by the app is enforced inside the transaction that
// charges, so processes sharing the file cannot pass it together.
//
// It does not stop somebody who deletes the file or puts an old copy in its place. That is noticed only if the ledger's
// progress is stored elsewhere (ledger_anchor.h). A ledger notes that it has an anchor, and is not charged without it.
//
// Everything is in the one file: there is no write-ahead log, whose loss would silently lose the latest charges. A
// "-journal" lies beside it only while a charge is being written. Copy or move a ledger only when no process has it
// open. Rows are chained by hashes, so changed or missing rows are noticed.
//
//   WISP_ASSIGN_OR_RETURN(Ledger ledger, Ledger::Open("history.ledger", {.dataset = "watch history",
//       .record = RecordSpec::OfEvents({.unit = PrivacyUnit::kSession, .session_gap = 1800})}));
//   WISP_ASSIGN_OR_RETURN(EpsilonDelta limit, EpsilonDelta::Create(8, 1e-6));
//   WISP_RETURN_IF_ERROR(ledger.SetLimit(limit));
//   WISP_RETURN_IF_ERROR(ledger.Charge({.mechanism = hundred_steps, .run = "2026-05-01"}).status());
//   ... draw the noise of a hundred steps ...
//
// Thread-safe. Must not be used across fork(): a child opens the file anew. To the accountant, blocks of steps with the
// same mechanism and run are one mechanism, so its time does not grow with the number of charges.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/ledger/ledger_chain.h"
#include "runtime/privacy/ledger/record_spec.h"

namespace wisp::privacy {

// The source of the noise. Reproducible noise carries no guarantee: anybody who knows the seed can subtract it.
enum class NoiseKind { kSecure, kReproducible };
std::string_view ToText(NoiseKind noise);  // "secure", "reproducible"
Result<NoiseKind> NoiseKindFromText(std::string_view text);

using ChargeId = int64_t;  // 1, 2, 3, ... without gaps
inline constexpr ChargeId kNewestCharge = std::numeric_limits<ChargeId>::max();

struct ChargeRequest {
  Mechanism mechanism;  // everything that may be released on this charge, e.g. a block of steps
  std::string run;      // name of the run
  std::string purpose;  // for people: "training", "token frequencies"
  NoiseKind noise = NoiseKind::kSecure;
  // How far the drawn noise is from the mechanism's: DiscretisationLoss (exact_sum.h) for everything that is released
  // on this charge. 0 to 1; 0 if the noise is the mechanism's own.
  double loss_slack = 0;
};

struct LedgerEntry {
  ChargeId id = 0;
  uint64_t seq = 0;      // over all limits, plans and entries together: 1, 2, 3, ... in the order of writing
  std::string time_utc;  // 2026-05-01T12:00:00.000000Z
  std::string run, purpose;
  Mechanism mechanism;
  NoiseKind noise = NoiseKind::kSecure;
  double loss_slack = 0;
  uint64_t plan = 0;  // seq of the plan that pays; 0: no plan
  // The definition of one record. nullopt: the charge is for samples from weights.
  std::optional<RecordSpec> record = {};
  enum class State { kCharged, kReleased } state = State::kCharged;  // both are spent
};

// The most that a run said, before its first charge, it would charge.
struct PlannedMechanism {
  Mechanism mechanism;    // with the total number of steps
  double loss_slack = 0;  // for all of these steps
};
struct LedgerPlan {
  uint64_t seq = 0;
  std::string time_utc, run, purpose;
  std::vector<PlannedMechanism> mechanisms;  // empty: the plan was withdrawn
  std::string settings = {};                 // JSON of the plan's writer that says how its runs are made; empty: none
  std::optional<RecordSpec> record = {};     // as LedgerEntry::record
};

// A result that a charge released, stored for code that continues from it; or, with `entry` 0, the ledger's own note
// that an anchor of the name `text` began, which Ledger::Results leaves out.
struct LedgerResult {
  uint64_t seq = 0;
  std::string time_utc;
  ChargeId entry = 0;
  std::string text;
};

struct LedgerLimit {
  uint64_t seq = 0;
  std::string time_utc;
  EpsilonDelta limit;
};

// The statement about everything charged so far at some delta, and its basis (docs/algorithms.md, section 10).
struct LedgerFigures {
  enum class Basis {
    kNothing,  // nothing was charged
    // Every charge is under a plan that was fixed before the first one. The figure is the PLD figure of the whole plan.
    kPlan,
    kAdaptive,  // some charges are not, and may have been chosen after looking at earlier outputs: filter and odometer
    kNoGuarantee,  // some noise can be repeated
  } basis = Basis::kNothing;
  StatedEpsilon stated;
  // For kPlan, if some of it is not used yet: the figure of the used part. It holds only if stopping did not depend on
  // outputs.
  std::optional<StatedEpsilon> used = {};
  std::vector<Mechanism> planned_left = {};  // for kPlan: not charged yet; charging these adds nothing to `stated`
  // The limit that holds however charges were chosen: it was set before the first of them, and never raised since.
  std::optional<EpsilonDelta> held_limit = {};
  bool limit_is_late = false;     // the first limit was set after a charge
  bool limit_was_raised = false;  // after a charge: a new guarantee, and the old one no longer holds
};

// A plan to be written with Ledger::WritePlan.
struct PlanRequest {
  std::string run, purpose;
  std::vector<ChargeRequest> charges = {};  // empty: withdraws the plan
  std::string settings = {};
};

// Terms that are fixed before the first charge. Fields that are empty leave the present terms as they are.
struct LedgerSetup {
  std::optional<EpsilonDelta> limit = {};
  std::optional<PlanRequest> plan = {};
  // The newest row (Ledger::NewestRow) of the ledger from which these terms follow. If the ledger has newer rows,
  // nothing is written.
  std::optional<uint64_t> newest_row = {};
};

// The anchors that a ledger notes.
struct NotedAnchors {
  uint64_t begun = 0;     // how many; a second one began because the first was lost
  bool compared = false;  // the ledger was opened with its anchor
};

// The content of a ledger at one moment.
struct LedgerState {
  std::vector<LedgerEntry> entries;
  Receipt receipt;  // of the newest entry; empty without entries
  std::optional<EpsilonDelta> limit;
  std::optional<RecordSpec> record;
  LedgerFigures figures;
  NotedAnchors anchors;
};

class LedgerAnchor;  // ledger_anchor.h

struct LedgerOptions {
  std::string dataset;  // for people
  // The definition of one record. RecordSpec::Any opens an existing ledger whatever its records are, under any
  // adjacency.
  RecordSpec record;
  bool unit_chosen = true;  // somebody chose the unit; false: a program took the default because nobody did
  Adjacency adjacency = Adjacency::kAddRemove;
  // The ledger's progress, stored elsewhere: a ledger that lacks rows which the anchor knows is refused. Null: an old
  // copy goes unnoticed, and a ledger that notes an anchor is refused.
  std::shared_ptr<LedgerAnchor> anchor;
  // The anchor may be empty although the ledger has rows: it begins now. The ledger notes that, and its statement shows
  // it if an earlier anchor was lost.
  bool begin_anchor = false;
  // How long a charge waits for other processes, which hold the file while they compute, 0.2 s or so.
  int busy_timeout_ms = 30000;
};

class Ledger {
 public:
  // Opens the ledger, or prepares one that does not exist yet: nothing is spent on it, and its first charge or limit
  // creates the file, so a refusal before leaves no file behind. An existing ledger must have the record and the
  // adjacency of `options`; its name stays. Errors: kIo (cannot be opened, read-only, busy), kInvalidData (not a
  // ledger, damaged), kUnsupported (another version), kPrivacyRefused (another record or adjacency; the anchor knows
  // rows that it lacks, or is not given).
  //
  // A file that is not a ledger is not changed. If another process creates the ledger meanwhile, that ledger is used;
  // if it has another data set, record or adjacency, it is refused from then on. A relative path is resolved now.
  static Result<Ledger> Open(const std::string& path, const LedgerOptions& options);
  // Opens an existing ledger, whatever its records are: for display, and for charges by callers that take the
  // definition of a record from record(). Without its anchor it can be read, and not written.
  static Result<Ledger> OpenExisting(const std::string& path, std::shared_ptr<LedgerAnchor> anchor = nullptr,
                                     bool begin_anchor = false);
  Ledger(Ledger&&) noexcept;
  Ledger& operator=(Ledger&&) noexcept;
  ~Ledger();

  const std::string& path() const;
  const std::string& dataset() const;
  // kPrivacyRefused if the ledger is of another data set, by name. A ledger without a name matches any data, and data
  // without a name matches any ledger.
  Status CheckDataset(const std::string& dataset) const;
  PrivacyUnit unit() const;
  bool unit_chosen() const;
  Adjacency adjacency() const;
  // The definition of one record. It comes from the charges, or before the first charge from the newest plan, or from
  // the caller that opened the ledger; nullopt if none of these has one.
  Result<std::optional<RecordSpec>> Record() const;
  // Record(), but kPrivacyRefused if there is no definition, or if the caller that opened the ledger has another one.
  Result<RecordSpec> RequireRecord() const;

  // Writes all terms or nothing, in one transaction. A run that is killed meanwhile leaves a ledger without any of
  // them, or no ledger; the same call may be repeated. kPrivacyRefused as in SetLimit and WritePlan, each of which
  // sets one of these terms; and if the ledger has rows after `newest_row`.
  Status SetUp(const LedgerSetup& setup);

  // From now on no charge may bring the total above `limit`, even if charges are chosen by looking at what earlier ones
  // released. The newest limit counts, all are stored. A limit below what is spent is accepted: every further charge is
  // then refused. A limit that is set or raised after a charge is enforced alike, but is a new promise: Figures says
  // what then holds in the strict sense.
  Status SetLimit(const EpsilonDelta& limit) { return SetUp({.limit = limit}); }
  // kPrivacyRefused for a limit below what is already spent, with both figures, for callers that would rather not set
  // it.
  Status CheckLimit(const EpsilonDelta& limit) const;
  Result<std::optional<EpsilonDelta>> Limit() const;

  // Records the charge durably. kPrivacyRefused, with nothing changed:
  //   - if the total would pass the limit (a reproducible charge passes any);
  //   - if its record is not that of the charges before it, or nobody defines a record;
  //   - if the mechanism's adjacency is not the data set's, or no accountant has a proof for it;
  //   - if its noise is reproducible where charges before it had secure noise, or the other way round: that would take
  //     the epsilon from all of them, for ever.
  // After any error nothing may be released; an I/O error, the anchor's too, may leave the charge recorded. An error
  // says what the run was charged before. A charge under the plan costs one disk sync; any other costs the accountant a
  // second at most once, then almost nothing.
  Result<ChargeId> Charge(const ChargeRequest& request);

  // Fixes what is to be charged, before the first charge: charges under the plan, in any order, compose by PLD, and the
  // figure is that of the whole plan. The last plan before the first charge counts; without one the first charge is a
  // plan by itself. kPrivacyRefused after a charge, and for a plan that passes the limit. `settings`: LedgerPlan.
  Status WritePlan(const std::string& run, const std::string& purpose, std::span<const ChargeRequest> charges,
                   const std::string& settings = {}) {
    return SetUp({.plan = PlanRequest{.run = run,
                                      .purpose = purpose,
                                      .charges = std::vector<ChargeRequest>(charges.begin(), charges.end()),
                                      .settings = settings}});
  }
  // Changes the plan after charges. The new one is stored with `settings` for whoever follows it. It is paid for only
  // by the filter, or by what is left of the old plan. kPrivacyRefused: it passes the limit, nothing was charged yet,
  // or the ledger has rows after `newest_row`, from which the change does not follow.
  Status ChangePlan(const std::string& run, const std::string& purpose, std::span<const ChargeRequest> charges,
                    const std::string& settings, uint64_t newest_row);
  // WritePlan of everything that a run will charge, called when the run can no longer be refused and before its first
  // charge. Does nothing after a charge, for noise that can be repeated, if the existing plan covers the run, or if
  // somebody else's plan is written.
  Status PlanRun(std::span<const ChargeRequest> charges);

  // Stores what the charge released, for code that continues from it. It must contain only what the charge paid for and
  // what anybody may know.
  Status AddResult(ChargeId id, const std::string& text);
  Result<std::vector<LedgerResult>> Results() const;

  // True if what is left of the plan contains all of these: then their cost is part of the plan's figure.
  Result<bool> Covers(std::span<const ChargeRequest> charges) const;

  // Checks that all of `charges`, a run's from the first to the last, could be recorded now. Call it before the first
  // charge, so that a run that cannot be paid to its end spends nothing; the run then calls PlanRun with the same
  // charges. kPrivacyRefused as in Charge, with the figures of the whole. It writes and reserves nothing: another
  // process may spend what was found, and every charge is checked again. If `new_limit` is given, that limit, which is
  // about to be set, replaces the ledger's.
  Status CheckFits(std::span<const ChargeRequest> charges, const std::optional<EpsilonDelta>& new_limit = {}) const;
  // The largest number of steps that fit, 0 to `most`. `charges` returns all charges for so many steps, and must not
  // use the ledger. An error does not answer the question.
  Result<uint64_t> StepsThatFit(uint64_t most,
                                const std::function<Result<std::vector<ChargeRequest>>(uint64_t steps)>& charges,
                                const std::optional<EpsilonDelta>& new_limit = {}) const;

  // The number of rows that this object has committed, including one after which the anchor failed. A failed charge may
  // be tried again only if this number did not grow.
  uint64_t num_written() const;

  // Records that what the charge paid for was released. For display only: an entry counts either way.
  Status MarkReleased(ChargeId id);

  // The epsilon of everything charged so far, an upper bound: that of Figures. Infinity if it cannot be bounded: after
  // any charge with reproducible noise, or if the accountant finds no bound. For a run: by PLD, which holds if the
  // number of its steps was fixed when it began (ledger_statement.h has the figure of any run).
  Result<LedgerFigures> Figures(const Delta& delta) const;
  // Figures without `used` and `planned_left`: for a plan, nothing that takes long is computed twice.
  Result<LedgerFigures> Stated(const Delta& delta) const;
  Result<double> Spent(const Delta& delta) const;
  // Spent as it would be after these charges. Writes nothing.
  Result<double> SpentAfter(std::span<const ChargeRequest> charges, const Delta& delta) const;
  Result<StatedEpsilon> SpentByRun(const std::string& run, const Delta& delta,
                                   Fineness fineness = Fineness::kFull) const;

  // A receipt for everything charged to `run`, up to the charge `newest`; empty if nothing was.
  Result<Receipt> MakeReceipt(const std::string& run, ChargeId newest = kNewestCharge) const;
  // True if this ledger, as it is now, has the charge that `receipt` was given for, and everything before it.
  Result<bool> HasPaid(const Receipt& receipt) const;
  // The seq of the first charge to the run that `receipt` was given to; 0 if this ledger has no such charge.
  Result<uint64_t> FindFirstCharge(const Receipt& receipt) const;

  Result<std::vector<LedgerEntry>> Entries() const;
  // The number of the newest row of any kind; 0 without rows.
  Result<uint64_t> NewestRow() const;
  // A random name of the file, in hex, which its copies share; for a ledger that does not exist yet, its future name.
  Result<std::string> Id() const;
  // The state at one moment, whatever others write meanwhile.
  Result<LedgerState> StateNow(const Delta& delta) const;
  // The states of the ledger while it had so many charges, the newest first: after each limit and plan that came before
  // the next charge, and after the last of those charges. Empty if it never had so many.
  Result<std::vector<LedgerState>> StatesWith(uint64_t num_charges, const Delta& delta) const;
  // All limits, the newest last, and all plans.
  Result<std::vector<LedgerLimit>> Limits() const;
  Result<std::vector<LedgerPlan>> Plans() const;
  // Exports data set, limit, total at `delta`, entries and composition.
  Result<std::string> ExportJson(const Delta& delta) const;

 private:
  struct Impl;
  explicit Ledger(std::unique_ptr<Impl> impl);
  static Result<Ledger> OpenImpl(const std::string& path, const LedgerOptions& options, bool existing);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_H_
