// Implements `wisp evaluate --texts`, and the figures of `wisp train` on held-out texts.
#include "tools/wisp/text_quality.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numbers>

#include "runtime/text/texts.h"
#include "runtime/model/model_file.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/output.h"
#include "tools/wisp/text_records.h"

namespace wisp::tools {

Result<TextQuality> MeasureQuality(const ModelView& graph, const ParameterSource& weights,
                                   const text::Tokenizer& tokenizer, std::span<const Record> records,
                                   Workers& workers) {
  const LanguageQuality q = EvaluateLanguage(graph, weights, records, workers);
  TextQuality quality{.loss = q.Loss(), .num_texts = records.size(), .num_tokens = q.num_tokens};
  std::vector<int32_t> tokens;
  for (const Record& record : records) {
    tokens.assign(record.inputs.begin(), record.inputs.end());
    tokens.push_back(record.targets.back());
    WISP_ASSIGN_OR_RETURN(const size_t bytes, BytesAskedFor(tokenizer, tokens));
    quality.num_bytes += bytes;
  }
  if (quality.num_bytes > 0)
    quality.bits_per_byte = q.nats / static_cast<double>(quality.num_bytes) / std::numbers::ln2;
  return quality;
}

Json ToJson(const TextQuality& q) {
  return {{"loss", q.loss},
          {"perplexity", std::exp(q.loss)},
          {"perplexity_per_byte", std::exp2(q.bits_per_byte)},
          {"bits_per_byte", q.bits_per_byte},
          {"texts", q.num_texts},
          {"tokens", q.num_tokens},
          {"bytes", q.num_bytes}};
}

std::string InWords(const TextQuality& q) {
  return "loss " + Fixed(q.loss, 4) + ", perplexity " + Fixed(std::exp(q.loss), 2) + " a token, " +
         Fixed(std::exp2(q.bits_per_byte), 3) + " a byte (" + Fixed(q.bits_per_byte, 4) + " bits a byte), over " +
         std::to_string(q.num_texts) + " texts of " + std::to_string(q.num_tokens) + " tokens";
}

Status EvaluateTexts(const EvaluateArguments& a, OutputFormat format) {
  if (!a.data.path.empty()) return InvalidArgument("--texts and --data are both given: choose one");
  if (a.unit || a.session_gap != 0)
    return InvalidArgument("--unit and --session-gap are of --data, and --texts is given; its records are those of ",
                           "--record");
  if (a.baselines || !a.trains_until.empty())
    return InvalidArgument(a.baselines ? "--baselines" : "--trains-until", " is of --data, and --texts is given");
  if (a.backend != "simd") return InvalidArgument("--backend is '", a.backend, "', allowed with --texts is simd");
  WISP_ASSIGN_OR_RETURN(const data::TextUnit unit, data::ParseTextUnit("--record", a.record));
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::OpenWithAdapter(a.model, a.adapter, Verify::kFull));
  const Architecture& architecture = model.architecture();
  if (architecture.attend != Attend::kCausal)
    return Unsupported(a.model, ": its positions see those behind them; texts are foretold by a decoder");
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, FindTokenizer(model));
  const uint32_t max_length = a.max_length.value_or(architecture.max_length);
  if (max_length == 0 || max_length > architecture.max_length)
    return InvalidArgument("--max-length is ", max_length, ", allowed are 1 to ", architecture.max_length,
                           ", the positions of the model");
  WISP_ASSIGN_OR_RETURN(const TextRecords texts,
                        ReadTextRecords(a.texts, tokenizer, {.unit = unit, .max_length = max_length}));
  const ParameterSource weights(model.tensors());
  const auto graph =
      MakeModelView(architecture, kernels::BestOps(),
                    {.use = GraphUse::kInference, .head = HeadPackingFor(kernels::BestOps(), architecture, weights)});
  Workers workers(a.threads == 0 ? DefaultThreads() : a.threads);
  WISP_ASSIGN_OR_RETURN(const TextQuality quality, MeasureQuality(*graph, weights, tokenizer, texts.records, workers));
  if (format == OutputFormat::kText) {
    PrintText("%s\n%s\n", InWords(quality).c_str(), kLocalOnly);
    return OkStatus();
  }
  Json j = ToJson(quality);
  j["texts_cut"] = texts.sequences.num_cut;
  j["not_private"] = ListFigureNames(j);
  PrintJson(j, kOneLine);
  return OkStatus();
}

}  // namespace wisp::tools
