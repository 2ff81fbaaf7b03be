// Implements `wisp classify` and `wisp evaluate --labelled`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/text.h"
#include "runtime/text/classifier_session.h"
#include "runtime/model/model_file.h"
#include "runtime/train/run/classification.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/device.h"
#include "tools/wisp/output.h"
#include "tools/wisp/padded.h"
#include "tools/wisp/text_tokens.h"

namespace wisp::tools {
namespace {

// An open classifier with its vocabulary, ready for texts.
struct Opened {
  ModelFile file;
  TextTokens tokens;
  HeadInput input() const { return {.norm_bound = file.classifier().norm_bound}; }
};

// If an adapter is given, opens the classifier that it makes of its base.
Result<Opened> OpenClassifier(const std::string& path, const std::string& adapter) {
  const Accept accept = adapter.empty() ? Accept::kClassifier : Accept::kEncoder;
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::OpenWithAdapter(path, adapter, Verify::kFull, accept));
  if (!file.is_classifier()) return InvalidData(path, ": is no classifier, one is needed");
  WISP_ASSIGN_OR_RETURN(TextTokens tokens, TextTokens::Of(file));
  return Opened{std::move(file), std::move(tokens)};
}

}  // namespace

Status EvaluateLabelled(const EvaluateArguments& a, OutputFormat format) {
  if (!a.data.path.empty() || !a.texts.empty())
    return InvalidArgument("--labelled and ", a.texts.empty() ? "--data" : "--texts", " are both given: choose one");
  if (a.unit || a.session_gap != 0)
    return InvalidArgument("--unit and --session-gap are of --data, and --labelled is given; its records are texts");
  const std::pair<const char*, bool> others[] = {{"--split", a.split != EvaluateArguments().split},
                                                 {"--record", a.record != EvaluateArguments().record},
                                                 {"--table", a.data.table != DataArguments().table},
                                                 {"--user-column", !a.data.user_column.empty()},
                                                 {"--item-column", !a.data.item_column.empty()},
                                                 {"--time-column", !a.data.time_column.empty()},
                                                 {"--times-per-second", a.times_per_second != 1},
                                                 {"--trains-until", !a.trains_until.empty()},
                                                 {"--baselines", a.baselines}};
  for (const auto& [option, given] : others) {
    if (given) return InvalidArgument(option, " is not for labelled texts, which --labelled gives");
  }
  if (a.backend != "simd") return InvalidArgument("--backend is '", a.backend, "', allowed with --labelled is simd");
  WISP_ASSIGN_OR_RETURN(const auto file_format, data::ParseLabelledFormat(a.data.format));
  WISP_ASSIGN_OR_RETURN(const Opened opened, OpenClassifier(a.model, a.adapter));
  const Architecture& architecture = opened.file.architecture();
  std::vector<std::string> classes = opened.file.classifier().class_names;
  for (uint32_t i = static_cast<uint32_t>(classes.size()); i < architecture.head.num_classes; ++i)
    classes.push_back(std::to_string(i));
  WISP_ASSIGN_OR_RETURN(
      const data::LabelledTexts texts,
      data::ReadLabelled(a.labelled,
                         {.format = file_format, .text_column = a.text_column, .label_column = a.label_column}));
  WISP_ASSIGN_OR_RETURN(const uint32_t max_length, opened.tokens.ChooseMaxTokens(a.max_length, architecture));
  const auto tokenise = [&](std::string_view text, std::vector<int32_t>& tokens) {
    return opened.tokens.Append(text, max_length, tokens);
  };
  WISP_ASSIGN_OR_RETURN(const data::LabelledSequences sequences,
                        data::EncodeWith(texts, tokenise, {.classes = classes}));
  const std::vector<Record> records = ViewRecords(sequences);
  std::vector<size_t> counts(classes.size(), 0);
  for (const int32_t label : sequences.labels) ++counts[static_cast<size_t>(label)];
  const double largest =
      static_cast<double>(*std::max_element(counts.begin(), counts.end())) / static_cast<double>(records.size());
  Workers workers(a.threads == 0 ? DefaultThreads() : a.threads);
  const Classifier graph(architecture, kernels::BestOps(), {.use = GraphUse::kInference});
  std::vector<float> dequantised;
  const double accuracy = Accuracy(graph, opened.file.AllWeights(dequantised).data(), records, opened.input(), workers);
  if (format == OutputFormat::kJson) {
    Json j = {{"accuracy", accuracy},
              {"records", records.size()},
              {"largest_class", largest},
              {"unknown_tokens", sequences.num_unknown},
              {"texts_cut", sequences.num_cut}};
    j["not_private"] = ListFigureNames(j);
    PrintJson(j, kOneLine);
  } else {
    PrintText("accuracy %.4f over %zu texts (the largest class has %.4f of them)\n%s\n", accuracy, records.size(),
              largest, kLocalOnly);
  }
  return OkStatus();
}

Status Classify(const ClassifyArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const Opened opened, OpenClassifier(a.model, a.adapter));
  WISP_ASSIGN_OR_RETURN(const GivenTexts given, TextsGiven(a.texts, a.input));
  const Architecture& architecture = opened.file.architecture();
  WISP_ASSIGN_OR_RETURN(const uint32_t max_length, opened.tokens.ChooseMaxTokens(a.max_length, architecture));
  const std::vector<std::string>& class_names = opened.file.classifier().class_names;
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, DeviceOrProcessor(a.device, DeviceUse::kInference));
  WISP_ASSIGN_OR_RETURN(const auto session,
                        ClassifierSession::Create(architecture, opened.file.tensors(),
                                                  {.device = device.device,
                                                   .num_threads = a.threads == 0 ? DefaultThreads() : a.threads,
                                                   .norm_bound = opened.input().norm_bound,
                                                   .name = a.model}));
  std::vector<float> z(architecture.head.num_classes);
  Json list = Json::array();
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < given.texts.size(); ++i) {
    const std::string& text = given.texts[i];
    tokens.clear();
    const Status read = opened.tokens.Append(text, max_length, tokens).status();
    if (!read.ok()) return Status(read.code(), given.Where(a.input, i) + read.message());
    WISP_RETURN_IF_ERROR(session->Logits(tokens, z));
    const auto best = std::max_element(z.begin(), z.end());
    double sum = 0;
    for (const float score : z) sum += std::exp(static_cast<double>(score) - *best);
    const auto k = static_cast<size_t>(best - z.begin());
    const std::string name = class_names.empty() ? std::to_string(k) : class_names[k];
    if (format == OutputFormat::kText)
      PrintText("%s %.4f  %s\n", Padded(OneLine(name), 16).c_str(), 1 / sum, OneLine(text).c_str());
    Json result = {{"text", text}, {"class", name}, {"probability", 1 / sum}};
    if (!given.lines.empty()) result["line"] = given.lines[i];
    list.push_back(std::move(result));
  }
  if (format == OutputFormat::kJson) PrintJson(list);
  return OkStatus();
}

}  // namespace wisp::tools
