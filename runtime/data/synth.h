// A made-up cafe's menu with readable names and guests who order from it: public data for the shipped model, and the
// log of a device whose guests differ, for the demo and the tests. Deterministic: the same options give the same data
// on every machine (integers only, no library distributions). Not a model of any real place.
//
// Guests choose as follows. Four of ten choices are of something that the guest had before. In public logs of groceries
// it is two (Ta-Feng), four (Dunnhumby) and six (Instacart) of ten: Li et al., "A Next Basket Recommendation Reality
// Check", 2023. Otherwise every guest has three favourite categories, which drift. In a category, popularity falls like
// 1/rank. More often than not, an item is followed by one of its three successors: the same rank of the category that
// follows, its neighbour in rank, or the neighbour two categories on.
//
// On a device the local categories, which the public rarely chooses, are favoured, and half of the categories have
// other followers. A model trained in public cannot know this, and can learn it there.
//
//   WISP_ASSIGN_OR_RETURN(SynthData data, Synthesize({.num_users = 4000, .population = Population::kDevice}));
//   WISP_RETURN_IF_ERROR(WriteSqliteLog("events.db", data));
#ifndef WISP_RUNTIME_DATA_SYNTH_H_
#define WISP_RUNTIME_DATA_SYNTH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/readers.h"
#include "runtime/data/sequences.h"

namespace wisp::data {

enum class Population { kPublic, kDevice };

inline constexpr uint32_t kSynthCategories = 24;
inline constexpr uint32_t kSynthMaxItems = 480;

struct SynthOptions {
  uint64_t seed = 1;
  uint32_t num_items = kSynthMaxItems;        // a multiple of 48, at most 480; the catalogue depends on nothing else
  uint32_t num_users = 2000;                  // 1 to 1000000
  uint32_t min_events = 12, max_events = 40;  // per user, uniform; at most a quarter of the items
  Population population = Population::kPublic;
  // The average number of repeats among 100 events after a guest's first; up to 99. A repeat is one of the guest's four
  // newest items or any earlier one, with equal probability. The shipped model learned from logs of the same share.
  uint32_t repeats = 40;
};

struct SynthData {
  Sequences sequences;                  // item_keys "muffin-almond", in ascending order; user_keys "u00001"
  std::vector<std::string> item_names;  // "Almond Muffin"
  std::vector<int64_t> times;           // one per event of `sequences`, in seconds, ascending per user
};

// Only the items, numbered as in Synthesize (users and times are empty). kInvalidArgument as there.
Result<SynthData> SynthCatalogue(uint32_t num_items);

// kInvalidArgument, with the value and what is allowed, for options out of range.
Result<SynthData> Synthesize(const SynthOptions& options);

// Writes the tables events(user, item, time), like EventLog's and in time order, and items(key, name). Writes all or
// nothing; replaces no database, and no file beside which SQLite left a journal.
Status WriteSqliteLog(const std::string& path, const SynthData& data);
// Writes text with a header that ReadText reads: kCsv, kTsv (user, item, time) or kInter (RecBole's names and types),
// in time order. Writes all or nothing; replaces the file. kInvalidArgument for another format.
Status WriteTable(const std::string& path, const SynthData& data, Format format);
// Writes "user item" lines, each user's in time order. Writes all or nothing; replaces the file.
Status WriteUserItemText(const std::string& path, const SynthData& data);
// Writes key and name, tab-separated, with a header. Writes all or nothing; replaces the file.
Status WriteItemNames(const std::string& path, const SynthData& data);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SYNTH_H_
