// Text from a decoder, token by token, shown while it grows.
//
//   WISP_ASSIGN_OR_RETURN(const auto session, Session::Open("gpt2.wisp"));
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, TokenizerOf(session->file()));
//   WISP_ASSIGN_OR_RETURN(const Generated made, Generate(*session, tokenizer, "Once", {.max_new_tokens = 100},
//                                                        [](std::string_view more) { return Show(more); }));
//
// The session keeps keys and values, so each token costs one position; a prompt that begins as the last text did costs
// what is new. What it is not: private. Draws that are charged: runtime/decoding.
#ifndef WISP_RUNTIME_INFERENCE_GENERATE_H_
#define WISP_RUNTIME_INFERENCE_GENERATE_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/inference/session.h"
#include "runtime/inference/token_sampler.h"
#include "runtime/text/tokenizer.h"

namespace wisp {

struct GenerateOptions {
  SamplingOptions sampling;
  uint32_t max_new_tokens = 128;
  std::vector<std::string> stop;  // where one of these comes, the text ends before it; none is empty
};

// Why a text ended: so many tokens as were asked for; a token for an end; a text of `stop`; as many positions
// as the model has; the caller.
enum class Ended { kLength, kEndToken, kStopText, kContextFull, kCaller };
// "max_new_tokens", "end", "stop", "context", "caller".
const char* NameOf(Ended ended);

struct Generated {
  std::vector<int32_t> tokens;  // without the prompt's
  std::string text;
  Ended ended = Ended::kLength;
  size_t prompt_tokens = 0;
};

// What is new of the text, whole characters: false ends it.
using OnText = std::function<bool(std::string_view more)>;

// How a text grows: who chooses its tokens is another question.
struct TextLimits {
  uint32_t max_new_tokens = 128;
  size_t max_tokens = 0;  // the prompt's and what is new: positions of the model
  std::span<const std::string> stop = {};
};
// The token after those that are there, the prompt's first.
using NextToken = std::function<Result<int32_t>(std::span<const int32_t> tokens)>;

// kInvalidArgument: a model that does not predict the next token from those before it; a tokenizer with more tokens; a
// stop text that is empty.
Status CheckGenerates(const Session& session, const text::Tokenizer& tokenizer, std::span<const std::string> stop);

// The tokens of a prompt. What the tokenizer's template puts behind a text is left out: a prompt goes on. A token for
// an end that the prompt itself holds stays, and the text goes on behind it. kInvalidArgument: there is none; or as
// many as `max_tokens`, or more.
Status PromptTokens(const text::Tokenizer& tokenizer, std::string_view prompt, size_t max_tokens,
                    std::vector<int32_t>& tokens);

// Shows a text as it comes, but for what may be the beginning of a text that ends it.
class StopTexts {
 public:
  // The texts must outlive it.
  explicit StopTexts(std::span<const std::string> stop) : stop_(stop) {}

  // What may be shown now. `stopped` where a stop text has come: then nothing more is to be shown.
  std::string Push(std::string_view more, bool& stopped);
  std::string Rest() { return std::exchange(held_, {}); }

 private:
  // How many bytes at the end may begin a stop text.
  size_t Beginning() const;

  std::span<const std::string> stop_;
  std::string held_;
};

// A text that grows by tokens that somebody else chooses. When it ends follows from the tokens and from `on_text`
// alone.
//
//   while (!growth.over()) WISP_RETURN_IF_ERROR(growth.Push(Choose(growth.tokens()), on_text));
//   return growth.Finish(on_text);
class TextGrowth {
 public:
  // The tokenizer, and the texts of limits.stop, must outlive it.
  static Result<TextGrowth> Begin(const text::Tokenizer& tokenizer, std::vector<int32_t> prompt,
                                  const TextLimits& limits);

  bool over() const { return over_; }
  std::span<const int32_t> tokens() const { return tokens_; }  // the prompt's first
  // Must not be over.
  Status Push(int32_t token, const OnText& on_text);
  // Once, when it is over: shows what was held back.
  Result<Generated> Finish(const OnText& on_text);

 private:
  TextGrowth(const text::Tokenizer& tokenizer, std::vector<int32_t> prompt, const TextLimits& limits);
  void LookForRoom();
  bool Show(const std::string& more, const OnText& on_text);

  TextLimits limits_;
  const text::Tokenizer* tokenizer_;
  std::vector<int32_t> tokens_;
  text::StreamDecoder stream_;
  StopTexts stop_;
  Generated made_;
  bool over_ = false, cut_ = false;  // cut: nothing more is to be shown
};

// Asks for token after token. When it ends follows from the tokens and from `on_text` alone.
Result<Generated> GrowText(const text::Tokenizer& tokenizer, std::vector<int32_t> prompt, const TextLimits& limits,
                           const NextToken& next, const OnText& on_text);

// kInvalidArgument: options out of range; a prompt without a token, or one that fills the model's positions; a model
// that does not predict the next token from those before it. kInvalidData: scores that are no finite numbers.
Result<Generated> Generate(Session& session, const text::Tokenizer& tokenizer, std::string_view prompt,
                           const GenerateOptions& options, const OnText& on_text = {});

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_GENERATE_H_
