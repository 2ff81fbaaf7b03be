// Texts drawn privately: every token is a mechanism of its own, charged to the ledger before a random number of it is
// drawn (docs/algorithms.md, section 7).
//
//   WISP_ASSIGN_OR_RETURN(PrivateGenerator generator, PrivateGenerator::Create(*tuned, tokenizer, {.draws = {
//       .base = shipped.get(), .goal = {.lifetime = DrawGoal::Lifetime{target, 200}}, .public_datasets = labels,
//       .ledger = &ledger}}));
//   WISP_ASSIGN_OR_RETURN(const Generated made, generator.Generate("Dear", {.max_new_tokens = 50}, show));
//
// What is protected: the records that the weights were trained on; with PrivateTexts the texts in the prompt, one of
// them a record, and then the weights must be public. What is not: the prompt; the model's size; how many tokens are
// asked for; time. When a text ends follows from drawn tokens alone. Sensitivity: draw_cost.h. Which line charges:
// PrivateSampler::Pay. Weights with a guarantee are drawn from freely, and no ledger is touched.
#ifndef WISP_RUNTIME_DECODING_PRIVATE_GENERATOR_H_
#define WISP_RUNTIME_DECODING_PRIVATE_GENERATOR_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/decoding/draw_setup.h"
#include "runtime/decoding/private_contexts.h"
#include "runtime/inference/generate.h"

namespace wisp {

struct PrivateGeneratorOptions {
  // `contexts` above 0: with PrivateTexts. charge_for and largest_support are not read: all tokens, or `base_top` of
  // them.
  PrivateDrawOptions draws = {};
  // Above 0: drawn are only the so many best of the base, or of the public context, at each token; a public choice.
  uint32_t base_top = 0;
  // No other text is drawn afterwards: a block of charges is then no larger than what may still be drawn. Otherwise it
  // is where the budget has no room for whole blocks.
  bool only_text = false;
};

struct PrivateGenerateOptions {
  uint32_t max_new_tokens = 128;
  std::vector<std::string> stop = {};  // where one of these comes, the text ends before it
};

// Used by one thread at a time, with its sessions.
class PrivateGenerator {
 public:
  // Session and tokenizer must outlive it. `texts`: with draws.contexts only; what they hold must live until the last
  // Generate. kPrivacyRefused: what has no guarantee. kInvalidArgument: a base with another tokenizer. The ledger stays
  // as it is until a text is drawn.
  static Result<PrivateGenerator> Create(Session& session, const text::Tokenizer& tokenizer,
                                         const PrivateGeneratorOptions& options, PrivateTexts texts = {});

  // The first text that is not refused writes the new limit and the lifetime's plan, before its first charge.
  // kPrivacyRefused, before anything is written, charged or drawn, where the ledger's limit has no room for as many
  // tokens as are asked for: the sentence says how many there is room for. Should another process spend that meanwhile,
  // the text ends with the same error; what was shown by then was paid for. Errors depend on public values and on the
  // ledger only.
  Result<Generated> Generate(std::string_view prompt, const PrivateGenerateOptions& options,
                             const OnText& on_text = {});

  const DrawSetup& setup() const { return setup_; }
  bool is_free() const { return setup_.mode == DecodingMode::kPlain; }
  // Private texts that could not be read, of the last Generate: local only.
  size_t left_out() const { return contexts_ ? contexts_->left_out() : 0; }

 private:
  PrivateGenerator(Session& session, const text::Tokenizer& tokenizer, const PrivateGeneratorOptions& options,
                   PrivateTexts texts, DrawSetup setup);
  // What so many tokens are charged for, where the ledger has room for it.
  Result<std::vector<privacy::ChargeRequest>> CheckRoom(uint32_t tokens);
  Status PlanText(std::span<const privacy::ChargeRequest> charges);
  // The prompt's tokens, and at how many tokens a text ends.
  Result<std::vector<int32_t>> Begin(std::string_view prompt, uint32_t max_new_tokens, size_t& max_tokens);
  Result<int32_t> Next(std::span<const int32_t> tokens, size_t prompt_tokens, uint32_t at_most);
  // Scores of the public model or context, in base_scores_.
  Status ReadBase(std::span<const int32_t> tokens, size_t prompt_tokens);
  std::vector<int32_t> SupportFromBase() const;
  void MixWithBase(std::span<const int32_t> support);

  Session* session_;
  Session* base_;
  const text::Tokenizer* tokenizer_;
  uint32_t base_top_, num_contexts_;
  bool only_text_;
  uint64_t block_;            // draws_per_charge
  bool short_block_ = false;  // of the text that is drawn
  double mixing_floor_;
  privacy::Ledger* ledger_;
  std::string run_;
  privacy::NoiseKind noise_;
  PrivateTexts texts_;
  DrawSetup setup_;
  std::optional<PrivateContexts> contexts_;
  std::vector<float> scores_, base_scores_;  // of all rows of the model
  std::vector<int64_t> sums_;
  std::vector<double> mixing_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_PRIVATE_GENERATOR_H_
