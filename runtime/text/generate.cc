#include "runtime/text/generate.h"

#include <algorithm>
#include <cmath>

namespace wisp {

const char* GetName(Ended ended) {
  switch (ended) {
    case Ended::kLength:
      return "max_new_tokens";
    case Ended::kEndToken:
      return "end";
    case Ended::kStopText:
      return "stop";
    case Ended::kContextFull:
      return "context";
    case Ended::kCaller:
      return "caller";
  }
  return "";
}

Status CheckGenerates(const Session& session, const text::Tokenizer& tokenizer, std::span<const std::string> stop) {
  const Architecture& a = session.architecture();
  if (a.attend != Attend::kCausal)
    return InvalidArgument(session.file().name(), ": its positions see those behind them: it generates no text");
  if (tokenizer.size() > a.num_items)
    return InvalidArgument("the tokenizer has ", tokenizer.size(), " tokens, the model ", a.num_items);
  if (std::any_of(stop.begin(), stop.end(), [](const std::string& text) { return text.empty(); }))
    return InvalidArgument("a text that ends generation is empty; allowed is one byte or more");
  return OkStatus();
}

Status PromptTokens(const text::Tokenizer& tokenizer, std::string_view prompt, size_t max_tokens,
                    std::vector<int32_t>& tokens) {
  WISP_RETURN_IF_ERROR(tokenizer.Encode(prompt, {.special = text::SpecialTokens::kBefore}, tokens));
  const int32_t begin = tokenizer.special_ids().bos;
  if (tokens.empty() && begin >= 0) tokens.push_back(begin);
  if (tokens.empty()) return InvalidArgument("the prompt has no token, and the model none that begins a text");
  if (tokens.size() < max_tokens) return OkStatus();
  return InvalidArgument("the prompt has ", tokens.size(), " tokens; the model has ", max_tokens,
                         " positions, and one at least is needed for what is generated");
}

std::string StopTexts::Push(std::string_view more, bool& stopped) {
  held_ += more;
  size_t first = std::string::npos;
  for (const std::string& stop : stop_) first = std::min(first, held_.find(stop));
  stopped = first != std::string::npos;
  const size_t shown = stopped ? first : held_.size() - Beginning();
  std::string out = held_.substr(0, shown);
  held_.erase(0, shown);
  return out;
}

size_t StopTexts::Beginning() const {
  size_t longest = 0;
  for (const std::string& stop : stop_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) longest = n;
    }
  }
  return longest;
}

TextGrowth::TextGrowth(const text::Tokenizer& tokenizer, std::vector<int32_t> prompt, const TextLimits& limits)
    : limits_(limits),
      tokenizer_(&tokenizer),
      tokens_(std::move(prompt)),
      stream_(tokenizer, {}),
      stop_(limits.stop),
      made_{.prompt_tokens = tokens_.size()} {}

// The prompt's text is not shown. It decides whether a space comes first.
Result<TextGrowth> TextGrowth::Begin(const text::Tokenizer& tokenizer, std::vector<int32_t> prompt,
                                     const TextLimits& limits) {
  TextGrowth growth(tokenizer, std::move(prompt), limits);
  for (const int32_t token : growth.tokens_) WISP_RETURN_IF_ERROR(growth.stream_.Push(token).status());
  growth.stream_.Forget();
  growth.LookForRoom();
  return growth;
}

void TextGrowth::LookForRoom() {
  const bool full = tokens_.size() >= limits_.max_tokens;
  over_ = full || made_.tokens.size() >= limits_.max_new_tokens;
  made_.ended = full ? Ended::kContextFull : Ended::kLength;
}

bool TextGrowth::Show(const std::string& more, const OnText& on_text) {
  made_.text += more;
  return more.empty() || !on_text || on_text(more);
}

Status TextGrowth::Push(int32_t token, const OnText& on_text) {
  over_ = true;
  made_.ended = Ended::kEndToken;
  if (tokenizer_->IsEnd(token)) return OkStatus();
  tokens_.push_back(token);
  made_.tokens.push_back(token);
  WISP_ASSIGN_OR_RETURN(const std::string more, stream_.Push(token));
  bool stopped = false;
  const bool goes_on = Show(stop_.Push(more, stopped), on_text);
  cut_ = stopped || !goes_on;
  made_.ended = stopped ? Ended::kStopText : Ended::kCaller;
  if (!cut_) LookForRoom();
  return OkStatus();
}

Result<Generated> TextGrowth::Finish(const OnText& on_text) {
  if (cut_) return std::move(made_);
  bool stopped = false;
  const std::string last = stop_.Push(stream_.Finish(), stopped);
  if (stopped) made_.ended = Ended::kStopText;
  Show(stopped ? last : last + stop_.Rest(), on_text);
  return std::move(made_);
}

Result<Generated> GrowText(const text::Tokenizer& tokenizer, std::vector<int32_t> prompt, const TextLimits& limits,
                           const NextToken& next, const OnText& on_text) {
  WISP_ASSIGN_OR_RETURN(TextGrowth growth, TextGrowth::Begin(tokenizer, std::move(prompt), limits));
  while (!growth.over()) {
    WISP_ASSIGN_OR_RETURN(const int32_t token, next(growth.tokens()));
    WISP_RETURN_IF_ERROR(growth.Push(token, on_text));
  }
  return growth.Finish(on_text);
}

Result<Generated> Generate(Session& session, const text::Tokenizer& tokenizer, std::string_view prompt,
                           const GenerateOptions& o, const OnText& on_text) {
  WISP_RETURN_IF_ERROR(Validate(o.sampling));
  WISP_RETURN_IF_ERROR(CheckGenerates(session, tokenizer, o.stop));
  const uint32_t positions = session.architecture().max_length;
  std::vector<int32_t> tokens;
  WISP_RETURN_IF_ERROR(PromptTokens(tokenizer, prompt, positions, tokens));
  TokenSampler sampler(o.sampling);
  std::vector<float> scores(session.architecture().num_items);
  const NextToken next = [&](std::span<const int32_t> history) -> Result<int32_t> {
    WISP_RETURN_IF_ERROR(session.Score(history, scores));
    if (!std::all_of(scores.begin(), scores.end(), [](float s) { return std::isfinite(s); }))
      return session.NotFinite();
    // The model may have more rows than the tokenizer has tokens.
    return sampler.Sample(std::span(scores).first(tokenizer.size()), history);
  };
  return GrowText(tokenizer, std::move(tokens),
                  {.max_new_tokens = o.max_new_tokens, .max_tokens = positions, .stop = o.stop}, next, on_text);
}

}  // namespace wisp
