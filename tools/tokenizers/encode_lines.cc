// Our side of tools/tokenizers/compare.py: encodes or decodes many texts in one process. It is not a program for users.
//
//   encode_lines FOLDER_OR_JSON encode|plain|pair|decode|stream|time|image <INPUT >OUTPUT
//
// encode: with special tokens; plain: without; pair: two texts at a time; decode and stream: ids to texts; time: the
// seconds of one pass of `plain`, several times; image: the image itself. A text or a list of ids is a 32-bit
// little-endian count, then as many bytes or 32-bit numbers. An error ends the program with a sentence.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizers/tokenizer.h"
#include "tools/convert/tokenizer_json.h"

namespace {

using wisp::Result;
using wisp::Status;
using namespace wisp::text;

std::string ReadAll() {
  std::string all;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) all.append(buffer, n);
  return all;
}

// Reads the next list, of `width` bytes per element; empty, with result false, at the end.
bool Next(std::string_view& rest, size_t width, std::string_view& list) {
  uint32_t count = 0;
  if (rest.size() < sizeof count) return false;
  std::memcpy(&count, rest.data(), sizeof count);
  list = rest.substr(sizeof count, count * width);
  rest.remove_prefix(sizeof count + list.size());
  return list.size() == count * width;
}

void Write(const void* data, size_t count, size_t width) {
  const auto size = static_cast<uint32_t>(count);
  std::fwrite(&size, sizeof size, 1, stdout);
  std::fwrite(data, width, count, stdout);
}

Status Encode(const Tokenizer& tokenizer, std::string_view rest, const std::string& how) {
  Scratch scratch;
  const EncodeOptions options{.special = how == "plain" ? SpecialTokens::kNone : SpecialTokens::kAdd,
                              .scratch = &scratch};
  std::vector<int32_t> ids;
  for (std::string_view text, second; Next(rest, 1, text);) {
    ids.clear();
    if (how == "pair") {
      if (!Next(rest, 1, second)) break;
      WISP_RETURN_IF_ERROR(tokenizer.EncodePair(text, second, options, ids));
    } else {
      WISP_RETURN_IF_ERROR(tokenizer.Encode(text, options, ids));
    }
    Write(ids.data(), ids.size(), sizeof(int32_t));
  }
  return wisp::OkStatus();
}

Result<std::string> Streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  StreamDecoder stream(tokenizer, {});
  std::string text;
  for (const int32_t id : ids) {
    WISP_ASSIGN_OR_RETURN(const std::string more, stream.Push(id));
    text += more;
  }
  return text + stream.Finish();
}

Status Decode(const Tokenizer& tokenizer, std::string_view rest, bool streamed) {
  for (std::string_view list; Next(rest, sizeof(int32_t), list);) {
    std::vector<int32_t> ids(list.size() / sizeof(int32_t));
    std::memcpy(ids.data(), list.data(), list.size());
    WISP_ASSIGN_OR_RETURN(const std::string text, streamed ? Streamed(tokenizer, ids) : tokenizer.Decode(ids, {}));
    Write(text.data(), text.size(), 1);
  }
  return wisp::OkStatus();
}

Status Time(const Tokenizer& tokenizer, std::string_view all, int times) {
  for (int i = 0; i < times; ++i) {
    Scratch scratch;
    std::vector<int32_t> ids;
    size_t num_ids = 0;
    const auto begin = std::chrono::steady_clock::now();
    std::string_view rest = all;
    for (std::string_view text; Next(rest, 1, text);) {
      ids.clear();
      WISP_RETURN_IF_ERROR(tokenizer.Encode(text, {.special = SpecialTokens::kNone, .scratch = &scratch}, ids));
      num_ids += ids.size();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%.9f %zu\n", seconds.count(), num_ids);
  }
  return wisp::OkStatus();
}

Status Run(const std::string& path, const std::string& how) {
  constexpr int kTimes = 5;
  WISP_ASSIGN_OR_RETURN(const std::vector<std::byte> image, wisp::convert::ReadTokenizerImage(path));
  WISP_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Open(path, image));
  if (how == "image") {
    std::fwrite(image.data(), 1, image.size(), stdout);
    return wisp::OkStatus();
  }
  const std::string input = ReadAll();
  if (how == "time") return Time(tokenizer, input, kTimes);
  if (how == "decode" || how == "stream") return Decode(tokenizer, input, how == "stream");
  return Encode(tokenizer, input, how);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: encode_lines FOLDER_OR_JSON encode|plain|pair|decode|stream|time|image\n");
    return 2;
  }
  const Status status = Run(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "encode_lines: %s\n", status.message().c_str());
  return 1;
}
