// Protobuf's wire format, as far as Flower's messages of a node need it: varints, doubles, bytes and nested messages.
// No packed lists, no groups.
//
//   WireWriter writer;
//   writer.Varint(1, run_id).Bytes(3, object_id);
//   WireReader reader(bytes, "answer to pull-object");
//   while (reader.Next()) {
//     if (reader.field() == 1) found = reader.Varint() != 0;   // other fields are skipped
//   }
//   WISP_RETURN_IF_ERROR(reader.status());
#ifndef WISP_RUNTIME_FLEET_FLOWER_WIRE_H_
#define WISP_RUNTIME_FLEET_FLOWER_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/status.h"

namespace wisp::fleet::flower {

// A field without presence leaves out its default value: 0 or empty. Members of a oneof, optional fields and messages
// have presence, and are written in any case.
enum class Presence { kImplicit, kExplicit };

// Writes fields in the order of the calls; protobuf's own writers go by the numbers of fields.
class WireWriter {
 public:
  WireWriter& Varint(uint32_t field, uint64_t value, Presence presence = Presence::kImplicit);
  WireWriter& Double(uint32_t field, double value, Presence presence = Presence::kImplicit);
  WireWriter& Bytes(uint32_t field, std::string_view bytes, Presence presence = Presence::kImplicit);
  WireWriter& Message(uint32_t field, const WireWriter& message) {
    return Bytes(field, message.bytes_, Presence::kExplicit);
  }

  std::string Take() { return std::exchange(bytes_, {}); }

 private:
  void Append(uint64_t varint);

  std::string bytes_;
};

// Reads the fields of one message. After a fault, Next() is false and values are empty.
class WireReader {
 public:
  // `what` names the message in errors. Both views must outlive the reader.
  WireReader(std::string_view bytes, std::string_view what) : rest_(bytes), what_(what), size_(bytes.size()) {}

  // Moves to the next field. False at the end, and after a fault.
  bool Next();
  uint32_t field() const { return field_; }

  // The value of the field. If it is of another type, that is a fault.
  uint64_t Varint();
  double Double();
  std::string_view Bytes();
  // Well-formed UTF-8 of at most `most_bytes`.
  std::string Text(size_t most_bytes);

  // Reports what is wrong with the message; the first fault stays.
  void Fail(std::string_view fault);
  Status status() const { return status_; }

 private:
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  bool Is(Type type);
  bool ReadVarint(uint64_t& value);
  bool ReadFixed(size_t size);

  std::string_view rest_;
  std::string_view what_;
  size_t size_;
  uint32_t field_ = 0;
  Type type_ = Type::kVarint;
  uint64_t value_ = 0;
  std::string_view bytes_;
  Status status_;
};

// Signed numbers of the type sint64.
constexpr uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ (value < 0 ? ~uint64_t{0} : uint64_t{0});
}
constexpr int64_t FromZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1 ^ (value & 1 ? ~uint64_t{0} : uint64_t{0}));
}

}  // namespace wisp::fleet::flower

#endif  // WISP_RUNTIME_FLEET_FLOWER_WIRE_H_
