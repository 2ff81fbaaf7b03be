#include "tools/convert/hugging_face/config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/convert/hugging_face/config_fields.h"
#include "tools/convert/hugging_face/config_keys.h"
#include "tools/convert/hugging_face/config_kinds.h"
#include "tools/convert/safetensors.h"

namespace wisp::convert::hugging_face {
namespace {

using Json = nlohmann::json;

// The state of reading: values that are needed on the way, beside the description itself.
struct Reading {
  Fields& fields;
  const ModelType& type;
  Description& out;
};

// Finds the class by "architectures"; if that is missing, it is the first class of the model type.
const ModelClass* MatchClass(Fields& fields, const ModelType& type) {
  const std::string_view model_type = type.name;
  const Json* named = fields.Find("architectures");
  std::string allowed;
  for (const ModelClass& c : ModelClasses()) {
    if (model_type != c.model_type) continue;
    if (named == nullptr) return &c;
    if (named->is_array() && named->size() == 1 && (*named)[0] == c.name) return &c;
    allowed += (allowed.empty() ? "" : ", ") + std::string(c.name);
  }
  const bool single = named->is_array() && named->size() == 1 && (*named)[0].is_string();
  fields.Refuse("architectures", single ? ShownJson((*named)[0]) : ShownJson(*named),
                "of model_type " + std::string(type.name) + " is a list of one of " + allowed);
  return nullptr;
}

ActivationKind ReadActivation(Fields& fields, const SizeKeys& keys) {
  const std::string word = fields.Word(keys.activation, keys.default_activation);
  for (const ActivationName& a : Activations()) {
    if (word == a.name) return a.kind;
  }
  fields.Refuse(keys.activation, ShownJson(word), "are " + JoinNames(Activations()));
  return ActivationKind::kGelu;
}

float ReadEpsilon(Fields& fields, const SizeKeys& keys) {
  const double epsilon =
      keys.epsilon == nullptr ? keys.default_epsilon : fields.Number(keys.epsilon, keys.default_epsilon);
  return static_cast<float>(epsilon);
}

// Reads sizes, norms and the activation, which every family has. All blocks are alike.
BlockSpec ReadSizes(Reading& r) {
  Fields& f = r.fields;
  const SizeKeys& keys = r.type.keys;
  Architecture& a = r.out.architecture;
  a.num_items = f.Count("vocab_size", kMaxItems);
  a.width = f.Count(keys.width, kMaxWidth);
  BlockSpec block;
  block.norm_epsilon = ReadEpsilon(f, keys);
  block.attention.num_heads = f.Count(keys.heads, kMaxWidth);
  block.attention.num_kv_heads = block.attention.num_heads;
  block.attention.head_width = std::max(1u, a.width / block.attention.num_heads);
  block.feed_forward.activation = ReadActivation(f, keys);
  return block;
}

void RequireHeadsDivide(Reading& r, const BlockSpec& block) {
  const Architecture& a = r.out.architecture;
  if (a.width % block.attention.num_heads == 0) return;
  r.fields.Fail(InvalidData(r.fields.name(), ": ", r.type.keys.heads, " is ", block.attention.num_heads,
                            ", which does not divide ", r.type.keys.width, " ", a.width));
}

void SetBlocks(Reading& r, const BlockSpec& block) {
  r.out.architecture.blocks.assign(r.fields.Count(r.type.keys.blocks, kMaxBlocks), block);
}

// Sets a table whose rows before `first` do not stand for positions.
void SetPositions(Reading& r, uint32_t first) {
  constexpr uint32_t kMostRows = 1u << 24;
  r.out.num_positions = r.fields.Count(r.type.keys.positions, kMostRows);
  r.out.first_position = first;
  if (r.out.num_positions <= first) {
    r.fields.Fail(InvalidData(r.fields.name(), ": ", r.type.keys.positions, " is ", r.out.num_positions,
                              ", allowed is more than ", first, ", the rows that stand for no position"));
    return;
  }
  r.out.architecture.max_length = r.out.num_positions - first;
}

// Adds notes on names that may mislead: names that are only numbers other than those of their classes, and other
// numbers in label2id.
void SayNames(Reading& r) {
  const Json* numbers = r.fields.Find("label2id");
  const std::vector<std::string>& names = r.out.class_names;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_number = !names[i].empty() && names[i].find_first_not_of("0123456789") == std::string::npos;
    const auto note = [&](const std::string& what) {
      r.out.notes.push_back(r.fields.name() + ": class " + std::to_string(i) + " is called " + Shown(names[i]) + what);
    };
    if (is_number && names[i] != std::to_string(i)) return note(": labels that are numbers are names here, not places");
    const auto found = numbers != nullptr && numbers->is_object() ? numbers->find(names[i]) : Json::const_iterator();
    if (numbers != nullptr && numbers->is_object() && (found == numbers->end() || *found != i))
      return note(" in id2label, which is followed; label2id says otherwise");
  }
}

void ReadClasses(Reading& r) {
  Fields& f = r.fields;
  if (const std::string problem = f.Word("problem_type", "single_label_classification");
      problem != "single_label_classification")
    f.Refuse("problem_type", ShownJson(problem), "is single_label_classification");
  std::vector<std::string>& names = r.out.class_names;
  const uint32_t count = f.Count("num_labels", kMaxClasses, 2);  // transformers' default
  for (uint32_t i = 0; i < count; ++i) names.push_back("LABEL_" + std::to_string(i));
  if (const Json* labels = f.Find("id2label")) {
    names.clear();
    for (size_t i = 0; labels->is_object() && i < labels->size(); ++i) {
      const auto label = labels->find(std::to_string(i));
      if (label == labels->end() || !label->is_string()) break;
      names.push_back(label->get<std::string>());
    }
    if (!labels->is_object() || names.size() != labels->size() || names.size() > kMaxClasses)
      f.Fail(InvalidData(f.name(), ": id2label is no object of a text for each class from \"0\" on, at most ",
                         kMaxClasses));
    if (f.Find("num_labels") != nullptr && count != names.size())
      r.out.notes.push_back(f.name() + ": num_labels is " + std::to_string(count) + ", id2label has " +
                            std::to_string(names.size()) + " classes, which are taken");
  }
  SayNames(r);
  if (names.size() < 2) f.Refuse("id2label", "of " + std::to_string(names.size()) + " classes", "are 2 and more");
  r.out.architecture.head.num_classes = static_cast<uint32_t>(names.size());
}

void SetPooledHead(Reading& r, HeadKind kind) {
  HeadSpec& head = r.out.architecture.head;
  head.kind = kind;
  const Pooler pooler = r.out.family == &DistilBertFamily() ? Pooler::kRelu : Pooler::kTanh;
  head.pooler = kind == HeadKind::kClasses ? pooler : Pooler::kNone;
  if (kind == HeadKind::kClasses) ReadClasses(r);
}

// Reads BERT, ELECTRA, RoBERTa and XLM-RoBERTa: blocks with a norm after each part.
void ReadBert(Reading& r, HeadKind kind) {
  Fields& f = r.fields;
  Architecture& a = r.out.architecture;
  const bool roberta = r.out.family == &RobertaFamily();
  f.RequireFlag("is_decoder", false, false);
  f.RequireFlag("add_cross_attention", false, false);
  if (const std::string kind_of = f.Word("position_embedding_type", "absolute"); kind_of != "absolute")
    f.Refuse("position_embedding_type", ShownJson(kind_of), "is absolute");
  BlockSpec block = ReadSizes(r);
  RequireHeadsDivide(r, block);
  // This is ELECTRA's default; the others have no such key.
  const bool electra = std::string_view(r.type.name) == "electra";
  if (const uint32_t width = f.Count("embedding_size", kMaxWidth, electra ? 128 : a.width); width != a.width)
    f.Refuse("embedding_size", std::to_string(width), "is hidden_size, " + std::to_string(a.width));
  block.norm = NormPlacement::kPost;
  block.feed_forward.inner_width = f.Count(r.type.keys.inner, 4 * kMaxWidth);
  a.attend = Attend::kAll;
  a.embedding_norm_epsilon = block.norm_epsilon;
  a.token_types.count = f.Count("type_vocab_size", kMaxTokenTypes, 2);
  r.out.parts_by_separator = !roberta && a.token_types.count > 1;
  SetBlocks(r, block);
  SetPositions(r, roberta ? f.CountFromZero("pad_token_id", kMaxItems, 1) + 1 : 0);
  SetPooledHead(r, kind);
}

void ReadDistilBert(Reading& r, HeadKind kind) {
  Architecture& a = r.out.architecture;
  BlockSpec block = ReadSizes(r);
  RequireHeadsDivide(r, block);
  block.norm = NormPlacement::kPost;
  block.feed_forward.inner_width = r.fields.Count(r.type.keys.inner, 4 * kMaxWidth);
  a.attend = Attend::kAll;
  a.embedding_norm_epsilon = block.norm_epsilon;
  SetBlocks(r, block);
  SetPositions(r, 0);
  SetPooledHead(r, kind);
}

void ReadTied(Reading& r, bool otherwise) {
  const bool tied = r.fields.Flag("tie_word_embeddings", otherwise);
  r.out.architecture.head.output_table = tied ? OutputTable::kTied : OutputTable::kUntied;
}

void ReadGpt2(Reading& r) {
  Fields& f = r.fields;
  Architecture& a = r.out.architecture;
  f.RequireFlag("add_cross_attention", false, false);
  f.RequireFlag("scale_attn_weights", true, true);
  f.RequireFlag("scale_attn_by_inverse_layer_idx", false, false);
  BlockSpec block = ReadSizes(r);
  RequireHeadsDivide(r, block);
  block.feed_forward.inner_width = f.Count(r.type.keys.inner, 4 * kMaxWidth, 4 * a.width);
  a.final_norm_epsilon = block.norm_epsilon;
  SetBlocks(r, block);
  SetPositions(r, 0);
  ReadTied(r, true);
}

// Returns the base of the rotation, from "rope_theta" in older configs or "rope_parameters" in newer ones.
float ReadRotaryBase(Reading& r) {
  constexpr HarmlessKey kScalingKeys[] = {{"factor", "of scalings"},
                                          {"original_max_position_embeddings", "of scalings"},
                                          {"attention_factor", "of scalings"}};
  Fields& f = r.fields;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* found = f.Find(key);
    if (found == nullptr) continue;
    if (!found->is_object()) {
      f.Refuse(key, ShownJson(*found), "is an object or null");
      return 0;
    }
    const char* word = found->contains("rope_type") ? "rope_type" : "type";
    Fields inner(f.name() + ": " + key, *found);
    if (const std::string type = inner.Word(word, "default"); type != "default")
      inner.Refuse(word, ShownJson(type), "is default: rotary positions without a scaling");
    if (inner.Number("partial_rotary_factor", 1) != 1) inner.Refuse("partial_rotary_factor", "another", "is 1");
    for (const auto& [part, value] : found->items()) {
      if (value.is_structured()) inner.Refuse(part, ShownJson(value), "are numbers and words for all blocks alike");
    }
    const double base = inner.Number("rope_theta", 0);
    SayUnread(inner.name(), *found, inner.read(), kScalingKeys, r.out.notes);
    f.Fail(inner.status());
    if (base != 0) return static_cast<float>(base);
  }
  if (f.Number("partial_rotary_factor", 1) != 1) f.Refuse("partial_rotary_factor", "another", "is 1");
  return static_cast<float>(f.Number("rope_theta", 10000));
}

constexpr const char *kFull = "full_attention", *kSliding = "sliding_attention";

// Returns true if block `index` has the window. In Qwen2 these are the blocks that layer_types names, or those from
// max_window_layers on.
bool IsSliding(Fields& f, const Json* layers, size_t index, uint32_t first) {
  if (layers == nullptr) return index >= first;
  if (layers->is_array() && index < layers->size() && ((*layers)[index] == kFull || (*layers)[index] == kSliding))
    return (*layers)[index] == kSliding;
  f.Refuse("layer_types", ShownJson(*layers),
           "is a list of a word for each block, " + std::string(kFull) + " or " + kSliding);
  return false;
}

// Reads the window of Mistral and Qwen2: a position sees itself and the positions before it, together as many as the
// window.
void ReadWindow(Reading& r) {
  Fields& f = r.fields;
  constexpr uint32_t kMost = 1u << 30, kDefault = 4096, kDefaultFirst = 28;
  const bool mistral = std::string_view(r.type.name) == "mistral";
  if (!mistral && !f.Flag("use_sliding_window", false)) return;
  // Null means no window; if the key is missing, transformers takes its default.
  const uint32_t window = f.CountFromZero("sliding_window", kMost, f.Has("sliding_window") ? 0 : kDefault);
  const uint32_t first = mistral ? 0 : f.CountFromZero("max_window_layers", kMost, kDefaultFirst);
  const Json* layers = mistral ? nullptr : f.Find("layer_types");
  std::vector<BlockSpec>& blocks = r.out.architecture.blocks;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (IsSliding(f, layers, i, first)) blocks[i].attention.window = window;
  }
}

// Reads Llama, Mistral and Qwen2.
void ReadLlama(Reading& r) {
  Fields& f = r.fields;
  Architecture& a = r.out.architecture;
  const bool llama = std::string_view(r.type.name) == "llama";
  BlockSpec block = ReadSizes(r);
  AttentionSpec& attention = block.attention;
  if (r.out.family == &LlamaFamily()) f.RequireFlag("attention_bias", false, false);
  f.RequireFlag("mlp_bias", false, false);
  attention.num_kv_heads =
      f.Count("num_key_value_heads", kMaxWidth, llama ? std::optional(attention.num_heads) : std::nullopt);
  if (f.Find("head_dim") == nullptr) RequireHeadsDivide(r, block);
  attention.head_width = f.Count("head_dim", kMaxWidth, attention.head_width);
  attention.rotary = {.width = attention.head_width, .base = ReadRotaryBase(r)};
  block.norm_kind = NormKind::kRms;
  block.biases = r.out.family == &Qwen2Family() ? Biases::kQkv : Biases::kNone;
  block.feed_forward.inner_width = f.Count(r.type.keys.inner, 4 * kMaxWidth);
  block.feed_forward.gated = true;
  a.position_table = PositionTable::kNone;
  a.final_norm_epsilon = block.norm_epsilon;
  a.final_norm_kind = NormKind::kRms;
  constexpr uint32_t kMostPositions = 1u << 30;
  a.max_length = f.Count(r.type.keys.positions, kMostPositions);
  SetBlocks(r, block);
  ReadTied(r, false);
  ReadWindow(r);
}

// Cuts the number of positions to the options and to our own limit.
Status CutLength(const ConfigOptions& options, Reading& r) {
  uint32_t& length = r.out.architecture.max_length;
  if (options.max_length > length)
    return InvalidArgument("--max-length is ", options.max_length, ", the model has ", length, " positions");
  if (options.max_length > 0) length = options.max_length;
  if (length > kMaxLength) {
    r.out.notes.push_back("max_length is " + std::to_string(kMaxLength) + ", the most there is; the model has " +
                          std::to_string(length) + " positions");
    length = kMaxLength;
  }
  // A window of all positions equals no window.
  for (BlockSpec& block : r.out.architecture.blocks) {
    if (block.attention.window >= length) block.attention.window = 0;
  }
  return OkStatus();
}

void ReadFamily(Reading& r, HeadKind head) {
  const Family* family = r.out.family;
  if (family == &BertFamily() || family == &RobertaFamily()) return ReadBert(r, head);
  if (family == &DistilBertFamily()) return ReadDistilBert(r, head);
  if (family == &Gpt2Family()) return ReadGpt2(r);
  ReadLlama(r);
}

}  // namespace

Result<Description> ReadConfig(const std::string& name, std::string_view text, const ConfigOptions& options) {
  WISP_ASSIGN_OR_RETURN(const Json json, ParseObject(name, text));
  Fields fields(name, json);
  const std::string type_name = fields.Word("model_type", "");
  WISP_RETURN_IF_ERROR(fields.status());
  const ModelType* type = FindModelType(type_name);
  if (type == nullptr) {
    return Unsupported(name, ": model_type is ", (type_name.empty() ? "missing" : Shown(type_name)), ", supported are ",
                       JoinNames(ModelTypes()));
  }
  Description out{.family = &type->family()};
  const ModelClass* model_class = MatchClass(fields, *type);
  WISP_RETURN_IF_ERROR(fields.status());
  out.model_class = model_class->name;
  Reading reading{.fields = fields, .type = *type, .out = out};
  ReadFamily(reading, model_class->head);
  CheckOtherKeys(fields, json, model_class->head, out.notes);
  WISP_RETURN_IF_ERROR(fields.status());
  WISP_RETURN_IF_ERROR(CutLength(options, reading));
  if (const Status status = Validate(out.architecture); !status.ok()) return InvalidData(name, ": ", status.message());
  return out;
}

}  // namespace wisp::convert::hugging_face
