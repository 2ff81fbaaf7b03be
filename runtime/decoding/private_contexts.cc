#include "runtime/decoding/private_contexts.h"

#include <algorithm>
#include <utility>

#include "runtime/decoding/context_sum.h"
#include "runtime/decoding/draw_law.h"

namespace wisp {
namespace {

// The tokens up to the end of a text, at most `room`. A tokenizer's template may end in a token that closes a text.
Result<std::vector<int32_t>> HeadOf(const text::Tokenizer& tokenizer, const std::string& text, size_t room) {
  std::vector<int32_t> head;
  WISP_RETURN_IF_ERROR(tokenizer.Encode(text, {}, head));
  if (!head.empty() && head.back() == tokenizer.special_ids().eos) head.pop_back();
  head.resize(std::min(head.size(), room));
  return head;
}

void Join(const std::vector<int32_t>& head, const std::vector<int32_t>& tail, std::span<const int32_t> drawn,
          std::vector<int32_t>& tokens) {
  tokens.assign(head.begin(), head.end());
  tokens.insert(tokens.end(), tail.begin(), tail.end());
  tokens.insert(tokens.end(), drawn.begin(), drawn.end());
}

}  // namespace

PrivateContexts::PrivateContexts(const Session& session, size_t kept)
    : kept_(kept), states_(session, 1 + kept), scores_(session.architecture().num_items) {}

Result<PrivateContexts> PrivateContexts::Create(const Session& session, const text::Tokenizer& tokenizer,
                                                const PrivateTexts& texts, std::string_view prompt,
                                                const Sizes& sizes) {
  const size_t most = session.architecture().max_length;
  std::vector<int32_t> tail;
  WISP_RETURN_IF_ERROR(
      tokenizer.Encode(texts.after + std::string(prompt), {.special = text::SpecialTokens::kNone}, tail));
  if (tail.empty()) return InvalidArgument("the prompt behind the private texts has no token");
  if (tail.size() + sizes.max_new_tokens >= most) {
    return InvalidArgument("the prompt has ", tail.size(), " tokens behind the private texts, and ",
                           sizes.max_new_tokens, " more are to be drawn; the model has ", most,
                           " positions, and one at least is needed for a text");
  }
  const size_t room = most - tail.size() - sizes.max_new_tokens;
  PrivateContexts contexts(session, std::clamp<size_t>(texts.texts.size(), 1, sizes.contexts));
  WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> head, HeadOf(tokenizer, texts.before + texts.public_text, room));
  Join(head, tail, {}, contexts.public_tokens_);
  for (const std::string& text : texts.texts) {
    Result<std::vector<int32_t>> tokens = HeadOf(tokenizer, texts.before + text, room);
    if (tokens.ok()) contexts.heads_.push_back(*std::move(tokens));
  }
  contexts.left_out_ = texts.texts.size() - contexts.heads_.size();
  contexts.tail_ = std::move(tail);
  return contexts;
}

Status PrivateContexts::PublicScores(std::span<const int32_t> drawn, std::span<float> scores) {
  Join(public_tokens_, {}, drawn, tokens_);
  return states_.Score(0, tokens_, scores);
}

// Where a record's influence is bounded: AddClipped, once for each of them.
Status PrivateContexts::Sum(std::span<const int32_t> drawn, double clip, std::span<const float> public_scores,
                            std::span<int64_t> sums) {
  std::fill(sums.begin(), sums.end(), int64_t{0});
  const std::span<float> read = std::span(scores_).first(sums.size());
  for (size_t i = 0; i < heads_.size(); ++i) {
    Join(heads_[i], tail_, drawn, tokens_);
    WISP_RETURN_IF_ERROR(states_.Score(1 + std::min(i, kept_ - 1), tokens_, scores_));
    Centre(read, public_scores);
    AddClipped(read, public_scores, clip, sums);
  }
  return OkStatus();
}

}  // namespace wisp
