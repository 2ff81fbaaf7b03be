// Implements `wisp embed`: the representation of texts by an encoder, or by a classifier without its head.
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/threads.h"
#include "runtime/text/classifier_session.h"
#include "runtime/model/model_file.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/device.h"
#include "tools/wisp/output.h"
#include "tools/wisp/text_tokens.h"

namespace wisp::tools {
namespace {

struct Texts {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<uint64_t> lines;  // line numbers, as in GivenTexts
};

Result<std::vector<int32_t>> GetTokens(const std::string& ids) {
  std::vector<int32_t> tokens;
  for (size_t begin = 0; begin <= ids.size();) {
    const size_t end = std::min(ids.find(',', begin), ids.size());
    int32_t token = 0;
    const char* stop = ids.data() + end;
    const auto read = std::from_chars(ids.data() + begin, stop, token);
    if (read.ec != std::errc() || read.ptr != stop || token < 0)
      return InvalidArgument("--ids: '", ids.substr(begin, end - begin),
                             "' is no token; allowed are whole numbers from 0 with commas between");
    tokens.push_back(token);
    begin = end + 1;
  }
  return tokens;
}

Result<Texts> ReadTexts(const EmbedArguments& a, const ModelFile& model) {
  if (!a.texts.empty() + !a.input.empty() + !a.ids.empty() != 1)
    return InvalidArgument("exactly one of --text, --input and --ids is needed");
  Texts texts;
  if (a.ids.empty()) {
    WISP_ASSIGN_OR_RETURN(const GivenTexts given, TextsGiven(a.texts, a.input));
    WISP_ASSIGN_OR_RETURN(const TextTokens tokens, TextTokens::Of(model));
    WISP_ASSIGN_OR_RETURN(const uint32_t max_length, tokens.ChooseMaxTokens(a.max_length, model.architecture()));
    for (size_t i = 0; i < given.texts.size(); ++i) {
      const Status read = tokens.Append(given.texts[i], max_length, texts.tokens.emplace_back()).status();
      if (!read.ok()) return Status(read.code(), given.Where(a.input, i) + read.message());
    }
    texts.lines = given.lines;
  }
  for (const std::string& ids : a.ids) {
    WISP_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, GetTokens(ids));
    texts.tokens.push_back(std::move(tokens));
  }
  return texts;
}

using Embeddings = std::vector<std::vector<float>>;

void Print(const EmbedArguments& a, const Texts& texts, const Embeddings& embeddings, OutputFormat format) {
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json result = {{"model", a.model}, {"width", embeddings[0].size()}, {"embeddings", embeddings}};
    if (!texts.lines.empty()) result["lines"] = texts.lines;
    PrintJson(result, kOneLine);
    return;
  }
  for (const std::vector<float>& h : embeddings) {
    for (size_t i = 0; i < h.size(); ++i) PrintText("%s%.9g", i == 0 ? "" : " ", static_cast<double>(h[i]));
    PrintText("\n");
  }
}

}  // namespace

Status Embed(const EmbedArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const ModelFile model,
                        ModelFile::OpenWithAdapter(a.model, a.adapter, Verify::kStructure, Accept::kEncoder));
  WISP_ASSIGN_OR_RETURN(const Texts texts, ReadTexts(a, model));
  const size_t threads = a.threads == 0 ? DefaultThreads() : a.threads;
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, DeviceOrProcessor(a.device, DeviceUse::kInference));
  WISP_ASSIGN_OR_RETURN(const auto session,
                        ClassifierSession::Create(model.architecture(), model.tensors(),
                                                  {.device = device.device, .num_threads = threads, .name = a.model}));
  Embeddings embeddings;
  for (const std::vector<int32_t>& tokens : texts.tokens) {
    embeddings.emplace_back(model.architecture().width);
    WISP_RETURN_IF_ERROR(session->Represent(tokens, embeddings.back()));
  }
  Print(a, texts, embeddings, format);
  return OkStatus();
}

}  // namespace wisp::tools
