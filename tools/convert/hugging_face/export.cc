#include "tools/convert/hugging_face/export.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/convert/hugging_face/config.h"
#include "tools/convert/hugging_face/tensors.h"

namespace wisp::convert::hugging_face {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Adds one tensor of a parameter; `values` are its rows.
void Add(const Row& row, const ParameterSpec& p, std::string name, std::span<const float> values,
         uint32_t first_position, ExportedTensors& out) {
  const uint64_t rows = values.size() / p.cols;
  TensorToWrite tensor{.name = std::move(name), .shape = {rows, p.cols}, .values = values};
  if (p.shape == ParameterShape::kVector) {
    tensor.shape = {values.size()};
  } else if (row.how == How::kTransposed) {
    out.made.emplace_back(values.size());
    Transpose(values, rows, p.cols, out.made.back());
    tensor.shape = {p.cols, rows};
    tensor.values = out.made.back();
  } else if (row.how == How::kPositions && first_position > 0) {
    out.made.emplace_back(size_t{first_position} * p.cols, 0.0f);
    out.made.back().insert(out.made.back().end(), values.begin(), values.end());
    tensor.shape[0] += first_position;
    tensor.values = out.made.back();
  }
  out.tensors.push_back(std::move(tensor));
}

size_t NumNames(const Row& row) {
  return static_cast<size_t>(std::find(row.names.begin(), row.names.end(), nullptr) - row.names.begin());
}

TextFiles SentenceFiles(const Architecture& a) {
  const std::string types = "sentence_transformers.models.";
  OrderedJson modules = {{{"idx", 0}, {"name", "0"}, {"path", ""}, {"type", types + "Transformer"}},
                         {{"idx", 1}, {"name", "1"}, {"path", "1_Pooling"}, {"type", types + "Pooling"}}};
  if (a.head.unit_length)
    modules.push_back({{"idx", 2}, {"name", "2"}, {"path", "2_Normalize"}, {"type", types + "Normalize"}});
  const bool mean = a.head.pooling == Pooling::kMean;
  const OrderedJson pooling = {{"word_embedding_dimension", a.width},
                               {"pooling_mode_cls_token", !mean},
                               {"pooling_mode_mean_tokens", mean},
                               {"pooling_mode_max_tokens", false},
                               {"pooling_mode_mean_sqrt_len_tokens", false}};
  return {{"modules.json", modules.dump(2) + "\n"},
          {"1_Pooling/config.json", pooling.dump(2) + "\n"},
          {"sentence_bert_config.json", OrderedJson({{"max_seq_length", a.max_length}}).dump(2) + "\n"}};
}

}  // namespace

Result<ExportedTensors> ExportTensors(const std::string& name, const Family& family, const Architecture& a,
                                      std::span<const float> weights) {
  const std::vector<Row> rows = GetRows(family, a.head.kind);
  const std::string prefix = a.head.kind == HeadKind::kEmbedding ? "" : family.prefixes[0];
  const uint32_t first_position = WrittenAs(family, a.head.kind).first_position;
  ExportedTensors out;
  for (const ParameterSpec& p : ListParameters(a)) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.role == p.role; });
    if (row == rows.end()) return Unsupported(name, ": ", family.name, " models have no tensor for ", p.name);
    const size_t count = NumNames(*row);
    const std::vector<uint32_t> parts = SplitRows(p, a, count);
    size_t at = p.offset;
    for (size_t i = 0; i < count; ++i) {
      const size_t size = p.shape == ParameterShape::kVector ? parts[i] : size_t{parts[i]} * p.cols;
      const std::string inside = NameInBlock(row->names[i], p.block);
      Add(*row, p, row->place == Place::kInside ? prefix + inside : inside, weights.subspan(at, size), first_position,
          out);
      at += size;
    }
  }
  return out;
}

Result<TextFiles> ExportTexts(const std::string& name, const Family& family, const Architecture& a,
                              const std::vector<std::string>& class_names) {
  WISP_ASSIGN_OR_RETURN(std::string config, WriteConfig(name, family, a, class_names));
  TextFiles files = {{"config.json", std::move(config)}};
  const bool mean = a.head.pooling == Pooling::kMean;
  if (!mean && !a.head.unit_length) return files;
  if (a.head.pooler != Pooler::kNone || a.head.kind != HeadKind::kEmbedding)
    return Unsupported(name,
                       ": it has a pooler behind a mean or before a unit length, which no folder of Hugging Face "
                       "says");
  for (auto& file : SentenceFiles(a)) files.push_back(std::move(file));
  return files;
}

}  // namespace wisp::convert::hugging_face
