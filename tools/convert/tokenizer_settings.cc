#include "tools/convert/tokenizer_settings.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tools/convert/safetensors.h"
#include "tools/convert/tokenizer_step_parts.h"
#include "tools/convert/unread_keys.h"

namespace wisp::convert {
namespace {

using nlohmann::json;

constexpr const char* kConfigName = "tokenizer_config.json";

// Replaces a setting of tokenizer.json. Returns true if that changed it.
bool Replace(json& step, const char* key, const json& value) {
  const auto found = step.find(key);
  if (found != step.end() && *found == value) return false;
  step[key] = value;
  return true;
}

// Follows BERT's tokenizers: a setting in tokenizer_config.json wins. Other normalisers have no such settings.
Status FollowBert(const std::string& where, const json& config, json& root, std::vector<std::string>& notes) {
  constexpr std::pair<const char*, const char*> kSettings[] = {{"do_lower_case", "lowercase"},
                                                               {"strip_accents", "strip_accents"},
                                                               {"tokenize_chinese_chars", "handle_chinese_chars"}};
  const json* normalizer = Member(root, "normalizer");
  const bool is_bert = normalizer != nullptr && Member(*normalizer, "type") != nullptr &&
                       *Member(*normalizer, "type") == "BertNormalizer";
  for (const auto& [key, in_step] : kSettings) {
    const json* stated = Member(config, key);
    if (stated == nullptr) continue;
    bool on = false;
    WISP_RETURN_IF_ERROR(ReadMember(where, config, key, on));
    if (is_bert && Replace(root["normalizer"], in_step, on)) {
      notes.push_back(where + ": " + key + " is " + (on ? "true" : "false") + ", which takes the place of what " +
                      "tokenizer.json says");
    } else if (!is_bert && on && std::string_view(key) == "do_lower_case") {
      notes.push_back(where + ": do_lower_case is true, which changes nothing: tokenizer.json has no BertNormalizer");
    }
  }
  return OkStatus();
}

// Sets a space before the text, if the one step that splits has such a switch.
Status FollowPrefixSpace(const std::string& where, const json& config, json& root, std::vector<std::string>& notes) {
  if (Member(config, "add_prefix_space") == nullptr) return OkStatus();
  bool on = false;
  WISP_RETURN_IF_ERROR(ReadMember(where, config, "add_prefix_space", on));
  const json* splitter = Member(root, "pre_tokenizer");
  if (splitter != nullptr && Member(*splitter, "add_prefix_space") != nullptr) {
    if (Replace(root["pre_tokenizer"], "add_prefix_space", on))
      notes.push_back(where + ": add_prefix_space is " + (on ? "true" : "false") +
                      ", which takes the place of what tokenizer.json says");
    return OkStatus();
  }
  const bool prepends = splitter != nullptr && Member(*splitter, "prepend_scheme") != nullptr;
  if (on && !prepends && root.value("normalizer", json()).dump().find("Prepend") == std::string::npos)
    notes.push_back(where + ": add_prefix_space is true, which is not followed: no step of tokenizer.json has it");
  return OkStatus();
}

// Reads added_tokens_decoder, an object of tokens by their ids. Later tokens replace earlier ones of the same name.
Status FollowAdded(const std::string& where, const json& config, json& root, std::vector<std::string>& notes) {
  const json* stated = Member(config, "added_tokens_decoder");
  if (stated == nullptr) return OkStatus();
  if (!stated->is_object()) return InvalidData(where, ": added_tokens_decoder is no object, which alone is allowed");
  std::map<uint64_t, json> sorted;
  for (const auto& [key, token] : stated->items()) {
    const bool digits = !key.empty() && key.size() < 10 &&
                        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || !token.is_object())
      return InvalidData(where, ": added_tokens_decoder has ", Shown(key),
                         ", allowed are ids of tokens, each an object");
    json with_id = token;
    with_id["id"] = std::stoull(key);
    sorted.emplace(std::stoull(key), std::move(with_id));
  }
  json& added = root["added_tokens"];
  if (!added.is_array()) added = json::array();
  for (const auto& entry : sorted) {
    const json& token = entry.second;
    const auto same = std::find_if(added.begin(), added.end(), [&](const json& other) {
      return Member(other, "content") != nullptr && other["content"] == token.value("content", json());
    });
    if (same == added.end()) {
      added.push_back(token);
      notes.push_back(where + ": the token " + ShownJson(token.value("content", json())) + " is added, which " +
                      "tokenizer.json does not have");
      continue;
    }
    json whole = *same;
    whole.update(token);
    if (whole == *same) continue;
    *same = whole;
    notes.push_back(where + ": the token " + ShownJson(token.value("content", json())) +
                    " is added otherwise than tokenizer.json says, as here");
  }
  return OkStatus();
}

// Returns the token under a key, which is a text or an object with its content.
const json* TokenUnder(const json& file, const char* key) {
  const json* stated = Member(file, key);
  if (stated != nullptr && stated->is_object()) stated = Member(*stated, "content");
  return stated != nullptr && stated->is_string() ? stated : nullptr;
}

class Meanings {
 public:
  Meanings(const std::string& name, const TokenizerSettings& settings,
           const std::unordered_map<std::string, int32_t>& ids, TokenizerParts& parts, TokenizerReport& report)
      : name_(name), settings_(settings), ids_(ids), parts_(parts), report_(report) {}

  Status Run() {
    text::SpecialIds& special = parts_.special;
    Find("begin", "bos_token", "bos_token_id", {"<s>", "<|begin_of_text|>", "<|endoftext|>"}, special.bos);
    Find("end", "eos_token", "eos_token_id", {"</s>", "<|end_of_text|>", "<|endoftext|>"}, special.eos);
    Find("padding", "pad_token", "pad_token_id", {"[PAD]", "<pad>"}, special.pad);
    Find("class", "cls_token", nullptr, {"[CLS]"}, special.cls);
    Find("separator", "sep_token", nullptr, {"[SEP]"}, special.sep);
    Find("mask", "mask_token", nullptr, {"[MASK]", "<mask>"}, special.mask);
    CheckAdditional();
    if (parts_.other_ends.size() > text::kMaxEnds)
      return InvalidData(name_, ": ", parts_.other_ends.size() + 1, " tokens end a text, allowed are ",
                         text::kMaxEnds + 1);
    return Template();
  }

 private:
  struct File {
    const char* name;
    const json& content;
  };
  std::vector<File> TextFiles() const {
    return {{kConfigName, settings_.tokenizer_config}, {"special_tokens_map.json", settings_.special_tokens_map}};
  }
  std::vector<File> IdFiles() const {
    return {{"generation_config.json", settings_.generation_config}, {"config.json", settings_.config}};
  }

  bool IsToken(int64_t id) const {
    return id >= 0 && static_cast<uint64_t>(id) < parts_.tokens.size() &&
           !parts_.tokens[static_cast<size_t>(id)].empty();
  }

  // Adds a file that gives the token this meaning. The first token of a meaning is the one that is written.
  void Add(const char* meaning, int32_t token, const std::string& from, int32_t& id) {
    const bool ends = std::string_view(meaning) == "end";
    if (id >= 0 && id != token && !ends) return;
    if (id < 0) {
      id = token;
    } else if (id != token &&
               std::find(parts_.other_ends.begin(), parts_.other_ends.end(), token) == parts_.other_ends.end()) {
      parts_.other_ends.push_back(token);
    }
    for (FoundToken& found : report_.tokens) {
      if (found.meaning == meaning && found.id == token) {
        found.from += ", " + from;
        return;
      }
    }
    report_.tokens.push_back({meaning, token, parts_.tokens[static_cast<size_t>(token)], from});
  }

  void AddId(const char* meaning, const char* key, const json& stated, const char* file, int32_t& id) {
    // Some files write -1 for a missing token.
    const int64_t token = stated.is_number_integer() ? stated.get<int64_t>() : -2;
    if (token == -1) return;
    if (IsToken(token)) return Add(meaning, static_cast<int32_t>(token), file, id);
    report_.notes.push_back(name_ + "/" + file + ": " + key + " is " + ShownJson(stated) +
                            ", which is no token of the tokenizer, and is not followed");
  }

  // Finds the token by its text, then by its number, then by the usual names; the last only if no file names it.
  void Find(const char* meaning, const char* key, const char* id_key, const std::vector<std::string>& usual,
            int32_t& id) {
    bool is_said = false;
    for (const File& file : TextFiles()) {
      is_said = is_said || (file.content.is_object() && file.content.contains(key));
      const json* text = TokenUnder(file.content, key);
      if (text == nullptr) continue;
      if (const auto found = ids_.find(text->get_ref<const std::string&>()); found != ids_.end()) {
        Add(meaning, found->second, file.name, id);
      } else {
        report_.notes.push_back(name_ + "/" + file.name + ": " + key + " is " + ShownJson(*text) +
                                ", which is no token of the tokenizer, and is not followed");
      }
    }
    for (const File& file : IdFiles()) {
      const json* stated = id_key == nullptr ? nullptr : Member(file.content, id_key);
      if (stated == nullptr) continue;
      is_said = true;
      if (!stated->is_array()) AddId(meaning, id_key, *stated, file.name, id);
      for (size_t i = 0; stated->is_array() && i < stated->size(); ++i)
        AddId(meaning, id_key, (*stated)[i], file.name, id);
    }
    for (size_t i = 0; !is_said && id < 0 && i < usual.size(); ++i) {
      if (const auto found = ids_.find(usual[i]); found != ids_.end())
        Add(meaning, found->second, "its name, no file says it", id);
    }
  }

  // Notes tokens that transformers would add because the tokenizer does not have them.
  void CheckAdditional() {
    const auto check = [&](const char* file, const char* key, const json& text) {
      if (text.is_string() && !ids_.contains(text.get_ref<const std::string&>()))
        report_.notes.push_back(name_ + "/" + file + ": " + key + " has " + ShownJson(text) +
                                ", which is no token of the tokenizer, and is not added");
    };
    for (const File& file : TextFiles()) {
      for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
        const json* list = Member(file.content, key);
        if (list == nullptr || !list->is_structured()) continue;
        for (const json& token : *list)
          check(file.name, key, token.is_object() ? token.value("content", json()) : token);
      }
    }
    if (!settings_.added_tokens.is_object()) return;
    for (const auto& [text, id] : settings_.added_tokens.items()) {
      const auto found = ids_.find(text);
      if (found == ids_.end() || id != found->second)
        report_.notes.push_back(name_ + "/added_tokens.json: " + Shown(text) + " is " + ShownJson(id) +
                                ", which the tokenizer does not have, and is not added");
    }
  }

  // Llama's tokenizers make their template from two switches; others keep the template of tokenizer.json.
  Status Template() {
    const json& config = settings_.tokenizer_config;
    const std::string where = name_ + "/" + kConfigName;
    const text::SpecialIds& special = parts_.special;
    const bool has_begin = !parts_.single.empty() && parts_.single.front() >= 0 && parts_.single.front() == special.bos;
    const bool has_end = !parts_.single.empty() && parts_.single.back() >= 0 && parts_.single.back() == special.eos;
    bool begin = has_begin, end = has_end;
    WISP_RETURN_IF_ERROR(ReadMember(where, config, "add_bos_token", begin));
    WISP_RETURN_IF_ERROR(ReadMember(where, config, "add_eos_token", end));
    if (begin == has_begin && end == has_end) return OkStatus();
    std::string kind;
    WISP_RETURN_IF_ERROR(ReadMember(where, config, "tokenizer_class", kind));
    const bool makes_template = kind.starts_with("Llama") || kind.starts_with("CodeLlama") || kind.starts_with("Gemma");
    const bool can = (!begin || special.bos >= 0) && (!end || special.eos >= 0);
    const std::string said = where + ": add_bos_token and add_eos_token ask for " + (begin ? "a" : "no") +
                             " token at the beginning and " + (end ? "one" : "none") + " at the end of a text, ";
    if (!makes_template || !can) {
      report_.notes.push_back(said + "which is not followed: tokenizer.json puts others there");
      return OkStatus();
    }
    parts_.single.clear();
    parts_.pair.clear();
    for (const int32_t text : {-1, -2}) {
      if (begin) parts_.pair.push_back(special.bos);
      parts_.pair.push_back(text);
      if (end) parts_.pair.push_back(special.eos);
      if (text == -1) parts_.single = parts_.pair;
    }
    report_.notes.push_back(said + "which takes the place of what tokenizer.json says");
    return OkStatus();
  }

  const std::string& name_;
  const TokenizerSettings& settings_;
  const std::unordered_map<std::string, int32_t>& ids_;
  TokenizerParts& parts_;
  TokenizerReport& report_;
};

}  // namespace

Status FollowSettings(const std::string& name, const TokenizerSettings& settings, json& root,
                      std::vector<std::string>& notes) {
  const std::string where = name + "/" + kConfigName;
  const json& config = settings.tokenizer_config;
  if (!config.is_object()) return OkStatus();
  WISP_RETURN_IF_ERROR(FollowBert(where, config, root, notes));
  WISP_RETURN_IF_ERROR(FollowPrefixSpace(where, config, root, notes));
  return FollowAdded(where, config, root, notes);
}

Status FindMeanings(const std::string& name, const TokenizerSettings& settings,
                    const std::unordered_map<std::string, int32_t>& ids, TokenizerParts& parts,
                    TokenizerReport& report) {
  return Meanings(name, settings, ids, parts, report).Run();
}

}  // namespace wisp::convert
