#include "runtime/fleet/flower/objects.h"

#include <algorithm>

#include "runtime/fleet/flat_json.h"
#include "runtime/core/hex.h"
#include "runtime/fleet/sha256.h"

namespace wisp::fleet::flower {
namespace {

constexpr std::string_view kRecordName = "wisp";
// A RecordDict has a name, an id and their marks. Flower's writer needs 76 bytes.
constexpr size_t kMostRecordDictBytes = 256;

}  // namespace

bool IsObjectId(std::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string ObjectId(std::string_view object) { return ToHex(Sha256(object)); }

std::string MakeObject(std::string_view type, std::string_view child, std::string_view body) {
  std::string object = JoinText(type, " ", child, " ", body.size());
  object.reserve(object.size() + 1 + body.size());
  object += '\0';
  return object += body;
}

Result<std::string_view> ReadObject(std::string_view object, std::string_view id, std::string_view type,
                                    std::string_view child) {
  if (ObjectId(object) != id) {
    return InvalidData("the fleet's ", type, " is another one than announced: its SHA-256 is not ", id);
  }
  const size_t end = object.find('\0');
  const std::string_view body = end == std::string_view::npos ? std::string_view() : object.substr(end + 1);
  if (object.substr(0, end) != JoinText(type, " ", child, " ", body.size()) || end == std::string_view::npos) {
    return InvalidData("the object ", id, " of the fleet is no ", type, child.empty() ? " without" : " with one",
                       " child, as wisp's messages have");
  }
  return body;
}

std::string WriteRecordDict(std::string_view record_id) {
  return JoinText("{\"", kRecordName, "\": \"", record_id, "\"}");
}

Status CheckRecordDict(std::string_view body, std::string_view record_id) {
  WISP_ASSIGN_OR_RETURN(FlatJson json, FlatJson::Parse(body, "the fleet's RecordDict", kMostRecordDictBytes));
  WISP_ASSIGN_OR_RETURN(const std::string id, json.Text(kRecordName, record_id.size()));
  if (id != record_id) return InvalidData("the fleet's RecordDict does not name its record ", record_id);
  return json.NoOtherKeys();
}

}  // namespace wisp::fleet::flower
