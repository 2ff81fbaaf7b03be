// Private texts as references in the prompt of a public model: for each of them a context, beside a public one, and the
// clipped sum of what they say otherwise (context_sum.h).
//
//   WISP_ASSIGN_OR_RETURN(PrivateContexts contexts, PrivateContexts::Create(*session, tokenizer,
//       {.texts = notes, .after = "\n"}, "A note:", {.contexts = 8, .max_new_tokens = 50}));
//   WISP_RETURN_IF_ERROR(contexts.Sum(drawn, 4.0, public_scores, sums));
//
// A context reads `before`, its text, `after`, the prompt, and what was drawn; the public one has `public_text` in the
// text's place. A text that is too long is cut at its end, so that where a context ends follows from public numbers.
// One text is one record: it moves one context, and no other knows of it. Nothing is refused because of a text: one
// that the tokenizer does not take adds nothing and is counted.
#ifndef WISP_RUNTIME_DECODING_PRIVATE_CONTEXTS_H_
#define WISP_RUNTIME_DECODING_PRIVATE_CONTEXTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/inference/text_batch.h"
#include "runtime/inference/texts.h"

namespace wisp {

struct PrivateTexts {
  std::span<const std::string> texts = {};  // PRIVATE: each one record; read by Create only
  // PUBLIC: what stands around each text, and what stands in its place in the public context.
  std::string before = {}, after = "\n", public_text = {};
};

class PrivateContexts {
 public:
  struct Sizes {
    // B: as many contexts keep their keys and values, up to 255; the others are computed anew each time.
    uint32_t contexts = 1;
    uint32_t max_new_tokens = 1;
  };
  // The session must outlive it. Errors are of public values: kInvalidArgument where the prompt and what is to be drawn
  // leave no position for a text.
  static Result<PrivateContexts> Create(const Session& session, const text::Tokenizer& tokenizer,
                                        const PrivateTexts& texts, std::string_view prompt, const Sizes& sizes);

  // The public context, before anything is drawn.
  const std::vector<int32_t>& public_tokens() const { return public_tokens_; }
  // Scores [num_items] after the public context and `drawn`.
  Status PublicScores(std::span<const int32_t> drawn, std::span<float> scores);
  // sums [n], n up to num_items: AddClipped of every private context's scores for tokens 0 .. n - 1, after taking the
  // mean of their difference to the public ones [n] off.
  Status Sum(std::span<const int32_t> drawn, double clip, std::span<const float> public_scores,
             std::span<int64_t> sums);

  size_t left_out() const { return left_out_; }  // texts that could not be read: local only

 private:
  PrivateContexts(size_t num_items, std::unique_ptr<TextBatch> batch);
  // The private contexts from `first` on that are scored in one call: scores_ then has theirs. Returns how many.
  Result<size_t> ScoreFrom(size_t first, std::span<const int32_t> drawn);
  size_t kept() const;  // contexts that keep their keys and values

  std::vector<int32_t> public_tokens_, tail_;  // tail: what stands behind each text
  std::vector<std::vector<int32_t>> heads_;    // of each private context
  size_t left_out_ = 0, num_items_;
  std::unique_ptr<TextBatch> batch_;          // the public context in place 0, private ones behind it
  std::vector<std::vector<int32_t>> tokens_;  // of those that are scored together
  std::vector<float> scores_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_PRIVATE_CONTEXTS_H_
