// Records in parts: a charge for one part costs the other nothing, a charge for all costs both, and a limit holds for
// each.
#include "runtime/privacy/ledger/ledger_parts.h"

#include <sqlite3.h>

#include <cmath>
#include <vector>

#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_parts_test {
namespace {

// Runs SQL as another program would, with triggers on or off.
bool Sql(const std::string& path, const char* sql, bool triggers) {
  sqlite3* handle = nullptr;
  sqlite3_open(path.c_str(), &handle);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, triggers ? 1 : 0, nullptr);
  const int code = sqlite3_exec(handle, sql, nullptr, nullptr, nullptr);
  sqlite3_close(handle);
  return code == SQLITE_OK;
}

Mechanism Gaussian(double sigma, uint64_t steps = 1) {
  return *Mechanism::Gaussian({.noise_multiplier = sigma, .count = steps});
}
ChargeRequest Of(RecordPart part, const Mechanism& mechanism) {
  return {.mechanism = mechanism, .run = std::string(ToText(part)), .part = part};
}
double Pld(const std::vector<Mechanism>& mechanisms) { return *PldEpsilon(mechanisms, AtDelta()); }

constexpr RecordPart kAll = RecordPart::kAll, kTraining = RecordPart::kTraining, kEvaluation = RecordPart::kEvaluation;

class LedgerPartsTest : public LedgerTest {
 protected:
  Ledger Divided(const char* name = "l.ledger") {
    Ledger ledger = MustOpen(Path(name));
    EXPECT_TRUE(ledger.Split(0.2).ok());
    return ledger;
  }
  // Makes a plan for each part, so that all figures are PLD's.
  void Plan(Ledger& ledger, const ChargeRequest& charge) {
    const Status status = ledger.WritePlan("plan", "a year", {&charge, 1});
    EXPECT_TRUE(status.ok()) << status.message();
  }
};

TEST_F(LedgerPartsTest, TheDataSetCostsWhatItsDearestPartCosts) {
  Ledger ledger = Divided();
  const ChargeRequest training = Of(kTraining, Steps(500, 2)), evaluation = Of(kEvaluation, Gaussian(10, 12));
  Plan(ledger, training);
  Plan(ledger, evaluation);
  ASSERT_TRUE(ledger.Charge(training).ok());
  const double alone = *ledger.Spent(AtDelta());
  EXPECT_EQ(alone, Pld({training.mechanism}));
  ASSERT_LT(Pld({evaluation.mechanism}), alone);
  ASSERT_TRUE(ledger.Charge(evaluation).ok());
  EXPECT_EQ(*ledger.Spent(AtDelta()), alone) << "evaluation costs nothing while its part stays below training's";
  const LedgerFigures figures = *ledger.Figures(AtDelta());
  ASSERT_EQ(figures.parts.size(), 2u);
  EXPECT_EQ(figures.parts[1].part, kEvaluation);
  EXPECT_EQ(figures.parts[1].stated.epsilon, Pld({evaluation.mechanism}));
  EXPECT_EQ(figures.basis, LedgerFigures::Basis::kPlan);
}

TEST_F(LedgerPartsTest, ChargesForAllRecords_CountForEachPart) {
  Ledger ledger = MustOpen(Path());
  ASSERT_TRUE(ledger.Charge(Of(kAll, Gaussian(30))).ok());  // before the split
  ASSERT_TRUE(ledger.Split(0.2).ok());
  ASSERT_TRUE(ledger.Charge(Of(kAll, Gaussian(40))).ok());
  LedgerFigures figures = *ledger.Figures(AtDelta());
  ASSERT_EQ(figures.parts.size(), 2u);
  EXPECT_EQ(figures.parts[0].stated.epsilon, figures.parts[1].stated.epsilon);
  const double both = figures.stated.epsilon;
  EXPECT_GE(both, Pld({Gaussian(30), Gaussian(40)}));
  ASSERT_TRUE(ledger.Charge(Of(kTraining, Gaussian(20))).ok());
  figures = *ledger.Figures(AtDelta());
  EXPECT_GE(figures.parts[0].stated.epsilon, Pld({Gaussian(30), Gaussian(40), Gaussian(20)}));
  EXPECT_EQ(figures.parts[1].stated.epsilon, both);
  EXPECT_EQ(figures.stated.epsilon, figures.parts[0].stated.epsilon);
}

TEST_F(LedgerPartsTest, ALimitHoldsForEachPart) {
  Ledger ledger = Divided();
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(1)).ok());
  const ChargeRequest training = Of(kTraining, Gaussian(8, 1)), evaluation = Of(kEvaluation, Gaussian(8, 1));
  uint64_t num_training = 0, num_evaluation = 0;
  constexpr uint64_t kTooMany = 100;
  while (num_training < kTooMany && ledger.Charge(training).ok()) ++num_training;
  while (num_evaluation < kTooMany && ledger.Charge(evaluation).ok()) ++num_evaluation;
  EXPECT_GT(num_training, 0u);
  EXPECT_LT(num_training, kTooMany);
  EXPECT_EQ(num_training, num_evaluation) << "one part's charges take nothing from the other's budget";
  const Status refused = ledger.Charge(evaluation).status();
  EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.message().find("the evaluation records"), std::string::npos) << refused.message();
  EXPECT_FALSE(ledger.Charge(Of(kAll, Gaussian(8))).ok());
  EXPECT_EQ(ledger.CheckFits({&training, 1}).code(), StatusCode::kPrivacyRefused);
  EXPECT_LE(*ledger.Spent(AtDelta()), 1);
  EXPECT_EQ(ledger.CheckLimit(MakeLimit(0.2)).code(), StatusCode::kPrivacyRefused);
}

// The first charge of either part makes a limit late, so it promises nothing for the other part either. It is enforced
// for both, and a part that already exceeds it gets nothing more.
TEST_F(LedgerPartsTest, ALimitAfterAPartsChargeIsLateForBoth) {
  Ledger ledger = Divided();
  ASSERT_TRUE(ledger.Charge(Of(kTraining, Gaussian(2))).ok());
  const double spent = *ledger.Spent(AtDelta());
  ASSERT_GT(spent, 1);
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(1)).ok());
  const auto is_late = [&](const LedgerFigures& f) { return f.limit_is_late && !f.held_limit && !f.limit_was_raised; };
  EXPECT_TRUE(is_late(*ledger.Figures(AtDelta())));
  EXPECT_EQ(ledger.Charge(Of(kTraining, Gaussian(1000))).status().code(), StatusCode::kPrivacyRefused);
  ASSERT_TRUE(ledger.Charge(Of(kEvaluation, Gaussian(8))).ok()) << "the evaluation records are below the limit";
  EXPECT_FALSE(ledger.Charge(Of(kEvaluation, Gaussian(1))).ok());
  EXPECT_FALSE(ledger.Charge(Of(kAll, Gaussian(1000))).ok());
  const LedgerFigures figures = *ledger.Figures(AtDelta());
  EXPECT_TRUE(is_late(figures));
  EXPECT_EQ(figures.stated.epsilon, spent) << "what is refused costs nothing";
  EXPECT_LT(figures.parts[1].stated.epsilon, 1);
  // The limit is late even if the part that was charged first is not the more expensive one.
  Ledger cheap = Divided("cheap");
  ASSERT_TRUE(cheap.Charge(Of(kTraining, Gaussian(50))).ok());
  ASSERT_TRUE(cheap.SetLimit(MakeLimit(5)).ok());
  ASSERT_TRUE(cheap.Charge(Of(kEvaluation, Gaussian(5))).ok());
  const LedgerFigures dearest = *cheap.Figures(AtDelta());
  ASSERT_EQ(dearest.stated.epsilon, dearest.parts[1].stated.epsilon);
  EXPECT_TRUE(is_late(dearest));
}

TEST_F(LedgerPartsTest, APlanOfAPartIsFixedBeforeItsFirstLook) {
  Ledger ledger = Divided();
  ASSERT_TRUE(ledger.Charge(Of(kTraining, Gaussian(20))).ok());
  // Training looked at its records, but nobody looked at the evaluation records.
  const ChargeRequest evaluation = Of(kEvaluation, Gaussian(10, 12)), more = Of(kTraining, Gaussian(30, 3));
  EXPECT_EQ(ledger.WritePlan("late", "", {&more, 1}).code(), StatusCode::kPrivacyRefused);
  Plan(ledger, evaluation);
  EXPECT_TRUE(*ledger.Covers({&evaluation, 1}));
  ASSERT_TRUE(ledger.Charge(Of(kEvaluation, Gaussian(10, 5))).ok());
  EXPECT_EQ(ledger.Entries()->back().plan, 3u);
  const LedgerFigures figures = *ledger.Figures(AtDelta());
  EXPECT_EQ(figures.parts[1].basis, LedgerFigures::Basis::kPlan);
  EXPECT_EQ(figures.parts[1].stated.epsilon, Pld({evaluation.mechanism}));
  EXPECT_LT(figures.parts[1].used->epsilon, figures.parts[1].stated.epsilon);
  // A plan pays only for charges of its part.
  ASSERT_TRUE(ledger.Charge(Of(kTraining, Gaussian(10))).ok());
  EXPECT_EQ(ledger.Entries()->back().plan, 0u);
  // A charge for all records is a look at each part.
  ASSERT_TRUE(Divided("all").Charge(Of(kAll, Gaussian(30))).ok());
  Ledger all = MustOpen(Path("all"));
  EXPECT_EQ(all.WritePlan("late", "", {&evaluation, 1}).code(), StatusCode::kPrivacyRefused);
}

TEST_F(LedgerPartsTest, PlansOfAPartAndOfAllCountTogether) {
  Ledger ledger = Divided();
  const ChargeRequest all = Of(kAll, Gaussian(30)), training = Of(kTraining, Steps(100, 2));
  Plan(ledger, all);
  Plan(ledger, training);
  ASSERT_TRUE(ledger.Charge(all).ok());
  ASSERT_TRUE(ledger.Charge(training).ok());
  const LedgerFigures figures = *ledger.Figures(AtDelta());
  EXPECT_EQ(figures.basis, LedgerFigures::Basis::kPlan);
  EXPECT_EQ(figures.parts[0].stated.epsilon, Pld({all.mechanism, training.mechanism}));
  EXPECT_EQ(figures.parts[1].stated.epsilon, Pld({all.mechanism}));
  // Each pays for its own: a plan for all records does not cover a part's charge.
  Ledger other = Divided("other");
  Plan(other, all);
  ASSERT_TRUE(other.Charge(Of(kTraining, Gaussian(30))).ok());
  EXPECT_EQ(other.Entries()->back().plan, 0u);
}

TEST_F(LedgerPartsTest, ARunOfAPartPlansForItself) {
  Ledger ledger = Divided();
  const ChargeRequest training = Of(kTraining, Steps(100, 2));
  ASSERT_TRUE(ledger.PlanRun({&training, 1}).ok());
  ASSERT_EQ(ledger.Plans()->size(), 1u);
  EXPECT_EQ(ledger.Plans()->front().part, kTraining);
  ASSERT_TRUE(ledger.Charge(Of(kTraining, Steps(50, 2))).ok());
  EXPECT_EQ(ledger.Figures(AtDelta())->basis, LedgerFigures::Basis::kPlan);
  EXPECT_EQ(*ledger.Spent(AtDelta()), Pld({training.mechanism}));
}

TEST_F(LedgerPartsTest, RecordsAreDividedOnceAndOnlyUnderAddRemove) {
  Ledger ledger = Divided();
  const LedgerSplit split = **ledger.TheSplit();
  EXPECT_EQ(split.evaluation_share, 0.2);
  EXPECT_EQ(split.salt.size(), kSplitSaltBytes);
  EXPECT_TRUE(ledger.Split(0.2).ok());
  EXPECT_EQ((**MustOpen(Path("l.ledger")).TheSplit()).salt, split.salt);
  const Status again = ledger.Split(0.3);
  EXPECT_EQ(again.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(again.message().find("this happens once"), std::string::npos) << again.message();
  EXPECT_NE((**Divided("other").TheSplit()).salt, split.salt);
  for (const double share : {0.0, 1.0, -1.0, std::nan("")})
    EXPECT_EQ(ledger.Split(share).code(), StatusCode::kInvalidArgument) << share;
  LedgerOptions options = kOptions;
  options.adjacency = Adjacency::kReplaceOne;
  Ledger replace = *Ledger::Open(Path("replace"), options);
  EXPECT_EQ(replace.Split(0.2).code(), StatusCode::kUnsupported);
  Ledger whole = MustOpen(Path("whole"));
  EXPECT_EQ(whole.Charge(Of(kEvaluation, Gaussian(20))).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(whole.TheSplit()->has_value());
  const ChargeRequest mixed[] = {Of(kTraining, Gaussian(20)), Of(kEvaluation, Gaussian(20))};
  EXPECT_EQ(ledger.CheckFits(mixed).code(), StatusCode::kInvalidArgument);
}

TEST_F(LedgerPartsTest, ResultsStayWithTheirCharges) {
  Ledger ledger = Divided();
  const ChargeId id = *ledger.Charge(Of(kEvaluation, Gaussian(20)));
  const double spent = *ledger.Spent(AtDelta());
  ASSERT_TRUE(ledger.AddResult(id, R"({"sum":3})").ok());
  EXPECT_EQ(ledger.AddResult(id + 1, "").code(), StatusCode::kInvalidArgument);
  const std::vector<LedgerResult> results = *MustOpen(Path("l.ledger")).Results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].entry, id);
  EXPECT_EQ(results[0].text, R"({"sum":3})");
  EXPECT_EQ(*ledger.Spent(AtDelta()), spent);
}

// A charge that changes sides, a split with another share and a result that was not released are noticed, and so are
// charges of parts if nothing divides the records.
TEST_F(LedgerPartsTest, ChangesInTheFile_AreNoticed) {
  const char* const kChanges[] = {
      "UPDATE entries SET part = 'evaluation'",
      "UPDATE splits SET evaluation_share = 0.9",
      "UPDATE results SET text = 'other'",
      "UPDATE plans SET settings = 'other'",
      "UPDATE plans SET part = 'evaluation'",
      "DELETE FROM splits",
      "DELETE FROM results",
      "INSERT INTO splits SELECT 9, time, 0.5, salt, chain FROM splits",
  };
  for (const char* change : kChanges) {
    const std::string path = Path(change);
    {
      Ledger ledger = Divided(change);
      const ChargeRequest training = Of(kTraining, Gaussian(20));
      ASSERT_TRUE(ledger.WritePlan("p", "", {&training, 1}, "{}").ok());
      const ChargeId id = *ledger.Charge(training);
      ASSERT_TRUE(ledger.AddResult(id, "1").ok());
    }
    EXPECT_FALSE(Sql(path, change, /*triggers=*/true)) << change;
    EXPECT_TRUE(Ledger::Open(path, kOptions).ok());
    ASSERT_TRUE(Sql(path, change, /*triggers=*/false)) << change;
    EXPECT_EQ(Ledger::Open(path, kOptions).status().code(), StatusCode::kInvalidData) << change;
  }
  LedgerParts parts;
  EXPECT_FALSE(parts.Take(LedgerEntry{.id = 1, .seq = 1, .mechanism = Gaussian(20), .part = kEvaluation}).ok());
  EXPECT_FALSE(parts.Take(LedgerPlan{.seq = 1, .mechanisms = {{Gaussian(20)}}, .part = kEvaluation}).ok());
  EXPECT_TRUE(parts.Take(LedgerSplit{.seq = 1, .evaluation_share = 0.5, .salt = "x"}).ok());
  EXPECT_FALSE(parts.Take(LedgerSplit{.seq = 2, .evaluation_share = 0.5, .salt = "x"}).ok());
}

}  // namespace
}  // namespace wisp::privacy::ledger_parts_test
