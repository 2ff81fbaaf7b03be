#include "runtime/data/sequences.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace wisp::data {
namespace {

constexpr size_t kMaxKeyBytes = 256;
constexpr size_t kMaxEvents = std::numeric_limits<int32_t>::max();

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};

// Numbers strings in the order of their arrival.
class Interner {
 public:
  uint32_t Id(std::string_view key) {
    const auto it = ids_.find(key);
    if (it != ids_.end()) return it->second;
    const auto id = static_cast<uint32_t>(keys_.size());
    keys_.emplace_back(key);
    ids_.emplace(keys_.back(), id);
    return id;
  }
  const std::vector<std::string>& keys() const { return keys_; }

 private:
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
  std::vector<std::string> keys_;
};

// Length of a well-formed UTF-8 character at the front, 0 if there is none.
size_t Utf8Length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : uint8_t{0}; };
  const auto tail = [&](size_t n) {
    for (size_t i = 1; i <= n; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return false;
    }
    return true;
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0 && tail(1)) return 2;
  if (lead >= 0xe0 && lead < 0xf0 && tail(2) && !(lead == 0xe0 && byte(1) < 0xa0) && !(lead == 0xed && byte(1) >= 0xa0)) return 3;
  if (lead >= 0xf0 && lead < 0xf5 && tail(3) && !(lead == 0xf0 && byte(1) < 0x90) && !(lead == 0xf4 && byte(1) >= 0x90)) return 4;
  return 0;
}

Status CheckKey(const std::string& where, const char* field, std::string_view key) {
  const std::string start = where + ": the " + field;
  if (key.empty()) return InvalidData(start + " is empty; allowed are 1 to 256 bytes");
  if (key.size() > kMaxKeyBytes) {
    return InvalidData(start + " '" + std::string(key.substr(0, 32)) + "...' has " + std::to_string(key.size()) + " bytes; allowed are 1 to 256");
  }
  for (std::string_view rest = key; !rest.empty();) {
    const size_t n = Utf8Length(rest);
    if (n == 0 || static_cast<uint8_t>(rest[0]) < 0x20) {
      return InvalidData(start + " has byte " + std::to_string(static_cast<uint8_t>(rest[0])) + " at " + std::to_string(key.size() - rest.size()) +
                         "; allowed is UTF-8 without control characters");
    }
    rest.remove_prefix(n);
  }
  return OkStatus();
}

std::optional<int64_t> WholeNumber(std::string_view key) {
  int64_t value;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), value);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return value;
}

struct Event {
  uint32_t user, item;
  int64_t time;
};

// Drops users and items below their minimum until nothing changes.
void DropRare(std::vector<Event>& events, size_t users, size_t items, const ReadOptions& options) {
  if (options.min_user_events <= 1 && options.min_item_events <= 1) return;
  for (size_t before = events.size() + 1; before != events.size();) {
    before = events.size();
    std::vector<uint32_t> by_user(users, 0), by_item(items, 0);
    for (const Event& e : events) ++by_user[e.user], ++by_item[e.item];
    std::erase_if(events, [&](const Event& e) {
      return by_user[e.user] < options.min_user_events || by_item[e.item] < options.min_item_events;
    });
  }
}

// Ranks of the items that occur, by key.
std::vector<uint32_t> OrderByKey(const std::vector<std::string>& keys, const std::vector<uint8_t>& present) {
  std::vector<uint32_t> order;
  bool numbers = true;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    if (present[i] == 0) continue;
    order.push_back(i);
    numbers = numbers && WholeNumber(keys[i]).has_value();
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (!numbers) return keys[a] < keys[b];
    const int64_t x = *WholeNumber(keys[a]), y = *WholeNumber(keys[b]);
    return x != y ? x < y : keys[a] < keys[b];
  });
  return order;
}

}  // namespace

struct SequenceBuilder::Impl {
  Interner users, items;
  std::vector<Event> events;

  Status MapToKnown(const std::string& name, const ReadOptions& options, ReadReport& report, std::vector<int32_t>& ids);
  void NumberByKey(Sequences& sequences, std::vector<int32_t>& ids);
  void Emit(const std::vector<int32_t>& ids, Sequences& sequences, ReadReport& report);
};

SequenceBuilder::SequenceBuilder() : impl_(new Impl) {}
SequenceBuilder::~SequenceBuilder() { delete impl_; }

Status SequenceBuilder::Add(const std::string& where, std::string_view user, std::string_view item, int64_t time) {
  WISP_RETURN_IF_ERROR(CheckKey(where, "user", user));
  WISP_RETURN_IF_ERROR(CheckKey(where, "item", item));
  if (impl_->events.size() >= kMaxEvents) return InvalidData(where + ": more than " + std::to_string(kMaxEvents) + " events");
  impl_->events.push_back({impl_->users.Id(user), impl_->items.Id(item), time});
  return OkStatus();
}

Status SequenceBuilder::Impl::MapToKnown(const std::string& name, const ReadOptions& options, ReadReport& report, std::vector<int32_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = options.known_item(items.keys()[i]);
    if (ids[i] < 0 && options.unknown_items == UnknownItems::kRefuse) {
      return InvalidData(name + ": item '" + items.keys()[i] + "' is not in the model");
    }
  }
  report.unknown_items = std::erase_if(events, [&](const Event& e) { return ids[e.item] < 0; });
  return OkStatus();
}

void SequenceBuilder::Impl::NumberByKey(Sequences& sequences, std::vector<int32_t>& ids) {
  std::vector<uint8_t> present(items.keys().size(), 0);
  for (const Event& e : events) present[e.item] = 1;
  for (uint32_t item : OrderByKey(items.keys(), present)) {
    ids[item] = static_cast<int32_t>(sequences.item_keys.size());
    sequences.item_keys.push_back(items.keys()[item]);
  }
}

void SequenceBuilder::Impl::Emit(const std::vector<int32_t>& ids, Sequences& sequences, ReadReport& report) {
  // By user in the order of first arrival, then time; equal times keep the file's order.
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.user != b.user ? a.user < b.user : a.time < b.time;
  });
  std::vector<uint32_t> seen(items.keys().size(), 0);  // user + 1 who had the item last
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    const bool first = i == 0 || events[i - 1].user != e.user;
    if (first) {
      if (i > 0) sequences.offsets.push_back(i);
      sequences.user_keys.push_back(users.keys()[e.user]);
    }
    report.ties += !first && events[i - 1].time == e.time;
    report.repeats += seen[e.item] == e.user + 1;
    seen[e.item] = e.user + 1;
    sequences.items.push_back(ids[e.item]);
  }
  sequences.offsets.push_back(events.size());
}

Result<ReadResult> SequenceBuilder::Finish(const std::string& name, const ReadOptions& options) {
  ReadResult result;
  ReadReport& report = result.report;
  const uint64_t read = impl_->events.size();
  if (read == 0) return InvalidData(name + ": there is no event in it");
  std::vector<int32_t> ids(impl_->items.keys().size(), -1);
  if (options.known_item) WISP_RETURN_IF_ERROR(impl_->MapToKnown(name, options, report, ids));
  const uint64_t known = impl_->events.size();
  DropRare(impl_->events, impl_->users.keys().size(), ids.size(), options);
  report.dropped_events = known - impl_->events.size();
  if (impl_->events.empty()) {
    return InvalidData(name + ": of " + std::to_string(read) + " events none is left: " + std::to_string(report.unknown_items) +
                       " of items that the model does not know, " + std::to_string(report.dropped_events) + " below the minimum counts");
  }
  if (!options.known_item) impl_->NumberByKey(result.sequences, ids);
  impl_->Emit(ids, result.sequences, report);
  report.num_events = impl_->events.size();
  report.num_users = result.sequences.num_users();
  report.num_items = options.known_item ? options.num_known_items : result.sequences.item_keys.size();
  return result;
}

}  // namespace wisp::data
