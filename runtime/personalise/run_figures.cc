#include "runtime/personalise/run_figures.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/privacy/named_numbers.h"

namespace wisp {
namespace {

// Calls `field` with the name and the value of each field, in the order of a line.
template <class Figures, class Use>
void ForEachFigure(Figures& f, const Use& field) {
  field("steps", f.steps_of_model);
  field("loss", f.mean_loss);
  field("clipped", f.clipped_share);
}

}  // namespace

Result<std::vector<RunFigures>> ReadRunFigures(const std::string& path) {
  std::vector<RunFigures> runs;
  if (!platform::IsThere(path)) return runs;
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    bool read = true;
    RunFigures& planned_run = runs.emplace_back();
    ForEachFigure(planned_run,
                  [&](const char* name, auto& value) { read = read && privacy::TakeNumber(line, name, value); });
    if (!read || !line.empty())
      return InvalidData(path, ": line ", runs.size(), " has no figures of a run; delete the file");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return runs;
}

Status AddRunFigures(const std::string& path, const RunFigures& planned_run) {
  Result<std::vector<RunFigures>> there = ReadRunFigures(path);
  if (!there.ok() && there.status().code() != StatusCode::kInvalidData) return there.status();
  std::vector<RunFigures> runs = there.ok() ? *std::move(there) : std::vector<RunFigures>();
  runs.push_back(planned_run);
  if (runs.size() > kMostRunFigures)
    runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(kMostRunFigures));
  std::string text;
  for (const RunFigures& each : runs) {
    std::string line;
    ForEachFigure(each, [&](const char* name, auto value) { privacy::PutNumber(line, name, value); });
    text += line + "\n";
  }
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
  return file.Commit();
}

}  // namespace wisp
