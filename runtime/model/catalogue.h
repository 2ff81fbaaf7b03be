// Adds items to a model, with rows made from public information; or changes which items the model may recommend.
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
  std::string key, name;  // no name: the key is used
  std::string like;       // key of a similar item; empty: unknown
  // In a model with item features: as many public numbers as its items have. Otherwise empty.
  std::vector<float> features = {};
};

// How the row of a new item is made.
enum class RowOrigin {
  kNeighbour,  // a copy of the similar item's row
  kWords,      // the mean of the rows of items that share words of its name or key; rare words weigh more
  kMean,       // the mean of all rows
  kFeatures,   // the item's features times the item tower
};

struct GrownModel {
  ModelContents contents;  // its weights are `weights` below
  std::vector<float> weights;
  std::vector<RowOrigin> origins;  // one for each new item
};

// Adds items. Existing items keep their numbers; new ones follow in the order given. They are not served until a run
// has trained them (ModelFile::untrained); training starts from their rows. In a model with item features they are
// served at once. Only the base's file is read, so the provenance stays the same. kInvalidArgument: a key is empty,
// appears twice, or already exists; `like` names no item; features are missing or too many; the base has no keys, or is
// a classifier or an adapter. `base` must outlive the result.
Result<GrownModel> AddItems(const ModelFile& base, std::span<const NewItem> items);

// Says if an item may be recommended.
enum class Offer { kRetired, kRestored };
// Retires items, named by their keys: they are never recommended, but stay in histories and keep their rows. Or
// restores retired items. Items that are already so stay so. kInvalidArgument: the model lacks a key; no item is left
// to recommend; the base has no keys, or is a classifier or an adapter. `room` is as for GetContents.
Result<ModelContents> ChangeOffer(const ModelFile& base, std::span<const std::string> keys, Offer offer,
                                  std::vector<float>& room);

// Computes the rows of items from number `first` on, in a model with item features: features times item tower.
// `weights` are in the flat layout. For weights that no run trains; training does this by ops (Graph::Derive).
void RowsFromFeatures(const Architecture& architecture, size_t first, std::span<float> weights);

// The numbers that a parameter has for each item; 0 if it has none.
size_t CountItemNumbers(const ParameterSpec& parameter);

// The key of each item; empty if the file has no keys.
std::vector<std::string> GetItemKeys(const ModelFile& model);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_CATALOGUE_H_
