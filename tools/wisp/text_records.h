// Texts as a decoder is trained and tested on them: read, made into tokens, a part of them held out.
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
#include "runtime/text/tokenizer.h"

namespace wisp::tools {

struct TextRecordOptions {
  data::TextUnit unit;
  uint32_t max_length = 0;    // positions that are read of each; 1 and above
  double hold_out_share = 0;  // of the texts
  bool private_run = false;   // what is malformed is left out and counted
};

struct TextRecords {
  data::TextSequences sequences;
  std::vector<Record> records, held_out;  // in the order of the file
};

// Says on standard error what was left out. kInvalidData: no text to train on, unless the run is private.
Result<TextRecords> ReadTextRecords(const std::string& path, const text::Tokenizer& tokenizer,
                                    const TextRecordOptions& options);

// The image of the tokenizer that --tokenizer or a recipe names: a tokenizer.json, a folder with one, or "bytes", whose
// tokens are the 256 bytes and one for the end of a text.
Result<std::vector<std::byte>> TokenizerNamed(const std::string& name);

// Says on standard error that a piece of a long text is no person's.
void SayIfChunks(const privacy::RecordSpec& record);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TEXT_RECORDS_H_
