// Why the operating system refused, in English: "No such file or directory". A program's language does not change it.
//
//   return IoError(path, ": cannot be opened: ", Reason(errno));
#ifndef WISP_RUNTIME_CORE_REASON_H_
#define WISP_RUNTIME_CORE_REASON_H_

#include <string>

namespace wisp {

// `error`: a value of errno.
std::string Reason(int error);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_REASON_H_
