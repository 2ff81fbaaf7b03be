// Steps that several commands share for data and models: read events, number items as a model does, name items.
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
  bool private_run = false, needs_times = false;
};

// Reads events; warnings go to standard error. With a model, items get its numbers (by key).
Result<data::ReadResult> ReadData(const DataArguments& arguments, const ReadLimits& limits, const ModelFile* model);

// Reads events with the caller's options.
Result<data::ReadResult> ReadData(const DataArguments& arguments, data::ReadOptions options);
// Warns if people choose again items that they had before while the model's lists may not show these. `allow_seen` is
// the flag of ModelLists.
void WarnIfRepeatsAreMisses(const DataArguments& arguments, const data::ReadReport& report, bool allow_seen);
Result<std::vector<data::Event>> ReadGivenEvents(const DataArguments& arguments, const data::Units& units);

std::vector<std::string> ItemKeys(const ModelFile& model);

// Reads names for `keys` from lines of key<TAB>name. A key without a line is its own name. An empty path gives no
// names.
Result<std::vector<std::string>> ReadItemNames(const std::string& path, const std::vector<std::string>& keys);

// Items with public numbers of each, from lines of key<TAB>numbers. Tabs, commas or blanks separate the numbers, and
// each line has as many.
struct ItemFeatures {
  std::vector<std::string> keys;
  uint32_t count = 0;
  std::vector<float> values;  // [keys, count]
};
Result<ItemFeatures> ReadItemFeatures(const std::string& path);
// Returns the features of `keys`, in their order: [keys, count]. kInvalidData if a key has no line; `path` names the
// file.
Result<std::vector<float>> SelectFeatures(const std::string& path, const ItemFeatures& features,
                                          const std::vector<std::string>& keys);

// Returns the item's name, or its key, or its number.
std::string ShownItem(const ModelFile& model, size_t item);

// Describes the guarantee behind the epsilon of a run on `dataset` that began with `base`, which may be null: the base
// has no guarantee, or one on other data. Data sets in `public_datasets` are left out.
std::string StartInWords(const ModelFile* base, const std::string& dataset,
                         const std::vector<std::string>& public_datasets);

// Checks that each label of --public-dataset stands in the provenance of one of the models, each of which may be null.
// A misspelt label would declare nothing. kInvalidArgument names the labels that there are.
Status CheckLabels(const std::vector<std::string>& public_datasets, std::initializer_list<const ModelFile*> models);

std::vector<std::string> SplitCommas(const std::string& text);

std::string Version();
// Returns the time in UTC with the number of this process: 2026-05-01T12:00:00Z-4711.
std::string Timestamp();

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DATASET_H_
