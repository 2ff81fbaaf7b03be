// Tables that reading and writing a config share: the supported model types and classes of transformers, and the keys
// under which their config.json has its sizes. Internal to config*.cc.
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_KINDS_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_KINDS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/convert/hugging_face/families.h"

namespace wisp::convert::hugging_face {

// The keys of a model type's sizes. Null: it has no such key.
struct SizeKeys {
  const char *width, *heads, *blocks, *inner, *positions, *activation, *epsilon;
  const char* default_activation;
  double default_epsilon;
};

struct ModelType {
  const char* name;  // value of "model_type"
  const Family& (*family)();
  SizeKeys keys;
};

struct ModelClass {
  const char* name;  // value in "architectures"
  const char* model_type;
  HeadKind head;
};

struct ActivationName {
  const char* name;
  ActivationKind kind;
};

// The first one of a kind is the one that is written.
std::span<const ModelType> ModelTypes();
std::span<const ModelClass> ModelClasses();  // the first one of a model type and head is written
std::span<const ActivationName> Activations();

const ModelType* FindModelType(std::string_view name);
// Returns a text such as "bert, electra, roberta".
template <class Rows>
std::string JoinNames(const Rows& rows) {
  std::string names;
  for (const auto& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_CONFIG_KINDS_H_
