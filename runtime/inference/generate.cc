#include "runtime/inference/generate.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace wisp {
namespace {

// Shows a text as it comes, but for what may be the beginning of a text that ends it.
class StopTexts {
 public:
  explicit StopTexts(std::span<const std::string> stop) : stop_(stop) {}

  // What may be shown now. `stopped` where a stop text has come: then nothing more is to be shown.
  std::string Push(std::string_view more, bool& stopped) {
    held_ += more;
    size_t first = std::string::npos;
    for (const std::string& stop : stop_) first = std::min(first, held_.find(stop));
    stopped = first != std::string::npos;
    const size_t shown = stopped ? first : held_.size() - Beginning();
    std::string out = held_.substr(0, shown);
    held_.erase(0, shown);
    return out;
  }
  std::string Rest() { return std::exchange(held_, {}); }

 private:
  // How many bytes at the end may begin a stop text.
  size_t Beginning() const {
    size_t longest = 0;
    for (const std::string& stop : stop_) {
      for (size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
        if (held_.ends_with(std::string_view(stop).substr(0, n))) longest = n;
      }
    }
    return longest;
  }

  std::span<const std::string> stop_;
  std::string held_;
};

}  // namespace

const char* NameOf(Ended ended) {
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
  WISP_RETURN_IF_ERROR(tokenizer.Encode(prompt, {}, tokens));
  const text::SpecialIds special = tokenizer.special_ids();
  if (tokens.size() > 1 && tokens.back() == special.eos) tokens.pop_back();
  if (tokens.empty() && special.bos >= 0) tokens.push_back(special.bos);
  if (tokens.empty()) return InvalidArgument("the prompt has no token, and the model none that begins a text");
  if (tokens.size() < max_tokens) return OkStatus();
  return InvalidArgument("the prompt has ", tokens.size(), " tokens; the model has ", max_tokens,
                         " positions, and one at least is needed for what is generated");
}

Result<Generated> GrowText(const text::Tokenizer& tokenizer, std::vector<int32_t> tokens, const TextLimits& limits,
                           const NextToken& next, const OnText& on_text) {
  Generated made{.prompt_tokens = tokens.size()};
  text::StreamDecoder stream(tokenizer, {});
  // The prompt's own text is not shown; it says whether a space comes first.
  for (const int32_t token : tokens) WISP_RETURN_IF_ERROR(stream.Push(token).status());
  StopTexts stop(limits.stop);
  const int32_t end = tokenizer.special_ids().eos;
  const auto show = [&](const std::string& more) {
    made.text += more;
    return more.empty() || !on_text || on_text(more);
  };
  bool stopped = false, goes_on = true;
  while (goes_on && !stopped) {
    made.ended = tokens.size() >= limits.max_tokens ? Ended::kContextFull : Ended::kLength;
    if (made.tokens.size() >= limits.max_new_tokens || made.ended == Ended::kContextFull) break;
    WISP_ASSIGN_OR_RETURN(const int32_t token, next(tokens));
    made.ended = Ended::kEndToken;
    if (token == end) break;
    tokens.push_back(token);
    made.tokens.push_back(token);
    WISP_ASSIGN_OR_RETURN(const std::string more, stream.Push(token));
    goes_on = show(stop.Push(more, stopped));
    made.ended = stopped ? Ended::kStopText : Ended::kCaller;
  }
  if (stopped || !goes_on) return made;
  WISP_ASSIGN_OR_RETURN(const std::string rest, stream.Finish());
  const std::string last = stop.Push(rest, stopped);
  if (stopped) made.ended = Ended::kStopText;
  show(stopped ? last : last + stop.Rest());
  return made;
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
    return sampler.Draw(std::span(scores).first(tokenizer.size()), history);
  };
  return GrowText(tokenizer, std::move(tokens),
                  {.max_new_tokens = o.max_new_tokens, .max_tokens = positions, .stop = o.stop}, next, on_text);
}

}  // namespace wisp
