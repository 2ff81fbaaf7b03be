// Keys of a JSON file of others that nothing here reads: each is known to change nothing, or it is named. So a setting
// that nobody has thought of is said, not passed over.
//
//   SayUnread("m/config.json", json, {"vocab_size", ...}, kHarmless, notes);
#ifndef WISP_TOOLS_EXCHANGE_UNREAD_KEYS_H_
#define WISP_TOOLS_EXCHANGE_UNREAD_KEYS_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::exchange {

// A key that changes nothing of what is computed, and why. '*' at the end stands for any rest.
struct HarmlessKey {
  std::string_view key;
  std::string_view reason;
};

using ReadKeys = std::set<std::string, std::less<>>;

// One sentence for each key of `object` that was not read, is not null and is not harmless. `name`: of the file.
void SayUnread(const std::string& name, const nlohmann::json& object, const ReadKeys& read,
               std::span<const HarmlessKey> harmless, std::vector<std::string>& notes);

// A value of a file in a message: cut, without control characters; of what may be large the kind alone.
std::string ShownJson(const nlohmann::json& value);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_UNREAD_KEYS_H_
