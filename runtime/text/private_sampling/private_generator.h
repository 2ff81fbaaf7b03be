// Generates texts privately. Every token is a mechanism of its own, charged to the ledger before a random number for it
// is sampled (docs/algorithms.md, section 7).
//
//   WISP_ASSIGN_OR_RETURN(PrivateGenerator generator, PrivateGenerator::Create(*tuned, tokenizer, {.samples = {
//       .base = shipped.get(), .goal = {.planned = SampleGoal::Planned{target, 200}}, .public_datasets = labels,
//       .ledger = &ledger}}));
//   WISP_ASSIGN_OR_RETURN(const Generated made, generator.Generate("Dear", {.max_new_tokens = 50}, show));
//
// Protected: the records that the weights were trained on; or, with PrivateTexts, the texts in the prompt, each a
// record, and then the weights must be public. Not protected: the prompt, the model's size, the number of tokens asked
// for, and time. The end of a text depends on sampled tokens only. Sensitivity: sample_cost.h. PrivateSampler::Pay
// charges. Weights with a guarantee are sampled freely, and no ledger is touched.
#ifndef WISP_RUNTIME_TEXT_PRIVATE_SAMPLING_PRIVATE_GENERATOR_H_
#define WISP_RUNTIME_TEXT_PRIVATE_SAMPLING_PRIVATE_GENERATOR_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/private_sampling/sampling_setup.h"
#include "runtime/text/private_sampling/private_contexts.h"
#include "runtime/text/generate.h"

namespace wisp {

struct PrivateGeneratorOptions {
  // `contexts` is above 0 with PrivateTexts. charge_for and largest_support are ignored: the support is all tokens, or
  // `base_top` of them.
  PrivateSampleOptions samples = {};
  // Above 0: each token is sampled from this many best tokens of the base or of the public context; a public choice.
  uint32_t base_top = 0;
  // True if no other text will be generated: a block of charges is then no larger than what may still be sampled. If
  // false, blocks are shortened only if the budget has no room for whole ones.
  bool only_text = false;
};

struct PrivateGenerateOptions {
  uint32_t max_new_tokens = 128;
  std::vector<std::string> stop = {};  // when one of these appears, the text ends before it
};

// Only one thread at a time may use this object and its sessions.
class PrivateGenerator {
 public:
  // Session and tokenizer must outlive this object. `texts` only with samples.contexts; its data must live until the
  // last Generate. kPrivacyRefused: the request has no guarantee. kInvalidArgument: the base has another tokenizer. The
  // ledger is unchanged until a text is generated.
  static Result<PrivateGenerator> Create(Session& session, const text::Tokenizer& tokenizer,
                                         const PrivateGeneratorOptions& options, PrivateTexts texts = {});

  // The first text that is not refused writes the new limit and the plan of samples, before its first charge.
  // kPrivacyRefused: the ledger's limit has no room for the number of tokens asked for. The message says how many fit;
  // nothing was written, charged or sampled. If another process spends the budget meanwhile, the text ends with the
  // same error; what was shown before was paid for. Errors depend only on public values and on the ledger.
  Result<Generated> Generate(std::string_view prompt, const PrivateGenerateOptions& options,
                             const OnText& on_text = {});

  const SamplingSetup& setup() const { return setup_; }
  bool is_free() const { return setup_.mode == DecodingMode::kPlain; }
  // The number of private texts in the last Generate that could not be read. Do not publish it.
  size_t left_out() const { return contexts_ ? contexts_->left_out() : 0; }

 private:
  PrivateGenerator(Session& session, const text::Tokenizer& tokenizer, const PrivateGeneratorOptions& options,
                   PrivateTexts texts, SamplingSetup setup);
  // The charges for this many tokens, if the ledger has room for them.
  Result<std::vector<privacy::ChargeRequest>> CheckRoom(uint32_t tokens);
  Status PlanText(std::span<const privacy::ChargeRequest> charges);
  // Returns the prompt's tokens. Sets the number of tokens at which a text ends.
  Result<std::vector<int32_t>> Begin(std::string_view prompt, uint32_t max_new_tokens, size_t& max_tokens);
  Result<int32_t> Next(std::span<const int32_t> tokens, size_t prompt_tokens, uint32_t at_most);
  // Reads the scores of the public model or context into base_scores_.
  Status ReadBase(std::span<const int32_t> tokens, size_t prompt_tokens);
  std::vector<int32_t> SupportFromBase() const;
  void MixWithBase(std::span<const int32_t> support);

  Session* session_;
  Session* base_;
  const text::Tokenizer* tokenizer_;
  uint32_t base_top_, num_contexts_;
  bool only_text_;
  uint64_t block_;            // see samples_per_charge
  bool short_block_ = false;  // true if blocks of the current text are shortened
  double mixing_floor_;
  privacy::Ledger* ledger_;
  std::string run_;
  privacy::NoiseKind noise_;
  PrivateTexts texts_;
  SamplingSetup setup_;
  std::optional<PrivateContexts> contexts_;
  std::vector<float> scores_, base_scores_;  // of all rows of the model
  std::vector<int64_t> sums_;
  std::vector<double> mixing_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TEXT_PRIVATE_SAMPLING_PRIVATE_GENERATOR_H_
