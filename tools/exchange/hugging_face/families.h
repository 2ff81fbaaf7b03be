// The families of models of Hugging Face's transformers: which of their tensors is which parameter of ours, as tables.
// Reading follows them one way (tensors.h), writing the other (export.h). Not what config.json says: config.h.
//
//   for (const Row& row : BertFamily().rows) ...        // {kItemTable, {"embeddings.word_embeddings.weight"}}
#ifndef WISP_TOOLS_EXCHANGE_HUGGING_FACE_FAMILIES_H_
#define WISP_TOOLS_EXCHANGE_HUGGING_FACE_FAMILIES_H_

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp::exchange::hugging_face {

// What is done to a tensor. kTransposed: it is [in, out] (GPT-2's Conv1D), ours [out, in]. kPositions: a table of
// positions, of which rows before the first position and beyond the last one are dropped.
enum class How : uint8_t { kAsIs, kTransposed, kPositions };
// kInside: of the model without a head, whose names a model with one puts behind a prefix; kOutside: beside it.
enum class Place : uint8_t { kInside, kOutside };

struct Row {
  ParameterRole role;
  // "{b}" stands for the number of a block. Several are stacked, the rows of the first one first.
  std::array<const char*, 3> names;
  How how = How::kAsIs;
  Place place = Place::kInside;
};

// What must hold of a tensor's numbers before it is left out: nothing; 0, 1, 2 ...; a lower triangle of other numbers
// than 0; one number far below every score; what rope_theta gives; the numbers of the table of tokens.
enum class LeftOutCheck : uint8_t { kNone, kNumbered, kCausalMask, kMaskedScore, kFrequencies, kTable };

// A tensor that is no parameter here, and why. "{b}" is any number, '*' at the end any rest.
struct Ignored {
  const char* pattern;
  const char* reason;
  LeftOutCheck check = LeftOutCheck::kNone;
};

struct Family {
  const char* name;  // of --family
  std::span<const Row> rows;
  // Beside these, by the head: of HeadKind::kNextItem, kClasses and kEmbedding.
  std::array<std::span<const Row>, 3> heads;
  std::span<const Ignored> ignored;
  std::span<const char* const> prefixes;  // that may stand before names inside
};

const Family& BertFamily();  // ELECTRA's encoder too
const Family& RobertaFamily();
const Family& DistilBertFamily();
const Family& Gpt2Family();
const Family& LlamaFamily();  // Mistral too
const Family& Qwen2Family();

// The rows of a model with that head, in the order of the table.
std::vector<Row> RowsOf(const Family& family, HeadKind head);

// `pattern` with the number in place of "{b}".
std::string NameInBlock(const char* pattern, uint32_t block);

// The row that says why the tensor may be left out; null: none does. `name`: without a prefix.
const Ignored* FindIgnored(const Family& family, std::string_view name);

}  // namespace wisp::exchange::hugging_face

#endif  // WISP_TOOLS_EXCHANGE_HUGGING_FACE_FAMILIES_H_
