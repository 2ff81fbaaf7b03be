// The words of `wisp plan` for the gain to expect.
#ifndef WISP_TOOLS_WISP_DEPLOYMENT_PLAN_GAINS_H_
#define WISP_TOOLS_WISP_DEPLOYMENT_PLAN_GAINS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/personalise/gain_table.h"

namespace wisp::tools {

// A sentence without its full stop: "about +31 to +34 % of NDCG@10 by counts of which item follows which, ...".
std::string Describe(const GainForecast& forecast);
nlohmann::ordered_json GainsToJson(const std::vector<GainAt>& gains);
// Prints a row for each number of people and a column for each epsilon.
void PrintGains(const std::vector<GainAt>& gains);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEPLOYMENT_PLAN_GAINS_H_
