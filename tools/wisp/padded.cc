#include "tools/wisp/padded.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "runtime/core/text.h"

namespace wisp::tools {
namespace {

struct Range {
  uint32_t first, last, cells;
};
// The blocks of Unicode that consist, almost or entirely, of marks or of wide characters.
constexpr Range kRanges[] = {{0x300, 0x36f, 0},     {0x1100, 0x115f, 2},  {0x1ab0, 0x1aff, 0}, {0x1dc0, 0x1dff, 0},
                             {0x200b, 0x200d, 0},   {0x20d0, 0x20ff, 0},  {0x2e80, 0x303e, 2}, {0x3041, 0xa4cf, 2},
                             {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},  {0xfe00, 0xfe0f, 0}, {0xfe20, 0xfe2f, 0},
                             {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},  {0xffe0, 0xffe6, 2}, {0x1f300, 0x1f64f, 2},
                             {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2}};

uint32_t GetCode(std::string_view character) {
  constexpr uint32_t kLeadMasks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t code = static_cast<uint8_t>(character[0]) & kLeadMasks[character.size()];
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3f);
  return code;
}

}  // namespace

size_t CountCells(std::string_view text) {
  size_t cells = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text.substr(at));
    const uint32_t code = length == 0 ? 0 : GetCode(text.substr(at, length));
    const auto* range = std::find_if(std::begin(kRanges), std::end(kRanges),
                                     [&](const Range& r) { return code >= r.first && code <= r.last; });
    cells += range == std::end(kRanges) ? 1 : range->cells;
    at += std::max<size_t>(1, length);
  }
  return cells;
}

std::string Padded(std::string text, size_t cells) {
  const size_t taken = CountCells(text);
  return taken < cells ? text.append(cells - taken, ' ') : text;
}

}  // namespace wisp::tools
