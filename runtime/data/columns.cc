#include "runtime/data/columns.h"

#include <algorithm>

#include "runtime/data/lines.h"

namespace wisp::data {
namespace {

struct Wanted {
  const std::string& name;  // the name that the caller gave; empty: one of the usual names
  std::array<const char*, 2> usual;
  const char* setting;  // the setting that gives another name, for messages
};

std::string List(const std::vector<std::string>& names) {
  constexpr size_t kMost = 30;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) list += (i == 0 ? "" : ", ") + Shown(names[i]);
  return names.size() > kMost ? list + ", ..." : list;
}

Result<size_t> Choose(const std::string& where, const std::vector<std::string>& present, const Wanted& wanted) {
  std::vector<std::string> candidates = {wanted.name};
  if (wanted.name.empty()) candidates.assign(wanted.usual.begin(), wanted.usual.end());
  for (const std::string& candidate : candidates) {
    const auto first = std::find(present.begin(), present.end(), candidate);
    if (first == present.end()) continue;
    if (std::find(first + 1, present.end(), candidate) != present.end()) {
      return InvalidData(where, ": the column ", Shown(candidate), " is there twice; the columns are ", List(present));
    }
    return static_cast<size_t>(first - present.begin());
  }
  const std::string or_other = candidates.size() > 1 ? " or " + Shown(candidates[1]) : "";
  return InvalidData(where, ": there is no column ", Shown(candidates[0]), or_other, "; the columns are ",
                     List(present), "; `", wanted.setting, "` says which it is");
}

}  // namespace

Result<Columns> ChooseColumns(const std::string& where, const std::vector<std::string>& present,
                              const ReadOptions& options) {
  Columns columns;
  WISP_ASSIGN_OR_RETURN(columns.user,
                        Choose(where, present, {options.user_column, {"user", "user_id"}, "user_column"}));
  WISP_ASSIGN_OR_RETURN(columns.item,
                        Choose(where, present, {options.item_column, {"item", "item_id"}, "item_column"}));
  if (options.time == TimeSource::kFileOrder) return columns;
  Result<size_t> time = Choose(where, present, {options.time_column, {"time", "timestamp"}, "time_column"});
  if (!time.ok()) {
    return InvalidData(
        time.status().message(),
        "; times are needed, as numbers such as seconds or as dates: they put the events of a user in order. "
        "Events without times can be lines of a user and an item, in their order (the format user-item)");
  }
  columns.time = *time;
  return columns;
}

}  // namespace wisp::data
