#include "tools/convert/tokenizer_json.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "runtime/core/file.h"
#include "runtime/core/native_path.h"
#include "runtime/text/tokenizers/unicode.h"
#include "tools/convert/safetensors.h"
#include "tools/convert/tokenizer_image.h"
#include "tools/convert/tokenizer_plain_files.h"
#include "tools/convert/tokenizer_settings.h"
#include "tools/convert/tokenizer_step_parts.h"
#include "tools/convert/tokenizer_steps.h"

namespace wisp::convert {
namespace {

using nlohmann::json;
using schema::TokenModel;

constexpr size_t kMaxFileBytes = size_t{256} << 20;
constexpr const char* kSupportedModels = "supported are WordPiece, BPE and Unigram";

// Reads one parsed tokenizer.json.
class Reader {
 public:
  Reader(const TokenizerFiles& files, const std::string& name, const json& root, const TokenizerSettings& settings)
      : files_(files), name_(name), root_(root), settings_(settings) {}

  Result<std::vector<std::byte>> Run(TokenizerReport& report) {
    const json* model = Member(root_, "model");
    if (model == nullptr || !model->is_object())
      return InvalidData(name_, ": it has no object named model, which a tokenizer.json must have");
    WISP_RETURN_IF_ERROR(Model(*model));
    const auto step = [&](const char* key) {
      const json* found = Member(root_, key);
      return found == nullptr ? json() : *found;
    };
    WISP_RETURN_IF_ERROR(ReadNormalizer(name_, step("normalizer"), parts_));
    WISP_RETURN_IF_ERROR(ReadSplitter(name_, step("pre_tokenizer"), parts_));
    WISP_RETURN_IF_ERROR(ReadDecoder(name_, step("decoder"), parts_));
    WISP_RETURN_IF_ERROR(ReadProcessor(name_, step("post_processor"), parts_));
    if ((parts_.options & text::option::kByteLevel) != 0 && (parts_.options & text::option::kByteFallback) != 0)
      return Unsupported(name_, ": byte_fallback together with ByteLevel is not supported");
    WISP_RETURN_IF_ERROR(Added());
    WISP_RETURN_IF_ERROR(FindMeanings(files_.name, settings_, ids_, parts_, report));
    if (files_.lower_case) parts_.normalizers.insert(parts_.normalizers.begin(), MakeStep(text::NormalizeKind::kLower));
    return MakeImage(name_, parts_);
  }

 private:
  Status Model(const json& model);
  Status Bpe(const json& model);
  Status WordPiece(const json& model);
  Status Unigram(const json& model);
  Status Vocabulary(const json& model);
  Status Put(const std::string& token, uint64_t id);
  Status Merges(const json& model);
  Status Merge(const std::string& left, const std::string& right);
  Status Added();
  Status AddedToken(const json& token, int32_t& next_id);

  const TokenizerFiles& files_;
  const std::string& name_;
  const json& root_;
  const TokenizerSettings& settings_;
  TokenizerParts parts_;
  std::unordered_map<std::string, int32_t> ids_;
};

Status Reader::Model(const json& model) {
  std::string type;
  WISP_RETURN_IF_ERROR(ReadMember(name_ + ": the model", model, "type", type));
  if (type.empty()) {  // older files do not name it
    const json* vocabulary = Member(model, "vocab");
    if (Member(model, "merges") != nullptr) {
      type = "BPE";
    } else if (vocabulary != nullptr && vocabulary->is_array()) {
      type = "Unigram";
    } else if (Member(model, "max_input_chars_per_word") != nullptr) {
      type = "WordPiece";
    }
  }
  if (type == "BPE") return Bpe(model);
  if (type == "WordPiece") return WordPiece(model);
  if (type == "Unigram") return Unigram(model);
  return Unsupported(name_, ": the model has the type ", Shown(type), ", ", kSupportedModels);
}

Status Reader::Put(const std::string& token, uint64_t id) {
  if (id >= text::kMaxTokens)
    return InvalidData(name_, ": token ", Shown(token), " has the id ", id, ", allowed are ids below ",
                       text::kMaxTokens);
  if (id >= parts_.tokens.size()) parts_.tokens.resize(id + 1);
  if (!parts_.tokens[id].empty())
    return Unsupported(name_, ": the tokens ", Shown(parts_.tokens[id]), " and ", Shown(token), " both have the id ",
                       id, ", which is not supported");
  parts_.tokens[id] = token;
  ids_[token] = static_cast<int32_t>(id);
  return OkStatus();
}

Status Reader::Vocabulary(const json& model) {
  const json* vocabulary = Member(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object() || vocabulary->empty())
    return InvalidData(name_, ": the model has no vocab, which must be an object of tokens and ids");
  // Ids that lie far apart would need memory that the file does not account for.
  const uint64_t most = 4 * vocabulary->size() + 65536;
  for (const auto& [token, id] : vocabulary->items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= most)
      return InvalidData(name_, ": the id of token ", Shown(token), " is no whole number below ", most);
    WISP_RETURN_IF_ERROR(Put(token, id.get<uint64_t>()));
  }
  return OkStatus();
}

Status Reader::WordPiece(const json& model) {
  const std::string where = name_ + ": the model";
  parts_.model = TokenModel::WordPiece;
  parts_.continuing_prefix = "##";
  parts_.max_word_characters = 100;
  std::string unknown = "[UNK]";
  WISP_RETURN_IF_ERROR(Vocabulary(model));
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "unk_token", unknown));
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "continuing_subword_prefix", parts_.continuing_prefix));
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "max_input_chars_per_word", parts_.max_word_characters));
  const auto found = ids_.find(unknown);
  if (found == ids_.end())
    return InvalidData(where, ": its unk_token ", Shown(unknown), " is not in the vocabulary, which it must be");
  parts_.special.unk = found->second;
  return OkStatus();
}

Status Reader::Merge(const std::string& left, const std::string& right) {
  const auto find = [&](const std::string& token) {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  };
  const MergePart merge = {find(left), find(right), find(left + right)};
  if (merge.left < 0 || merge.right < 0 || merge.result < 0)
    return InvalidData(name_, ": the merge of ", Shown(left), " and ", Shown(right),
                       " is not all in the vocabulary; both and what they become must be");
  parts_.merges.push_back(merge);
  return OkStatus();
}

Status Reader::Merges(const json& model) {
  const json* merges = Member(model, "merges");
  if (merges == nullptr || !merges->is_array())
    return InvalidData(name_, ": the model has no merges, which must be a list");
  for (const json& merge : *merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      WISP_RETURN_IF_ERROR(Merge(merge[0].get<std::string>(), merge[1].get<std::string>()));
      continue;
    }
    const std::string both = merge.is_string() ? merge.get<std::string>() : std::string();
    const size_t space = both.find(' ');
    if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
      return InvalidData(name_, ": merge ", parts_.merges.size(), " is no pair of tokens, which alone is allowed");
    WISP_RETURN_IF_ERROR(Merge(both.substr(0, space), both.substr(space + 1)));
  }
  return OkStatus();
}

Status Reader::Bpe(const json& model) {
  const std::string where = name_ + ": the model";
  parts_.model = TokenModel::Bpe;
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    std::string affix;
    WISP_RETURN_IF_ERROR(ReadMember(where, model, key, affix));
    if (!affix.empty()) return Unsupported(where, ": ", key, " is ", Shown(affix), ", supported is BPE without one");
  }
  const json* dropout = Member(model, "dropout");
  if (dropout != nullptr && (!dropout->is_number() || dropout->get<double>() != 0))
    return Unsupported(where, ": dropout is set, supported is BPE without it");
  WISP_RETURN_IF_ERROR(Vocabulary(model));
  WISP_RETURN_IF_ERROR(Merges(model));
  bool fuse = false, fallback = false, ignore = false;
  std::string unknown;
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "fuse_unk", fuse));
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "byte_fallback", fallback));
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "ignore_merges", ignore));
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "unk_token", unknown));
  parts_.options = (fuse ? text::option::kFuseUnknown : 0) | (fallback ? text::option::kByteFallback : 0) |
                   (ignore ? text::option::kIgnoreMerges : 0);
  if (unknown.empty()) return OkStatus();
  const auto found = ids_.find(unknown);
  if (found == ids_.end())
    return InvalidData(where, ": its unk_token ", Shown(unknown), " is not in the vocabulary, which it must be");
  parts_.special.unk = found->second;
  return OkStatus();
}

Status Reader::Unigram(const json& model) {
  parts_.model = TokenModel::Unigram;
  const std::string where = name_ + ": the model";
  const json* vocabulary = Member(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_array() || vocabulary->empty() || vocabulary->size() >= text::kMaxTokens)
    return InvalidData(where, " has no vocab, which must be a list of tokens and scores");
  for (const json& entry : *vocabulary) {
    const size_t id = parts_.tokens.size();
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      return InvalidData(where, ": entry ", id, " of its vocab is no token with a score");
    const std::string token = entry[0].get<std::string>();
    if (ids_.contains(token))
      return Unsupported(where, ": the token ", Shown(token), " is there twice, supported is once");
    parts_.tokens.push_back(token);
    parts_.scores.push_back(entry[1].get<double>());
    ids_[token] = static_cast<int32_t>(id);
  }
  uint32_t unknown = UINT32_MAX;
  bool fallback = false;
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "unk_id", unknown));
  WISP_RETURN_IF_ERROR(ReadMember(where, model, "byte_fallback", fallback));
  if (unknown >= parts_.tokens.size())
    return Unsupported(where, ": its unk_id is no token, supported is Unigram with an unknown token");
  parts_.special.unk = static_cast<int32_t>(unknown);
  parts_.options = fallback ? text::option::kByteFallback : 0;
  return OkStatus();
}

Status Reader::AddedToken(const json& token, int32_t& next_id) {
  const std::string where = name_ + ": an added token";
  AddedPart part;
  WISP_RETURN_IF_ERROR(ReadMember(where, token, "content", part.content));
  if (part.content.empty()) return OkStatus();  // as in the reference
  bool special = false;
  WISP_RETURN_IF_ERROR(ReadMember(where, token, "special", special));
  if (special) part.options |= text::added::kSpecial;
  constexpr std::pair<const char*, uint32_t> kOptions[] = {{"lstrip", text::added::kLeftStrip},
                                                           {"rstrip", text::added::kRightStrip},
                                                           {"single_word", text::added::kSingleWord},
                                                           {"normalized", text::added::kNormalized}};
  for (const auto& [key, option] : kOptions) {
    bool on = option == text::added::kNormalized && !special;
    WISP_RETURN_IF_ERROR(ReadMember(where, token, key, on));
    if (on) part.options |= option;
  }
  uint32_t stated = UINT32_MAX;
  WISP_RETURN_IF_ERROR(ReadMember(where, token, "id", stated));
  const auto found = ids_.find(part.content);
  part.id = found != ids_.end() ? found->second : next_id++;
  if (stated != UINT32_MAX && stated != static_cast<uint32_t>(part.id)) {
    return Unsupported(where, ", ", Shown(part.content), ", has the id ", stated, ", the reference gives it ", part.id,
                       "; supported is where both agree");
  }
  for (AddedPart& other : parts_.added) {
    if (other.id == part.id) return other = part, OkStatus();  // the last one of a name counts
  }
  if (found == ids_.end()) WISP_RETURN_IF_ERROR(Put(part.content, static_cast<uint64_t>(part.id)));
  parts_.added.push_back(std::move(part));
  return OkStatus();
}

Status Reader::Added() {
  parts_.num_model_tokens = parts_.tokens.size();
  const json* added = Member(root_, "added_tokens");
  if (added == nullptr) return OkStatus();
  if (!added->is_array() || added->size() > text::kMaxAdded)
    return InvalidData(name_, ": added_tokens is no list of at most ", text::kMaxAdded);
  // If the vocabulary has holes, the reference continues with the number of its tokens, and then ids collide.
  auto next_id = static_cast<int32_t>(ids_.size());
  for (const json& token : *added) WISP_RETURN_IF_ERROR(AddedToken(token, next_id));
  return OkStatus();
}

Result<json> Parsed(const std::string& name, std::string_view text) {
  constexpr int kMaxDepth = 64;
  bool deep = false;
  const auto look = [&](int depth, json::parse_event_t, json&) {
    deep = deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  json root = json::parse(text.begin(), text.end(), look, false);
  if (deep) return InvalidData(name, ": it is nested more than ", kMaxDepth, " deep");
  if (root.is_discarded() || !root.is_object()) return InvalidData(name, ": this is no JSON object");
  return root;
}

// Parses the settings files, if there are any.
Result<TokenizerSettings> ReadSettings(const TokenizerFiles& files) {
  TokenizerSettings settings;
  const auto parse = [&](const char* file, std::string_view text, json& out) -> Status {
    if (text.empty()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(out, Parsed(files.name + ": " + file, text));
    return OkStatus();
  };
  WISP_RETURN_IF_ERROR(parse("tokenizer_config.json", files.tokenizer_config, settings.tokenizer_config));
  WISP_RETURN_IF_ERROR(parse("special_tokens_map.json", files.special_tokens_map, settings.special_tokens_map));
  WISP_RETURN_IF_ERROR(parse("added_tokens.json", files.added_tokens, settings.added_tokens));
  WISP_RETURN_IF_ERROR(parse("generation_config.json", files.generation_config, settings.generation_config));
  WISP_RETURN_IF_ERROR(parse("config.json", files.config, settings.config));
  return settings;
}

}  // namespace

Result<std::vector<std::byte>> TokenizerImage(const TokenizerFiles& files, TokenizerReport* report) {
  for (const std::string_view text :
       {files.tokenizer_json, files.tokenizer_config, files.vocab_txt, files.vocab_json, files.merges_txt,
        files.special_tokens_map, files.added_tokens, files.generation_config, files.config}) {
    if (text.size() > kMaxFileBytes)
      return InvalidData(files.name, ": a file has ", text.size(), " bytes, allowed are ", kMaxFileBytes);
  }
  WISP_ASSIGN_OR_RETURN(const TokenizerSettings settings, ReadSettings(files));
  json root;
  const std::string& name = files.tokenizer_json.empty() || files.json_name.empty() ? files.name : files.json_name;
  if (!files.tokenizer_json.empty()) {
    WISP_ASSIGN_OR_RETURN(root, Parsed(name, files.tokenizer_json));
  } else if (!files.vocab_txt.empty()) {
    WISP_ASSIGN_OR_RETURN(root, VocabularyToJson(files.name, files.vocab_txt, settings.tokenizer_config));
  } else if (!files.vocab_json.empty() && !files.merges_txt.empty()) {
    WISP_ASSIGN_OR_RETURN(json vocabulary, Parsed(files.name + ": vocab.json", files.vocab_json));
    WISP_ASSIGN_OR_RETURN(root,
                          MergesToJson(files.name, std::move(vocabulary), files.merges_txt, settings.tokenizer_config));
  } else {
    return InvalidArgument(files.name,
                           ": there is no tokenizer; needed is tokenizer.json, vocab.txt, or vocab.json "
                           "with merges.txt");
  }
  TokenizerReport own;
  TokenizerReport& said = report != nullptr ? *report : own;
  WISP_RETURN_IF_ERROR(FollowSettings(files.name, settings, root, said.notes));
  SaySettings(files.name, settings, said);
  return Reader(files, name, root, settings).Run(said);
}

bool HasTokenizer(const std::string& folder) {
  std::error_code ignored;
  for (const char* name : {"/tokenizer.json", "/vocab.txt", "/vocab.json"}) {
    if (std::filesystem::exists(NativePath(folder + name), ignored)) return true;
  }
  return false;
}

Result<std::vector<std::byte>> ReadTokenizerImage(const std::string& path, TokenizerReport* report, bool lower_case) {
  std::error_code ignored;
  TokenizerFiles files{.name = path, .json_name = path + "/tokenizer.json", .lower_case = lower_case};
  std::vector<MappedFile> mapped;
  mapped.reserve(9);
  const auto read = [&](const std::string& file, std::string_view& text) -> Status {
    WISP_ASSIGN_OR_RETURN(MappedFile opened, MappedFile::Open(file));
    mapped.push_back(std::move(opened));
    const auto bytes = mapped.back().bytes();
    text = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return OkStatus();
  };
  if (!std::filesystem::is_directory(NativePath(path), ignored)) {
    WISP_RETURN_IF_ERROR(read(path, files.tokenizer_json));
    files.json_name.clear();
    if (files.tokenizer_json.empty()) return InvalidData(path, ": the file is empty");
    return TokenizerImage(files, report);
  }
  const std::pair<const char*, std::string_view*> names[] = {{"tokenizer.json", &files.tokenizer_json},
                                                             {"tokenizer_config.json", &files.tokenizer_config},
                                                             {"vocab.txt", &files.vocab_txt},
                                                             {"vocab.json", &files.vocab_json},
                                                             {"merges.txt", &files.merges_txt},
                                                             {"special_tokens_map.json", &files.special_tokens_map},
                                                             {"added_tokens.json", &files.added_tokens},
                                                             {"generation_config.json", &files.generation_config},
                                                             {"config.json", &files.config}};
  for (const auto& [name, text] : names) {
    const std::string file = path + "/" + name;
    if (std::filesystem::exists(NativePath(file), ignored)) WISP_RETURN_IF_ERROR(read(file, *text));
  }
  return TokenizerImage(files, report);
}

}  // namespace wisp::convert
