// A strict reader of one flat JSON object, for plans and policies: strings, numbers, true and false.
//
// It refuses what RFC 8259 refuses, and also null, nested values, keys that appear twice, and strings that hold a zero
// character. Strings are well-formed UTF-8. The getters check types and ranges. NoOtherKeys() refuses keys that no
// getter asked for, so that a misspelt setting is an error. The writer of JSON is runtime/privacy/json.h.
//
//   WISP_ASSIGN_OR_RETURN(FlatJson plan, FlatJson::Parse(text, "plan.json", 1 << 16));
//   WISP_ASSIGN_OR_RETURN(const int64_t rounds, plan.Whole("rounds", 1, 100000));
//   WISP_ASSIGN_OR_RETURN(const double delta, plan.Number("delta", 0, 1));
//   WISP_RETURN_IF_ERROR(plan.NoOtherKeys());
//
// Errors are kInvalidData and sentences: plan.json: "rounds" is 0; allowed are whole numbers from 1 to 100000.
#ifndef WISP_RUNTIME_FLEET_FLAT_JSON_H_
#define WISP_RUNTIME_FLEET_FLAT_JSON_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace wisp {

class FlatJson {
 public:
  static constexpr size_t kMostKeys = 256;

  enum class Kind : uint8_t { kText, kNumber, kTruth };
  struct Entry {
    std::string key;
    Kind kind = Kind::kText;
    std::string text;  // a string's characters; a number as it is written; true or false
    double number = 0;
    int64_t whole = 0;
    bool is_whole = false;  // the number has neither point nor exponent and fits `whole`
    bool asked = false;
  };

  // `name` is what errors call the text: usually its file. `most_bytes` bounds the text.
  static Result<FlatJson> Parse(std::string_view text, std::string name, size_t most_bytes);

  // In the order of the text.
  const std::vector<Entry>& entries() const { return entries_; }
  // True if the key exists. Does not count as asking for it.
  bool Has(std::string_view key) const;

  // Each is an error if the key is missing, has another type, or a value outside of the range, whose ends are allowed.
  Result<std::string> Text(std::string_view key, size_t most_bytes);
  Result<double> Number(std::string_view key, double least, double most);
  Result<int64_t> Whole(std::string_view key, int64_t least, int64_t most);
  Result<bool> Truth(std::string_view key);
  // The index of the string among `names`.
  Result<size_t> Choice(std::string_view key, std::span<const std::string_view> names);

  // An error that names the first key that no getter asked for.
  Status NoOtherKeys() const;

 private:
  explicit FlatJson(std::string name) : name_(std::move(name)) {}
  // The entry of a kind, or an error that tells what is allowed.
  Result<const Entry*> Find(std::string_view key, Kind kind, std::string_view allowed);
  Status Refuse(const Entry& entry, std::string_view allowed) const;

  std::string name_;
  std::vector<Entry> entries_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_FLEET_FLAT_JSON_H_
