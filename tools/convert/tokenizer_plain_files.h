// Converts vocabularies without a tokenizer.json to an equivalent tokenizer.json. Internal to tokenizer_json.cc.
#ifndef WISP_TOOLS_CONVERT_TOKENIZER_PLAIN_FILES_H_
#define WISP_TOOLS_CONVERT_TOKENIZER_PLAIN_FILES_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace wisp::convert {

// Converts BERT's vocab.txt, a token on each line. `config` is tokenizer_config.json, or null.
Result<nlohmann::json> VocabularyToJson(const std::string& name, std::string_view vocabulary,
                                        const nlohmann::json& config);

// Converts the vocab.json and merges.txt of GPT-2 or RoBERTa.
Result<nlohmann::json> MergesToJson(const std::string& name, nlohmann::json vocabulary, std::string_view merges,
                                    const nlohmann::json& config);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_TOKENIZER_PLAIN_FILES_H_
