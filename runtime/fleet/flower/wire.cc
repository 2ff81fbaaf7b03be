#include "runtime/fleet/flower/wire.h"

#include <algorithm>
#include <bit>

#include "runtime/core/text.h"

namespace wisp::fleet::flower {
namespace {

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

void WireWriter::Append(uint64_t varint) {
  for (; varint >= 0x80; varint >>= 7) bytes_ += static_cast<char>(varint | 0x80);
  bytes_ += static_cast<char>(varint);
}

WireWriter& WireWriter::Varint(uint32_t field, uint64_t value, Presence presence) {
  if (value == 0 && presence == Presence::kImplicit) return *this;
  Append(uint64_t{field} << 3);
  Append(value);
  return *this;
}

WireWriter& WireWriter::Double(uint32_t field, double value, Presence presence) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  if (bits == 0 && presence == Presence::kImplicit) return *this;
  Append(uint64_t{field} << 3 | 1);
  for (int i = 0; i < 8; ++i, bits >>= 8) bytes_ += static_cast<char>(bits);
  return *this;
}

WireWriter& WireWriter::Bytes(uint32_t field, std::string_view bytes, Presence presence) {
  if (bytes.empty() && presence == Presence::kImplicit) return *this;
  Append(uint64_t{field} << 3 | 2);
  Append(bytes.size());
  bytes_ += bytes;
  return *this;
}

void WireReader::Fail(std::string_view fault) {
  if (!status_.ok()) return;
  status_ = InvalidData("the fleet's ", what_, " ", fault, ", at byte ", size_ - rest_.size());
  rest_ = bytes_ = {};
  value_ = 0;
}

bool WireReader::ReadVarint(uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < std::min<size_t>(rest_.size(), 10); ++i) {
    const auto byte = static_cast<uint8_t>(rest_[i]);
    if (i == 9 && byte > 1) break;  // more than 64 bits
    value |= uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      return true;
    }
  }
  Fail("has a number that is cut or too long");
  return false;
}

bool WireReader::ReadFixed(size_t size) {
  if (rest_.size() < size) return Fail("is cut"), false;
  value_ = 0;
  for (size_t i = size; i-- > 0;) value_ = value_ << 8 | static_cast<uint8_t>(rest_[i]);
  rest_.remove_prefix(size);
  return true;
}

bool WireReader::Next() {
  if (!status_.ok() || rest_.empty()) return false;
  uint64_t tag = 0;
  if (!ReadVarint(tag)) return false;
  if (tag >> 3 == 0 || tag >> 32 != 0) return Fail("has a field that cannot exist"), false;
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<Type>(tag & 7);
  switch (type_) {
    case Type::kVarint:
      return ReadVarint(value_);
    case Type::kFixed64:
      return ReadFixed(8);
    case Type::kFixed32:
      return ReadFixed(4);
    case Type::kBytes: {
      uint64_t size = 0;
      if (!ReadVarint(size)) return false;
      if (size > rest_.size()) return Fail("is cut"), false;
      bytes_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return true;
    }
  }
  Fail("has a field of a type that is not read");
  return false;
}

bool WireReader::Is(Type type) {
  if (status_.ok() && type_ != type) Fail(JoinText("has field ", field_, " of another type"));
  return status_.ok();
}

uint64_t WireReader::Varint() { return Is(Type::kVarint) ? value_ : 0; }
double WireReader::Double() { return Is(Type::kFixed64) ? std::bit_cast<double>(value_) : 0; }
std::string_view WireReader::Bytes() { return Is(Type::kBytes) ? bytes_ : std::string_view(); }

std::string WireReader::Text(size_t most_bytes) {
  const std::string_view text = Bytes();
  if (text.size() > most_bytes) Fail(JoinText("has a text of ", text.size(), " bytes; allowed are ", most_bytes));
  if (!IsUtf8(text)) Fail("has a text that is not UTF-8");
  return status_.ok() ? std::string(text) : std::string();
}

}  // namespace wisp::fleet::flower
