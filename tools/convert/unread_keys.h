// Reports keys of a foreign JSON file that nothing here reads. A key is known to change nothing, or it is named, so
// that no unknown setting is passed over.
//
//   SayUnread("m/config.json", json, {"vocab_size", ...}, kHarmless, notes);
#ifndef WISP_TOOLS_CONVERT_UNREAD_KEYS_H_
#define WISP_TOOLS_CONVERT_UNREAD_KEYS_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::convert {

// A key that does not affect the results, and why. '*' at the end stands for any rest.
struct HarmlessKey {
  std::string_view key;
  std::string_view reason;
};

using ReadKeys = std::set<std::string, std::less<>>;

// Adds one sentence for each key of `object` that was not read, is not null and is not harmless. `name` is the file's.
void SayUnread(const std::string& name, const nlohmann::json& object, const ReadKeys& read,
               std::span<const HarmlessKey> harmless, std::vector<std::string>& notes);

// Prepares a JSON value for a message: cut, without control characters; for values that may be large only the kind.
std::string ShownJson(const nlohmann::json& value);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_UNREAD_KEYS_H_
