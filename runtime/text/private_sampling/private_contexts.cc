#include "runtime/text/private_sampling/private_contexts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/core/text.h"
#include "runtime/private_sampling/context_sum.h"
#include "runtime/private_sampling/sample_law.h"

namespace wisp {
namespace {

// The tokens of a text to be continued, at most `room`.
Result<std::vector<int32_t>> MakeHead(const text::Tokenizer& tokenizer, const std::string& text, size_t room) {
  std::vector<int32_t> head;
  WISP_RETURN_IF_ERROR(tokenizer.Encode(text, {.special = text::SpecialTokens::kBefore}, head));
  head.resize(std::min(head.size(), room));
  return head;
}

void Join(const std::vector<int32_t>& head, const std::vector<int32_t>& tail, std::span<const int32_t> sampled,
          std::vector<int32_t>& tokens) {
  tokens.assign(head.begin(), head.end());
  tokens.insert(tokens.end(), tail.begin(), tail.end());
  tokens.insert(tokens.end(), sampled.begin(), sampled.end());
}

// The most contexts in one pass: enough rows to read the weights once for all, while their scores stay small.
constexpr size_t kTogether = 16;

}  // namespace

PrivateContexts::PrivateContexts(size_t num_items, std::unique_ptr<TextBatch> batch)
    : num_items_(num_items), batch_(std::move(batch)), tokens_(kTogether), scores_(kTogether * num_items) {}

size_t PrivateContexts::kept() const { return batch_->places() - 1; }

Result<PrivateContexts> PrivateContexts::Create(const Session& session, const text::Tokenizer& tokenizer,
                                                const PrivateTexts& texts, std::string_view prompt,
                                                const Sizes& sizes) {
  const size_t most = session.architecture().max_length;
  std::vector<int32_t> tail;
  WISP_RETURN_IF_ERROR(
      tokenizer.Encode(texts.after + std::string(prompt), {.special = text::SpecialTokens::kNone}, tail));
  if (tail.empty()) return InvalidArgument("the prompt behind the private texts has no token");
  if (tail.size() + sizes.max_new_tokens >= most) {
    return InvalidArgument("the prompt has ", Counted(tail.size(), "token"), " behind the private texts, and ",
                           sizes.max_new_tokens, " more are to be sampled; the model has ", most,
                           " positions, and one at least is needed for a text");
  }
  const size_t room = most - tail.size() - sizes.max_new_tokens;
  const size_t kept =
      std::clamp<size_t>(texts.texts.size(), 1, std::min<size_t>(sizes.contexts, TextBatch::kMostPlaces - 1));
  WISP_ASSIGN_OR_RETURN(auto batch, TextBatch::Create(session, {.places = 1 + kept}));
  PrivateContexts contexts(session.architecture().num_items, std::move(batch));
  WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> head, MakeHead(tokenizer, texts.before + texts.public_text, room));
  Join(head, tail, {}, contexts.public_tokens_);
  for (const std::string& text : texts.texts) {
    Result<std::vector<int32_t>> tokens = MakeHead(tokenizer, texts.before + text, room);
    if (tokens.ok()) contexts.heads_.push_back(*std::move(tokens));
  }
  contexts.left_out_ = texts.texts.size() - contexts.heads_.size();
  contexts.tail_ = std::move(tail);
  return contexts;
}

Status PrivateContexts::PublicScores(std::span<const int32_t> sampled, std::span<float> scores) {
  Join(public_tokens_, {}, sampled, tokens_[0]);
  const TextBatch::Text text{.place = 0, .tokens = tokens_[0]};
  return batch_->Score({&text, 1}, scores);
}

// Contexts beyond the kept ones are computed one after another in the last place, which keeps nothing of them.
Result<size_t> PrivateContexts::ScoreFrom(size_t first, std::span<const int32_t> sampled) {
  const size_t end = std::min(heads_.size(), first < kept() ? std::min(first + kTogether, kept()) : first + 1);
  std::array<TextBatch::Text, kTogether> texts;
  for (size_t i = first; i < end; ++i) {
    Join(heads_[i], tail_, sampled, tokens_[i - first]);
    texts[i - first] = {.place = 1 + std::min(i, kept() - 1), .tokens = tokens_[i - first]};
  }
  const size_t count = end - first;
  WISP_RETURN_IF_ERROR(batch_->Score(std::span(texts).first(count), std::span(scores_).first(count * num_items_)));
  return count;
}

// Bounds each record's influence: AddClipped is called once for each context.
Status PrivateContexts::Sum(std::span<const int32_t> sampled, double clip, std::span<const float> public_scores,
                            std::span<int64_t> sums) {
  std::fill(sums.begin(), sums.end(), int64_t{0});
  for (size_t first = 0; first < heads_.size();) {
    WISP_ASSIGN_OR_RETURN(const size_t count, ScoreFrom(first, sampled));
    for (size_t i = 0; i < count; ++i) {
      const std::span<float> read = std::span(scores_).subspan(i * num_items_, sums.size());
      Centre(read, public_scores);
      AddClipped(read, public_scores, clip, sums);
    }
    first += count;
  }
  return OkStatus();
}

}  // namespace wisp
