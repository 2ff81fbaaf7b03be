// What the config.json of a Hugging Face folder says, as an architecture; and back. Not the tensors (tensors.h), and
// not what other files of the folder add, pooling and the separator (folder.h).
//
//   WISP_ASSIGN_OR_RETURN(Description d, ReadConfig("m/config.json", text, {}));
//   ParametersOf(d.architecture) ...                       // d.family names their tensors
//
// A key that changes what the model computes is read or refused by name. Of the others those that are known to change
// nothing stand in config_keys.cc; any further one is said in the notes.
#ifndef WISP_TOOLS_EXCHANGE_HUGGING_FACE_CONFIG_H_
#define WISP_TOOLS_EXCHANGE_HUGGING_FACE_CONFIG_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/architecture.h"
#include "tools/exchange/hugging_face/families.h"

namespace wisp::exchange::hugging_face {

struct ConfigOptions {
  uint32_t max_length = 0;  // positions to keep; 0: all
};

// An encoder's head reads the first position, without a pooler, until somebody says otherwise.
struct Description {
  const Family* family = nullptr;
  std::string model_class;               // of transformers: "BertModel"
  Architecture architecture;             // has passed Validate
  uint32_t num_positions = 0;            // rows of the file's position table; 0: there is none
  uint32_t first_position = 0;           // rows of it that come before the first position
  bool parts_by_separator = false;       // a token's type follows from the separators before it
  std::vector<std::string> class_names;  // of a head of classes
  std::vector<std::string> notes;        // for people: what was cut
};

// kInvalidData: not JSON, a key of the wrong kind or out of range. kUnsupported: a family, a class or a switch that the
// runtime does not have. kInvalidArgument: options that do not fit. Sentences start with `name`.
Result<Description> ReadConfig(const std::string& name, std::string_view text, const ConfigOptions& options);

// "bert", "roberta", ...; kInvalidArgument names those that there are.
Result<const Family*> FamilyNamed(const std::string& name);

// Names of those that have a model with such a head: "bert, roberta".
std::string FamiliesFor(HeadKind head);

// The config.json that ReadConfig reads as this architecture, pooling and separator aside. kUnsupported: the family has
// no way to say something of it. `name`: of the model, for errors.
Result<std::string> WriteConfig(const std::string& name, const Family& family, const Architecture& architecture,
                                const std::vector<std::string>& class_names);

// The class of transformers that such a config is of, and the first position of its table.
struct Written {
  const char* model_class;
  uint32_t first_position;
};
Written WrittenAs(const Family& family, HeadKind head);

}  // namespace wisp::exchange::hugging_face

#endif  // WISP_TOOLS_EXCHANGE_HUGGING_FACE_CONFIG_H_
