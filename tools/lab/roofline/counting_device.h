// A device that counts the work that its ops are asked to do. With another device behind it, it also times that work.
//
//   CountingDevice counting(nullptr, Rooflines());          // ops do nothing: a step of any size is counted in moments
//   options.device = counting.device();
//   ...                                                 // steps of a trainer, or a graph
//   for (const OpTotals& op : counting.totals()) ...
//
// A process has at most one at a time, and one thread calls its ops, as on a device. If ops do nothing, they return to
// the host numbers that let a step continue (losses and squares of 1, sums of 0); such a step computes nothing.
#ifndef WISP_TOOLS_LAB_ROOFLINE_COUNTING_DEVICE_H_
#define WISP_TOOLS_LAB_ROOFLINE_COUNTING_DEVICE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tools/lab/roofline/op_cost.h"

namespace wisp::tools {

// The peak rates of a device. An op takes at least max(bytes / gb_per_s, operations / gflops).
struct Roofline {
  std::string name;
  double gb_per_s = 0, gflops = 0;  // 0 gflops: arithmetic is not counted
  std::string source = {};          // for people: the source of these two numbers

  double ComputeSeconds(const OpCost& cost) const;
};

// Devices by their data sheets, not measured by us: GPUs with 32-bit floats, at their highest clocks.
const std::vector<Roofline>& Rooflines();

struct OpTotals {
  const char* op;
  uint64_t calls = 0;
  OpCost cost;
  std::vector<double> roofline_seconds;  // for each roofline: the sum of the calls' least times
  double seconds = 0;                    // with an inner device: from one wait to the next
};

class CountingDevice {
 public:
  // `inner` may be null; it and `rooflines` must outlive this.
  CountingDevice(const kernels::Device* inner, std::span<const Roofline> rooflines);
  ~CountingDevice();
  CountingDevice(const CountingDevice&) = delete;
  CountingDevice& operator=(const CountingDevice&) = delete;

  kernels::Device device() const;
  // Valid as long as this object lives and no further op is called.
  const std::vector<OpTotals>& totals() const { return totals_; }
  double bytes_in() const { return bytes_in_; }
  double bytes_out() const { return bytes_out_; }
  // Forgets all counts.
  void Clear();

 private:
  template <auto kOp, class R, class Args>
  static R Counted(const Args& args);
  template <auto kOp, class R, class Args>
  void Wrap(const char* name, R (*kernels::OpTable::*)(const Args&));
  template <auto kOp>
  void Count(const char* name) {
    Wrap<kOp>(name, kOp);
  }
  size_t Add(const char* name);
  void CountTraining();
  void CountRows();
  void CountNumbers();
  template <class Work>
  auto Measure(size_t index, const OpCost& cost, const Work& work);
  void Wait() const;
  const kernels::MemoryTable& CountingMemory() const;

  const kernels::Device* inner_;
  std::span<const Roofline> rooflines_;
  kernels::OpTable table_;
  std::vector<OpTotals> totals_;
  double bytes_in_ = 0, bytes_out_ = 0;

  static CountingDevice* g_current;
  template <auto kOp>
  static inline size_t g_index = 0;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_ROOFLINE_COUNTING_DEVICE_H_
