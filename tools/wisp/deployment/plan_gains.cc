#include "tools/wisp/deployment/plan_gains.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/privacy/json.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

std::string SignedPercent(double share) {
  const long percent = std::lround(100 * share);
  return (percent > 0 ? "+" : "") + std::to_string(percent);
}

std::string GainRange(double lowest, double highest) {
  const std::string low = SignedPercent(lowest), high = SignedPercent(highest);
  return (low == high ? low : low + " to " + high) + " %";
}

// Deployments at the same place have as many items, and about as many people.
std::string MeasuredWith(const std::vector<MeasuredGain>& measured) {
  const MeasuredGain& first = measured.front();
  std::string text = Thousands(first.people) + " people of " + first.data + " (" + Thousands(first.items) + " items";
  for (const MeasuredGain& m : measured) text += std::string("; ") + m.differs + ": " + GainRange(m.lowest, m.highest);
  return text + ")";
}

std::string ShortGain(const GainForecast& forecast) {
  if (!forecast.is_near) return "?";
  if (forecast.highest() < kLeastGain) return "none";
  const std::string range = GainRange(forecast.lowest(), forecast.highest());
  return forecast.found_better() ? range : "(" + range + ")";
}

}  // namespace

std::string Describe(const GainForecast& forecast) {
  const std::string with = MeasuredWith(forecast.measured);
  if (!forecast.is_near)
    return "nothing like it was measured: the nearest, " + with +
           (forecast.lacks_release
                ? std::string(", gained by ") + forecast.measured.front().carried_by +
                      ", which this plan does not release"
                : ", differs " + Thousands(std::lround(forecast.factor)) + " times in " + forecast.differs_in);
  if (forecast.highest() < kLeastGain) return "no gain, as measured with " + with;
  std::string by;
  for (const MeasuredGain& m : forecast.measured)
    if (by.find(m.carried_by) == std::string::npos) by += (by.empty() ? "" : " or ") + std::string(m.carried_by);
  return "up to about " + GainRange(forecast.highest(), forecast.highest()) + " of NDCG@10 by " + by +
         ", the more that tastes differ from the base's, as measured with " + with +
         (forecast.found_better() ? "; there it was found better, and served"
                                  : "; there it was not found better, and the base was served");
}

nlohmann::ordered_json GainsToJson(const std::vector<GainAt>& gains) {
  auto all = nlohmann::ordered_json::array();
  for (const GainAt& at : gains) {
    nlohmann::ordered_json j = {{"people", at.people}, {"epsilon", at.epsilon}};
    if (at.forecast.is_near) {
      j["lowest"] = at.forecast.lowest(), j["highest"] = at.forecast.highest();
      j["found_better"] = at.forecast.found_better();
    }
    all.push_back(j);
  }
  return all;
}

void PrintGains(const std::vector<GainAt>& gains) {
  const uint32_t first = gains.front().people;
  PrintText(
      "elsewhere about, by the nearest measurement each (in brackets: there it was not found better;\n"
      "          ?: nothing like it was measured)\n          %10s",
      "people");
  for (const GainAt& at : gains)
    if (at.people == first) PrintText("  %14s", ("epsilon " + privacy::ShortText(at.epsilon)).c_str());
  uint32_t people = 0;
  for (const GainAt& at : gains) {
    if (at.people != people) PrintText("\n          %10s", Thousands(people = at.people).c_str());
    PrintText("  %14s", ShortGain(at.forecast).c_str());
  }
  PrintText("\n");
}

}  // namespace wisp::tools
