// What people are shown of a model, from what its file says or is to say.
#ifndef WISP_RUNTIME_MODEL_LISTS_OF_H_
#define WISP_RUNTIME_MODEL_LISTS_OF_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/model/model_file.h"

namespace wisp {

// Items of either, both ascending: ModelLists::withheld.
std::vector<int32_t> WithheldOf(std::span<const int32_t> retired, std::span<const int32_t> untrained);

// Of a file that says this: all ModelLists of models come from here.
ModelLists ListsOf(bool allow_seen, std::span<const int32_t> withheld, std::span<const int32_t> untrained,
                   OutputBiasOrigin origin);

// ModelFile::lists() of the file that WriteModel makes of these contents; of an adapter beside its base.
// `withheld` is room, which like the contents must outlive what is returned.
ModelLists ListsOf(const ModelContents& contents, std::vector<int32_t>& withheld);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_LISTS_OF_H_
