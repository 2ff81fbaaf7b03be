// The names of a ledger's enums, in files and for people.
#include "runtime/core/text.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp::privacy {
namespace {

Status NotAName(const char* what, std::string_view text, const char* allowed) {
  return InvalidData(what, " is '", OneLine(std::string(text)), "', allowed are ", allowed);
}

}  // namespace

std::string_view ToText(PrivacyUnit unit) {
  switch (unit) {
    case PrivacyUnit::kUser:
      return "user";
    case PrivacyUnit::kSession:
      return "session";
    case PrivacyUnit::kDay:
      return "day";
    case PrivacyUnit::kInteraction:
      return "interaction";
    case PrivacyUnit::kDevice:
      return "device";
  }
  return "unknown";
}

Result<PrivacyUnit> PrivacyUnitFromText(std::string_view text) {
  for (PrivacyUnit unit : {PrivacyUnit::kUser, PrivacyUnit::kSession, PrivacyUnit::kDay, PrivacyUnit::kInteraction,
                           PrivacyUnit::kDevice}) {
    if (text == ToText(unit)) return unit;
  }
  return NotAName("the privacy unit", text, "user, session, day, interaction, device");
}

std::string_view ToText(NoiseKind noise) { return noise == NoiseKind::kSecure ? "secure" : "reproducible"; }

Result<NoiseKind> NoiseKindFromText(std::string_view text) {
  for (NoiseKind noise : {NoiseKind::kSecure, NoiseKind::kReproducible}) {
    if (text == ToText(noise)) return noise;
  }
  return NotAName("the kind of noise", text, "secure, reproducible");
}

}  // namespace wisp::privacy
