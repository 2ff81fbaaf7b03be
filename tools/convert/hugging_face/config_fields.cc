#include "tools/convert/hugging_face/config_fields.h"

#include <algorithm>
#include <utility>

#include "tools/convert/safetensors.h"

namespace wisp::convert::hugging_face {

using Json = nlohmann::json;

Result<Json> ParseObject(const std::string& name, std::string_view text) {
  if (text.size() > kMaxConfigBytes)
    return InvalidData(name, ": it has ", text.size(), " bytes, allowed are ", kMaxConfigBytes);
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidData(name, ": it is not JSON");
  if (!json.is_object()) return InvalidData(name, ": it is ", ShownJson(json), ", allowed is an object");
  return json;
}

const Json* Fields::Find(const char* key) const {
  read_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void Fields::WrongKind(const char* key, const Json& found, const std::string& allowed) {
  Fail(InvalidData(name_, ": ", key, " is ", ShownJson(found), ", allowed ", allowed));
}

void Fields::Refuse(const std::string& key, const std::string& found, const std::string& supported) {
  Fail(Unsupported(name_, ": ", key, " is ", found, ", supported ", supported));
}

uint32_t Fields::CountBetween(const char* key, uint32_t least, uint32_t most, std::optional<uint32_t> otherwise) {
  const Json* found = Find(key);
  if (found == nullptr) {
    if (!otherwise) Fail(InvalidData(name_, ": there is no ", key, ", which this family must have"));
    return otherwise.value_or(1);
  }
  const uint64_t value = found->is_number_unsigned() ? found->get<uint64_t>() : uint64_t{most} + 1;
  if (value >= least && value <= most) return static_cast<uint32_t>(value);
  WrongKind(key, *found, "are " + std::to_string(least) + " to " + std::to_string(most));
  return 1;
}

uint32_t Fields::Count(const char* key, uint32_t most, std::optional<uint32_t> otherwise) {
  return CountBetween(key, 1, most, otherwise);
}

uint32_t Fields::CountFromZero(const char* key, uint32_t most, std::optional<uint32_t> otherwise) {
  return CountBetween(key, 0, most, otherwise);
}

double Fields::Number(const char* key, double otherwise) {
  const Json* found = Find(key);
  if (found == nullptr) return otherwise;
  if (found->is_number()) return found->get<double>();
  WrongKind(key, *found, "is a number");
  return otherwise;
}

bool Fields::Flag(const char* key, bool otherwise) {
  const Json* found = Find(key);
  if (found == nullptr) return otherwise;
  if (found->is_boolean()) return found->get<bool>();
  WrongKind(key, *found, "are true and false");
  return otherwise;
}

std::string Fields::Word(const char* key, const char* otherwise) {
  const Json* found = Find(key);
  if (found == nullptr) return otherwise;
  if (found->is_string()) return found->get<std::string>();
  WrongKind(key, *found, "is a text");
  return otherwise;
}

void Fields::RequireFlag(const char* key, bool supported, bool otherwise) {
  const bool found = Flag(key, otherwise);
  if (found != supported) Refuse(key, found ? "true" : "false", supported ? "is true" : "is false");
}

}  // namespace wisp::convert::hugging_face
