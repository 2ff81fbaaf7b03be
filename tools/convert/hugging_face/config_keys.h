// Tables of the keys of a folder's JSON files: those that change nothing here, each with its reason, and those that
// must have one value. A key in no table gets a note by name, so that no unknown setting is passed over.
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_KEYS_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_KEYS_H_

#include <span>
#include <string>
#include <vector>

#include "tools/convert/hugging_face/config_fields.h"
#include "tools/convert/hugging_face/families.h"

namespace wisp::convert::hugging_face {

// Call it after everything has been read from a config.json. It refuses, by `fields`, keys that would change the model,
// and adds a note for keys that are not followed.
void CheckOtherKeys(Fields& fields, const nlohmann::json& config, HeadKind head, std::vector<std::string>& notes);

// Adds notes for a generation_config.json. Its sampling settings are not followed; they are options of each call.
void SayGeneration(const std::string& name, const nlohmann::json& config, std::vector<std::string>& notes);

// Names of JSON files that a folder may have and that do not concern the model.
std::span<const HarmlessKey> HarmlessFiles();

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_KEYS_H_
