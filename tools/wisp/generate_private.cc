#include "tools/wisp/generate_private.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/core/native_path.h"
#include "runtime/core/text.h"
#include "runtime/text/private_sampling/private_generator.h"
#include "runtime/text/tokenizers/unicode.h"
#include "tools/wisp/output.h"
#include "tools/wisp/private_samples.h"

namespace wisp::tools {
namespace {

// Refuses options that only plain generation has, before a ledger is opened.
Status CheckSampling(const GenerateArguments& a) {
  if (a.temperature == 0) {
    return PrivacyRefused(
        "--temperature 0 with --private: always the most likely token is arg-max, and the guarantee is that of random "
        "samples; choose a temperature above 0");
  }
  if (a.repetition_penalty != 1) {
    return PrivacyRefused(
        "--repetition-penalty with --private: it changes scores by what they are, which no law here is charged for");
  }
  if (a.seed) {
    return PrivacyRefused(
        "--seed with --private: samples that can be repeated have no guarantee, and their randomness is the operating "
        "system's; leave it out");
  }
  if (a.min_p != 0)
    return PrivacyRefused(
        "--min-p with --private: truncation by private scores is charged for by no law here; --top-p "
        "and --top-k go with the mode mixed");
  return OkStatus();
}

// Reads --support: all or base:K.
Result<uint32_t> BaseTop(const std::string& support) {
  if (support == "all") return 0u;
  const std::string number = support.starts_with("base:") ? support.substr(5) : "";
  if (support.starts_with("model:"))
    return PrivacyRefused("--support is '", support,
                          "': which tokens may be sampled would itself tell of the model's records; base:K is allowed");
  const bool whole =
      !number.empty() && number.size() <= 9 && number.find_first_not_of("0123456789") == std::string::npos;
  if (whole && std::stoul(number) > 0) return static_cast<uint32_t>(std::stoul(number));
  return InvalidArgument("--support is '", support, "', allowed are all and base:K, the K best tokens of the base");
}

// A target without a planned number holds for this text alone.
PrivateSampleArguments MakeSamples(const GenerateArguments& a) {
  PrivateSampleArguments p = a.priv;
  p.temperature = a.temperature;
  p.top_k = a.top_k;
  p.top_p = a.top_p;
  if (!p.delta) p.delta = 1e-6;
  p.planned_of_one = p.epsilon && !p.planned_samples;
  if (p.planned_of_one) p.planned_samples = a.max_new_tokens;
  if (a.contexts > 0 && p.dataset.empty()) p.dataset = FileName(a.private_texts);
  return p;
}

Result<PrivateGeneratorOptions> MakeOptions(const GenerateArguments& a, const PrivateSampleArguments& p,
                                            const Session& session, PrivateSamples& samples) {
  PrivateGeneratorOptions o{.samples = {.run = "generation"}, .only_text = true};
  if (!p.mode.empty()) {
    WISP_ASSIGN_OR_RETURN(o.samples.mode, Choice<DecodingMode>("--mode", p.mode,
                                                               {{"mixed", DecodingMode::kUniform},
                                                                {"mixed-with-base", DecodingMode::kNonUniform},
                                                                {"anchored", DecodingMode::kBaseAnchored},
                                                                {"aggregate", DecodingMode::kAggregate}}));
  }
  o.samples.contexts = a.contexts;
  o.samples.mixing_floor = a.mixing_floor;
  o.samples.samples_per_charge = std::min(p.block, a.max_new_tokens);
  WISP_ASSIGN_OR_RETURN(o.base_top, BaseTop(p.support));
  WISP_RETURN_IF_ERROR(samples.Read(session, o.samples));
  return o;
}

// Both warnings are local only, because the number of texts is not public. A refusal would reveal it to others.
void WarnIfFewOrMany(const std::string& path, const std::vector<std::string>& lines, uint32_t contexts) {
  const auto is_text = [](const std::string& line) { return !IsBlank(line) && text::IsUtf8(line); };
  const auto texts = static_cast<uint64_t>(std::count_if(lines.begin(), lines.end(), is_text));
  if (texts == 0) {
    Warn("warning: no line of " + path +
         " became a private text, so the public context alone is sampled from; what is sampled is charged all the same "
         "(local only)");
  } else if (2 * texts < contexts || texts > contexts) {
    Warn(Counted(texts, "text") + (texts == 1 ? " shares " : " share ") + Counted(contexts, "context") +
         ": together they move a logit by at most " + std::to_string(texts) + " / " + std::to_string(contexts) +
         " of the clip; --contexts is best about the number of texts (local only)");
  }
}

Json MakeJson(const Generated& made, const Json& cost) {
  return {{"text", made.text},
          {"tokens", made.tokens},
          {"prompt_tokens", made.prompt_tokens},
          {"ended", GetName(made.ended)},
          {"privacy", cost}};
}

}  // namespace

const char* EndedInWords(Ended ended) { return ended == Ended::kLength ? "--max-tokens" : GetName(ended); }

bool IsBlank(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

Result<std::vector<std::string>> ReadLines(const std::string& path) {
  std::ifstream file(NativePath(path), std::ios::binary);
  if (!file) return Status(StatusCode::kIo, "cannot read " + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  if (file.bad()) return Status(StatusCode::kIo, "cannot read " + path);
  return lines;
}

Status GeneratePrivately(const GenerateArguments& a, Session& session, const text::Tokenizer& tokenizer,
                         OutputFormat format) {
  WISP_RETURN_IF_ERROR(CheckSampling(a));
  std::vector<std::string> texts;
  if (!a.private_texts.empty()) {
    WISP_ASSIGN_OR_RETURN(texts, ReadLines(a.private_texts));
  }
  // This is checked before a ledger is opened, so that a refused target leaves no ledger behind.
  WISP_RETURN_IF_ERROR(CheckGenerates(session, tokenizer, a.stop));
  std::vector<int32_t> tokens;
  WISP_RETURN_IF_ERROR(PromptTokens(tokenizer, *a.prompt, session.architecture().max_length, tokens));
  const PrivateSampleArguments p = MakeSamples(a);
  PrivateSamples samples(p, a.model);
  WISP_ASSIGN_OR_RETURN(const PrivateGeneratorOptions options, MakeOptions(a, p, session, samples));
  PrivateTexts contexts;
  if (a.contexts > 0)
    contexts = {.texts = texts, .before = a.context_before, .after = a.context_after, .public_text = a.public_text};
  WISP_ASSIGN_OR_RETURN(PrivateGenerator generator, PrivateGenerator::Create(session, tokenizer, options, contexts));
  WISP_RETURN_IF_ERROR(samples.Begin(generator.setup()));
  if (a.contexts > 0) WarnIfFewOrMany(a.private_texts, texts, a.contexts);
  const bool shows = format == OutputFormat::kText;
  bool begun = false;
  const auto show = [&](std::string_view more) {
    if (!shows) return true;
    if (!begun) std::fputs(Printable(*a.prompt).c_str(), stdout);
    begun = true;
    std::fputs(Printable(std::string(more)).c_str(), stdout);
    std::fflush(stdout);
    return true;
  };
  PrivateGenerateOptions limits{.max_new_tokens = a.max_new_tokens};
  limits.stop = a.stop;
  const Result<Generated> made = generator.Generate(*a.prompt, limits, show);
  if (made.ok()) show("");
  if (begun) PrintText("\n");
  samples.WarnIfRaised();
  if (!made.ok()) return samples.PlanInWords(made.status(), generator.setup(), "token");
  WISP_ASSIGN_OR_RETURN(const Json cost, samples.CostJson(generator.setup()));
  samples.WarnIfUnlimited(cost);
  if (!shows) {
    PrintJson(MakeJson(*made, cost));
    return OkStatus();
  }
  std::fprintf(stderr, "wisp: %s after %zu; ended by: %s\n", Counted(made->tokens.size(), "token").c_str(),
               made->prompt_tokens, EndedInWords(made->ended));
  if (generator.left_out() > 0)
    Warn("local only: " + std::to_string(generator.left_out()) + " of the private texts are not UTF-8 and add nothing");
  samples.PrintCost(cost, "token", stderr);
  return OkStatus();
}

}  // namespace wisp::tools
