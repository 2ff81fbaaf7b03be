// Implements `wisp convert FOLDER`: converts a model of Hugging Face to one of ours (docs/convert.md).
// tools/convert/hugging_face decides which models it can read; this file writes them, with a report on each tensor.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "runtime/core/hash.h"
#include "runtime/core/hex.h"
#include "runtime/core/text.h"
#include "runtime/text/tokenizers/tokenizer.h"
#include "tools/convert/hugging_face/tensors.h"
#include "tools/convert/tokenizer_json.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/convert.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe_section.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
namespace {

namespace hf = convert::hugging_face;
Status CheckArguments(const ConvertArguments& a) {
  for (const auto& [name, value] : {std::pair{"--config", a.config}, std::pair{"--item-keys", a.item_keys},
                                    std::pair{"--item-names", a.item_names}}) {
    if (!value.empty())
      return InvalidArgument(name, " is of safetensors files of our recommender, ", a.in, " is a folder");
  }
  if (a.allow_seen)
    return InvalidArgument("--allow-seen is of recommenders, ", a.in, " is a folder of a model of texts");
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kModel, {"--out", a.out}, {{"the folder", a.in}}));
  if (a.report.empty()) return OkStatus();
  return CheckOutputFile(FileKind::kJson, {"--report", a.report}, {{"the folder", a.in}, {"--out", a.out}});
}

hf::ChosenPooling PoolingNamed(const std::string& name) {
  if (name == "first") return hf::ChosenPooling::kFirst;
  if (name == "mean") return hf::ChosenPooling::kMean;
  return name == "pooler" ? hf::ChosenPooling::kPooler : hf::ChosenPooling::kFolder;
}

// Returns a folder's name without the slash at its end.
std::string PlainPath(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

const char* InWords(hf::How how) {
  switch (how) {
    case hf::How::kAsIs:
      return "as it is";
    case hf::How::kTransposed:
      return "transposed";
    case hf::How::kPositions:
      return "rows of the positions that are kept";
  }
  return "";
}

Json TensorToJson(const hf::FoundTensor& found) {
  return {{"file", *found.file},
          {"name", found.tensor->name},
          {"shape", found.tensor->shape},
          {"type", convert::TypeName(found.tensor->type)}};
}

// Makes an entry for each tensor that was used. The hash covers the whole parameter as it lies in the model file.
Json UsedTensors(const hf::Matching& matching, std::span<const float> weights) {
  Json list = Json::array();
  for (const hf::Match& match : matching.matches) {
    const ParameterSpec& p = match.parameter;
    const Json shape = p.shape == ParameterShape::kVector ? Json({p.cols}) : Json({p.rows, p.cols});
    const std::string hash = ToHex(Hash64(std::as_bytes(weights.subspan(p.offset, p.size()))));
    for (size_t i = 0; i < match.sources.size(); ++i) {
      Json entry = TensorToJson(match.sources[i]);
      entry["parameter"] = p.name;
      entry["parameter_shape"] = shape;
      entry["done"] = InWords(match.how);
      if (match.sources.size() > 1)
        entry["done"] = "stacked, " + std::to_string(i + 1) + " of " + std::to_string(match.sources.size());
      entry["xxh3"] = hash;
      list.push_back(std::move(entry));
    }
  }
  return list;
}

Json LeftOutTensors(const hf::Matching& matching) {
  Json list = Json::array();
  for (const hf::LeftOut& left_out : matching.left_out) {
    Json entry = TensorToJson(left_out.tensor);
    entry["reason"] = left_out.reason;
    list.push_back(std::move(entry));
  }
  return list;
}

// Reports which token has which meaning, and which files say so.
Json SpecialTokens(const convert::TokenizerReport& tokenizer) {
  Json list = Json::array();
  for (const convert::FoundToken& token : tokenizer.tokens)
    list.push_back({{"meaning", token.meaning}, {"id", token.id}, {"text", token.text}, {"from", token.from}});
  return list;
}

Status WriteReport(const ConvertArguments& a, const hf::Description& d, const hf::Matching& matching,
                   const convert::TokenizerReport& tokenizer, std::span<const float> weights) {
  const Json report = {{"folder", a.in},
                       {"model", a.out},
                       {"model_class", d.model_class},
                       {"family", d.family->name},
                       {"architecture", WriteArchitecture(d.architecture)},
                       {"notes", d.notes},
                       {"special_tokens", SpecialTokens(tokenizer)},
                       {"tensors", UsedTensors(matching, weights)},
                       {"left_out", LeftOutTensors(matching)}};
  const std::string text = JsonText(report, 1) + "\n";
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(a.report, FileAccess::kShared));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
  return file.Commit();
}

// Writes a line for each reason, with the first tensor that was left out for it.
std::string LeftOutInWords(const hf::Matching& matching) {
  std::string text;
  std::vector<const std::string*> said;
  for (const hf::LeftOut& one : matching.left_out) {
    const auto same = [&](const auto& reason) { return *reason == one.reason; };
    if (std::any_of(said.begin(), said.end(), same)) continue;
    said.push_back(&one.reason);
    const auto count = std::count_if(matching.left_out.begin(), matching.left_out.end(),
                                     [&](const hf::LeftOut& other) { return other.reason == one.reason; });
    text += "left out: " + convert::Shown(one.tensor.tensor->name) +
            (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") + ": " + one.reason + "\n";
  }
  return text;
}

size_t NumUsed(const hf::Matching& matching) {
  size_t count = 0;
  for (const hf::Match& match : matching.matches) count += match.sources.size();
  return count;
}

uint64_t NumWeights(const hf::Matching& matching) {
  uint64_t count = 0;
  for (const hf::Match& match : matching.matches) count += match.parameter.size();
  return count;
}

// Writes the architecture for people, where equal blocks are shown once.
std::string ArchitectureInWords(const Architecture& a, Json json) {
  const bool alike = !a.blocks.empty() && std::count(a.blocks.begin(), a.blocks.end(), a.blocks[0]) ==
                                              static_cast<std::ptrdiff_t>(a.blocks.size());
  if (alike && json.contains("blocks")) {
    const Json first = json["blocks"][0];
    json.erase("blocks");
    json["each_block"] = first;
  }
  return json.dump();
}

void Print(const ConvertArguments& a, const hf::Description& d, const hf::Matching& matching,
           const convert::TokenizerReport& tokenizer, OutputFormat format) {
  for (const std::string& note : d.notes) Warn(note);
  const Json architecture = WriteArchitecture(d.architecture);
  if (format == OutputFormat::kJson) {
    const Json result = {{"model", a.out},
                         {"model_class", d.model_class},
                         {"family", d.family->name},
                         {"tokens", d.architecture.num_items},
                         {"parameters", NumWeights(matching)},
                         {"tensors", NumUsed(matching)},
                         {"left_out", matching.left_out.size()},
                         {"dataset", GetDataset(a)},
                         {"notes", d.notes},
                         {"special_tokens", SpecialTokens(tokenizer)},
                         {"architecture", architecture}};
    PrintJson(result);
    return;
  }
  PrintText("%s: %s, %u tokens, %llu weights of %zu tensors, no privacy guarantee, data set '%s'\n%s",
            OneLine(a.out).c_str(), d.model_class.c_str(), d.architecture.num_items,
            static_cast<unsigned long long>(NumWeights(matching)), NumUsed(matching), GetDataset(a).c_str(),
            LeftOutInWords(matching).c_str());
  for (const convert::FoundToken& token : tokenizer.tokens)
    PrintText("token: %s is %d, %s (%s)\n", token.meaning.c_str(), token.id, convert::Shown(token.text).c_str(),
              token.from.c_str());
  PrintText("architecture %s\n", ArchitectureInWords(d.architecture, architecture).c_str());
}

// Returns an empty image if the folder has no tokenizer, or if none is wanted.
Result<std::vector<std::byte>> ReadFolderTokenizer(const ConvertArguments& a, const hf::Folder& folder,
                                                   uint32_t num_items, convert::TokenizerReport& report) {
  if (a.no_tokenizer) return std::vector<std::byte>();
  const std::string path = folder.tokenizer_folder();
  if (!convert::HasTokenizer(path)) {
    std::fprintf(stderr, "wisp: %s has no tokenizer (tokenizer.json, vocab.txt or vocab.json): texts come as ids\n",
                 OneLine(a.in).c_str());
    return std::vector<std::byte>();
  }
  Result<std::vector<std::byte>> image = convert::ReadTokenizerImage(path, &report, folder.lower_case());
  if (!image.ok())
    return Status(image.status().code(), image.status().message() + "; --no-tokenizer converts without it");
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, text::Tokenizer::Open(a.in, *image));
  std::vector<int32_t> around;
  WISP_RETURN_IF_ERROR(tokenizer.Encode("", {}, around));
  if (a.max_length > 0 && a.max_length <= around.size())
    return InvalidArgument("--max-length is ", a.max_length, ", allowed are ", around.size() + 1,
                           " and more: so many tokens stand around every text, and it has one at least");
  if (tokenizer.size() <= num_items) return image;
  return InvalidData(a.in, ": its tokenizer has ", tokenizer.size(), " tokens, the model has rows for ", num_items,
                     "; --no-tokenizer converts without it");
}

}  // namespace

Status ImportFolder(const ConvertArguments& given, OutputFormat format) {
  ConvertArguments a = given;
  a.in = PlainPath(a.in);
  WISP_RETURN_IF_ERROR(CheckArguments(a));
  WISP_ASSIGN_OR_RETURN(const hf::Folder folder, hf::Folder::Open(a.in));
  WISP_ASSIGN_OR_RETURN(hf::Description d, hf::Describe(folder, {.config = {.max_length = a.max_length},
                                                                 .pooling = PoolingNamed(a.pooling)}));
  WISP_ASSIGN_OR_RETURN(const hf::Matching matching, hf::MatchTensors(folder, d));
  WISP_ASSIGN_OR_RETURN(const hf::Weights weights, hf::ReadWeights(folder, d, matching));
  ModelContents contents;
  contents.architecture = d.architecture;
  contents.weights = weights.values();
  convert::TokenizerReport tokenizer;
  WISP_ASSIGN_OR_RETURN(contents.tokenizer, ReadFolderTokenizer(a, folder, d.architecture.num_items, tokenizer));
  d.notes.insert(d.notes.end(), tokenizer.notes.begin(), tokenizer.notes.end());
  if (tokenizer.max_length > 0 && tokenizer.max_length < d.architecture.max_length && folder.sentence_length() == 0)
    d.notes.push_back("model_max_length of tokenizer_config.json is " + std::to_string(tokenizer.max_length) +
                      ", which is not followed; --max-length " + std::to_string(tokenizer.max_length) +
                      " makes a model that takes no longer texts");
  if (d.architecture.head.kind == HeadKind::kClasses)
    contents.classifier = ClassifierDescription{.class_names = d.class_names};
  contents.provenance.push_back(Imported(a, /*lost_guarantee=*/false));
  contents.description = d.model_class + " imported from " + FileName(a.in);
  contents.created_by = "wisp " + Version();
  WISP_RETURN_IF_ERROR(WriteModel(a.out, contents));
  if (!a.report.empty()) WISP_RETURN_IF_ERROR(WriteReport(a, d, matching, tokenizer, weights.values()));
  Print(a, d, matching, tokenizer, format);
  return OkStatus();
}

}  // namespace wisp::tools
