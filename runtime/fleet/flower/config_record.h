// Flower's ConfigRecord: named values of a message. Wisp's messages have whole numbers, texts and bytes; others are
// refused.
//
//   ConfigRecord record;
//   record.SetText("task", "train").SetWhole("round", 7).SetBytes("update", update);
//   WISP_ASSIGN_OR_RETURN(const std::string_view update, record.Bytes("update", 1 << 20));
//
// Getters give an error (kInvalidData) if the value is missing, of another kind, or outside of what is allowed.
#ifndef WISP_RUNTIME_FLEET_FLOWER_CONFIG_RECORD_H_
#define WISP_RUNTIME_FLEET_FLOWER_CONFIG_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::fleet::flower {

class ConfigRecord {
 public:
  static constexpr size_t kMostValues = 64, kMostKeyBytes = 256;

  // Reads the body of an object. It must have no key twice.
  static Result<ConfigRecord> Decode(std::string_view body);
  // The bytes that Flower writes for the same values in the same order.
  std::string Encode() const;

  // Each key may be set once.
  ConfigRecord& SetText(std::string key, std::string text) { return Add(std::move(key), Kind::kText, std::move(text)); }
  ConfigRecord& SetBytes(std::string key, std::string bytes) {
    return Add(std::move(key), Kind::kBytes, std::move(bytes));
  }
  ConfigRecord& SetWhole(std::string key, int64_t number) { return Add(std::move(key), Kind::kWhole, {}, number); }

  // Views are valid as long as the record.
  Result<std::string_view> Text(std::string_view key, size_t most_bytes) const {
    return Sized(key, Kind::kText, most_bytes);
  }
  Result<std::string_view> Bytes(std::string_view key, size_t most_bytes) const {
    return Sized(key, Kind::kBytes, most_bytes);
  }
  Result<int64_t> Whole(std::string_view key, int64_t least, int64_t most) const;
  size_t size() const { return values_.size(); }

 private:
  enum class Kind : uint8_t { kWhole = 2, kText = 5, kBytes = 6 };  // the fields of Flower's ConfigRecordValue
  struct Value {
    std::string key;
    Kind kind;
    std::string bytes;  // also a text
    int64_t whole;
  };
  ConfigRecord& Add(std::string key, Kind kind, std::string bytes, int64_t whole = 0);
  static const char* Name(Kind kind);
  Result<const Value*> Find(std::string_view key, Kind kind) const;
  Result<std::string_view> Sized(std::string_view key, Kind kind, size_t most_bytes) const;

  std::vector<Value> values_;
};

}  // namespace wisp::fleet::flower

#endif  // WISP_RUNTIME_FLEET_FLOWER_CONFIG_RECORD_H_
