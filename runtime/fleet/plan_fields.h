// The fields of a file of flat JSON, listed once: what writes, reads and checks them are visitors of one list.
//
//   template <class Fields, class Policy>
//   Status VisitFields(Policy& p, Fields& fields) {
//     WISP_RETURN_IF_ERROR(fields.Number("cohort", p.cohort, {1, 1e9}));
//     return fields.Word("part", p.part, kPartNames);
//   }
#ifndef WISP_RUNTIME_FLEET_PLAN_FIELDS_H_
#define WISP_RUNTIME_FLEET_PLAN_FIELDS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/decimal.h"
#include "runtime/core/first_characters.h"
#include "runtime/fleet/flat_json.h"
#include "runtime/core/status.h"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"

namespace wisp::fleet {

struct Range {
  double least = 0, most = 0;
  bool Has(double value) const { return value >= least && value <= most; }  // false for NaN
};

// A number in a sentence: whole ones with all of their digits.
inline std::string InWords(double number) {
  if (number == std::floor(number) && std::abs(number) < 0x1p53) return std::to_string(static_cast<int64_t>(number));
  return privacy::DoubleText(number);
}

inline Status RefuseNumber(const std::string& source, const char* name, const std::string& value, Range range) {
  return InvalidArgument(source, ": ", name, " is ", value, ", allowed is ", InWords(range.least), " to ",
                         InWords(range.most));
}

// The shortest decimal that is this float when it is read as a double and rounded.
inline double ShortestDouble(float number) {
  for (int digits = 1; digits <= 9; ++digits) {
    char text[kDecimalBytes];
    const char* end = WriteDecimal(text, static_cast<double>(number), digits);
    double read = 0;
    if (ReadDecimal(text, end, read).ec == std::errc() && static_cast<float>(read) == number) return read;
  }
  return static_cast<double>(number);
}

class FieldWriter {
 public:
  FieldWriter() { json_.BeginObject(); }

  template <class T>
  Status Number(const char* name, const T& value, Range) {
    json_.Key(name);
    if constexpr (std::unsigned_integral<T>) {
      json_.Value(static_cast<uint64_t>(value));
    } else if constexpr (std::same_as<T, float>) {
      json_.Value(ShortestDouble(value));
    } else {
      json_.Value(value);
    }
    return OkStatus();
  }
  template <class T, size_t kCount>
  Status Word(const char* name, const T& value, const std::pair<const char*, T> (&names)[kCount]) {
    for (const auto& [word, means] : names) {
      if (means == value) json_.Key(name).Value(word);
    }
    return OkStatus();
  }
  // Several of the names, with commas between.
  template <class T, size_t kCount>
  Status Words(const char* name, const std::vector<T>& values, const std::pair<const char*, T> (&names)[kCount]) {
    std::string text;
    for (const auto& [word, means] : names) {
      if (std::find(values.begin(), values.end(), means) == values.end()) continue;
      text += (text.empty() ? "" : ",") + std::string(word);
    }
    return Text(name, text);
  }
  Status Text(const char* name, const std::string& value) {
    json_.Key(name).Value(value);
    return OkStatus();
  }
  Status Bool(const char* name, const bool& value) {
    json_.Key(name).Value(value);
    return OkStatus();
  }

  std::string Take() { return json_.EndObject().Take(); }

 private:
  privacy::JsonWriter json_;
};

// Reads what FieldWriter writes. Errors are FlatJson's.
class FieldReader {
 public:
  static constexpr size_t kMostTextBytes = 4096;

  FieldReader(FlatJson& json, const std::string& source) : json_(json), source_(source) {}

  template <class T>
  Status Number(const char* name, T& value, Range range) {
    if constexpr (std::unsigned_integral<T>) {
      WISP_ASSIGN_OR_RETURN(const int64_t whole,
                            json_.Whole(name, static_cast<int64_t>(range.least), static_cast<int64_t>(range.most)));
      value = static_cast<T>(whole);
    } else {
      WISP_ASSIGN_OR_RETURN(const double number, json_.Number(name, range.least, range.most));
      value = static_cast<T>(number);
    }
    return OkStatus();
  }
  template <class T, size_t kCount>
  Status Word(const char* name, T& value, const std::pair<const char*, T> (&names)[kCount]) {
    std::array<std::string_view, kCount> words;
    for (size_t i = 0; i < kCount; ++i) words[i] = names[i].first;
    WISP_ASSIGN_OR_RETURN(const size_t index, json_.Choice(name, words));
    value = names[index].second;
    return OkStatus();
  }
  template <class T, size_t kCount>
  Status Words(const char* name, std::vector<T>& values, const std::pair<const char*, T> (&names)[kCount]) {
    WISP_ASSIGN_OR_RETURN(const std::string text, json_.Text(name, kMostTextBytes));
    std::string allowed;
    for (const auto& named : names) allowed += (allowed.empty() ? "" : ", ") + std::string(named.first);
    for (std::string_view rest = text;;) {
      const std::string_view word = rest.substr(0, rest.find(','));
      const auto* const found =
          std::find_if(std::begin(names), std::end(names), [word](const auto& named) { return named.first == word; });
      if (found == std::end(names) || std::find(values.begin(), values.end(), found->second) != values.end()) {
        return InvalidData(source_, ": \"", name, "\" is \"", OneLine(std::string(FirstCharacters(text, 40))),
                           "\"; allowed are some of ", allowed, ", each once, with commas between");
      }
      values.push_back(found->second);
      if (word.size() == rest.size()) return OkStatus();
      rest.remove_prefix(word.size() + 1);
    }
  }
  Status Text(const char* name, std::string& value) {
    WISP_ASSIGN_OR_RETURN(value, json_.Text(name, kMostTextBytes));
    return OkStatus();
  }
  Status Bool(const char* name, bool& value) {
    WISP_ASSIGN_OR_RETURN(value, json_.Truth(name));
    return OkStatus();
  }

 private:
  FlatJson& json_;
  const std::string& source_;
};

class FieldChecker {
 public:
  explicit FieldChecker(std::string source) : source_(std::move(source)) {}

  template <class T>
  Status Number(const char* name, const T& value, Range range) {
    const auto number = static_cast<double>(value);
    return range.Has(number) ? OkStatus() : RefuseNumber(source_, name, InWords(number), range);
  }
  template <class T, size_t kCount>
  Status Word(const char*, const T&, const std::pair<const char*, T> (&)[kCount]) {
    return OkStatus();
  }
  template <class T, size_t kCount>
  Status Words(const char* name, const std::vector<T>& values, const std::pair<const char*, T> (&)[kCount]) {
    return values.empty() ? InvalidArgument(source_, ": ", name, " is empty, allowed is one or more") : OkStatus();
  }
  Status Text(const char*, const std::string&) { return OkStatus(); }
  Status Bool(const char*, const bool&) { return OkStatus(); }

 private:
  std::string source_;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_PLAN_FIELDS_H_
