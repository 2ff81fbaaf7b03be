// Implements `wisp node`: checks the options, and executes the program wisp-node beside this one, which links an HTTP
// client (tools/node/program.cc).
#include <cerrno>
#include <cmath>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/core/reason.h"
#include "runtime/fleet/fleet_policy.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/deployment/check_options.h"
#include "tools/wisp/system.h"

namespace wisp::tools {
namespace {

// The file beside this program. Empty if the system does not say where this one lies.
std::string FindNodeProgram() {
  const std::string folder = FindOwnFolder();
  return folder.empty() ? folder : folder + "wisp-node";
}

Status CheckPolicy(const NodeArguments& a) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(a.policy));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  WISP_ASSIGN_OR_RETURN(const fleet::FleetPolicy policy, fleet::FleetPolicy::FromText(text, a.policy));
  if (a.superlink.empty() || a.superlink == policy.server) return OkStatus();
  return InvalidArgument("--superlink is '", a.superlink, "', allowed is the server of ", a.policy, ", ",
                         policy.server);
}

}  // namespace

Status NodeCommand(const NodeArguments& a, OutputFormat format) {
  if (!(a.seconds >= 0 && std::isfinite(a.seconds))) {
    return InvalidArgument("--seconds is ", a.seconds, ", allowed is a number from 0 on; 0: until it is stopped");
  }
  WISP_RETURN_IF_ERROR(CheckPolicy(a));
  // A device whose log goes away later sends zeros. At the start it is an error of whoever wrote the command.
  if (!platform::IsThere(a.data)) return IoError("--data ", a.data, ": does not exist; wisp log import makes a log");
  if (a.unit) {
    WISP_ASSIGN_OR_RETURN(const privacy::PrivacyUnit unit, privacy::PrivacyUnitFromText(*a.unit));
    WISP_RETURN_IF_ERROR(CheckedUnits(unit, a.session_gap, a.times_per_second).status());
  }
  const std::string program = FindNodeProgram();
  std::vector<std::string> words = {program};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.push_back(std::string("--") + name + "=" + value);
  };
  add("policy", a.policy);
  add("data", a.data);
  add("model", a.model);
  add("ledger", a.ledger);
  add("output", a.output);
  add("records-ledger", a.records_ledger);
  add("dataset", a.dataset);
  add("key", a.key);
  add("ca", a.ca);
  add("unit", a.unit.value_or(""));
  add("session-gap", std::to_string(a.session_gap));
  add("times-per-second", std::to_string(a.times_per_second));
  add("ask-seconds", std::to_string(a.ask_seconds));
  if (a.once) add("once", "1");
  if (a.seconds > 0) add("seconds", std::to_string(a.seconds));
  if (format == OutputFormat::kJson) add("json", "1");
  if (!program.empty()) Become(program, std::move(words));
  return Unsupported("`wisp node` needs the program wisp-node beside this one, and cannot run it (",
                     program.empty() ? "the system does not say where this one is" : program + ": " + Reason(errno),
                     "); builds have it where libcurl and OpenSSL are found");
}

}  // namespace wisp::tools
