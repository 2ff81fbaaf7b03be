// Results of many runs in one file, a JSON object per line. An appended line is there as a whole or not at all.
//
//   WISP_ASSIGN_OR_RETURN(const auto lines, ReadResultLines("docs/results/t.jsonl"));
//   WISP_RETURN_IF_ERROR(AppendResultLine("docs/results/t.jsonl", line));
#ifndef WISP_TOOLS_LAB_RESULT_LINES_H_
#define WISP_TOOLS_LAB_RESULT_LINES_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::tools {

using ResultLine = nlohmann::ordered_json;

// Returns no lines if there is no such file. kInvalidData names a line that is cut off or not an object.
Result<std::vector<ResultLine>> ReadResultLines(const std::string& path);

// Makes the folder if needed. The file is replaced by one with the line at its end (core/file.h), under a lock of its
// folder: a crash leaves the old file or the new one, and programs that append at once all succeed. If a present line
// is not readable, nothing is written.
Status AppendResultLine(const std::string& path, const ResultLine& line);

// Makes the folder, and reports now what would keep AppendResultLine from writing. Call it before hours of work.
Status CheckAppendable(const std::string& path);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_RESULT_LINES_H_
