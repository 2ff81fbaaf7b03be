// Built for speed: every text that is encoded goes through here.
#include "runtime/text/tokenizers/normalize.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/text/tokenizers/normal_form.h"
#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

bool IsChinese(uint32_t c) {  // the ranges that BERT uses
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

// BERT's normaliser in one pass. Only runs that begin with a non-ASCII character go through `codes_`, up to the next
// ASCII character. Marks are reordered between two bases, and every ASCII character is a base.
class Bert {
 public:
  Bert(uint32_t options, std::string& out) : options_(options), out_(out) {
    for (uint32_t c = 0; c < 128; ++c) {
      ascii_[c] = static_cast<char>(c);
      removed_[c] = On(bert::kClean) && Has(c, unicode::kRemoved);
      if (On(bert::kClean) && Has(c, unicode::kWhite)) ascii_[c] = ' ';
      if (On(bert::kLower) && c >= 'A' && c <= 'Z') ascii_[c] = static_cast<char>(c + 0x20);
    }
  }

  void Run(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const auto byte = static_cast<uint8_t>(text[at]);
      if (byte < 0x80) {
        ++at;
        if (removed_[byte]) continue;
        if (!codes_.empty()) Flush();
        out_ += ascii_[byte];
        continue;
      }
      const Character c = CharacterAt(text, at);
      at += c.size;
      Add(c.code);
    }
    Flush();
  }

 private:
  bool On(uint32_t option) const { return (options_ & option) != 0; }

  void Add(uint32_t code) {
    if (On(bert::kClean)) {
      const uint16_t flags = GetFlags(code);
      if (flags & unicode::kRemoved) return;
      if (flags & unicode::kWhite) code = ' ';
    }
    const bool spaced = On(bert::kSpaceChinese) && IsChinese(code);
    if (spaced) codes_.push_back(' ');
    if (On(bert::kStripAccents)) {
      AppendDecomposed(code, false, codes_);
    } else {
      codes_.push_back(code);
    }
    if (spaced) codes_.push_back(' ');
  }

  void Flush() {
    if (On(bert::kStripAccents)) OrderMarks(codes_);
    for (const uint32_t code : codes_) {
      if (On(bert::kStripAccents) && Has(code, unicode::kNonspacing)) continue;
      if (On(bert::kLower)) {
        AppendLower(code, out_);
      } else {
        Append(code, out_);
      }
    }
    codes_.clear();
  }

  uint32_t options_;
  std::string& out_;
  std::array<char, 128> ascii_;
  std::array<bool, 128> removed_;
  std::vector<uint32_t> codes_;
};

// The reference's Nmt step: removes control characters and replaces space-like characters by a space.
void AppendNmt(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    const Character c = CharacterAt(text, at);
    at += c.size;
    const uint32_t k = c.code;
    if ((k >= 1 && k <= 8) || k == 0xb || (k >= 0xe && k <= 0x1f) || k == 0x7f || k == 0x8f || k == 0x9f) continue;
    const bool space = k == 9 || k == 0xa || k == 0xc || k == 0xd || k == 0x1680 || (k >= 0x200b && k <= 0x200f) ||
                       k == 0x2028 || k == 0x2029 || k == 0x2581 || k == 0xfeff || k == 0xfffd;
    Append(space ? ' ' : k, out);
  }
}

void AppendReplaced(std::string_view text, std::string_view from, std::string_view to, std::string& out) {
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return;
    out += to;
    at = found + from.size();
  }
}

// Replaces matches of the pattern " {2,}".
void AppendReplacedSpaces(std::string_view text, std::string_view to, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && text[end] == ' ') ++end;
    if (end - at >= 2) {
      out += to;
      at = end;
    } else {
      out += text[at++];
    }
  }
}

void AppendStripped(std::string_view text, uint32_t options, std::string& out) {
  size_t begin = 0, end = text.size();
  while ((options & 1) != 0 && begin < end) {
    const Character c = CharacterAt(text, begin);
    if (!Has(c.code, unicode::kWhite)) break;
    begin += c.size;
  }
  while ((options & 2) != 0 && begin < end) {
    const size_t last = Before(text, end);
    if (!Has(CharacterAt(text, last).code, unicode::kWhite)) break;
    end = last;
  }
  out += text.substr(begin, end - begin);
}

void AppendStep(const Image& image, const Step& step, std::string_view text, std::string& out) {
  switch (static_cast<NormalizeKind>(step.kind)) {
    case NormalizeKind::kBert:
      return Bert(step.options, out).Run(text);
    case NormalizeKind::kForm:
      return AppendNormalForm(static_cast<Form>(step.options), text, out);
    case NormalizeKind::kStrip:
      return AppendStripped(text, step.options, out);
    case NormalizeKind::kReplace:
      return AppendReplaced(text, step.a, step.b, out);
    case NormalizeKind::kReplaceSpaces:
      return AppendReplacedSpaces(text, step.b, out);
    case NormalizeKind::kCharsmap:
      return AppendCharsmapped(image, text, out);
    case NormalizeKind::kNmt:
      return AppendNmt(text, out);
    case NormalizeKind::kPrepend:
      if (!text.empty()) out += step.a;
      out += text;
      return;
    case NormalizeKind::kLower:
    case NormalizeKind::kStripAccents:
      break;
  }
  const bool lower = static_cast<NormalizeKind>(step.kind) == NormalizeKind::kLower;
  for (size_t at = 0; at < text.size();) {
    const Character c = CharacterAt(text, at);
    at += c.size;
    if (lower) {
      AppendLower(c.code, out);
    } else if (!Has(c.code, unicode::kMark)) {
      Append(c.code, out);
    }
  }
}

// True if the step removes the first character of `text`, counted as the reference counts.
bool CutsFront(const Step& step, std::string_view text) {
  const Character c = CharacterAt(text, 0);
  const uint32_t k = c.code;
  switch (static_cast<NormalizeKind>(step.kind)) {
    case NormalizeKind::kBert:
      return (step.options & bert::kClean && Has(k, unicode::kRemoved)) ||
             (step.options & bert::kStripAccents && Has(k, unicode::kNonspacing));
    case NormalizeKind::kStripAccents:
      return Has(k, unicode::kMark);
    case NormalizeKind::kStrip:
      return (step.options & 1) != 0 && Has(k, unicode::kWhite);
    case NormalizeKind::kNmt:
      return (k >= 1 && k <= 8) || k == 0xb || (k >= 0xe && k <= 0x1f) || k == 0x7f || k == 0x8f || k == 0x9f;
    default:
      return false;
  }
}

}  // namespace

Status Normalize(const Image& image, std::string_view text, std::string& out, std::string& spare, bool& cut_front) {
  // Text of any language stays far below this limit: one character becomes at most 18.
  const size_t most = 16 * text.size() + (size_t{1} << 20);
  cut_front = false;
  std::string_view from = text;
  for (const Step& step : image.normalizers) {
    spare.clear();
    if (!from.empty() && CutsFront(step, from)) cut_front = true;
    AppendStep(image, step, from, spare);
    if (spare.size() > most) return InvalidArgument("a text of ", text.size(), " bytes becomes longer than ", most);
    std::swap(out, spare);
    from = out;
  }
  if (image.normalizers.empty()) out.assign(text);
  return OkStatus();
}

}  // namespace wisp::text
