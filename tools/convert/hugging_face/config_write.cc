#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "tools/convert/hugging_face/config.h"
#include "tools/convert/hugging_face/config_fields.h"
#include "tools/convert/hugging_face/config_kinds.h"

namespace wisp::convert::hugging_face {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Returns the double with the fewest digits that is this float: 1e-12, not 9.999999960041972e-13.
double Short(float value) {
  char digits[40];
  *std::to_chars(digits, digits + sizeof(digits) - 1, value).ptr = '\0';
  return std::strtod(digits, nullptr);
}

// Returns null if the family has no class with that head. In Llama's family, a window makes it Mistral's.
const ModelClass* ClassFor(const Family& family, HeadKind head, bool has_window = false) {
  const auto classes = ModelClasses();
  const auto found = std::find_if(classes.begin(), classes.end(), [&](const ModelClass& c) {
    if (has_window && &family == &LlamaFamily() && std::string_view(c.model_type) != "mistral") return false;
    return c.head == head && &FindModelType(c.model_type)->family() == &family;
  });
  return found == classes.end() ? nullptr : &*found;
}

// Returns null if Hugging Face has no word for it.
const char* ActivationWord(ActivationKind kind) {
  const auto names = Activations();
  const auto found = std::find_if(names.begin(), names.end(), [&](const ActivationName& a) { return a.kind == kind; });
  return found == names.end() ? nullptr : found->name;
}

OrderedJson Sizes(const ModelType& type, const Architecture& a, const BlockSpec& block, const char* activation,
                  uint32_t first_position) {
  const SizeKeys& keys = type.keys;
  OrderedJson json = {{"vocab_size", a.num_items},
                      {keys.width, a.width},
                      {keys.heads, block.attention.num_heads},
                      {keys.blocks, a.blocks.size()},
                      {keys.inner, block.feed_forward.inner_width},
                      {keys.positions, a.max_length + first_position},
                      {keys.activation, activation}};
  if (keys.epsilon != nullptr) json[keys.epsilon] = Short(block.norm_epsilon);
  return json;
}

void AddClasses(const std::vector<std::string>& names, OrderedJson& json) {
  OrderedJson of_number = OrderedJson::object(), of_name = OrderedJson::object();
  for (size_t i = 0; i < names.size(); ++i) {
    of_number[std::to_string(i)] = names[i];
    of_name[names[i]] = i;
  }
  json["id2label"] = of_number;
  json["label2id"] = of_name;
  json["problem_type"] = "single_label_classification";
}

// Returns the largest window of the blocks; 0 if no block has one.
uint32_t LargestWindow(const Architecture& a) {
  uint32_t window = 0;
  for (const BlockSpec& b : a.blocks) window = std::max(window, b.attention.window);
  return window;
}

void AddWindows(const Family& family, const Architecture& a, OrderedJson& json) {
  const uint32_t window = LargestWindow(a);
  if (window == 0) return;
  json["sliding_window"] = window;
  if (&family != &Qwen2Family()) return;
  json["use_sliding_window"] = true;
  for (const BlockSpec& b : a.blocks)
    json["layer_types"].push_back(b.attention.window > 0 ? "sliding_attention" : "full_attention");
}

void AddFamilyKeys(const Family& family, const Architecture& a, const BlockSpec& block, OrderedJson& json) {
  if (&family == &BertFamily() || &family == &RobertaFamily()) {
    json["type_vocab_size"] = a.token_types.count;
    json["pad_token_id"] = &family == &RobertaFamily() ? 1 : 0;
    return;
  }
  if (&family == &DistilBertFamily()) return;
  json["tie_word_embeddings"] = a.head.output_table == OutputTable::kTied;
  if (&family == &Gpt2Family()) return;
  json["num_key_value_heads"] = block.attention.num_kv_heads;
  json["head_dim"] = block.attention.head_width;
  AddWindows(family, a, json);
  json["rope_theta"] = Short(block.attention.rotary.base);  // for versions before 5
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", Short(block.attention.rotary.base)}};
}

// Takes over values that other files than config.json hold.
void TakeBeside(const Family& family, const Architecture& from, Architecture& to) {
  // Only BERT's models get token types from separators.
  if (&family == &BertFamily()) to.token_types.separator = from.token_types.separator;
  if (to.head.kind != HeadKind::kEmbedding) return;
  to.head.pooling = from.head.pooling;
  to.head.pooler = from.head.pooler;
  to.head.unit_length = from.head.unit_length;
}

// Describes how a model differs from those that its family writes, in the words of `wisp inspect`. It names the first
// block that differs.
std::string Differences(const Architecture& of_family, const Architecture& a) {
  std::string names;
  const auto compare = [&names](const char* name, const auto& expected, const auto& given) {
    if (expected != given) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  compare("embedding_scale", of_family.embedding_scale, a.embedding_scale);
  compare("positions", of_family.positions, a.positions);
  compare("position_table", of_family.position_table, a.position_table);
  compare("token_types", of_family.token_types, a.token_types);
  compare("embedding_norm_epsilon", of_family.embedding_norm_epsilon, a.embedding_norm_epsilon);
  compare("attend", of_family.attend, a.attend);
  compare("re_attention", of_family.re_attention, a.re_attention);
  compare("final norm", std::pair(of_family.final_norm_epsilon, of_family.final_norm_kind),
          std::pair(a.final_norm_epsilon, a.final_norm_kind));
  compare("head", of_family.head, a.head);
  compare("adapter", of_family.adapter, a.adapter);
  for (size_t i = 0; i < std::min(of_family.blocks.size(), a.blocks.size()); ++i) {
    const BlockSpec &expected = of_family.blocks[i], &given = a.blocks[i];
    if (expected == given) continue;
    compare("norm", expected.norm, given.norm);
    compare("norm_kind", expected.norm_kind, given.norm_kind);
    compare("norm_epsilon", expected.norm_epsilon, given.norm_epsilon);
    compare("residual", expected.residual, given.residual);
    compare("biases", expected.biases, given.biases);
    compare("attention", expected.attention, given.attention);
    compare("feed_forward", expected.feed_forward, given.feed_forward);
    return names + " of block " + std::to_string(i);
  }
  return names;
}

std::vector<const Family*> AllFamilies() {
  return {&BertFamily(), &RobertaFamily(), &DistilBertFamily(), &Gpt2Family(), &LlamaFamily(), &Qwen2Family()};
}

}  // namespace

std::string FamiliesFor(HeadKind head) {
  std::string names;
  for (const Family* family : AllFamilies()) {
    if (ClassFor(*family, head) != nullptr) names += (names.empty() ? "" : ", ") + std::string(family->name);
  }
  return names;
}

Result<const Family*> FamilyNamed(const std::string& name) {
  std::string names;
  for (const Family* family : AllFamilies()) {
    if (name == family->name) return family;
    names += (names.empty() ? "" : ", ") + std::string(family->name);
  }
  return InvalidArgument("--family is '", name, "', allowed are ", names);
}

Written WrittenAs(const Family& family, HeadKind head) {
  const ModelClass* model_class = ClassFor(family, head);
  // RoBERTa counts positions from 2, after its padding token 1.
  return {model_class == nullptr ? nullptr : model_class->name, &family == &RobertaFamily() ? 2u : 0u};
}

Result<std::string> WriteConfig(const std::string& name, const Family& family, const Architecture& a,
                                const std::vector<std::string>& class_names) {
  const ModelClass* model_class = ClassFor(family, a.head.kind, LargestWindow(a) > 0);
  if (model_class == nullptr || a.blocks.empty()) {
    return Unsupported(name, ": ", family.name, " models have no such head",
                       (a.blocks.empty() ? ", and at least one block" : ""), "; --family names another one");
  }
  const char* const activation = ActivationWord(a.blocks[0].feed_forward.activation);
  if (activation == nullptr) {
    return Unsupported(name, ": its activation (number ", static_cast<uint32_t>(a.blocks[0].feed_forward.activation),
                       " in schema/common.fbs) has no name in Hugging Face, allowed are ", JoinNames(Activations()));
  }
  const ModelType& type = *FindModelType(model_class->model_type);
  OrderedJson json = {{"architectures", {model_class->name}}, {"model_type", type.name}};
  json.update(Sizes(type, a, a.blocks[0], activation, WrittenAs(family, a.head.kind).first_position));
  AddFamilyKeys(family, a, a.blocks[0], json);
  std::vector<std::string> labels = class_names;
  for (uint32_t i = static_cast<uint32_t>(labels.size()); i < a.head.num_classes; ++i)
    labels.push_back("LABEL_" + std::to_string(i));
  if (!labels.empty()) AddClasses(labels, json);
  json["torch_dtype"] = "float32";
  const std::string text = json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  // The written config is read back: this finds whatever the family cannot express.
  Result<Description> read = ReadConfig(name, text, {});
  if (!read.ok()) return Unsupported(read.status().message());
  TakeBeside(family, a, read->architecture);
  if (read->architecture == a) return text;
  return Unsupported(name, ": its architecture is not one of ", model_class->name, ", whose models differ in ",
                     Differences(read->architecture, a), "; wisp inspect shows what this one has");
}

}  // namespace wisp::convert::hugging_face
