// The table of all known keys of tokenizer_config.json and special_tokens_map.json. Each is followed elsewhere, is
// harmless, or gets a note.
#include <algorithm>
#include <utility>

#include "tools/convert/tokenizer_settings.h"
#include "tools/convert/tokenizer_step_parts.h"
#include "tools/convert/unread_keys.h"

namespace wisp::convert {
namespace {

using nlohmann::json;

const ReadKeys& Followed() {
  static const ReadKeys keys = {"bos_token",
                                "eos_token",
                                "unk_token",
                                "sep_token",
                                "pad_token",
                                "cls_token",
                                "mask_token",
                                "additional_special_tokens",
                                "extra_special_tokens",
                                "do_lower_case",
                                "strip_accents",
                                "tokenize_chinese_chars",
                                "add_prefix_space",
                                "added_tokens_decoder",
                                "add_bos_token",
                                "add_eos_token",
                                "model_max_length",
                                "max_len",
                                "tokenizer_class"};
  return keys;
}

constexpr std::string_view kNames = "a name", kPadding = "nothing is padded", kCut = "cutting is the caller's",
                           kSlow = "of tokenizers written in Python", kMade = "tokenizer.json was made with it",
                           kLoading = "how a program loads the files";
constexpr HarmlessKey kHarmless[] = {{"name_or_path", kNames},
                                     {"_name_or_path", kNames},
                                     {"tokenizer_file", kNames},
                                     {"special_tokens_map_file", kNames},
                                     {"vocab_file", kNames},
                                     {"merges_file", kNames},
                                     {"spm_file", kNames},
                                     {"processor_class", kNames},
                                     {"transformers_version", kNames},
                                     {"unsloth_version", kNames},
                                     {"padding*", kPadding},
                                     {"pad_to_multiple_of", kPadding},
                                     {"pad_token_type_id", kPadding},
                                     {"truncation*", kCut},
                                     {"stride", kCut},
                                     {"max_length", kCut},
                                     {"spaces_between_special_tokens", kSlow},
                                     {"errors", kSlow},
                                     {"sp_model_kwargs", kSlow},
                                     {"use_fast", kSlow},
                                     {"legacy", kMade},
                                     {"from_slow", kMade},
                                     {"remove_space", kMade},
                                     {"keep_accents", kMade},
                                     {"trim_offsets", "offsets are not asked for"},
                                     {"model_input_names", "the model says what it reads"},
                                     {"return_token_type_ids", "the model says what it reads"},
                                     {"use_default_system_prompt", "of chat templates"},
                                     {"is_local", kLoading},
                                     {"local_files_only", kLoading},
                                     {"backend", kLoading},
                                     {"device_map", kLoading}};

// A key that changes the tokens of a text, unless it has this value.
struct NotFollowed {
  const char* key;
  json harmless;
  const char* sentence;
};

const std::vector<NotFollowed>& ValuesNotFollowed() {
  static const std::vector<NotFollowed> values = {
      {"do_basic_tokenize", true, "texts are split into words all the same"},
      {"never_split", json::array(), "words are split all the same"},
      {"split_special_tokens", false, "special tokens within a text stay whole"},
      {"clean_up_tokenization_spaces", false, "spaces before punctuation of generated texts stay"}};
  return values;
}

}  // namespace

void SaySettings(const std::string& name, const TokenizerSettings& settings, TokenizerReport& report) {
  ReadKeys known = Followed();
  const std::string where = name + "/tokenizer_config.json";
  const json& config = settings.tokenizer_config;
  for (const NotFollowed& one : ValuesNotFollowed()) {
    known.insert(one.key);
    const json* stated = Member(config, one.key);
    if (stated == nullptr || *stated == one.harmless) continue;
    report.notes.push_back(where + ": " + one.key + " is " + ShownJson(*stated) +
                           ", which is not followed: " + one.sentence);
  }
  known.insert("chat_template");
  if (Member(config, "chat_template") != nullptr)
    report.notes.push_back(where + ": it has a chat_template, which is not followed: prompts are plain texts");
  SayUnread(where, config, known, kHarmless, report.notes);
  SayUnread(name + "/special_tokens_map.json", settings.special_tokens_map, Followed(), {}, report.notes);
  for (const char* key : {"max_len", "model_max_length"}) {
    const json* length = Member(config, key);
    // Without a limit, transformers writes 1e30.
    constexpr uint64_t kMost = 1u << 30;
    if (length != nullptr && length->is_number_unsigned() && length->get<uint64_t>() <= kMost)
      report.max_length = static_cast<uint32_t>(length->get<uint64_t>());
  }
}

}  // namespace wisp::convert
