// Keys of a folder's JSON files that change nothing here, each with its reason, and those that must be as they are.
// What is in no table is said by name: a setting that nobody has thought of is not passed over.
#ifndef WISP_TOOLS_EXCHANGE_HUGGING_FACE_CONFIG_KEYS_H_
#define WISP_TOOLS_EXCHANGE_HUGGING_FACE_CONFIG_KEYS_H_

#include <span>
#include <string>
#include <vector>

#include "tools/exchange/hugging_face/config_fields.h"
#include "tools/exchange/hugging_face/families.h"

namespace wisp::exchange::hugging_face {

// Once everything that is read of a config.json has been read: refuses by `fields` what would change the model, and
// adds a note for what is not followed.
void CheckOtherKeys(Fields& fields, const nlohmann::json& config, HeadKind head, std::vector<std::string>& notes);

// The same of a generation_config.json: how texts are drawn is an option of each call.
void SayGeneration(const std::string& name, const nlohmann::json& config, std::vector<std::string>& notes);

// Names of JSON files that a folder may have and that say nothing of the model.
std::span<const HarmlessKey> HarmlessFiles();

}  // namespace wisp::exchange::hugging_face

#endif  // WISP_TOOLS_EXCHANGE_HUGGING_FACE_CONFIG_KEYS_H_
