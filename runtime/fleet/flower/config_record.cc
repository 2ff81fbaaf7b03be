#include "runtime/fleet/flower/config_record.h"

#include <algorithm>

#include "runtime/fleet/flower/wire.h"

namespace wisp::fleet::flower {

std::string ConfigRecord::Encode() const {
  WireWriter record;
  for (const Value& value : values_) {
    WireWriter coded, item;
    const auto field = static_cast<uint32_t>(value.kind);
    if (value.kind == Kind::kWhole) {
      coded.Varint(field, ZigZag(value.whole), Presence::kExplicit);
    } else {
      coded.Bytes(field, value.bytes, Presence::kExplicit);
    }
    record.Message(1, item.Bytes(1, value.key).Message(2, coded));
  }
  return record.Take();
}

Result<ConfigRecord> ConfigRecord::Decode(std::string_view body) {
  ConfigRecord record;
  WireReader items(body, "ConfigRecord");
  while (items.Next()) {
    if (items.field() != 1) continue;
    Value value{};
    std::string_view coded;
    WireReader item(items.Bytes(), "item of a ConfigRecord");
    while (item.Next()) {
      if (item.field() == 1) value.key = item.Text(kMostKeyBytes);
      if (item.field() == 2) coded = item.Bytes();
    }
    WISP_RETURN_IF_ERROR(item.status());
    WireReader reader(coded, "value of a ConfigRecord");
    while (reader.Next()) {
      value.kind = static_cast<Kind>(reader.field());
      if (value.kind == Kind::kWhole) {
        value.whole = FromZigZag(reader.Varint());
      } else if (value.kind == Kind::kText) {
        value.bytes = reader.Text(coded.size());
      } else if (value.kind == Kind::kBytes) {
        value.bytes = reader.Bytes();
      } else {
        reader.Fail("is no whole number, text or bytes");
      }
    }
    WISP_RETURN_IF_ERROR(reader.status());
    const bool twice = std::any_of(record.values_.begin(), record.values_.end(),
                                   [&](const Value& other) { return other.key == value.key; });
    if (coded.empty() || twice) items.Fail(coded.empty() ? "has no value for a key" : "has a key twice");
    if (record.values_.size() == kMostValues) items.Fail(JoinText("has more than ", kMostValues, " values"));
    record.values_.push_back(std::move(value));
  }
  WISP_RETURN_IF_ERROR(items.status());
  return record;
}

ConfigRecord& ConfigRecord::Add(std::string key, Kind kind, std::string bytes, int64_t whole) {
  values_.push_back({std::move(key), kind, std::move(bytes), whole});
  return *this;
}

const char* ConfigRecord::Name(Kind kind) {
  return kind == Kind::kWhole ? "a whole number" : kind == Kind::kText ? "a text" : "bytes";
}

Result<const ConfigRecord::Value*> ConfigRecord::Find(std::string_view key, Kind kind) const {
  const auto found = std::find_if(values_.begin(), values_.end(), [&](const Value& value) { return value.key == key; });
  if (found == values_.end()) return InvalidData("the fleet's message has no \"", key, "\"; it must be ", Name(kind));
  if (found->kind != kind) {
    return InvalidData("the fleet's message has \"", key, "\" as ", Name(found->kind), "; it must be ", Name(kind));
  }
  return &*found;
}

Result<std::string_view> ConfigRecord::Sized(std::string_view key, Kind kind, size_t most_bytes) const {
  WISP_ASSIGN_OR_RETURN(const Value* value, Find(key, kind));
  if (value->bytes.size() > most_bytes) {
    return InvalidData("the fleet's message has \"", key, "\" of ", value->bytes.size(), " bytes; allowed are ",
                       most_bytes, " at most");
  }
  return std::string_view(value->bytes);
}

Result<int64_t> ConfigRecord::Whole(std::string_view key, int64_t least, int64_t most) const {
  WISP_ASSIGN_OR_RETURN(const Value* value, Find(key, Kind::kWhole));
  if (value->whole < least || value->whole > most) {
    return InvalidData("the fleet's message has \"", key, "\" ", value->whole, "; allowed are ", least, " to ", most);
  }
  return value->whole;
}

}  // namespace wisp::fleet::flower
