#include "tools/convert/tokenizer_plain_files.h"

#include <utility>
#include <vector>

#include "runtime/text/tokenizers/unicode.h"
#include "tools/convert/tokenizer_step_parts.h"

namespace wisp::convert {
namespace {

using nlohmann::json;

// Returns the lines without their ends; the last may lack one.
std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    at = end + 1;
  }
  return lines;
}

std::string TrimmedEnd(std::string_view line) {
  while (!line.empty()) {
    const size_t last = text::Before(line, line.size());
    if (!text::Has(text::CharacterAt(line, last).code, text::unicode::kWhite)) break;
    line = line.substr(0, last);
  }
  return std::string(line);
}

json SpecialToken(const std::string& content, uint64_t id, bool strips_left) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", strips_left},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// Returns the text of a token in the configuration, which is a text or an object with its content.
std::string Named(const json& config, const char* key, const char* usual) {
  const json* member = Member(config, key);
  if (member != nullptr && member->is_object()) member = Member(*member, "content");
  return member != nullptr && member->is_string() ? member->get<std::string>() : usual;
}

}  // namespace

Result<json> VocabularyToJson(const std::string& name, std::string_view vocabulary, const json& config) {
  const std::string where = name + ": vocab.txt";
  WISP_RETURN_IF_ERROR(text::CheckUtf8(where, vocabulary));
  json tokens = json::object();
  uint64_t id = 0;
  for (const std::string& line : LinesOf(vocabulary)) tokens[TrimmedEnd(line)] = id++;
  bool lower = true, chinese = true;
  WISP_RETURN_IF_ERROR(ReadMember(where, config, "do_lower_case", lower));
  WISP_RETURN_IF_ERROR(ReadMember(where, config, "tokenize_chinese_chars", chinese));
  json strip;
  if (const json* member = Member(config, "strip_accents"); member != nullptr) strip = *member;
  const std::string cls = Named(config, "cls_token", "[CLS]"), sep = Named(config, "sep_token", "[SEP]"),
                    unknown = Named(config, "unk_token", "[UNK]");
  json added = json::array();
  for (const std::string& token :
       {Named(config, "pad_token", "[PAD]"), unknown, cls, sep, Named(config, "mask_token", "[MASK]")}) {
    if (tokens.contains(token)) added.push_back(SpecialToken(token, tokens[token].get<uint64_t>(), false));
  }
  if (!tokens.contains(cls) || !tokens.contains(sep))
    return InvalidData(where,
                       ": it lacks the token of the start or of the end, [CLS] and [SEP] unless "
                       "tokenizer_config.json says others");
  return json{{"added_tokens", std::move(added)},
              {"normalizer",
               {{"type", "BertNormalizer"},
                {"clean_text", true},
                {"handle_chinese_chars", chinese},
                {"strip_accents", std::move(strip)},
                {"lowercase", lower}}},
              {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
              {"post_processor",
               {{"type", "BertProcessing"},
                {"sep", json::array({sep, tokens[sep]})},
                {"cls", json::array({cls, tokens[cls]})}}},
              {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
              {"model", {{"type", "WordPiece"}, {"unk_token", unknown}, {"vocab", std::move(tokens)}}}};
}

Result<json> MergesToJson(const std::string& name, json vocabulary, std::string_view merges, const json& config) {
  const std::string where = name + ": merges.txt";
  WISP_RETURN_IF_ERROR(text::CheckUtf8(where, merges));
  json list = json::array();
  for (const std::string& line : LinesOf(merges)) {
    if (!line.empty() && !line.starts_with("#version")) list.push_back(line);
  }
  bool prefix = false;
  WISP_RETURN_IF_ERROR(ReadMember(where, config, "add_prefix_space", prefix));
  const auto id_of = [&](const std::string& token) -> const json* {
    const json* id = Member(vocabulary, token.c_str());
    return id != nullptr && id->is_number_unsigned() ? id : nullptr;
  };
  json added = json::array(), processor;
  for (const char* token : {"<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>", "<mask>"}) {
    if (const json* id = id_of(token); id != nullptr)
      added.push_back(SpecialToken(token, id->get<uint64_t>(), std::string_view(token) == "<mask>"));
  }
  if (id_of("<s>") != nullptr && id_of("</s>") != nullptr) {
    processor = {{"type", "RobertaProcessing"},
                 {"sep", json::array({"</s>", *id_of("</s>")})},
                 {"cls", json::array({"<s>", *id_of("<s>")})}};
  }
  return json{{"added_tokens", std::move(added)},
              {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", prefix}}},
              {"post_processor", std::move(processor)},
              {"decoder", {{"type", "ByteLevel"}}},
              {"model", {{"type", "BPE"}, {"vocab", std::move(vocabulary)}, {"merges", std::move(list)}}}};
}

}  // namespace wisp::convert
