#include "tools/convert/hugging_face/config_kinds.h"

#include <algorithm>
#include <iterator>

namespace wisp::convert::hugging_face {
namespace {

constexpr SizeKeys kBertKeys{"hidden_size",
                             "num_attention_heads",
                             "num_hidden_layers",
                             "intermediate_size",
                             "max_position_embeddings",
                             "hidden_act",
                             "layer_norm_eps",
                             "gelu",
                             1e-12};
constexpr SizeKeys kDistilBertKeys{"dim",        "n_heads", "n_layers", "hidden_dim", "max_position_embeddings",
                                   "activation", nullptr,   "gelu",     1e-12};
constexpr SizeKeys kGpt2Keys{
    "n_embd",   "n_head", "n_layer", "n_inner", "n_positions", "activation_function", "layer_norm_epsilon",
    "gelu_new", 1e-5};
constexpr SizeKeys kLlamaKeys{"hidden_size",
                              "num_attention_heads",
                              "num_hidden_layers",
                              "intermediate_size",
                              "max_position_embeddings",
                              "hidden_act",
                              "rms_norm_eps",
                              "silu",
                              1e-6};

constexpr ModelType kModelTypes[] = {{"bert", BertFamily, kBertKeys},
                                     {"electra", BertFamily, kBertKeys},
                                     {"roberta", RobertaFamily, kBertKeys},
                                     {"xlm-roberta", RobertaFamily, kBertKeys},
                                     {"distilbert", DistilBertFamily, kDistilBertKeys},
                                     {"gpt2", Gpt2Family, kGpt2Keys},
                                     {"llama", LlamaFamily, kLlamaKeys},
                                     {"mistral", LlamaFamily, kLlamaKeys},
                                     {"qwen2", Qwen2Family, kLlamaKeys}};

constexpr ModelClass kModelClasses[] = {{"BertModel", "bert", HeadKind::kEmbedding},
                                        {"BertForMaskedLM", "bert", HeadKind::kEmbedding},
                                        {"BertForPreTraining", "bert", HeadKind::kEmbedding},
                                        {"BertForSequenceClassification", "bert", HeadKind::kClasses},
                                        {"ElectraModel", "electra", HeadKind::kEmbedding},
                                        {"ElectraForPreTraining", "electra", HeadKind::kEmbedding},
                                        {"RobertaModel", "roberta", HeadKind::kEmbedding},
                                        {"RobertaForMaskedLM", "roberta", HeadKind::kEmbedding},
                                        {"RobertaForSequenceClassification", "roberta", HeadKind::kClasses},
                                        {"XLMRobertaModel", "xlm-roberta", HeadKind::kEmbedding},
                                        {"XLMRobertaForMaskedLM", "xlm-roberta", HeadKind::kEmbedding},
                                        {"XLMRobertaForSequenceClassification", "xlm-roberta", HeadKind::kClasses},
                                        {"DistilBertModel", "distilbert", HeadKind::kEmbedding},
                                        {"DistilBertForMaskedLM", "distilbert", HeadKind::kEmbedding},
                                        {"DistilBertForSequenceClassification", "distilbert", HeadKind::kClasses},
                                        {"GPT2LMHeadModel", "gpt2", HeadKind::kNextItem},
                                        {"GPT2Model", "gpt2", HeadKind::kNextItem},
                                        {"LlamaForCausalLM", "llama", HeadKind::kNextItem},
                                        {"MistralForCausalLM", "mistral", HeadKind::kNextItem},
                                        {"Qwen2ForCausalLM", "qwen2", HeadKind::kNextItem}};

constexpr ActivationName kActivations[] = {{"gelu", ActivationKind::kGelu},
                                           {"gelu_new", ActivationKind::kGeluTanh},
                                           {"gelu_pytorch_tanh", ActivationKind::kGeluTanh},
                                           {"silu", ActivationKind::kSilu},
                                           {"relu", ActivationKind::kRelu}};

}  // namespace

std::span<const ModelType> ModelTypes() { return kModelTypes; }
std::span<const ModelClass> ModelClasses() { return kModelClasses; }
std::span<const ActivationName> Activations() { return kActivations; }

const ModelType* FindModelType(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kModelTypes), std::end(kModelTypes), [&](const ModelType& t) { return name == t.name; });
  return found == std::end(kModelTypes) ? nullptr : found;
}

}  // namespace wisp::convert::hugging_face
