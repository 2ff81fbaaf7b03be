// The families of models in Hugging Face's transformers, as tables that map their tensors to our parameters. tensors.h
// reads by them, export.h writes by them. config.h reads config.json.
//
//   for (const Row& row : BertFamily().rows) ...        // {kItemTable, {"embeddings.word_embeddings.weight"}}
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_FAMILIES_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_FAMILIES_H_

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp::convert::hugging_face {

// How a tensor is converted. kTransposed: it is [in, out] (GPT-2's Conv1D), ours is [out, in]. kPositions: a table of
// positions, whose rows before the first position and beyond the last one are dropped.
enum class How : uint8_t { kAsIs, kTransposed, kPositions };
// kInside: the tensor belongs to the model without a head; a model with a head puts a prefix before its name. kOutside:
// it stands beside that model.
enum class Place : uint8_t { kInside, kOutside };

struct Row {
  ParameterRole role;
  // "{b}" stands for the number of a block. Several tensors are stacked, the rows of the first one first.
  std::array<const char*, 3> names;
  How how = How::kAsIs;
  Place place = Place::kInside;
};

// The check of a tensor's numbers before it is left out: no check; 0, 1, 2 ...; a lower triangle of numbers other than
// 0; one number far below every score; the frequencies of rope_theta; the numbers of the table of tokens.
enum class LeftOutCheck : uint8_t { kNone, kNumbered, kCausalMask, kMaskedScore, kFrequencies, kTable };

// A tensor that becomes no parameter here, and why. "{b}" is any number, '*' at the end any rest.
struct Ignored {
  const char* pattern;
  const char* reason;
  LeftOutCheck check = LeftOutCheck::kNone;
};

struct Family {
  const char* name;  // value of --family
  std::span<const Row> rows;
  // Rows beside these for each head: HeadKind::kNextItem, kClasses and kEmbedding.
  std::array<std::span<const Row>, 3> heads;
  std::span<const Ignored> ignored;
  std::span<const char* const> prefixes;  // prefixes that may stand before names inside
};

const Family& BertFamily();  // ELECTRA's encoder too
const Family& RobertaFamily();
const Family& DistilBertFamily();
const Family& Gpt2Family();
const Family& LlamaFamily();  // Mistral too
const Family& Qwen2Family();

// Returns the rows of a model with that head, in the order of the table.
std::vector<Row> GetRows(const Family& family, HeadKind head);

// `pattern` with the number in place of "{b}".
std::string NameInBlock(const char* pattern, uint32_t block);

// Finds the row that says why the tensor may be left out; null if no row does. `name` has no prefix.
const Ignored* FindIgnored(const Family& family, std::string_view name);

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_FAMILIES_H_
