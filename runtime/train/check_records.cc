#include "runtime/train/check_records.h"

#include <algorithm>
#include <optional>
#include <string>

namespace wisp {
namespace {

bool HasClasses(const Architecture& a) { return a.head.kind == HeadKind::kClasses; }

bool HasLength(const Architecture& a, const Record& r, uint32_t longest) {
  const size_t targets = HasClasses(a) ? 1 : r.inputs.size();
  return !r.inputs.empty() && r.inputs.size() <= longest && r.targets.size() == targets;
}

// The first id below `least` or not below `count`: neither an item nor, if `least` is -1, padding.
std::optional<int32_t> UnknownItem(std::span<const int32_t> ids, int32_t least, uint32_t count) {
  const auto unknown =
      std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < least || id >= int64_t{count}; });
  return unknown == ids.end() ? std::nullopt : std::optional<int32_t>(*unknown);
}

Status CheckNextItems(const Architecture& a, const Record& r, uint32_t longest, const std::string& name) {
  if (!HasLength(a, r, longest)) {
    return InvalidData(name, " has ", r.inputs.size(), " inputs and ", r.targets.size(), " targets; allowed are 1 to ",
                       longest, " of each, equally many");
  }
  for (std::span<const int32_t> ids : {r.inputs, r.targets}) {
    const std::optional<int32_t> id = UnknownItem(ids, -1, a.num_items);
    if (id) return InvalidData(name, " names item ", *id, "; the model has items 0 to ", a.num_items - 1);
  }
  return OkStatus();
}

Status CheckLabelled(const Architecture& a, const Record& r, uint32_t longest, const std::string& name) {
  if (r.targets.size() != 1) return InvalidData(name, " has ", r.targets.size(), " labels, allowed is one");
  if (!HasLength(a, r, longest)) {
    return InvalidData(name, " has ", r.inputs.size(), " tokens, allowed are 1 to ", longest);
  }
  if (const std::optional<int32_t> id = UnknownItem(r.inputs, 0, a.num_items)) {
    return InvalidData(name, " names token ", *id, "; the model has tokens 0 to ", a.num_items - 1);
  }
  if (!UnknownItem(r.targets, 0, a.head.num_classes)) return OkStatus();
  return InvalidData(name, " has label ", r.targets[0], "; the model has classes 0 to ", a.head.num_classes - 1);
}

}  // namespace

bool IsTrainable(const Architecture& a, const Record& r, uint32_t longest) {
  if (!HasLength(a, r, longest)) return false;
  const int32_t least = HasClasses(a) ? 0 : -1;
  return !UnknownItem(r.inputs, least, a.num_items) &&
         !UnknownItem(r.targets, least, HasClasses(a) ? a.head.num_classes : a.num_items);
}

Status CheckRecords(const Architecture& a, std::span<const Record> records, uint32_t longest) {
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string name = "record " + std::to_string(i);
    WISP_RETURN_IF_ERROR(HasClasses(a) ? CheckLabelled(a, records[i], longest, name)
                                       : CheckNextItems(a, records[i], longest, name));
  }
  return OkStatus();
}

}  // namespace wisp
