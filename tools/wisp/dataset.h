// What several commands do with data and models: read events, number items as a model does, name items.
#ifndef WISP_TOOLS_WISP_DATASET_H_
#define WISP_TOOLS_WISP_DATASET_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/data/labelled.h"
#include "runtime/data/readers.h"
#include "runtime/layers/record.h"
#include "runtime/model/model_file.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

struct ReadLimits {
  uint32_t min_user_events = 1, min_item_events = 1;
  data::Units units = {};
  bool private_run = false;
};

// Reads events; warnings go to standard error. With a model, items get its numbers (by key).
Result<data::ReadResult> ReadData(const DataArguments& arguments, const ReadLimits& limits, const ModelFile* model);

// The same with the options of whoever asks.
Result<data::ReadResult> ReadData(const DataArguments& arguments, data::ReadOptions options);
// A warning where people choose again what they had, and lists may not show it: `allow_seen` as ModelLists has it.
void SayIfRepeatsAreMisses(const DataArguments& arguments, const data::ReadReport& report, bool allow_seen);
Result<std::vector<data::Event>> ReadEventsOf(const DataArguments& arguments, const data::Units& units);

std::vector<std::string> ItemKeys(const ModelFile& model);

// Names for `keys` from lines of key<TAB>name; a key without a line keeps its key as its name. No path: no names.
Result<std::vector<std::string>> ReadItemNames(const std::string& path, const std::vector<std::string>& keys);

// The name, or the key, or the number of an item.
std::string ShownItem(const ModelFile& model, size_t item);

// What stands behind the epsilon of a run on `dataset` that began with `base`, which may be null: that the base has no
// guarantee, or which it has on other data; nothing of data sets in `public_datasets`.
std::string StartInWords(const ModelFile* base, const std::string& dataset,
                         const std::vector<std::string>& public_datasets);

// That each label of --public-dataset is one of the provenance of the models, of which each may be null:
// kInvalidArgument names the labels that there are. A misspelt one would declare nothing.
Status CheckLabels(const std::vector<std::string>& public_datasets, std::initializer_list<const ModelFile*> models);

std::vector<std::string> SplitCommas(const std::string& text);

std::string Version();
// Now, UTC, with the number of this process: 2026-05-01T12:00:00Z-4711.
std::string Timestamp();

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DATASET_H_
