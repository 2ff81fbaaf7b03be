// Times a decoder that continues a text: it reads a prompt at once, and then one token at a time. Beside it stands the
// rate at which as many threads read memory. First a check compares the scores of tokens that came one at a time with
// those of the same tokens at once.
//
// tools/lab/bench/peers/decoder.py puts llama.cpp beside it.
#include <numeric>

#include "runtime/core/stored_tensor.h"
#include "runtime/inference/session.h"
#include "tools/convert/safetensors.h"
#include "tools/lab/bench/bench_checks.h"
#include "tools/lab/bench/bench_parts.h"
#include "tools/lab/bench/memory_bandwidth.h"

namespace wisp::tools {
namespace {

constexpr uint32_t kTokensInTurn = 16;    // one at a time, in a sample
constexpr uint32_t kPrompt = 512;         // where --length is not given
constexpr double kScoreTolerance = 1e-4;  // relative to the largest score
constexpr double kPanelTolerance = 0.02;  // wide, because activations are rounded to 8 bits row by row

// Returns the bytes of weights that one token reads: all but the tables that are only looked up.
size_t CountTokenBytes(const ModelFile& file) {
  const Architecture& a = file.architecture();
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  const bool tied = a.head.output_table == OutputTable::kTied;
  size_t bytes = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterRole role = parameters[i].role;
    const bool looked_up = role == ParameterRole::kPositionTable || (role == ParameterRole::kItemTable && !tied);
    if (!looked_up) bytes += GetBytes(parameters[i], file.tensors()[i]).size();
  }
  return bytes;
}

class DecoderBench {
 public:
  DecoderBench(std::unique_ptr<Session> session, uint32_t prompt)
      : session_(std::move(session)), scores_(session_->architecture().num_items), tokens_(prompt + kTokensInTurn) {
    for (size_t t = 0; t < tokens_.size(); ++t) tokens_[t] = static_cast<int32_t>(t * 7919 % scores_.size());
  }

  // Compares the last token's scores after it came alone with those after all tokens came at once.
  Status Check() {
    WISP_RETURN_IF_ERROR(Prompt().status());
    WISP_RETURN_IF_ERROR(InTurn().status());
    const std::vector<float> in_turn = scores_;
    ++tokens_[0];  // another text, so the cache holds nothing of it
    WISP_RETURN_IF_ERROR(session_->Score(tokens_, scores_));
    --tokens_[0];
    WISP_RETURN_IF_ERROR(session_->Score(tokens_, scores_));
    const bool panels = session_->file().tensors()[0].panels.data != nullptr;
    return CheckNear("a score after tokens one at a time", in_turn, scores_,
                     panels ? kPanelTolerance : kScoreTolerance);
  }

  // Writes the tokens that came last, and the scores after the last of them.
  Status Write(const std::string& path) const {
    const std::vector<float> as_floats(tokens_.begin(), tokens_.end());  // exact: tokens are below 2^24
    const convert::TensorToWrite tensors[] = {{"tokens", {as_floats.size()}, as_floats},
                                              {"scores", {scores_.size()}, scores_}};
    return convert::WriteSafeTensors(path, tensors, {});
  }

  Status Sample() {
    WISP_ASSIGN_OR_RETURN(const double prompt, Prompt());
    WISP_ASSIGN_OR_RETURN(const double in_turn, InTurn());
    prompt_ms_.push_back(1e3 * prompt);
    token_ms_.push_back(1e3 * in_turn / kTokensInTurn);
    return OkStatus();
  }

  Json Report(double read_gb_per_s) const {
    const size_t bytes = CountTokenBytes(session_->file());
    const Spread token = ComputeSpread(token_ms_);
    const double gb_per_s = static_cast<double>(bytes) / token.median / 1e6;
    return {{"threads", session_->num_threads()},
            {"prompt_tokens", tokens_.size() - kTokensInTurn},
            {"prompt_ms", ToJson(ComputeSpread(prompt_ms_))},
            {"token_ms", ToJson(token)},
            {"weight_bytes_of_token", bytes},
            {"weights_gb_per_s", gb_per_s},
            {"read_gb_per_s", read_gb_per_s},
            {"percent_of_read", 100 * gb_per_s / read_gb_per_s}};
  }

 private:
  std::span<const int32_t> First(size_t count) const { return std::span(tokens_).first(count); }
  Result<double> Timed(std::span<const int32_t> tokens) {
    Status status;
    const double seconds = Seconds([&] { status = session_->Score(tokens, scores_); });
    WISP_RETURN_IF_ERROR(status);
    return seconds;
  }
  // Times a text that differs from the last one in its first token, so that the cache holds nothing of it.
  Result<double> Prompt() {
    tokens_[0] = (tokens_[0] + 1) % static_cast<int32_t>(scores_.size());
    return Timed(First(tokens_.size() - kTokensInTurn));
  }
  Result<double> InTurn() {
    double seconds = 0;
    for (size_t n = tokens_.size() - kTokensInTurn + 1; n <= tokens_.size(); ++n) {
      WISP_ASSIGN_OR_RETURN(const double one, Timed(First(n)));
      seconds += one;
    }
    return seconds;
  }

  std::unique_ptr<Session> session_;
  std::vector<float> scores_;
  std::vector<int32_t> tokens_;
  std::vector<double> prompt_ms_, token_ms_;
};

}  // namespace

Status BenchDecoder(const BenchArguments& a, Json& result) {
  if (a.model.empty()) return InvalidArgument("--what decoder needs --model, a decoder's file");
  const size_t threads = a.threads == 0 ? DefaultThreads() : a.threads;
  const auto kept = a.cache == "f16" ? kernels::CacheType::kHalf : kernels::CacheType::kFloat;
  WISP_ASSIGN_OR_RETURN(auto session, Session::Open(a.model, SessionOptions{.num_threads = threads, .kept = kept}));
  const uint32_t positions = session->architecture().max_length;
  const uint32_t prompt = IsGiven(a, "--length") ? a.length : std::min(kPrompt, positions - kTokensInTurn);
  if (positions <= kTokensInTurn || prompt > positions - kTokensInTurn) {
    return InvalidArgument("--length is ", prompt, "; ", a.model, " has ", positions, " positions, of which ",
                           kTokensInTurn, " are for tokens one at a time");
  }
  DecoderBench bench(std::move(session), prompt);
  WISP_RETURN_IF_ERROR(bench.Check());
  if (!a.tensors.empty()) WISP_RETURN_IF_ERROR(bench.Write(a.tensors));
  for (uint32_t i = 0; i < a.repeats; ++i) WISP_RETURN_IF_ERROR(bench.Sample());
  result["decoder"] = bench.Report(MeasureReadBandwidth(threads));
  return OkStatus();
}

}  // namespace wisp::tools
