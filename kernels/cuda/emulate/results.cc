// Results of kernels are in host memory, the only memory here.
#include "kernels/cuda/results.h"

#include <vector>

#include "kernels/cuda/emulate/memory.h"

namespace wisp::kernels::cuda {

double* Results(size_t count) {
  static thread_local std::vector<double> results;
  if (results.size() < count) results.resize(count);
  emulate::ShareWithKernels(results.data(), results.size() * sizeof(double));
  return results.data();
}

float* Scratch() { return emulate::ScratchForKernels(); }

bool Wait() {
  emulate::OpenToHost();
  emulate::ShowResults();
  return true;
}

}  // namespace wisp::kernels::cuda
