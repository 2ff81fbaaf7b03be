#include "runtime/personalise/night_figures.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "runtime/core/file.h"
#include "runtime/personalise/named_numbers.h"

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

Result<std::vector<NightFigures>> ReadNightFigures(const std::string& path) {
  std::vector<NightFigures> nights;
  if (access(path.c_str(), F_OK) != 0) return nights;
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    bool read = true;
    NightFigures& night = nights.emplace_back();
    ForEachFigure(night, [&](const char* name, auto& value) { read = read && TakeNumber(line, name, value); });
    if (!read || !line.empty())
      return InvalidData(path, ": line ", nights.size(), " has no figures of a night; delete the file");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return nights;
}

Status AddNightFigures(const std::string& path, const NightFigures& night) {
  Result<std::vector<NightFigures>> there = ReadNightFigures(path);
  if (!there.ok() && there.status().code() != StatusCode::kInvalidData) return there.status();
  std::vector<NightFigures> nights = there.ok() ? *std::move(there) : std::vector<NightFigures>();
  nights.push_back(night);
  if (nights.size() > kMostNightFigures)
    nights.erase(nights.begin(), nights.end() - static_cast<std::ptrdiff_t>(kMostNightFigures));
  std::string text;
  for (const NightFigures& each : nights) {
    std::string line;
    ForEachFigure(each, [&](const char* name, auto value) { PutNumber(line, name, value); });
    text += line + "\n";
  }
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
  return file.Commit();
}

}  // namespace wisp
