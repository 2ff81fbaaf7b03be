#include "runtime/core/reason.h"

#include <system_error>

#include "runtime/core/c_locale.h"

namespace wisp {

std::string Reason(int error) {
  const InCLocale here;
  return std::generic_category().message(error);
}

}  // namespace wisp
