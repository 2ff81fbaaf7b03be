// wisp generate
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/text.h"
#include "runtime/inference/generate.h"
#include "runtime/inference/texts.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/generate_private.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

using Json = nlohmann::ordered_json;

Backend BackendOf(const std::string& name) {
  if (name == "xnnpack") return Backend::kXnnpack;
  return name == "int8" ? Backend::kInt8 : Backend::kSimd;
}

GenerateOptions OptionsOf(const GenerateArguments& a) {
  return {.sampling = {.temperature = a.temperature,
                       .top_k = a.top_k,
                       .top_p = a.top_p,
                       .min_p = a.min_p,
                       .repetition_penalty = a.repetition_penalty,
                       .seed = a.seed.value_or(1)},
          .max_new_tokens = a.max_new_tokens,
          .stop = a.stop};
}

}  // namespace

Status GenerateCommand(const GenerateArguments& a, OutputFormat format) {
  if (a.priv.on && a.backend != "simd") return InvalidArgument("--backend is not for --private");
  const auto opens = std::chrono::steady_clock::now();
  const Verify verify = a.verify || a.priv.on || a.backend == "int8" ? Verify::kFull : Verify::kStructure;
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::OpenWithAdapter(a.model, a.adapter, verify));
  const size_t threads = a.threads == 0 ? DefaultThreads() : a.threads;
  WISP_ASSIGN_OR_RETURN(const auto session,
                        Session::Create(std::move(file), {.backend = BackendOf(a.backend), .num_threads = threads}));
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, TokenizerOf(session->file()));
  if (a.priv.on) return GeneratePrivately(a, *session, tokenizer, format);
  const bool shows = format == OutputFormat::kText;
  // The prompt with the first of the text: what is refused shows nothing.
  bool begun = false;
  const auto show = [&](std::string_view more) {
    if (!shows) return true;
    if (!begun) std::fputs(Printable(a.prompt).c_str(), stdout);
    begun = true;
    std::fputs(Printable(std::string(more)).c_str(), stdout), std::fflush(stdout);
    return true;
  };
  const auto begin = std::chrono::steady_clock::now();
  const double open_seconds = std::chrono::duration<double>(begin - opens).count();
  WISP_ASSIGN_OR_RETURN(const Generated made, Generate(*session, tokenizer, a.prompt, OptionsOf(a), show));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (shows) {
    show("");
    std::printf("\n");
    std::fprintf(stderr, "wisp: %s after %zu in %.2f s; ended by: %s\n", Counted(made.tokens.size(), "token").c_str(),
                 made.prompt_tokens, seconds, NameOf(made.ended));
    return OkStatus();
  }
  const Json j = {{"text", made.text},           {"tokens", made.tokens},        {"prompt_tokens", made.prompt_tokens},
                  {"ended", NameOf(made.ended)}, {"open_seconds", open_seconds}, {"seconds", seconds}};
  std::printf("%s\n", j.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return OkStatus();
}

}  // namespace wisp::tools
