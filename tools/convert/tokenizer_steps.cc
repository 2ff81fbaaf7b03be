#include "tools/convert/tokenizer_steps.h"

#include <utility>

#include "runtime/text/tokenizers/normal_form.h"
#include "runtime/text/tokenizers/patterns.h"
#include "tools/convert/safetensors.h"
#include "tools/convert/tokenizer_step_parts.h"

namespace wisp::convert {

using nlohmann::json;
using namespace text;  // NOLINT(google-build-using-namespace): the kinds of steps

namespace {

Status Decoded(const std::string& where, const std::string& base64, std::string& bytes) {
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    uint32_t value = 64;
    if (c >= 'A' && c <= 'Z') value = static_cast<uint32_t>(c - 'A');
    if (c >= 'a' && c <= 'z') value = static_cast<uint32_t>(c - 'a' + 26);
    if (c >= '0' && c <= '9') value = static_cast<uint32_t>(c - '0' + 52);
    if (c == '+') value = 62;
    if (c == '/') value = 63;
    if (value == 64) return InvalidData(where, ": its precompiled_charsmap is no base64");
    bits = bits << 6 | value;
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xff);
  }
  return OkStatus();
}

Status ReadBert(const std::string& where, const json& step, TokenizerParts& parts) {
  bool clean = true, chinese = true, lower = true;
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "clean_text", clean));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "handle_chinese_chars", chinese));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "lowercase", lower));
  bool strip = lower;  // the default if it is null
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "strip_accents", strip));
  const uint32_t options = (clean ? bert::kClean : 0) | (chinese ? bert::kSpaceChinese : 0) |
                           (strip ? bert::kStripAccents : 0) | (lower ? bert::kLower : 0);
  parts.normalizers.push_back(MakeStep(NormalizeKind::kBert, options));
  return OkStatus();
}

Status ReadReplace(const std::string& where, const json& step, TokenizerParts& parts) {
  Pattern pattern;
  std::string content;
  WISP_RETURN_IF_ERROR(ReadPattern(where, step, pattern));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "content", content));
  if (pattern.regex && pattern.text != " {2,}") {
    return Unsupported(where, ": the Regex ", Shown(pattern.text),
                       " is not supported, supported are a String and the Regex ' {2,}'");
  }
  parts.normalizers.push_back(pattern.regex ? MakeStep(NormalizeKind::kReplaceSpaces, 0, "", content)
                                            : MakeStep(NormalizeKind::kReplace, 0, pattern.text, content));
  return OkStatus();
}

Status ReadOneNormalizer(const std::string& where, const std::string& type, const json& step, TokenizerParts& parts) {
  constexpr std::pair<const char*, Form> kForms[] = {
      {"NFC", Form::kNfc}, {"NFD", Form::kNfd}, {"NFKC", Form::kNfkc}, {"NFKD", Form::kNfkd}};
  auto& steps = parts.normalizers;
  for (const auto& [form_name, form] : kForms) {
    if (type == form_name)
      return steps.push_back(MakeStep(NormalizeKind::kForm, static_cast<uint32_t>(form))), OkStatus();
  }
  if (type == "BertNormalizer") return ReadBert(where, step, parts);
  if (type == "Replace") return ReadReplace(where, step, parts);
  if (type == "Lowercase") return steps.push_back(MakeStep(NormalizeKind::kLower)), OkStatus();
  if (type == "StripAccents") return steps.push_back(MakeStep(NormalizeKind::kStripAccents)), OkStatus();
  if (type == "Nmt") return steps.push_back(MakeStep(NormalizeKind::kNmt)), OkStatus();
  if (type == "Strip") {
    bool left = true, right = true;
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "strip_left", left));
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "strip_right", right));
    return steps.push_back(MakeStep(NormalizeKind::kStrip, (left ? 1u : 0) | (right ? 2u : 0))), OkStatus();
  }
  if (type == "Prepend") {
    std::string text;
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "prepend", text));
    return steps.push_back(MakeStep(NormalizeKind::kPrepend, 0, text)), OkStatus();
  }
  if (type == "Precompiled") {
    std::string base64;
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "precompiled_charsmap", base64));
    if (base64.empty()) return OkStatus();
    if (!parts.charsmap.empty()) return Unsupported(where, ": a second Precompiled is not supported, supported is one");
    WISP_RETURN_IF_ERROR(Decoded(where, base64, parts.charsmap));
    return steps.push_back(MakeStep(NormalizeKind::kCharsmap)), OkStatus();
  }
  return Unsupported(where, " has the type ", Shown(type),
                     ", supported are BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, "
                     "Replace, Sequence, Strip and StripAccents");
}

Status ReadByteLevel(const std::string& where, const json& step, bool last, TokenizerParts& parts) {
  bool prefix = true, pattern = true;
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "add_prefix_space", prefix));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "use_regex", pattern));
  if (!last || parts.model != schema::TokenModel::Bpe)
    return Unsupported(where, ": ByteLevel is supported as the last step before a BPE model alone");
  parts.options |= option::kByteLevel;
  if (prefix) parts.splitters.push_back(MakeStep(SplitKind::kPrefixSpace));
  if (pattern) parts.splitters.push_back(MakeStep(SplitKind::kGpt2));
  return OkStatus();
}

Status ReadMetaspace(const std::string& where, const json& step, TokenizerParts& parts) {
  std::string mark = "\xe2\x96\x81", scheme = "always";  // U+2581
  bool prefix = true, split = true;
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "replacement", mark));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "add_prefix_space", prefix));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "prepend_scheme", scheme));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "split", split));
  uint32_t options = split ? metaspace::kSplit : 0;
  if (scheme == "always" && prefix) {
    options |= metaspace::kAlways;
  } else if (scheme == "first" && prefix) {
    options |= metaspace::kFirst;
  } else if (scheme != "never") {
    return InvalidData(where, ": its prepend_scheme is ", Shown(scheme),
                       ", allowed are always, first and never; without add_prefix_space it must be never");
  }
  parts.splitters.push_back(MakeStep(SplitKind::kMetaspace, options, mark));
  return OkStatus();
}

Status ReadSplit(const std::string& where, const json& step, TokenizerParts& parts) {
  Pattern pattern;
  std::string behavior;
  bool invert = false;
  WISP_RETURN_IF_ERROR(ReadPattern(where, step, pattern));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "behavior", behavior));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "invert", invert));
  if (pattern.regex) {
    // These match all of the text, so nothing is left between matches, and inverting changes nothing.
    const bool fits = behavior == "Isolated" || (behavior == "Removed" && invert);
    constexpr std::pair<std::string_view, SplitKind> kPatterns[] = {
        {kGpt2Pattern, SplitKind::kGpt2}, {kLlama3Pattern, SplitKind::kLlama3}, {kQwen2Pattern, SplitKind::kQwen2}};
    for (const auto& [known, kind] : kPatterns) {
      if (pattern.text == known && fits) return parts.splitters.push_back(MakeStep(kind)), OkStatus();
    }
    return Unsupported(where, ": the Regex ", Shown(pattern.text), " with the behavior ", Shown(behavior),
                       " is not supported, supported are those of GPT-2, Llama 3 and Qwen 2 with Isolated");
  }
  constexpr std::pair<const char*, TextCut> kCuts[] = {{"Removed", TextCut::kRemoved},
                                                       {"Isolated", TextCut::kIsolated},
                                                       {"MergedWithPrevious", TextCut::kWithPrevious},
                                                       {"MergedWithNext", TextCut::kWithNext}};
  for (const auto& [known, cut] : kCuts) {
    if (behavior == known && !invert)
      return parts.splitters.push_back(MakeStep(SplitKind::kText, static_cast<uint32_t>(cut), pattern.text)),
             OkStatus();
  }
  return Unsupported(where, ": the behavior ", Shown(behavior), " of a Split, or an inverted one, is not supported, ",
                     "supported are Removed, Isolated, MergedWithPrevious and MergedWithNext");
}

Status ReadOneSplitter(const std::string& where, const std::string& type, const json& step, bool last,
                       TokenizerParts& parts) {
  auto& steps = parts.splitters;
  if (type == "ByteLevel") return ReadByteLevel(where, step, last, parts);
  if (type == "Metaspace") return ReadMetaspace(where, step, parts);
  if (type == "Split") return ReadSplit(where, step, parts);
  if (type == "BertPreTokenizer") return steps.push_back(MakeStep(SplitKind::kBert)), OkStatus();
  if (type == "Whitespace") return steps.push_back(MakeStep(SplitKind::kWhitespace)), OkStatus();
  if (type == "WhitespaceSplit") return steps.push_back(MakeStep(SplitKind::kWhitespaceOnly)), OkStatus();
  if (type == "Digits") {
    bool individual = false;
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "individual_digits", individual));
    return steps.push_back(MakeStep(SplitKind::kDigits, individual ? 1 : 0)), OkStatus();
  }
  if (type == "Punctuation") {
    std::string behavior = "Isolated";
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "behavior", behavior));
    if (behavior == "Isolated") return steps.push_back(MakeStep(SplitKind::kPunctuation)), OkStatus();
    return Unsupported(where, ": Punctuation with the behavior ", Shown(behavior),
                       " is not supported, supported is Isolated");
  }
  return Unsupported(where, " has the type ", Shown(type),
                     ", supported are BertPreTokenizer, ByteLevel, Digits, Metaspace, Punctuation, Sequence, Split, "
                     "Whitespace and WhitespaceSplit");
}

}  // namespace

Status ReadNormalizer(const std::string& name, const json& json, TokenizerParts& parts) {
  if (json.is_null()) return OkStatus();
  const std::string where = name + ": the normalizer";
  return ReadSequence(where, json, "normalizers", [&](const std::string& type, const auto& step, bool) {
    return ReadOneNormalizer(where, type, step, parts);
  });
}

Status ReadSplitter(const std::string& name, const json& json, TokenizerParts& parts) {
  if (json.is_null()) return OkStatus();
  const std::string where = name + ": the pre_tokenizer";
  return ReadSequence(where, json, "pretokenizers", [&](const std::string& type, const auto& step, bool last) {
    return ReadOneSplitter(where, type, step, last, parts);
  });
}

}  // namespace wisp::convert
