// Implements `wisp generate`.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/text.h"
#include "runtime/text/generate_batch.h"
#include "runtime/text/texts.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/generate_private.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

Backend ParseBackend(const std::string& name) {
  if (name == "xnnpack") return Backend::kXnnpack;
  return name == "int8" ? Backend::kInt8 : Backend::kSimd;
}

GenerateOptions MakeOptions(const GenerateArguments& a) {
  return {.sampling = {.temperature = a.temperature,
                       .top_k = a.top_k,
                       .top_p = a.top_p,
                       .min_p = a.min_p,
                       .repetition_penalty = a.repetition_penalty,
                       .seed = a.seed.value_or(1)},
          .max_new_tokens = a.max_new_tokens,
          .stop = a.stop};
}

Json MakeJson(const Generated& made) {
  return {{"text", made.text},
          {"tokens", made.tokens},
          {"prompt_tokens", made.prompt_tokens},
          {"ended", GetName(made.ended)}};
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Refuses a model that cannot continue texts, and names the command that reads it.
Status CheckDecoder(const std::string& path, const ModelFile& file) {
  const bool encodes = file.architecture().head.kind == HeadKind::kEmbedding;
  if (file.is_classifier() || encodes) {
    return InvalidData(path, ": is ", encodes ? "an encoder of texts" : "a classifier",
                       ", and generate needs a decoder; wisp ", encodes ? "embed" : "classify", " reads it");
  }
  if (!file.tokenizer().empty() || !file.has_item_keys()) return OkStatus();
  return InvalidData(path, ": is a recommender, and generate needs a decoder; wisp recommend reads it");
}

// Serves --prompts: generates a text for each line that is not blank, and shows them when all are complete.
Status GenerateAll(const GenerateArguments& a, const Session& session, const text::Tokenizer& tokenizer,
                   OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(std::vector<std::string> prompts, ReadLines(a.prompts));
  std::erase_if(prompts, IsBlank);
  if (prompts.empty()) return InvalidArgument(a.prompts, ": it has no prompt, all lines are blank");
  const auto begin = std::chrono::steady_clock::now();
  const Result<std::vector<Generated>> made =
      GenerateBatch(session, tokenizer, prompts, MakeOptions(a), {.at_once = a.at_once, .num_threads = a.threads});
  if (!made.ok()) return Status(made.status().code(), a.prompts + ": " + made.status().message());
  const double seconds = SecondsSince(begin);
  if (format == OutputFormat::kJson) {
    Json texts = Json::array();
    for (const Generated& one : *made) texts.push_back(MakeJson(one));
    PrintJson({{"texts", texts}, {"seconds", seconds}});
    return OkStatus();
  }
  size_t tokens = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    PrintText("--- %zu of %zu ---\n%s%s\n", i + 1, prompts.size(), Printable(prompts[i]).c_str(),
              Printable((*made)[i].text).c_str());
    tokens += (*made)[i].tokens.size();
  }
  std::fprintf(stderr, "wisp: %s after %s in %.2f s\n", Counted(tokens, "token").c_str(),
               Counted(prompts.size(), "prompt").c_str(), seconds);
  return OkStatus();
}

}  // namespace

Status GenerateCommand(const GenerateArguments& a, OutputFormat format) {
  if (a.priv.on && a.backend != "simd") return InvalidArgument("--backend is not for --private");
  if (a.priv.on && !a.prompts.empty())
    return InvalidArgument("--prompts is not for --private, which takes one --prompt");
  if (!a.prompt && a.prompts.empty()) return InvalidArgument("there is no prompt: give --prompt or --prompts");
  const auto opens = std::chrono::steady_clock::now();
  const Verify verify = a.verify || a.priv.on || a.backend == "int8" ? Verify::kFull : Verify::kStructure;
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::OpenWithAdapter(a.model, a.adapter, verify, Accept::kAny));
  WISP_RETURN_IF_ERROR(CheckDecoder(a.model, file));
  // With many prompts, each session has one thread.
  const size_t threads = !a.prompts.empty() ? 1 : a.threads == 0 ? DefaultThreads() : a.threads;
  WISP_ASSIGN_OR_RETURN(const auto session,
                        Session::Create(std::move(file), {.backend = ParseBackend(a.backend),
                                                          .num_threads = threads,
                                                          .kept = a.cache == "f16" ? kernels::CacheType::kHalf
                                                                                   : kernels::CacheType::kFloat}));
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, FindTokenizer(session->file()));
  if (a.priv.on) return GeneratePrivately(a, *session, tokenizer, format);
  if (!a.prompts.empty()) return GenerateAll(a, *session, tokenizer, format);
  const bool shows = format == OutputFormat::kText;
  // The prompt is printed together with the first token, so that a refused request prints nothing.
  bool begun = false;
  const auto show = [&](std::string_view more) {
    if (!shows) return true;
    if (!begun) std::fputs(Printable(*a.prompt).c_str(), stdout);
    begun = true;
    std::fputs(Printable(std::string(more)).c_str(), stdout), std::fflush(stdout);
    return true;
  };
  const auto begin = std::chrono::steady_clock::now();
  const double open_seconds = std::chrono::duration<double>(begin - opens).count();
  WISP_ASSIGN_OR_RETURN(const Generated made, Generate(*session, tokenizer, *a.prompt, MakeOptions(a), show));
  const double seconds = SecondsSince(begin);
  if (shows) {
    show("");
    PrintText("\n");
    std::fprintf(stderr, "wisp: %s after %zu in %.2f s; ended by: %s\n", Counted(made.tokens.size(), "token").c_str(),
                 made.prompt_tokens, seconds, EndedInWords(made.ended));
    return OkStatus();
  }
  Json j = MakeJson(made);
  j["open_seconds"] = open_seconds;
  j["seconds"] = seconds;
  PrintJson(j);
  return OkStatus();
}

}  // namespace wisp::tools
