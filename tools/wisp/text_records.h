// The texts on which a decoder is trained and tested: read, tokenised, and a part of them held out.
//
//   WISP_ASSIGN_OR_RETURN(const TextRecords texts, ReadTextRecords("notes.txt", tokenizer, {.max_length = 128}));
//   Train(texts.records);   // views into `texts`
#ifndef WISP_TOOLS_WISP_TEXT_RECORDS_H_
#define WISP_TOOLS_WISP_TEXT_RECORDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/data/texts.h"
#include "runtime/layers/record.h"
#include "runtime/privacy/ledger/record_spec.h"
#include "runtime/text/tokenizers/tokenizer.h"

namespace wisp::tools {

struct TextRecordOptions {
  data::TextUnit unit;
  uint32_t max_length = 0;    // positions that are read of each text; at least 1
  double hold_out_share = 0;  // share of the texts
  bool private_run = false;   // malformed texts are left out and counted
};

struct TextRecords {
  data::TextSequences sequences;
  std::vector<Record> records, held_out;  // in the order of the file
};

// Says on standard error how many texts were left out. Returns kInvalidData if no text is left to train on, unless the
// run is private.
Result<TextRecords> ReadTextRecords(const std::string& path, const text::Tokenizer& tokenizer,
                                    const TextRecordOptions& options);

// Returns the image of the tokenizer that --tokenizer or a recipe names: a tokenizer.json, a folder with one, or
// "bytes", whose tokens are the 256 bytes and an end of text.
Result<std::vector<std::byte>> TokenizerNamed(const std::string& name);

// Warns on standard error that a chunk of a long text does not stand for a person.
void WarnIfChunks(const privacy::RecordSpec& record);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TEXT_RECORDS_H_
