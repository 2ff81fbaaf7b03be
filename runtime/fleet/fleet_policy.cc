#include "runtime/fleet/fleet_policy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/first_characters.h"
#include "runtime/fleet/flat_json.h"
#include "runtime/core/text.h"
#include "runtime/fleet/plan_fields.h"
#include "runtime/privacy/accounting/calibration.h"

namespace wisp::fleet {
namespace {

constexpr uint64_t kFormat = 1;
constexpr std::string_view kKeyBegins = "-----BEGIN PUBLIC KEY-----\n", kKeyEnds = "-----END PUBLIC KEY-----\n";

std::vector<PlanField> ListFields(FleetPolicy& p) {
  return {
      PlanField::Text("server", p.server),
      PlanField::Number("takes_part", p.takes_part, {1, 1e6}),
      PlanField::Number("noise_multiplier", p.noise_multiplier, {0.1, 1e4}),
      PlanField::Number("clipping_norm", p.clipping_norm, {1e-6, 1e6}),
      PlanField::Number("cohort", p.cohort, {1, 1e9}),
      PlanField::Number("delta", p.delta, {1e-30, 1e-3}),
      PlanField::Words("methods", p.methods, FleetPlan::kMethodNames),
      PlanField::Words("parts", p.parts, FleetPlan::kPartNames),
      PlanField::Number("local_steps", p.local_steps, {0, 1000}),
      PlanField::Number("most_bytes_up", p.most_bytes_up, {1, 0x1p35}),
      PlanField::Number("most_bytes_down", p.most_bytes_down, {1, 0x1p35}),
      PlanField::Truth("evaluates", p.evaluates),
      PlanField::Number("records_epsilon", p.records_epsilon, {0, privacy::kLargestTarget}),
      PlanField::Number("records_delta", p.records_delta, {0, 1e-3}),
      PlanField::Number("records_public", p.records_public, {0, 4e9}),
      PlanField::Number("records_batch", p.records_batch, {0, 1e6}),
  };
}

bool IsPort(std::string_view port) {
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && end == port.data() + port.size() && number > 0;
}

bool HasOnly(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return IsAsciiLetter(c) || IsAsciiDigit(c) || others.find(c) != std::string_view::npos;
  });
}

// 127.0.0.1 and its like: four numbers, the first of them 127.
bool IsLoopbackNumber(std::string_view host) {
  if (!host.starts_with("127.")) return false;
  int numbers = 0;
  while (true) {
    const std::string_view number = host.substr(0, host.find('.'));
    uint8_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size()) return false;
    ++numbers;
    if (number.size() == host.size()) return numbers == 4;
    host.remove_prefix(number.size() + 1);
  }
}

bool IsLoopback(std::string_view host) { return host == "localhost" || host == "[::1]" || IsLoopbackNumber(host); }

// Splits "host:port", and an IPv6 address in brackets, and returns the host; empty if it is malformed.
std::string_view HostOf(std::string_view authority) {
  const size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return "";
  const size_t colon = authority.find(':', bracket);
  const std::string_view host = authority.substr(0, colon);
  if (colon != std::string_view::npos && !IsPort(authority.substr(colon + 1))) return "";
  if (bracket == 0) return HasOnly(host, "-.") ? host : "";
  return host.back() == ']' && HasOnly(host.substr(1, host.size() - 2), ":.") ? host : "";
}

Status CheckRecords(const FleetPolicy& p, const std::string& source) {
  const bool promises = p.protects_records();
  for (const auto& [name, number] :
       {std::pair("records_delta", p.records_delta), std::pair("records_public", static_cast<double>(p.records_public)),
        std::pair("records_batch", static_cast<double>(p.records_batch))}) {
    if ((number > 0) == promises) continue;
    return InvalidArgument(source, ": ", name, " is ", privacy::DoubleText(number), " and records_epsilon is ",
                           privacy::DoubleText(p.records_epsilon), ", allowed are both 0 or both above 0");
  }
  if (!promises) return OkStatus();
  WISP_RETURN_IF_ERROR(privacy::CheckTarget(p.records_epsilon));
  WISP_RETURN_IF_ERROR(privacy::CheckDelta(source + ": records_delta", p.records_delta, p.records_public, false));
  if (p.records_batch > p.records_public) {
    return InvalidArgument(source, ": records_batch is ", p.records_batch, ", allowed is 1 to records_public, ",
                           p.records_public);
  }
  // A gradient and a gain show records to the server as they are.
  if (p.methods != SetOf{FleetPlan::Method::kLocal} || p.evaluates) {
    return InvalidArgument(source, ": records_epsilon is ", privacy::DoubleText(p.records_epsilon),
                           ", allowed with it are methods local alone, and evaluates false");
  }
  // The runs are planned together, with the noise of one number of weights.
  if (!std::has_single_bit(p.parts.bits)) {
    return InvalidArgument(source, ": parts is ", ListWords(p.parts.bits, FleetPlan::kPartNames, ","),
                           ", allowed with records_epsilon is one");
  }
  return OkStatus();
}

Status Forbid(const FleetPlan& plan, const char* field, const std::string& value, const std::string& allowed) {
  return PrivacyRefused("the plan ", plan.name, " has ", field, " ", value, ", and this device's policy allows ",
                        allowed);
}

}  // namespace

Status CheckServer(const std::string& url, const std::string& whose) {
  const std::string shown = OneLine(std::string(FirstCharacters(url, 80)));
  const bool is_https = url.starts_with("https://"), is_http = url.starts_with("http://");
  const std::string_view rest = std::string_view(url).substr(is_https ? 8 : is_http ? 7 : 0);
  const std::string_view host = HostOf(rest.substr(0, rest.find('/')));
  if (!(is_https || is_http) || host.empty() || !HasOnly(rest, "-._~:/[]")) {
    return InvalidArgument(whose, " is '", shown, "', allowed is https://host:port/path, of letters, digits, ",
                           "- . _ and ~");
  }
  if (is_http && !IsLoopback(host)) {
    return InvalidArgument(whose, " is '", shown, "', allowed is https: http is for this machine alone, ",
                           "localhost or 127.0.0.1");
  }
  return OkStatus();
}

Status FleetPolicy::Allows(const FleetPlan& plan) const {
  using privacy::DoubleText;
  if (plan.takes_part > takes_part) {
    return Forbid(plan, "takes_part", std::to_string(plan.takes_part), std::to_string(takes_part) + " at most");
  }
  if (!(plan.noise_multiplier >= noise_multiplier)) {
    return Forbid(plan, "noise_multiplier", DoubleText(plan.noise_multiplier),
                  DoubleText(noise_multiplier) + " at least");
  }
  if (!(plan.clipping_norm <= clipping_norm)) {
    return Forbid(plan, "clipping_norm", DoubleText(plan.clipping_norm), DoubleText(clipping_norm) + " at most");
  }
  if (!(plan.cohort() >= cohort)) {
    return Forbid(plan, "a cohort of", DoubleText(plan.cohort()), DoubleText(cohort) + " at least");
  }
  if (!(plan.delta <= delta)) {
    return Forbid(plan, "delta", DoubleText(plan.delta), DoubleText(delta) + " at most");
  }
  if (!methods.Contains(plan.method))
    return Forbid(plan, "method", GetName(plan.method), ListWords(methods.bits, FleetPlan::kMethodNames, ", "));
  if (!parts.Contains(plan.part))
    return Forbid(plan, "part", GetName(plan.part), ListWords(parts.bits, FleetPlan::kPartNames, ", "));
  // The noise of records is that of runs of so many steps.
  if (plan.local_steps > local_steps || (protects_records() && plan.local_steps != local_steps)) {
    return Forbid(plan, "local_steps", std::to_string(plan.local_steps),
                  std::to_string(local_steps) + (protects_records() ? " alone" : " at most"));
  }
  if (plan.bytes_of_update() > most_bytes_up) {
    return Forbid(plan, "updates of", Counted(plan.bytes_of_update(), "byte"),
                  Counted(most_bytes_up, "byte") + " at most");
  }
  if (plan.bytes_of_weights() > most_bytes_down) {
    return Forbid(plan, "weights of", Counted(plan.bytes_of_weights(), "byte"),
                  Counted(most_bytes_down, "byte") + " at most");
  }
  return OkStatus();
}

std::string FleetPolicy::ExplainTrust() const {
  return operator_key.empty()
             ? "Nobody signs plans and weights: whoever holds the server's certificate can ask this device for "
               "whatever "
               "its policy allows."
             : "The operator signs plans and weights; a server without the operator's key gets nothing.";
}

Status FleetPolicy::Check(const std::string& source) const {
  WISP_RETURN_IF_ERROR(CheckServer(server, source + ": server"));
  if (!operator_key.empty() && !(operator_key.size() > kKeyBegins.size() + kKeyEnds.size() &&
                                 operator_key.starts_with(kKeyBegins) && operator_key.ends_with(kKeyEnds))) {
    return InvalidArgument(source, ": operator_key is no public key in PEM, from '-----BEGIN PUBLIC KEY-----' to ",
                           "'-----END PUBLIC KEY-----', each with an end of line");
  }
  FleetPolicy copy = *this;
  WISP_RETURN_IF_ERROR(CheckFields(source, ListFields(copy)));
  return CheckRecords(*this, source);
}

std::string FleetPolicy::ToText() const {
  FleetPolicy copy = *this;
  privacy::JsonWriter json;
  json.BeginObject().Key("fleet_policy").Value(kFormat);
  if (!operator_key.empty()) json.Key("operator_key").Value(operator_key);
  WriteFields(ListFields(copy), json);
  return json.EndObject().Take();
}

Result<FleetPolicy> FleetPolicy::FromText(std::string_view text, const std::string& source) {
  WISP_ASSIGN_OR_RETURN(FlatJson json, FlatJson::Parse(text, source, kMostTextBytes));
  WISP_RETURN_IF_ERROR(json.Whole("fleet_policy", kFormat, kFormat).status());
  FleetPolicy policy;
  if (json.Has("operator_key")) {
    WISP_ASSIGN_OR_RETURN(policy.operator_key, json.Text("operator_key", kMostTextBytes));
    if (policy.operator_key.empty()) return InvalidData(source, ": operator_key is empty: leave it out, or give a key");
  }
  WISP_RETURN_IF_ERROR(ReadFields(json, source, ListFields(policy)));
  WISP_RETURN_IF_ERROR(json.NoOtherKeys());
  WISP_RETURN_IF_ERROR(policy.Check(source));
  return policy;
}

FleetPolicy MakePolicy(const FleetPlan& plan, const std::string& server) {
  return {.server = server,
          .takes_part = plan.takes_part,
          .noise_multiplier = plan.noise_multiplier,
          .clipping_norm = plan.clipping_norm,
          .cohort = plan.cohort(),
          .delta = plan.delta,
          .methods = {plan.method},
          .parts = {plan.part},
          .local_steps = plan.local_steps,
          .most_bytes_up = plan.bytes_of_update(),
          .most_bytes_down = plan.bytes_of_weights(),
          .evaluates = plan.evaluations > 0};
}

}  // namespace wisp::fleet
