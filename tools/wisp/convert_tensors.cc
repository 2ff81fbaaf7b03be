// Implements `wisp convert` of the recommender, from and to PyTorch's state_dict in a safetensors file
// (docs/convert.md). convert_folder.cc and convert_to_folder.cc do so for folders of Hugging Face.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/core/file.h"
#include "runtime/core/native_path.h"
#include "runtime/core/reason.h"
#include "runtime/core/text.h"
#include "runtime/model/lists_of.h"
#include "runtime/model/model_file.h"
#include "tools/convert/hugging_face/config.h"
#include "tools/convert/torch_names.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/convert.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/recipe/recipe_section.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
namespace {

using convert::SafeTensorsFile;

// Keys of __metadata__. Its values are texts only, so that lists and objects are stored as JSON in a text.
constexpr char kArchitectureKey[] = "wisp.architecture", kItemKeysKey[] = "wisp.item_keys",
               kItemNamesKey[] = "wisp.item_names", kAllowSeenKey[] = "wisp.allow_seen", kRetiredKey[] = "wisp.retired",
               kUntrainedKey[] = "wisp.untrained";
constexpr char kProvenanceKey[] = "wisp.provenance", kCreatedByKey[] = "wisp.created_by";
constexpr size_t kMaxArchitectureBytes = 65536;

// Reads a value of __metadata__; null if it is missing. Returns kInvalidData if it is not JSON.
Result<nlohmann::json> MetadataJson(const std::string& path, const SafeTensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return nlohmann::json();
  nlohmann::json json = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return InvalidData(path, ": __metadata__ '", key, "' is ", convert::Shown(found->second), ", which is not JSON");
  return json;
}

// The object of a recipe's "architecture", from --config (which may be the whole recipe) or else from the file.
struct Description {
  std::string where;
  nlohmann::json json;
};

Result<Description> ReadDescription(const ConvertArguments& a, const SafeTensorsFile& file) {
  if (!a.config.empty()) {
    WISP_ASSIGN_OR_RETURN(nlohmann::json json, ReadJson(a.config));
    if (DescribesClassifier(json))
      return InvalidData(a.config, ": it is the recipe of a classifier, convert makes recommenders");
    const bool recipe = json.is_object() && json.contains("architecture");
    return Description{a.config + ":" + (recipe ? " architecture" : ""),
                       recipe ? nlohmann::json(json["architecture"]) : json};
  }
  const auto found = file.metadata().find(kArchitectureKey);
  if (found == file.metadata().end()) {
    return InvalidArgument(a.in, ": its __metadata__ has no '", kArchitectureKey,
                           "': --config is needed, a recipe or the object of its \"architecture\"");
  }
  if (found->second.size() > kMaxArchitectureBytes) {
    return InvalidData(a.in, ": __metadata__ '", kArchitectureKey, "' has ", found->second.size(),
                       " bytes, allowed are ", kMaxArchitectureBytes);
  }
  WISP_ASSIGN_OR_RETURN(nlohmann::json json, MetadataJson(a.in, file, kArchitectureKey));
  return Description{a.in + ": __metadata__ '" + kArchitectureKey + "':", std::move(json)};
}

// Reads the shape in the first block only; ReadWeights checks all blocks.
uint32_t InnerWidth(const Architecture& a) { return a.blocks.empty() ? 0 : a.blocks[0].feed_forward.inner_width; }

// --config may leave out what the shapes tell. If it says it nevertheless, the tensors must agree.
Result<Architecture> ReadGivenArchitecture(const ConvertArguments& a, const SafeTensorsFile& file) {
  WISP_ASSIGN_OR_RETURN(const Description description, ReadDescription(a, file));
  WISP_ASSIGN_OR_RETURN(const UniformArchitecture shapes, convert::InferArchitecture(a.in, file));
  Architecture architecture;
  JsonSection section(description.where, description.json);
  ReadArchitecture(section, shapes, architecture);
  WISP_RETURN_IF_ERROR(section.Finish());
  // Without a table of positions, no shape tells the length.
  const bool tells_length = shapes.position_table == PositionTable::kLearned;
  const uint32_t max_length = tells_length ? shapes.max_length : architecture.max_length;
  const std::pair<const char*, std::pair<uint32_t, uint32_t>> sizes[] = {
      {"max_length", {architecture.max_length, max_length}},
      {"width", {architecture.width, shapes.width}},
      {"num_blocks", {static_cast<uint32_t>(architecture.blocks.size()), shapes.num_blocks}},
      {"inner_width", {InnerWidth(architecture), shapes.inner_width}}};
  for (const auto& [key, said_found] : sizes) {
    const bool cannot_tell = key == sizes[3].first && shapes.num_blocks == 0;
    if (said_found.first == said_found.second || cannot_tell) continue;
    return InvalidData(description.where, ".", key, " is ", said_found.first, ", the tensors of ", a.in, " say ",
                       said_found.second);
  }
  if (Status status = Validate(architecture); !status.ok())
    return InvalidData(description.where, " ", status.message());
  return architecture;
}

// Reads a file with one item on each line.
Result<std::vector<std::string>> ReadItemKeys(const std::string& path) {
  std::ifstream file(NativePath(path));
  if (!file) return IoError(path, ": the item keys cannot be opened: ", Reason(errno));
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty())
      return InvalidData(path, ", line ", keys.size() + 1, ": it is empty; allowed is the key of an item on each line");
    if (keys.size() == kMaxItems)
      return InvalidData(path, ": there are more than ", kMaxItems, " lines, which are allowed");
    keys.push_back(std::move(line));
  }
  return keys;
}

// Reads one flat list into what a derived class accepts, up to an allowed number of elements. So the file's own claims
// can take no more memory than that.
class FlatList : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t) override { return false; }
  bool number_unsigned(number_unsigned_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return false; }
  bool key(string_t&) override { return false; }
  bool end_object() override { return false; }
  bool start_array(size_t) override { return !std::exchange(open_, true); }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }
  bool string(string_t&) override { return false; }

 protected:
  bool is_open() const { return open_; }

 private:
  bool open_ = false;
};

class FlatTexts : public FlatList {
 public:
  explicit FlatTexts(size_t most) : most_(most) {}
  std::vector<std::string> texts;
  bool string(string_t& text) override {
    if (!is_open() || texts.size() == most_) return false;
    texts.push_back(std::move(text));
    return true;
  }

 private:
  size_t most_;
};

// Items of a model in ascending order, so that there can be no more of them than the model has.
class FlatItems : public FlatList {
 public:
  explicit FlatItems(uint32_t num_items) : num_items_(num_items) {}
  std::vector<int32_t> items;
  bool number_unsigned(number_unsigned_t item) override {
    if (!is_open() || item >= num_items_) return false;
    const auto id = static_cast<int32_t>(item);
    if (!items.empty() && id <= items.back()) return false;
    items.push_back(id);
    return true;
  }

 private:
  uint32_t num_items_;
};

Result<std::vector<std::string>> MetadataTexts(const std::string& path, const SafeTensorsFile& file, const char* key,
                                               uint32_t num_items) {
  const auto found = file.metadata().find(key);
  FlatTexts list(num_items);
  if (found == file.metadata().end() || nlohmann::json::sax_parse(found->second, &list)) return std::move(list.texts);
  return InvalidData(path, ": __metadata__ '", key, "' is no list of texts, one for each of the ", num_items, " items");
}

Result<std::vector<int32_t>> MetadataItems(const std::string& path, const SafeTensorsFile& file, const char* key,
                                           uint32_t num_items) {
  const auto found = file.metadata().find(key);
  FlatItems list(num_items);
  if (found == file.metadata().end() || nlohmann::json::sax_parse(found->second, &list)) return std::move(list.items);
  return InvalidData(path, ": __metadata__ '", key, "' is ", convert::Shown(found->second),
                     "; allowed is a list of items, which are 0 to ", num_items - 1, ", each once, ascending");
}

// Reads the items that nobody is shown, by their rows, so that keys do not matter. Damage is refused, because the items
// would be shown again.
Status ReadWithheld(const ConvertArguments& a, const SafeTensorsFile& file, ModelContents& contents) {
  const uint32_t num_items = contents.architecture.num_items;
  WISP_ASSIGN_OR_RETURN(contents.retired, MetadataItems(a.in, file, kRetiredKey, num_items));
  WISP_ASSIGN_OR_RETURN(contents.untrained, MetadataItems(a.in, file, kUntrainedKey, num_items));
  if (MergeWithheld(contents.retired, contents.untrained).size() < num_items) return OkStatus();
  return InvalidData(a.in, ": __metadata__ '", kRetiredKey, "' and '", kUntrainedKey, "' hold all ", num_items,
                     " items; at least one must be left to recommend");
}

Status CheckCount(const std::string& where, size_t found, uint32_t num_items) {
  if (found == 0 || found == num_items) return OkStatus();
  return InvalidData(where, ": there are ", found, " of them for ", num_items,
                     " items; allowed is one for each item, or none");
}

// The items come from --item-keys and --item-names, or else from what `wisp convert` put beside the tensors.
Status ReadItems(const ConvertArguments& a, const SafeTensorsFile& file, ModelContents& contents) {
  const uint32_t num_items = contents.architecture.num_items;
  WISP_ASSIGN_OR_RETURN(contents.item_keys, a.item_keys.empty() ? MetadataTexts(a.in, file, kItemKeysKey, num_items)
                                                                : ReadItemKeys(a.item_keys));
  WISP_RETURN_IF_ERROR(
      CheckCount(a.item_keys.empty() ? a.in + ": item keys" : a.item_keys, contents.item_keys.size(), num_items));
  if (!a.item_keys.empty() && contents.item_keys.empty())
    return InvalidData(a.item_keys, ": there is no line; allowed is the key of an item on each line");
  if (!a.item_names.empty()) {
    if (contents.item_keys.empty())
      return InvalidArgument("--item-names needs --item-keys: lines of key<TAB>name belong to keys");
    WISP_ASSIGN_OR_RETURN(contents.item_names, ReadItemNames(a.item_names, contents.item_keys));
    return OkStatus();
  }
  // Names in the file belong to the keys in the file. With other keys the items are other ones.
  if (!a.item_keys.empty()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(contents.item_names, MetadataTexts(a.in, file, kItemNamesKey, num_items));
  return CheckCount(a.in + ": item names", contents.item_names.size(), num_items);
}

// Returns the first line with an epsilon in the file's provenance, cut to the length that a message shows; empty if
// there is no such line.
std::string StatedGuarantee(const SafeTensorsFile& file) {
  const auto found = file.metadata().find(kProvenanceKey);
  if (found == file.metadata().end()) return "";
  constexpr std::string_view kWord = "epsilon ";  // as ProvenanceText writes it, before a number
  const std::string_view text = found->second;
  for (size_t at = text.find(kWord); at != std::string_view::npos; at = text.find(kWord, at + 1)) {
    const size_t number = at + kWord.size();
    if (number == text.size() || text[number] < '0' || text[number] > '9') continue;
    const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
    return convert::Shown(text.substr(begin, text.find('\n', at) - begin));
  }
  return "";
}

// People may give a single file of a Hugging Face folder instead of the folder.
Status CheckIsNoFolder(const std::string& path, const SafeTensorsFile& file) {
  Status status = convert::CheckIsRecommender(path, file);
  std::error_code none;
  if (status.ok() || !std::filesystem::exists(NativePath(GetFolder(path) + "/config.json"), none)) return status;
  return InvalidData(path, ": it lies beside a config.json, as in a folder of Hugging Face: give the folder '",
                     GetFolder(path), "'. By itself ", status.message().substr(path.size() + 2));
}

// Reads our own layout, or one of the supported foreign layouts.
Status ReadRecommender(const ConvertArguments& a, const SafeTensorsFile& file, ModelContents& contents,
                       std::vector<float>& weights) {
  if (const auto layout = convert::FindSasrecLayout(file)) {
    WISP_RETURN_IF_ERROR(ReadSasrec(a, file, *layout, contents, weights));
    WISP_RETURN_IF_ERROR(ReadItems(a, file, contents));
    if (contents.item_keys.empty()) contents.item_keys = NumbersFromOne(contents.architecture.num_items);
    return OkStatus();
  }
  WISP_RETURN_IF_ERROR(convert::RefuseOtherRecommenders(a.in, file));
  WISP_RETURN_IF_ERROR(CheckIsNoFolder(a.in, file));
  WISP_ASSIGN_OR_RETURN(contents.architecture, ReadGivenArchitecture(a, file));
  WISP_ASSIGN_OR_RETURN(weights, convert::ReadWeights(a.in, file, contents.architecture));
  return ReadItems(a, file, contents);
}

// Returns one line for each entry, for people.
std::string ProvenanceText(const ModelFile& model) {
  if (model.provenance().empty()) return "nothing is known of the data these weights came from";
  std::string text;
  for (const ProvenanceEntry& p : model.provenance()) {
    const bool guaranteed = p.epsilon.has_value();
    text += (text.empty() ? "" : "\n") + p.description + (p.dataset.empty() ? "" : " on '" + p.dataset + "'") + ", " +
            p.date + ": " +
            (guaranteed ? "epsilon " + Json(*p.epsilon).dump() + " at delta " + Json(p.delta).dump()
                        : "no privacy guarantee");
    for (const std::string& m : p.mechanisms) text += "; " + m;
  }
  return text;
}

Json TextList(size_t count, auto&& text) {
  Json list = Json::array();
  for (size_t i = 0; i < count; ++i) list.push_back(std::string(text(i)));
  return list;
}

std::map<std::string, std::string> Metadata(const ModelFile& model) {
  std::map<std::string, std::string> metadata = {{"format", "pt"},  // PyTorch's readers look for this
                                                 {kArchitectureKey, WriteArchitecture(model.architecture()).dump()},
                                                 {kProvenanceKey, ProvenanceText(model)},
                                                 {kCreatedByKey, "wisp " + Version()}};
  if (model.has_item_keys())
    metadata[kItemKeysKey] = TextList(model.num_items(), [&](size_t i) { return model.item_key(i); }).dump();
  if (model.has_item_names())
    metadata[kItemNamesKey] = TextList(model.num_items(), [&](size_t i) { return model.item_name(i); }).dump();
  if (model.lists().allow_seen) metadata[kAllowSeenKey] = "true";
  if (!model.retired().empty()) metadata[kRetiredKey] = Json(model.retired()).dump();
  if (!model.untrained().empty()) metadata[kUntrainedKey] = Json(model.untrained()).dump();
  return metadata;
}

// Returns true if the model's lists may show items of the history. If the option is not given, the file decides.
Result<bool> ReadAllowSeen(const ConvertArguments& a, const SafeTensorsFile& file) {
  if (a.allow_seen) return true;
  const auto stated = file.metadata().find(kAllowSeenKey);
  if (stated == file.metadata().end()) return false;
  if (stated->second == "true") return true;
  return InvalidData(a.in, ": ", kAllowSeenKey, " is '", OneLine(stated->second), "', allowed is true");
}

// Only recommenders and decoders have a state_dict with our own names.
Status CheckHasOwnNames(const std::string& path, const ModelFile& model) {
  if (model.architecture().item_features > 0)
    return Unsupported(path, ": has item features, which the other programs' models do not have");
  if (!model.lists().successions.empty())
    return Unsupported(path, ": has successions of items, which the other programs' models do not have");
  const HeadKind head = model.architecture().head.kind;
  if (!model.is_classifier() && head != HeadKind::kEmbedding) return OkStatus();
  return InvalidArgument(path, ": is ", model.is_classifier() ? "a classifier" : "an encoder of texts",
                         ", which is written by the names of Hugging Face: give --family, allowed are ",
                         convert::hugging_face::FamiliesFor(head));
}

}  // namespace

Status ImportTensors(const ConvertArguments& a, OutputFormat format) {
  if (!a.report.empty() || a.max_length > 0 || a.pooling != "folder")
    return InvalidArgument("--report, --max-length and --pooling are for folders of Hugging Face, which ", a.in,
                           " is not; docs/convert.md says what each reads");
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kModel, {"--out", a.out},
                                       {{"the safetensors file", a.in},
                                        {"--config", a.config},
                                        {"--item-keys", a.item_keys},
                                        {"--item-names", a.item_names}}));
  WISP_ASSIGN_OR_RETURN(const SafeTensorsFile file, SafeTensorsFile::Open(a.in));
  WISP_ASSIGN_OR_RETURN(const bool allow_seen, ReadAllowSeen(a, file));
  const std::string guarantee = StatedGuarantee(file);
  ModelContents contents;
  std::vector<float> weights;
  WISP_RETURN_IF_ERROR(ReadRecommender(a, file, contents, weights));
  WISP_RETURN_IF_ERROR(ReadWithheld(a, file, contents));
  contents.weights = weights;
  contents.allow_seen = allow_seen;
  contents.provenance.push_back(Imported(a, !guarantee.empty()));
  contents.description = "imported from " + FileName(a.in);
  contents.created_by = "wisp " + Version();
  // Nobody says whose counts a fixed bias holds, so the worst is assumed.
  if (contents.architecture.head.output_bias == OutputBias::kFixed)
    contents.output_bias_origin = OutputBiasOrigin::kExactCounts;
  WISP_RETURN_IF_ERROR(WriteModel(a.out, contents));
  if (!guarantee.empty()) {
    std::fprintf(stderr,
                 "wisp: %s states %s: nothing vouches for that, and %s has lost the guarantee; keep the model that was "
                 "exported, it has it\n",
                 OneLine(a.in).c_str(), guarantee.c_str(), OneLine(a.out).c_str());
  }
  const Json architecture = WriteArchitecture(contents.architecture);
  if (format == OutputFormat::kJson) {
    Json result = {{"model", a.out},
                   {"items", contents.architecture.num_items},
                   {"dataset", GetDataset(a)},
                   {"architecture", architecture}};
    if (!guarantee.empty()) result["lost_guarantee"] = guarantee;
    PrintJson(result);
    return OkStatus();
  }
  PrintText("%s: %u items, %zu tensors, no privacy guarantee, data set '%s'\narchitecture %s\n", OneLine(a.out).c_str(),
            contents.architecture.num_items, file.tensors().size(), GetDataset(a).c_str(),
            JsonText(architecture).c_str());
  return OkStatus();
}

Status ExportTensors(const ConvertArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kTensors, {"--out", a.out}, {{"the model", a.in}}));
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(a.in, Verify::kFull, Accept::kAny));
  WISP_RETURN_IF_ERROR(CheckHasOwnNames(a.in, model));
  std::vector<float> dequantised;
  const std::span<const float> weights = model.AllWeights(dequantised);
  std::vector<convert::TensorToWrite> tensors;
  for (const ParameterSpec& p : model.parameters()) {
    tensors.push_back({.name = convert::TorchName(p.name),
                       .shape = convert::TorchShape(p),
                       .values = weights.subspan(p.offset, p.size())});
  }
  WISP_RETURN_IF_ERROR(convert::WriteSafeTensors(a.out, tensors, Metadata(model)));
  if (format == OutputFormat::kJson) {
    PrintJson(Json({{"safetensors", a.out}, {"tensors", tensors.size()}, {"provenance", ProvenanceText(model)}}));
  } else {
    PrintText("%s: %zu tensors\n%s\n", OneLine(a.out).c_str(), tensors.size(), ProvenanceText(model).c_str());
  }
  return OkStatus();
}

}  // namespace wisp::tools
