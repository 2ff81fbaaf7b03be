#include "tools/exchange/hugging_face/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/core/text.h"
#include "tools/exchange/hugging_face/config_fields.h"

namespace wisp::exchange::hugging_face {
namespace {

using Json = nlohmann::json;

bool IsFile(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
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

// A name of something within a folder, which leads nowhere else, and which messages may show.
bool StaysWithin(const std::string& name) {
  return !name.empty() && name[0] != '/' && name.find("..") == std::string::npos && OneLine(name) == name;
}

// The word behind the last dot: "Pooling" of "sentence_transformers.models.Pooling".
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
  return folder;
}

// modules.json: a list of a transformer, a pooling, and perhaps a normalising.
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
    const std::string type = fields.Word("type", ""), within = fields.Word("path", "");
    WISP_RETURN_IF_ERROR(fields.status());
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
  const std::string sentence = At("sentence_bert_config.json");
  if (!IsFile(sentence)) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const Json limits, ReadObject(sentence));
  Fields fields(sentence, limits);
  sentence_length_ = fields.CountFromZero("max_seq_length", 1u << 30, 0);
  return fields.status();
}

Status Folder::ReadPooling(const std::string& folder) {
  const std::string path = folder + "/config.json";
  WISP_ASSIGN_OR_RETURN(const Json json, ReadObject(path));
  Fields fields(path, json);
  std::string modes = fields.Word("pooling_mode", "");  // of newer versions
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
  if (IsFile(At("model.safetensors"))) return AddShard("model.safetensors");
  if (const std::string index = At("model.safetensors.index.json"); IsFile(index)) return OpenShards(index);
  if (IsFile(At("pytorch_model.bin")) || IsFile(At("pytorch_model.bin.index.json"))) {
    return Unsupported(path_,
                       ": its weights are pytorch_model.bin, supported is safetensors: "
                       "tools/exchange/to_safetensors.py writes that, with torch");
  }
  return InvalidData(path_, ": there is no model.safetensors and no model.safetensors.index.json");
}

Status Folder::OpenShards(const std::string& index_path) {
  WISP_ASSIGN_OR_RETURN(const Json index, ReadObject(index_path));
  const auto map = index.find("weight_map");
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

}  // namespace

Result<Description> Describe(const Folder& folder, const DescribeOptions& options) {
  WISP_ASSIGN_OR_RETURN(Description d, ReadConfig(folder.config_path(), folder.config(), options.config));
  WISP_RETURN_IF_ERROR(SetPooling(folder, options.pooling, d));
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

}  // namespace wisp::exchange::hugging_face
