// The boundaries of records that pass together among the rows of an activation, and options of each record.
//
// Both are a few numbers in host memory, which every table reads there. A device's op passes them along with its call.
#ifndef WISP_KERNELS_RECORDS_H_
#define WISP_KERNELS_RECORDS_H_

#include <cstddef>
#include <cstdint>

namespace wisp::kernels {

// Record b has rows [begin(b), begin(b) + size(b)) of every activation.
struct Segments {
  const uint32_t* begin_B = nullptr;  // [num_records + 1], from 0 to `rows`; null: one record
  size_t num_records = 1;
  size_t rows = 0;  // rows of all records

  size_t begin(size_t b) const { return begin_B == nullptr ? 0 : begin_B[b]; }
  size_t size(size_t b) const { return begin_B == nullptr ? rows : begin_B[b + 1] - begin_B[b]; }
};

// The options of one record in a training step.
struct RecordOptions {
  uint64_t dropout_seed = 0;   // the seed of this record in this step
  float target_weight = 1.0f;  // the weight of each target's cross-entropy in the loss
};

// The options of record b; the defaults if options_B is null.
inline RecordOptions MakeOptions(const RecordOptions* options_B, size_t b) {
  return options_B == nullptr ? RecordOptions() : options_B[b];
}

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_RECORDS_H_
