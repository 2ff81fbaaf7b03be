// Built for speed: sums over every order, within searches.

// The cost of a search whose number of runs has the Poisson distribution with mean mu.
//
// Let Q be one run and Q' the same with a neighbour's data, D_a their Renyi divergence at order a, and
// f(x) = e^(mu (x - 1)) the generating function of the number of runs. Outcomes y are ordered by their score, ties by
// chance. With F the distribution function of Q, P(the best is y) = Q(y) E_t f'(F(below y) + t Q(y)) for t uniform on
// [0, 1]. By the joint convexity of u^a v^(1 - a), the moment of order a of the best is at most
//     f(0) + e^((a - 1) D_a) max f'(1 - p)^a f'(1 - p')^(1 - a),
// where f(0) is that no run was sampled, and p, p' are the probabilities of one event (the score is higher) under Q and
// Q'. As f'(x) = mu e^(mu (x - 1)), the product is mu exp(mu ((a - 1) p' - a p)). If a run is (e, d)-private with
// e^e <= a / (a - 1), then p' <= e^e p + d makes it at most mu exp(mu (a - 1) d). Hence
//     D_a(search) <= log(e^-mu + mu e^((a - 1) (D_a + mu d))) / (a - 1),
// which is theorem 6 of Papernot and Steinke 2022, with the case of no run. Both directions are alike, as D_a is the
// larger of them. d follows from the run's own divergences (Canonne, Kamath, Steinke 2020, proposition 12).
//
// A run takes its candidate by chance: e^((a - 1) D_a) is then at most the largest among the candidates, by the joint
// convexity again.
#include "runtime/privacy/accounting/kinds/private_search.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/core/platform.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/kinds/rounding.h"
#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

// Exceeds the rounding of the few operations of a bound.
constexpr double kRoundUp = 1 + 1e-10;

// The smallest d with which a run is (log(a / (a - 1)), d)-private, as far as its divergences say.
double DeltaOfRun(const RenyiSums& run, double a) {
  const double epsilon = -std::log1p(-1 / a) * (1 - 1e-12);
  double log_delta = 0;
  for (size_t j = 0; j < run.size(); ++j) {
    const double b = kRenyiOrders[j];
    log_delta = std::min(log_delta, (b - 1) * (run[j] - epsilon + std::log1p(-1 / b)) - std::log(b));
  }
  return std::exp(log_delta) * kRoundUp;
}

// The divergences of one search.
RenyiSums SearchRdp(const Mechanism& m) {
  // Calibration and filters ask for the same search at one order after another.
#if defined(_WIN32)
  auto& newest = platform::PerThread<std::optional<std::pair<Mechanism, RenyiSums>>>();
#else
  static thread_local std::optional<std::pair<Mechanism, RenyiSums>> newest;
#endif
  if (newest && newest->first.DiffersInStepsOnly(m)) return newest->second;
  const RenyiSums run = RunRdp(m);
  const double mu = m.Parameter("expected_runs");
  RenyiSums search;
  for (size_t j = 0; j < search.size(); ++j) {
    const double a = kRenyiOrders[j];
    const double of_best = std::log(mu) + (a - 1) * (run[j] + mu * DeltaOfRun(run, a));
    search[j] = LogAddExp(-mu, of_best) / (a - 1) * kRoundUp;
  }
  newest.emplace(m, search);
  return search;
}

// Between two orders the logarithm of the moment, (a - 1) times the divergence, lies below the line through theirs: it
// is convex. At order 1 it is 0.
double TotalRdp(const Mechanism& m, double order) {
  if (!(order <= kRenyiOrders.back())) return kInfinity;
  const RenyiSums search = SearchRdp(m);
  double low = 1, low_moment = 0;
  for (size_t j = 0; j < search.size(); ++j) {
    const double high = kRenyiOrders[j], high_moment = (high - 1) * search[j];
    if (order <= high) {
      const double part = (order - low) / (high - low);
      return static_cast<double>(m.steps()) * ((1 - part) * low_moment + part * high_moment) / (order - 1);
    }
    low = high, low_moment = high_moment;
  }
  return kInfinity;
}

Status CheckSearch(const Mechanism& m) {
  if (m.adjacency() == Adjacency::kAddRemove) return OkStatus();
  return PrivacyRefused("a private search under ", std::string(ToText(m.adjacency())),
                        " adjacency: its runs' cost is proved here for add_remove only");
}

}  // namespace

Result<Mechanism> PrivateSearch(const PrivateSearchOptions& o) {
  return Mechanism::Make(kPrivateSearchKind,
                         {o.noise_multiplier, o.sampling_probability, static_cast<double>(o.run_steps),
                          o.score_noise_multiplier, o.loss_slack, static_cast<double>(o.expected_runs),
                          static_cast<double>(o.largest_order)},
                         o.searches, o.adjacency);
}

RenyiSums RunRdp(const Mechanism& search) {
  const Mechanism step = *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = search.noise_multiplier(),
                                                                .sampling_probability = search.sampling_probability(),
                                                                .steps = 1}),
                  score = *Mechanism::Gaussian({.noise_multiplier = search.Parameter("score_noise_multiplier")});
  const double slack = search.Parameter("loss_slack"), steps = search.Parameter("run_steps");
  RenyiSums run;
  for (size_t j = 0; j < run.size(); ++j) {
    const double a = kRenyiOrders[j];
    run[j] = kInfinity;
    if (a > search.Parameter("largest_order")) continue;
    run[j] =
        (steps * StepRdp(step, kRenyiOrders[j]) + StepRdp(score, kRenyiOrders[j]) + slack * (2 * a - 1) / (a - 1)) *
        kRoundUp;
  }
  return run;
}

constinit const MechanismKind kPrivateSearchKind{
    .word = "private_search",
    .in_words = "private search",
    .unit = "search",
    .is_sample = false,
    .sampling = "poisson",
    .participation =
        "every record entered every step of every run of a search independently (Poisson), and every run's score",
    .released =
        "the weights of the best run of each search, the values that it was made with, and all that is computed "
        "from these",
    .parameters = {{kNoiseMultiplier,
                    {"sampling_probability", "sampling probability", kAboveZero, 1, "above 0 and up to 1"},
                    {"run_steps", "steps of a run", 1, 0x1p40, "1 to 2^40", true},
                    {"score_noise_multiplier", "noise multiplier of a run's score", kAboveZero, 1e12,
                     "a positive number up to 1e12"},
                    {"loss_slack", "distance of a run's noise", 0, 1, "0 to 1"},
                    {"expected_runs", "expected runs", 1, 1e6, "1 to 1e6", true},
                    {"largest_order", "largest order", 2, 512, "2 to 512", true}}},
    .steps_of_unit = nullptr,
    .check = CheckSearch,
    .pure_epsilon = nullptr,
    .rdp = TotalRdp,
    .rdp_of_step = nullptr,
    .gdp_mu_squared = nullptr,
    .fits_grid = [](const Mechanism&) { return false; },
    .is_symmetric = [](const Mechanism&) { return true; },
    .as_one_gaussian = nullptr,
    .range = nullptr,
    .discretise = nullptr,
    .compose_alone = nullptr,
    .is_no_more_than = nullptr,
    .rounded_up = nullptr,
};

}  // namespace wisp::privacy
