#include "runtime/text/tokenizers/image.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "runtime/text/tokenizers/normal_form.h"
#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

constexpr size_t kAlignment = 8;  // alignment of the scores
constexpr int kMaxDepth = 8, kMaxTables = 4;

template <typename T>
std::span<const T> MakeSpan(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? std::span<const T>() : std::span<const T>(vector->data(), vector->size());
}
template <typename T>
std::span<const T> MakeSpan(const flatbuffers::Vector<const T*>* vector) {
  return vector == nullptr ? std::span<const T>()
                           : std::span<const T>(reinterpret_cast<const T*>(vector->Data()), vector->size());
}
std::string_view GetText(const flatbuffers::Vector<uint8_t>* vector) {
  return vector == nullptr ? std::string_view()
                           : std::string_view(reinterpret_cast<const char*>(vector->data()), vector->size());
}

// Reads and checks the parts of one image. Every message begins with `name`.
class Checker {
 public:
  Checker(std::string_view name, const schema::Tokenizer& stored, Image& image)
      : name_(name), stored_(stored), image_(image) {}

  Status Run() {
    WISP_RETURN_IF_ERROR(Tokens());
    WISP_RETURN_IF_ERROR(Texts());
    WISP_RETURN_IF_ERROR(Model());
    WISP_RETURN_IF_ERROR(Charsmap());
    WISP_RETURN_IF_ERROR(Added());
    WISP_RETURN_IF_ERROR(Steps(stored_.normalizers(), "normaliser", image_.normalizers));
    WISP_RETURN_IF_ERROR(Steps(stored_.splitters(), "splitter", image_.splitters));
    WISP_RETURN_IF_ERROR(Steps(stored_.decoders(), "decoder", image_.decoders));
    WISP_RETURN_IF_ERROR(CheckNormalizers());
    WISP_RETURN_IF_ERROR(CheckSplitters());
    WISP_RETURN_IF_ERROR(CheckDecoders());
    return Specials();
  }

 private:
  template <typename... P>
  Status Fault(const P&... parts) const {
    return InvalidData(name_, ": ", parts...);
  }
  size_t num_tokens() const { return image_.num_tokens(); }
  bool IsToken(int64_t id) const { return id >= 0 && id < static_cast<int64_t>(num_tokens()); }

  Status Tokens() {
    image_.token_offsets = MakeSpan(stored_.token_offsets());
    image_.token_bytes = GetText(stored_.token_bytes());
    const auto offsets = image_.token_offsets;
    if (offsets.size() < 2 || offsets.size() > kMaxTokens + 1) {
      return Fault("there are ", offsets.size(), " offsets of tokens, allowed are 2 to ", kMaxTokens + 1);
    }
    if (offsets.front() != 0 || offsets.back() != image_.token_bytes.size() ||
        !std::is_sorted(offsets.begin(), offsets.end())) {
      return Fault("the offsets of tokens must rise from 0 to ", image_.token_bytes.size(),
                   ", the bytes of all tokens");
    }
    for (size_t id = 0; id < num_tokens(); ++id) {
      if (!IsUtf8(image_.Token(id))) return Fault("token ", id, " is not UTF-8");
    }
    return OkStatus();
  }

  Status Texts() {
    image_.texts = GetText(stored_.texts());
    return OkStatus();
  }

  Result<std::string_view> TextAt(const schema::TextRange& range, size_t most) const {
    const uint64_t end = uint64_t{range.begin()} + range.size();
    if (end > image_.texts.size() || range.size() > most) {
      return Fault("a text has ", range.size(), " bytes from byte ", range.begin(), " on, allowed are ", most,
                   " within the ", image_.texts.size(), " bytes of texts");
    }
    const std::string_view text = image_.texts.substr(range.begin(), range.size());
    if (!IsUtf8(text)) return Fault("the text at byte ", range.begin(), " of the texts is not UTF-8");
    return text;
  }

  // Every value in the trie must be below `limit`.
  Status CheckTrie(const Trie& trie, size_t limit, const char* what) const {
    const auto units = trie.units();
    for (size_t i = 0; i < units.size(); ++i) {
      const auto parent = static_cast<uint32_t>(units[i].check());
      const bool leaf = parent < units.size() && static_cast<uint32_t>(units[parent].base()) == i;
      if (leaf && (units[i].base() < 0 || static_cast<size_t>(units[i].base()) >= limit)) {
        return Fault("the trie of ", what, " has the value ", units[i].base(), ", allowed is 0 to ", limit - 1);
      }
    }
    return OkStatus();
  }

  Status Model() {
    image_.model = stored_.model();
    image_.options = stored_.options();
    image_.trie = Trie(MakeSpan(stored_.trie()));
    image_.unk = stored_.unk();
    if (image_.options & ~option::kAll) {
      return Unsupported(name_, ": the options are ", image_.options, ", this build knows up to ", option::kAll);
    }
    WISP_RETURN_IF_ERROR(CheckTrie(image_.trie, num_tokens(), "tokens"));
    WISP_RETURN_IF_ERROR(ByteIds());
    switch (image_.model) {
      case schema::TokenModel::WordPiece:
        return WordPiece();
      case schema::TokenModel::Bpe:
        return Merges();
      case schema::TokenModel::Unigram:
        return Scores();
      default:
        break;
    }
    return Unsupported(name_, ": the model has kind ", static_cast<int>(image_.model),
                       ", allowed are 1 (WordPiece), 2 (BPE) and 3 (Unigram)");
  }

  Status ByteIds() {
    image_.byte_ids = MakeSpan(stored_.byte_ids());
    const bool needed = image_.Is(option::kByteLevel) || image_.Is(option::kByteFallback);
    if (image_.byte_ids.size() != (needed ? 256 : 0)) {
      return Fault("there are ", image_.byte_ids.size(), " tokens of bytes, allowed are ", needed ? 256 : 0);
    }
    for (const int32_t id : image_.byte_ids) {
      if (id != -1 && !IsToken(id)) return Fault("a byte has the token ", id, ", there are ", num_tokens());
    }
    return OkStatus();
  }

  Status WordPiece() {
    if (image_.trie.empty() || !IsToken(image_.unk))
      return Fault("a WordPiece model needs a trie and an unknown token");
    image_.max_word_characters = stored_.max_word_characters();
    std::string_view prefix;
    if (stored_.continuing_prefix() != nullptr) {
      WISP_ASSIGN_OR_RETURN(prefix, TextAt(*stored_.continuing_prefix(), kMaxStepText));
    }
    image_.continuing_node = image_.trie.Walk(Trie::kRoot, prefix);
    return OkStatus();
  }

  Status Merges() {
    image_.merges = MakeSpan(stored_.merges());
    if (!image_.Is(option::kByteLevel) && image_.trie.empty()) return Fault("a BPE model needs a trie or bytes");
    if (!std::has_single_bit(image_.merges.size())) {
      return Fault("the table of merges has ", image_.merges.size(), " entries, allowed are powers of two");
    }
    size_t empty = 0;
    for (const schema::TokenMerge& merge : image_.merges) {
      if (merge.rank() == UINT32_MAX) {
        ++empty;
      } else if (!IsToken(merge.left()) || !IsToken(merge.right()) || !IsToken(merge.result())) {
        return Fault("a merge makes token ", merge.result(), " of ", merge.left(), " and ", merge.right(),
                     ", allowed is 0 to ", num_tokens() - 1);
      }
    }
    if (empty == 0) return Fault("the table of merges is full; at least one entry must be empty");
    return OkStatus();
  }

  Status Scores() {
    if (image_.trie.empty() || !IsToken(image_.unk)) return Fault("a Unigram model needs a trie and an unknown token");
    image_.scores = MakeSpan(stored_.scores());
    if (image_.scores.size() != num_tokens() || reinterpret_cast<uintptr_t>(image_.scores.data()) % kAlignment != 0) {
      return Fault("there are ", image_.scores.size(), " scores, allowed are ", num_tokens(), " on ", kAlignment,
                   " bytes");
    }
    // The reference scores unknown text 10 below the lowest score of the model's tokens. Ids above those have score 0.
    constexpr double kUnknownPenalty = 10;
    double lowest = 0;
    bool any = false;
    for (size_t id = 0; id < num_tokens(); ++id) {
      if (!std::isfinite(image_.scores[id])) return Fault("the score of token ", id, " is not finite");
      if (image_.scores[id] < lowest || !any) lowest = image_.scores[id];
      any = true;
    }
    image_.unknown_score = lowest - kUnknownPenalty;
    return OkStatus();
  }

  Status Charsmap() {
    image_.charsmap_trie = MakeSpan(stored_.charsmap_trie());
    image_.charsmap_texts = GetText(stored_.charsmap_texts());
    if (image_.charsmap_trie.empty() != image_.charsmap_texts.empty())
      return Fault("a charsmap needs both a trie and texts");
    if (image_.charsmap_texts.empty()) return OkStatus();
    if (image_.charsmap_texts.back() != 0) return Fault("the texts of the charsmap must end with a 0");
    if (!IsUtf8(image_.charsmap_texts)) return Fault("the texts of the charsmap are not UTF-8");
    size_t begin = 0;
    for (size_t i = 0; i < image_.charsmap_texts.size(); ++i) {
      if (image_.charsmap_texts[i] != 0) continue;
      if (i - begin > kMaxCharsmapText)
        return Fault("a text of the charsmap has ", i - begin, " bytes, allowed are ", kMaxCharsmapText);
      begin = i + 1;
    }
    return OkStatus();
  }

  Status Added() {
    image_.added = MakeSpan(stored_.added());
    if (image_.added.size() > kMaxAdded)
      return Fault("there are ", image_.added.size(), " added tokens, allowed are ", kMaxAdded);
    int64_t last = -1;
    for (const schema::AddedToken& token : image_.added) {
      if (!IsToken(token.id()) || token.id() <= last)
        return Fault("added token ", token.id(), " is out of order or no token");
      last = token.id();
      if (token.options() & ~added::kAll)
        return Unsupported(name_, ": added token ", token.id(), " has the options ", token.options(),
                           ", this build knows up to ", added::kAll);
      WISP_RETURN_IF_ERROR(TextAt(token.shown(), image_.texts.size()).status());
    }
    image_.added_raw = Trie(MakeSpan(stored_.added_raw()));
    image_.added_normal = Trie(MakeSpan(stored_.added_normal()));
    WISP_RETURN_IF_ERROR(CheckTrie(image_.added_raw, image_.added.size(), "added tokens"));
    return CheckTrie(image_.added_normal, image_.added.size(), "normalised added tokens");
  }

  Status Steps(const flatbuffers::Vector<const schema::TextStep*>* stored, const char* what, std::vector<Step>& steps) {
    const auto all = MakeSpan(stored);
    if (all.size() > kMaxSteps)
      return Fault("there are ", all.size(), " steps of a ", what, ", allowed are ", kMaxSteps);
    for (const schema::TextStep& s : all) {
      WISP_ASSIGN_OR_RETURN(const std::string_view a, TextAt(s.a(), kMaxStepText));
      WISP_ASSIGN_OR_RETURN(const std::string_view b, TextAt(s.b(), kMaxStepText));
      steps.push_back({.kind = s.kind(), .options = s.options(), .a = a, .b = b});
    }
    return OkStatus();
  }

  Status CheckStep(const char* what, const Step& step, uint32_t last_kind, uint32_t last_option, bool needs_a) const {
    if (step.kind == 0 || step.kind > last_kind) {
      return Unsupported(name_, ": a ", what, " has kind ", step.kind, ", this build knows 1 to ", last_kind);
    }
    if (step.options > last_option) {
      return Unsupported(name_, ": a ", what, " of kind ", step.kind, " has the options ", step.options,
                         ", allowed is up to ", last_option);
    }
    if (needs_a && step.a.empty()) return Fault("a ", what, " of kind ", step.kind, " needs a text");
    return OkStatus();
  }

  Status CheckNormalizers() const {
    for (const Step& step : image_.normalizers) {
      const auto kind = static_cast<NormalizeKind>(step.kind);
      uint32_t options = 0;
      if (kind == NormalizeKind::kBert) options = 15;
      if (kind == NormalizeKind::kForm || kind == NormalizeKind::kStrip) options = 3;
      WISP_RETURN_IF_ERROR(CheckStep("normaliser", step, static_cast<uint32_t>(NormalizeKind::kNmt), options,
                                     kind == NormalizeKind::kReplace));
      if (kind == NormalizeKind::kCharsmap && image_.charsmap_trie.empty())
        return Fault("a normaliser needs a charsmap, which the image lacks");
    }
    return OkStatus();
  }

  Status CheckSplitters() const {
    for (const Step& step : image_.splitters) {
      const auto kind = static_cast<SplitKind>(step.kind);
      uint32_t options = 0;
      if (kind == SplitKind::kMetaspace) options = 7;
      if (kind == SplitKind::kDigits) options = 1;
      if (kind == SplitKind::kText) options = 3;
      WISP_RETURN_IF_ERROR(CheckStep("splitter", step, static_cast<uint32_t>(SplitKind::kText), options,
                                     kind == SplitKind::kMetaspace || kind == SplitKind::kText));
      if (kind == SplitKind::kMetaspace && (step.a == " " || CharacterAt(step.a, 0).size != step.a.size()))
        return Fault("a metaspace must be one character other than a space");
    }
    return OkStatus();
  }

  Status CheckDecoders() const {
    for (const Step& step : image_.decoders) {
      const auto kind = static_cast<DecodeKind>(step.kind);
      uint32_t options = 0;
      if (kind == DecodeKind::kWordPiece || kind == DecodeKind::kMetaspace) options = 1;
      if (kind == DecodeKind::kStrip) options = UINT32_MAX;
      const bool text = kind == DecodeKind::kMetaspace || kind == DecodeKind::kReplace || kind == DecodeKind::kStrip;
      WISP_RETURN_IF_ERROR(CheckStep("decoder", step, static_cast<uint32_t>(DecodeKind::kStrip), options, text));
    }
    return OkStatus();
  }

  Status CheckTemplate(std::span<const int32_t> items, int32_t lowest) const {
    if (items.size() > kMaxTemplate)
      return Fault("a template has ", items.size(), " items, allowed are ", kMaxTemplate);
    for (const int32_t item : items) {
      if (item < lowest || (item >= 0 && !IsToken(item)))
        return Fault("a template has the item ", item, ", allowed is ", lowest, " to ", num_tokens() - 1);
    }
    return OkStatus();
  }

  Status Specials() {
    image_.single = MakeSpan(stored_.single());
    image_.pair = MakeSpan(stored_.pair());
    WISP_RETURN_IF_ERROR(CheckTemplate(image_.single, -1));
    WISP_RETURN_IF_ERROR(CheckTemplate(image_.pair, -2));
    image_.bos = stored_.bos();
    image_.eos = stored_.eos();
    image_.pad = stored_.pad();
    image_.cls = stored_.cls();
    image_.sep = stored_.sep();
    image_.mask = stored_.mask();
    image_.ends = MakeSpan(stored_.ends());
    if (image_.ends.size() > kMaxEnds) return Fault(image_.ends.size(), " tokens end a text, allowed are ", kMaxEnds);
    for (const int32_t id : image_.ends) {
      if (!IsToken(id)) return Fault("a token that ends texts has the id ", id, ", allowed is 0 to ", num_tokens() - 1);
    }
    for (const int32_t id : {image_.unk, image_.bos, image_.eos, image_.pad, image_.cls, image_.sep, image_.mask}) {
      if (id != -1 && !IsToken(id))
        return Fault("a special token has the id ", id, ", allowed is 0 to ", num_tokens() - 1, ", or -1 for none");
    }
    return OkStatus();
  }

  std::string_view name_;
  const schema::Tokenizer& stored_;
  Image& image_;
};

}  // namespace

Result<Image> Image::Open(std::string_view name, std::span<const std::byte> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0) {
    return InvalidArgument(name, ": the image of a tokenizer must start on ", kAlignment, " bytes");
  }
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), kMaxDepth, kMaxTables);
  if (bytes.size() < 16 || !schema::VerifyTokenizerBuffer(verifier)) {
    return InvalidData(name, ": this is no image of a tokenizer, or it is damaged");
  }
  Image image;
  WISP_RETURN_IF_ERROR(
      Checker(name, *schema::GetTokenizer(reinterpret_cast<const uint8_t*>(bytes.data())), image).Run());
  return image;
}

const schema::AddedToken* Image::AddedWith(uint32_t id) const {
  const auto found =
      std::lower_bound(added.begin(), added.end(), id,
                       [](const schema::AddedToken& token, uint32_t wanted) { return token.id() < wanted; });
  return found != added.end() && found->id() == id ? &*found : nullptr;
}

}  // namespace wisp::text
