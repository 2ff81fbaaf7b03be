// Built for speed: every character of a text passes here.
#include "runtime/text/tokenizers/split.h"

#include <utility>

#include "runtime/text/tokenizers/patterns.h"
#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

void Add(size_t begin, size_t end, std::vector<Piece>& out) {
  if (begin < end) out.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
}

// How to treat a character when a piece is cut.
enum class Cut { kKeep, kAlone, kDrop };
template <typename FindCut>
void CutByCharacter(std::string_view text, const Piece& piece, std::vector<Piece>& out, const FindCut& cut) {
  const std::string_view inside = text.substr(0, piece.end);
  size_t begin = piece.begin;
  for (size_t at = piece.begin; at < piece.end;) {
    const Character c = CharacterAt(inside, at);
    const Cut how = cut(c.code);
    const size_t end = at + c.size;
    if (how != Cut::kKeep) {
      Add(begin, at, out);
      if (how == Cut::kAlone) Add(at, end, out);
      begin = end;
    }
    at = end;
  }
  Add(begin, piece.end, out);
}

void CutForBert(std::string_view text, const Piece& piece, std::vector<Piece>& out) {
  CutByCharacter(text, piece, out, [](uint32_t code) {
    const uint16_t flags = GetFlags(code);
    if (flags & unicode::kWhite) return Cut::kDrop;
    return flags & unicode::kPunctuation ? Cut::kAlone : Cut::kKeep;
  });
}

// Makes a piece of each run of characters with equal kind_of(code). Characters of kind -1 are left out.
template <typename GetKind>
void CutRuns(std::string_view text, const Piece& piece, std::vector<Piece>& out, const GetKind& kind_of) {
  const std::string_view inside = text.substr(0, piece.end);
  size_t begin = piece.begin;
  int last = -1;
  for (size_t at = piece.begin; at < piece.end;) {
    const Character c = CharacterAt(inside, at);
    const int kind = kind_of(c.code);
    if (kind != last) {
      if (last >= 0) Add(begin, at, out);
      begin = at;
      last = kind;
    }
    at += c.size;
  }
  if (last >= 0) Add(begin, piece.end, out);
}

template <typename FindEnd>
void CutByPattern(std::string_view text, const Piece& piece, std::vector<Piece>& out, const FindEnd& end_of) {
  const std::string_view inside = text.substr(piece.begin, piece.end - piece.begin);
  for (size_t at = 0; at < inside.size();) {
    const size_t end = end_of(inside, at);
    Add(piece.begin + at, piece.begin + end, out);
    at = end;
  }
}

// Cuts at each occurrence of a text, in the reference's four ways.
void CutAtText(std::string_view text, const Piece& piece, std::string_view mark, TextCut how, std::vector<Piece>& out) {
  const std::string_view inside = text.substr(0, piece.end);
  size_t begin = piece.begin;  // start of what has not been written yet
  bool last_was_mark = false;
  for (size_t at = piece.begin;;) {
    const size_t found = inside.find(mark, at);
    if (found == std::string_view::npos) break;
    const size_t end = found + mark.size();
    last_was_mark = found == at && last_was_mark;
    switch (how) {
      case TextCut::kRemoved:
        Add(begin, found, out);
        begin = end;
        break;
      case TextCut::kIsolated:
        Add(begin, found, out);
        Add(found, end, out);
        begin = end;
        break;
      case TextCut::kWithPrevious:  // each further mark in a row stands alone
        if (last_was_mark) Add(begin, found, out);
        Add(last_was_mark ? found : begin, end, out);
        begin = end;
        break;
      case TextCut::kWithNext:  // each mark begins a piece
        Add(begin, found, out);
        begin = found;
        break;
    }
    last_was_mark = true;
    at = end;
  }
  Add(begin, piece.end, out);
}

void CutPiece(const Step& step, std::string_view text, const Piece& piece, std::vector<Piece>& out) {
  switch (static_cast<SplitKind>(step.kind)) {
    case SplitKind::kBert:
      return CutForBert(text, piece, out);
    case SplitKind::kGpt2:
      return CutByPattern(text, piece, out, Gpt2End);
    case SplitKind::kLlama3:
      return CutByPattern(text, piece, out, [](std::string_view in, size_t at) { return Llama3End(in, at, 3); });
    case SplitKind::kQwen2:
      return CutByPattern(text, piece, out, [](std::string_view in, size_t at) { return Llama3End(in, at, 1); });
    case SplitKind::kWhitespace:
      return CutRuns(text, piece, out, [](uint32_t code) {
        const uint16_t flags = GetFlags(code);
        if (flags & unicode::kWord) return 1;
        return flags & unicode::kWhite ? -1 : 0;
      });
    case SplitKind::kWhitespaceOnly:
      return CutByCharacter(text, piece, out,
                            [](uint32_t code) { return Has(code, unicode::kWhite) ? Cut::kDrop : Cut::kKeep; });
    case SplitKind::kPunctuation:
      return CutByCharacter(text, piece, out,
                            [](uint32_t code) { return Has(code, unicode::kPunctuation) ? Cut::kAlone : Cut::kKeep; });
    case SplitKind::kDigits:
      if (step.options == 0)
        return CutRuns(text, piece, out, [](uint32_t code) { return Has(code, unicode::kNumeric) ? 1 : 0; });
      return CutByCharacter(text, piece, out,
                            [](uint32_t code) { return Has(code, unicode::kNumeric) ? Cut::kAlone : Cut::kKeep; });
    case SplitKind::kText:
      return CutAtText(text, piece, step.a, static_cast<TextCut>(step.options), out);
    case SplitKind::kPrefixSpace:
    case SplitKind::kMetaspace:
      break;  // Rewrite does these
  }
}

// Applies a step that changes a piece's text and may cut it. Writes to pieces.next_text.
void Rewrite(const Step& step, std::string_view text, const Piece& piece, bool first, Pieces& pieces) {
  const std::string_view inside = text.substr(piece.begin, piece.end - piece.begin);
  const size_t begin = pieces.next_text.size();
  if (static_cast<SplitKind>(step.kind) == SplitKind::kPrefixSpace) {
    if (inside[0] != ' ') pieces.next_text += ' ';
    pieces.next_text += inside;
    return Add(begin, pieces.next_text.size(), pieces.next);
  }
  const bool begins = inside[0] == ' ' || inside.substr(0, step.a.size()) == step.a;
  const bool wanted = (step.options & metaspace::kAlways) != 0 || ((step.options & metaspace::kFirst) != 0 && first);
  if (wanted && !begins) pieces.next_text += step.a;
  for (const char c : inside) {
    if (c == ' ') {
      pieces.next_text += step.a;
    } else {
      pieces.next_text += c;
    }
  }
  const Piece whole{static_cast<uint32_t>(begin), static_cast<uint32_t>(pieces.next_text.size())};
  if ((step.options & metaspace::kSplit) == 0) return Add(whole.begin, whole.end, pieces.next);
  CutAtText(pieces.next_text, whole, step.a, TextCut::kWithNext, pieces.next);
}

}  // namespace

Status Split(const Image& image, bool at_start, Pieces& pieces) {
  constexpr size_t kMost = size_t{1} << 30;
  pieces.all.clear();
  Add(0, pieces.text.size(), pieces.all);
  bool first_kept = at_start;  // true while the first piece begins where the text begins
  for (const Step& step : image.splitters) {
    const auto kind = static_cast<SplitKind>(step.kind);
    const bool rewrites = kind == SplitKind::kPrefixSpace || kind == SplitKind::kMetaspace;
    pieces.next.clear();
    if (rewrites) {
      pieces.next_text.clear();
      for (size_t i = 0; i < pieces.all.size(); ++i)
        Rewrite(step, pieces.text, pieces.all[i], first_kept && i == 0, pieces);
      if (pieces.next_text.size() > kMost) return InvalidArgument("a text becomes longer than ", kMost, " bytes");
      std::swap(pieces.text, pieces.next_text);
    } else {
      for (const Piece& piece : pieces.all) CutPiece(step, pieces.text, piece, pieces.next);
      if (pieces.next.empty() || pieces.next[0].begin != 0) first_kept = false;
    }
    std::swap(pieces.all, pieces.next);
  }
  return OkStatus();
}

}  // namespace wisp::text
