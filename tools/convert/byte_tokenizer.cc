#include "tools/convert/byte_tokenizer.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/convert/tokenizer_json.h"

namespace wisp::convert {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

// Returns the UTF-8 of a code point below 0x800.
std::string Utf8(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// Byte-level BPE writes bytes that do not print as characters from U+0100 on, in their order.
std::string TokenizerJson() {
  nlohmann::json vocabulary = nlohmann::json::object();
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    vocabulary[Utf8(prints ? byte : next++)] = byte;
  }
  vocabulary[kEndOfText] = 256;
  const nlohmann::json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  return nlohmann::json{{"version", "1.0"},
                        {"added_tokens",
                         {{{"id", 256},
                           {"content", kEndOfText},
                           {"single_word", false},
                           {"lstrip", false},
                           {"rstrip", false},
                           {"normalized", false},
                           {"special", true}}}},
                        {"pre_tokenizer", byte_level},
                        {"decoder", byte_level},
                        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}}
      .dump();
}

}  // namespace

Result<std::vector<std::byte>> ByteTokenizerImage() {
  const std::string json = TokenizerJson(), config = nlohmann::json{{"eos_token", kEndOfText}}.dump();
  return TokenizerImage({.name = "bytes", .tokenizer_json = json, .tokenizer_config = config});
}

}  // namespace wisp::convert
