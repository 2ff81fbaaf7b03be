// Reads the keys of a config.json one by one: whole numbers, numbers, switches and words, each with a default if it is
// missing or null. config.h has their meaning.
//
//   Fields fields("m/config.json", object);
//   const uint32_t width = fields.Count("hidden_size", kMaxWidth);       // must be there
//   const bool tied = fields.Flag("tie_word_embeddings", true);
//   WISP_RETURN_IF_ERROR(fields.status());                               // the first that was wrong
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_FIELDS_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "tools/convert/unread_keys.h"

namespace wisp::convert::hugging_face {

// The most bytes of a JSON file.
inline constexpr size_t kMaxConfigBytes = 16 << 20;

// Parses a text that must be a JSON object. Returns kInvalidData if it is not JSON, too long, or not an object.
Result<nlohmann::json> ParseObject(const std::string& name, std::string_view text);

class Fields {
 public:
  // `object` must be a JSON object, and outlive this. `name` is the file's, for errors.
  Fields(std::string name, const nlohmann::json& object) : name_(std::move(name)), object_(object) {}

  const Status& status() const { return status_; }
  const std::string& name() const { return name_; }
  const ReadKeys& read() const { return read_; }  // keys that were asked for

  // Returns null if the key is missing or null.
  const nlohmann::json* Find(const char* key) const;
  // Returns true if the key is there, even if it is null.
  bool Has(const char* key) const {
    read_.insert(key);
    return object_.contains(key);
  }
  // Reads a number from 1 to `most`. Without `otherwise` the key must be there. After an error every number is 1.
  uint32_t Count(const char* key, uint32_t most, std::optional<uint32_t> otherwise = std::nullopt);
  // Reads a number from 0 to `most`, like Count.
  uint32_t CountFromZero(const char* key, uint32_t most, std::optional<uint32_t> otherwise = std::nullopt);
  double Number(const char* key, double otherwise);
  bool Flag(const char* key, bool otherwise);
  std::string Word(const char* key, const char* otherwise);

  // Refuses a switch that differs from the supported value.
  void RequireFlag(const char* key, bool supported, bool otherwise);
  // kUnsupported: "m/config.json: `key` is `found`, supported `supported`".
  void Refuse(const std::string& key, const std::string& found, const std::string& supported);
  void Fail(Status status);

 private:
  void WrongKind(const char* key, const nlohmann::json& found, const std::string& allowed);
  uint32_t CountBetween(const char* key, uint32_t least, uint32_t most, std::optional<uint32_t> otherwise);

  std::string name_;
  const nlohmann::json& object_;
  mutable ReadKeys read_;
  Status status_;
};

using convert::ShownJson;

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_FIELDS_H_
