// A model with more items: rows for items that it did not learn, made of what anybody may know. Or with fewer on offer.
//
//   WISP_ASSIGN_OR_RETURN(const GrownModel grown, AddItems(base, {{.key = "soup-lentil", .name = "Lentil soup"}}));
//   WISP_RETURN_IF_ERROR(WriteModel("base-2.wisp", grown.contents));
#ifndef WISP_RUNTIME_MODEL_CATALOGUE_H_
#define WISP_RUNTIME_MODEL_CATALOGUE_H_

#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"

namespace wisp {

struct NewItem {
  std::string key, name;  // no name: the key
  std::string like;       // key of an item that it is like; empty: none is known
};

// Where the row of a new item comes from.
enum class RowOrigin {
  kNeighbour,  // a copy of the row of the item that it is like
  kWords,      // the mean of rows of items that share words of its name or key; rare words count more
  kMean,       // the mean of all rows
};

struct GrownModel {
  ModelContents contents;  // its weights are those below
  std::vector<float> weights;
  std::vector<RowOrigin> origins;  // of each new item
};

// Items keep their numbers; new ones follow in the order given. They are not served before a run has trained them
// (ModelFile::untrained); their rows are what training begins with. Nothing is read but the base's file, so its
// provenance stays what it is. kInvalidArgument: a key that is none, twice or there already; `like` names no item; a
// base without keys, a classifier or an adapter. `base` must outlive the result.
Result<GrownModel> AddItems(const ModelFile& base, std::span<const NewItem> items);

// Whether people are offered an item.
enum class Offer { kRetired, kRestored };
// The same model with those items (by key) retired: they are never recommended, stand in histories as before, and keep
// their rows. Or with retired ones offered again. Items that are so already stay so. kInvalidArgument: a key that the
// model does not have; nothing left to recommend; a base without keys, a classifier or an adapter. `room`: as
// ContentsOf.
Result<ModelContents> ChangeOffer(const ModelFile& base, std::span<const std::string> keys, Offer offer,
                                  std::vector<float>& room);

// Of a parameter that has something for each item: how many numbers; 0 of any other.
size_t NumbersOfItem(const ParameterSpec& parameter);

// The key of each item; none where the file has no keys.
std::vector<std::string> ItemKeysOf(const ModelFile& model);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_CATALOGUE_H_
