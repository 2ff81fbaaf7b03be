// The rules for a model's lists, from what its file states or will state.
#ifndef WISP_RUNTIME_MODEL_LISTS_OF_H_
#define WISP_RUNTIME_MODEL_LISTS_OF_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/model/model_file.h"

namespace wisp {

// The items of either list, ascending, as in ModelLists::withheld. Both inputs are ascending.
std::vector<int32_t> MergeWithheld(std::span<const int32_t> retired, std::span<const int32_t> untrained);

// Makes the rules for a file with these values. Every ModelLists of a model comes from here.
ModelLists MakeLists(bool allow_seen, std::span<const int32_t> withheld, std::span<const int32_t> untrained,
                     OutputBiasOrigin origin, std::span<const Succession> successions);

// ModelFile::lists() of the file that WriteModel would make of these contents; for an adapter, beside its base.
// `withheld` is storage; like the contents it must outlive the result.
ModelLists MakeLists(const ModelContents& contents, std::vector<int32_t>& withheld);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_LISTS_OF_H_
