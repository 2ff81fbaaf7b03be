// A made-up catalogue with readable names and people who choose from it: public data for the shipped model, and the log
// of a device whose people differ, for the demo and the tests. Deterministic: the same options give the same data on
// every machine (integers only, no library distributions).
//
// How people choose: everybody has a few favourite categories; after an item comes one of its three successors more
// often than not. On a device some categories are favoured that the public rarely picks, and part of the items are
// followed by other items: what a model trained in public cannot know, and can learn there.
//
//   WISP_ASSIGN_OR_RETURN(SynthData data, Synthesize({.seed = 1, .num_users = 2000, .population = Population::kDevice}));
#ifndef WISP_RUNTIME_DATA_SYNTH_H_
#define WISP_RUNTIME_DATA_SYNTH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/sequences.h"

namespace wisp::data {

enum class Population { kPublic, kDevice };

struct SynthOptions {
  uint64_t seed = 1;
  uint32_t num_users = 2000;
  uint32_t min_events = 12, max_events = 40;  // per user, uniform; no item twice
  Population population = Population::kPublic;
};

struct SynthData {
  Sequences sequences;                  // item_keys "granola-honey", user_keys "u0001"
  std::vector<std::string> item_names;  // "Honey Granola"
  std::vector<int64_t> times;           // of each event, seconds, strictly ascending over all users
};

inline constexpr uint32_t kSynthItems = 480;

Result<SynthData> Synthesize(const SynthOptions& options);

// Tables events(user, item, time), as EventLog's, and items(key, name). Whole or not at all; replaces the file.
Status WriteSqliteLog(const std::string& path, const SynthData& data);
// "user item" lines, and beside them `path`.items.tsv with key and name. Whole or not at all.
Status WriteUserItemText(const std::string& path, const SynthData& data);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SYNTH_H_
