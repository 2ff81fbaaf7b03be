#include "runtime/inference/texts.h"

namespace wisp {

Result<text::Tokenizer> TokenizerOf(const ModelFile& file) {
  if (file.tokenizer().empty())
    return InvalidArgument(file.name(), ": it brings no tokenizer: texts cannot be given to it, ids of tokens can");
  WISP_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::Open(file.name(), file.tokenizer()));
  if (tokenizer.size() <= file.num_items()) return tokenizer;
  return InvalidData(file.name(), ": its tokenizer has ", tokenizer.size(), " tokens, the model has rows for ",
                     file.num_items());
}

}  // namespace wisp
