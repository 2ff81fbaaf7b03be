// Strict reading of a JSON object. Unknown keys, wrong types and values out of range are errors that name the place,
// the key, the value and what is allowed. The error about an unknown key also names the sections that have it, if there
// are any.
//
//   JsonSection s(path + ":", json);
//   s.Number("epochs", recipe.epochs, 0, 1e6);
//   WISP_RETURN_IF_ERROR(s.Finish());   // the first failure; or a key that nobody asked for
#ifndef WISP_TOOLS_WISP_RECIPE_JSON_SECTION_H_
#define WISP_TOOLS_WISP_RECIPE_JSON_SECTION_H_

#include <algorithm>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/first_characters.h"
#include "runtime/core/status.h"
#include "runtime/core/text.h"

namespace wisp::tools {

// Removes from an error the characters that a terminal would act on: sentences repeat keys and values of the file,
// which comes from anywhere.
inline Status Readable(const Status& status) { return {status.code(), OneLine(status.message())}; }

// Returns a value as a message shows it.
inline std::string Dumped(const nlohmann::json& json) {
  constexpr size_t kMost = 40;
  return std::string(FirstCharacters(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kMost));
}

// Reads the keys of one object; Finish reports keys that nobody asked for.
class JsonSection {
 public:
  // `object` must outlive this.
  JsonSection(std::string where, const nlohmann::json& object) : where_(std::move(where)), object_(object) {
    if (!object.is_object()) Fail(InvalidData(where_, " is ", Dumped(object), ", allowed is an object"));
  }

  JsonSection(const JsonSection&) = delete;
  JsonSection& operator=(const JsonSection&) = delete;

  // Reads a number. `low` and `high` are included.
  template <class T>
  void Number(const char* key, T& value, double low, double high) {
    const nlohmann::json* json = Find(key);
    if (json == nullptr) return;
    const bool whole = std::is_integral_v<T>;
    const bool type = whole ? json->is_number_integer() || json->is_number_unsigned() : json->is_number();
    if (!type || !(json->get<double>() >= low && json->get<double>() <= high)) {
      std::ostringstream allowed;
      allowed << (whole ? "a whole number" : "a number") << " from " << low << " to " << high;
      Fail(InvalidData(where_, ".", key, " is ", Dumped(*json), ", allowed is ", allowed.str()));
      return;
    }
    value = json->get<T>();
  }

  template <class T>
  void Number(const char* key, std::optional<T>& value, double low, double high) {
    T number{};
    if (Has(key)) {
      Number(key, number, low, high);
      value = number;
    } else {
      Find(key);
    }
  }

  template <class T>
  void Choice(const char* key, T& value, std::initializer_list<std::pair<const char*, T>> choices) {
    ParseChoice<T>(key, value, {choices.begin(), choices.size()});
  }

  template <class T>
  void ParseChoice(const char* key, T& value, std::span<const std::pair<const char*, T>> choices) {
    const nlohmann::json* json = Find(key);
    if (json == nullptr) return;
    std::string allowed;
    for (const auto& [name, choice] : choices) {
      if (json->is_string() && json->get<std::string>() == name) {
        value = choice;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(name);
    }
    Fail(InvalidData(where_, ".", key, " is ", Dumped(*json), ", allowed are ", allowed));
  }

  void Flag(const char* key, bool& value) {
    const nlohmann::json* json = Find(key);
    if (json == nullptr) return;
    if (!json->is_boolean())
      return Fail(InvalidData(where_, ".", key, " is ", Dumped(*json), ", allowed are true and false"));
    value = json->get<bool>();
  }

  // Reads a flag whose absence differs from both true and false.
  void Flag(const char* key, std::optional<bool>& value) {
    bool named = false;
    const bool is_named = Has(key);
    Flag(key, named);
    if (is_named) value = named;
  }

  void Text(const char* key, std::string& value) {
    const nlohmann::json* json = Find(key);
    if (json == nullptr) return;
    if (!json->is_string()) return Fail(InvalidData(where_, ".", key, " is ", Dumped(*json), ", allowed is a text"));
    value = json->get<std::string>();
  }

  // Reads a list. T: std::string or double.
  template <class T>
  void List(const char* key, std::vector<T>& values) {
    const nlohmann::json* json = Find(key);
    if (json == nullptr) return;
    constexpr bool kText = std::is_same_v<T, std::string>;
    bool good = json->is_array();
    for (size_t i = 0; good && i < json->size(); ++i) good = kText ? (*json)[i].is_string() : (*json)[i].is_number();
    if (!good)
      return Fail(InvalidData(where_, ".", key, " is ", Dumped(*json), ", allowed is a list of ",
                              (kText ? "texts" : "numbers")));
    values = json->get<std::vector<T>>();
  }

  // Returns the raw value, for another function to check; null if the key is missing.
  const nlohmann::json* Any(const char* key) { return Find(key); }

  // Runs `read` on the object under `key`, or on an empty one if the key is missing, so that the errors of other
  // sections know its keys. On an empty object, `read` must change nothing.
  template <class Read>
  void Object(const char* key, Read&& read) {
    static const nlohmann::json kNone = nlohmann::json::object();
    const nlohmann::json* json = Find(key);
    JsonSection inner(*this, where_ + (where_.ends_with(":") ? " " : ".") + key, key, json == nullptr ? kNone : *json);
    if (inner.status_.ok()) read(inner);
    Take(inner);
  }

  // Runs `read` on each object of the array under `key`, if there is an array.
  template <class Read>
  void Objects(const char* key, Read&& read) {
    const nlohmann::json* json = Find(key);
    if (json == nullptr) return;
    if (!json->is_array())
      return Fail(InvalidData(where_, ".", key, " is ", Dumped(*json), ", allowed is an array of objects"));
    for (size_t i = 0; i < json->size(); ++i) {
      JsonSection inner(*this, where_ + " " + key + "[" + std::to_string(i) + "]", std::string(key) + "[]", (*json)[i]);
      if (inner.status_.ok()) read(inner);
      Take(inner);
    }
  }

  const std::string& where() const { return where_; }
  // Records a failure; Finish reports the first one.
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  // Call it for the outermost section only: it includes the errors of the others.
  Status Finish() {
    CheckKeys();
    if (unknown_key_.empty()) return Readable(status_);
    std::string sections;
    for (const std::string& section : root_->sections_of_[unknown_key_]) {
      sections += (sections.empty() ? "" : " or ") + (section.empty() ? "the top level" : "'" + section + "'");
    }
    return Readable(sections.empty() ? status_
                                     : InvalidData(status_.message(), "; '", unknown_key_, "' belongs in ", sections));
  }

 private:
  JsonSection(JsonSection& outer, std::string where, const std::string& key, const nlohmann::json& object)
      : JsonSection(std::move(where), object) {
    root_ = outer.root_;
    path_ = outer.path_.empty() ? key : outer.path_ + "." + key;
  }

  // Takes over the errors of `inner`, once it has been read.
  void Take(JsonSection& inner) {
    inner.CheckKeys();
    if (!status_.ok()) return;
    status_ = inner.status_;
    unknown_key_ = inner.unknown_key_;
  }

  void CheckKeys() {
    if (!status_.ok() || !object_.is_object()) return;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
      std::string allowed;
      for (const std::string& name : asked_) allowed += (allowed.empty() ? "" : ", ") + name;
      status_ = InvalidData(where_, " has the unknown key '", key, "', allowed are ", allowed);
      unknown_key_ = key;
      return;
    }
  }

  bool Has(const char* key) const { return object_.is_object() && object_.contains(key); }
  const nlohmann::json* Find(const char* key) {
    asked_.push_back(key);
    std::vector<std::string>& sections = root_->sections_of_[key];
    if (std::find(sections.begin(), sections.end(), path_) == sections.end()) sections.push_back(path_);
    return Has(key) ? &object_[key] : nullptr;
  }

  std::string where_;
  const nlohmann::json& object_;
  std::vector<std::string> asked_;
  Status status_;
  std::string unknown_key_;  // set if status_ reports an unknown key
  std::string path_;         // from the outermost section to this one: "training.optimizer"
  JsonSection* root_ = this;
  // for each key that was asked for; only the outermost section's is used
  std::map<std::string, std::vector<std::string>> sections_of_;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_JSON_SECTION_H_
