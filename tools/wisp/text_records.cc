#include "tools/wisp/text_records.h"

#include <cstdio>

#include "runtime/core/text.h"
#include "runtime/text/texts.h"
#include "runtime/train/run/language.h"
#include "tools/convert/byte_tokenizer.h"
#include "tools/convert/tokenizer_json.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

void SayLeftOut(const data::TextSequences& s) {
  if (s.num_dropped > 0) SayTextsLeftOut(s.num_dropped, s.first_dropped);
  if (s.num_short > 0)
    std::fprintf(stderr, "wisp: %s left out, with one token or none: nothing follows it (local only)\n",
                 Counted(s.num_short, "text").c_str());
  if (s.num_cut > 0)
    std::fprintf(stderr, "wisp: the ends of %s left out: longer than what is read (local only)\n",
                 Counted(s.num_cut, "text").c_str());
}

}  // namespace

Result<TextRecords> ReadTextRecords(const std::string& path, const text::Tokenizer& tokenizer,
                                    const TextRecordOptions& options) {
  WISP_ASSIGN_OR_RETURN(const data::Texts texts,
                        data::ReadTexts(path, {.unit = options.unit, .private_run = options.private_run}));
  const TextEnd end = options.unit.kind == data::TextUnit::Kind::kChunk ? TextEnd::kOpen : TextEnd::kMarked;
  text::Scratch scratch;
  const auto tokenise = [&](std::string_view text, std::vector<int32_t>& ids) -> Result<data::Tokenised> {
    WISP_ASSIGN_OR_RETURN(const bool was_cut,
                          AppendRecord(tokenizer, text, end, size_t{options.max_length} + 1, &scratch, ids));
    return data::Tokenised{.was_cut = was_cut};
  };
  TextRecords out;
  WISP_ASSIGN_OR_RETURN(out.sequences, data::EncodeTexts(texts, tokenise, options.private_run));
  SayLeftOut(out.sequences);
  const std::vector<Record> all = ViewRecords(out.sequences);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_held_out = data::IsHeldOut(texts.texts[out.sequences.text[i]], options.hold_out_share);
    (is_held_out ? out.held_out : out.records).push_back(all[i]);
  }
  if (out.records.empty() && !options.private_run)
    return InvalidData(path, ": no text is left that has two tokens or more");
  return out;
}

Result<std::vector<std::byte>> TokenizerNamed(const std::string& name) {
  if (name == "bytes") return convert::ByteTokenizerImage();
  convert::TokenizerReport report;
  WISP_ASSIGN_OR_RETURN(std::vector<std::byte> image, convert::ReadTokenizerImage(name, &report));
  for (const std::string& note : report.notes) Warn(note);
  return image;
}

void WarnIfChunks(const privacy::RecordSpec& record) {
  if (!record.is_chunk()) return;
  std::fprintf(stderr,
               "wisp: one record is %s: that protects no person, as whoever wrote the text is in many chunks of it\n",
               record.InWords().c_str());
}

}  // namespace wisp::tools
