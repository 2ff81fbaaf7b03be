#include "tools/convert/tokenizer_steps.h"

#include <utility>

#include "tools/convert/safetensors.h"
#include "tools/convert/tokenizer_step_parts.h"

namespace wisp::convert {

using nlohmann::json;
using namespace text;  // NOLINT(google-build-using-namespace): the kinds of steps

namespace {

Status ReadStripDecoder(const std::string& where, const json& step, TokenizerParts& parts) {
  constexpr uint32_t kMost = 0xffff;
  uint32_t start = 0, stop = 0;
  std::string content;
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "start", start));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "stop", stop));
  WISP_RETURN_IF_ERROR(ReadMember(where, step, "content", content));
  if (start > kMost || stop > kMost)
    return Unsupported(where, ": Strip takes ", start, " and ", stop, " characters, supported are up to ", kMost);
  parts.decoders.push_back(MakeStep(DecodeKind::kStrip, start | stop << 16, content));
  return OkStatus();
}

Status ReadOneDecoder(const std::string& where, const std::string& type, const json& step, TokenizerParts& parts) {
  auto& steps = parts.decoders;
  if (type == "ByteLevel") return steps.push_back(MakeStep(DecodeKind::kByteLevel)), OkStatus();
  if (type == "ByteFallback") return steps.push_back(MakeStep(DecodeKind::kByteFallback)), OkStatus();
  if (type == "Fuse") return steps.push_back(MakeStep(DecodeKind::kFuse)), OkStatus();
  if (type == "Strip") return ReadStripDecoder(where, step, parts);
  if (type == "WordPiece") {
    std::string prefix = "##";
    bool cleanup = true;
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "prefix", prefix));
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "cleanup", cleanup));
    return steps.push_back(MakeStep(DecodeKind::kWordPiece, cleanup ? 1 : 0, prefix)), OkStatus();
  }
  if (type == "Metaspace") {
    std::string mark = "\xe2\x96\x81", scheme = "always";
    bool prefix = true;
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "replacement", mark));
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "prepend_scheme", scheme));
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "add_prefix_space", prefix));
    return steps.push_back(MakeStep(DecodeKind::kMetaspace, scheme != "never" && prefix ? 1 : 0, mark)), OkStatus();
  }
  if (type == "Replace") {
    Pattern pattern;
    std::string content;
    WISP_RETURN_IF_ERROR(ReadPattern(where, step, pattern));
    WISP_RETURN_IF_ERROR(ReadMember(where, step, "content", content));
    if (pattern.regex) return Unsupported(where, ": Replace with a Regex is not supported, supported is a String");
    return steps.push_back(MakeStep(DecodeKind::kReplace, 0, pattern.text, content)), OkStatus();
  }
  return Unsupported(
      where, " has the type ", Shown(type),
      ", supported are ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip and WordPiece");
}

// Reads "sep" or "cls" of the older processors: [text, id].
Status ReadNamedId(const std::string& where, const json& step, const char* key, int32_t& id) {
  const json* pair = Member(step, key);
  if (pair == nullptr || !pair->is_array() || pair->size() != 2 || !(*pair)[1].is_number_unsigned() ||
      (*pair)[1].get<uint64_t>() >= kMaxTokens)
    return InvalidData(where, ": ", key, " is no pair of a text and an id, which alone is allowed");
  id = static_cast<int32_t>((*pair)[1].get<uint64_t>());
  return OkStatus();
}

Status ReadTemplateItem(const std::string& where, const json& item, const json* special, std::vector<int32_t>& items) {
  std::string id;
  if (const json* sequence = Member(item, "Sequence"); sequence != nullptr) {
    WISP_RETURN_IF_ERROR(ReadMember(where, *sequence, "id", id));
    if (id != "A" && id != "B")
      return InvalidData(where, ": a Sequence has the id ", Shown(id), ", allowed are A and B");
    return items.push_back(id == "A" ? -1 : -2), OkStatus();
  }
  const json* token = Member(item, "SpecialToken");
  if (token == nullptr) return InvalidData(where, ": an item is neither a Sequence nor a SpecialToken");
  WISP_RETURN_IF_ERROR(ReadMember(where, *token, "id", id));
  const json* found = special == nullptr ? nullptr : Member(*special, id.c_str());
  const json* ids = found == nullptr ? nullptr : Member(*found, "ids");
  if (ids == nullptr || !ids->is_array()) return InvalidData(where, ": its special_tokens have no ids for ", Shown(id));
  for (const json& one : *ids) {
    if (!one.is_number_unsigned() || one.get<uint64_t>() >= kMaxTokens)
      return InvalidData(where, ": an id of ", Shown(id), " is no whole number below ", kMaxTokens);
    items.push_back(static_cast<int32_t>(one.get<uint64_t>()));
  }
  return OkStatus();
}

Status ReadTemplate(const std::string& where, const json& step, const char* key, std::vector<int32_t>& items) {
  const json* list = Member(step, key);
  if (list == nullptr || !list->is_array()) return InvalidData(where, ": it has no list named ", key);
  for (const json& item : *list)
    WISP_RETURN_IF_ERROR(ReadTemplateItem(where, item, Member(step, "special_tokens"), items));
  return OkStatus();
}

Status ReadOneProcessor(const std::string& where, const std::string& type, const json& step, TokenizerParts& parts) {
  if (type == "ByteLevel") return OkStatus();  // it concerns offsets alone
  if (!parts.single.empty()) return Unsupported(where, ": a second template is not supported, supported is one");
  if (type == "TemplateProcessing") {
    WISP_RETURN_IF_ERROR(ReadTemplate(where, step, "single", parts.single));
    return ReadTemplate(where, step, "pair", parts.pair);
  }
  if (type != "BertProcessing" && type != "RobertaProcessing") {
    return Unsupported(where, " has the type ", Shown(type),
                       ", supported are BertProcessing, ByteLevel, RobertaProcessing, Sequence and TemplateProcessing");
  }
  int32_t cls = 0, sep = 0;
  WISP_RETURN_IF_ERROR(ReadNamedId(where, step, "cls", cls));
  WISP_RETURN_IF_ERROR(ReadNamedId(where, step, "sep", sep));
  parts.single = {cls, -1, sep};
  parts.pair = type == "BertProcessing" ? std::vector<int32_t>{cls, -1, sep, -2, sep}
                                        : std::vector<int32_t>{cls, -1, sep, sep, -2, sep};
  return OkStatus();
}

}  // namespace

Status ReadDecoder(const std::string& name, const json& json, TokenizerParts& parts) {
  if (json.is_null()) return OkStatus();
  const std::string where = name + ": the decoder";
  return ReadSequence(where, json, "decoders", [&](const std::string& type, const auto& step, bool) {
    return ReadOneDecoder(where, type, step, parts);
  });
}

Status ReadProcessor(const std::string& name, const json& json, TokenizerParts& parts) {
  if (json.is_null()) return OkStatus();
  const std::string where = name + ": the post_processor";
  return ReadSequence(where, json, "processors", [&](const std::string& type, const auto& step, bool) {
    return ReadOneProcessor(where, type, step, parts);
  });
}

}  // namespace wisp::convert
