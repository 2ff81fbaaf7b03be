// Tensors of a folder that become no parameter: each is left out for a reason that was checked on its numbers.
#ifndef WISP_TOOLS_EXCHANGE_HUGGING_FACE_LEFT_OUT_H_
#define WISP_TOOLS_EXCHANGE_HUGGING_FACE_LEFT_OUT_H_

#include <string>
#include <string_view>

#include "tools/exchange/hugging_face/folder.h"

namespace wisp::exchange::hugging_face {

// Whether two tensors are the same numbers in the same shape, whatever types they are stored as.
bool SameNumbers(const SafeTensor& a, const SafeTensor& b);

// Why the tensor is left out. `plain`: its name without a prefix. kInvalidData: nothing says that it may be, or its
// numbers are not what the reason says.
Result<std::string> ReasonToLeaveOut(const Folder& folder, const Description& description, std::string_view plain,
                                     const FoundTensor& found);

}  // namespace wisp::exchange::hugging_face

#endif  // WISP_TOOLS_EXCHANGE_HUGGING_FACE_LEFT_OUT_H_
