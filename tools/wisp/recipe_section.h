// How recipes are read: strictly, object by object, with a sentence for the first thing that is wrong.
#ifndef WISP_TOOLS_WISP_RECIPE_SECTION_H_
#define WISP_TOOLS_WISP_RECIPE_SECTION_H_

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/train/initialise.h"
#include "runtime/train/optimizer.h"

namespace wisp::tools {

using Json = nlohmann::json;

// Reads the keys of one object; Finish complains about those that nobody asked for.
class Section {
 public:
  Section(std::string where, const Json& object) : where_(std::move(where)), object_(object) {
    if (!object.is_object()) Fail(InvalidData(where_ + " is " + object.dump().substr(0, 40) + ", allowed is an object"));
  }

  // Numbers. `low` and `high` are included.
  template <class T>
  void Number(const char* key, T& value, double low, double high) {
    const Json* json = Find(key);
    if (json == nullptr) return;
    const bool whole = std::is_integral_v<T>;
    const bool type = whole ? json->is_number_integer() || json->is_number_unsigned() : json->is_number();
    if (!type || !(json->get<double>() >= low && json->get<double>() <= high)) {
      std::ostringstream allowed;
      allowed << (whole ? "a whole number" : "a number") << " from " << low << " to " << high;
      Fail(InvalidData(where_ + "." + key + " is " + json->dump().substr(0, 40) + ", allowed is " + allowed.str()));
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
    const Json* json = Find(key);
    if (json == nullptr) return;
    std::string allowed;
    for (const auto& [name, choice] : choices) {
      if (json->is_string() && json->get<std::string>() == name) {
        value = choice;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(name);
    }
    Fail(InvalidData(where_ + "." + key + " is " + json->dump().substr(0, 40) + ", allowed are " + allowed));
  }

  void Texts(const char* key, std::vector<std::string>& values) {
    const Json* json = Find(key);
    if (json == nullptr) return;
    bool good = json->is_array();
    for (size_t i = 0; good && i < json->size(); ++i) good = (*json)[i].is_string();
    if (!good) return Fail(InvalidData(where_ + "." + key + " is " + json->dump().substr(0, 40) + ", allowed is a list of texts"));
    values = json->get<std::vector<std::string>>();
  }

  void Numbers(const char* key, std::vector<double>& values) {
    const Json* json = Find(key);
    if (json == nullptr) return;
    bool good = json->is_array();
    for (size_t i = 0; good && i < json->size(); ++i) good = (*json)[i].is_number();
    if (!good) return Fail(InvalidData(where_ + "." + key + " is " + json->dump().substr(0, 40) + ", allowed is a list of numbers"));
    values = json->get<std::vector<double>>();
  }

  void Text(const char* key, std::string& value) {
    const Json* json = Find(key);
    if (json == nullptr) return;
    if (!json->is_string()) return Fail(InvalidData(where_ + "." + key + " is " + json->dump().substr(0, 40) + ", allowed is a text"));
    value = json->get<std::string>();
  }

  // Runs `read` on the object under `key`, if there is one.
  template <class Read>
  void Object(const char* key, Read&& read) {
    const Json* json = Find(key);
    if (json == nullptr) return;
    Section inner(where_ + (where_.ends_with(":") ? " " : ".") + key, *json);
    if (inner.status_.ok()) read(inner);
    Fail(inner.Finish());
  }

  Status Finish() {
    if (!status_.ok() || !object_.is_object()) return status_;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
      std::string allowed;
      for (const std::string& name : asked_) allowed += (allowed.empty() ? "" : ", ") + name;
      return InvalidData(where_ + " has the unknown key '" + key + "', allowed are " + allowed);
    }
    return status_;
  }

 private:
  bool Has(const char* key) const { return object_.is_object() && object_.contains(key); }
  const Json* Find(const char* key) {
    asked_.push_back(key);
    return Has(key) ? &object_[key] : nullptr;
  }
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  std::string where_;
  const Json& object_;
  std::vector<std::string> asked_;
  Status status_;
};

// Sections that several kinds of recipe have.
void ReadArchitecture(Section& section, Architecture& architecture);
void ReadInitialisation(Section& section, InitialisationOptions& options);
void ReadOptimizer(Section& section, OptimizerOptions& options);

// The JSON of a recipe's file.
Result<Json> ReadJson(const std::string& path);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_SECTION_H_
