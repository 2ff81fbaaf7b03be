#include "runtime/text/generate_batch.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace wisp {
namespace {

// A text that is being generated.
struct Running {
  size_t prompt, place;
  TextGrowth growth;
  TokenSampler sampler;
  OnText on_text;
};

class PromptsTogether {
 public:
  PromptsTogether(const Session& session, const text::Tokenizer& tokenizer, const GenerateOptions& options,
                  const OnBatchText& on_text)
      : session_(session), tokenizer_(tokenizer), options_(options), on_text_(on_text) {}

  Result<std::vector<Generated>> Run(std::span<const std::string> prompts, const GenerateTogether& together) {
    WISP_RETURN_IF_ERROR(Encode(prompts));
    if (together.at_once == 0 || together.at_once > TextBatch::kMostPlaces)
      return InvalidArgument("at_once is ", together.at_once, ", allowed are 1 to ", TextBatch::kMostPlaces);
    const size_t places = std::min(together.at_once, prompts.size());
    WISP_ASSIGN_OR_RETURN(batch_, TextBatch::Create(session_, {.places = places,
                                                               .positions = Positions(),
                                                               .num_threads = together.num_threads,
                                                               .executor = together.executor}));
    scores_.resize(places * session_.architecture().num_items);
    for (size_t place = places; place-- > 0;) free_.push_back(place);
    made_.resize(prompts.size());
    for (size_t next = 0; next < prompts.size() || !running_.empty();) {
      for (; next < prompts.size() && !free_.empty(); ++next) WISP_RETURN_IF_ERROR(Begin(next));
      WISP_RETURN_IF_ERROR(Step());
    }
    return std::move(made_);
  }

 private:
  Status Encode(std::span<const std::string> prompts) {
    tokens_.resize(prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i) {
      const Status read = PromptTokens(tokenizer_, prompts[i], session_.architecture().max_length, tokens_[i]);
      if (!read.ok()) return Status(read.code(), "prompt " + std::to_string(i + 1) + ": " + read.message());
    }
    return OkStatus();
  }

  // The positions of the longest text.
  size_t Positions() const {
    size_t longest = 0;
    for (const std::vector<int32_t>& tokens : tokens_) longest = std::max(longest, tokens.size());
    return std::min<size_t>(longest + options_.max_new_tokens, session_.architecture().max_length);
  }

  Status Begin(size_t prompt) {
    const TextLimits limits{.max_new_tokens = options_.max_new_tokens,
                            .max_tokens = session_.architecture().max_length,
                            .stop = options_.stop};
    WISP_ASSIGN_OR_RETURN(TextGrowth growth, TextGrowth::Begin(tokenizer_, std::move(tokens_[prompt]), limits));
    SamplingOptions sampling = options_.sampling;
    sampling.seed += prompt;
    OnText shown;
    if (on_text_) shown = [this, prompt](std::string_view more) { return on_text_(prompt, more); };
    running_.push_back({.prompt = prompt,
                        .place = free_.back(),
                        .growth = std::move(growth),
                        .sampler = TokenSampler(sampling),
                        .on_text = std::move(shown)});
    free_.pop_back();
    return OkStatus();
  }

  // Generates one token for every text. Texts that have ended leave.
  Status Step() {
    texts_.clear();
    for (const Running& r : running_) {
      if (!r.growth.over()) texts_.push_back({.place = r.place, .tokens = r.growth.tokens()});
    }
    const size_t num_items = session_.architecture().num_items;
    const std::span<float> scores = std::span(scores_).first(texts_.size() * num_items);
    WISP_RETURN_IF_ERROR(batch_->Score(texts_, scores));
    size_t row = 0;
    for (Running& r : running_) {
      if (!r.growth.over()) WISP_RETURN_IF_ERROR(Sample(r, scores.subspan(row++ * num_items, num_items)));
    }
    for (Running& r : running_) {
      if (!r.growth.over()) continue;
      WISP_ASSIGN_OR_RETURN(made_[r.prompt], r.growth.Finish(r.on_text));
      free_.push_back(r.place);
    }
    std::erase_if(running_, [](const Running& r) { return r.growth.over(); });
    return OkStatus();
  }

  Status Sample(Running& r, std::span<float> scores) {
    if (!std::all_of(scores.begin(), scores.end(), [](float s) { return std::isfinite(s); }))
      return InvalidData("prompt ", r.prompt + 1, ": ", session_.NotFinite().message());
    return r.growth.Push(r.sampler.Sample(scores.first(tokenizer_.size()), r.growth.tokens()), r.on_text);
  }

  const Session& session_;
  const text::Tokenizer& tokenizer_;
  const GenerateOptions& options_;
  const OnBatchText& on_text_;
  std::vector<std::vector<int32_t>> tokens_;  // of each prompt
  std::unique_ptr<TextBatch> batch_;
  std::vector<float> scores_;
  std::vector<size_t> free_;  // free places
  std::vector<Running> running_;
  std::vector<TextBatch::Text> texts_;
  std::vector<Generated> made_;
};

}  // namespace

Result<std::vector<Generated>> GenerateBatch(const Session& session, const text::Tokenizer& tokenizer,
                                             std::span<const std::string> prompts, const GenerateOptions& options,
                                             const GenerateTogether& together, const OnBatchText& on_text) {
  WISP_RETURN_IF_ERROR(Validate(options.sampling));
  WISP_RETURN_IF_ERROR(CheckGenerates(session, tokenizer, options.stop));
  if (prompts.empty()) return std::vector<Generated>();
  return PromptsTogether(session, tokenizer, options, on_text).Run(prompts, together);
}

}  // namespace wisp
