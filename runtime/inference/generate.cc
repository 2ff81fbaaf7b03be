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

Status Check(const Session& session, const text::Tokenizer& tokenizer, const GenerateOptions& o) {
  WISP_RETURN_IF_ERROR(Validate(o.sampling));
  const Architecture& a = session.architecture();
  if (a.attend != Attend::kCausal)
    return InvalidArgument(session.file().name(), ": its positions see those behind them: it generates no text");
  if (tokenizer.size() > a.num_items)
    return InvalidArgument("the tokenizer has ", tokenizer.size(), " tokens, the model ", a.num_items);
  if (std::any_of(o.stop.begin(), o.stop.end(), [](const std::string& stop) { return stop.empty(); }))
    return InvalidArgument("a text that ends generation is empty; allowed is one byte or more");
  return OkStatus();
}

// The tokens of a prompt. A tokenizer's template may end in a token that closes a text: a prompt goes on.
Status Prompt(const Session& session, const text::Tokenizer& tokenizer, std::string_view prompt,
              std::vector<int32_t>& tokens) {
  WISP_RETURN_IF_ERROR(tokenizer.Encode(prompt, {}, tokens));
  const text::SpecialIds special = tokenizer.special_ids();
  if (tokens.size() > 1 && tokens.back() == special.eos) tokens.pop_back();
  if (tokens.empty() && special.bos >= 0) tokens.push_back(special.bos);
  const uint32_t most = session.architecture().max_length;
  if (tokens.empty()) return InvalidArgument("the prompt has no token, and the model none that begins a text");
  if (tokens.size() < most) return OkStatus();
  return InvalidArgument("the prompt has ", tokens.size(), " tokens; the model has ", most,
                         " positions, and one at least is needed for what is generated");
}

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

Result<Generated> Generate(Session& session, const text::Tokenizer& tokenizer, std::string_view prompt,
                           const GenerateOptions& o, const OnText& on_text) {
  WISP_RETURN_IF_ERROR(Check(session, tokenizer, o));
  std::vector<int32_t> tokens;
  WISP_RETURN_IF_ERROR(Prompt(session, tokenizer, prompt, tokens));
  Generated made{.prompt_tokens = tokens.size()};
  text::StreamDecoder stream(tokenizer, {});
  // The prompt's own text is not shown; it says whether a space comes first.
  for (const int32_t token : tokens) WISP_RETURN_IF_ERROR(stream.Push(token).status());
  StopTexts stop(o.stop);
  TokenSampler sampler(o.sampling);
  const int32_t end = tokenizer.special_ids().eos;
  std::vector<float> scores(session.architecture().num_items);
  const auto show = [&](const std::string& more) {
    made.text += more;
    return more.empty() || !on_text || on_text(more);
  };
  bool stopped = false, goes_on = true;
  while (goes_on && !stopped) {
    made.ended = tokens.size() >= session.architecture().max_length ? Ended::kContextFull : Ended::kLength;
    if (made.tokens.size() >= o.max_new_tokens || made.ended == Ended::kContextFull) break;
    WISP_RETURN_IF_ERROR(session.Score(tokens, scores));
    if (!std::all_of(scores.begin(), scores.end(), [](float s) { return std::isfinite(s); }))
      return session.NotFinite();
    // The model may have more rows than the tokenizer has tokens.
    const int32_t token = sampler.Draw(std::span(scores).first(tokenizer.size()), tokens);
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

}  // namespace wisp
