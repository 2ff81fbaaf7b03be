// wisp privacy
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/calibration.h"
#include "runtime/privacy/ledger_statement.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity; the word is what scripts look for.
Json Figure(double value) { return std::isinf(value) ? Json("infinity") : Json(value); }

}  // namespace

Status PrivacyEpsilon(const PrivacyArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const auto mechanism, privacy::Mechanism::PoissonSubsampledGaussian(
                                                  {.noise_multiplier = a.noise_multiplier, .sampling_probability = a.sampling_probability, .steps = a.steps}));
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(a.delta));
  const std::vector spent = {mechanism};
  WISP_ASSIGN_OR_RETURN(const double pld, privacy::PldEpsilon(spent, delta));
  WISP_ASSIGN_OR_RETURN(const double rdp, privacy::RdpEpsilon(spent, delta));
  WISP_ASSIGN_OR_RETURN(const double gdp, privacy::GdpCltEpsilon(spent, delta));
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", Json({{"pld", Figure(pld)}, {"rdp", Figure(rdp)}, {"gdp_clt", Figure(gdp)}}).dump().c_str());
  } else {
    std::printf("%s, delta %g\n  PLD      epsilon %.4f   (an upper bound; the figure to state)\n  RDP      epsilon %.4f   (an upper bound, looser)\n"
                "  GDP-CLT  epsilon %.4f   (asymptotic, may understate)\n", mechanism.Describe().c_str(), a.delta, pld, rdp, gdp);
  }
  return OkStatus();
}

Status PrivacyCalibrate(const PrivacyArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(a.epsilon, a.delta));
  WISP_RETURN_IF_ERROR(privacy::Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1, .sampling_probability = a.sampling_probability, .steps = a.steps}).status());
  WISP_ASSIGN_OR_RETURN(const auto c, privacy::CalibrateNoise({.target = target, .sampling_probability = a.sampling_probability, .steps = a.steps}));
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", Json({{"sigma", c.noise_multiplier}, {"pld", c.epsilon}}).dump().c_str());
  } else {
    std::printf("noise multiplier %.5f: epsilon %.4f at delta %g by PLD\n", c.noise_multiplier, c.epsilon, a.delta);
  }
  return OkStatus();
}

Status PrivacyLedger(const PrivacyArguments& a, OutputFormat format) {
  if (a.ledger.empty()) return InvalidArgument("wisp privacy needs --ledger, or one of the commands epsilon and calibrate; see wisp privacy --help");
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger, privacy::Ledger::OpenExisting(a.ledger));
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(a.delta));
  WISP_ASSIGN_OR_RETURN(const privacy::PrivacyStatement statement, privacy::StatementOf(ledger, a.ledger, delta));
  std::printf("%s\n", (format == OutputFormat::kJson ? privacy::ToJson(statement) : privacy::ToText(statement)).c_str());
  return OkStatus();
}

}  // namespace wisp::tools
