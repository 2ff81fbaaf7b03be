// Where the records that pass at once lie among the rows of an activation, and what each of them has for itself.
//
// Both are few numbers that the host writes, and that every table reads on the host: a device's op takes them along
// with its call.
#ifndef WISP_KERNELS_RECORDS_H_
#define WISP_KERNELS_RECORDS_H_

#include <cstddef>
#include <cstdint>

namespace wisp::kernels {

// Rows [begin(b), begin(b) + size(b)) of every activation are record b.
struct Segments {
  const uint32_t* begin_B = nullptr;  // [num_records + 1], from 0 to `rows`; null: one record
  size_t num_records = 1;
  size_t rows = 0;  // of all records

  size_t begin(size_t b) const { return begin_B == nullptr ? 0 : begin_B[b]; }
  size_t size(size_t b) const { return begin_B == nullptr ? rows : begin_B[b + 1] - begin_B[b]; }
};

// What each record of a training step has for itself.
struct RecordOptions {
  uint64_t dropout_seed = 0;   // of this record in this step
  float target_weight = 1.0f;  // of each target's cross-entropy in the loss
};

// Null: every record has the defaults.
inline RecordOptions OptionsOf(const RecordOptions* options_B, size_t b) {
  return options_B == nullptr ? RecordOptions() : options_B[b];
}

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_RECORDS_H_
