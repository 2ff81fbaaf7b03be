// The keys and names of items, copied from a model file for an app. Each copy ends with a zero byte; the file does not
// guarantee one.
//
//   const ItemTexts texts = CopyItemTexts(file);
//   texts.keys[3].c_str();
#ifndef WISP_RUNTIME_MODEL_ITEM_TEXTS_H_
#define WISP_RUNTIME_MODEL_ITEM_TEXTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/model/model_file.h"

namespace wisp {

struct ItemTexts {
  std::vector<std::string> keys, names;  // num_items each; empty if the file has none
};
ItemTexts CopyItemTexts(const ModelFile& file);

// The bytes that CopyItemTexts allocates; 0 if the file has neither. Copies nothing.
size_t PlanItemTexts(const ModelFile& file);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_ITEM_TEXTS_H_
