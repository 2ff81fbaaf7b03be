// Reads the JSON header of a safetensors file without building a tree: its memory depends on the header's bytes, not on
// its nesting.
#ifndef WISP_TOOLS_CONVERT_SAFETENSORS_HEADER_H_
#define WISP_TOOLS_CONVERT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::convert {

// A tensor as the header describes it, without any check.
struct DescribedTensor {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;  // begin, end
};

struct Header {
  std::vector<DescribedTensor> tensors;  // in the order of the header, names unique
  std::map<std::string, std::string, std::less<>> metadata;
};

// Returns kInvalidData if it is not JSON or not UTF-8, a name appears twice, a key or a value has the wrong kind, or a
// limit of safetensors.h is exceeded.
Result<Header> ParseHeader(const std::string& file, std::string_view json);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_SAFETENSORS_HEADER_H_
