#include "runtime/core/reason.h"

#include <cerrno>
#include <system_error>

#include "runtime/core/c_locale.h"

namespace wisp {

std::string Reason(int error) {
#if defined(_WIN32)
  if (error == EBUSY) return "another program has it open";  // the system's words are "Resource device"
#endif
  const InCLocale here;
  return std::generic_category().message(error);
}

}  // namespace wisp
