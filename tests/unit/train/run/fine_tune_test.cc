// From a start to a model's file: what a run may begin with, what the file says of it, what a refusal leaves.
#include "runtime/train/run/fine_tune.h"

#include <filesystem>

#include "runtime/train/run/evaluate.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::fine_tune_test {
namespace {

class FineTuneTest : public test::RingTraining {
 protected:
  FineTuneTest() : RingTraining(120), start_weights_(test::StartWeights(kSmall)) {}

  // Writes a base that learned from `dataset` without a guarantee.
  void WriteBase(const std::string& dataset) {
    ASSERT_TRUE(WriteModel(base_, {.architecture = kSmall,
                                   .weights = start_weights_,
                                   .provenance = {{.description = "trained", .dataset = dataset}}})
                    .ok());
  }

  FineTuneStart Start(const ModelFile* base) const {
    return {.base = base,
            .base_path = base_,
            .dataset = "ring",
            .run = "a run",
            .ledger = LedgerToTrain{.path = ledger_path_,
                                    .record = privacy::RecordSpec::OfEvents({.unit = privacy::PrivacyUnit::kDay}),
                                    .unit_chosen = true}};
  }

  TrainingJob Job() const {
    TrainingJob job{.spec = {.architecture = kSmall}, .records = ring_.records, .start_weights = start_weights_};
    job.spec.training = {.method = Method::kPhantom,
                         .sampling = Sampling::kPoisson,
                         .num_steps = 2,
                         .expected_batch = 20,
                         .num_records_public = 120,
                         .num_threads = 1};
    job.spec.goal = {.epsilon = {}, .noise_multiplier = 1, .delta = 1e-3};
    return job;
  }

  const std::string base_ = folder_ / "base.wisp", out_ = folder_ / "out.wisp", ledger_path_ = folder_ / "ledger";
  const std::vector<float> start_weights_;
};

TEST_F(FineTuneTest, ABaseThatSawTheDataIsRefused) {
  WriteBase("ring");
  const ModelFile base = *ModelFile::Open(base_);
  const Status refused = FineTune::Begin(Start(&base)).status();
  EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.message().find("without a guarantee"), std::string::npos) << refused.message();
  EXPECT_FALSE(std::filesystem::exists(ledger_path_));
  FineTuneStart other = Start(&base);
  other.other_data = true;
  EXPECT_TRUE(FineTune::Begin(other).ok());
}

TEST_F(FineTuneTest, TheProvenanceSaysWhatTheLedgerSays) {
  WriteBase("public");
  const ModelFile base = *ModelFile::Open(base_);
  for (const bool repeatable : {false, true}) {
    std::filesystem::remove(ledger_path_);
    FineTune run = *FineTune::Begin(Start(&base));
    TrainingJob job = Job();
    job.spec.uncharged_tuning = "rate";
    if (repeatable) job.spec.training.privacy.reproducible_seed = 5;
    int written = 0;
    const auto result = run.Run(job, {.path = out_,
                                      .contents = {.architecture = kSmall, .created_by = "test"},
                                      .description = "fine-tuned",
                                      .written = [&](const JobResult&) {
                                        ++written;
                                        return ModelFile::Open(out_).status();
                                      }});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(written, 1);
    const ModelFile model = *ModelFile::Open(out_, Verify::kFull);
    ASSERT_EQ(model.provenance().size(), 2u);
    const ProvenanceEntry& said = model.provenance()[1];
    EXPECT_EQ(said.description, "fine-tuned; chosen on the same data without a charge: rate");
    EXPECT_EQ(said.base_model_hash, base.content_hash());
    EXPECT_EQ(said.dataset, "ring");
    EXPECT_EQ(said.privacy_unit, "day");
    EXPECT_EQ(said.sampling, "poisson");
    EXPECT_EQ(said.steps, 2u);
    EXPECT_EQ(said.noise, repeatable ? NoiseOrigin::kReproducible : NoiseOrigin::kSecure);
    EXPECT_EQ(said.epsilon.has_value(), !repeatable);
    const auto entries = *run.ledger()->Entries();
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].run, "a run, after choosing without a charge: rate");
    EXPECT_TRUE(*run.ledger()->HasPaid(said.receipt));
    // The receipt is that of the last charge, so a copy that lacks one of the charges has not paid.
    EXPECT_EQ(said.receipt, *run.ledger()->MakeReceipt(entries[1].run));
    EXPECT_FALSE(*privacy::Ledger::Open(folder_ / "other", {.record = privacy::RecordSpec::OfEvents({})})
                      ->HasPaid(said.receipt));
    if (!repeatable) {
      EXPECT_DOUBLE_EQ(*said.epsilon, *run.ledger()->Spent(*privacy::Delta::Create(1e-3)));
    }
  }
}

TEST_F(FineTuneTest, WithoutStartWeights_TrainsThoseOfTheBase) {
  for (const WeightStorage storage : {WeightStorage::kFloat, WeightStorage::kHalf}) {
    ASSERT_TRUE(WriteModel(base_, {.architecture = kSmall, .weights = start_weights_, .storage = storage}).ok());
    const ModelFile base = *ModelFile::Open(base_);
    std::vector<float> room;
    const std::span<const float> weights = base.AllWeights(room);
    std::vector<float> trained[2];
    for (const bool given : {false, true}) {
      FineTune run = *FineTune::Begin({.base = &base, .base_path = base_, .dataset = "other", .run = "r"});
      TrainingJob job = Job();
      job.spec.training.method = Method::kOrdinary;
      job.start_weights = given ? weights : std::span<const float>();
      const auto result = run.Run(job, {.path = out_, .contents = {.architecture = kSmall}});
      ASSERT_TRUE(result.ok()) << result.status().message();
      trained[given] = result->weights;
    }
    EXPECT_EQ(trained[0], trained[1]);
  }
}

TEST_F(FineTuneTest, UnwritableOutput_SpendsNothing) {
  WriteBase("public");
  const ModelFile base = *ModelFile::Open(base_);
  FineTune run = *FineTune::Begin(Start(&base));
  const auto result = run.Run(Job(), {.path = folder_ / "none/out.wisp", .contents = {.architecture = kSmall}});
  EXPECT_EQ(result.status().code(), StatusCode::kIo);
  EXPECT_TRUE(run.ledger()->Entries()->empty());
}

// The result takes over the base's list rule, unless its owner says otherwise.
TEST_F(FineTuneTest, AllowSeen_IsThatOfTheBaseUnlessTheOwnerChoosesAnew) {
  for (const bool of_base : {false, true}) {
    ASSERT_TRUE(WriteModel(base_, {.architecture = kSmall, .weights = start_weights_, .allow_seen = of_base}).ok());
    const ModelFile base = *ModelFile::Open(base_);
    for (const std::optional<bool> chosen : {std::optional<bool>(), std::optional(false), std::optional(true)}) {
      FineTune run = *FineTune::Begin({.base = &base, .base_path = base_, .dataset = "other", .run = "r"});
      TrainingJob job = Job();
      job.spec.training.method = Method::kOrdinary;
      job.spec.allow_seen = chosen;
      const auto result = run.Run(job, {.path = out_, .contents = {.architecture = kSmall}});
      ASSERT_TRUE(result.ok()) << result.status().message();
      EXPECT_EQ(ModelFile::Open(out_)->lists().allow_seen, chosen.value_or(of_base));
    }
  }
}

// Histories end in an item that was added; the wanted items are retired, untrained, or old.
TEST_F(FineTuneTest, TestFigures_AreThoseOfTheModelThatIsWritten) {
  ASSERT_TRUE(WriteModel(base_, {.architecture = kSmall,
                                 .weights = start_weights_,
                                 .retired = {4},
                                 .untrained = {28, 29},
                                 .allow_seen = true})
                  .ok());
  const ModelFile base = *ModelFile::Open(base_);
  data::Sequences log;
  for (int32_t u = 0; u < 40; ++u) {
    for (const int32_t item : {u % 28, (u + 1) % 28, 28 + u % 2, u % 4 == 0 ? 28 : u % 4 == 1 ? 4 : u % 28})
      log.items.push_back(item);
    log.offsets.push_back(log.items.size());
    log.user_keys.push_back("user " + std::to_string(u));
  }
  const RecordSet set = MakeRecords(log, kSmall.max_length, data::HoldOut::kTest);
  Workers workers(1);
  Architecture adapted = kSmall;
  adapted.adapter = AdapterSpec{.rank = 2, .alpha = 2};
  for (const Architecture& trained : {Architecture(kSmall), adapted}) {
    for (const uint64_t steps : {1, 20}) {
      FineTune run = *FineTune::Begin({.base = &base, .base_path = base_, .dataset = "other", .run = "r"});
      TrainingJob job = Job();
      job.records = {};
      job.sequences = &log;
      job.spec.hold_out = data::HoldOut::kTest;
      job.spec.architecture = trained;
      job.spec.training.method = Method::kOrdinary;
      job.spec.training.num_steps = steps;
      const auto result = run.Run(job, {.path = out_, .contents = {.architecture = trained}});
      ASSERT_TRUE(result.ok()) << result.status().message();
      const ModelFile written =
          *ModelFile::OpenWithAdapter(trained.adapter ? base_ : out_, trained.adapter ? out_ : "");
      EXPECT_EQ(written.untrained().empty(), !trained.adapter && steps == 20);
      const RankingQuality found = EvaluateModel(written, set.test, workers);
      EXPECT_GT(found.ndcg_at_10, 0);
      ASSERT_TRUE(result->test.has_value());
      EXPECT_EQ(result->test->ndcg_at_10, found.ndcg_at_10) << steps << (trained.adapter ? " adapter" : "");
      EXPECT_EQ(result->test->num_users, found.num_users);
    }
  }
}

TEST_F(FineTuneTest, OrdinaryTrainingNeedsNoLedger) {
  FineTune run = *FineTune::Begin({.dataset = "ring", .run = "r"});
  EXPECT_EQ(run.ledger(), nullptr);
  TrainingJob job = Job();
  job.spec.training.method = Method::kOrdinary;
  const auto result = run.Run(job, {.path = out_, .contents = {.architecture = kSmall}, .description = "trained"});
  ASSERT_TRUE(result.ok()) << result.status().message();
  const ModelFile model = *ModelFile::Open(out_);
  ASSERT_EQ(model.provenance().size(), 1u);
  EXPECT_FALSE(model.provenance()[0].epsilon.has_value());
  EXPECT_EQ(model.provenance()[0].noise, NoiseOrigin::kNone);
}

}  // namespace
}  // namespace wisp::fine_tune_test
