#include "runtime/text/texts.h"

#include <algorithm>

namespace wisp {

Result<text::Tokenizer> FindTokenizer(const ModelFile& file) {
  if (file.tokenizer().empty())
    return InvalidArgument(file.name(), ": it brings no tokenizer, so texts cannot be given to it");
  WISP_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::Open(file.name(), file.tokenizer()));
  if (tokenizer.size() <= file.num_items()) return tokenizer;
  return InvalidData(file.name(), ": its tokenizer has ", tokenizer.size(), " tokens, the model has rows for ",
                     file.num_items());
}

Result<bool> AppendText(const text::Tokenizer& tokenizer, std::string_view text, size_t most, text::Scratch* scratch,
                        std::vector<int32_t>& ids) {
  const size_t first = ids.size();
  WISP_ASSIGN_OR_RETURN(const bool was_cut, tokenizer.EncodeWithin(text, most, {.scratch = scratch}, ids));
  if (ids.size() == first) return InvalidData("a text has no token; allowed are 1 and more");
  return was_cut;
}

Status CheckTextRoom(const text::Tokenizer& tokenizer, const char* what, uint32_t max_length, uint32_t most) {
  std::vector<int32_t> around;
  WISP_RETURN_IF_ERROR(tokenizer.Encode("", {}, around));
  if (max_length > around.size() && max_length <= most) return OkStatus();
  return InvalidArgument(what, " is ", max_length, ", allowed are ", around.size() + 1, " to ", most);
}

Result<bool> AppendRecord(const text::Tokenizer& tokenizer, std::string_view text, TextEnd end, size_t most,
                          text::Scratch* scratch, std::vector<int32_t>& ids) {
  const size_t first = ids.size();
  const auto special = end == TextEnd::kMarked ? text::SpecialTokens::kAdd : text::SpecialTokens::kBefore;
  WISP_RETURN_IF_ERROR(tokenizer.Encode(text, {.special = special, .scratch = scratch}, ids));
  const int32_t mark = tokenizer.special_ids().eos;
  const bool is_marked = ids.size() > first + 1 && tokenizer.IsEnd(ids.back());
  if (end == TextEnd::kMarked && mark >= 0 && !is_marked) ids.push_back(mark);
  if (ids.size() - first <= most) return false;
  ids.resize(first + most);
  return true;
}

Result<size_t> BytesAskedFor(const text::Tokenizer& tokenizer, std::span<const int32_t> record) {
  if (record.empty()) return size_t{0};
  WISP_ASSIGN_OR_RETURN(const std::string all, tokenizer.Decode(record, {}));
  WISP_ASSIGN_OR_RETURN(const std::string first, tokenizer.Decode(record.first(1), {}));
  return all.size() - std::min(all.size(), first.size());
}

}  // namespace wisp
