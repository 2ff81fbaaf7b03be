// Whether what was learned beside one base means something beside another. Read from the two bases alone.
#ifndef WISP_RUNTIME_PERSONALISE_RELATED_BASES_H_
#define WISP_RUNTIME_PERSONALISE_RELATED_BASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/model_file.h"

namespace wisp {

inline constexpr uint32_t kNoItem = static_cast<uint32_t>(-1);

// For each item of `to` its number in `from`, or kNoItem: by its key; where neither has keys, and both as many items,
// the same.
std::vector<uint32_t> ItemsIn(const ModelFile& from, const ModelFile& to);

// How alike the directions are in which the items of both bases lie, with `items` as ItemsIn has them: 1 for rows that
// are the same but for their length, about 0 where the new base was trained from other random weights. It is the cosine
// of all shared rows as one vector, each less the mean row, which models of one kind may share by chance.
double Likeness(const ModelFile& from, const ModelFile& to, const std::vector<uint32_t>& items);

// A sentence where the two differ in more than their number of items, or where one was not trained from the other;
// empty where they are related. Where few items are shared, their rows must agree all the more, or one must
// name the other in its provenance.
std::string WhyUnrelated(const ModelFile& from, const ModelFile& to, const std::vector<uint32_t>& items);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_RELATED_BASES_H_
