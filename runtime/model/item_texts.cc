#include "runtime/model/item_texts.h"

namespace wisp {
namespace {

using GetText = std::string_view (ModelFile::*)(size_t) const;

std::vector<std::string> Copied(const ModelFile& file, GetText text) {
  std::vector<std::string> texts;
  texts.reserve(file.num_items());
  for (size_t i = 0; i < file.num_items(); ++i) texts.emplace_back((file.*text)(i));
  return texts;
}

// Bytes of a vector of strings that is allocated in one step.
size_t CountTextBytes(const ModelFile& file, GetText text) {
  size_t bytes = file.num_items() * sizeof(std::string);
  for (size_t i = 0; i < file.num_items(); ++i) {
    const size_t length = (file.*text)(i).size();
    if (length > std::string().capacity()) bytes += length + 1;
  }
  return bytes;
}

}  // namespace

ItemTexts CopyItemTexts(const ModelFile& file) {
  ItemTexts texts;
  if (file.has_item_keys()) texts.keys = Copied(file, &ModelFile::item_key);
  if (file.has_item_names()) texts.names = Copied(file, &ModelFile::item_name);
  return texts;
}

size_t PlanItemTexts(const ModelFile& file) {
  return (file.has_item_keys() ? CountTextBytes(file, &ModelFile::item_key) : 0) +
         (file.has_item_names() ? CountTextBytes(file, &ModelFile::item_name) : 0);
}

}  // namespace wisp
