// The operating system's reason for an error, in English: "No such file or directory". Independent of the locale.
//
//   return IoError(path, ": cannot be opened: ", Reason(errno));
#ifndef WISP_RUNTIME_CORE_REASON_H_
#define WISP_RUNTIME_CORE_REASON_H_

#include <string>

namespace wisp {

// `error` is a value of errno.
std::string Reason(int error);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_REASON_H_
