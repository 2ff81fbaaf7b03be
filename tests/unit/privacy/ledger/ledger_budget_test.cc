// Budgets whose parameters are chosen after looking: the counterexample to adding them up as if they were not, plans,
// and the promises of limits.
#include "runtime/privacy/ledger/ledger_budget.h"

#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/privacy/accounting/accountant.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_budget_test {
namespace {

Mechanism Gaussian(double sigma, uint64_t steps = 1) {
  return *Mechanism::Gaussian({.noise_multiplier = sigma, .count = steps});
}
Mechanism Subsampled(double sigma, double q, uint64_t steps = 1) {
  return *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = sigma, .sampling_probability = q, .steps = steps});
}
EpsilonDelta Limit(double epsilon, double delta) { return *EpsilonDelta::Create(epsilon, delta); }
double Pld(const std::vector<Mechanism>& mechanisms, double delta) {
  return *PldEpsilon(mechanisms, *Delta::Create(delta));
}
double Above(double x) { return 0.5 * std::erfc(x / std::sqrt(2)); }  // the tail of a standard normal

// Returns delta at epsilon of one step, with the record against without it, by the definition; any epsilon.
double ComputeDelta(const Mechanism& m, double epsilon) {
  const double s = m.noise_multiplier(), q = m.sampling_probability(), bound = std::exp(epsilon);
  if (bound <= 1 - q) return 1 - bound;
  const double x = s * s * std::log((bound - (1 - q)) / q) + 0.5;
  const double without = Above(x / s), with = (1 - q) * without + q * Above((x - 1) / s);
  return with - bound * without;
}

// Returns delta at epsilon of a Gaussian step after whose output, with its loss, the worse of the second steps is
// chosen.
double ComputeChoiceDelta(const Mechanism& first, const std::vector<Mechanism>& second, double epsilon) {
  const double mu = 1 / first.noise_multiplier(), step = 1e-3;
  double sum = 0;
  for (double z = -12; z <= 12; z += step) {
    double worst = 0;
    for (const Mechanism& m : second) worst = std::max(worst, ComputeDelta(m, epsilon - (mu * mu / 2 + mu * z)));
    sum += worst * std::exp(-z * z / 2) * step / std::sqrt(2 * M_PI);
  }
  return sum;
}

struct Choice {
  double epsilon, delta;
  Mechanism first;
  std::vector<Mechanism> second;
};
std::vector<Choice> Choices() {
  return {{1, 1e-6, Gaussian(6.04), {Gaussian(5.93), Subsampled(0.3, 2.95e-5)}},
          {8, 1e-5, Gaussian(0.7505), {Gaussian(1.003), Subsampled(0.2, 6.2e-5)}}};
}

class LedgerBudgetTest : public LedgerTest {
 protected:
  Ledger WithLimit(const EpsilonDelta& limit, const char* name = "l.ledger") {
    Ledger ledger = MustOpen(Path(name));
    EXPECT_TRUE(ledger.SetLimit(limit).ok());
    return ledger;
  }
};

// This rule adds up everything by PLD, as if it had been fixed beforehand, and compares the total at the limit's delta
// with its epsilon.
TEST_F(LedgerBudgetTest, AChoiceThatTheOldRuleAcceptsBreaksTheLimitAndIsRefused) {
  for (const Choice& c : Choices()) {
    for (const Mechanism& second : c.second) EXPECT_LE(Pld({c.first, second}, c.delta), c.epsilon) << second.Describe();
    const double truth = ComputeChoiceDelta(c.first, c.second, c.epsilon);
    std::printf("limit (%g, %g): one choice between two runs has delta %.3g at epsilon %g\n", c.epsilon, c.delta, truth,
                c.epsilon);
    EXPECT_GT(truth, 1.4 * c.delta);
    for (const Mechanism& second : c.second) {
      Ledger ledger = WithLimit(Limit(c.epsilon, c.delta), second.ToText().c_str());
      ASSERT_TRUE(ledger.Charge({.mechanism = c.first, .run = "first"}).ok());
      const Status refused = ledger.Charge({.mechanism = second, .run = "second"}).status();
      EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
      EXPECT_NE(refused.message().find("chosen after looking"), std::string::npos) << refused.message();
      // A run that declares the choice beforehand loses nothing.
      Ledger planned = WithLimit(Limit(c.epsilon, c.delta), ("p" + second.ToText()).c_str());
      const std::vector<ChargeRequest> both = {{.mechanism = c.first, .run = "both"},
                                               {.mechanism = second, .run = "both"}};
      ASSERT_TRUE(planned.WritePlan("both", "two runs", both).ok());
      for (const ChargeRequest& charge : both) EXPECT_TRUE(planned.Charge(charge).ok());
      EXPECT_EQ(*planned.Spent(*Delta::Create(c.delta)), Pld({c.first, second}, c.delta));
    }
  }
}

// Makes that choice with the least noise that the ledger accepts: the limit holds, but only just.
TEST_F(LedgerBudgetTest, TheWorstChoiceThatIsAcceptedKeepsTheLimit) {
  for (const Choice& c : Choices()) {
    const Mechanism first = Gaussian(1.5 * c.first.noise_multiplier());
    LedgerBudget ledger;
    ledger.Take(LedgerLimit{.seq = 1, .limit = Limit(c.epsilon, c.delta)});
    ledger.Take(LedgerEntry{.id = 1, .seq = 2, .mechanism = first});
    const auto most = [&](const std::function<Mechanism(double)>& of, double fits, double too_much) {
      for (int i = 0; i < 30; ++i) {
        const double middle = std::sqrt(fits * too_much);
        const ChargeRequest charge{.mechanism = of(middle), .run = "second"};
        (ledger.AfterCharge(charge).FindBreach()->has_value() ? too_much : fits) = middle;
      }
      return of(fits);
    };
    const std::vector<Mechanism> second = {most([](double sigma) { return Gaussian(sigma); }, 1e3, 1e-2),
                                           most([](double q) { return Subsampled(1, q); }, 1e-9, 1)};
    const double truth = ComputeChoiceDelta(first, second, c.epsilon);
    std::printf("limit (%g, %g): the worst choice that is accepted has delta %.3g\n", c.epsilon, c.delta, truth);
    EXPECT_LE(truth, c.delta);
    EXPECT_GT(truth, c.delta / 100);
  }
}

TEST_F(LedgerBudgetTest, WhatIsAboutToRunIsCounted) {
  Ledger ledger = WithLimit(Limit(2, 1e-6));
  ASSERT_TRUE(ledger.Charge({.mechanism = Gaussian(100), .run = "a"}).ok());
  ASSERT_TRUE(ledger.Charge({.mechanism = Gaussian(50), .run = "b"}).ok());
  EXPECT_EQ(ledger.Charge({.mechanism = Gaussian(0.5), .run = "c"}).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(ledger.Entries()->size(), 2u);
}

// Steps under the plan are part of every path that leaves it.
TEST_F(LedgerBudgetTest, StepsOfThePlanCountForWhatComesAfterIt) {
  const EpsilonDelta limit = Limit(2, 1e-6);
  const ChargeRequest planned{.mechanism = Gaussian(20, 60), .run = "plan"},
      other{.mechanism = Gaussian(21, 50), .run = "other"};
  ASSERT_LT(Pld({planned.mechanism}, 1e-6), 1.8);
  Ledger used = WithLimit(limit, "used"), unused = WithLimit(limit, "unused");
  for (Ledger* ledger : {&used, &unused}) ASSERT_TRUE(ledger->WritePlan("plan", "training", {&planned, 1}).ok());
  EXPECT_TRUE(unused.Charge(other).ok());
  ASSERT_TRUE(used.Charge(planned).ok());
  EXPECT_EQ(used.Charge(other).status().code(), StatusCode::kPrivacyRefused);
  // Charges outside of the plan also count when its steps are charged.
  EXPECT_EQ(unused.Charge(planned).status().code(), StatusCode::kPrivacyRefused);
}

Result<uint64_t> StepsThatFit(const Ledger& ledger, const Mechanism& all) {
  return ledger.StepsThatFit(all.steps(), [&](uint64_t steps) -> Result<std::vector<ChargeRequest>> {
    return std::vector<ChargeRequest>{{.mechanism = *all.WithSteps(steps), .run = "b"}};
  });
}

TEST_F(LedgerBudgetTest, StepsThatFit_AreCountedByTheFilterNotByPld) {
  Ledger ledger = WithLimit(Limit(2, 1e-6));
  ASSERT_TRUE(ledger.Charge({.mechanism = Gaussian(1000), .run = "a look"}).ok());
  const ChargeRequest steps{.mechanism = Subsampled(10, 0.2, 5000), .run = "b"};
  const uint64_t fit = *StepsThatFit(ledger, steps.mechanism);
  ASSERT_GT(fit, 100u);
  ASSERT_LT(fit, 5000u);
  const uint64_t more = fit + fit / 20;
  EXPECT_LE(Pld({Gaussian(1000), *steps.mechanism.WithSteps(more)}, 1e-6), 2);
  for (const auto& [number, fits] : {std::pair{more, false}, std::pair{fit + 1, false}, std::pair{fit, true}}) {
    EXPECT_EQ(ledger.Charge({.mechanism = *steps.mechanism.WithSteps(number), .run = "b"}).ok(), fits) << number;
  }
  EXPECT_EQ(*StepsThatFit(ledger, steps.mechanism), 0u);
}

TEST_F(LedgerBudgetTest, APlanIsFixedBeforeTheFirstLook) {
  Ledger ledger = WithLimit(Limit(2, 1e-6));
  const ChargeRequest planned{.mechanism = Gaussian(20, 60), .run = "late"};
  ASSERT_TRUE(ledger.Charge({.mechanism = Gaussian(100), .run = "a"}).ok());
  const Status late = ledger.WritePlan("late", "training", {&planned, 1});
  EXPECT_EQ(late.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(late.message().find("a plan made now"), std::string::npos) << late.message();
  ASSERT_TRUE(ledger.PlanRun({&planned, 1}).ok());
  EXPECT_TRUE(ledger.Plans()->empty());
  // A plan that stands in the rows all the same pays for nothing.
  LedgerBudget budget;
  budget.Take(LedgerEntry{.id = 1, .seq = 1, .mechanism = Gaussian(100)});
  budget.Take(LedgerPlan{.seq = 2, .mechanisms = {{planned.mechanism}}});
  EXPECT_EQ(budget.PlanFor(planned), 0u);
  budget.Take(LedgerEntry{.id = 2, .seq = 3, .mechanism = planned.mechanism, .plan = 2});
  EXPECT_EQ(budget.Figures(*Delta::Create(1e-6))->basis, LedgerFigures::Basis::kAdaptive);
}

TEST_F(LedgerBudgetTest, APlanPaysForItsMechanismsInAnyOrderAndNotForMore) {
  const std::vector<ChargeRequest> planned = {
      {.mechanism = Gaussian(20, 10), .run = "p", .loss_slack = 1e-6},
      {.mechanism = *Mechanism::RandomisedResponse({.support = 50, .lambda = 0.01, .count = 5}), .run = "p"}};
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.WritePlan("p", "a year", planned).ok());
  EXPECT_EQ(*ledger.Spent(AtDelta()), 0);
  const auto draws = [](uint64_t support, uint64_t count) {
    return *Mechanism::RandomisedResponse({.support = support, .lambda = 0.01, .count = count});
  };
  // Blocks in any order, a sample from the rest of the support, and any slack.
  for (const ChargeRequest& charge : {ChargeRequest{.mechanism = Gaussian(20, 4), .run = "p", .loss_slack = 4e-7},
                                      ChargeRequest{.mechanism = draws(49, 2), .run = "p"},
                                      ChargeRequest{.mechanism = Gaussian(20, 6), .run = "p", .loss_slack = 6e-7}}) {
    ASSERT_TRUE(ledger.Charge(charge).ok());
    const LedgerFigures figures = *ledger.Figures(AtDelta());
    EXPECT_EQ(figures.basis, LedgerFigures::Basis::kPlan);
    EXPECT_GE(figures.stated.epsilon, Pld({planned[0].mechanism, planned[1].mechanism}, 1e-6));
    ASSERT_TRUE(figures.used.has_value());
    EXPECT_LT(figures.used->epsilon, figures.stated.epsilon);
  }
  EXPECT_EQ(ledger.Entries()->back().plan, 1u);
  // A larger support, other noise, more steps or more slack than planned are not under the plan.
  LedgerBudget budget;
  budget.Take(LedgerPlan{.seq = 1, .mechanisms = {{planned[0].mechanism, 1e-6}, {planned[1].mechanism}}});
  EXPECT_EQ(budget.PlanFor({.mechanism = draws(50, 5)}), 1u);
  for (const Mechanism& other : {draws(51, 1), draws(50, 6), Gaussian(20, 11), Gaussian(21, 1)})
    EXPECT_EQ(budget.PlanFor({.mechanism = other}), 0u) << other.Describe();
  EXPECT_EQ(budget.PlanFor({.mechanism = Gaussian(20, 1), .loss_slack = 2e-6}), 0u);
  ASSERT_TRUE(ledger.Charge({.mechanism = Gaussian(20, 1), .run = "p"}).ok());
  EXPECT_EQ(ledger.Entries()->back().plan, 0u);
  EXPECT_EQ(ledger.Figures(AtDelta())->basis, LedgerFigures::Basis::kAdaptive);
  EXPECT_EQ(ledger.Charge({.mechanism = draws(50, 3), .run = "p"}).ok(), true);
}

TEST_F(LedgerBudgetTest, ARunsOwnPlanGivesWayToTheNextRunsWhileNothingWasCharged) {
  const ChargeRequest one{.mechanism = Gaussian(20, 10), .run = "one"},
      two{.mechanism = Gaussian(30, 10), .run = "two"};
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.PlanRun({&one, 1}).ok());
  ASSERT_TRUE(ledger.PlanRun({&one, 1}).ok());
  EXPECT_EQ(ledger.Plans()->size(), 1u);
  ASSERT_TRUE(ledger.PlanRun({&two, 1}).ok());
  EXPECT_EQ(ledger.Plans()->size(), 2u);
  ASSERT_TRUE(ledger.Charge(two).ok());
  EXPECT_EQ(*ledger.Spent(AtDelta()), Pld({two.mechanism}, 1e-6));
  Ledger fixed = MustOpen(Path("fixed"));
  ASSERT_TRUE(fixed.WritePlan("one", "a year", {&one, 1}).ok());
  ASSERT_TRUE(fixed.PlanRun({&two, 1}).ok());
  EXPECT_EQ(fixed.Plans()->size(), 1u);
  // A plan that exceeds the limit is refused; a run that does is charged as far as it fits.
  Ledger small = WithLimit(Limit(0.1, 1e-6), "small");
  EXPECT_EQ(small.WritePlan("one", "a year", {&one, 1}).code(), StatusCode::kPrivacyRefused);
  EXPECT_TRUE(small.PlanRun({&one, 1}).ok());
  EXPECT_TRUE(small.Plans()->empty());
}

// Total figures: by PLD while under the plan; the odometer's, and never less, once the plan is left; never above a
// limit that holds.
TEST_F(LedgerBudgetTest, FiguresSayWhichRuleTheyStandOnAndNeverFall) {
  Ledger ledger = MustOpen(Path()), limited = WithLimit(Limit(3, 1e-6), "limited");
  for (Ledger* l : {&ledger, &limited}) {
    EXPECT_EQ(l->Figures(AtDelta())->basis, LedgerFigures::Basis::kNothing);
    double before = 0;
    for (int i = 0; i < 4; ++i) {
      const Mechanism run = i % 2 == 0 ? Gaussian(12) : Subsampled(2, 0.02, 5);
      ASSERT_TRUE(l->Charge({.mechanism = run, .run = std::to_string(i)}).ok()) << i;
      const LedgerFigures figures = *l->Figures(AtDelta());
      EXPECT_EQ(figures.basis, i == 0 ? LedgerFigures::Basis::kPlan : LedgerFigures::Basis::kAdaptive);
      EXPECT_GE(figures.stated.epsilon, before);
      before = figures.stated.epsilon;
    }
    const double as_if_fixed = Pld({Gaussian(12, 2), Subsampled(2, 0.02, 10)}, 1e-6);
    EXPECT_GT(before, as_if_fixed);
    EXPECT_LT(before, 2.5 * as_if_fixed);
  }
  EXPECT_FALSE(ledger.Figures(AtDelta())->held_limit);
  EXPECT_EQ(limited.Figures(AtDelta())->held_limit->epsilon(), 3);
  const uint64_t more = *StepsThatFit(limited, Gaussian(12, 1000));
  ASSERT_TRUE(limited.Charge({.mechanism = Gaussian(12, more), .run = "more"}).ok());
  EXPECT_EQ(*limited.Spent(AtDelta()), 3);
}

TEST_F(LedgerBudgetTest, ALimitIsAPromiseOnlyWhereItWasSetBeforeAndNotRaised) {
  const auto figures = [](Ledger& ledger) { return *ledger.Figures(AtDelta()); };
  Ledger ledger = WithLimit(Limit(5, 1e-6));
  ASSERT_TRUE(ledger.SetLimit(Limit(4, 1e-6)).ok());  // before the first charge any limit may follow another
  ASSERT_TRUE(ledger.Charge({.mechanism = Gaussian(10), .run = "a"}).ok());
  EXPECT_EQ(figures(ledger).held_limit->epsilon(), 4);
  ASSERT_TRUE(ledger.SetLimit(Limit(2, 1e-6)).ok());
  ASSERT_TRUE(ledger.SetLimit(Limit(3, 1e-6)).ok());  // still below what was promised
  EXPECT_EQ(figures(ledger).held_limit->epsilon(), 4);
  EXPECT_FALSE(figures(ledger).limit_was_raised);
  ASSERT_TRUE(ledger.SetLimit(Limit(4, 2e-6)).ok());  // more delta is more
  EXPECT_FALSE(figures(ledger).held_limit);
  EXPECT_TRUE(figures(ledger).limit_was_raised);
  Ledger late = MustOpen(Path("late"));
  ASSERT_TRUE(late.Charge({.mechanism = Gaussian(10), .run = "a"}).ok());
  ASSERT_TRUE(late.SetLimit(Limit(4, 1e-6)).ok());
  EXPECT_TRUE(figures(late).limit_is_late);
  EXPECT_FALSE(figures(late).held_limit);
  EXPECT_FALSE(figures(late).limit_was_raised);
  // The limit is enforced all the same.
  EXPECT_FALSE(late.Charge({.mechanism = Gaussian(0.5), .run = "b"}).ok());
}

// Entries that did not pass a filter may exceed the limit: the ledger says so instead of promising it.
TEST_F(LedgerBudgetTest, ALimitThatEntriesPassIsNotPromised) {
  LedgerBudget budget;
  budget.Take(LedgerLimit{.seq = 1, .limit = Limit(2, 1e-6)});
  for (uint64_t seq = 2; seq < 62; ++seq)
    budget.Take(
        LedgerEntry{.id = static_cast<ChargeId>(seq - 1), .seq = seq, .mechanism = Subsampled(2, 0.1, seq % 2 + 6)});
  const LedgerFigures figures = *budget.Figures(AtDelta());
  EXPECT_GT(figures.stated.epsilon, 2);
  EXPECT_FALSE(figures.held_limit);
  EXPECT_TRUE((*budget.FindBreach()).has_value());
}

}  // namespace
}  // namespace wisp::privacy::ledger_budget_test
