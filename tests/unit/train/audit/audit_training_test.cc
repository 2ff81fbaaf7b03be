// Audits of training: sound steps and runs pass, each breach of broken_release.h is caught. Noise has fixed seeds, so
// that a passing test keeps passing; a bound is wrong by chance with probability 1e-4 in each audit of a step.
#include "runtime/train/audit/audit_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/method_table.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/release/broken_release.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::audit_training_test {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;
using test::Breach;
using Through = StepAuditOptions::Through;

constexpr UniformArchitecture kTiny{.num_items = 12,
                                    .max_length = 4,
                                    .width = 8,
                                    .num_heads = 2,
                                    .num_blocks = 1,
                                    .inner_width = 8,
                                    .embedding_scale = 2.0f};

class AuditTraining : public ::testing::Test {
 protected:
  AuditTraining() : weights_(test::RandomWeights(kTiny, 5)) {
    ledger_.emplace(*privacy::Ledger::Open(folder_ / "ledger",
                                           {.dataset = "synthetic", .record = privacy::RecordSpec::OfEvents({})}));
    RandomStream random = RandomStream::Reproducible(3, StreamPurpose::kSampling);
    others_ = RandomRecords(2, 3, kTiny.num_items, random);
  }

  // q = batch / 100
  StepAuditOptions Step(uint32_t batch = 100) {
    TrainingOptions o{.method = Method::kPhantom,
                      .sampling = Sampling::kPoisson,
                      .expected_batch = batch,
                      .num_records_public = 100,
                      .num_threads = 1};
    o.privacy = {.noise_multiplier = 1.0,
                 .clipping_norm = 0.5,
                 .clipping = ClipKind::kFlat,
                 .ledger = &*ledger_,
                 .run = "audit",
                 .steps_per_charge = 200,
                 .reproducible_seed = 11};
    StepAuditOptions s{.architecture = kTiny,
                       .weights = weights_,
                       .training = o,
                       .others = others_.records,
                       .canary = others_.records[0]};
    s.confidence = 1 - 1e-4;
    s.through = Through::kRelease;
    return s;
  }
  StepAuditResult Audit(const StepAuditOptions& options) {
    auto result = AuditStep(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    std::string text = "mu " + std::to_string(result->mu.mu) + " of " + std::to_string(result->claimed_mu) +
                       ", reach " + std::to_string(result->reach);
    for (const auto& at : result->at_delta)
      text += "; " + std::to_string(at.bound.epsilon) + " of " + std::to_string(at.claimed);
    std::printf("%s\n", text.c_str());
    return *result;
  }
  TrainingOptions Run(Method method, uint64_t steps) {
    TrainingOptions o = Step().training;
    o.method = method;
    o.num_steps = steps;
    o.optimizer.learning_rate = 0.02f;
    return o;
  }

  test::TemporaryFolder folder_;
  std::vector<float> weights_;
  std::optional<privacy::Ledger> ledger_;
  SyntheticRecords others_;
};

// ---- One step ----

TEST(StepAudit, ACanaryThatAddsMoreThanTheClippingNormRefutes) {
  for (const uint64_t coordinates : {1u, 100000u, 100000000u}) {
    EXPECT_FALSE(PassesClippingNorm(1, coordinates)) << coordinates;
    EXPECT_TRUE(PassesClippingNorm(1.02, coordinates)) << coordinates;
  }
  EXPECT_FALSE(PassesClippingNorm(1.005, 100000000)) << "noise of 1e-5 in 1e8 coordinates";
}

// Only a part of the weights trains: both ways see its sums in place, and nothing of the base.
TEST_F(AuditTraining, StepOfAnAdapterIsNotRefuted) {
  for (const Through through : {Through::kRelease, Through::kTrainer}) {
    StepAuditOptions s = Step();
    s.architecture.adapter = AdapterSpec{.rank = 2, .alpha = 2};
    const std::vector<float> weights = test::RandomWeights(s.architecture, 5);
    s.weights = weights;
    s.through = through;
    if (through == Through::kTrainer) s.observations = 400;
    const StepAuditResult r = Audit(s);
    EXPECT_FALSE(r.refuted);
    EXPECT_GT(r.reach, 0.95);
    EXPECT_LE(r.reach, 1.001);
    EXPECT_GT(r.mu.mu, through == Through::kRelease ? 0.6 : 0.2);
  }
}

TEST_F(AuditTraining, SoundStepIsNotRefutedAndTheBoundIsTight) {
  for (const auto& [form, clip] :
       {std::pair(NormForm::kFormed, ClipKind::kFlat), std::pair(NormForm::kGram, ClipKind::kAutomatic)}) {
    StepAuditOptions s = Step();
    s.training.privacy.norm_form = form;
    s.training.privacy.clipping = clip;
    const StepAuditResult r = Audit(s);
    EXPECT_FALSE(r.refuted);
    EXPECT_GT(r.reach, 0.95);
    EXPECT_LE(r.reach, 1.001);
    EXPECT_GT(r.mu.mu, 0.6);
  }
}

TEST_F(AuditTraining, ReleasesArePaidForBeforeTheyAreMade) {
  StepAuditOptions s = Step(30);
  s.observations = 10;
  EXPECT_FALSE(Audit(s).refuted);
  const auto entries = *ledger_->Entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].mechanism.steps(), 20u);
  EXPECT_EQ(entries[0].mechanism.sampling_probability(), 0.3);
  EXPECT_GT(entries[0].loss_slack, 0);
  // A spent budget stops the audit.
  const auto limit = privacy::EpsilonDelta::Create(0.1, 1e-5);
  ASSERT_TRUE(ledger_->SetLimit(*limit).ok());
  s.training.privacy.reproducible_seed.reset();
  for (Through through : {Through::kRelease, Through::kTrainer}) {
    s.through = through;
    EXPECT_EQ(AuditStep(s).status().code(), StatusCode::kPrivacyRefused);
  }
  EXPECT_EQ(ledger_->Entries()->size(), 1u);
}

TEST_F(AuditTraining, SoundRgpIsNotRefuted) {
  WISP_NEEDS(kHasRgp);
  StepAuditOptions s = Step();
  s.training.method = Method::kRgp;
  s.training.rgp.rank = 2;
  const StepAuditResult r = Audit(s);
  EXPECT_FALSE(r.refuted);
  EXPECT_GT(r.mu.mu, 0.5 * r.reach);
}

TEST_F(AuditTraining, SoundSampledStepIsNotRefuted) {
  StepAuditOptions s = Step(30);
  EXPECT_FALSE(Audit(s).refuted);
  s.others = {};
  EXPECT_FALSE(Audit(s).refuted);
}

// The training loop itself: what it samples, charges and does to the weights.
TEST_F(AuditTraining, TrainerIsNotRefutedAndPaysForEveryRelease) {
  StepAuditOptions s = Step();
  s.through = Through::kTrainer;
  s.observations = 350;
  s.deltas = {};
  const StepAuditResult r = Audit(s);
  EXPECT_FALSE(r.refuted);
  EXPECT_GT(r.mu.mu, 0.1);
  uint64_t charged = 0;
  for (const auto& entry : *ledger_->Entries()) charged += entry.mechanism.steps();
  EXPECT_EQ(charged, 700u);
  s = Step(50);
  s.through = Through::kTrainer;
  s.observations = 500;
  s.deltas = {1e-2};
  s.others = {};
  s.training.privacy.noise_multiplier = 2;
  EXPECT_FALSE(Audit(s).refuted);
  // There is hardly any noise, but the canary is missing nine times out of ten: at delta q nothing can be told.
  s.training.expected_batch = 10;
  s.training.privacy.noise_multiplier = 0.3;
  s.deltas = {0.1};
  const StepAuditResult seldom = Audit(s);
  EXPECT_FALSE(seldom.refuted);
  EXPECT_LT(seldom.at_delta[0].claimed, 0.1);
}

TEST_F(AuditTraining, NaiveMechanismWithoutABreachIsNotRefuted) {
  for (uint32_t batch : {100, 50}) {
    StepAuditOptions s = Step(batch);
    s.make_method = test::MakeBroken(Breach::kNone);
    EXPECT_FALSE(Audit(s).refuted);
  }
}

TEST_F(AuditTraining, NoiseBelowTheClaimIsCaught) {
  for (Breach breach : {Breach::kNoNoise, Breach::kHalfNoise}) {
    StepAuditOptions s = Step();
    s.make_method = test::MakeBroken(breach);
    const StepAuditResult r = Audit(s);
    EXPECT_TRUE(r.refuted);
    EXPECT_GT(r.mu.mu, 1.5);
  }
  // The product's own release with half the noise.
  StepAuditOptions s = Step();
  s.make_method = [](const MethodSetup& setup) {
    TrainingOptions half = setup.options;
    half.privacy.noise_multiplier /= 2;
    return GetEntry(half).make({setup.graph, setup.trained, setup.start, half});
  };
  EXPECT_TRUE(Audit(s).refuted);
  if (!kHasRgp) return;
  s.training.method = Method::kRgp;
  s.training.rgp.rank = 2;
  EXPECT_TRUE(Audit(s).refuted);
}

TEST_F(AuditTraining, MissingClippingIsCaught) {
  StepAuditOptions s = Step();
  s.make_method = test::MakeBroken(Breach::kNoClipping);
  EXPECT_TRUE(Audit(s).refuted);
}

// The trade-off of both errors refutes by itself, if no delta is asked about.
TEST_F(AuditTraining, NoiseBelowTheClaimIsCaughtByTheTradeOffAlone) {
  StepAuditOptions s = Step();
  s.deltas = {};
  EXPECT_FALSE(Audit(s).refuted);
  s.make_method = test::MakeBroken(Breach::kNoNoise);
  EXPECT_TRUE(Audit(s).refuted);
}

TEST_F(AuditTraining, SkippedEmptyBatchIsCaught) {
  StepAuditOptions s = Step(50);
  s.others = {};
  s.deltas = {1e-2};
  s.observations = 1000;
  s.training.privacy.noise_multiplier = 2;
  EXPECT_FALSE(Audit(s).refuted);
  s.make_method = test::MakeBroken(Breach::kSkippedEmpty);
  EXPECT_TRUE(Audit(s).refuted);
}

// One item E_a is asked for, and the model is sure that it comes again: the gradients of the table as input and as
// output point the same way. Without the cross term the norm is taken for less than three quarters of its value, and
// clipping does not hold.
struct AlignedUses {
  AlignedUses() : weights(FlatSize(ListParameters(architecture)), 0.0f) {
    const size_t table = ListParameters(architecture)[0].offset, d = architecture.width;
    for (size_t i = 0; i < d; ++i) weights[table + i] = 1;  // E_a, item 0
    for (size_t b = 1; b <= 4; ++b) {
      for (size_t i = 0; i < d; ++i) weights[table + b * d + i] = -0.118f;  // the targets
    }
  }
  UniformArchitecture architecture{.num_items = 12,
                                   .max_length = 4,
                                   .width = 8,
                                   .num_heads = 1,
                                   .num_blocks = 0,
                                   .inner_width = 8,
                                   .embedding_scale = 4.0f,
                                   .norm = NormPlacement::kPost};
  std::vector<float> weights;
  std::vector<int32_t> inputs = {0, 0, 0, 0}, targets = {1, 2, 3, 4};
};

TEST_F(AuditTraining, NormWithoutTheCrossTermIsCaught) {
  const AlignedUses aligned;
  test::Harness harness(aligned.architecture, aligned.weights, kernels::BestOps());
  const auto graph = MakeGraph(aligned.architecture, kernels::BestOps(), {});
  test::BrokenRelease naive(*graph, Step().training, Breach::kNone);
  harness.Add({aligned.inputs, aligned.targets}, *naive.GetGradients(0).one_by_one());
  EXPECT_GT(naive.last_cross_ratio(), 1.33);
  StepAuditOptions s = Step();
  s.architecture = aligned.architecture;
  s.weights = aligned.weights;
  s.canary = {aligned.inputs, aligned.targets};
  s.observations = 4000;
  for (NormForm form : {NormForm::kFormed, NormForm::kGram}) {
    s.training.privacy.norm_form = form;
    EXPECT_FALSE(Audit(s).refuted);
  }
  s.make_method = test::MakeBroken(Breach::kNoCrossTerm);
  EXPECT_TRUE(Audit(s).refuted);
  s.make_method = test::MakeBroken(Breach::kTableWithoutNoise);
  EXPECT_TRUE(Audit(s).refuted);
}

// ---- One run ----

TEST_F(AuditTraining, RunThatMemorisesIsRefutedAndPrivateOneIsNot) {
  const UniformArchitecture a{.num_items = 100,
                              .max_length = 4,
                              .width = 16,
                              .num_heads = 1,
                              .num_blocks = 1,
                              .inner_width = 16,
                              .embedding_scale = 4.0f};
  const std::vector<float> start = test::StartWeights(a);
  const test::Ring ring(100, 50, 4);
  RunAuditOptions o{.architecture = a,
                    .weights = start,
                    .records = ring.records,
                    .training = Run(Method::kOrdinary, 150),
                    .canaries = 100};
  o.level = {.delta = 1e-7, .confidence = 1 - 1e-4};
  o.reproducible_coins = 8;
  o.claimed_epsilon = 1;
  const auto ordinary = AuditRun(o);
  ASSERT_TRUE(ordinary.ok()) << ordinary.status().message();
  std::printf("ordinary: %.3f, drops %.3f and %.3f\n", ordinary->bound.epsilon, ordinary->mean_drop_included,
              ordinary->mean_drop_excluded);
  EXPECT_TRUE(ordinary->refuted);
  EXPECT_GT(ordinary->bound.epsilon, 1.3);

  o.training = Run(Method::kPhantom, 40);
  o.training.privacy.noise_multiplier = 8;
  o.claimed_epsilon.reset();
  const auto sound = AuditRun(o);
  ASSERT_TRUE(sound.ok()) << sound.status().message();
  std::printf("private: %.3f of %.3f\n", sound->bound.epsilon, *sound->claimed);
  EXPECT_FALSE(sound->refuted);
  EXPECT_TRUE(std::isfinite(*sound->claimed));

  // Claims the epsilon of a run with noise for one that has almost none.
  o.training.num_steps = 120;
  o.training.privacy.noise_multiplier = 1e-4;
  o.claimed_epsilon = 1;
  const auto noiseless = AuditRun(o);
  ASSERT_TRUE(noiseless.ok()) << noiseless.status().message();
  std::printf("noiseless: %.3f\n", noiseless->bound.epsilon);
  EXPECT_TRUE(noiseless->refuted);
}

// ---- Membership ----

TEST_F(AuditTraining, MembersOfAnOverfittedModelAreTold) {
  const UniformArchitecture a{.num_items = 100,
                              .max_length = 4,
                              .width = 16,
                              .num_heads = 1,
                              .num_blocks = 1,
                              .inner_width = 16,
                              .embedding_scale = 4.0f};
  const std::vector<float> start = test::StartWeights(a);
  RandomStream random = RandomStream::Reproducible(4, StreamPurpose::kSampling);
  const SyntheticRecords records = RandomRecords(200, 4, 100, random);
  MembershipAuditOptions o{
      .architecture = a, .weights = start, .records = records.records, .training = Run(Method::kOrdinary, 150)};
  o.training.num_records_public = o.training.expected_batch = 100;
  o.reproducible_coins = 2;
  const auto overfitted = AuditMembership(o);
  ASSERT_TRUE(overfitted.ok()) << overfitted.status().message();
  EXPECT_EQ(overfitted->members + overfitted->non_members, 200u);
  EXPECT_GT(overfitted->report.accuracy_interval.low, 0.7);
  EXPECT_GT(overfitted->report.auc, 0.9);
  EXPECT_LT(overfitted->mean_loss_members, overfitted->mean_loss_non_members);
  o.training = Run(Method::kPhantom, 40);
  o.training.privacy.noise_multiplier = 16;
  const auto sound = AuditMembership(o);
  ASSERT_TRUE(sound.ok()) << sound.status().message();
  std::printf("overfitted %.3f, private %.3f\n", overfitted->report.accuracy, sound->report.accuracy);
  EXPECT_LT(sound->report.accuracy_interval.low, 0.55);
  EXPECT_NEAR(sound->report.auc, 0.5, 0.15);
}

// ---- What they share ----

TEST_F(AuditTraining, PairsDiffer) {
  RandomStream random = RandomStream::Reproducible(4, StreamPurpose::kSampling);
  const SyntheticRecords pairs = RandomPairs(7 * 6, 7, random);
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const Record& r : pairs.records) {
    EXPECT_NE(r.inputs[0], r.targets[0]);
    seen.insert({r.inputs[0], r.targets[0]});
  }
  EXPECT_EQ(seen.size(), 42u);
}

TEST_F(AuditTraining, InvalidAudits_AreRefused) {
  StepAuditOptions s = Step();
  s.training.privacy.ledger = nullptr;
  EXPECT_EQ(AuditStep(s).status().code(), StatusCode::kPrivacyRefused);
  s = Step();
  s.training.method = Method::kOrdinary;
  EXPECT_EQ(AuditStep(s).status().code(), StatusCode::kInvalidArgument);
  s = Step();
  s.deltas = {0.0};
  EXPECT_EQ(AuditStep(s).status().code(), StatusCode::kInvalidArgument);
  s = Step();
  s.observations = 3;
  EXPECT_EQ(AuditStep(s).status().code(), StatusCode::kInvalidArgument);
  RunAuditOptions o{.architecture = kTiny, .weights = weights_, .training = Run(Method::kPhantom, 1), .canaries = 133};
  EXPECT_EQ(AuditRun(o).status().code(), StatusCode::kInvalidArgument);
  o.canaries = 20;
  for (double claim : {std::nan(""), HUGE_VAL}) {
    o.claimed_epsilon = claim;  // never refuted, whatever is seen
    EXPECT_EQ(AuditRun(o).status().code(), StatusCode::kInvalidArgument);
  }
  o.claimed_epsilon.reset();
  o.training.num_steps = 0;
  EXPECT_EQ(AuditRun(o).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wisp::audit_training_test
