// Uses private texts as references in the prompt of a public model. Each text gives a context beside a public one. The
// result is the clipped sum of the differences of their scores from the public context's (context_sum.h).
//
//   WISP_ASSIGN_OR_RETURN(PrivateContexts contexts, PrivateContexts::Create(*session, tokenizer,
//       {.texts = notes, .after = "\n"}, "A note:", {.contexts = 8, .max_new_tokens = 50}));
//   WISP_RETURN_IF_ERROR(contexts.Sum(sampled, 4.0, public_scores, sums));
//
// A context consists of `before`, its text, `after`, the prompt, and the sampled tokens. The public context has
// `public_text` in place of the text. A text that is too long is cut at its end, so a context's end follows from public
// numbers. One text is one record: it changes one context, and no other depends on it. A text never causes a refusal:
// one that the tokenizer rejects adds nothing and is counted.
#ifndef WISP_RUNTIME_TEXT_PRIVATE_SAMPLING_PRIVATE_CONTEXTS_H_
#define WISP_RUNTIME_TEXT_PRIVATE_SAMPLING_PRIVATE_CONTEXTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/text_batch.h"
#include "runtime/text/texts.h"

namespace wisp {

struct PrivateTexts {
  std::span<const std::string> texts = {};  // PRIVATE: one record each; only Create reads them
  // PUBLIC: the text around each private text, and the text that replaces it in the public context.
  std::string before = {}, after = "\n", public_text = {};
};

class PrivateContexts {
 public:
  struct Sizes {
    // B. This many contexts, up to 255, keep their keys and values; the others are recomputed each time.
    uint32_t contexts = 1;
    uint32_t max_new_tokens = 1;
  };
  // The session must outlive this object. Errors depend on public values only. kInvalidArgument: the prompt and the
  // tokens to be sampled leave no position for a text.
  static Result<PrivateContexts> Create(const Session& session, const text::Tokenizer& tokenizer,
                                        const PrivateTexts& texts, std::string_view prompt, const Sizes& sizes);

  // The tokens of the public context, before anything is sampled.
  const std::vector<int32_t>& public_tokens() const { return public_tokens_; }
  // Scores [num_items] after the public context and `sampled`.
  Status PublicScores(std::span<const int32_t> sampled, std::span<float> scores);
  // sums [n], n <= num_items: the sum of AddClipped over every private context, for tokens 0 .. n - 1. Before clipping,
  // the mean of a context's difference from public_scores [n] is subtracted.
  Status Sum(std::span<const int32_t> sampled, double clip, std::span<const float> public_scores,
             std::span<int64_t> sums);

  size_t left_out() const { return left_out_; }  // number of texts that could not be read; do not publish it

 private:
  PrivateContexts(size_t num_items, std::unique_ptr<TextBatch> batch);
  // Scores the private contexts from `first` on that fit one call, into scores_. Returns their number.
  Result<size_t> ScoreFrom(size_t first, std::span<const int32_t> sampled);
  size_t kept() const;  // number of contexts that keep their keys and values

  std::vector<int32_t> public_tokens_, tail_;  // tail_: the tokens after each text
  std::vector<std::vector<int32_t>> heads_;    // the tokens before the tail, for each private context
  size_t left_out_ = 0, num_items_;
  std::unique_ptr<TextBatch> batch_;          // place 0 holds the public context, later places private ones
  std::vector<std::vector<int32_t>> tokens_;  // of the contexts that are scored together
  std::vector<float> scores_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TEXT_PRIVATE_SAMPLING_PRIVATE_CONTEXTS_H_
