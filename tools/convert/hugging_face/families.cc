#include "tools/convert/hugging_face/families.h"

#include <algorithm>

namespace wisp::convert::hugging_face {
namespace {

using enum ParameterRole;
using enum How;
using enum Place;
using enum LeftOutCheck;

constexpr char kPretraining[] = "a head of pretraining, which is not used";
constexpr char kPositionNumbers[] = "the numbers 0, 1, 2 ..., which need no tensor";
constexpr char kMask[] = "the causal mask, which needs no tensor";
constexpr char kMaskedScores[] = "the score of what is masked, far below all others, which needs no tensor";
constexpr char kRotaryFrequencies[] = "rotary frequencies, which follow from rope_theta";
constexpr char kNotPooled[] = "the pooling of this model does not pass it";
constexpr char kTied[] = "the table of the tokens once more: the output is tied to it";

constexpr Row kBertRows[] = {
    {kItemTable, {"embeddings.word_embeddings.weight"}},
    {kPositionTable, {"embeddings.position_embeddings.weight"}, kPositions},
    {kTypeTable, {"embeddings.token_type_embeddings.weight"}},
    {kEmbeddingNormGain, {"embeddings.LayerNorm.weight"}},
    {kEmbeddingNormBias, {"embeddings.LayerNorm.bias"}},
    {kQkvWeight,
     {"encoder.layer.{b}.attention.self.query.weight", "encoder.layer.{b}.attention.self.key.weight",
      "encoder.layer.{b}.attention.self.value.weight"}},
    {kQkvBias,
     {"encoder.layer.{b}.attention.self.query.bias", "encoder.layer.{b}.attention.self.key.bias",
      "encoder.layer.{b}.attention.self.value.bias"}},
    {kAttentionOutWeight, {"encoder.layer.{b}.attention.output.dense.weight"}},
    {kAttentionOutBias, {"encoder.layer.{b}.attention.output.dense.bias"}},
    {kAttentionNormGain, {"encoder.layer.{b}.attention.output.LayerNorm.weight"}},
    {kAttentionNormBias, {"encoder.layer.{b}.attention.output.LayerNorm.bias"}},
    {kFeedForwardInWeight, {"encoder.layer.{b}.intermediate.dense.weight"}},
    {kFeedForwardInBias, {"encoder.layer.{b}.intermediate.dense.bias"}},
    {kFeedForwardOutWeight, {"encoder.layer.{b}.output.dense.weight"}},
    {kFeedForwardOutBias, {"encoder.layer.{b}.output.dense.bias"}},
    {kFeedForwardNormGain, {"encoder.layer.{b}.output.LayerNorm.weight"}},
    {kFeedForwardNormBias, {"encoder.layer.{b}.output.LayerNorm.bias"}}};
constexpr Row kBertPooler[] = {{kPoolerWeight, {"pooler.dense.weight"}}, {kPoolerBias, {"pooler.dense.bias"}}};
constexpr Row kBertClasses[] = {{kPoolerWeight, {"pooler.dense.weight"}},
                                {kPoolerBias, {"pooler.dense.bias"}},
                                {kClassWeight, {"classifier.weight"}, kAsIs, kOutside},
                                {kClassBias, {"classifier.bias"}, kAsIs, kOutside}};
constexpr Ignored kBertIgnored[] = {{"embeddings.position_ids", kPositionNumbers, kNumbered},
                                    {"pooler.dense.*", kNotPooled},
                                    {"cls.*", kPretraining},
                                    {"discriminator_predictions.*", kPretraining}};

constexpr Row kRobertaClasses[] = {{kPoolerWeight, {"classifier.dense.weight"}, kAsIs, kOutside},
                                   {kPoolerBias, {"classifier.dense.bias"}, kAsIs, kOutside},
                                   {kClassWeight, {"classifier.out_proj.weight"}, kAsIs, kOutside},
                                   {kClassBias, {"classifier.out_proj.bias"}, kAsIs, kOutside}};
constexpr Ignored kRobertaIgnored[] = {{"embeddings.position_ids", kPositionNumbers, kNumbered},
                                       {"pooler.dense.*", kNotPooled},
                                       {"lm_head.*", kPretraining}};

constexpr Row kDistilBertRows[] = {
    {kItemTable, {"embeddings.word_embeddings.weight"}},
    {kPositionTable, {"embeddings.position_embeddings.weight"}, kPositions},
    {kEmbeddingNormGain, {"embeddings.LayerNorm.weight"}},
    {kEmbeddingNormBias, {"embeddings.LayerNorm.bias"}},
    {kQkvWeight,
     {"transformer.layer.{b}.attention.q_lin.weight", "transformer.layer.{b}.attention.k_lin.weight",
      "transformer.layer.{b}.attention.v_lin.weight"}},
    {kQkvBias,
     {"transformer.layer.{b}.attention.q_lin.bias", "transformer.layer.{b}.attention.k_lin.bias",
      "transformer.layer.{b}.attention.v_lin.bias"}},
    {kAttentionOutWeight, {"transformer.layer.{b}.attention.out_lin.weight"}},
    {kAttentionOutBias, {"transformer.layer.{b}.attention.out_lin.bias"}},
    {kAttentionNormGain, {"transformer.layer.{b}.sa_layer_norm.weight"}},
    {kAttentionNormBias, {"transformer.layer.{b}.sa_layer_norm.bias"}},
    {kFeedForwardInWeight, {"transformer.layer.{b}.ffn.lin1.weight"}},
    {kFeedForwardInBias, {"transformer.layer.{b}.ffn.lin1.bias"}},
    {kFeedForwardOutWeight, {"transformer.layer.{b}.ffn.lin2.weight"}},
    {kFeedForwardOutBias, {"transformer.layer.{b}.ffn.lin2.bias"}},
    {kFeedForwardNormGain, {"transformer.layer.{b}.output_layer_norm.weight"}},
    {kFeedForwardNormBias, {"transformer.layer.{b}.output_layer_norm.bias"}}};
constexpr Row kDistilBertClasses[] = {{kPoolerWeight, {"pre_classifier.weight"}, kAsIs, kOutside},
                                      {kPoolerBias, {"pre_classifier.bias"}, kAsIs, kOutside},
                                      {kClassWeight, {"classifier.weight"}, kAsIs, kOutside},
                                      {kClassBias, {"classifier.bias"}, kAsIs, kOutside}};
constexpr Ignored kDistilBertIgnored[] = {{"embeddings.position_ids", kPositionNumbers, kNumbered},
                                          {"vocab_transform.*", kPretraining},
                                          {"vocab_layer_norm.*", kPretraining},
                                          {"vocab_projector.*", kPretraining}};

constexpr Row kGpt2Rows[] = {{kItemTable, {"wte.weight"}},
                             {kPositionTable, {"wpe.weight"}, kPositions},
                             {kAttentionNormGain, {"h.{b}.ln_1.weight"}},
                             {kAttentionNormBias, {"h.{b}.ln_1.bias"}},
                             {kQkvWeight, {"h.{b}.attn.c_attn.weight"}, kTransposed},  // stacked already
                             {kQkvBias, {"h.{b}.attn.c_attn.bias"}},
                             {kAttentionOutWeight, {"h.{b}.attn.c_proj.weight"}, kTransposed},
                             {kAttentionOutBias, {"h.{b}.attn.c_proj.bias"}},
                             {kFeedForwardNormGain, {"h.{b}.ln_2.weight"}},
                             {kFeedForwardNormBias, {"h.{b}.ln_2.bias"}},
                             {kFeedForwardInWeight, {"h.{b}.mlp.c_fc.weight"}, kTransposed},
                             {kFeedForwardInBias, {"h.{b}.mlp.c_fc.bias"}},
                             {kFeedForwardOutWeight, {"h.{b}.mlp.c_proj.weight"}, kTransposed},
                             {kFeedForwardOutBias, {"h.{b}.mlp.c_proj.bias"}},
                             {kFinalNormGain, {"ln_f.weight"}},
                             {kFinalNormBias, {"ln_f.bias"}}};
constexpr Row kLanguageHead[] = {{kOutputTable, {"lm_head.weight"}, kAsIs, kOutside}};
constexpr Ignored kGpt2Ignored[] = {{"h.{b}.attn.bias", kMask, kCausalMask},
                                    {"h.{b}.attn.masked_bias", kMaskedScores, kMaskedScore},
                                    {"lm_head.weight", kTied, kTable}};

constexpr Row kLlamaRows[] = {
    {kItemTable, {"embed_tokens.weight"}},
    {kAttentionNormGain, {"layers.{b}.input_layernorm.weight"}},
    {kQkvWeight,
     {"layers.{b}.self_attn.q_proj.weight", "layers.{b}.self_attn.k_proj.weight",
      "layers.{b}.self_attn.v_proj.weight"}},
    {kQkvBias,
     {"layers.{b}.self_attn.q_proj.bias", "layers.{b}.self_attn.k_proj.bias", "layers.{b}.self_attn.v_proj.bias"}},
    {kAttentionOutWeight, {"layers.{b}.self_attn.o_proj.weight"}},
    {kFeedForwardNormGain, {"layers.{b}.post_attention_layernorm.weight"}},
    {kFeedForwardInWeight, {"layers.{b}.mlp.gate_proj.weight", "layers.{b}.mlp.up_proj.weight"}},
    {kFeedForwardOutWeight, {"layers.{b}.mlp.down_proj.weight"}},
    {kFinalNormGain, {"norm.weight"}}};
constexpr Ignored kLlamaIgnored[] = {{"layers.{b}.self_attn.rotary_emb.inv_freq", kRotaryFrequencies, kFrequencies},
                                     {"lm_head.weight", kTied, kTable}};

constexpr const char* kBertPrefixes[] = {"bert.", "electra."};
constexpr const char* kRobertaPrefixes[] = {"roberta."};
constexpr const char* kDistilBertPrefixes[] = {"distilbert."};
constexpr const char* kGpt2Prefixes[] = {"transformer."};
constexpr const char* kLlamaPrefixes[] = {"model."};

constexpr Family kBert{"bert", kBertRows, {{{}, kBertClasses, kBertPooler}}, kBertIgnored, kBertPrefixes};
constexpr Family kRoberta{
    "roberta", kBertRows, {{{}, kRobertaClasses, kBertPooler}}, kRobertaIgnored, kRobertaPrefixes};
constexpr Family kDistilBert{
    "distilbert", kDistilBertRows, {{{}, kDistilBertClasses, {}}}, kDistilBertIgnored, kDistilBertPrefixes};
constexpr Family kGpt2{"gpt2", kGpt2Rows, {{kLanguageHead, {}, {}}}, kGpt2Ignored, kGpt2Prefixes};
constexpr Family kLlama{"llama", kLlamaRows, {{kLanguageHead, {}, {}}}, kLlamaIgnored, kLlamaPrefixes};
constexpr Family kQwen2{"qwen2", kLlamaRows, {{kLanguageHead, {}, {}}}, kLlamaIgnored, kLlamaPrefixes};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool Matches(std::string_view pattern, std::string_view name) {
  while (!pattern.empty()) {
    if (pattern == "*") return true;
    if (pattern.starts_with("{b}")) {
      if (name.empty() || !IsDigit(name[0])) return false;
      while (!name.empty() && IsDigit(name[0])) name.remove_prefix(1);
      pattern.remove_prefix(3);
      continue;
    }
    if (name.empty() || name[0] != pattern[0]) return false;
    name.remove_prefix(1);
    pattern.remove_prefix(1);
  }
  return name.empty();
}

}  // namespace

const Family& BertFamily() { return kBert; }
const Family& RobertaFamily() { return kRoberta; }
const Family& DistilBertFamily() { return kDistilBert; }
const Family& Gpt2Family() { return kGpt2; }
const Family& LlamaFamily() { return kLlama; }
const Family& Qwen2Family() { return kQwen2; }

std::vector<Row> GetRows(const Family& family, HeadKind head) {
  std::vector<Row> rows(family.rows.begin(), family.rows.end());
  const std::span<const Row> of_head = family.heads[static_cast<size_t>(head)];
  rows.insert(rows.end(), of_head.begin(), of_head.end());
  return rows;
}

std::string NameInBlock(const char* pattern, uint32_t block) {
  std::string name = pattern;
  if (const size_t at = name.find("{b}"); at != std::string::npos) name.replace(at, 3, std::to_string(block));
  return name;
}

const Ignored* FindIgnored(const Family& family, std::string_view name) {
  const auto found = std::find_if(family.ignored.begin(), family.ignored.end(),
                                  [&](const Ignored& ignored) { return Matches(ignored.pattern, name); });
  return found == family.ignored.end() ? nullptr : &*found;
}

}  // namespace wisp::convert::hugging_face
