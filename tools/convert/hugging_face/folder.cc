#include "tools/convert/hugging_face/folder.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "runtime/core/native_path.h"
#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "tools/convert/hugging_face/config_fields.h"
#include "tools/convert/hugging_face/config_keys.h"
#include "tools/convert/hugging_face/left_out.h"

namespace wisp::convert::hugging_face {
namespace {

using Json = nlohmann::json;

bool IsFile(const std::string& path) {
  platform::FileInfo found;
  return platform::GetInfo(path, found) == 0 && found.type == platform::FileType::kRegular;
}

Result<std::string> ReadText(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > kMaxConfigBytes)
    return InvalidData(path, ": it has ", file.bytes().size(), " bytes, allowed are ", kMaxConfigBytes);
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

Result<Json> ReadObject(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseObject(path, text);
}

// Returns true for a name of something within a folder that leads nowhere else and is safe to show.
bool StaysWithin(const std::string& name) {
  return !name.empty() && name[0] != '/' && name.find("..") == std::string::npos && OneLine(name) == name;
}

// Returns the word after the last dot: "Pooling" of "sentence_transformers.models.Pooling".
std::string LastWord(const std::string& type) {
  const size_t dot = type.rfind('.');
  return dot == std::string::npos ? type : type.substr(dot + 1);
}

}  // namespace

Result<Folder> Folder::Open(const std::string& path) {
  Folder folder;
  folder.path_ = path;
  folder.model_folder_ = path;
  if (IsFile(path + "/modules.json")) WISP_RETURN_IF_ERROR(folder.OpenModules());
  folder.config_path_ = folder.At("config.json");
  if (!IsFile(folder.config_path_)) {
    return InvalidData(path,
                       ": there is no config.json; a folder has config.json and model.safetensors, or shards "
                       "with model.safetensors.index.json");
  }
  WISP_ASSIGN_OR_RETURN(folder.config_, ReadText(folder.config_path_));
  WISP_RETURN_IF_ERROR(folder.OpenTensors());
  WISP_RETURN_IF_ERROR(folder.SayOthers());
  return folder;
}

// Reads modules.json: a list of a transformer, a pooling, and perhaps a normalising.
Status Folder::OpenModules() {
  const std::string path = path_ + "/modules.json";
  WISP_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  constexpr const char* kOrder[] = {"Transformer", "Pooling", "Normalize"};
  if (!json.is_array() || json.size() < 2 || json.size() > 3)
    return Unsupported(path, ": it is no list of the modules Transformer, Pooling and, perhaps, Normalize");
  SentenceModules modules;
  for (size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_object()) return InvalidData(path, ": module ", i, " is no object");
    Fields fields(path + ": module " + std::to_string(i), json[i]);
    constexpr HarmlessKey kHarmless[] = {{"idx", "modules are in this order"}, {"name", "a name"}};
    const std::string type = fields.Word("type", ""), within = fields.Word("path", "");
    WISP_RETURN_IF_ERROR(fields.status());
    const Json* arguments = fields.Find("kwargs");
    if (arguments != nullptr && !arguments->empty())
      notes_.push_back(path + ": module " + std::to_string(i) + ": kwargs are not followed");
    SayUnread(fields.name(), json[i], fields.read(), kHarmless, notes_);
    if (LastWord(type) != kOrder[i])
      return Unsupported(path, ": module ", i, " is ", Shown(type), ", supported are Transformer, Pooling and ",
                         "Normalize, in this order");
    if (!within.empty() && !StaysWithin(within))
      return InvalidData(path, ": module ", i, " has the path ", Shown(within),
                         ", allowed is a folder within this one");
    if (i == 0 && !within.empty()) model_folder_ = path_ + "/" + within;
    if (i == 1) {
      sentence_modules_ = modules;
      WISP_RETURN_IF_ERROR(ReadPooling(path_ + "/" + within));
    }
    if (i == 2) sentence_modules_->unit_length = true;
  }
  WISP_RETURN_IF_ERROR(ReadPrompts());
  return ReadSentenceLimits();
}

// The file's name depends on the model that the folder was made with.
Status Folder::ReadSentenceLimits() {
  for (const char* kind : {"bert", "roberta", "distilbert", "xlm-roberta"}) {
    const std::string path = At("sentence_" + std::string(kind) + "_config.json");
    if (!IsFile(path)) continue;
    WISP_ASSIGN_OR_RETURN(const Json limits, ReadObject(path));
    Fields fields(path, limits);
    sentence_length_ = fields.CountFromZero("max_seq_length", 1u << 30, 0);
    lower_case_ = fields.Flag("do_lower_case", false);
    WISP_RETURN_IF_ERROR(fields.status());
    SayUnread(path, limits, fields.read(), {}, notes_);
    return OkStatus();
  }
  return OkStatus();
}

// Reads prompts. A prompt is a text that stands before every other one.
Status Folder::ReadPrompts() {
  constexpr HarmlessKey kHarmless[] = {{"__version__", "a name"}, {"similarity_fn_name", "of what compares vectors"}};
  const std::string path = path_ + "/config_sentence_transformers.json";
  if (!IsFile(path)) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const Json json, ReadObject(path));
  Fields fields(path, json);
  if (const std::string type = fields.Word("model_type", "SentenceTransformer"); type != "SentenceTransformer")
    fields.Refuse("model_type", ShownJson(type), "is SentenceTransformer");
  const std::string chosen = fields.Word("default_prompt_name", "");
  const Json* prompts = fields.Find("prompts");
  WISP_RETURN_IF_ERROR(fields.status());
  SayUnread(path, json, fields.read(), kHarmless, notes_);
  std::string names;
  if (prompts == nullptr || !prompts->is_object()) return OkStatus();
  for (const auto& [name, text] : prompts->items()) {
    if (text != "") names += (names.empty() ? "" : ", ") + Shown(name) + " " + ShownJson(text);
    if (name != chosen || text == "") continue;
    notes_.push_back(path + ": sentence-transformers puts " + ShownJson(text) + " before every text (" +
                     "default_prompt_name); wisp does not: put it there yourself");
    return OkStatus();
  }
  if (!names.empty())
    notes_.push_back(path + ": its prompts are not kept; put one before a text where the model wants it: " + names);
  return OkStatus();
}

// Adds notes on JSON files that nothing here reads and that may concern the model.
Status Folder::SayOthers() {
  std::error_code failed;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(NativePath(model_folder_), failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".json")) continue;
    const auto known = HarmlessFiles();
    if (std::none_of(known.begin(), known.end(), [&](const HarmlessKey& k) { return k.key == name; }))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    notes_.push_back(At(OneLine(name)) + ": this file is not known here, and not read");
  const std::string generation = At("generation_config.json");
  if (!IsFile(generation)) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const Json json, ReadObject(generation));
  SayGeneration(generation, json, notes_);
  return OkStatus();
}

Status Folder::ReadPooling(const std::string& folder) {
  const std::string path = folder + "/config.json";
  WISP_ASSIGN_OR_RETURN(const Json json, ReadObject(path));
  Fields fields(path, json);
  constexpr HarmlessKey kHarmless[] = {{"include_prompt", "no prompt is kept"}};
  sentence_modules_->width = fields.Count("word_embedding_dimension", kMaxWidth, 0);
  if (sentence_modules_->width == 0) sentence_modules_->width = fields.Count("embedding_dimension", kMaxWidth, 0);
  std::string modes = fields.Word("pooling_mode", "");  // in newer versions
  for (const auto& [key, value] : json.items()) {
    constexpr std::string_view kMode = "pooling_mode_";
    if (!key.starts_with(kMode) || !fields.Flag(key.c_str(), false)) continue;
    modes += (modes.empty() ? "" : ", ") + key.substr(kMode.size());
  }
  if (modes == "mean_tokens" || modes == "mean") {
    sentence_modules_->pooling = Pooling::kMean;
  } else if (modes == "cls_token" || modes == "cls") {
    sentence_modules_->pooling = Pooling::kFirst;
  } else {
    fields.Refuse("the pooling mode", Shown(modes), "are mean_tokens and cls_token, one of them");
  }
  SayUnread(path, json, fields.read(), kHarmless, notes_);
  return fields.status();
}

Status Folder::AddShard(const std::string& name) {
  auto shard = std::make_unique<Shard>();
  shard->name = name;
  WISP_ASSIGN_OR_RETURN(shard->file, SafeTensorsFile::Open(At(name), AcceptedTypes::kAll));
  for (const SafeTensor& tensor : shard->file.tensors()) {
    const auto [at, fresh] = tensors_.emplace(tensor.name, FoundTensor{&tensor, &shard->name});
    if (!fresh)
      return InvalidData(path_, ": tensor ", Shown(tensor.name), " is in ", Shown(*at->second.file), " and in ",
                         Shown(name), ", allowed is once");
  }
  shards_.push_back(std::move(shard));
  return OkStatus();
}

Status Folder::OpenTensors() {
  const std::string index = At("model.safetensors.index.json");
  if (IsFile(At("model.safetensors"))) {
    if (IsFile(index)) notes_.push_back(index + ": it is not read, model.safetensors is there");
    return AddShard("model.safetensors");
  }
  if (IsFile(index)) return OpenShards(index);
  if (IsFile(At("pytorch_model.bin")) || IsFile(At("pytorch_model.bin.index.json"))) {
    return Unsupported(path_,
                       ": its weights are pytorch_model.bin, supported is safetensors: "
                       "tools/convert/to_safetensors.py writes that, with torch");
  }
  return InvalidData(path_, ": there is no model.safetensors and no model.safetensors.index.json");
}

Status Folder::OpenShards(const std::string& index_path) {
  WISP_ASSIGN_OR_RETURN(const Json index, ReadObject(index_path));
  const auto map = index.find("weight_map");
  SayUnread(index_path, index, {"weight_map", "metadata"}, {}, notes_);
  if (map == index.end() || !map->is_object())
    return InvalidData(index_path, ": there is no weight_map, an object of the file of each tensor");
  std::vector<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !StaysWithin(file.get_ref<const std::string&>()))
      return InvalidData(index_path, ": tensor ", Shown(tensor), " is in ", ShownJson(file),
                         ", allowed is a file of this folder");
    names.push_back(file.get<std::string>());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    if (!IsFile(At(name))) return InvalidData(index_path, ": it names the shard ", Shown(name), ", which is not there");
    WISP_RETURN_IF_ERROR(AddShard(name));
  }
  for (const auto& [tensor, file] : map->items()) {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end() || *found->second.file != file.get_ref<const std::string&>())
      return InvalidData(index_path, ": tensor ", Shown(tensor), " is not in ", ShownJson(file), ", as it says");
  }
  return OkStatus();
}

Result<std::string> FindPrefix(const Folder& folder, const Family& family) {
  const std::string table = family.rows[0].names[0];
  std::string tried = "'" + table + "'";
  if (folder.tensors().contains(table)) return std::string();
  for (const char* prefix : family.prefixes) {
    if (folder.tensors().contains(prefix + table)) return std::string(prefix);
    tried += " or '" + (prefix + table) + "'";
  }
  return InvalidData(folder.path(), ": there is no tensor ", tried, ", which a ", family.name, " model must have");
}

namespace {

Status SetPooling(const Folder& folder, ChosenPooling chosen, Description& d) {
  HeadSpec& head = d.architecture.head;
  if (head.kind != HeadKind::kEmbedding) {
    if (chosen == ChosenPooling::kFolder) return OkStatus();
    return InvalidArgument("--pooling is of encoders; ", folder.path(), " is a ", d.model_class);
  }
  WISP_ASSIGN_OR_RETURN(const std::string prefix, FindPrefix(folder, *d.family));
  const bool has_pooler = folder.tensors().contains(prefix + "pooler.dense.weight");
  const std::optional<SentenceModules>& modules = folder.sentence_modules();
  if (modules) head.unit_length = modules->unit_length;
  if (modules && modules->width > 0 && modules->width != d.architecture.width)
    return InvalidData(folder.path(), ": its module Pooling is for vectors of ", modules->width,
                       " numbers, those of config.json have ", d.architecture.width);
  if (chosen == ChosenPooling::kPooler && !has_pooler)
    return InvalidArgument("--pooling is pooler, ", folder.path(), " has none; allowed are first and mean");
  if (chosen == ChosenPooling::kFolder && modules) {
    head.pooling = modules->pooling;
    return OkStatus();
  }
  const bool pooler = chosen == ChosenPooling::kPooler || (chosen == ChosenPooling::kFolder && has_pooler);
  head.pooling = chosen == ChosenPooling::kMean ? Pooling::kMean : Pooling::kFirst;
  head.pooler = pooler ? Pooler::kTanh : Pooler::kNone;
  return OkStatus();
}

// transformers ties the output to the table of tokens only if the file has no other output.
void UntieOther(const Folder& folder, Description& d) {
  OutputTable& output = d.architecture.head.output_table;
  if (d.architecture.head.kind != HeadKind::kNextItem || output != OutputTable::kTied) return;
  const Result<std::string> prefix = FindPrefix(folder, *d.family);
  const auto head = folder.tensors().find(GetRows(*d.family, HeadKind::kNextItem).back().names[0]);
  if (!prefix.ok() || head == folder.tensors().end()) return;
  const auto table = folder.tensors().find(*prefix + d.family->rows[0].names[0]);
  if (SameNumbers(*table->second.tensor, *head->second.tensor)) return;
  output = OutputTable::kUntied;
  d.notes.push_back(folder.config_path() + ": tie_word_embeddings says that the output is the table of tokens, " +
                    *head->second.file + " has another " + Shown(head->first) + ": that one is used");
}

}  // namespace

Result<Description> Describe(const Folder& folder, const DescribeOptions& options) {
  WISP_ASSIGN_OR_RETURN(Description d, ReadConfig(folder.config_path(), folder.config(), options.config));
  WISP_RETURN_IF_ERROR(SetPooling(folder, options.pooling, d));
  UntieOther(folder, d);
  d.notes.insert(d.notes.end(), folder.notes().begin(), folder.notes().end());
  Architecture& a = d.architecture;
  if (const uint32_t cut = folder.sentence_length(); cut > 0 && cut < a.max_length) {
    d.notes.push_back("sentence-transformers cuts texts of this folder after " + std::to_string(cut) +
                      " tokens; --max-length " + std::to_string(cut) + " makes a model that takes no longer ones");
  }
  if (d.parts_by_separator) {
    WISP_ASSIGN_OR_RETURN(const std::optional<uint32_t> separator, folder.FindSeparator());
    if (separator && *separator < a.num_items) {
      a.token_types.separator = static_cast<int32_t>(*separator);
    } else {
      d.notes.push_back("no file says which token parts two sentences: all tokens are of type 0");
    }
  }
  if (const Status status = Validate(a); !status.ok()) return InvalidData(folder.path(), ": ", status.message());
  return d;
}

}  // namespace wisp::convert::hugging_face
