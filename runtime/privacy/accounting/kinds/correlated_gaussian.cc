// The cost of a run whose noise is z_s - lambda z_(s-1).
//
// The sums x_s of a run are released as x + C^-1 z, with 1 on the diagonal of C^-1 and -lambda below it: so C is lower
// triangular with C_ij = lambda^(i - j), and what is released is C^-1 (C x + z). That is computed from one Gaussian
// mechanism on C x, also if contributions are chosen after looking at earlier steps (Denisov, McMahan, Rush, Smith and
// Thakurta 2022: C is lower triangular). One record changes x by vectors of norm at most 1, in some of the steps j,
// j + b, ... No entry of C is negative, so C x changes most if it takes part in all of them and the vectors are equal.
// Let v be that change for j = 0. For another j it is v moved down by j rows, of which the last j fall out of the run:
// no longer. In row m b + r, 0 <= r < b, v is lambda^r g_m with g_m = 1 + lambda^b + ... + lambda^(m b). So
//     sensitivity^2 = (1 - lambda^(2 b)) / (1 - lambda^2) * (g_0^2 + ... + g_(k-1)^2).
#include "runtime/privacy/accounting/kinds/correlated_gaussian.h"

#include <cmath>

#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

// The plain Gaussian that costs as much.
Mechanism MakePlainGaussian(const Mechanism& m) {
  const double sensitivity = CorrelatedSensitivity(m.lambda(), static_cast<uint64_t>(m.Parameter("participations")),
                                                   static_cast<uint64_t>(m.Parameter("separation")));
  return *Mechanism::Gaussian({.noise_multiplier = m.noise_multiplier() / sensitivity * (1 - 1e-14),
                               .count = m.steps(),
                               .adjacency = m.adjacency()});
}

Status CheckCorrelated(const Mechanism& m) {
  if (m.adjacency() != Adjacency::kReplaceOne) return OkStatus();
  return PrivacyRefused(
      "correlated noise under replace_one adjacency: its cost is proved here for add_remove and "
      "zero_out only, as two records may take part in different steps");
}

}  // namespace

double CorrelatedSensitivity(double lambda, uint64_t participations, uint64_t separation) {
  const double b = static_cast<double>(separation), log = std::log(lambda), to_b = std::exp(b * log);
  double sum = 0, g = 0;
  for (uint64_t m = 0; m < participations; ++m) {
    g = 1 + to_b * g;
    sum += g * g;
  }
  // Exceeds the rounding of 2^20 terms.
  return std::sqrt(-std::expm1(2 * b * log) / ((1 - lambda) * (1 + lambda)) * sum) * (1 + 1e-9);
}

Result<Mechanism> CorrelatedGaussian(const CorrelatedGaussianOptions& o) {
  return Mechanism::Make(
      kCorrelatedGaussianKind,
      {o.noise_multiplier, o.lambda, static_cast<double>(o.participations), static_cast<double>(o.separation)}, o.runs,
      o.adjacency);
}

constinit const MechanismKind kCorrelatedGaussianKind{
    .word = "correlated_gaussian",
    .in_words = "Gaussian with correlated noise",
    .unit = "run",
    .is_sample = false,
    .sampling = "fixed participation",
    .participation =
        "each record took part in a fixed number of steps at equal distances, which need not be secret: no "
        "amplification by sampling is claimed; each step took back a part of the noise of the step before",
    .released = nullptr,
    .parameters = {{{"noise_multiplier", "noise multiplier", 1e-6, 1e12, "1e-6 to 1e12"},
                    {"lambda", "part taken back", 0, kBelowOne, "0 and above, below 1"},
                    {"participations", "steps of a record", 1, 0x1p20, "1 to 2^20", true},
                    {"separation", "steps from one to the next", 1, 0x1p32, "1 to 2^32", true}}},
    .steps_of_unit =
        [](const Mechanism& m) {
          return static_cast<uint64_t>(m.Parameter("participations") * m.Parameter("separation"));
        },
    .check = CheckCorrelated,
    .pure_epsilon = nullptr,
    .rdp = [](const Mechanism& m, double order) { return kGaussianKind.rdp(MakePlainGaussian(m), order); },
    .rdp_of_step = nullptr,
    .gdp_mu_squared = [](const Mechanism& m) { return kGaussianKind.gdp_mu_squared(MakePlainGaussian(m)); },
    .fits_grid = [](const Mechanism& m) { return kGaussianKind.fits_grid(MakePlainGaussian(m)); },
    .is_symmetric = [](const Mechanism&) { return true; },
    .as_one_gaussian = [](const Mechanism& m) { return kGaussianKind.as_one_gaussian(MakePlainGaussian(m)); },
    .range = [](const Mechanism& m, Direction d,
                Fineness fineness) { return kGaussianKind.range(MakePlainGaussian(m), d, fineness); },
    .discretise = [](const Mechanism& m, Direction d, double step,
                     Fineness fineness) { return kGaussianKind.discretise(MakePlainGaussian(m), d, step, fineness); },
    .compose_alone = nullptr,
    .is_no_more_than = nullptr,
    .rounded_up = nullptr,
};

}  // namespace wisp::privacy
