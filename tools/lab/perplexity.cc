#include "tools/lab/commands.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/private_sampling/decoding_quality.h"
#include "runtime/private_sampling/sample_cost.h"
#include "runtime/inference/session.h"
#include "runtime/text/texts.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/decoding_calibration.h"
#include "tools/wisp/output.h"
#include "tools/wisp/text_records.h"

namespace wisp::tools {
namespace {

// A row of the table: a law, what it is charged for, and its figures on the texts.
struct Row {
  const char* mode;         // model, base, mixed or anchored
  const char* composition;  // pure or pld; nullptr without an epsilon
  double epsilon = 0;
  ItemLaw law;
  bool of_base = false;
  Perplexity perplexity = {};
};

struct PerplexityTarget {
  double epsilon, delta;
  uint64_t samples;
};

Result<ItemLaw> MixedLawFor(const PerplexityTarget& t, bool pld, uint64_t support, double temperature) {
  ItemLaw law{.mode = DecodingMode::kUniform, .temperature = temperature};
  if (!pld) {
    WISP_ASSIGN_OR_RETURN(law.lambda, LambdaForEpsilon(t.epsilon, t.samples, support));
    return law;
  }
  WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(t.epsilon, t.delta));
  WISP_ASSIGN_OR_RETURN(const auto c,
                        privacy::CalibrateResponse({.target = target, .samples = t.samples}, {.support = support}));
  law.lambda = c.mechanism.lambda();
  return law;
}

Result<ItemLaw> AnchoredLawFor(const PerplexityTarget& t, bool pld, double temperature) {
  double range = t.epsilon / static_cast<double>(t.samples);
  if (pld) {
    WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(t.epsilon, t.delta));
    WISP_ASSIGN_OR_RETURN(const auto c, privacy::CalibrateBoundedRange({.target = target, .samples = t.samples}));
    range = c.mechanism.range();
  }
  WISP_ASSIGN_OR_RETURN(const double clip, ClipForRange(range, temperature));
  return ItemLaw{.mode = DecodingMode::kBaseAnchored, .clip = clip, .temperature = temperature};
}

Result<std::vector<Row>> GetRows(const PerplexityArguments& a, uint64_t support) {
  const ItemLaw plain{.mode = DecodingMode::kPlain, .temperature = a.temperature};
  std::vector<Row> rows = {{.mode = "model", .composition = nullptr, .law = plain},
                           {.mode = "base", .composition = nullptr, .law = plain, .of_base = true}};
  for (const double epsilon : a.epsilons) {
    WISP_RETURN_IF_ERROR(privacy::CheckTarget(epsilon));
    const PerplexityTarget target{epsilon, a.delta, a.samples};
    for (const bool pld : {false, true}) {
      const char* composition = pld ? "pld" : "pure";
      WISP_ASSIGN_OR_RETURN(const ItemLaw mixed, MixedLawFor(target, pld, support, a.temperature));
      rows.push_back({.mode = "mixed", .composition = composition, .epsilon = epsilon, .law = mixed});
      WISP_ASSIGN_OR_RETURN(const ItemLaw anchored, AnchoredLawFor(target, pld, a.temperature));
      rows.push_back({.mode = "anchored", .composition = composition, .epsilon = epsilon, .law = anchored});
    }
  }
  return rows;
}

// Adds each token of a text but the first, given those before it.
Status AddText(const Record& record, Session& model, Session& base, std::span<const int32_t> all,
               std::vector<Row>& rows) {
  std::vector<float> f(model.architecture().num_items), b(f.size());
  for (size_t t = 0; t < record.inputs.size(); ++t) {
    const auto before = record.inputs.first(t + 1);
    WISP_RETURN_IF_ERROR(model.Score(before, f));
    WISP_RETURN_IF_ERROR(base.Score(before, b));
    const auto of_model = std::span<const float>(f).first(all.size());
    const auto of_base = std::span<const float>(b).first(all.size());
    for (Row& row : rows) {
      const ItemScores scores{.model = row.of_base ? of_base : of_model, .base = of_base};
      row.perplexity.Add(ItemProbability(row.law, scores, all, record.targets[t]));
    }
  }
  return OkStatus();
}

Json MakeJson(const Row& row) {
  Json j = {{"mode", row.mode}};
  if (row.composition != nullptr) {
    j["composition"] = row.composition;
    j["epsilon"] = row.epsilon;
    const bool mixed = row.law.mode == DecodingMode::kUniform;
    j[mixed ? "lambda" : "clip"] = mixed ? row.law.lambda : row.law.clip;
  }
  j["perplexity"] = row.perplexity.Value();
  return j;
}

void PrintRows(const PerplexityArguments& a, const std::vector<Row>& rows) {
  PrintText("perplexity of %llu tokens: the model %.2f, the base %.2f\n",
            static_cast<unsigned long long>(rows[0].perplexity.count()), rows[0].perplexity.Value(),
            rows[1].perplexity.Value());
  PrintText("for %llu tokens sampled; pure: at delta 0; PLD: at delta %g\n%10s %14s %14s %14s %14s\n",
            static_cast<unsigned long long>(a.samples), a.delta, "epsilon", "mixed, pure", "mixed, PLD",
            "anchored, pure", "anchored, PLD");
  for (size_t i = 2; i < rows.size(); i += 4) {
    PrintText("%10g %14.2f %14.2f %14.2f %14.2f\n", rows[i].epsilon, rows[i].perplexity.Value(),
              rows[i + 2].perplexity.Value(), rows[i + 1].perplexity.Value(), rows[i + 3].perplexity.Value());
  }
  PrintText("%s\n", kLocalOnly);
}

}  // namespace

Status MeasurePerplexity(const PerplexityArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const data::TextUnit unit, data::ParseTextUnit("--record", a.record));
  WISP_RETURN_IF_ERROR(privacy::Delta::Create(a.delta).status());
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::OpenWithAdapter(a.model, a.adapter, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const auto model, Session::Create(std::move(file)));
  WISP_ASSIGN_OR_RETURN(const auto base, Session::Open(a.base, Backend::kSimd, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, FindTokenizer(model->file()));
  const auto ours = model->file().tokenizer(), theirs = base->file().tokenizer();
  if (!std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()) ||
      base->architecture().num_items != model->architecture().num_items)
    return InvalidArgument("the base ", a.base, " has other tokens than ", a.model, ": they cannot be compared");
  const uint32_t most = std::min(model->architecture().max_length, base->architecture().max_length);
  if (a.max_length > most)
    return InvalidArgument("--max-length is ", a.max_length, ", allowed are 1 to ", most, ", the positions of both");
  WISP_ASSIGN_OR_RETURN(
      const TextRecords texts,
      ReadTextRecords(a.texts, tokenizer, {.unit = unit, .max_length = a.max_length == 0 ? most : a.max_length}));
  WISP_ASSIGN_OR_RETURN(std::vector<Row> rows, GetRows(a, tokenizer.size()));
  std::vector<int32_t> all(tokenizer.size());
  std::iota(all.begin(), all.end(), 0);
  Progress progress("perplexity");
  for (size_t i = 0; i < texts.records.size(); ++i) {
    WISP_RETURN_IF_ERROR(AddText(texts.records[i], *model, *base, all, rows));
    progress.Update(i + 1, texts.records.size(), "texts");
  }
  if (format == OutputFormat::kText) {
    PrintRows(a, rows);
    return OkStatus();
  }
  Json j = {
      {"tokens", rows[0].perplexity.count()}, {"samples", a.samples}, {"delta", a.delta}, {"laws", Json::array()}};
  for (const Row& row : rows) j["laws"].push_back(MakeJson(row));
  j["not_private"] = ListFigureNames(j);
  PrintJson(j, kOneLine);
  return OkStatus();
}

}  // namespace wisp::tools
