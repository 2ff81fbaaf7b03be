// The fields of a file of flat JSON, listed once. What writes, reads and checks them takes the list.
//
//   std::vector<PlanField> ListFields(FleetPolicy& p) {
//     return {PlanField::Number("cohort", p.cohort, {1, 1e9}), PlanField::Word("part", p.part, kPartNames)};
//   }
#ifndef WISP_RUNTIME_FLEET_PLAN_FIELDS_H_
#define WISP_RUNTIME_FLEET_PLAN_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "runtime/core/status.h"
#include "runtime/fleet/flat_json.h"
#include "runtime/privacy/json.h"

namespace wisp::fleet {

// Some of the values of an enum that counts from 0.
template <class E>
struct SetOf {
  uint32_t bits = 0;  // bit i is the value i

  SetOf() = default;
  SetOf(std::initializer_list<E> values) {
    for (const E value : values) bits |= 1u << static_cast<int>(value);
  }
  bool Contains(E value) const { return (bits >> static_cast<int>(value) & 1) != 0; }
  bool operator==(const SetOf&) const = default;
};

struct Range {
  double least = 0, most = 0;
};

// A field of a struct: its name in the file, its place, and what is allowed there. It is valid as long as the struct.
struct PlanField {
  enum class Kind : uint8_t { kWhole32, kWhole64, kFloat, kDouble, kTruth, kText, kWord, kWords };
  using Names = std::span<const char* const>;  // of the values of an enum, from 0 on

  const char* name;
  Kind kind;
  void* at;
  Range range = {};
  Names names = {};

  static PlanField Number(const char* name, uint32_t& at, Range range) { return {name, Kind::kWhole32, &at, range}; }
  static PlanField Number(const char* name, uint64_t& at, Range range) { return {name, Kind::kWhole64, &at, range}; }
  static PlanField Number(const char* name, float& at, Range range) { return {name, Kind::kFloat, &at, range}; }
  static PlanField Number(const char* name, double& at, Range range) { return {name, Kind::kDouble, &at, range}; }
  static PlanField Truth(const char* name, bool& at) { return {name, Kind::kTruth, &at}; }
  static PlanField Text(const char* name, std::string& at) { return {name, Kind::kText, &at}; }
  template <class E>
  static PlanField Word(const char* name, E& at, Names names) {
    static_assert(std::is_enum_v<E> && sizeof(E) == sizeof(int));
    return {name, Kind::kWord, &at, {}, names};
  }
  // In the file with commas between.
  template <class E>
  static PlanField Words(const char* name, SetOf<E>& at, Names names) {
    return {name, Kind::kWords, &at.bits, {}, names};
  }
};

void WriteFields(std::span<const PlanField> fields, privacy::JsonWriter& json);
// Reads what WriteFields writes. Errors are FlatJson's, which `source` begins.
Status ReadFields(FlatJson& json, const std::string& source, std::span<const PlanField> fields);
// kInvalidArgument: a number is outside of its range, or no word of several is chosen.
Status CheckFields(const std::string& source, std::span<const PlanField> fields);

// The words of a set, with `between` between them.
std::string ListWords(uint32_t bits, PlanField::Names names, const char* between);

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_PLAN_FIELDS_H_
