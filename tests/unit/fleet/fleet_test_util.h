// A plan and the texts that differ from its text in one field.
#ifndef WISP_TESTS_UNIT_FLEET_FLEET_TEST_UTIL_H_
#define WISP_TESTS_UNIT_FLEET_FLEET_TEST_UTIL_H_

#include <string>

#include "gtest/gtest.h"
#include "runtime/fleet/fleet_plan.h"

namespace wisp::fleet {

inline FleetPlan SomePlan() {
  return {.name = "films",
          .base_hash = 0x0123456789abcdef,
          .devices = 99999,
          .rounds = 100,
          .takes_part = 5,
          .evaluators = 0.1,
          .evaluations = 20,
          .noise_multiplier = 3.25,
          .epsilon = 3};
}

// The text with another value of a field.
inline std::string WithField(std::string text, const std::string& field, const std::string& value) {
  const size_t key = text.find("\"" + field + "\": ");
  EXPECT_NE(key, std::string::npos) << field;
  if (key == std::string::npos) return text;
  const size_t begin = key + field.size() + 4, end = text.find_first_of(",\n", begin);
  return text.replace(begin, end - begin, value);
}

}  // namespace wisp::fleet

#endif  // WISP_TESTS_UNIT_FLEET_FLEET_TEST_UTIL_H_
