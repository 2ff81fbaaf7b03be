// Where one record ends and the next begins among the rows of an activation.
#ifndef WISP_RUNTIME_LAYERS_SEGMENTS_H_
#define WISP_RUNTIME_LAYERS_SEGMENTS_H_

#include <cstddef>
#include <cstdint>

namespace wisp {

// Rows [begin(b), begin(b) + size(b)) of every activation are record b.
struct Segments {
  const uint32_t* begin_B = nullptr;  // [num_records + 1], from 0 to `rows`; null: one record
  size_t num_records = 1;
  size_t rows = 0;  // of all records

  size_t begin(size_t b) const { return begin_B == nullptr ? 0 : begin_B[b]; }
  size_t size(size_t b) const { return begin_B == nullptr ? rows : begin_B[b + 1] - begin_B[b]; }
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_SEGMENTS_H_
