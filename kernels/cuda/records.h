// Record boundaries in a form that is passed with a launch, because Segments are in host memory.
#ifndef WISP_KERNELS_CUDA_RECORDS_H_
#define WISP_KERNELS_CUDA_RECORDS_H_

#include <algorithm>

#include "kernels/cuda/device_code.h"
#include "kernels/records.h"

namespace wisp::kernels::cuda {

// Kernel arguments may take 4 KB. This many records fit one launch, with the options of each.
inline constexpr size_t kMaxLaunchRecords = 128;

struct LaunchedRecords {
  uint32_t first = 0, count = 0;               // the records of this launch
  uint32_t begin[kMaxLaunchRecords + 1] = {};  // begin[i]: the first row of record first + i
};

// The rows of all records of an op, from either of the two ways to state them.
template <class Args>
size_t GetRows(const Args& a) {
  return a.records.begin_B != nullptr ? a.records.begin_B[a.records.num_records] : a.rows;
}

// An op's arguments without the record boundaries, which are in host memory and passed separately.
template <class Args>
Args WithoutRecords(Args a) {
  a.records = {};
  return a;
}

// Rows of the longest record.
inline size_t FindLongest(const LaunchedRecords& records) {
  size_t longest = 0;
  for (uint32_t i = 0; i < records.count; ++i) {
    longest = std::max<size_t>(longest, records.begin[i + 1] - records.begin[i]);
  }
  return longest;
}

// Calls launch(records) for all records, kMaxLaunchRecords at a time. `rows`: rows of the only record, if
// segments.begin_B is null.
template <class LaunchKernel>
void ForRecords(const Segments& segments, size_t rows, LaunchKernel&& launch) {
  for (size_t first = 0; first < segments.num_records; first += kMaxLaunchRecords) {
    LaunchedRecords records;
    records.first = static_cast<uint32_t>(first);
    records.count = static_cast<uint32_t>(std::min(kMaxLaunchRecords, segments.num_records - first));
    for (size_t i = 0; i <= records.count; ++i) {
      records.begin[i] = segments.begin_B != nullptr ? segments.begin_B[first + i] : static_cast<uint32_t>(i * rows);
    }
    launch(records);
  }
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_RECORDS_H_
