// Options that several functions of the C interface share: units and numbers.
#ifndef WISP_PORTS_C_OPTIONS_C_H_
#define WISP_PORTS_C_OPTIONS_C_H_

#include <cmath>
#include <initializer_list>
#include <optional>

#include "ports/c/status_c.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp::ports {

// Returns nullopt for a number that wisp_unit does not list.
inline std::optional<privacy::PrivacyUnit> UnitFromNumber(int32_t unit) {
  switch (unit) {
    case WISP_UNIT_USER:
      return privacy::PrivacyUnit::kUser;
    case WISP_UNIT_SESSION:
      return privacy::PrivacyUnit::kSession;
    case WISP_UNIT_DAY:
      return privacy::PrivacyUnit::kDay;
    case WISP_UNIT_INTERACTION:
      return privacy::PrivacyUnit::kInteraction;
  }
  return std::nullopt;
}

struct NamedNumber {
  const char* name;
  double value;
};
// kInvalidArgument names the first number that is negative or not finite.
inline Status CheckNumbers(const char* type, std::initializer_list<NamedNumber> numbers) {
  for (const NamedNumber& n : numbers) {
    if (!(n.value >= 0 && std::isfinite(n.value)))
      return InvalidArgument(type, ": ", n.name, " is ", n.value, ", allowed is a finite number from 0 on");
  }
  return OkStatus();
}

// kInvalidArgument if one of the texts is null or empty; `names` lists all of them for the message.
inline Status CheckGiven(const char* who, const char* names, std::initializer_list<const char*> texts) {
  for (const char* text : texts) {
    if (text == nullptr || *text == '\0') return InvalidArgument(who, ": ", names, " are required, and none is empty");
  }
  return OkStatus();
}

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_OPTIONS_C_H_
