#include "tools/convert/hugging_face/config_keys.h"

#include <algorithm>

namespace wisp::convert::hugging_face {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kName = "a name", kTraining = "of training alone", kOutput = "what a call gives back",
                           kHow = "how the same is computed", kFresh = "of fresh weights",
                           kTokenizer = "read with the tokenizer", kOtherHead = "of a head that is not used",
                           kUnused = "no model here reads it";

constexpr HarmlessKey kConfigKeys[] = {{"_name_or_path", kName},
                                       {"name_or_path", kName},
                                       {"transformers_version", kName},
                                       {"_commit_hash", kName},
                                       {"unsloth_version", kName},
                                       {"tokenizer_class", kName},
                                       {"processor_class", kName},
                                       {"finetuning_task", kName},
                                       {"torch_dtype", "weights are read as they are stored"},
                                       {"dtype", "weights are read as they are stored"},
                                       {"attention_dropout", kTraining},
                                       {"attention_probs_dropout_prob", kTraining},
                                       {"hidden_dropout_prob", kTraining},
                                       {"hidden_dropout", kTraining},
                                       {"classifier_dropout", kTraining},
                                       {"dropout", kTraining},
                                       {"qa_dropout", kTraining},
                                       {"seq_classif_dropout", kTraining},
                                       {"attn_pdrop", kTraining},
                                       {"embd_pdrop", kTraining},
                                       {"resid_pdrop", kTraining},
                                       {"gradient_checkpointing", kTraining},
                                       {"initializer_range", kFresh},
                                       {"initializer_factor", kFresh},
                                       {"sinusoidal_pos_embds", kFresh},
                                       {"tie_weights_", kOtherHead},
                                       {"tie_word_embeddings", kOtherHead},
                                       {"summary_*", kOtherHead},
                                       {"generator_hidden_size", kOtherHead},
                                       {"_num_labels", kOtherHead},
                                       {"num_labels", kOtherHead},
                                       {"id2label", kOtherHead},
                                       {"label2id", kOtherHead},
                                       {"problem_type", kOtherHead},
                                       {"use_cache", kHow},
                                       {"cache_implementation", kHow},
                                       {"_attn_implementation*", kHow},
                                       {"attn_implementation", kHow},
                                       {"chunk_size_feed_forward", kHow},
                                       {"pretraining_tp", kHow},
                                       {"reorder_and_upcast_attn", kHow},
                                       {"torchscript", kHow},
                                       {"use_bfloat16", kHow},
                                       {"xla_device", kHow},
                                       {"tf_legacy_loss", kTraining},
                                       {"output_attentions", kOutput},
                                       {"output_hidden_states", kOutput},
                                       {"output_past", kOutput},
                                       {"return_dict", kOutput},
                                       {"bos_token_id", kTokenizer},
                                       {"eos_token_id", kTokenizer},
                                       {"pad_token_id", kTokenizer},
                                       {"sep_token_id", kUnused},
                                       {"mask_token_id", kUnused},
                                       {"decoder_start_token_id", kUnused},
                                       {"task_specific_params", "of pipelines"},
                                       {"n_ctx", "the same as n_positions"},
                                       {"directionality", kUnused},
                                       {"pooler_fc_size", kUnused},
                                       {"pooler_num_attention_heads", kUnused},
                                       {"pooler_num_fc_layers", kUnused},
                                       {"pooler_size_per_head", kUnused},
                                       {"pooler_type", kUnused}};
constexpr HarmlessKey kDecoderKeys[] = {{"is_decoder", "a decoder is one"},
                                        {"max_window_layers", "there is no window"}};

constexpr HarmlessKey kGenerationKeys[] = {{"_from_model_config", kName},
                                           {"transformers_version", kName},
                                           {"bos_token_id", kTokenizer},
                                           {"eos_token_id", kTokenizer},
                                           {"pad_token_id", kTokenizer},
                                           {"decoder_start_token_id", kUnused},
                                           {"use_cache", kHow},
                                           {"cache_*", kHow},
                                           {"trust_remote_code", kHow},
                                           {"output_*", kOutput},
                                           {"return_dict_in_generate", kOutput}};

constexpr HarmlessKey kFiles[] = {{"config.json", "read"},
                                  {"generation_config.json", "read"},
                                  {"modules.json", "read"},
                                  {"config_sentence_transformers.json", "read"},
                                  {"sentence_bert_config.json", "read"},
                                  {"sentence_roberta_config.json", "read"},
                                  {"sentence_distilbert_config.json", "read"},
                                  {"sentence_xlm-roberta_config.json", "read"},
                                  {"model.safetensors.index.json", "read"},
                                  {"tokenizer.json", "read"},
                                  {"tokenizer_config.json", "read"},
                                  {"special_tokens_map.json", "read"},
                                  {"added_tokens.json", "read"},
                                  {"vocab.json", "read"},
                                  {"expected.json", "what a model computes, for tests"},
                                  {"pytorch_model.bin.index.json", "of other weights"},
                                  {"tf_model.h5.index.json", "of other weights"},
                                  {"flax_model.msgpack.index.json", "of other weights"},
                                  {"data_config.json", "a record of training"},
                                  {"trainer_state.json", "a record of training"},
                                  {"training_args.json", "a record of training"},
                                  {"train_results.json", "a record of training"},
                                  {"eval_results.json", "a record of training"},
                                  {"test_results.json", "a record of training"},
                                  {"all_results.json", "a record of training"}};

// A setting that must have this value: with another one the model computes something else.
struct Required {
  const char* key;
  Json value;
  const char* supported;
};

const std::vector<Required>& RequiredValues() {
  static const std::vector<Required> required = {{"is_encoder_decoder", false, "is false"},
                                                 {"tie_encoder_decoder", false, "is false"},
                                                 {"add_cross_attention", false, "is false"},
                                                 {"use_mrope", false, "is false"},
                                                 {"pruned_heads", Json::object(), "is an empty object"}};
  return required;
}

// The defaults by which transformers generates texts. Other values change the generated text.
const Json& GenerationDefaults() {
  static const Json defaults = {{"do_sample", false},
                                {"temperature", 1.0},
                                {"top_k", 50},
                                {"top_p", 1.0},
                                {"min_p", nullptr},
                                {"typical_p", 1.0},
                                {"epsilon_cutoff", 0.0},
                                {"eta_cutoff", 0.0},
                                {"repetition_penalty", 1.0},
                                {"encoder_repetition_penalty", 1.0},
                                {"length_penalty", 1.0},
                                {"no_repeat_ngram_size", 0},
                                {"encoder_no_repeat_ngram_size", 0},
                                {"bad_words_ids", nullptr},
                                {"num_beams", 1},
                                {"num_beam_groups", 1},
                                {"diversity_penalty", 0.0},
                                {"penalty_alpha", nullptr},
                                {"num_return_sequences", 1},
                                {"early_stopping", false},
                                {"min_length", 0},
                                {"max_length", 20},
                                {"max_new_tokens", nullptr},
                                {"min_new_tokens", nullptr},
                                {"max_time", nullptr},
                                {"stop_strings", nullptr},
                                {"forced_bos_token_id", nullptr},
                                {"forced_eos_token_id", nullptr},
                                {"suppress_tokens", nullptr},
                                {"begin_suppress_tokens", nullptr},
                                {"sequence_bias", nullptr},
                                {"guidance_scale", nullptr},
                                {"renormalize_logits", false},
                                {"remove_invalid_values", false},
                                {"exponential_decay_length_penalty", nullptr},
                                {"output_scores", false},
                                {"return_dict_in_generate", false},
                                {"prefix", nullptr}};
  return defaults;
}

// Adds one note for all settings of generation that differ from the defaults of transformers.
void SayDrawing(const std::string& name, const Json& config, std::vector<std::string>& notes) {
  std::string others;
  for (const auto& [key, otherwise] : GenerationDefaults().items()) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null() || *found == otherwise) continue;
    others += (others.empty() ? "" : ", ") + key + " " + ShownJson(*found);
  }
  if (!others.empty())
    notes.push_back(name + ": " + others + ": how texts are drawn is not taken over; wisp generate has options for it");
}

ReadKeys WithGeneration(ReadKeys read) {
  for (const auto& [key, otherwise] : GenerationDefaults().items()) read.insert(key);
  return read;
}

bool AreAllFull(const Json& layers) {
  return layers.is_array() &&
         std::all_of(layers.begin(), layers.end(), [](const Json& word) { return word == "full_attention"; });
}

}  // namespace

void CheckOtherKeys(Fields& f, const Json& config, HeadKind head, std::vector<std::string>& notes) {
  for (const Required& one : RequiredValues()) {
    const Json* found = f.Find(one.key);
    if (found != nullptr && *found != one.value) f.Refuse(one.key, ShownJson(*found), one.supported);
  }
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (f.Find(key) != nullptr) f.Refuse(key, "there", "are weights in F32, F16 and BF16");
  }
  const bool decodes = head == HeadKind::kNextItem;
  std::vector<HarmlessKey> harmless(std::begin(kConfigKeys), std::end(kConfigKeys));
  if (decodes) harmless.insert(harmless.end(), std::begin(kDecoderKeys), std::end(kDecoderKeys));
  if (decodes) SayDrawing(f.name(), config, notes);
  ReadKeys read = WithGeneration(f.read());
  // Without attention windows, layer_types does not matter.
  if (config.contains("layer_types") && AreAllFull(config["layer_types"])) read.insert("layer_types");
  const Json* slides = f.read().contains("use_sliding_window") ? f.Find("use_sliding_window") : nullptr;
  if (f.read().contains("use_sliding_window") && (slides == nullptr || *slides == false))
    read.insert({"sliding_window", "layer_types"});
  SayUnread(f.name(), config, read, harmless, notes);
}

void SayGeneration(const std::string& name, const Json& config, std::vector<std::string>& notes) {
  SayDrawing(name, config, notes);
  SayUnread(name, config, WithGeneration({}), kGenerationKeys, notes);
}

std::span<const HarmlessKey> HarmlessFiles() { return kFiles; }

}  // namespace wisp::convert::hugging_face
