// Draws of a decoder, briefly, and their PLD figure: for the tests of their accounting and calibration.
#ifndef WISP_TESTS_UNIT_DRAW_TEST_UTIL_H_
#define WISP_TESTS_UNIT_DRAW_TEST_UTIL_H_

#include <cstdint>
#include <vector>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/mechanism.h"

namespace wisp::privacy {

inline Mechanism Response(uint64_t support, double lambda, uint64_t count = 1) {
  return *Mechanism::RandomisedResponse({.support = support, .lambda = lambda, .count = count});
}
inline Mechanism Range(double range, uint64_t count = 1) { return *Mechanism::BoundedRange({.range = range, .count = count}); }
inline Delta DeltaAt(double value) { return *Delta::Create(value); }
inline double Pld(const std::vector<Mechanism>& m, double delta) { return *PldEpsilon(m, DeltaAt(delta)); }

}  // namespace wisp::privacy

#endif  // WISP_TESTS_UNIT_DRAW_TEST_UTIL_H_
