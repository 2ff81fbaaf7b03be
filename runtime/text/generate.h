// Generates text with a decoder, token by token, and shows it as it grows.
//
//   WISP_ASSIGN_OR_RETURN(const auto session, Session::Open("gpt2.wisp"));
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, FindTokenizer(session->file()));
//   WISP_ASSIGN_OR_RETURN(const Generated made, Generate(*session, tokenizer, "Once", {.max_new_tokens = 100},
//                                                        [](std::string_view more) { return Show(more); }));
//
// The session caches keys and values, so each token costs one position. A prompt that begins like the last text costs
// only its new tokens. Not private: for sampling that is charged see runtime/private_sampling.
#ifndef WISP_RUNTIME_TEXT_GENERATE_H_
#define WISP_RUNTIME_TEXT_GENERATE_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/inference/session.h"
#include "runtime/text/token_sampler.h"
#include "runtime/text/tokenizers/tokenizer.h"

namespace wisp {

struct GenerateOptions {
  SamplingOptions sampling;
  uint32_t max_new_tokens = 128;
  std::vector<std::string> stop;  // when one of these appears, the text ends before it; none may be empty
};

// Why a text ended. kLength: it has as many tokens as were asked for. kEndToken: an end token was sampled. kStopText: a
// text of `stop` appeared. kContextFull: the model has no more positions. kCaller: the caller stopped it.
enum class Ended { kLength, kEndToken, kStopText, kContextFull, kCaller };
// "max_new_tokens", "end", "stop", "context", "caller".
const char* GetName(Ended ended);

struct Generated {
  std::vector<int32_t> tokens;  // without the prompt's tokens
  std::string text;
  Ended ended = Ended::kLength;
  size_t prompt_tokens = 0;
};

// Gets the new part of the text, in whole characters. Returning false ends the text.
using OnText = std::function<bool(std::string_view more)>;

// How long a text may grow. The choice of tokens is separate.
struct TextLimits {
  uint32_t max_new_tokens = 128;
  size_t max_tokens = 0;  // prompt and new tokens together: the model's positions
  std::span<const std::string> stop = {};
};
// Chooses the next token after `tokens`, which begin with the prompt's.
using NextToken = std::function<Result<int32_t>(std::span<const int32_t> tokens)>;

// kInvalidArgument: the model does not predict the next token from the earlier ones; the tokenizer has more tokens than
// the model; a stop text is empty.
Status CheckGenerates(const Session& session, const text::Tokenizer& tokenizer, std::span<const std::string> stop);

// Encodes a prompt. Template tokens after the text are left out, because a prompt continues. An end token in the prompt
// itself stays, and the text continues after it. kInvalidArgument: the prompt has no token, or max_tokens or more.
Status PromptTokens(const text::Tokenizer& tokenizer, std::string_view prompt, size_t max_tokens,
                    std::vector<int32_t>& tokens);

// Shows a text as it comes, but holds back what may be the beginning of a stop text.
class StopTexts {
 public:
  // The texts must outlive this object.
  explicit StopTexts(std::span<const std::string> stop) : stop_(stop) {}

  // Returns what may be shown now. Sets `stopped` if a stop text has come: nothing more may be shown then.
  std::string Push(std::string_view more, bool& stopped);
  std::string Rest() { return std::exchange(held_, {}); }

 private:
  // The number of bytes at the end that may begin a stop text.
  size_t Beginning() const;

  std::span<const std::string> stop_;
  std::string held_;
};

// A text that grows by tokens that the caller chooses. Its end depends only on the tokens and on `on_text`.
//
//   while (!growth.over()) WISP_RETURN_IF_ERROR(growth.Push(Choose(growth.tokens()), on_text));
//   return growth.Finish(on_text);
class TextGrowth {
 public:
  // The tokenizer and the texts of limits.stop must outlive this object.
  static Result<TextGrowth> Begin(const text::Tokenizer& tokenizer, std::vector<int32_t> prompt,
                                  const TextLimits& limits);

  bool over() const { return over_; }
  std::span<const int32_t> tokens() const { return tokens_; }  // the prompt's tokens first
  // Adds a token. over() must be false.
  Status Push(int32_t token, const OnText& on_text);
  // Call it once, when over() is true. Shows what was held back.
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
  bool over_ = false, cut_ = false;  // cut_: nothing more may be shown
};

// Asks `next` for one token after another. The text's end depends only on the tokens and on `on_text`.
Result<Generated> GrowText(const text::Tokenizer& tokenizer, std::vector<int32_t> prompt, const TextLimits& limits,
                           const NextToken& next, const OnText& on_text);

// kInvalidArgument: an option is out of range; the prompt has no token or fills the model's positions; the model does
// not predict the next token from the earlier ones. kInvalidData: scores are not finite.
Result<Generated> Generate(Session& session, const text::Tokenizer& tokenizer, std::string_view prompt,
                           const GenerateOptions& options, const OnText& on_text = {});

}  // namespace wisp

#endif  // WISP_RUNTIME_TEXT_GENERATE_H_
