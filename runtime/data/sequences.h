// Sequences of items per user: the form in which every reader delivers interactions and the trainer takes them.
//
//   WISP_ASSIGN_OR_RETURN(ReadResult data, ReadSequences("ml-1m.txt", Format::kAuto, {}));
//   for (const std::string& warning : Warnings(data.report)) Show(warning);
//   for (size_t u = 0; u < data.sequences.num_users(); ++u) Use(data.sequences.User(u));
//
// Items are numbered 0 .. M-1. With ReadOptions::known_items the numbers are those of that index (a model's). Otherwise
// they follow the sorted keys: numerically if every key is a whole number of 64 bits, else by bytes; so the numbering
// does not depend on the order of the file. Users keep the order of their first event.
#ifndef WISP_RUNTIME_DATA_SEQUENCES_H_
#define WISP_RUNTIME_DATA_SEQUENCES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/key_table.h"
#include "runtime/data/marked_keys.h"
#include "runtime/data/time_units.h"

namespace wisp::data {

class SessionMemory;  // sessions.h

struct Event {
  std::string user;
  std::string item;
  int64_t time = 0;  // any unit that increases
};

// The definition of one record, which private training protects as a whole.
enum class RecordUnit {
  kUser,     // all events of a user
  kSession,  // events of a user with no pause longer than session_gap between neighbours, as they were first read
  kDay,      // events of a user on one day, by UTC
};

// Says how events become records. These are constants, never chosen by looking at the data. Units smaller than a user
// need times in known parts of a second since 1970; otherwise they would be even smaller than promised.
//
// Removing all events of a session leaves every other record unchanged (sessions.h); so does removing a day. Units are
// formed from all events, including those of unknown items, before any is dropped. Once a private run has read a
// session, it stays one: a late event joins at most one session, and never merges two.
struct Units {
  RecordUnit unit = RecordUnit::kUser;
  int64_t session_gap = 0;        // kSession: in seconds, 1 to kMaxSessionGap
  uint32_t times_per_second = 1;  // units of the log's times: 1000 for milliseconds; 1 to 1e9
};
inline constexpr int64_t kMaxSessionGap = 366 * 86400;
// The latest time of an event, in seconds since 1970: in the year 2223. Milliseconds that are mistaken for seconds lie
// beyond it.
inline constexpr int64_t kLatestSecond = 8000000000;
// kInvalidArgument: a gap out of range, or a gap for a unit that has none.
Status CheckUnits(const Units& units);

// A log that remembers sessions as they were read (session_table.h).
struct SessionsRead {
  std::string path;
  int64_t reading = 0;               // the row of wisp_readings: one way to cut the log
  std::vector<std::string> ledgers;  // Ledger::id of the ledgers that these sessions were charged to
};

struct Sequences {
  std::vector<int32_t> items;           // concatenated over users, each in time order
  std::vector<uint64_t> offsets = {0};  // num_users + 1
  std::vector<std::string> user_keys;   // with a smaller unit, a user's key appears once per unit
  std::vector<std::string> item_keys;   // keys of items 0 .. M-1
  // With a unit smaller than a user: identifies the unit beside the user's key. For a session it is the time of its
  // first event when it was first read; events added to the log later do not change it, whatever their time. For a day
  // it is the day number since 1970. Empty with the unit user.
  std::vector<int64_t> unit_begins;
  // Where the sessions that a private run has read are remembered. Null for other units, and for runs that are not
  // private.
  std::shared_ptr<const SessionsRead> sessions;
  // The time of each item, in the log's unit, ascending per user. Empty unless ReadOptions::keep_times is set, and for
  // a log without times.
  std::vector<int64_t> times;

  size_t num_users() const { return offsets.size() - 1; }
  size_t num_items() const { return item_keys.size(); }
  std::span<const int64_t> GetTimes(size_t user) const {
    return times.empty() ? std::span<const int64_t>()
                         : std::span<const int64_t>(times).subspan(offsets[user], offsets[user + 1] - offsets[user]);
  }
  std::span<const int32_t> User(size_t user) const {
    return std::span<const int32_t>(items).subspan(offsets[user], offsets[user + 1] - offsets[user]);
  }
};

// Finds the items of a model by their keys.
class ItemIndex {
 public:
  // keys[i] is the key of item i. kInvalidData if there are no keys or one appears twice; `name` names the model.
  static Result<ItemIndex> Make(const std::string& name, std::span<const std::string> keys);

  // -1 if unknown.
  int32_t Find(std::string_view key) const { return static_cast<int32_t>(table_.Find(key)); }
  const std::vector<std::string>& keys() const { return table_.keys(); }

 private:
  ItemIndex() = default;
  KeyTable table_;
};

enum class UnknownItems { kDrop, kRefuse };

enum class TimeSource {
  kColumn,     // the format's column of times; an error if it is missing
  kFileOrder,  // the order of the lines, even if there are times
};

struct ReadOptions {
  // Users and items with fewer events are dropped, repeatedly until nothing changes (a core in the sense of bipartite
  // graphs): what is left has the minimum on both sides.
  //
  // For private training min_item_events must stay 1 and known_items must be set. Otherwise one user's events decide
  // which events of others remain and which items exist, and a bound on one record bounds nothing. (min_user_events
  // alone considers each user separately.)
  uint32_t min_user_events = 1;
  uint32_t min_item_events = 1;
  // Set if item numbers must be a model's; must outlive the call. Items that it does not know are dropped first, before
  // the minimum counts apply.
  const ItemIndex* known_items = nullptr;
  UnknownItems unknown_items = UnknownItems::kDrop;
  // Names for formats that name their columns (CSV, TSV, .inter, SQLite). Empty: the first that exists of user,
  // user_id; item, item_id; time, timestamp.
  std::string user_column, item_column, time_column;
  TimeSource time = TimeSource::kColumn;
  // If the unit is smaller than a user, a `user` of the sequences is one such unit. The minimum counts must then be 1,
  // because a count over several units would let one decide whether another stays. kInvalidData if the format, or
  // `time`, has no times.
  Units units;
  // For private training, where a refusal would reveal something about a record. A row that cannot be read, or whose
  // time is out of range, is left out and counted. With known_items it is no error that no event is left. Each line of
  // text is a row of its own, so that an open quote never swallows other people's rows. Still errors: a damaged
  // database, a value in it of more than 1 MB, and a log that is written in another form (SequenceBuilder::CheckForm).
  // The unit session needs an SQLite log, which remembers past sessions (session_table.h): kInvalidArgument for text.
  bool private_run = false;
  bool any_form = false;         // with private_run: without CheckForm, so that no record decides whether others count
  bool keep_times = false;       // fill Sequences::times
  bool needs_times = false;      // kInvalidData for a format without times, and for TimeSource::kFileOrder
  std::string table = "events";  // SQLite
};

// A report for people of what was read.
struct ReadReport {
  uint64_t num_lines = 0;       // in the file, including blank lines and header; SQLite: rows
  uint64_t num_read = 0;        // events in the file, without bad rows
  uint64_t bad_rows = 0;        // left out, with ReadOptions::private_run
  std::string first_bad_row;    // its error: what is wrong, where, and what is allowed
  uint64_t num_events = 0;      // kept
  uint64_t num_users = 0;       // kept
  uint64_t num_items = 0;       // M; with known_items the size of that index
  uint64_t dropped_events = 0;  // by the minimum counts
  uint64_t dropped_users = 0, dropped_items = 0;
  uint64_t unknown_events = 0;  // events of items that known_items lacks
  uint64_t unknown_items = 0;   // number of such items
  std::string first_unknown_item;
  TimeUnits time_units;           // for events with times
  uint32_t times_per_second = 0;  // with which times are read; 0: only their order counts
  MarkedKeys marked;              // keys of users and items with accents as characters of their own
  uint64_t ties = 0;              // kept neighbouring events of a user at equal times: their order is the file's
  uint64_t repeats = 0;           // kept events of an item that the user had before
};

// One sentence for each thing that a person might not expect; empty if there is nothing.
std::vector<std::string> Warnings(const ReadReport& report);

struct ReadResult {
  Sequences sequences;
  ReadReport report;
};

inline constexpr size_t kMaxKeyBytes = 256;
// Says what is wrong with a key of a user or an item, as the continuation of a sentence; empty if nothing is. Allowed
// are 1 to kMaxKeyBytes bytes of UTF-8 without control characters.
std::string KeyFault(std::string_view key);

inline constexpr uint64_t kMaxEvents = (uint64_t{1} << 31) - 1;

// Collects the events of one file, from any reader, and builds sequences from them.
class SequenceBuilder {
 public:
  // Messages say "NAME, UNIT 17: ...".
  explicit SequenceBuilder(std::string name, std::string unit = "line", bool private_run = false)
      : name_(std::move(name)), unit_(std::move(unit)), private_run_(private_run) {}
  SequenceBuilder(const SequenceBuilder&) = delete;
  SequenceBuilder& operator=(const SequenceBuilder&) = delete;

  // Called first for a row in which the field of the user can be told, however bad that field and the rest of the row
  // are. Must stay valid until TakeRow.
  void SetRowUser(std::string_view user) { row_user_ = user; }
  // `line` is the event's place in the file. The keys must have no KeyFault. kUnsupported beyond kMaxEvents.
  Status Add(uint64_t line, std::string_view user, std::string_view item, int64_t time);
  // Adds an event whose item is invalid, and returns that error. In a private run it still counts when sessions are
  // cut, and is dropped then: the item of an event must not decide a session.
  Status AddWithoutItem(uint64_t line, std::string_view user, int64_t time, const std::string& sentence);
  // Takes the result of reading one row. In a private run a row with kInvalidData is counted, and the result is OK.
  Status TakeRow(const Status& row);
  bool private_run() const { return private_run_; }
  void set_num_lines(uint64_t lines) { num_lines_ = lines; }
  // Declares that the added times only order the events.
  void set_untimed() { timed_ = false; }

  // All added events in their order. Call it before SplitIntoUnits.
  std::vector<Event> Events() const;
  // Replaces users by units; Finish does it if nobody has. Call it once. `memory` has the sessions that earlier
  // readings found, and afterwards this reading's too.
  Status SplitIntoUnits(const ReadOptions& options, SessionMemory& memory);
  void set_sessions(std::shared_ptr<const SessionsRead> sessions) { sessions_ = std::move(sessions); }
  // Call it once, at the end. An error if nothing is left.
  Result<ReadResult> Finish(const ReadOptions& options);

  const std::string& name() const { return name_; }
  // An error about line `line`.
  Status Error(uint64_t line, const std::string& sentence) const;
  // An error about an invalid key of a user or an item, which does not suggest that the log is written in another form.
  Status KeyError(uint64_t line, const std::string& sentence) {
    ++bad_keys_;
    return Error(line, sentence);
  }

 private:
  struct Added {
    uint32_t user, item;
    int64_t time;
  };

  Status AddUser(uint64_t line, std::string_view user, uint32_t& id);
  void LeaveOut(const std::string& message);
  Status CheckForm() const;
  Status DropTimesOutside(const Units& units);
  void SplitByDay(const Units& units);
  void SplitBySession(const Units& units, SessionMemory& memory);
  const std::string& UserKey(uint32_t user) const { return users_.keys()[user_of_.empty() ? user : user_of_[user]]; }
  Status MapToKnown(const ReadOptions& options, ReadReport& report, std::vector<int32_t>& ids);
  void ReportMixtures();
  void DropRare(const ReadOptions& options, ReadReport& report);
  std::vector<std::string> NumberByKey(std::vector<int32_t>& ids) const;
  void Emit(const std::vector<int32_t>& ids, ReadResult& result);

  std::string name_, unit_;
  KeyTable users_, items_;
  std::vector<Added> events_;
  std::vector<uint32_t> user_of_;  // the user of each unit smaller than a user, if events have unit numbers; else empty
  std::vector<int64_t> begins_;    // Sequences::unit_begins of these units
  bool timed_ = true, is_split_ = false;
  std::shared_ptr<const SessionsRead> sessions_;
  ReadReport report_;
  bool private_run_;
  uint64_t num_lines_ = 0, bad_rows_ = 0, bad_keys_ = 0;
  std::string_view row_user_;
  KeyTable left_out_;  // users of bad rows; users_ has those with a readable row
  std::string first_bad_row_;
  uint32_t last_user_ = 0;  // files are mostly grouped by user
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SEQUENCES_H_
