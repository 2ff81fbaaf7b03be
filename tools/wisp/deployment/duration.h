// Durations as people write them: "1 year", "90 minutes", "2 weeks".
#ifndef WISP_TOOLS_WISP_DEPLOYMENT_DURATION_H_
#define WISP_TOOLS_WISP_DEPLOYMENT_DURATION_H_

#include <cstdint>
#include <string>

#include "runtime/core/status.h"

namespace wisp::tools {

// Returns seconds. A month has 30 days, a year 365. kInvalidArgument names `option`.
Result<uint64_t> ParseDuration(const char* option, const std::string& text);

// Parses a day such as 2026-01-01, and returns its last second by UTC; or parses seconds since 1970. kInvalidArgument
// names `option`.
Result<int64_t> ParseMoment(const std::string& option, const std::string& text);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEPLOYMENT_DURATION_H_
