#include "runtime/data/sequences.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/pages.h"
#include "runtime/core/date.h"
#include "runtime/core/text.h"
#include "runtime/data/lines.h"
#include "runtime/data/sessions.h"

namespace wisp::data {
namespace {

bool WholeNumber(std::string_view key, int64_t& value) {
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), value);
  return error == std::errc() && end == key.data() + key.size();
}

// Events of each node in the bipartite graph of users and items: those of node n are at[begin[n]] .. at[begin[n + 1] -
// 1].
struct Incidence {
  std::vector<uint64_t> begin;
  std::vector<uint32_t> at;
};

template <class Event>
Incidence MakeIncidence(const std::vector<Event>& events, uint32_t num_users, uint32_t num_nodes) {
  Incidence incidence{std::vector<uint64_t>(size_t{num_nodes} + 1, 0), std::vector<uint32_t>(events.size() * 2)};
  for (const Event& e : events) ++incidence.begin[e.user + 1], ++incidence.begin[size_t{num_users} + e.item + 1];
  for (size_t n = 0; n < num_nodes; ++n) incidence.begin[n + 1] += incidence.begin[n];
  std::vector<uint64_t> next(incidence.begin.begin(), incidence.begin.end() - 1);
  for (uint32_t i = 0; i < events.size(); ++i) {
    incidence.at[next[events[i].user]++] = i;
    incidence.at[next[num_users + events[i].item]++] = i;
  }
  return incidence;
}

// Sorts by user in the order of first arrival, then by time; equal times keep the file's order.
template <class Event>
void OrderEvents(std::vector<Event>& events) {
  const auto before = [](const Event& a, const Event& b) {
    return a.user != b.user ? a.user < b.user : a.time < b.time;
  };
  if (!std::is_sorted(events.begin(), events.end(), before)) std::stable_sort(events.begin(), events.end(), before);
}

// CheckForm refuses nothing below this number of users, or of rows if no user is known.
constexpr uint64_t kFewestInAnotherForm = 20;

std::string Count(uint64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

}  // namespace

std::string KeyFault(std::string_view key) {
  if (key.empty()) return "is empty; allowed are 1 to " + std::to_string(kMaxKeyBytes) + " bytes";
  if (key.size() > kMaxKeyBytes) {
    return "is " + Shown(key) + " of " + std::to_string(key.size()) + " bytes; allowed are 1 to " +
           std::to_string(kMaxKeyBytes);
  }
  for (size_t at = 0; at < key.size();) {
    const size_t length = Utf8Length(key.substr(at));
    const auto byte = static_cast<uint8_t>(key[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      return "is " + Shown(key) + " with byte " + std::to_string(byte) + " at " + std::to_string(at) +
             "; allowed is UTF-8 without control characters";
    }
    at += length;
  }
  return {};
}

Result<ItemIndex> ItemIndex::Make(const std::string& name, std::span<const std::string> keys) {
  if (keys.empty()) return InvalidData(name, ": it has no item");
  if (keys.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidData(name, ": ", keys.size(), " items; allowed are at most 2147483647");
  }
  ItemIndex index;
  for (size_t i = 0; i < keys.size(); ++i) {
    const KeyTable::Added added = index.table_.Add(keys[i]);
    if (!added.added) {
      return InvalidData(name, ": items ", added.id, " and ", i, " have the same key ", Shown(keys[i]));
    }
  }
  return index;
}

Status CheckUnits(const Units& units) {
  if (units.times_per_second < 1 || units.times_per_second > 1000000000) {
    return InvalidArgument("the log has ", units.times_per_second, " times to the second, allowed are 1 to 1000000000");
  }
  const bool sessions = units.unit == RecordUnit::kSession;
  if (sessions ? units.session_gap >= 1 && units.session_gap <= kMaxSessionGap : units.session_gap == 0)
    return OkStatus();
  return InvalidArgument("the session gap is ", units.session_gap, " seconds, allowed are ",
                         (sessions ? "1 to " + std::to_string(kMaxSessionGap) +
                                         ": a public constant, after so long a pause a new session begins"
                                   : std::string("none: only the unit session has one")));
}

std::vector<std::string> Warnings(const ReadReport& r) {
  std::vector<std::string> warnings;
  if (r.bad_rows > 0)
    warnings.push_back(Count(r.bad_rows, "row") + " left out that cannot be taken, the first: " + r.first_bad_row);
  if (r.unknown_events > 0) {
    warnings.push_back(Count(r.unknown_events, "event") + " of " + Count(r.unknown_items, "item") +
                       " that the model does not know left out, the first is " + Shown(r.first_unknown_item));
  }
  if (r.dropped_events > 0) {
    warnings.push_back(Count(r.dropped_events, "event") + " left out by the minimum counts, with them " +
                       Count(r.dropped_users, "user") + " and " + Count(r.dropped_items, "item"));
  }
  if (std::string units = r.time_units.Warning(r.times_per_second); !units.empty())
    warnings.push_back(std::move(units));
  if (r.marked.count > 0) warnings.push_back(r.marked.Warning());
  if (r.ties > 0) {
    warnings.push_back(Count(r.ties, "event") +
                       " at the same time as the event of the same user before: kept in the order of the file");
  }
  return warnings;
}

Status SequenceBuilder::Error(uint64_t line, const std::string& sentence) const {
  return InvalidData(name_, ", ", unit_, " ", line, ": ", sentence);
}

Status SequenceBuilder::AddUser(uint64_t line, std::string_view user, uint32_t& id) {
  if (!events_.empty() && users_.keys()[last_user_] == user) {
    id = last_user_;
    return OkStatus();
  }
  id = users_.Find(user);
  if (id == KeyTable::kNone) {  // otherwise it was checked on its first use
    if (const std::string fault = KeyFault(user); !fault.empty()) return KeyError(line, "the user " + fault);
    id = users_.Add(user).id;
  }
  last_user_ = id;
  return OkStatus();
}

Status SequenceBuilder::Add(uint64_t line, std::string_view user, std::string_view item, int64_t time) {
  if (events_.size() >= kMaxEvents)
    return Unsupported(name_, ", ", unit_, " ", line, ": more than ", kMaxEvents, " events; that is the most allowed");
  Added event{.time = time};
  event.item = items_.Find(item);
  if (event.item == KeyTable::kNone) {
    if (const std::string fault = KeyFault(item); !fault.empty())
      return AddWithoutItem(line, user, time, "the item " + fault);
  }
  WISP_RETURN_IF_ERROR(AddUser(line, user, event.user));
  if (event.item == KeyTable::kNone) event.item = items_.Add(item).id;
  events_.push_back(event);
  return OkStatus();
}

Status SequenceBuilder::AddWithoutItem(uint64_t line, std::string_view user, int64_t time,
                                       const std::string& sentence) {
  Added event{.item = KeyTable::kNone, .time = time};
  WISP_RETURN_IF_ERROR(AddUser(line, user, event.user));
  if (private_run_ && events_.size() < kMaxEvents) events_.push_back(event);
  return KeyError(line, sentence);
}

Status SequenceBuilder::TakeRow(const Status& row) {
  const std::string_view user = std::exchange(row_user_, {});
  if (!private_run_ || row.code() != StatusCode::kInvalidData) return row;
  LeaveOut(row.message());
  if (KeyFault(user).empty()) left_out_.Add(user);
  return OkStatus();
}

void SequenceBuilder::LeaveOut(const std::string& message) {
  if (bad_rows_++ == 0) first_bad_row_ = message;
}

// The form of rows is public; what one person's phone writes is not. So this counts users, whatever number of rows each
// has: a single user changes the result only if exactly half of them can be read. If nothing at all can be read, there
// may be only one person, whose rows then decide; but a few bad rows change nothing. Times out of range are a clock's
// error, unless all are, and invalid keys are an app's; neither means another form.
Status SequenceBuilder::CheckForm() const {
  const uint64_t in_another_form = bad_rows_ - bad_keys_;
  if (events_.empty() && bad_keys_ == 0 && in_another_form >= kFewestInAnotherForm)
    return AnotherForm(name_, in_another_form, 0, "rows", first_bad_row_);
  const std::vector<std::string>& keys = left_out_.keys();
  const auto unread = static_cast<uint64_t>(std::count_if(
      keys.begin(), keys.end(), [&](const std::string& key) { return users_.Find(key) == KeyTable::kNone; }));
  const uint64_t read = users_.keys().size();
  return unread + read >= kFewestInAnotherForm && unread > read
             ? AnotherForm(name_, unread, read, "users", first_bad_row_)
             : OkStatus();
}

// Keeps or drops each event by its own time alone.
Status SequenceBuilder::DropTimesOutside(const Units& units) {
  const int64_t second = units.times_per_second;
  const auto outside = [&](const Added& e) { return e.time < 0 || e.time > LatestTime(units.times_per_second); };
  for (const Added& e : events_) {
    if (!outside(e)) continue;
    Status fault =
        InvalidData(name_, ": the time of an event is ", e.time, ", which is not between 1970 and 2223 with ", second,
                    " to the second; units smaller than a user need to know how many times make a second");
    if (!private_run_) return fault;
    if (e.item != KeyTable::kNone) LeaveOut(fault.message());  // otherwise it was counted for its item
  }
  std::erase_if(events_, outside);
  return OkStatus();
}

Status SequenceBuilder::SplitIntoUnits(const ReadOptions& options, SessionMemory& memory) {
  is_split_ = true;
  const auto has_item = [](const Added& e) { return e.item != KeyTable::kNone; };
  report_.num_read = static_cast<uint64_t>(std::count_if(events_.begin(), events_.end(), has_item));
  ReportMixtures();
  if (!options.any_form) WISP_RETURN_IF_ERROR(CheckForm());
  const Units& units = options.units;
  WISP_RETURN_IF_ERROR(CheckUnits(units));
  const bool untimed = !timed_ || options.time == TimeSource::kFileOrder;
  if (untimed && options.needs_times) {
    return InvalidData(name_,
                       ": its events have no times, so they cannot be divided by one (`trains_until`); allowed are "
                       "ratings.dat, CSV, TSV, .inter and SQLite");
  }
  if (units.unit == RecordUnit::kUser) return OkStatus();
  const std::string unit = units.unit == RecordUnit::kSession ? "session" : "day";
  if (untimed) {
    return InvalidData(name_, ": its events have no times, so they cannot be split by ", unit,
                       "; the unit user needs none");
  }
  if (options.min_user_events > 1 || options.min_item_events > 1) {
    return InvalidArgument(name_, ": with the unit ", unit, " the minimum counts of events are ",
                           options.min_user_events, " per user and ", options.min_item_events,
                           " per item, allowed is 1: one ", unit, " could decide whether another stays");
  }
  WISP_RETURN_IF_ERROR(DropTimesOutside(units));
  if (!options.any_form) WISP_RETURN_IF_ERROR(CheckForm());  // possibly no event is left
  OrderEvents(events_);
  units.unit == RecordUnit::kSession ? SplitBySession(units, memory) : SplitByDay(units);
  return OkStatus();
}

void SequenceBuilder::SplitByDay(const Units& units) {
  uint32_t user = 0;
  for (Added& e : events_) {
    const int64_t day = e.time / units.times_per_second / kSecondsPerDay;
    if (user_of_.empty() || e.user != user || day != begins_.back()) user_of_.push_back(e.user), begins_.push_back(day);
    user = e.user;
    e.user = static_cast<uint32_t>(user_of_.size() - 1);
  }
}

// Sessions are identified by their names.
void SequenceBuilder::SplitBySession(const Units& units, SessionMemory& memory) {
  std::vector<int64_t> times, names;
  for (size_t begin = 0, end = 0; begin < events_.size(); begin = end) {
    const uint32_t user = events_[begin].user;
    times.clear();
    for (; end < events_.size() && events_[end].user == user; ++end) times.push_back(events_[end].time);
    const std::vector<int64_t> session_of =
        memory.Cut(users_.keys()[user], times, units.session_gap * units.times_per_second);
    names = session_of;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (size_t i = 0; i < session_of.size(); ++i) {
      const auto name = std::lower_bound(names.begin(), names.end(), session_of[i]) - names.begin();
      events_[begin + i].user = static_cast<uint32_t>(user_of_.size() + static_cast<size_t>(name));
    }
    user_of_.resize(user_of_.size() + names.size(), user);
    begins_.insert(begins_.end(), names.begin(), names.end());
  }
}

std::vector<Event> SequenceBuilder::Events() const {
  std::vector<Event> events;
  events.reserve(events_.size());
  for (const Added& e : events_) events.push_back({users_.keys()[e.user], items_.keys()[e.item], e.time});
  return events;
}

// Reports mixed units, because seconds and milliseconds in one log put its events in a wrong order; and different keys
// that look alike.
void SequenceBuilder::ReportMixtures() {
  for (const Added& e : events_) {
    if (timed_) report_.time_units.Look(e.time);
  }
  for (const KeyTable* table : {&users_, &items_}) {
    for (const std::string& key : table->keys()) report_.marked.Look(key);
  }
}

Status SequenceBuilder::MapToKnown(const ReadOptions& options, ReadReport& report, std::vector<int32_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& key = items_.keys()[i];
    ids[i] = options.known_items->Find(key);
    if (ids[i] >= 0) continue;
    if (options.unknown_items == UnknownItems::kRefuse) {
      return InvalidData(name_, ": the item ", Shown(key), " is not one of the ",
                         Count(options.known_items->keys().size(), "item"), " of the model");
    }
    if (report.unknown_items++ == 0) report.first_unknown_item = key;
  }
  if (report.unknown_items == 0) return OkStatus();
  report.unknown_events = std::erase_if(events_, [&](const Added& e) { return ids[e.item] < 0; });
  return OkStatus();
}

// Peels the graph: a node below the minimum is removed with its events, which may pull others below theirs. Linear
// time.
void SequenceBuilder::DropRare(const ReadOptions& options, ReadReport& report) {
  if (options.min_user_events <= 1 && options.min_item_events <= 1) return;
  const auto num_users = static_cast<uint32_t>(users_.keys().size());
  const auto num_nodes = static_cast<uint32_t>(num_users + items_.keys().size());
  const Incidence incidence = MakeIncidence(events_, num_users, num_nodes);
  std::vector<uint64_t> count(num_nodes);
  std::vector<uint32_t> falling;
  const auto minimum = [&](uint32_t node) {
    return uint64_t{node < num_users ? options.min_user_events : options.min_item_events};
  };
  for (uint32_t n = 0; n < num_nodes; ++n) {
    count[n] = incidence.begin[n + 1] - incidence.begin[n];
    if (count[n] > 0 && count[n] < minimum(n)) falling.push_back(n);
  }
  std::vector<bool> dropped(events_.size(), false);
  for (size_t done = 0; done < falling.size(); ++done) {
    const uint32_t node = falling[done];
    ++(node < num_users ? report.dropped_users : report.dropped_items);
    for (uint64_t k = incidence.begin[node]; k < incidence.begin[node + 1]; ++k) {
      const uint32_t i = incidence.at[k];
      if (dropped[i]) continue;
      dropped[i] = true;
      const uint32_t other = node < num_users ? num_users + events_[i].item : events_[i].user;
      if (count[other]-- == minimum(other)) falling.push_back(other);
    }
  }
  size_t index = 0;
  report.dropped_events = std::erase_if(events_, [&](const Added&) { return dropped[index++]; });
}

std::vector<std::string> SequenceBuilder::NumberByKey(std::vector<int32_t>& ids) const {
  const std::vector<std::string>& keys = items_.keys();
  for (const Added& e : events_) ids[e.item] = 0;
  std::vector<uint32_t> order;
  std::vector<int64_t> numbers(keys.size());
  bool all_numbers = true;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    if (ids[i] < 0) continue;
    order.push_back(i);
    all_numbers = all_numbers && WholeNumber(keys[i], numbers[i]);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return all_numbers && numbers[a] != numbers[b] ? numbers[a] < numbers[b]
                                                   : keys[a] < keys[b];  // 7 and 07 are different keys
  });
  std::vector<std::string> sorted;
  sorted.reserve(order.size());
  for (uint32_t i : order) {
    ids[i] = static_cast<int32_t>(sorted.size());
    sorted.push_back(keys[i]);
  }
  return sorted;
}

void SequenceBuilder::Emit(const std::vector<int32_t>& ids, ReadResult& result) {
  Sequences& sequences = result.sequences;
  OrderEvents(events_);
  sequences.items.reserve(events_.size());
  kernels::ExcludeFromDumps(sequences.items.data(), sequences.items.capacity() * sizeof(int32_t));
  std::vector<uint32_t> last_user(ids.size(), KeyTable::kNone);  // the user who had the item last
  for (size_t i = 0; i < events_.size(); ++i) {
    const Added& e = events_[i];
    const bool first = i == 0 || events_[i - 1].user != e.user;
    if (first) {
      if (i > 0) sequences.offsets.push_back(i);
      sequences.user_keys.push_back(UserKey(e.user));
      if (!begins_.empty()) sequences.unit_begins.push_back(begins_[e.user]);
    }
    result.report.ties += !first && events_[i - 1].time == e.time;
    result.report.repeats += last_user[e.item] == e.user;
    last_user[e.item] = e.user;
    sequences.items.push_back(ids[e.item]);
  }
  if (!events_.empty()) sequences.offsets.push_back(events_.size());
}

Result<ReadResult> SequenceBuilder::Finish(const ReadOptions& options) {
  const bool may_be_empty = private_run_ && options.known_items != nullptr;
  if (events_.empty() && bad_rows_ == 0 && !may_be_empty) return InvalidData(name_, ": there is no event in it");
  if (!is_split_) {
    SessionMemory none;
    WISP_RETURN_IF_ERROR(SplitIntoUnits(options, none));
  }
  ReadResult result{.sequences = {}, .report = std::move(report_)};
  ReadReport& report = result.report;
  result.sequences.sessions = sessions_;
  std::erase_if(events_, [](const Added& e) { return e.item == KeyTable::kNone; });
  report.num_lines = num_lines_;
  report.bad_rows = bad_rows_;
  report.first_bad_row = first_bad_row_;
  const bool counts_time = options.keep_times || options.units.unit != RecordUnit::kUser;
  if (counts_time && options.time == TimeSource::kColumn) report.times_per_second = options.units.times_per_second;
  std::vector<int32_t> ids(items_.keys().size(), -1);
  if (options.known_items != nullptr) WISP_RETURN_IF_ERROR(MapToKnown(options, report, ids));
  DropRare(options, report);
  if (events_.empty() && !may_be_empty) {
    return InvalidData(name_, ": of ", Count(report.num_read, "event"), " none is left: ", report.unknown_events,
                       " of items that the model does not know, ", report.dropped_events, " below the minimum counts (",
                       options.min_user_events, " per user, ", options.min_item_events, " per item)");
  }
  result.sequences.item_keys = options.known_items != nullptr ? options.known_items->keys() : NumberByKey(ids);
  Emit(ids, result);
  if (options.keep_times && timed_ && options.time == TimeSource::kColumn) {
    result.sequences.times.reserve(events_.size());
    for (const Added& e : events_) result.sequences.times.push_back(e.time);
  }
  report.num_events = events_.size();
  report.num_users = result.sequences.num_users();
  report.num_items = result.sequences.num_items();
  return result;
}

}  // namespace wisp::data
