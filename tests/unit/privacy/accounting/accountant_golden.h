// Figures from public test suites with which this project's accountants are compared. They are facts, taken from the
// named test files.
#ifndef WISP_TESTS_UNIT_PRIVACY_ACCOUNTING_ACCOUNTANT_GOLDEN_H_
#define WISP_TESTS_UNIT_PRIVACY_ACCOUNTING_ACCOUNTANT_GOLDEN_H_

#include <cstdint>

#include "runtime/privacy/accounting/pld.h"

namespace wisp::privacy {

struct PublicEpsilon {
  double sigma, q;
  uint64_t steps;
  double delta, epsilon, tolerance;
};

// pytorch/opacus, prv_accountant.py: upper bounds, 0.010 to 0.015 above the tight figure.
inline constexpr PublicEpsilon kOpacusPrv[] = {
    {.sigma = 0.8, .q = 0.001, .steps = 50000, .delta = 1e-06, .epsilon = 2.0345148077158663, .tolerance = 0.015},
    {.sigma = 0.8, .q = 0.001, .steps = 100000, .delta = 1e-06, .epsilon = 2.9246221193504103, .tolerance = 0.015},
    {.sigma = 0.8, .q = 0.05, .steps = 100, .delta = 1e-06, .epsilon = 6.7410519394141, .tolerance = 0.015},
    {.sigma = 0.8, .q = 0.05, .steps = 20000, .delta = 1e-06, .epsilon = 140.65520976007423, .tolerance = 0.015},
    {.sigma = 0.8, .q = 0.05, .steps = 50000, .delta = 1e-06, .epsilon = 291.3843254523965, .tolerance = 0.015},
    {.sigma = 0.8, .q = 0.2, .steps = 100, .delta = 1e-06, .epsilon = 24.333664177922564, .tolerance = 0.015},
    {.sigma = 1.5, .q = 0.001, .steps = 20000, .delta = 1e-06, .epsilon = 0.4370051086548608, .tolerance = 0.015},
    {.sigma = 1.5, .q = 0.05, .steps = 100, .delta = 1e-06, .epsilon = 1.9538531356842002, .tolerance = 0.015},
    {.sigma = 1.5, .q = 0.05, .steps = 20000, .delta = 1e-06, .epsilon = 38.306617914087234, .tolerance = 0.015},
    {.sigma = 1.5, .q = 0.05, .steps = 50000, .delta = 1e-06, .epsilon = 73.19017672383296, .tolerance = 0.015},
    {.sigma = 1.5, .q = 0.2, .steps = 100, .delta = 1e-06, .epsilon = 8.49897785912163, .tolerance = 0.015},
    {.sigma = 2.0, .q = 0.001, .steps = 100, .delta = 1e-06, .epsilon = 0.029104536948407488, .tolerance = 0.015},
    {.sigma = 2.0, .q = 0.001, .steps = 1000, .delta = 1e-06, .epsilon = 0.07121878253811523, .tolerance = 0.015},
    {.sigma = 2.0, .q = 0.001, .steps = 20000, .delta = 1e-06, .epsilon = 0.30583793976245344, .tolerance = 0.015},
    {.sigma = 2.0, .q = 0.05, .steps = 100, .delta = 1e-06, .epsilon = 1.2836373796240652, .tolerance = 0.015},
    {.sigma = 2.0, .q = 0.05, .steps = 20000, .delta = 1e-06, .epsilon = 24.421718570322586, .tolerance = 0.015},
    {.sigma = 2.0, .q = 0.05, .steps = 50000, .delta = 1e-06, .epsilon = 45.23699586133069, .tolerance = 0.015},
    {.sigma = 2.0, .q = 0.2, .steps = 100, .delta = 1e-06, .epsilon = 5.6720556088237295, .tolerance = 0.015},
    {.sigma = 3.0, .q = 0.001, .steps = 100, .delta = 1e-06, .epsilon = 0.021520093439088266, .tolerance = 0.015},
    {.sigma = 3.0, .q = 0.001, .steps = 50000, .delta = 1e-06, .epsilon = 0.309694161156544, .tolerance = 0.015},
    {.sigma = 3.0, .q = 0.001, .steps = 100000, .delta = 1e-06, .epsilon = 0.4436717208808755, .tolerance = 0.015},
    {.sigma = 3.0, .q = 0.05, .steps = 100, .delta = 1e-06, .epsilon = 0.7679337896668256, .tolerance = 0.015},
    {.sigma = 3.0, .q = 0.05, .steps = 1000, .delta = 1e-06, .epsilon = 2.5275743260597383, .tolerance = 0.015},
    {.sigma = 3.0, .q = 0.05, .steps = 20000, .delta = 1e-06, .epsilon = 13.961114699236706, .tolerance = 0.015},
    {.sigma = 3.0, .q = 0.05, .steps = 50000, .delta = 1e-06, .epsilon = 24.942005643144476, .tolerance = 0.015},
    {.sigma = 3.0, .q = 0.2, .steps = 100, .delta = 1e-06, .epsilon = 3.3812205102218442, .tolerance = 0.015},
};

// tensorflow/privacy, compute_dp_sgd_privacy_test.py, by dp_accounting's PLD, to the digits given there.
inline constexpr PublicEpsilon kTensorflowPld[] = {
    {.sigma = 0.35, .q = 1.0, .steps = 2, .delta = 1e-05, .epsilon = 24.7160779, .tolerance = 5e-08},
    {.sigma = 1.0, .q = 1.0, .steps = 5, .delta = 1e-06, .epsilon = 12.595, .tolerance = 0.0005},
    {.sigma = 1.0, .q = 0.0064, .steps = 782, .delta = 1e-06, .epsilon = 1.199, .tolerance = 0.0005},
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

#endif  // WISP_TESTS_UNIT_PRIVACY_ACCOUNTING_ACCOUNTANT_GOLDEN_H_
