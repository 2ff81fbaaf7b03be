#include "runtime/inference/not_finite.h"

namespace wisp {

Status NotFiniteOn(const kernels::Device& device, const std::string& name, const char* what) {
  const std::string sentence = name + ": " + what + " is no finite number: the weights are damaged, or of no use";
  if (device.ops->largest_factor <= 0) return InvalidData(sentence);
  return InvalidData(sentence, ", or too large for ", device.ops->name, ", whose largest number is ",
                     device.ops->largest_factor);
}

}  // namespace wisp
