// Figures from public test suites that this project's accountants are held against. Facts, read in the test files
// named.
#ifndef WISP_TESTS_UNIT_ACCOUNTANT_GOLDEN_H_
#define WISP_TESTS_UNIT_ACCOUNTANT_GOLDEN_H_

#include <cstdint>

#include "runtime/privacy/pld.h"

namespace wisp::privacy {

struct PublicEpsilon {
  double sigma, q;
  uint64_t steps;
  double delta, epsilon, tolerance;
};

// pytorch/opacus, prv_accountant.py: upper bounds, 0.010 to 0.015 above the tight figure.
inline constexpr PublicEpsilon kOpacusPrv[] = {
    {0.8, 0.001, 50000, 1e-06, 2.0345148077158663, 0.015},  {0.8, 0.001, 100000, 1e-06, 2.9246221193504103, 0.015},
    {0.8, 0.05, 100, 1e-06, 6.7410519394141, 0.015},        {0.8, 0.05, 20000, 1e-06, 140.65520976007423, 0.015},
    {0.8, 0.05, 50000, 1e-06, 291.3843254523965, 0.015},    {0.8, 0.2, 100, 1e-06, 24.333664177922564, 0.015},
    {1.5, 0.001, 20000, 1e-06, 0.4370051086548608, 0.015},  {1.5, 0.05, 100, 1e-06, 1.9538531356842002, 0.015},
    {1.5, 0.05, 20000, 1e-06, 38.306617914087234, 0.015},   {1.5, 0.05, 50000, 1e-06, 73.19017672383296, 0.015},
    {1.5, 0.2, 100, 1e-06, 8.49897785912163, 0.015},        {2.0, 0.001, 100, 1e-06, 0.029104536948407488, 0.015},
    {2.0, 0.001, 1000, 1e-06, 0.07121878253811523, 0.015},  {2.0, 0.001, 20000, 1e-06, 0.30583793976245344, 0.015},
    {2.0, 0.05, 100, 1e-06, 1.2836373796240652, 0.015},     {2.0, 0.05, 20000, 1e-06, 24.421718570322586, 0.015},
    {2.0, 0.05, 50000, 1e-06, 45.23699586133069, 0.015},    {2.0, 0.2, 100, 1e-06, 5.6720556088237295, 0.015},
    {3.0, 0.001, 100, 1e-06, 0.021520093439088266, 0.015},  {3.0, 0.001, 50000, 1e-06, 0.309694161156544, 0.015},
    {3.0, 0.001, 100000, 1e-06, 0.4436717208808755, 0.015}, {3.0, 0.05, 100, 1e-06, 0.7679337896668256, 0.015},
    {3.0, 0.05, 1000, 1e-06, 2.5275743260597383, 0.015},    {3.0, 0.05, 20000, 1e-06, 13.961114699236706, 0.015},
    {3.0, 0.05, 50000, 1e-06, 24.942005643144476, 0.015},   {3.0, 0.2, 100, 1e-06, 3.3812205102218442, 0.015},
};

// tensorflow/privacy, compute_dp_sgd_privacy_test.py, by dp_accounting's PLD, to the digits given there.
inline constexpr PublicEpsilon kTensorflowPld[] = {
    {0.35, 1.0, 2, 1e-05, 24.7160779, 5e-08},
    {1.0, 1.0, 5, 1e-06, 12.595, 0.0005},
    {1.0, 0.0064, 782, 1e-06, 1.199, 0.0005},
};

struct PublicDelta {
  Direction direction;
  double sigma, q, epsilon, delta;
};

// google/differential-privacy, privacy_loss_mechanism_test.py: hockey-stick divergence of one step, exact.
inline constexpr PublicDelta kGoogleHockeyStick[] = {
    {Direction::kAdd, 1.0, 0.2, 0.2, 0.00020196},
    {Direction::kAdd, 1.0, 0.2, 0.3, 0.0},
    {Direction::kAdd, 1.0, 0.3, 2.0, 0.0},
    {Direction::kAdd, 1.0, 0.8, 1.0, 0.0231362104090899},
    {Direction::kAdd, 1.0, 1.0, 0.0, 0.38292492},
    {Direction::kAdd, 1.0, 1.0, 1.0, 0.12693674},
    {Direction::kAdd, 1.0, 1.0, 2.0, 0.020923636},
    {Direction::kAdd, 1.0, 1.0, 2.0, 0.02092364},
    {Direction::kRemove, 0.3333333333333333, 0.4, 1.0, 0.2888308005139968},
    {Direction::kRemove, 0.3333333333333333, 1.0, 1.0, 0.78760074},
    {Direction::kRemove, 1.0, 0.2, 0.0, 0.076584985},
    {Direction::kRemove, 1.0, 0.2, 0.5, 0.012494629},
    {Direction::kRemove, 1.0, 0.2, 1.0, 0.00229682},
    {Direction::kRemove, 1.0, 0.8, 1.0, 0.0816951786585355},
    {Direction::kRemove, 1.0, 1.0, 1.0, 0.12693674},
    {Direction::kRemove, 1.0, 1.0, 2.0, 0.02092364},
};

}  // namespace wisp::privacy

#endif  // WISP_TESTS_UNIT_ACCOUNTANT_GOLDEN_H_
