// Figures with which the audits are compared, computed independently of this code: the epsilons with SciPy 1's binomial
// distribution and 80 steps of bisection (they agree with the project's golden accountants.json, which gives 4
// decimals), the masses, tails and p-values with mpmath at 50 digits, the beta quantiles with scipy.stats.beta.
#ifndef WISP_TESTS_UNIT_PRIVACY_AUDIT_AUDIT_GOLDEN_H_
#define WISP_TESTS_UNIT_PRIVACY_AUDIT_AUDIT_GOLDEN_H_

#include <cstdint>

namespace wisp::privacy {

struct BinomialGolden {
  uint64_t k, n;
  double chance, value;
};

inline constexpr BinomialGolden kLogMass[] = {
    {3, 10, 0.25, -1.3851658477400923543},        {16, 40, 0.5, -2.8618370118334089415},
    {50000, 100000, 0.5, -5.9822565851298416007}, {99000, 100000, 0.9, -7137.4905819806302944},
    {10, 100000, 0.5, -69214.693663932154848},    {7, 1000000000, 0x1p-27, -1.9176982217955392381},
};

inline constexpr BinomialGolden kUpperTail[] = {
    {3, 10, 0.25, 0.474407196044921875},
    {60, 100, 0.5, 0.028443966820490395835},
    {49000, 100000, 0.5, 0.99999999987575885729},
    {50500, 100000, 0.5, 0.00079117993942579782221},
    {52000, 100000, 0.5, 5.7654693333614882365e-37},
    {30, 100000, 0x1p-13, 0.000012153499257327882989},
    {5, 1000000000, 0x1p-30, 0.0027114350407026944376},
};

struct ClopperPearsonGolden {
  uint64_t hits, trials;
  double error, low, high;
};

inline constexpr ClopperPearsonGolden kClopperPearson[] = {
    {3, 1000, 0.025, 0.0006190999316495713, 0.008742023238478303},
    {7, 20, 0.025, 0.15390920478454118, 0.5921885345328282},
    {99990, 100000, 0.025, 0.9998161041546233, 0.999952045104861},
    {1, 1000000, 0.01, 1.0050335802996816e-08, 6.638333353341804e-06},
};

struct OneRunGolden {
  uint64_t canaries, guesses, correct;
  double delta, epsilon;
};

// At confidence 0.95.
inline constexpr OneRunGolden kOneRunEpsilon[] = {
    {1000, 1000, 550, 1e-5, 0.09398809305700881},       {1000, 1000, 550, 0, 0.09422369253221544},
    {1000, 1000, 700, 1e-5, 0.7317404494186924},        {1000, 1000, 700, 0, 0.7320108623573903},
    {1000, 100, 90, 1e-5, 1.6261434806957262},          {1000, 100, 90, 0, 1.6308231927409742},
    {1000, 100, 100, 1e-5, 3.4653763478110453},         {1000, 100, 100, 0, 3.4929654311522937},
    {500, 200, 180, 1e-5, 1.7975786552932933},          {500, 200, 180, 0, 1.7988652649778913},
    {100000, 100000, 60000, 1e-5, 0.39458030488159834}, {100000, 100000, 52000, 1e-5, 0.06937231795287323},
    {100000, 1000, 990, 1e-5, 3.215049891737331},       {100000, 1000, 990, 0, 4.063206133426406},
    {100000, 100000, 100000, 1e-5, 8.127690262188226},
};

struct OneRunPValueGolden {
  uint64_t canaries, guesses, correct;
  double epsilon, delta, p_value;
};

inline constexpr OneRunPValueGolden kOneRunPValue[] = {
    {.canaries = 1000,
     .guesses = 1000,
     .correct = 700,
     .epsilon = 0.75,
     .delta = 1e-5,
     .p_value = 0.0841604461036136275},
    {.canaries = 1000, .guesses = 100, .correct = 100, .epsilon = 3.5, .delta = 1e-5, .p_value = 0.055124225912977696},
    {.canaries = 100000,
     .guesses = 100000,
     .correct = 60000,
     .epsilon = 0.4,
     .delta = 1e-6,
     .p_value = 0.19998539585593632},
    {.canaries = 100000,
     .guesses = 1000,
     .correct = 990,
     .epsilon = 3,
     .delta = 1e-6,
     .p_value = 0.00395649972829841019},
    // The pure part is 6e-37, so all of it is the share of delta.
    {.canaries = 100000,
     .guesses = 100000,
     .correct = 52000,
     .epsilon = 0,
     .delta = 1e-7,
     .p_value = 8.44629437676953497e-6},
    {.canaries = 500, .guesses = 0, .correct = 0, .epsilon = 1, .delta = 1e-5, .p_value = 1},
    {.canaries = 500, .guesses = 200, .correct = 20, .epsilon = 1, .delta = 1e-6, .p_value = 1},
};

}  // namespace wisp::privacy

#endif  // WISP_TESTS_UNIT_PRIVACY_AUDIT_AUDIT_GOLDEN_H_
