// The JSON header of a safetensors file, read without building a tree: memory follows the header's bytes, not its
// nesting.
#ifndef WISP_TOOLS_EXCHANGE_SAFETENSORS_HEADER_H_
#define WISP_TOOLS_EXCHANGE_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::exchange {

// A tensor as the header describes it; nothing is held against anything yet.
struct DescribedTensor {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;  // begin, end
};

struct Header {
  std::vector<DescribedTensor> tensors;  // in the order of the header, names unique
  std::map<std::string, std::string, std::less<>> metadata;
};

// kInvalidData: not JSON, not UTF-8, a name twice, a key or a value of the wrong kind, more than the limits of
// safetensors.h.
Result<Header> ParseHeader(const std::string& file, std::string_view json);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_SAFETENSORS_HEADER_H_
