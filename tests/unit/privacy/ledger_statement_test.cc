// The statement of a whole ledger: one figure over everything, its parts by purpose, both figures of samples, and who
// set them.
#include "runtime/privacy/ledger_statement.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/privacy/accounting/kinds/correlated_gaussian.h"
#include "runtime/privacy/accounting/kinds/private_search.h"
#include "runtime/privacy/accounting/kinds/random_allocation.h"
#include "tests/unit/privacy/accounting/sampling_test_util.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::privacy::ledger_statement_test {
namespace {

const Mechanism kTraining =
    *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1.2, .sampling_probability = 0.02, .steps = 50});
const Mechanism kSelection = *Mechanism::Gaussian({.noise_multiplier = 20});
constexpr double kDelta = 1e-6, kTiny = 1e-300;  // at the second nothing is below pure

TEST(StateEpsilon, NamesTheAccountantThatSetTheFigure) {
  const auto state = [](const std::vector<Mechanism>& m, double delta = kDelta) {
    return *StateEpsilon(m, DeltaAt(delta));
  };
  EXPECT_EQ(state({kTraining}).accountant, Accountant::kPld);
  EXPECT_EQ(state({Response(10000, 1e-4, 100)}).accountant, Accountant::kPld);
  EXPECT_EQ(state({Range(1)}, kTiny).accountant, Accountant::kPure);
  EXPECT_EQ(state({Range(0.02, 5000)}).accountant, Accountant::kRdp);
  EXPECT_EQ(state({Range(0.02, 5000)}).epsilon, *RdpEpsilon(std::vector{Range(0.02, 5000)}, DeltaAt(kDelta)));
  for (const auto& m : {kTraining, Response(10000, 1e-4, 100), Range(0.02, 5000)})
    EXPECT_EQ(state({m}).epsilon, Pld({m}, kDelta));
}

class LedgerStatementTest : public ::testing::Test {
 protected:
  LedgerStatementTest()
      : ledger_(*Ledger::Open(folder_ / "l",
                              {.dataset = "history",
                               .record = RecordSpec::OfEvents({.unit = PrivacyUnit::kSession, .session_gap = 1800})})) {
  }
  void Charge(const Mechanism& m, const char* purpose, NoiseKind noise = NoiseKind::kSecure, double slack = 0) {
    ASSERT_TRUE(
        ledger_.Charge({.mechanism = m, .run = "run", .purpose = purpose, .noise = noise, .loss_slack = slack}).ok());
  }
  PrivacyStatement Stated(double delta = kDelta) { return *MakeStatement(ledger_, "l", DeltaAt(delta)); }

  test::TemporaryFolder folder_;
  Ledger ledger_;
};

TEST_F(LedgerStatementTest, WhatWasTunedIsThereOnce) {
  Charge(kTraining, "training");
  EXPECT_TRUE(Stated().uncharged_tuning.empty());
  for (const char* tuning : {"the rate", "the rate", "the batch", ""}) {
    ASSERT_TRUE(ledger_.Charge({.mechanism = kTraining, .run = WithTuning("a run", tuning)}).ok());
  }
  EXPECT_EQ(Stated().uncharged_tuning, (std::vector<std::string>{"the rate", "the batch"}));
  EXPECT_EQ(WithTuning("a run", ""), "a run");
  EXPECT_EQ(ParseTuning("a run"), "");
}

// For texts the unit alone says little.
TEST_F(LedgerStatementTest, SaysWhatARecordIs) {
  Charge(kTraining, "training");
  EXPECT_NE(ToText(Stated()).find("one record is: the events of one user without a pause of more than 1800 seconds"),
            std::string::npos);
  const auto stated = [&](const char* kind, PrivacyUnit unit) {
    const std::string path = folder_ / (kind + std::string(ToText(unit)));
    Ledger ledger = *Ledger::Open(path, {.dataset = "history", .record = RecordSpec::OfTexts(unit, kind)});
    EXPECT_TRUE(ledger.Charge({.mechanism = kTraining, .run = "r"}).ok());
    return *MakeStatement(ledger, "l", DeltaAt(kDelta));
  };
  const PrivacyStatement lines = stated("line", PrivacyUnit::kInteraction);
  const std::string of_lines = ToText(lines), of_chunks = ToText(stated("chunk:64", PrivacyUnit::kInteraction));
  for (const char* part : {"one record is: one line of text: who wrote k of them is protected less",
                           "not protected: whoever wrote several of the records", "not protected: the tokenizer"})
    EXPECT_NE(of_lines.find(part), std::string::npos) << part << " is missing in\n" << of_lines;
  for (const char* part : {"one record is: one chunk of 64 bytes of text: no person",
                           "not protected: any person: whoever wrote the text", "not protected: the tokenizer"})
    EXPECT_NE(of_chunks.find(part), std::string::npos) << part << " is missing in\n" << of_chunks;
  EXPECT_EQ(nlohmann::json::parse(ToJson(lines))["definition"]["record"], "line unit=interaction");
  const std::string of_users = ToText(stated("line", PrivacyUnit::kUser));
  EXPECT_EQ(of_users.find("several of the records"), std::string::npos) << of_users;
  EXPECT_NE(of_users.find("all that one user wrote, as was declared"), std::string::npos) << of_users;
}

// Steps are those of training, and how records took part is said for each kind.
TEST_F(LedgerStatementTest, SaysHowRecordsTookPart) {
  const auto stated = [&](const char* file, std::initializer_list<Mechanism> mechanisms) {
    const std::string path = folder_ / file;
    Ledger ledger = *Ledger::Open(path, {.dataset = "history", .record = RecordSpec::Any(PrivacyUnit::kUser)});
    for (const Mechanism& m : mechanisms) EXPECT_TRUE(ledger.Charge({.mechanism = m, .run = "r"}).ok());
    const Ledger again = *Ledger::Open(path, {.dataset = "history", .record = RecordSpec::Any(PrivacyUnit::kUser)});
    return *MakeStatement(again, "l", DeltaAt(kDelta));
  };
  const Mechanism epoch = *RandomAllocation({.noise_multiplier = 1, .epoch_steps = 40});
  const Mechanism run =
      *CorrelatedGaussian({.noise_multiplier = 9, .lambda = 0.5, .participations = 3, .separation = 7});
  const PrivacyStatement epochs = stated("epochs", {epoch, epoch}), both = stated("both", {epoch, kTraining});
  EXPECT_EQ(epochs.num_steps, 80u);
  EXPECT_EQ(epochs.mechanisms, std::vector{*epoch.WithSteps(2)});
  for (const char* part : {"each record took part in exactly one step", "steps: 80\n", "2 epochs"})
    EXPECT_NE(ToText(epochs).find(part), std::string::npos) << part << " is missing in\n" << ToText(epochs);
  EXPECT_EQ(ToText(epochs).find("Poisson"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(ToJson(epochs))["accounting"]["sampling"], "random allocation");
  EXPECT_EQ(nlohmann::json::parse(ToJson(both))["accounting"]["sampling"], "random allocation, poisson");
  for (const char* part : {"each record took part in exactly one step", "independently (Poisson)"})
    EXPECT_NE(ToText(both).find(part), std::string::npos) << part << " is missing in\n" << ToText(both);
  // No Poisson sampling is claimed where every record took part, whatever is charged beside it.
  const Mechanism sum = *Mechanism::Gaussian({.noise_multiplier = 9});
  const Mechanism whole =
      *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 9, .sampling_probability = 1, .steps = 3});
  for (const auto& [file, all] :
       {std::pair{"sums", stated("sums", {sum, whole})}, std::pair{"sum", stated("sum", {sum})}}) {
    EXPECT_EQ(nlohmann::json::parse(ToJson(all))["accounting"]["sampling"], "full batch") << file;
    EXPECT_NE(ToText(all).find("every record took part in every step; no amplification"), std::string::npos) << file;
    EXPECT_EQ(ToText(all).find("independently (Poisson)"), std::string::npos) << ToText(all);
  }
  EXPECT_EQ(nlohmann::json::parse(ToJson(stated("some", {sum, kTraining})))["accounting"]["sampling"], "poisson");
  // A device cannot say what noise the server of its fleet adds.
  Ledger device = *Ledger::Open(folder_ / "device", {.dataset = "this device", .record = RecordSpec::OfDevice()});
  ASSERT_TRUE(device.Charge({.mechanism = sum, .run = "r"}).ok());
  const auto accounting = nlohmann::json::parse(ToJson(*MakeStatement(device, "l", DeltaAt(kDelta))))["accounting"];
  EXPECT_EQ(accounting["sampling"], "full batch");
  EXPECT_EQ(accounting["noise"], "promised by the fleet's server; a device cannot check it");
  EXPECT_EQ(accounting["noise_mode"], "unknown");
  const PrivacyStatement runs = stated("runs", {run});
  EXPECT_EQ(runs.num_steps, 21u);
  for (const char* part :
       {"no amplification by sampling is claimed", "noise of the step before", "part taken back 0.5"})
    EXPECT_NE(ToText(runs).find(part), std::string::npos) << part << " is missing in\n" << ToText(runs);
  EXPECT_EQ(runs.mechanisms, std::vector{run});
}

// A plan of epochs pays for them one by one, a limit refuses what goes beyond it, and the filter counts both kinds.
TEST_F(LedgerStatementTest, EpochsAndRuns_ArePlannedLimitedAndFiltered) {
  const auto epochs = [](uint64_t count) {
    return *RandomAllocation({.noise_multiplier = 1, .epoch_steps = 40, .epochs = count});
  };
  const double planned = Pld({epochs(3)}, kDelta);
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(planned * 1.001, kDelta)).ok());
  ASSERT_TRUE(ledger_.WritePlan("run", "training", std::vector{ChargeRequest{.mechanism = epochs(3)}}).ok());
  for (int i = 0; i < 3; ++i) Charge(epochs(1), "training");
  EXPECT_NEAR(*Stated().epsilon, planned, 1e-6);
  EXPECT_EQ(ledger_.Charge({.mechanism = epochs(1), .run = "run"}).status().code(), StatusCode::kPrivacyRefused);
  Ledger filtered =
      *Ledger::Open(folder_ / "filtered", {.dataset = "history", .record = RecordSpec::Any(PrivacyUnit::kUser)});
  ASSERT_TRUE(filtered.SetLimit(*EpsilonDelta::Create(8, kDelta)).ok());
  const Mechanism run =
      *CorrelatedGaussian({.noise_multiplier = 9, .lambda = 0.5, .participations = 3, .separation = 7});
  for (const Mechanism& m : {epochs(1), run, epochs(1), kTraining}) {
    ASSERT_TRUE(filtered.Charge({.mechanism = m, .run = "run"}).ok()) << m.Describe();
  }
  const double alone = Pld({epochs(2), run, kTraining}, kDelta);
  EXPECT_GE(*filtered.Spent(DeltaAt(kDelta)), alone);
  EXPECT_LE(*filtered.Spent(DeltaAt(kDelta)), 8);
}

// A search covers its best run alone, and its figure is by RDP, also after it is composed with other charges.
TEST_F(LedgerStatementTest, SaysWhatASearchReleases) {
  const Mechanism search = *PrivateSearch({.noise_multiplier = 3,
                                           .sampling_probability = 0.1,
                                           .run_steps = 50,
                                           .score_noise_multiplier = 12,
                                           .expected_runs = 6});
  Ledger ledger =
      *Ledger::Open(folder_ / "search", {.dataset = "history", .record = RecordSpec::Any(PrivacyUnit::kUser)});
  ASSERT_TRUE(ledger.Charge({.mechanism = search, .run = "search", .purpose = "search"}).ok());
  const PrivacyStatement alone = *MakeStatement(ledger, "search", DeltaAt(kDelta));
  EXPECT_NEAR(alone.epsilon.value(), *RdpEpsilon(std::vector{search}, DeltaAt(kDelta)), 1e-9);
  EXPECT_EQ(alone.output.find("the weights of the best run of each search"), 0u) << alone.output;
  EXPECT_NE(ToText(alone).find("the number of runs of a search"), std::string::npos) << ToText(alone);
  EXPECT_NE(ToText(alone).find("expected runs 6"), std::string::npos) << ToText(alone);
  ASSERT_TRUE(ledger.Charge({.mechanism = kTraining, .run = "run", .purpose = "training"}).ok());
  const PrivacyStatement both = *MakeStatement(ledger, "search", DeltaAt(kDelta));
  EXPECT_NE(both.output.find("after every step"), std::string::npos) << both.output;
  EXPECT_NE(both.output.find("of searches alone"), std::string::npos) << both.output;
  EXPECT_GT(both.epsilon.value(), alone.epsilon.value());
}

// Samples reveal different data: what the weights learned from, or texts in a prompt. The charge for texts protects no
// weights.
TEST_F(LedgerStatementTest, SaysWhatSamplesWereMadeFrom) {
  const auto sampled_by = [&](const std::string& run, const RecordSpec& record) {
    Ledger ledger = *Ledger::Open(folder_ / (run + record.kind()), {.dataset = "history", .record = record});
    EXPECT_TRUE(ledger.Charge({.mechanism = Range(1), .run = run, .purpose = "decoding"}).ok());
    return ToText(*MakeStatement(ledger, "l", DeltaAt(kDelta)));
  };
  const std::string texts =
      sampled_by("generation", RecordSpec::OfTexts(PrivacyUnit::kInteraction, RecordSpec::kPromptText));
  for (const char* part :
       {"released: the tokens that were sampled", "nor the private texts", "one record is: one private text",
        "not protected: the prompt", "not protected: the weights that private texts were given to",
        "not protected: whoever wrote several", "each private text took part in each token"})
    EXPECT_NE(texts.find(part), std::string::npos) << part << " is missing in\n" << texts;
  for (const char* other : {"items", "the history", "the lists of candidates", "weights as they are", "the tokenizer"})
    EXPECT_EQ(texts.find(other), std::string::npos) << other << " is in\n" << texts;
  const std::string tokens = sampled_by("generation", RecordSpec::Any(PrivacyUnit::kInteraction));
  EXPECT_NE(tokens.find("the tokens that were sampled"), std::string::npos) << tokens;
  EXPECT_NE(tokens.find("samples from weights as they are"), std::string::npos) << tokens;
  EXPECT_EQ(tokens.find("private text"), std::string::npos) << tokens;
  EXPECT_NE(sampled_by("recommendations", RecordSpec::Any(PrivacyUnit::kUser)).find("the items that were sampled"),
            std::string::npos);
}

// One run by itself: its charges, and what determines its figure.
TEST_F(LedgerStatementTest, OneRunHasItsOwnChargesAndTheFigureThatItsLengthAllows) {
  const std::string run = WithTuning("run", "the rate");
  for (const char* name : {run.c_str(), "other", run.c_str()}) {
    ASSERT_TRUE(ledger_.Charge({.mechanism = kTraining, .run = name, .purpose = "training", .loss_slack = 1e-9}).ok());
  }
  const Delta at = DeltaAt(kDelta);
  const PrivacyStatement fixed = *MakeRunStatement(ledger_, "l", at, run, RunLength::kFixed);
  EXPECT_EQ(fixed.run, run);
  EXPECT_EQ(fixed.uncharged_tuning, std::vector<std::string>{"the rate"});
  EXPECT_EQ(fixed.num_steps, 100u);
  EXPECT_EQ(fixed.loss_slack, 2e-9);
  EXPECT_NE(fixed.accountant.find("PLD"), std::string::npos);
  const double alone = Pld({*kTraining.WithSteps(100)}, kDelta);
  EXPECT_NEAR(*fixed.epsilon, alone, 1e-6);
  EXPECT_GT(*fixed.ledger_epsilon, alone);
  const PrivacyStatement chosen = *MakeRunStatement(ledger_, "l", at, run, RunLength::kChosen);
  EXPECT_EQ(chosen.num_steps, 100u);
  EXPECT_EQ(*chosen.epsilon, *ledger_.Spent(at));
  EXPECT_NE(chosen.accountant.find("Renyi filter"), std::string::npos);
  EXPECT_EQ(StateRun(ledger_, run, RunLength::kFixed, at)->accountant, "PLD");
  EXPECT_EQ(StateRun(ledger_, run, RunLength::kChosen, at)->accountant, "Renyi filter");
}

TEST_F(LedgerStatementTest, OneFigureOverSelectionTrainingAndSamples) {
  Charge(kSelection, "selection");
  Charge(kTraining, "training", NoiseKind::kSecure, 1e-9);
  Charge(kTraining, "training", NoiseKind::kSecure, 1e-9);
  const double before = *Stated().ledger_epsilon;
  for (int i = 0; i < 3; ++i) Charge(Response(1000, 1e-3, 10), "decoding");
  Charge(Range(0.01, 20), "decoding");
  const PrivacyStatement s = Stated();
  EXPECT_EQ(*s.ledger_epsilon, *ledger_.Spent(DeltaAt(kDelta)));
  EXPECT_GT(*s.ledger_epsilon, before);
  EXPECT_EQ(s.num_steps, 1u + 100 + 50);
  ASSERT_EQ(s.parts.size(), 3u);
  EXPECT_EQ(s.parts[0].purpose, "selection");
  EXPECT_EQ(s.parts[0].alone.epsilon, Pld({kSelection}, kDelta));
  EXPECT_EQ(s.parts[1].num_steps, 100u);
  EXPECT_GT(s.parts[1].alone.epsilon, Pld({*kTraining.WithSteps(100)}, kDelta)) << "the slack was not paid for";
  EXPECT_EQ(s.parts[2].num_steps, 50u);
  for (const SpendingPart& part : s.parts) EXPECT_LT(part.alone.epsilon, *s.ledger_epsilon);
  ASSERT_TRUE(s.samples.has_value());
  const std::vector samples = {Response(1000, 1e-3, 30), Range(0.01, 20)};
  EXPECT_EQ(s.samples->num_samples, 50u);
  EXPECT_EQ(s.samples->pure_epsilon, *PureEpsilon(samples));
  EXPECT_EQ(s.samples->alone.epsilon, Pld(samples, kDelta));
  EXPECT_FALSE(s.set_by.has_value());
  const std::string text = ToText(s);
  for (const char* part :
       {"selection alone: ", "training alone: ", "decoding alone: ", "samples alone: 50 samples: pure epsilon ",
        "(delta 0), however they were chosen; epsilon ", "accountant: Renyi filter",
        "the data set's figure holds for: charges that were chosen after looking", "the items that were sampled",
        "the weights of the charged runs", "not protected: the number of samples"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
  const auto json = nlohmann::json::parse(ToJson(s))["accounting"];
  EXPECT_EQ(json["composition"], "adaptive");
  EXPECT_EQ(json["parts"].size(), 3u);
  EXPECT_EQ(json["samples"]["pure_epsilon"], s.samples->pure_epsilon);
  // These were charged without a plan: nobody may take these figures for a guarantee.
  for (const auto& alone : {json["samples"], json["parts"][0], json["parts"][1], json["parts"][2]})
    EXPECT_FALSE(alone.contains("epsilon"));
  EXPECT_EQ(json["samples"]["epsilon_had_it_been_fixed_beforehand"], s.samples->alone.epsilon);
  EXPECT_NE(text.find("set by PLD, had it been fixed beforehand, which it was not: no guarantee"), std::string::npos);
}

// These figures under a plan, and the statement's words about limits.
TEST_F(LedgerStatementTest, SaysWhatTheFigureStandsOn) {
  const std::vector<ChargeRequest> plan = {{.mechanism = kSelection, .run = "run"},
                                           {.mechanism = *kTraining.WithSteps(100), .run = "run", .loss_slack = 2e-9}};
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(50, kDelta)).ok());
  ASSERT_TRUE(ledger_.WritePlan("run", "a year", plan).ok());
  Charge(kSelection, "selection");
  Charge(kTraining, "training", NoiseKind::kSecure, 1e-9);
  const auto says = [&](const PrivacyStatement& s, const std::string& part) {
    EXPECT_NE(ToText(s).find(part), std::string::npos) << part << " is missing in\n" << ToText(s);
  };
  PrivacyStatement s = Stated();
  EXPECT_EQ(s.set_by, Accountant::kPld);
  for (const char* part : {"the data set's figure holds for: the whole plan", "the part of the plan that is used: ",
                           "the limit: epsilon 50 (delta ", "holds however charges were chosen"})
    says(s, part);
  const auto accounting = nlohmann::json::parse(ToJson(s))["accounting"];
  EXPECT_EQ(accounting["composition"], "plan");
  // Half of the plan was run. If the rest was left out because of what was seen, that half cost more.
  EXPECT_FALSE(accounting["parts"][0].contains("epsilon"));
  EXPECT_TRUE(accounting["parts"][0].contains("epsilon_if_stopping_was_fixed"));
  EXPECT_EQ(accounting["plan_left"], nlohmann::json::array({kTraining.ToText()}));
  says(s, "only where stopping did not depend on what was released");
  says(s, "left of the plan: " + kTraining.Describe() + "; these alone add nothing to the figure");
  EXPECT_EQ(nlohmann::json::parse(ToJson(s))["accounting"]["held_limit"]["epsilon"], 50);
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(60, kDelta)).ok());
  s = Stated();
  says(s, "the limit: was raised after a charge: a new guarantee");
  EXPECT_TRUE(nlohmann::json::parse(ToJson(s))["accounting"]["held_limit"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(ToJson(s))["accounting"]["limit_raised_after_charges"]);
  const auto exported = nlohmann::json::parse(*ledger_.ExportJson(DeltaAt(kDelta)));
  EXPECT_FALSE(exported["chosen_after_looking"]);
  EXPECT_EQ(exported["plans"][0]["mechanisms"].size(), 2u);
  EXPECT_EQ(exported["entries"][0]["plan"], 2u);
  Charge(kTraining, "training", NoiseKind::kSecure, 1e-9);
  const auto whole = nlohmann::json::parse(ToJson(Stated()))["accounting"];
  EXPECT_TRUE(whole["plan_left"].empty());
  EXPECT_TRUE(whole["parts"][0].contains("epsilon")) << "all that was fixed beforehand was run";
}

TEST_F(LedgerStatementTest, ALimitThatCameAfterACharge) {
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(50, kDelta)).ok());
  Charge(kSelection, "selection");
  const std::string later = "; the newest limit was set after a charge: it is enforced, and promises nothing";
  EXPECT_EQ(ToText(Stated()).find(later), std::string::npos);
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(40, kDelta)).ok());
  const std::string text = ToText(Stated());
  EXPECT_NE(text.find("the limit: epsilon 50 (delta "), std::string::npos) << text;
  EXPECT_NE(text.find(later), std::string::npos) << text;
}

// The first limit comes after more was spent: it ends all charges, and the statement promises nothing of it.
TEST_F(LedgerStatementTest, ALimitBelowWhatWasSpent) {
  Charge(kSelection, "selection");
  const double spent = *Stated().ledger_epsilon;
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(spent / 2, kDelta)).ok());
  EXPECT_EQ(ledger_.Charge({.mechanism = kSelection, .run = "run"}).status().code(), StatusCode::kPrivacyRefused);
  const PrivacyStatement s = Stated();
  EXPECT_EQ(*s.ledger_epsilon, spent) << "a limit changes nothing of what was spent";
  EXPECT_EQ(s.limit->epsilon(), spent / 2);
  const std::string text = ToText(s);
  EXPECT_NE(text.find("the limit: was set after a charge: it is enforced since, but was not promised beforehand; the "
                      "figure of the data set is what holds"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("holds however charges were chosen"), std::string::npos) << text;
  const auto accounting = nlohmann::json::parse(ToJson(s))["accounting"];
  EXPECT_TRUE(accounting["held_limit"].is_null());
  EXPECT_TRUE(accounting["limit_set_after_charges"]);
  EXPECT_FALSE(accounting["limit_raised_after_charges"]);
}

TEST_F(LedgerStatementTest, SamplesAloneAreNoSteps) {
  Charge(Range(1), "decoding");
  const PrivacyStatement s = Stated(kTiny);
  EXPECT_EQ(s.set_by, Accountant::kPure);
  const std::string text = ToText(s);
  EXPECT_EQ(text.find("Poisson"), std::string::npos) << text;
  EXPECT_EQ(text.find("discrete Gaussian"), std::string::npos) << text;
  EXPECT_NE(text.find("accountant: pure"), std::string::npos) << text;
  EXPECT_NE(text.find("epsilon of the data set, all runs: 1.0001 (delta 1e-300)"), std::string::npos) << text;
}

TEST_F(LedgerStatementTest, ReproducibleSamplesShowNoFigure) {
  Charge(kTraining, "training", NoiseKind::kReproducible);
  Charge(Range(0.1), "decoding", NoiseKind::kReproducible);
  const PrivacyStatement s = Stated();
  for (const std::string& text : {ToText(s), ToJson(s)}) EXPECT_EQ(text.find("alone"), std::string::npos) << text;
  EXPECT_FALSE(nlohmann::json::parse(ToJson(s))["accounting"].contains("parts"));
  EXPECT_FALSE(nlohmann::json::parse(ToJson(s))["accounting"].contains("samples"));
}

}  // namespace
}  // namespace wisp::privacy::ledger_statement_test
