// What stands beside a tokenizer.json or a vocabulary: settings that change what the tokenizer does, and which token
// has which meaning. Followed as transformers follows it, or said. Internal to tokenizer_json.cc.
#ifndef WISP_TOOLS_EXCHANGE_TOKENIZER_SETTINGS_H_
#define WISP_TOOLS_EXCHANGE_TOKENIZER_SETTINGS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/status.h"
#include "tools/exchange/tokenizer_image.h"
#include "tools/exchange/tokenizer_json.h"

namespace wisp::exchange {

// Objects; null for a file that there is not.
struct TokenizerSettings {
  nlohmann::json tokenizer_config, special_tokens_map, added_tokens, generation_config, config;
};

// Settings of tokenizer_config.json that take the place of those of tokenizer.json are written into `root`: what BERT's
// normaliser does, a space before the text, added tokens. kInvalidData: one of the wrong kind. Before the parts are
// made.
Status FollowSettings(const std::string& name, const TokenizerSettings& settings, nlohmann::json& root,
                      std::vector<std::string>& notes);

// Special tokens, the tokens that end a text, and the template where add_bos_token or add_eos_token ask for another
// one. `ids`: of each token. kInvalidData: more ends than an image holds. After the parts are made.
Status FindMeanings(const std::string& name, const TokenizerSettings& settings,
                    const std::unordered_map<std::string, int32_t>& ids, TokenizerParts& parts,
                    TokenizerReport& report);

// The keys of tokenizer_config.json and special_tokens_map.json that nothing follows, and how long texts may be.
void SaySettings(const std::string& name, const TokenizerSettings& settings, TokenizerReport& report);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_TOKENIZER_SETTINGS_H_
