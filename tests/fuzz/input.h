// The bytes of one run of a fuzz target, taken from the front: a byte that chooses, a number, a piece, the rest.
//
//   Input input(data, size);
//   const bool tsv = input.Byte() % 2 == 0;
//   Parse(input.Rest());
//
// Reading from an empty input gives 0. A target never fails because of its input: only the sanitizers and Require
// report failures.
#ifndef WISP_TESTS_FUZZ_INPUT_H_
#define WISP_TESTS_FUZZ_INPUT_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

// libFuzzer's entry (clang), or replay.cc's.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace wisp::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::string_view Rest() { return Piece(rest_.size()); }
  std::string_view Piece(size_t size) {
    const std::string_view piece = rest_.substr(0, size);
    rest_.remove_prefix(piece.size());
    return piece;
  }
  template <class T>
  T Number() {
    T value{};
    const std::string_view piece = Piece(sizeof(value));
    std::memcpy(&value, piece.data(), piece.size());
    return value;
  }
  uint8_t Byte() { return Number<uint8_t>(); }

 private:
  std::string_view rest_;
};

// Requires a condition that must hold for all bytes. Otherwise the process ends, which a fuzzer notices.
inline void Require(bool held, const char* what) {
  if (held) return;
  std::fprintf(stderr, "REQUIRED: %s\n", what);
  std::abort();
}

// Requires that a refusal is a sentence: not empty, and without characters that a terminal would act on.
inline void RequireSentence(std::string_view message) {
  Require(!message.empty(), "an error has a sentence");
  for (size_t i = 0; i < message.size(); ++i) {
    const auto byte = [&](size_t at) { return at < message.size() ? static_cast<unsigned char>(message[at]) : 0u; };
    const bool c1 = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;  // U+0080 to U+009F
    Require(!c1 && byte(i) >= 0x20 && byte(i) != 0x7f, "a message has no control characters");
  }
}

inline void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace wisp::fuzz

#endif  // WISP_TESTS_FUZZ_INPUT_H_
