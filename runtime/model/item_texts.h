// The items' keys and names as an app keeps them: copied from a model file, with a final zero each, which the file does
// not promise.
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
  std::vector<std::string> keys, names;  // num_items each, or none where the file has none
};
ItemTexts CopyItemTexts(const ModelFile& file);

// Bytes that CopyItemTexts asks of the system; 0 for a file with neither. Copies nothing.
size_t PlanItemTexts(const ModelFile& file);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_ITEM_TEXTS_H_
