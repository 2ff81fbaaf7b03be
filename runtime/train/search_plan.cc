#include "runtime/train/search_plan.h"

#include <algorithm>
#include <cmath>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/kinds/private_search.h"
#include "runtime/privacy/accounting/mechanism_kind.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/count_grid.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/trainer.h"

namespace wisp {
namespace {

using privacy::kRenyiOrders;
using privacy::Mechanism;

// The score has this many times the noise of a Gaussian that costs about as much as a run's steps: its share of a run's
// cost is a tenth.
constexpr double kScoreNoise = 3;
// Orders up to this many times the best one for the target are charged. Higher ones would ask for more noise of
// candidates with more steps, and no figure near the target uses them.
constexpr double kOrdersAboveBest = 2;

// A candidate's steps.
struct Steps {
  PrivacyPlan plan;
  double probability = 0;
  uint64_t count = 0;
  bool operator==(const Steps& other) const { return probability == other.probability && count == other.count; }

  Result<Mechanism> Make(double noise_multiplier) const {
    return Mechanism::PoissonSubsampledGaussian(
        {.noise_multiplier = noise_multiplier, .sampling_probability = probability, .steps = count});
  }
};

Result<Steps> MakeSteps(const Architecture& a, TrainingOptions o) {
  o.privacy.noise_multiplier = 1;
  if (o.num_steps == 0) return InvalidArgument("neither epochs nor steps are given");
  if (HasGradients(o) && !ReleasesHead(o)) {
    WISP_ASSIGN_OR_RETURN(PrivacyPlan plan, PrivacyPlan::Create(a, o));
    WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> steps, plan.Mechanisms(o.num_steps));
    if (steps.size() == 1 && &steps[0].kind() == &privacy::kPoissonSubsampledGaussianKind)
      return Steps{std::move(plan), steps[0].sampling_probability(), steps[0].steps()};
  }
  return PrivacyRefused(
      "a search needs runs whose steps all have the same Gaussian noise on a Poisson sample: its cost is proved for "
      "these");
}

// The least noise with which `steps` have no larger divergence than `charged` at any order up to the largest.
Result<double> FindEqualNoise(const Steps& steps, const Mechanism& charged, double largest_order) {
  const auto fits = [&](double noise_multiplier) -> Result<bool> {
    WISP_ASSIGN_OR_RETURN(const Mechanism own, steps.Make(noise_multiplier));
    return std::all_of(kRenyiOrders.begin(), kRenyiOrders.end(), [&](uint32_t order) {
      return order > largest_order || static_cast<double>(own.steps()) * StepRdp(own, order) <=
                                          static_cast<double>(charged.steps()) * StepRdp(charged, order);
    });
  };
  WISP_ASSIGN_OR_RETURN(const std::optional<double> found, FindNoiseThatFits(1e-2, 1e6, 1 + 1e-4, fits));
  if (!found) return PrivacyRefused("no noise makes a candidate's run as private as the first one's");
  return *found;
}

// The order at which a search meets the target.
double FindBestOrder(const Mechanism& search, double delta) {
  double best = privacy::kInfinity, order = kRenyiOrders.back();
  for (const uint32_t a : kRenyiOrders) {
    const double epsilon =
        StepRdp(search, a) + std::log1p(-1.0 / a) - (std::log(delta) + std::log(static_cast<double>(a))) / (a - 1.0);
    if (epsilon < best) best = epsilon, order = a;
  }
  return order;
}

class Planner {
 public:
  explicit Planner(const SearchRequest& request) : r_(request) {}

  Result<SearchPlan> Plan() {
    WISP_RETURN_IF_ERROR(Check());
    for (const TrainingOptions& candidate : r_.candidates) {
      WISP_ASSIGN_OR_RETURN(Steps steps, MakeSteps(r_.architecture, candidate));
      steps_.push_back(std::move(steps));
    }
    // The second time orders are bounded; later the slack is that of the noise which was found.
    for (int attempt = 0; attempt < 6; ++attempt) {
      WISP_ASSIGN_OR_RETURN(const double noise, FindNoise());
      WISP_ASSIGN_OR_RETURN(const Mechanism search, Make(noise));
      WISP_RETURN_IF_ERROR(FindOthers(noise));
      const double needed = LargestSlack(search.Parameter("score_noise_multiplier"));
      const bool is_enough = attempt > 0 && needed <= slack_;
      if (attempt == 0) largest_order_ = std::min(512.0, kOrdersAboveBest * FindBestOrder(search, r_.goal.delta));
      if (is_enough)
        return SearchPlan{.charge = {.mechanism = search, .run = r_.run, .purpose = kSearchPurpose},
                          .noise = noise_,
                          .score_noise = search.Parameter("score_noise_multiplier")};
      slack_ = std::max(slack_, needed) * 1.01 + 1e-12;
    }
    return PrivacyRefused("the target cannot be met: the integer grid of the noise alone costs too much");
  }

 private:
  Status Check() const {
    if (r_.candidates.empty()) return InvalidArgument("a search needs a candidate");
    if (r_.expected_runs < kFewestExpectedRuns || r_.expected_runs > kMostExpectedRuns)
      return InvalidArgument("the expected number of runs is ", r_.expected_runs, ", allowed are ", kFewestExpectedRuns,
                             " to ", kMostExpectedRuns);
    const std::vector<float> weights(FlatSize(ListParameters(r_.architecture)));
    for (TrainingOptions o : r_.candidates) {
      if (o.num_records_public == 0)
        return PrivacyRefused("a private search needs the number of records declared as public (num_records_public)");
      if (o.privacy.reproducible_seed) return PrivacyRefused("a private search has no repeatable noise");
      WISP_RETURN_IF_ERROR(CheckPrivacyGoal(r_.goal, o.num_records_public));
      o.privacy.noise_multiplier = 1;
      const size_t held = FirstHeld(ListParameters(r_.architecture), o);
      WISP_RETURN_IF_ERROR(Trainer::Check(r_.architecture, std::span(weights).subspan(held), {}, o));
    }
    return OkStatus();
  }

  // The search, if the first candidate's steps have this noise.
  Result<Mechanism> Make(double noise) const {
    const Steps& first = steps_.front();
    WISP_ASSIGN_OR_RETURN(const Mechanism steps, first.Make(noise));
    const double mu = std::sqrt(steps.kind().gdp_mu_squared(steps));
    return privacy::PrivateSearch({.noise_multiplier = noise,
                                   .sampling_probability = first.probability,
                                   .run_steps = first.count,
                                   .score_noise_multiplier = std::clamp(kScoreNoise / mu, 0.01, 1e5),
                                   .loss_slack = slack_,
                                   .expected_runs = r_.expected_runs,
                                   .largest_order = static_cast<uint32_t>(largest_order_)});
  }

  // The first candidate's noise.
  Result<double> FindNoise() const {
    if (r_.goal.noise_multiplier) return *r_.goal.noise_multiplier;
    WISP_ASSIGN_OR_RETURN(const auto target,
                          privacy::EpsilonDelta::Create(*r_.goal.epsilon * (1 - 1e-6), r_.goal.delta * (1 - 1e-6)));
    const auto searches = [&](double noise) -> Result<std::vector<Mechanism>> {
      WISP_ASSIGN_OR_RETURN(const Mechanism search, Make(noise));
      return std::vector{search};
    };
    WISP_ASSIGN_OR_RETURN(
        const privacy::Calibration found,
        privacy::CalibrateNoise({.target = target, .steps = steps_.front().count, .mechanisms = searches}));
    return found.noise_multiplier;
  }

  // The noise of all candidates.
  Status FindOthers(double first) {
    WISP_ASSIGN_OR_RETURN(const Mechanism charged, steps_.front().Make(first));
    noise_.assign(1, first);
    for (size_t i = 1; i < steps_.size(); ++i) {
      const auto same = std::find(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(i), steps_[i]);
      const auto index = static_cast<size_t>(same - steps_.begin());
      if (index < i) {
        noise_.push_back(noise_[index]);
        continue;
      }
      WISP_ASSIGN_OR_RETURN(const double own, FindEqualNoise(steps_[i], charged, largest_order_));
      noise_.push_back(own);
    }
    return OkStatus();
  }

  // How far the noise of a run is from the Gaussian that is accounted for, its score's included.
  double LargestSlack(double score_noise) const {
    double largest = 0;
    for (size_t i = 0; i < steps_.size(); ++i)
      largest = std::max(largest, steps_[i].plan.LossSlack(r_.candidates[i].num_steps, noise_[i]));
    return largest + privacy::DiscretisationLoss(
                         {.sigma_in_steps = CountSigma(score_noise), .num_coordinates = 1, .num_steps = 1});
  }

  const SearchRequest& r_;
  std::vector<Steps> steps_;
  std::vector<double> noise_;
  double slack_ = 0, largest_order_ = kRenyiOrders.back();
};

}  // namespace

Result<SearchPlan> PlanSearch(const SearchRequest& request) { return Planner(request).Plan(); }

Result<privacy::ChargeId> ChargeSearch(const SearchPlan& plan, const std::optional<privacy::EpsilonDelta>& new_limit,
                                       privacy::Ledger& ledger) {
  const std::vector<privacy::ChargeRequest> charges = {plan.charge};
  if (new_limit) WISP_RETURN_IF_ERROR(ledger.CheckLimit(*new_limit));
  WISP_RETURN_IF_ERROR(ledger.CheckFits(charges, new_limit));
  if (new_limit) WISP_RETURN_IF_ERROR(ledger.SetLimit(*new_limit));
  WISP_RETURN_IF_ERROR(ledger.PlanRun(charges));
  return ledger.Charge(plan.charge);
}

Status CheckRunIsPaid(const SearchPlan& plan, const privacy::Ledger& of_run) {
  const privacy::RenyiSums paid = privacy::RunRdp(plan.charge.mechanism);
  WISP_ASSIGN_OR_RETURN(const auto entries, of_run.Entries());
  WISP_ASSIGN_OR_RETURN(const auto score, MakeCharge({.noise_multiplier = plan.score_noise,
                                                      .sigma_in_steps = CountSigma(plan.score_noise),
                                                      .num_coordinates = 1}));
  privacy::RenyiPath path;
  path.Add(score.mechanism, score.loss_slack);
  for (const privacy::LedgerEntry& e : entries) {
    if (e.noise != privacy::NoiseKind::kSecure) return PrivacyRefused("a run of the search had repeatable noise");
    path.Add(e.mechanism, e.loss_slack);
  }
  for (size_t j = 0; j < paid.size(); ++j) {
    // The sums are rounded up once a charge.
    if (path.sums()[j] > paid[j] * (1 + 1e-6))
      return PrivacyRefused("a run of the search cost more than one that was charged: nothing of it is released");
  }
  return OkStatus();
}

}  // namespace wisp
