// Helpers that the readers of a tokenizer.json's steps share: members of an object, patterns, sequences. Internal to
// tokenizer_steps.cc, tokenizer_decoders.cc and tokenizer_json.cc.
#ifndef WISP_TOOLS_CONVERT_TOKENIZER_STEP_PARTS_H_
#define WISP_TOOLS_CONVERT_TOKENIZER_STEP_PARTS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "runtime/core/status.h"
#include "tools/convert/tokenizer_image.h"

namespace wisp::convert {

// Reads a member of an object. `value` does not change if the member is missing or null.
Status ReadMember(const std::string& where, const nlohmann::json& object, const char* key, bool& value);
Status ReadMember(const std::string& where, const nlohmann::json& object, const char* key, std::string& value);
Status ReadMember(const std::string& where, const nlohmann::json& object, const char* key, uint32_t& value);
// Returns null if the member is missing or null.
const nlohmann::json* Member(const nlohmann::json& object, const char* key);

template <typename Kind>
TokenizerStep MakeStep(Kind kind, uint32_t options = 0, std::string a = {}, std::string b = {}) {
  return {.kind = static_cast<uint32_t>(kind), .options = options, .a = std::move(a), .b = std::move(b)};
}

// The "pattern" of a step: {"String": text} or {"Regex": text}.
struct Pattern {
  bool regex = false;
  std::string text;
};
Status ReadPattern(const std::string& where, const nlohmann::json& object, Pattern& pattern);

// Calls one(json) for a step, or for each step of a Sequence in `list`. Sequences in sequences are rare and short.
using ReadOne = std::function<Status(const std::string& type, const nlohmann::json& step, bool last)>;
Status ReadSequence(const std::string& where, const nlohmann::json& steps, const char* list, const ReadOne& one);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_TOKENIZER_STEP_PARTS_H_
