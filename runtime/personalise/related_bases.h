// Tells from two bases whether what was learned beside one is meaningful beside the other.
#ifndef WISP_RUNTIME_PERSONALISE_RELATED_BASES_H_
#define WISP_RUNTIME_PERSONALISE_RELATED_BASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/model_file.h"

namespace wisp {

inline constexpr uint32_t kNoItem = static_cast<uint32_t>(-1);

// The index in `from` of each item of `to`, or kNoItem. Items match by key; if neither base has keys and both have as
// many items, by index.
std::vector<uint32_t> ItemsIn(const ModelFile& from, const ModelFile& to);

// The likeness of the directions of both bases' items, with `items` from ItemsIn: 1 for rows that are equal up to their
// length, about 0 if the new base was trained from other random weights. It is the cosine of all shared rows as one
// vector, each minus the mean row, which models of one kind may share by chance.
double Likeness(const ModelFile& from, const ModelFile& to, const std::vector<uint32_t>& items);

// A sentence if the bases differ in more than their number of items, or if neither was trained from the other; empty if
// they are related. If few items are shared, their rows must agree all the more, or one base must name the other in its
// provenance.
std::string ExplainUnrelated(const ModelFile& from, const ModelFile& to, const std::vector<uint32_t>& items);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_RELATED_BASES_H_
