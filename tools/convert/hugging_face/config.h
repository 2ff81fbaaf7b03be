// Converts the config.json of a Hugging Face folder to an architecture, and back. Tensors are read in tensors.h;
// settings of other files, pooling and the separator, in folder.h.
//
//   WISP_ASSIGN_OR_RETURN(Description d, ReadConfig("m/config.json", text, {}));
//   ListParameters(d.architecture) ...                       // d.family names their tensors
//
// A key that changes the model's results is read or refused by name. Keys that are known to change nothing stand in
// config_keys.cc; any other key gets a note.
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/architecture.h"
#include "tools/convert/hugging_face/families.h"

namespace wisp::convert::hugging_face {

struct ConfigOptions {
  uint32_t max_length = 0;  // positions to keep; 0: all
};

// An encoder's head reads the first position, without a pooler, unless the caller changes it.
struct Description {
  const Family* family = nullptr;
  std::string model_class;               // the class in transformers: "BertModel"
  Architecture architecture;             // has passed Validate
  uint32_t num_positions = 0;            // rows of the file's position table; 0: no table
  uint32_t first_position = 0;           // rows of it that come before the first position
  bool parts_by_separator = false;       // a token's type depends on the number of separators before it
  std::vector<std::string> class_names;  // for a head with classes
  std::vector<std::string> notes;        // for people: what was cut
};

// Returns kInvalidData if it is not JSON, or a key has the wrong kind or is out of range; kUnsupported for a family, a
// class or a switch that the runtime does not have; kInvalidArgument if the options do not fit. Sentences start with
// `name`.
Result<Description> ReadConfig(const std::string& name, std::string_view text, const ConfigOptions& options);

// Finds "bert", "roberta", ...; kInvalidArgument names the families that there are.
Result<const Family*> FamilyNamed(const std::string& name);

// Names the families that have a model with such a head: "bert, roberta".
std::string FamiliesFor(HeadKind head);

// Writes the config.json that ReadConfig reads as this architecture, without pooling and separator. Returns
// kUnsupported if the family cannot express a part of it. `name` is the model's, for errors.
Result<std::string> WriteConfig(const std::string& name, const Family& family, const Architecture& architecture,
                                const std::vector<std::string>& class_names);

// The class in transformers of such a config, and the first position of its table.
struct Written {
  const char* model_class;
  uint32_t first_position;
};
Written WrittenAs(const Family& family, HeadKind head);

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_H_
