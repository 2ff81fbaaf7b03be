// Finds the token that separates two sentences: its text from the special tokens, its number from the list of tokens.
#include "runtime/core/platform.h"
#include "tools/convert/hugging_face/config_fields.h"
#include "tools/convert/hugging_face/folder.h"
#include "tools/convert/tokenizer_json.h"

namespace wisp::convert::hugging_face {
namespace {

using Json = nlohmann::json;

// The largest tokenizer.json of known models has about 35 MB.
constexpr size_t kMaxTokenizerBytes = 64 << 20;

// Returns null if there is no such file, or if it cannot be parsed: other files may have the answer.
Json ReadIfThere(const std::string& path) {
  platform::FileInfo found;
  if (platform::GetInfo(path, found) != 0 || found.type != platform::FileType::kRegular) return Json();
  const Result<MappedFile> file = MappedFile::Open(path);
  if (!file.ok() || file->bytes().size() > kMaxTokenizerBytes) return Json();
  const auto* text = reinterpret_cast<const char*>(file->bytes().data());
  Json json = Json::parse(text, text + file->bytes().size(), nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json() : json;
}

// A token is a text, or an object with its text under "content".
std::string GetText(const Json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (!token.is_object()) return "";
  const auto content = token.find("content");
  return content == token.end() || !content->is_string() ? "" : content->get<std::string>();
}

std::string SeparatorText(const std::string& folder) {
  for (const char* name : {"/special_tokens_map.json", "/tokenizer_config.json"}) {
    const Json json = ReadIfThere(folder + name);
    if (!json.is_object()) continue;
    const auto found = json.find("sep_token");
    if (found == json.end()) continue;
    if (std::string text = GetText(*found); !text.empty()) return text;
  }
  return "[SEP]";
}

std::optional<uint32_t> InAddedTokens(const Json& tokenizer, const std::string& text) {
  if (!tokenizer.is_object()) return std::nullopt;
  const auto added = tokenizer.find("added_tokens");
  if (added == tokenizer.end() || !added->is_array()) return std::nullopt;
  for (const Json& token : *added) {
    if (GetText(token) != text || !token.contains("id") || !token["id"].is_number_unsigned()) continue;
    const auto id = token["id"].get<uint64_t>();
    if (id < kMaxItems) return static_cast<uint32_t>(id);
  }
  return std::nullopt;
}

std::optional<uint32_t> InLines(const std::string& path, const std::string& text) {
  const Result<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return std::nullopt;
  std::string_view rest(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  for (uint32_t line = 0; !rest.empty() && line < kMaxItems; ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view word = rest.substr(0, end);
    if (word.ends_with('\r')) word.remove_suffix(1);
    if (word == text) return line;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

}  // namespace

std::string Folder::tokenizer_folder() const {
  for (const std::string& folder : {model_folder_, path_}) {
    if (HasTokenizer(folder)) return folder;
  }
  return model_folder_;
}

Result<std::optional<uint32_t>> Folder::FindSeparator() const {
  const std::string folder = tokenizer_folder();
  const std::string text = SeparatorText(folder);
  if (const auto id = InAddedTokens(ReadIfThere(folder + "/tokenizer.json"), text)) return id;
  return InLines(folder + "/vocab.txt", text);
}

}  // namespace wisp::convert::hugging_face
