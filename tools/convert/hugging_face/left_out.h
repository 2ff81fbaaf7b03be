// Tensors of a folder that become no parameter. Each is left out for a reason that was checked on its numbers.
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_LEFT_OUT_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_LEFT_OUT_H_

#include <string>
#include <string_view>

#include "tools/convert/hugging_face/folder.h"

namespace wisp::convert::hugging_face {

// Returns true if two tensors have the same numbers in the same shape, whatever their types.
bool SameNumbers(const SafeTensor& a, const SafeTensor& b);

// Returns the reason why the tensor is left out. `plain` is its name without a prefix. Returns kInvalidData if no row
// allows it, or if its numbers contradict the reason.
Result<std::string> ReasonToLeaveOut(const Folder& folder, const Description& description, std::string_view plain,
                                     const FoundTensor& found);

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_LEFT_OUT_H_
