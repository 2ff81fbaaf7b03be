// Who did what in which order: the form in which every reader delivers interactions and the trainer takes them.
//
//   WISP_ASSIGN_OR_RETURN(ReadResult data, ReadSequences("ml-1m.txt", {}));
//   for (size_t u = 0; u < data.sequences.num_users(); ++u) Use(data.sequences.User(u));
//
// Items are numbered 0 .. M-1. Without a given index they are numbered by their keys: ascending numbers where every key
// is a whole number, else ascending bytes; so the numbering does not depend on the order of the file. Users keep the
// order of their first event.
#ifndef WISP_RUNTIME_DATA_SEQUENCES_H_
#define WISP_RUNTIME_DATA_SEQUENCES_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::data {

struct Sequences {
  std::vector<int32_t> items;          // user after user, each in time order
  std::vector<uint64_t> offsets = {0};  // num_users + 1
  std::vector<std::string> user_keys;
  std::vector<std::string> item_keys;  // of item 0 .. M-1

  size_t num_users() const { return offsets.size() - 1; }
  std::span<const int32_t> User(size_t user) const {
    return std::span<const int32_t>(items).subspan(offsets[user], offsets[user + 1] - offsets[user]);
  }
};

enum class UnknownItems { kDrop, kRefuse };

struct ReadOptions {
  uint32_t min_user_events = 1;  // users and items below are dropped, again and again until nothing changes
  uint32_t min_item_events = 1;
  // Numbers of known items by key, -1 if unknown: set when the ids must be those of a model. `num_known_items` then is M.
  std::function<int32_t(std::string_view key)> known_item;
  uint32_t num_known_items = 0;
  UnknownItems unknown_items = UnknownItems::kDrop;
  // Names of columns, for formats that name them.
  std::string user_column = "user", item_column = "item", time_column = "time";
  std::string table = "events";  // SQLite
};

// What a person should know about what was read.
struct ReadReport {
  uint64_t num_events = 0;       // kept
  uint64_t num_users = 0, num_items = 0;
  uint64_t dropped_events = 0;   // by minimum counts
  uint64_t unknown_items = 0;    // events of items that the model does not know
  uint64_t ties = 0;             // neighbouring events of one user at the same time: their order is the file's
  uint64_t repeats = 0;          // events of an item that the user had before
};

struct ReadResult {
  Sequences sequences;
  ReadReport report;
};

// Collects events of any reader and makes sequences of them. Used by one reader at a time.
class SequenceBuilder {
 public:
  SequenceBuilder();
  ~SequenceBuilder();
  SequenceBuilder(const SequenceBuilder&) = delete;
  SequenceBuilder& operator=(const SequenceBuilder&) = delete;

  // `where` names file and line in messages. Keys: 1 to 256 bytes of UTF-8 without control characters.
  Status Add(const std::string& where, std::string_view user, std::string_view item, int64_t time);
  // `name` names the file. An error when nothing is left.
  Result<ReadResult> Finish(const std::string& name, const ReadOptions& options);

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SEQUENCES_H_
