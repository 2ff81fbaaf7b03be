// The ledger: what a data set's privacy has been spent on, in one SQLite database on the device.
//
// What it is: charged before spending. Charge returns after the charge is on disk, and only then may noise be drawn; a
// crash in between leaves the charge counted, never a release uncounted. It belongs to the data, not to a model or a
// checkpoint, and nothing here gives spent budget back. A limit set by the app is enforced inside the transaction that
// charges, so processes sharing the file cannot pass it together.
// What it is not: proof against someone who deletes the file or puts an old copy in its place. That is noticed only
// where it is kept elsewhere how far the ledger has got (ledger_anchor.h), and only by who opens it with that anchor.
// Everything is in the one file: there is no write-ahead log, whose loss would lose the latest charges without a trace.
// Only while a charge is being written a "-journal" lies beside it. Copy or move a ledger when no process has it open.
// Rows are chained by hashes, so what is changed or missing is noticed.
//
//   WISP_ASSIGN_OR_RETURN(Ledger ledger, Ledger::Open("history.ledger", {.dataset = "watch history",
//       .record = RecordSpec::OfEvents({.unit = PrivacyUnit::kSession, .session_gap = 1800})}));
//   WISP_ASSIGN_OR_RETURN(EpsilonDelta limit, EpsilonDelta::Create(8, 1e-6));
//   WISP_RETURN_IF_ERROR(ledger.SetLimit(limit));
//   WISP_RETURN_IF_ERROR(ledger.Charge({.mechanism = hundred_steps, .run = "2026-05-01"}).status());
//   ... draw the noise of a hundred steps ...
//
// Thread-safe. Not to be used across fork(): a child opens the file anew. Blocks of steps with the same mechanism and
// run are one mechanism to the accountant, so its time does not grow with the number of charges.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_H_

#include <cstdint>
#include <functional>
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

// Where the noise came from. Reproducible noise carries no guarantee: whoever knows the seed can take it away.
enum class NoiseKind { kSecure, kReproducible };
std::string_view ToText(NoiseKind noise);  // "secure", "reproducible"
Result<NoiseKind> NoiseKindFromText(std::string_view text);

// Whose records a mechanism reads. Records of a divided data set are in one part each (LedgerSplit), so what reads one
// part only costs those of the other nothing: both compose in parallel (docs/algorithms.md, section 11).
enum class RecordPart {
  kAll,       // it may read every record: counts for both parts
  kTraining,  // those that train
  kJudging,   // those that decide whether what was trained is better
};
std::string_view ToText(RecordPart part);  // "all", "training", "judging"
Result<RecordPart> RecordPartFromText(std::string_view text);

using ChargeId = int64_t;  // 1, 2, 3, ... without gaps

struct ChargeRequest {
  Mechanism mechanism;  // all that may be released on this charge, e.g. a block of steps
  std::string run;      // names the run
  std::string purpose;  // for people: "training", "token frequencies"
  NoiseKind noise = NoiseKind::kSecure;
  // How far the noise drawn is from the mechanism's: DiscretisationLoss (exact_sum.h) for all that is released on this
  // charge. 0 to 1; 0 where the noise is the mechanism's own.
  double loss_slack = 0;
  RecordPart part = RecordPart::kAll;  // another one: of a ledger that is split
};

struct LedgerEntry {
  ChargeId id = 0;
  uint64_t seq = 0;      // of all limits, plans and entries together: 1, 2, 3, ... in the order of writing
  std::string time_utc;  // 2026-05-01T12:00:00.000000Z
  std::string run, purpose;
  Mechanism mechanism;
  NoiseKind noise = NoiseKind::kSecure;
  double loss_slack = 0;
  uint64_t plan = 0;  // seq of the plan that pays; 0: none
  RecordPart part = RecordPart::kAll;
  // What one record is. None: the charge is for draws from weights.
  std::optional<RecordSpec> record = {};
  enum class State { kCharged, kReleased } state = State::kCharged;  // both are spent
};

// What a run said, before its first charge, that it would charge at most.
struct PlannedMechanism {
  Mechanism mechanism;    // with its total number of steps
  double loss_slack = 0;  // of all of these steps
};
struct LedgerPlan {
  uint64_t seq = 0;
  std::string time_utc, run, purpose;
  std::vector<PlannedMechanism> mechanisms;  // none: the plan of its part was taken back
  RecordPart part = RecordPart::kAll;
  std::string settings = {};              // JSON of who wrote it: how its runs are made; empty: none
  std::optional<RecordSpec> record = {};  // as that of LedgerEntry
};

// How records are divided: once, for good. A record judges where the hash of its unit with the salt, as a number from 0
// to 1, is below the share (runtime/train/run/parts.h).
struct LedgerSplit {
  uint64_t seq = 0;
  std::string time_utc;
  double judging_share = 0;  // above 0, below 1
  std::string salt;          // kSplitSaltBytes, random, public
};
inline constexpr size_t kSplitSaltBytes = 16;

// What a charge released, kept for those who go on from it.
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

// What may be said of everything charged so far at some delta, and why (docs/algorithms.md, section 10).
struct LedgerFigures {
  enum class Basis {
    kNothing,  // nothing was charged
    // Every charge is under a plan that was fixed before the first: its PLD figure, that of the whole plan.
    kPlan,
    kAdaptive,     // some are not, and may have been chosen after looking at earlier outputs: filter and odometer
    kNoGuarantee,  // noise that can be repeated
  } basis = Basis::kNothing;
  StatedEpsilon stated;
  // Of kPlan, where some of it is not used yet: the figure of what is. It holds where stopping did not depend on
  // outputs.
  std::optional<StatedEpsilon> used = {};
  std::vector<Mechanism> planned_left = {};  // of kPlan: not charged yet; charging these adds nothing to `stated`
  // The limit that holds however charges were chosen: it was set before the first of them, and never raised since.
  std::optional<EpsilonDelta> held_limit = {};
  bool limit_is_late = false;     // the first one was set after a charge
  bool limit_was_raised = false;  // after a charge: a new guarantee, and the old one is gone
  // Where records are divided: what was charged for each part. The figures above are those of the part with the largest
  // epsilon, and hold for every record.
  struct Part {
    RecordPart part;
    Basis basis;
    StatedEpsilon stated;
    std::optional<StatedEpsilon> used;
    std::vector<Mechanism> planned_left;
  };
  std::vector<Part> parts = {};
};

// A plan that is to be written: Ledger::WritePlan.
struct PlanRequest {
  std::string run, purpose;
  RecordPart part = RecordPart::kAll;
  std::vector<ChargeRequest> charges = {};  // of this part; none: takes the plan of the part back
  std::string settings = {};
};

// Terms that are fixed before the first charge. Those that are left out stay as they are.
struct LedgerSetup {
  std::optional<EpsilonDelta> limit = {};
  std::optional<double> judging_share = {};
  std::vector<PlanRequest> plans = {};  // in this order
  // The newest row (Ledger::NewestRow) of the ledger that these terms follow from. Where the ledger has newer rows,
  // nothing is written.
  std::optional<uint64_t> newest_row = {};
};

// What a ledger says at one moment.
struct LedgerState {
  std::vector<LedgerEntry> entries;
  Receipt receipt;  // of the newest of them; empty: there is none
  std::optional<EpsilonDelta> limit;
  std::optional<RecordSpec> record;
  LedgerFigures figures;
};

class LedgerAnchor;  // ledger_anchor.h

struct LedgerOptions {
  std::string dataset;  // for people
  // What one record is. RecordSpec::Any opens an existing ledger whatever its records are, under any adjacency.
  RecordSpec record;
  bool unit_chosen = true;  // somebody chose the unit; false where a program took the default because nobody did
  Adjacency adjacency = Adjacency::kAddRemove;
  // How far the ledger has got, kept elsewhere: a ledger that lacks what the anchor knows is refused. None: an old copy
  // goes unnoticed.
  std::shared_ptr<LedgerAnchor> anchor;
  bool begin_anchor = false;  // the anchor may be empty though the ledger has rows: it begins now
  // How long a charge waits for other processes; they hold the file while they compute, 0.2 s or so.
  int busy_timeout_ms = 30000;
};

class Ledger {
 public:
  // Opens the ledger, or one that is not there yet: nothing is spent on it, and its first charge or limit makes the
  // file, so what is refused before leaves none behind. An existing one must have the record and the adjacency of
  // `options`; its name stays. Errors: kIo (cannot be opened, read-only, busy), kInvalidData (not a ledger, damaged),
  // kUnsupported (another version), kPrivacyRefused (another record or adjacency; its anchor knows what it lacks). A
  // file that is not a ledger is left as it is. Where another process makes the ledger meanwhile, its is the one that
  // counts; one of another data set, record or adjacency is refused from then on. A relative path is that of now.
  static Result<Ledger> Open(const std::string& path, const LedgerOptions& options);
  // Opens what is there, whatever its records are: for display, and for charges by those who take what one record is
  // from record().
  static Result<Ledger> OpenExisting(const std::string& path, std::shared_ptr<LedgerAnchor> anchor = nullptr,
                                     bool begin_anchor = false);
  Ledger(Ledger&&) noexcept;
  Ledger& operator=(Ledger&&) noexcept;
  ~Ledger();

  const std::string& path() const;
  const std::string& dataset() const;
  // kPrivacyRefused where the ledger is of another data set, by name. One without a name is of any, and so is data
  // without one.
  Status CheckDataset(const std::string& dataset) const;
  PrivacyUnit unit() const;
  bool unit_chosen() const;
  Adjacency adjacency() const;
  // What one record is: as the charges say, or before the first of them the newest plan, or who opened the ledger.
  // Nothing where none of these says so.
  Result<std::optional<RecordSpec>> Record() const;
  // The same, and kPrivacyRefused where nothing says so, or who opened the ledger takes a record for something else.
  Result<RecordSpec> RequireRecord() const;

  // Writes all of it or nothing, in one transaction. A run that is killed meanwhile leaves a ledger without any of it,
  // or no ledger; the same call again is right. kPrivacyRefused as SetLimit, Split and WritePlan, which are one of
  // these alone; and where the ledger has rows after `newest_row`.
  Status SetUp(const LedgerSetup& setup);

  // From now on no charge may bring the total above `limit`, also where charges are chosen by looking at what earlier
  // ones released. The newest limit counts, all are kept. A limit below what is spent is accepted: every further charge
  // is refused. One that is set or raised after a charge is enforced alike, but is a new promise: what holds in the
  // strict sense is then what Figures says.
  Status SetLimit(const EpsilonDelta& limit) { return SetUp({.limit = limit}); }
  // kPrivacyRefused for a limit below what is spent already, with both figures; for those who would rather not set one.
  Status CheckLimit(const EpsilonDelta& limit) const;
  Result<std::optional<EpsilonDelta>> Limit() const;

  // Records the charge durably. kPrivacyRefused, with nothing changed, if the total would pass the limit (a
  // reproducible charge passes any), if its record is not that of the charges before it, or nobody says
  // what a record is, if the mechanism's adjacency is not the data set's, if no accountant has a proof
  // for it, or if its noise is reproducible where charges before it had secure noise, or the other way round: that
  // would take the epsilon from all of them, for ever. After any error nothing may be released; an I/O error, the
  // anchor's too, may leave the charge recorded. An error says what the run was charged before. What is under the plan
  // costs one disk sync; what is not costs the accountant a second at most once, then nothing to speak of.
  Result<ChargeId> Charge(const ChargeRequest& request);

  // Fixes what is to be charged, before the first charge: what then runs under the plan, in any order, composes by PLD,
  // and the figure is that of the whole plan. The last plan before the first charge counts; where there is none the
  // first charge is one by itself. kPrivacyRefused after a charge, and for a plan that passes the limit.
  // Charges of one part: the plan is that part's, and "a charge" one that counts for it. `settings`: LedgerPlan.
  Status WritePlan(const std::string& run, const std::string& purpose, std::span<const ChargeRequest> charges,
                   const std::string& settings = {}) {
    return SetUp({.plans = {{.run = run,
                             .purpose = purpose,
                             .part = charges.empty() ? RecordPart::kAll : charges.front().part,
                             .charges = std::vector<ChargeRequest>(charges.begin(), charges.end()),
                             .settings = settings}}});
  }
  // What is to follow from now on, after charges: kept with `settings` for whoever follows it, and paid for by nothing
  // but the filter, or by what is left of the plan. kPrivacyRefused: it passes the limit, nothing was charged yet, or
  // the ledger has rows after `newest_row`, from which the change does not follow.
  Status ChangePlan(const std::string& run, const std::string& purpose, std::span<const ChargeRequest> charges,
                    const std::string& settings, uint64_t newest_row);
  // For a run, when it can no longer be refused and before its first charge: WritePlan of all that it will charge,
  // where it may. Does nothing after a charge, for noise that can be repeated, where what is planned covers the run,
  // and where somebody else's plan is written.
  Status PlanRun(std::span<const ChargeRequest> charges);

  // Divides the records, once: from now on charges may be of one part, and the data set's figure is that of the part
  // that was charged most. Does nothing where they are divided in this way. kPrivacyRefused where they are divided in
  // another; kUnsupported under replace-one, where parts would add up.
  Status Split(double judging_share) { return SetUp({.judging_share = judging_share}); }
  Result<std::optional<LedgerSplit>> TheSplit() const;

  // Keeps what the charge released, for those who go on from it. It must be nothing but what the charge paid for and
  // what anybody may know.
  Status AddResult(ChargeId id, const std::string& text);
  Result<std::vector<LedgerResult>> Results() const;

  // Whether what is left of the plan has all of these: then their cost is part of the plan's figure.
  Result<bool> Covers(std::span<const ChargeRequest> charges) const;

  // Whether all of `charges`, a run's from the first to the last, could be recorded now: to be asked before the first,
  // so that a run that cannot be paid to its end spends nothing. The run calls PlanRun with the same charges.
  // kPrivacyRefused as Charge, with the figures of the whole. Writes nothing and sets nothing aside: another process
  // may spend what was found, and every charge is checked again. Where `new_limit` is given it is held against that,
  // which is about to be set.
  Status CheckFits(std::span<const ChargeRequest> charges, const std::optional<EpsilonDelta>& new_limit = {}) const;
  // The most steps that fit, 0 to `most`; `charges` has all that is to be charged for so many, and must not ask the
  // ledger. An error is no answer about the limit.
  Result<uint64_t> StepsThatFit(uint64_t most,
                                const std::function<Result<std::vector<ChargeRequest>>(uint64_t steps)>& charges,
                                const std::optional<EpsilonDelta>& new_limit = {}) const;

  // Rows that this object has committed, including one after which the anchor failed. A failed charge may be tried
  // again only if this number did not grow.
  uint64_t num_written() const;

  // Notes that what the charge paid for was released. For display only: an entry counts either way.
  Status MarkReleased(ChargeId id);

  // The epsilon of everything charged so far, an upper bound: that of Figures. Infinity where it cannot be bounded:
  // after any charge with reproducible noise, or where the accountant finds none. Of a run: by PLD, which holds where
  // the number of its steps was fixed when it began (runtime/train/run/run_budget.h has the figure of any run).
  Result<LedgerFigures> Figures(const Delta& delta) const;
  // Figures without `used`, `planned_left` and `parts`: of a plan nothing that takes long a second time.
  Result<LedgerFigures> Stated(const Delta& delta) const;
  Result<double> Spent(const Delta& delta) const;
  // The same as it would be after these charges, of one part or of several. Writes nothing.
  Result<double> SpentAfter(std::span<const ChargeRequest> charges, const Delta& delta) const;
  Result<StatedEpsilon> SpentByRun(const std::string& run, const Delta& delta,
                                   Fineness fineness = Fineness::kFull) const;

  // Of all that was charged to `run` so far; empty: nothing was.
  Result<Receipt> ReceiptOf(const std::string& run) const;
  // Whether this ledger, as it is now, has the charge that `receipt` was given for, and all that came before it.
  Result<bool> HasPaid(const Receipt& receipt) const;
  // The seq of the first charge to the run that `receipt` was given to; 0: this ledger has no such charge.
  Result<uint64_t> FirstChargeOf(const Receipt& receipt) const;

  Result<std::vector<LedgerEntry>> Entries() const;
  // The number of the newest row of all kinds; 0: there is none.
  Result<uint64_t> NewestRow() const;
  // A random name of the file that copies of it share, in hex; of one that is not there yet, the one it will have.
  Result<std::string> Id() const;
  // All of it of one moment, whatever others write meanwhile.
  Result<LedgerState> StateNow(const Delta& delta) const;
  // What the ledger said while it had so many charges, the newest first: after each limit, plan and division of records
  // that came before the next charge, and after the last of those charges. Empty: it never had so many.
  Result<std::vector<LedgerState>> StatesWith(uint64_t num_charges, const Delta& delta) const;
  // All limits, the newest last, and all plans.
  Result<std::vector<LedgerLimit>> Limits() const;
  Result<std::vector<LedgerPlan>> Plans() const;
  // Data set, limit, total at `delta`, entries, composition.
  Result<std::string> ExportJson(const Delta& delta) const;

 private:
  struct Impl;
  explicit Ledger(std::unique_ptr<Impl> impl);
  static Result<Ledger> OpenImpl(const std::string& path, const LedgerOptions& options, bool existing);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_H_
