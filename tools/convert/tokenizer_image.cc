#include "tools/convert/tokenizer_image.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "runtime/text/tokenizers/decode.h"
#include "runtime/text/tokenizers/unicode.h"
#include "tools/convert/safetensors.h"
#include "tools/convert/trie_builder.h"

namespace wisp::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using Keys = std::vector<std::pair<std::string, int32_t>>;

// The texts of steps and added tokens, one after the other.
class Texts {
 public:
  schema::TextRange Put(const std::string& text) {
    const auto begin = static_cast<uint32_t>(bytes_.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return {begin, static_cast<uint32_t>(text.size())};
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

std::vector<schema::TextStep> StoredSteps(const std::vector<TokenizerStep>& steps, Texts& texts) {
  std::vector<schema::TextStep> stored;
  for (const TokenizerStep& step : steps) {
    const schema::TextRange a = texts.Put(step.a), b = texts.Put(step.b);
    stored.emplace_back(step.kind, step.options, a, b);
  }
  return stored;
}

// Builds an open-addressed table that is at most three quarters full.
std::vector<schema::TokenMerge> MergeTable(const std::vector<MergePart>& merges) {
  const size_t size = std::bit_ceil(merges.size() * 4 / 3 + 2);
  std::vector<schema::TokenMerge> table(size, schema::TokenMerge(0, 0, UINT32_MAX, 0));
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto left = static_cast<uint32_t>(merges[rank].left), right = static_cast<uint32_t>(merges[rank].right);
    size_t slot = text::MergeSlot(left, right, size);
    while (table[slot].rank() != UINT32_MAX && (table[slot].left() != left || table[slot].right() != right))
      slot = (slot + 1) & (size - 1);
    table[slot] =
        schema::TokenMerge(left, right, static_cast<uint32_t>(rank), static_cast<uint32_t>(merges[rank].result));
  }
  return table;
}

// Finds the bytes that the letters of a token stand for in a byte-level vocabulary. Returns false if the token has
// other letters.
bool LettersToBytes(std::string_view token, std::string& bytes) {
  bytes.clear();
  for (size_t at = 0; at < token.size();) {
    const text::Character c = text::CharacterAt(token, at);
    const int byte = text::LetterToByte(c.code);
    if (byte < 0) return false;
    bytes += static_cast<char>(byte);
    at += c.size;
  }
  return true;
}

class Writer {
 public:
  Writer(const std::string& name, const TokenizerParts& parts) : name_(name), parts_(parts) {}

  // `shown` is the decoded text of each added token, in the order of the parts; empty without added tokens.
  Result<std::vector<std::byte>> Run(const std::vector<std::string>& shown);

 private:
  bool Is(uint32_t option) const { return (parts_.options & option) != 0; }
  std::vector<schema::TrieUnit> ModelTrie() const;
  std::vector<int32_t> ByteIds() const;
  Status SplitCharsmap();
  Status Added(const std::vector<std::string>& shown);

  const std::string& name_;
  const TokenizerParts& parts_;
  Texts texts_;
  std::vector<uint32_t> charsmap_trie_;
  std::vector<uint8_t> charsmap_texts_;
  std::vector<schema::AddedToken> added_;
  std::vector<schema::TrieUnit> added_raw_, added_normal_;
};

std::vector<schema::TrieUnit> Writer::ModelTrie() const {
  const bool bytes = Is(text::option::kByteLevel);
  if (bytes && !Is(text::option::kIgnoreMerges)) return {};  // no step needs it
  Keys keys;
  std::string raw;
  for (size_t id = 0; id < parts_.num_model_tokens; ++id) {
    const std::string& token = parts_.tokens[id];
    if (token.empty() || (bytes && !LettersToBytes(token, raw))) continue;
    keys.emplace_back(bytes ? raw : token, static_cast<int32_t>(id));
  }
  return BuildTrie(std::move(keys));
}

std::vector<int32_t> Writer::ByteIds() const {
  const bool letters = Is(text::option::kByteLevel);
  if (!letters && !Is(text::option::kByteFallback)) return {};
  std::vector<int32_t> ids(256, -1);
  std::string raw;
  for (size_t id = 0; id < parts_.num_model_tokens; ++id) {
    const std::string& token = parts_.tokens[id];
    if (letters) {
      if (LettersToBytes(token, raw) && raw.size() == 1) ids[static_cast<uint8_t>(raw[0])] = static_cast<int32_t>(id);
      continue;
    }
    constexpr const char* kDigits = "0123456789ABCDEF";  // the model writes capital letters only
    const int byte = text::ParseFallbackByte(token);
    if (byte >= 0 && token[3] == kDigits[byte >> 4] && token[4] == kDigits[byte & 15])
      ids[static_cast<size_t>(byte)] = static_cast<int32_t>(id);
  }
  return ids;
}

// The charsmap consists of the size of its trie in bytes, the trie, and the texts.
Status Writer::SplitCharsmap() {
  const std::string& map = parts_.charsmap;
  if (map.empty()) return OkStatus();
  uint32_t size = 0;
  if (map.size() >= sizeof size) std::memcpy(&size, map.data(), sizeof size);
  if (size < sizeof size || size % sizeof size != 0 || size > map.size() - sizeof size - 1) {
    return InvalidData(name_, ": the precompiled_charsmap has ", map.size(), " bytes and a trie of ", size,
                       ", allowed is a trie of whole units with texts behind it");
  }
  charsmap_trie_.resize(size / sizeof size);
  std::memcpy(charsmap_trie_.data(), map.data() + sizeof size, size);
  charsmap_texts_.assign(map.begin() + sizeof size + size, map.end());
  if (charsmap_texts_.back() != 0) charsmap_texts_.push_back(0);
  return OkStatus();
}

Status Writer::Added(const std::vector<std::string>& shown) {
  if (shown.empty()) return OkStatus();
  std::vector<size_t> order(parts_.added.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return parts_.added[a].id < parts_.added[b].id; });
  Keys raw, normal;
  std::unordered_set<std::string> seen_raw, seen_normal;
  for (const size_t i : order) {
    const AddedPart& part = parts_.added[i];
    const bool normalised = (part.options & text::added::kNormalized) != 0;
    Keys& keys = normalised ? normal : raw;
    if (!(normalised ? seen_normal : seen_raw).insert(shown[i]).second)
      return Unsupported(name_, ": the added token ", Shown(part.content),
                         " is looked for as the same text as another, which is not supported");
    if (shown[i].empty())
      return Unsupported(name_, ": nothing is left of the added token ", Shown(part.content),
                         " once it is normalised, which is not supported");
    keys.emplace_back(shown[i], static_cast<int32_t>(added_.size()));
    added_.emplace_back(static_cast<uint32_t>(part.id), part.options, texts_.Put(shown[i]));
  }
  added_raw_ = BuildTrie(std::move(raw));
  added_normal_ = BuildTrie(std::move(normal));
  return OkStatus();
}

Result<std::vector<std::byte>> Writer::Run(const std::vector<std::string>& shown) {
  WISP_RETURN_IF_ERROR(SplitCharsmap());
  WISP_RETURN_IF_ERROR(Added(shown));
  std::vector<uint32_t> offsets = {0};
  std::vector<uint8_t> bytes;
  for (const std::string& token : parts_.tokens) {
    bytes.insert(bytes.end(), token.begin(), token.end());
    offsets.push_back(static_cast<uint32_t>(bytes.size()));
  }
  std::vector<double> scores = parts_.scores;
  // Ids above the model's own need no scores.
  if (!scores.empty()) scores.resize(parts_.tokens.size(), *std::max_element(scores.begin(), scores.end()));
  const schema::TextRange prefix = texts_.Put(parts_.continuing_prefix);
  const auto normalizers = StoredSteps(parts_.normalizers, texts_), splitters = StoredSteps(parts_.splitters, texts_),
             decoders = StoredSteps(parts_.decoders, texts_);
  const auto trie = ModelTrie();
  const bool bpe = parts_.model == schema::TokenModel::Bpe;
  const auto merges = bpe ? MergeTable(parts_.merges) : std::vector<schema::TokenMerge>();
  const auto byte_ids = ByteIds();

  FlatBufferBuilder builder;
  const auto all = schema::CreateTokenizer(
      builder, parts_.model, parts_.options, parts_.max_word_characters, &prefix, builder.CreateVector(offsets),
      builder.CreateVector(bytes), builder.CreateVectorOfStructs(trie), builder.CreateVectorOfStructs(merges),
      builder.CreateVector(scores), builder.CreateVector(byte_ids), builder.CreateVectorOfStructs(normalizers),
      builder.CreateVectorOfStructs(splitters), builder.CreateVectorOfStructs(decoders),
      builder.CreateVector(charsmap_trie_), builder.CreateVector(charsmap_texts_),
      builder.CreateVectorOfStructs(added_), builder.CreateVectorOfStructs(added_raw_),
      builder.CreateVectorOfStructs(added_normal_), builder.CreateVector(parts_.single),
      builder.CreateVector(parts_.pair), builder.CreateVector(texts_.bytes()), parts_.special.unk, parts_.special.bos,
      parts_.special.eos, parts_.special.pad, parts_.special.cls, parts_.special.sep, parts_.special.mask,
      parts_.other_ends.empty() ? 0 : builder.CreateVector(parts_.other_ends));
  schema::FinishTokenizerBuffer(builder, all);
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return std::vector<std::byte>(begin, begin + builder.GetSize());
}

}  // namespace

Result<std::vector<std::byte>> MakeImage(const std::string& name, const TokenizerParts& parts) {
  // The first image has no added tokens: its normaliser shows what each of them becomes in a normalised text.
  WISP_ASSIGN_OR_RETURN(std::vector<std::byte> image, Writer(name, parts).Run({}));
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer plain, text::Tokenizer::Open(name, image));
  if (parts.added.empty()) return image;
  TokenizerParts all = parts;
  std::vector<std::string> shown;
  std::unordered_set<std::string> special;
  for (const AddedPart& part : all.added) {
    if ((part.options & text::added::kSpecial) != 0) special.insert(part.content);
  }
  for (AddedPart& part : all.added) {
    std::string text = part.content;
    if ((part.options & text::added::kNormalized) != 0) WISP_RETURN_IF_ERROR(plain.NormalizeText(part.content, text));
    // The reference skips a token if its shown text is among the special ones.
    if (special.contains(text)) part.options |= text::added::kSkipped;
    shown.push_back(std::move(text));
  }
  WISP_ASSIGN_OR_RETURN(std::vector<std::byte> whole, Writer(name, all).Run(shown));
  WISP_RETURN_IF_ERROR(text::Tokenizer::Open(name, whole).status());
  return whole;
}

}  // namespace wisp::convert
