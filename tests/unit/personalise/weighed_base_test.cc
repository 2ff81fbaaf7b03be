// The base with the weight of its bias that people chose: when it is found better, what is served and compared then,
// and that its file follows from base and ledger.
#include "runtime/personalise/weighed_base.h"

#include <fstream>

#include "runtime/personalise/lineage.h"
#include "runtime/personalise/plan_change.h"
#include "runtime/personalise/rebase.h"
#include "runtime/train/bias_weight.h"
#include "runtime/train/popularity.h"
#include "tests/unit/personalise/planned_run_test_util.h"

namespace wisp::weighed_base_test {
namespace {

// The device's people choose the items with a high bias, in no order: its weight is all that there is to learn.
class WeighedBase : public PlannedRunTest {
 protected:
  WeighedBase() {
    MakeBase(base_path_, 1, false, 0, OutputBias::kFixed);
    SetBias(base_path_, base_path_, 0.3f);
    std::filesystem::remove(log_path_);
    data::EventLog log = *data::EventLog::Open(log_path_);
    std::mt19937 random(3);
    std::vector<data::Event> events;
    for (int u = 0; u < kUsers; ++u) {
      for (int t = 0; t < kEvents + kLater; ++t)
        events.push_back({"u" + std::to_string(u), Key(static_cast<int>(random() % kLiked)),
                          (t < kEvents ? kBegin : kUntil + 1) + u * 1000 + t});
    }
    EXPECT_TRUE(log.AppendAll(events).ok());
  }

  // Writes the model with a bias of `size` for the liked items, and of -size for the others.
  static void SetBias(const std::string& from, const std::string& to, float size) {
    const ModelFile model = *ModelFile::Open(from);
    std::vector<float> room, bias(kItems, -size);
    std::fill_n(bias.begin(), kLiked, size);
    ModelContents contents = GetContents(model, room);
    std::vector<float> weights(contents.weights.begin(), contents.weights.end());
    SetOutputBias(contents.architecture, bias, weights);
    contents.weights = weights;
    ASSERT_TRUE(WriteModel(to, contents).ok());
  }
  static DeploymentSettings WithWeights() {
    DeploymentSettings settings = Settings();
    settings.learning_rate = 1e-6;  // candidates hardly differ from what they start from
    settings.bias_weight_releases = 1;
    settings.bias_weight_share = 0.04;
    return settings;
  }
  static DeploymentSettings WithoutWeights() {
    DeploymentSettings settings = WithWeights();
    settings.bias_weight_releases = 0;
    settings.bias_weight_share = 0;
    return settings;
  }
  // All weights of a model, as floats.
  static std::vector<float> Weights(const std::string& path) {
    const ModelFile model = *ModelFile::Open(path);
    std::vector<float> room;
    const std::span<const float> weights = GetContents(model, room).weights;
    return {weights.begin(), weights.end()};
  }
  std::optional<BetterWeight> Found() {
    const privacy::Ledger ledger = OpenLedger();
    return *FindBetterWeight(ledger, WithWeights(), ComputeHash(base_path_));
  }
  // Stores what a release might say of the base.
  void AddRelease(const std::array<double, 5>& gains, double square, uint64_t base) {
    privacy::Ledger ledger = OpenLedger();
    const auto charge = BiasWeightCharge({.noise_multiplier = 4, .run = "run"}, privacy::NoiseKind::kSecure);
    const auto id = ledger.Charge(*charge);
    ASSERT_TRUE(id.ok()) << id.status().message();
    WeighedBias weighed{.gains = gains, .noise_multiplier = 4, .base = base};
    weighed.squares.fill(square);
    ASSERT_TRUE(ledger.AddResult(*id, ToText(weighed)).ok());
  }

  static constexpr int kLiked = 10;
};

TEST_F(WeighedBase, IsServedFromTheFirstRunOn) {
  Plan(WithWeights());
  const PlannedRunResult first = MustRun();
  EXPECT_FALSE(first.evaluated);
  EXPECT_EQ(first.serves, PlannedRunResult::Serves::kWeighedBase);
  const auto found = Found();
  ASSERT_TRUE(found);
  EXPECT_GT(found->weight, 1);
  const ModelFile base = *ModelFile::Open(base_path_), served = *ModelFile::Open(output_);
  EXPECT_TRUE(IsWeighedFrom(served, base));
  EXPECT_FALSE(IsWeighedFrom(*ModelFile::Open(files_.candidate), base));
  const auto parameters = ListParameters(base.architecture());
  const ParameterSpec& bias = parameters[RequireParameter(parameters, ParameterRole::kOutputBias)];
  const std::vector<float> before = Weights(base_path_), after = Weights(output_);
  for (size_t i = 0; i < before.size(); ++i) {
    const bool is_bias = i >= bias.offset && i < bias.offset + bias.size();
    EXPECT_FLOAT_EQ(after[i], (is_bias ? found->weight : 1) * before[i]) << i;
  }
  const ProvenanceEntry& learned = served.provenance().back();
  EXPECT_EQ(learned.mechanisms.size(), 1u);
  EXPECT_EQ(learned.dataset, "log.db");
  EXPECT_TRUE(*OpenLedger().HasPaid(learned.receipt));
  EXPECT_GT(*learned.epsilon, 1);
  EXPECT_LT(*learned.epsilon, 1.6) << "a fifth of 8";
}

TEST_F(WeighedBase, CandidatesMustBeBetterThanIt) {
  Plan(WithWeights());
  while (MustRun().left.steps > 0) ASSERT_LT(runs_, 8);
  const privacy::Ledger ledger = OpenLedger();
  EXPECT_TRUE(*WasEvaluated(ledger, ComputeHash(files_.weighed)));
  EXPECT_FALSE(*WasEvaluated(ledger, ComputeHash(base_path_)));
  EXPECT_EQ(ComputeHash(output_), ComputeHash(files_.weighed)) << "no candidate is better";
}

TEST_F(WeighedBase, LostOrDamaged_IsMadeAgainByteForByte) {
  Plan(WithWeights());
  MustRun();
  const uint64_t hash = ComputeHash(output_);
  for (const std::string& damaged : {files_.weighed, output_}) {
    std::filesystem::remove(files_.weighed);
    std::ofstream(damaged, std::ios::trunc) << "\x89WSP damaged";
    MustRun();
    EXPECT_EQ(ComputeHash(files_.weighed), hash) << damaged;
    EXPECT_EQ(ComputeHash(output_), hash) << damaged;
  }
}

TEST_F(WeighedBase, IsServedByTheNextRunIfTheOneThatFoundItWasStopped) {
  Plan(WithWeights());
  PlannedRunOptions o = Options();
  o.progress = [](const JobProgress&) { return false; };
  EXPECT_EQ(RunPlanned(o).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
  o = Options();
  o.read = [](const data::ReadOptions&) -> Result<data::ReadResult> { return IoError("no log today"); };
  EXPECT_EQ(RunPlanned(o).status().code(), StatusCode::kIo);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(files_.weighed));
}

TEST_F(WeighedBase, TrainingThatStartsOverKeepsTheWeight) {
  Plan(WithWeights());
  MustRun();
  std::filesystem::remove(files_.candidate);
  std::filesystem::remove(files_.checkpoint);
  MustRun();
  EXPECT_EQ(Charged(kBiasWeightPurpose), 1u);
  const auto parameters = ListParameters(ModelFile::Open(base_path_)->architecture());
  const size_t bias = parameters[RequireParameter(parameters, ParameterRole::kOutputBias)].offset;
  EXPECT_FLOAT_EQ(Weights(files_.candidate)[bias], Weights(output_)[bias]);
}

TEST_F(WeighedBase, AnotherModelInItsPlaceIsRefused) {
  Plan(WithWeights());
  std::filesystem::copy(base_path_, files_.weighed);
  const Status refused = RunPlanned(Options()).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find(files_.weighed), std::string::npos) << refused.message();
  EXPECT_TRUE(OpenLedger().Entries()->empty());
  EXPECT_TRUE(std::filesystem::exists(files_.weighed));
}

TEST_F(WeighedBase, OfALostLedgerIsTakenBack) {
  Plan(WithWeights());
  MustRun();
  ASSERT_NE(ComputeHash(output_), ComputeHash(base_path_));
  for (const std::string& path : {ledger_path_, files_.weighed, files_.candidate, files_.checkpoint, files_.local})
    std::filesystem::remove(path);
  Plan(WithoutWeights());
  MustRun();
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
}

TEST_F(WeighedBase, NotPlannedOrOfNoUse_TheBaseIsServed) {
  Plan(WithoutWeights());
  MustRun();
  EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
  EXPECT_FALSE(std::filesystem::exists(files_.weighed));
}

// An update of the app is served as it came, or with a weight of its own, if the plan has a release left for it.
class UpdatedBase : public WeighedBase, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(UpdatedBase, IsWeighedAnewIfAReleaseIsLeft) {
  const bool is_weighed = GetParam() > 1;
  DeploymentSettings settings = WithWeights();
  settings.bias_weight_releases = GetParam();
  Plan(settings);
  MustRun();
  const std::string to = folder_ / "base-2.wisp";
  SetBias(base_path_, to, 0.4f);
  const auto rebased = Rebase({.from = base_path_, .to = to, .output = output_, .ledger = ledger_path_});
  ASSERT_TRUE(rebased.ok() && rebased->carried) << rebased.status().message();
  EXPECT_EQ(ComputeHash(output_), ComputeHash(to));
  PlannedRunOptions o = Options();
  o.base_path = to;
  const auto run = RunPlanned(o);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(Charged(kBiasWeightPurpose), is_weighed ? 2u : 1u);
  EXPECT_EQ(std::filesystem::exists(files_.weighed), is_weighed);
  const ModelFile base = *ModelFile::Open(to), served = *ModelFile::Open(output_);
  EXPECT_EQ(IsWeighedFrom(served, base), is_weighed);
  EXPECT_EQ(served.content_hash() == base.content_hash(), !is_weighed) << "the weight was found for another bias";
  if (!is_weighed) return;
  // The candidate trains on with that bias.
  const auto parameters = ListParameters(base.architecture());
  const size_t bias = parameters[RequireParameter(parameters, ParameterRole::kOutputBias)].offset;
  EXPECT_FLOAT_EQ(Weights(files_.candidate)[bias], Weights(output_)[bias]);
}
INSTANTIATE_TEST_SUITE_P(Releases, UpdatedBase, ::testing::Values(1, 2));

// z is the normal quantile of 0.05 / 2 / (2 * 5), 2.81: with noise 4 and the root of the squares 30 the threshold is
// 2.81 * sqrt((4 * 1.03)^2 + 30^2 + 2.81 * 4 * 1.03 / 0.25 ...) of about 88.
TEST_F(WeighedBase, TheRuleIsThatOfCandidates) {
  Plan(WithWeights());
  const uint64_t base = ComputeHash(base_path_);
  EXPECT_FALSE(Found());
  AddRelease({-50, 40, 80, 60, 50}, 900, base);
  EXPECT_FALSE(Found()) << "better by chance";
  AddRelease({-50, 40, 95, 60, 50}, 900, base + 1);
  EXPECT_FALSE(Found()) << "of another base";
  AddRelease({-50, 40, 95, 60, 50}, 900, base);
  ASSERT_TRUE(Found());
  EXPECT_EQ(Found()->weight, 1.5f);
  AddRelease({5, 5, -80, 5, 5}, 900, base);
  EXPECT_EQ(Found()->weight, 1.5f) << "not clearly worse";
  AddRelease({99, 5, -95, 5, 5}, 900, base);
  EXPECT_EQ(Found()->weight, 0.75f);
  AddRelease({-99, 5, 5, 5, 5}, 900, base);
  EXPECT_FALSE(Found()) << "tastes have turned";
}

TEST_F(WeighedBase, StaysWhenThePlanChanges) {
  Plan(WithWeights());
  MustRun();
  const uint64_t hash = ComputeHash(output_);
  {
    privacy::Ledger ledger = OpenLedger();
    const auto changed = ChangeDeployment(PlannedBase(*ModelFile::Open(base_path_)), ledger, **ReadSettings(ledger),
                                          {.runs = 3, .expected_batch = 100});
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    ASSERT_TRUE(WriteChange(ledger, *changed, "change").ok());
  }
  MustRun();
  EXPECT_EQ(ComputeHash(files_.weighed), hash);
  EXPECT_EQ(ComputeHash(output_), hash);
}

}  // namespace
}  // namespace wisp::weighed_base_test
