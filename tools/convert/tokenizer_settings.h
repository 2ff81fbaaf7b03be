// The files beside a tokenizer.json or a vocabulary: settings that change the tokenizer, and the meanings of tokens.
// They are followed as in transformers, or get a note. Internal to tokenizer_json.cc.
#ifndef WISP_TOOLS_CONVERT_TOKENIZER_SETTINGS_H_
#define WISP_TOOLS_CONVERT_TOKENIZER_SETTINGS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/status.h"
#include "tools/convert/tokenizer_image.h"
#include "tools/convert/tokenizer_json.h"

namespace wisp::convert {

// JSON objects; null for a missing file.
struct TokenizerSettings {
  nlohmann::json tokenizer_config, special_tokens_map, added_tokens, generation_config, config;
};

// Writes settings of tokenizer_config.json that replace those of tokenizer.json into `root`: the steps of BERT's
// normaliser, a space before the text, added tokens. Returns kInvalidData if one has the wrong kind. Call it before the
// parts are made.
Status FollowSettings(const std::string& name, const TokenizerSettings& settings, nlohmann::json& root,
                      std::vector<std::string>& notes);

// Finds the special tokens, the tokens that end a text, and the template if add_bos_token or add_eos_token ask for
// another one. `ids` maps each token to its id. Returns kInvalidData if there are more ends than an image holds. Call
// it after the parts are made.
Status FindMeanings(const std::string& name, const TokenizerSettings& settings,
                    const std::unordered_map<std::string, int32_t>& ids, TokenizerParts& parts,
                    TokenizerReport& report);

// Reports the keys of tokenizer_config.json and special_tokens_map.json that nothing follows, and the longest length of
// a text.
void SaySettings(const std::string& name, const TokenizerSettings& settings, TokenizerReport& report);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_TOKENIZER_SETTINGS_H_
