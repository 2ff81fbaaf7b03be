#include "runtime/privacy/ledger/ledger_chain.h"

#include <sodium.h>

#include <bit>

namespace wisp::privacy {
namespace {

// Always little-endian, because a ledger may be moved between machines.
void AppendWord(std::string& bytes, uint64_t word) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(word >> shift));
}

}  // namespace

ChainLink& ChainLink::Text(std::string_view text) {
  AppendWord(bytes_, text.size());
  bytes_ += text;
  return *this;
}

ChainLink& ChainLink::Number(uint64_t number) {
  AppendWord(bytes_, sizeof number);
  AppendWord(bytes_, number);
  return *this;
}

ChainLink& ChainLink::Real(double number) { return Number(std::bit_cast<uint64_t>(number + 0.0)); }

ChainValue ChainLink::After(const ChainValue& before) const {
  const std::string input = std::string(before.begin(), before.end()) + bytes_;
  ChainValue value{};
  // It fails only for sizes out of range, and these are in range.
  (void)crypto_generichash(value.data(), value.size(), reinterpret_cast<const unsigned char*>(input.data()),
                           input.size(), nullptr, 0);
  return value;
}

}  // namespace wisp::privacy
