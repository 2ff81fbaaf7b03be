// Built for speed: a loop over every line of a file.
#include "runtime/data/texts.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "runtime/core/file.h"
#include "runtime/core/hash.h"
#include "runtime/data/lines.h"

namespace wisp::data {
namespace {

constexpr std::string_view kChunk = "chunk:";

bool IsInsideCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// The number of bytes of a character that begins with this byte.
size_t LengthByFirst(char byte) {
  const auto first = static_cast<unsigned char>(byte);
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}

// The characters that lie wholly within a chunk. A character across a border is in neither chunk, because a record must
// not contain a part of another one. Invalid UTF-8 stays, and the tokenizer reports it.
std::string_view WholeCharacters(std::string_view chunk) {
  constexpr size_t kMaxCharacterBytes = 3;  // bytes of a character that may lie in the neighbour
  size_t before = 0;
  while (before < std::min(kMaxCharacterBytes, chunk.size()) && IsInsideCharacter(chunk[before])) ++before;
  chunk.remove_prefix(before);
  for (size_t behind = 1; behind <= std::min(kMaxCharacterBytes, chunk.size()); ++behind) {
    const char byte = chunk[chunk.size() - behind];
    if (IsInsideCharacter(byte)) continue;
    if (LengthByFirst(byte) > behind) chunk.remove_suffix(behind);
    break;
  }
  return chunk;
}

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

void AddChunks(std::string_view file, uint64_t bytes, Texts& out) {
  uint64_t line = 1;
  for (size_t at = 0; at < file.size(); at += bytes) {
    const std::string_view own = file.substr(at, bytes), chunk = WholeCharacters(WithoutMarks(own));
    if (!IsBlank(chunk)) {
      out.texts.emplace_back(chunk);
      out.lines.push_back(line);
    }
    line += static_cast<uint64_t>(std::count(own.begin(), own.end(), '\n'));
  }
}

void AddLines(std::string_view file, Texts& out) {
  Lines lines(file);
  while (lines.Next()) {
    const std::string_view line = lines.line();
    if (IsBlank(line)) continue;
    out.texts.emplace_back(line);
    out.lines.push_back(lines.number());
  }
}

void AddParagraphs(std::string_view file, Texts& out) {
  Lines lines(file);
  uint64_t last = 0;
  while (lines.Next()) {
    const std::string_view line = lines.line();
    if (IsBlank(line)) continue;
    const bool continues = last > 0 && lines.number() == last + 1;
    last = lines.number();
    if (continues) {
      out.texts.back().append("\n").append(line);
      continue;
    }
    out.texts.emplace_back(line);
    out.lines.push_back(last);
  }
}

}  // namespace

Result<TextUnit> ParseTextUnit(std::string_view what, std::string_view text) {
  using Kind = TextUnit::Kind;
  if (text == "line") return TextUnit{.kind = Kind::kLine};
  if (text == "paragraph") return TextUnit{.kind = Kind::kParagraph};
  if (text.starts_with(kChunk)) {
    TextUnit unit{.kind = Kind::kChunk};
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + kChunk.size(), end, unit.chunk_bytes);
    const bool is_number = read.ec == std::errc() && read.ptr == end;
    if (is_number && unit.chunk_bytes >= kMinChunk && unit.chunk_bytes <= kMaxChunk) return unit;
  }
  return InvalidArgument(what, " is ", Shown(text), ", allowed are line, paragraph and chunk:N, N bytes from ",
                         kMinChunk, " to ", kMaxChunk);
}

std::string ToText(const TextUnit& unit) {
  switch (unit.kind) {
    case TextUnit::Kind::kLine:
      return "line";
    case TextUnit::Kind::kParagraph:
      return "paragraph";
    case TextUnit::Kind::kChunk:
      return std::string(kChunk) + std::to_string(unit.chunk_bytes);
  }
  return "";
}

Result<Texts> ReadTexts(const std::string& path, const TextOptions& options) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ParseTexts(path, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, options);
}

Result<Texts> ParseTexts(const std::string& name, std::string_view file, const TextOptions& options) {
  Texts out{.name = name};
  switch (options.unit.kind) {
    case TextUnit::Kind::kLine:
      AddLines(file, out);
      break;
    case TextUnit::Kind::kParagraph:
      AddParagraphs(file, out);
      break;
    case TextUnit::Kind::kChunk:
      AddChunks(file, options.unit.chunk_bytes, out);
      break;
  }
  if (out.texts.empty() && !options.private_run) return InvalidData(name, ": there is no text in it");
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  if (out.texts.size() > kMost) return InvalidData(name, ": it has ", out.texts.size(), " texts, allowed are ", kMost);
  return out;
}

Result<TextSequences> EncodeTexts(const Texts& texts, const Tokenise& tokenise, bool drop_bad) {
  TextSequences out;
  for (size_t i = 0; i < texts.texts.size(); ++i) {
    const Result<Tokenised> tokenised = tokenise(texts.texts[i], out.tokens);
    if (!tokenised.ok()) {
      const Status fault = InvalidData(texts.name, ", line ", texts.lines[i], ": ", tokenised.status().message());
      if (!drop_bad) return fault;
      out.tokens.resize(out.begin.back());
      if (out.num_dropped++ == 0) out.first_dropped = fault.message();
      continue;
    }
    if (out.tokens.size() < out.begin.back() + 2) {
      out.tokens.resize(out.begin.back());
      ++out.num_short;
      continue;
    }
    out.num_cut += tokenised->was_cut ? 1 : 0;
    out.begin.push_back(out.tokens.size());
    out.text.push_back(static_cast<uint32_t>(i));
  }
  const uint64_t read = out.size() + out.num_short;
  if (HasAnotherForm(out.num_dropped, read))
    return AnotherForm(texts.name, out.num_dropped, read, "texts", out.first_dropped);
  return out;
}

bool IsHeldOut(std::string_view text, double share) {
  constexpr double kAll = 18446744073709551616.0;  // 2^64
  return static_cast<double>(Hash64(std::as_bytes(std::span(text.data(), text.size())))) < share * kAll;
}

}  // namespace wisp::data
