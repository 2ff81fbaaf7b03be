// Readers of events and labelled texts: every event that comes out has its place, and every refusal is a sentence.
#include <vector>

#include "runtime/data/labelled.h"
#include "runtime/data/readers.h"
#include "runtime/data/split.h"
#include "tests/fuzz/input.h"

namespace {

using namespace wisp;
using namespace wisp::data;

void RequireSound(const ReadResult& result) {
  const Sequences& s = result.sequences;
  fuzz::Require(s.num_users() == s.user_keys.size() && s.offsets.back() == s.items.size(),
                "users, offsets and items agree");
  for (size_t u = 0; u < s.num_users(); ++u) {
    fuzz::Require(KeyFault(s.user_keys[u]).empty(), "a user's key is a text");
    for (int32_t item : s.User(u))
      fuzz::Require(item >= 0 && static_cast<size_t>(item) < s.num_items(), "an item is one of the catalogue");
  }
  for (const std::string& key : s.item_keys) fuzz::Require(KeyFault(key).empty(), "an item's key is a text");
  for (const std::string& warning : Warnings(result.report)) fuzz::RequireSentence(warning);
}

void ReadEvents(uint8_t choice, uint8_t how, std::string_view text) {
  constexpr Format kFormats[] = {Format::kUserItem, Format::kRatingsDat, Format::kCsv, Format::kTsv, Format::kInter};
  static const std::vector<std::string> keys = {"1", "2", "a", "espresso"};
  static const Result<ItemIndex> index = ItemIndex::Make("model", keys);
  ReadOptions options;
  if (how & 1) options.known_items = &*index;
  if (how & 2) options.unknown_items = UnknownItems::kRefuse;
  if (how & 4) options.min_item_events = 2;
  if (how & 8) options.min_user_events = 2;
  if (how & 16) options.time = TimeSource::kFileOrder;
  if (how & 32) options.item_column = "name";
  const auto result = ReadText("memory", text, kFormats[choice % std::size(kFormats)], options);
  if (result.ok())
    RequireSound(*result);
  else
    fuzz::RequireSentence(result.status().message());
}

void ReadLabels(uint8_t choice, uint8_t how, std::string_view text) {
  constexpr LabelledFormat kFormats[] = {LabelledFormat::kAuto, LabelledFormat::kLines, LabelledFormat::kTsv,
                                         LabelledFormat::kCsv};
  LabelledOptions options{.format = kFormats[choice % std::size(kFormats)]};
  if (how & 1) options.text_column = "review";
  const auto texts = ParseLabelled(how & 2 ? "memory.csv" : "memory", text, options);
  if (!texts.ok()) return fuzz::RequireSentence(texts.status().message());
  fuzz::Require(texts->texts.size() == texts->labels.size() && texts->lines.size() == texts->texts.size(),
                "texts, labels and lines agree");
  const LetterCase letters = how & 4 ? LetterCase::kLower : LetterCase::kKeep;
  const auto vocabulary = Vocabulary::Create("memory", GetTokens(*texts, letters));
  if (!vocabulary.ok()) return fuzz::RequireSentence(vocabulary.status().message());
  const std::vector<std::string> classes = {"negative", "positive"};
  const auto encoded = Encode(
      *texts, *vocabulary, {.classes = classes, .letters = letters, .max_length = static_cast<uint32_t>(how >> 4) + 1});
  if (!encoded.ok()) return fuzz::RequireSentence(encoded.status().message());
  for (size_t i = 0; i < encoded->size(); ++i) {
    for (int32_t token : encoded->Record(i)) {
      fuzz::Require(token >= 0 && static_cast<size_t>(token) < vocabulary->tokens().size(),
                    "a token is one of the vocabulary");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte(), how = input.Byte();
  // Exactly these bytes, so that a read past them is noticed.
  const std::string_view rest = input.Rest();
  const std::vector<char> exact(rest.begin(), rest.end());
  const std::string_view text(exact.data(), exact.size());
  if (choice & 0x80)
    ReadLabels(choice & 0x7f, how, text);
  else
    ReadEvents(choice, how, text);
  return 0;
}
