#include "tools/convert/unread_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/convert/safetensors.h"

namespace wisp::convert {

using Json = nlohmann::json;

std::string ShownJson(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return Shown(value.is_string() ? value.get_ref<const std::string&>()
                                 : value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

void SayUnread(const std::string& name, const Json& object, const ReadKeys& read, std::span<const HarmlessKey> harmless,
               std::vector<std::string>& notes) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || read.contains(key)) continue;
    const auto matches = [&key = key](const HarmlessKey& h) {
      return h.key.ends_with('*') ? key.starts_with(h.key.substr(0, h.key.size() - 1)) : key == h.key;
    };
    if (std::any_of(harmless.begin(), harmless.end(), matches)) continue;
    notes.push_back(name + ": " + Shown(key) + " is " + ShownJson(value) +
                    ", which is not known here and not followed");
  }
}

}  // namespace wisp::convert
