// Reads the steps of a tokenizer.json: normalizer, pre_tokenizer, decoder, post_processor. A known step becomes a step
// of the image; any other is refused by name. Internal to tokenizer_json.cc.
#ifndef WISP_TOOLS_CONVERT_TOKENIZER_STEPS_H_
#define WISP_TOOLS_CONVERT_TOKENIZER_STEPS_H_

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/status.h"
#include "tools/convert/tokenizer_image.h"

namespace wisp::convert {

// `name` begins every sentence. Null means no step at all.
Status ReadNormalizer(const std::string& name, const nlohmann::json& json, TokenizerParts& parts);
Status ReadSplitter(const std::string& name, const nlohmann::json& json, TokenizerParts& parts);
Status ReadDecoder(const std::string& name, const nlohmann::json& json, TokenizerParts& parts);
// Reads the template around a text.
Status ReadProcessor(const std::string& name, const nlohmann::json& json, TokenizerParts& parts);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_TOKENIZER_STEPS_H_
