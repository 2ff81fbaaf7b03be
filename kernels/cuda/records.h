// Where records begin, in a form that travels with a launch: Segments are the host's memory.
#ifndef WISP_KERNELS_CUDA_RECORDS_H_
#define WISP_KERNELS_CUDA_RECORDS_H_

#include <algorithm>

#include "kernels/cuda/device_code.h"
#include "kernels/records.h"

namespace wisp::kernels::cuda {

// A kernel's arguments may take 4 KB: this many records of one launch, with what each has for itself.
inline constexpr size_t kMostOfLaunch = 128;

struct RecordsOfLaunch {
  uint32_t first = 0, count = 0;           // which of all records these are
  uint32_t begin[kMostOfLaunch + 1] = {};  // begin[i]: the first row of record first + i
};

// The rows of all records of an op that says so either way.
template <class Args>
size_t RowsOf(const Args& a) {
  return a.records.begin_B != nullptr ? a.records.begin_B[a.records.num_records] : a.rows;
}

// An op's arguments without where its records begin: those lie in the host's memory, and travel beside them.
template <class Args>
Args WithoutRecords(Args a) {
  a.records = {};
  return a;
}

// Rows of the longest.
inline size_t LongestOf(const RecordsOfLaunch& records) {
  size_t longest = 0;
  for (uint32_t i = 0; i < records.count; ++i) {
    longest = std::max<size_t>(longest, records.begin[i + 1] - records.begin[i]);
  }
  return longest;
}

// launch(records) for all records, kMostOfLaunch at a time. `rows`: of the only record, where segments.begin_B is null.
template <class LaunchKernel>
void ForRecords(const Segments& segments, size_t rows, LaunchKernel&& launch) {
  for (size_t first = 0; first < segments.num_records; first += kMostOfLaunch) {
    RecordsOfLaunch records;
    records.first = static_cast<uint32_t>(first);
    records.count = static_cast<uint32_t>(std::min(kMostOfLaunch, segments.num_records - first));
    for (size_t i = 0; i <= records.count; ++i) {
      records.begin[i] = segments.begin_B != nullptr ? segments.begin_B[first + i] : static_cast<uint32_t>(i * rows);
    }
    launch(records);
  }
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_RECORDS_H_
