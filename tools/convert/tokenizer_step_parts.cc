#include "tools/convert/tokenizer_step_parts.h"

namespace wisp::convert {

using nlohmann::json;

const json* Member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Status ReadMember(const std::string& where, const json& object, const char* key, bool& value) {
  const json* member = Member(object, key);
  if (member == nullptr) return OkStatus();
  if (!member->is_boolean()) return InvalidData(where, ": ", key, " is no boolean, allowed are true and false");
  value = member->get<bool>();
  return OkStatus();
}

Status ReadMember(const std::string& where, const json& object, const char* key, std::string& value) {
  const json* member = Member(object, key);
  if (member == nullptr) return OkStatus();
  if (!member->is_string()) return InvalidData(where, ": ", key, " is no text, which alone is allowed");
  value = member->get_ref<const std::string&>();
  return OkStatus();
}

Status ReadMember(const std::string& where, const json& object, const char* key, uint32_t& value) {
  const json* member = Member(object, key);
  if (member == nullptr) return OkStatus();
  constexpr uint64_t kMost = 1 << 30;
  if (!member->is_number_unsigned() || member->get<uint64_t>() > kMost)
    return InvalidData(where, ": ", key, " is no whole number, allowed are 0 to ", kMost);
  value = static_cast<uint32_t>(member->get<uint64_t>());
  return OkStatus();
}

Status ReadPattern(const std::string& where, const json& object, Pattern& pattern) {
  const json* member = Member(object, "pattern");
  if (member == nullptr || !member->is_object() || member->size() != 1)
    return InvalidData(where, ": it has no pattern, which must be {\"String\": ...} or {\"Regex\": ...}");
  pattern.regex = member->contains("Regex");
  if (!pattern.regex && !member->contains("String"))
    return InvalidData(where, ": its pattern is neither a String nor a Regex, which alone are allowed");
  WISP_RETURN_IF_ERROR(ReadMember(where, *member, pattern.regex ? "Regex" : "String", pattern.text));
  if (pattern.text.empty()) return Unsupported(where, ": an empty pattern is not supported");
  return OkStatus();
}

namespace {

Status ReadSteps(const std::string& where, const json& steps, const char* list, bool last, int depth,
                 const ReadOne& one) {
  constexpr int kMaxDepth = 4;
  if (!steps.is_object()) return InvalidData(where, " is no object, which alone is allowed");
  std::string type;
  WISP_RETURN_IF_ERROR(ReadMember(where, steps, "type", type));
  if (type != "Sequence") return one(type, steps, last);
  const json* inner = Member(steps, list);
  if (inner == nullptr || !inner->is_array() || depth == kMaxDepth)
    return InvalidData(where, ": a Sequence must have a list of ", list, ", at most ", kMaxDepth, " deep");
  for (size_t i = 0; i < inner->size(); ++i)
    WISP_RETURN_IF_ERROR(ReadSteps(where, (*inner)[i], list, last && i + 1 == inner->size(), depth + 1, one));
  return OkStatus();
}

}  // namespace

Status ReadSequence(const std::string& where, const json& steps, const char* list, const ReadOne& one) {
  return ReadSteps(where, steps, list, true, 0, one);
}

}  // namespace wisp::convert
