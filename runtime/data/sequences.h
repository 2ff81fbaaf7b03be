// Who did what in which order: the form in which every reader delivers interactions and the trainer takes them.
//
//   WISP_ASSIGN_OR_RETURN(ReadResult data, ReadSequences("ml-1m.txt", Format::kAuto, {}));
//   for (const std::string& warning : Warnings(data.report)) Show(warning);
//   for (size_t u = 0; u < data.sequences.num_users(); ++u) Use(data.sequences.User(u));
//
// Items are numbered 0 .. M-1. With ReadOptions::known_items the numbers are those of that index (a model's). Without,
// they go by the keys: in ascending numeric order where every key is a whole number of 64 bits, else in ascending order
// of bytes; so the numbering does not depend on the order of the file. Users keep the order of their first event.
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
  int64_t time = 0;  // any unit that grows
};

// What one record is, which is what private training protects as a whole.
enum class RecordUnit {
  kUser,     // all events of a user
  kSession,  // events of a user with no pause longer than session_gap between neighbours, as they were first read
  kDay,      // events of a user on one day, by UTC
};

// How events become records. Constants, never chosen by looking at the data. Units smaller than a user need times in
// known parts of a second since 1970, or they would be smaller still than what is promised.
//
// Taking all events of a session away leaves every other record as it was (sessions.h). So it is with days. Units are
// made of all events, those of unknown items included, before any is dropped. What was a session when a private run
// first read it stays one: an event that comes late joins one session at most, and never makes one of two.
struct Units {
  RecordUnit unit = RecordUnit::kUser;
  int64_t session_gap = 0;        // kSession: in seconds, 1 to kMaxSessionGap
  uint32_t times_per_second = 1;  // of the log's times: 1000 where they are milliseconds; 1 to 1e9
};
inline constexpr int64_t kMaxSessionGap = 366 * 86400;
// The latest time of an event, in seconds since 1970: in the year 2223. Milliseconds that are taken for seconds lie
// beyond.
inline constexpr int64_t kLatestSecond = 8000000000;
// kInvalidArgument: a gap out of range, or one of a unit that has none.
Status CheckUnits(const Units& units);

// The log that remembers sessions as they were read (session_table.h).
struct SessionsRead {
  std::string path;
  int64_t reading = 0;               // which of its ways to cut
  std::vector<std::string> ledgers;  // that such sessions were charged to, by Ledger::id
};

struct Sequences {
  std::vector<int32_t> items;           // user after user, each in time order
  std::vector<uint64_t> offsets = {0};  // num_users + 1
  std::vector<std::string> user_keys;   // of another unit than the user: a user's key once for each unit of theirs
  std::vector<std::string> item_keys;   // of item 0 .. M-1
  // Of a unit smaller than a user: what each is known by beside the user's key. Of a session the time of its first
  // event when it was first read: what is added to the log later does not change it, wherever its time falls. Of a day
  // its number since 1970. Empty with the unit user.
  std::vector<int64_t> unit_begins;
  // Where it is remembered which sessions a private run has read. Null of other units, and of other runs.
  std::shared_ptr<const SessionsRead> sessions;
  // Of each item, as the log has it; ascending in a user. Empty unless ReadOptions::keep_times asks for them, and of a
  // log without times.
  std::vector<int64_t> times;

  size_t num_users() const { return offsets.size() - 1; }
  size_t num_items() const { return item_keys.size(); }
  std::span<const int64_t> TimesOf(size_t user) const {
    return times.empty() ? std::span<const int64_t>()
                         : std::span<const int64_t>(times).subspan(offsets[user], offsets[user + 1] - offsets[user]);
  }
  std::span<const int32_t> User(size_t user) const {
    return std::span<const int32_t>(items).subspan(offsets[user], offsets[user + 1] - offsets[user]);
  }
};

// The items of a model by their keys.
class ItemIndex {
 public:
  // keys[i] is the key of item i. kInvalidData when there is none or one occurs twice; `name` names the model.
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
  kColumn,     // the format's column of times; its absence is an error
  kFileOrder,  // the order of the lines, also where there are times
};

struct ReadOptions {
  // Users and items with fewer events are dropped, again and again until nothing changes (a core in the sense of
  // bipartite graphs): what is left has the minimum on both sides.
  // For private training min_item_events must stay 1 and known_items must be set: otherwise one user's events decide
  // which events of others remain and which items there are, and a bound on one record bounds nothing. (min_user_events
  // alone looks at each user alone.)
  uint32_t min_user_events = 1;
  uint32_t min_item_events = 1;
  // Set when the ids must be those of a model; must outlive the call. What it does not know is dropped first, before
  // the minimum counts.
  const ItemIndex* known_items = nullptr;
  UnknownItems unknown_items = UnknownItems::kDrop;
  // For formats that name their columns (CSV, TSV, .inter, SQLite). Empty: the first of user, user_id; item, item_id;
  // time, timestamp that is there.
  std::string user_column, item_column, time_column;
  TimeSource time = TimeSource::kColumn;
  // Smaller than a user: a `user` of the sequences is one such unit. The minimum counts must be 1 then: a count over
  // several units would let one decide whether another stays. kInvalidData where the format, or `time`, has no times.
  Units units;
  // For private training, where a refusal would tell of a record. A row that cannot be read, or whose time is out of
  // range, is left out and counted. With known_items it is no error that no event is left. Each line of text is a row
  // of its own, so that an open quote never takes in other people's rows. Still errors: a damaged database, a value in
  // it of more than 1 MB, and a log that is written in another form (SequenceBuilder::CheckForm). With sessions only an
  // SQLite log, which remembers what they were (session_table.h): kInvalidArgument for text.
  bool private_run = false;
  bool keep_times = false;       // fill Sequences::times
  std::string table = "events";  // SQLite
};

// What a person should know about what was read.
struct ReadReport {
  uint64_t num_lines = 0;       // in the file, blank ones and the header included; SQLite: rows
  uint64_t num_read = 0;        // events in the file, without those of bad rows
  uint64_t bad_rows = 0;        // left out, with ReadOptions::private_run
  std::string first_bad_row;    // what is wrong with it, where, and what is allowed
  uint64_t num_events = 0;      // kept
  uint64_t num_users = 0;       // kept
  uint64_t num_items = 0;       // M; with known_items that of the index
  uint64_t dropped_events = 0;  // by the minimum counts
  uint64_t dropped_users = 0, dropped_items = 0;
  uint64_t unknown_events = 0;  // of items that known_items lacks
  uint64_t unknown_items = 0;   // how many such items
  std::string first_unknown_item;
  TimeUnits time_units;           // of events with times
  uint32_t times_per_second = 0;  // that they are read with; 0: only their order counts
  MarkedKeys marked;              // keys of users and items with accents as characters of their own
  uint64_t ties = 0;              // kept neighbouring events of one user at the same time: their order is the file's
  uint64_t repeats = 0;           // kept events of an item that the user had before
};

// One sentence for each thing that a person might not expect; none when all is as it should be.
std::vector<std::string> Warnings(const ReadReport& report);

struct ReadResult {
  Sequences sequences;
  ReadReport report;
};

inline constexpr size_t kMaxKeyBytes = 256;
// What is wrong with a key of a user or an item, to follow its name in a sentence; empty if nothing. Allowed are 1 to
// kMaxKeyBytes bytes of UTF-8 without control characters.
std::string KeyFault(std::string_view key);

inline constexpr uint64_t kMaxEvents = (uint64_t{1} << 31) - 1;

// Collects the events of one file, from any reader, and makes sequences of them.
class SequenceBuilder {
 public:
  // Messages say "NAME, UNIT 17: ...".
  explicit SequenceBuilder(std::string name, std::string unit = "line", bool private_run = false)
      : name_(std::move(name)), unit_(std::move(unit)), private_run_(private_run) {}
  SequenceBuilder(const SequenceBuilder&) = delete;
  SequenceBuilder& operator=(const SequenceBuilder&) = delete;

  // Called first for a row whose form says which field is the user, however bad the field and the rest of the row are.
  // Must stay valid until TakeRow.
  void RowOf(std::string_view user) { row_user_ = user; }
  // `line` is where the event stands. Keys without a KeyFault. kUnsupported beyond kMaxEvents.
  Status Add(uint64_t line, std::string_view user, std::string_view item, int64_t time);
  // An event whose item has a fault, which is the result. In a private run it takes part where sessions are cut, and is
  // dropped then: which field is the item decides no session.
  Status AddWithoutItem(uint64_t line, std::string_view user, int64_t time, const std::string& sentence);
  // To be called with the result of reading one row. In a private run a row with kInvalidData is counted, and the
  // result is OK.
  Status TakeRow(const Status& row);
  bool private_run() const { return private_run_; }
  void set_num_lines(uint64_t lines) { num_lines_ = lines; }
  // The times that were added only put events in order.
  void set_untimed() { timed_ = false; }

  // All that was added, in its order. Before SplitIntoUnits.
  std::vector<Event> Events() const;
  // Numbers the units in the place of the users: once, and Finish does it where nobody has. `memory`: of sessions what
  // earlier readings found; then this one's too.
  Status SplitIntoUnits(const ReadOptions& options, SessionMemory& memory);
  void set_sessions(std::shared_ptr<const SessionsRead> sessions) { sessions_ = std::move(sessions); }
  // Once, last. An error when nothing is left.
  Result<ReadResult> Finish(const ReadOptions& options);

  const std::string& name() const { return name_; }
  // A message about line `line`.
  Status Error(uint64_t line, const std::string& sentence) const;
  // The same about a key of a user or an item that is none, which says nothing of the form that the log is written in.
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
  std::vector<uint32_t> user_of_;  // of a unit smaller than a user, whose number events have then; else empty
  std::vector<int64_t> begins_;    // of these units: Sequences::unit_begins
  bool timed_ = true, is_split_ = false;
  std::shared_ptr<const SessionsRead> sessions_;
  ReadReport report_;
  bool private_run_;
  uint64_t num_lines_ = 0, bad_rows_ = 0, bad_keys_ = 0;
  std::string_view row_user_;
  KeyTable left_out_;  // users of bad rows; in users_ are those with a row that can be read
  std::string first_bad_row_;
  uint32_t last_user_ = 0;  // files are mostly grouped by user
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SEQUENCES_H_
