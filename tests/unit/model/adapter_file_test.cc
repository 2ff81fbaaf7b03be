// Files of adapters: small, and unusable without exactly the model with which they were trained.
#include <cmath>
#include <filesystem>

#include "runtime/layers/adapter.h"
#include "runtime/train/run/fine_tune.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::adapter_file_test {
namespace {

using test::SmallModel;

class AdapterFile : public ::testing::Test {
 protected:
  AdapterFile() {
    EXPECT_TRUE(WriteModel(base_, model_.contents()).ok());
    adapted_ = model_.architecture;
    adapted_.adapter = AdapterSpec{.rank = 2, .alpha = 3, .matrices = AdapterSpec::kQkv | AdapterSpec::kFeedForwardIn};
    weights_ = test::SomeWeights(adapted_);
  }

  // Returns the contents of the base's file.
  ModelContents Contents() const {
    ModelContents contents = model_.contents();
    contents.architecture = adapted_;
    contents.weights = weights_;
    contents.base_hash = ModelFile::Open(base_)->content_hash();
    contents.provenance.push_back({.description = "adapted", .dataset = "more events"});
    return contents;
  }
  void Write() const {
    const Status status = WriteModel(adapter_, Contents());
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Status Joined(Verify verify = Verify::kStructure) const {
    return ModelFile::OpenWithAdapter(base_, adapter_, verify).status();
  }

  const test::TemporaryFolder folder_;
  const std::string base_ = folder_ / "base.wisp", adapter_ = folder_ / "adapter.wisp";
  SmallModel model_;
  Architecture adapted_;
  std::vector<float> weights_;
};

TEST_F(AdapterFile, JoinsItsBaseAgain) {
  Write();
  const auto joined = ModelFile::OpenWithAdapter(base_, adapter_, Verify::kFull);
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_EQ(joined->architecture(), adapted_);
  std::vector<float> room;
  const auto all = joined->AllWeights(room);
  for (const ParameterSpec& p : ListParameters(adapted_)) {
    for (size_t i = p.offset; i < p.offset + p.size(); ++i) ASSERT_EQ(all[i], weights_[i]) << p.name;
  }
  EXPECT_EQ(joined->item_key(0), "tt0111161");
  EXPECT_EQ(joined->item_name(0), "One");
  EXPECT_EQ(*joined->FindItem("a"), 2u);
  EXPECT_EQ(joined->output_bias_origin(), OutputBiasOrigin::kPrivateCounts);
  ASSERT_EQ(joined->provenance().size(), 3u);
  EXPECT_EQ(joined->provenance()[2].dataset, "more events");
  EXPECT_EQ(joined->base_hash(), ModelFile::Open(base_)->content_hash());
  EXPECT_EQ(joined->size_bytes(), std::filesystem::file_size(base_) + std::filesystem::file_size(adapter_));
}

TEST_F(AdapterFile, SuccessionsAreThoseOfTheBase) {
  ModelContents contents = model_.contents();
  contents.successions = {{1, 2, 3.0f}};
  ASSERT_TRUE(WriteModel(base_, contents).ok());
  contents = Contents();
  contents.successions = {{4, 5, 6.0f}};
  ASSERT_TRUE(WriteModel(adapter_, contents).ok());
  const ModelFile joined = *ModelFile::OpenWithAdapter(base_, adapter_, Verify::kFull);
  ASSERT_EQ(joined.lists().successions.size(), 1u);
  EXPECT_EQ(joined.lists().successions[0], (Succession{1, 2, 3.0f}));
  // Only a damaged adapter has its own.
  const std::string changed = test::Changed<schema::Model>(
      test::ReadBytes(adapter_), [](schema::ModelT& m) { m.successions.emplace_back(0, 1, 1.0f); });
  test::WriteBytes(adapter_, changed);
  EXPECT_NE(Joined().message().find("has successions of items"), std::string::npos) << Joined().message();
}

TEST_F(AdapterFile, ProvenanceOfTheBase_IsKeptWhateverTheAdapterSays) {
  for (const std::vector<ProvenanceEntry>& own :
       {std::vector<ProvenanceEntry>{{.description = "adapted", .dataset = "more events"}}, {}}) {
    ModelContents contents = Contents();
    contents.provenance = own;
    ASSERT_TRUE(WriteModel(adapter_, contents).ok());
    const ModelFile base = *ModelFile::Open(base_), joined = *ModelFile::OpenWithAdapter(base_, adapter_);
    ASSERT_EQ(joined.provenance().size(), base.provenance().size() + 1);
    EXPECT_TRUE(std::equal(base.provenance().begin(), base.provenance().end(), joined.provenance().begin()));
    EXPECT_EQ(joined.provenance().back().dataset, own.empty() ? kUnknownDataset : "more events");
  }
}

TEST_F(AdapterFile, HoldsItsOwnMatricesAlone) {
  Write();
  const auto alone = ModelFile::Open(adapter_, Verify::kFull, Accept::kAnyFile);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  ASSERT_EQ(alone->parameters().size(), 4u);
  EXPECT_EQ(alone->parameters()[0].name, "block0.qkv.adapter_down");
  EXPECT_FALSE(alone->has_item_keys());
  EXPECT_FALSE(alone->has_item_names());
  EXPECT_EQ(alone->output_bias_origin(), OutputBiasOrigin::kNone);
}

TEST_F(AdapterFile, IsNoModel) {
  Write();
  const Status alone = ModelFile::Open(adapter_).status();
  EXPECT_EQ(alone.code(), StatusCode::kInvalidData);
  EXPECT_NE(alone.message().find("is an adapter, which is used together with its base"), std::string::npos);
  EXPECT_FALSE(ModelFile::Open(adapter_, Verify::kFull, Accept::kAny).ok());
  EXPECT_NE(ModelFile::OpenWithAdapter(adapter_, adapter_).status().message().find("is an adapter"), std::string::npos);
  EXPECT_NE(ModelFile::OpenWithAdapter(base_, base_).status().message().find("is a whole model"), std::string::npos);
}

// One number of the base differs, with the same names and shapes.
TEST_F(AdapterFile, OtherBase_IsRefused) {
  Write();
  SmallModel other;
  other.weights[0] += 0.5f;
  ASSERT_TRUE(WriteModel(base_, other.contents()).ok());
  const Status status = Joined();
  EXPECT_EQ(status.code(), StatusCode::kInvalidData);
  EXPECT_NE(status.message().find("it belongs to another base than " + base_), std::string::npos) << status.message();
}

TEST_F(AdapterFile, OtherArchitectureOfTheBase_IsRefused) {
  ModelContents contents = Contents();
  contents.architecture.max_length += 1;
  const std::vector<float> weights = test::SomeWeights(contents.architecture);
  contents.weights = weights;
  ASSERT_TRUE(WriteModel(adapter_, contents).ok());
  EXPECT_NE(Joined().message().find("it names the architecture of another base"), std::string::npos);
}

TEST_F(AdapterFile, Damage_IsFoundInBothFiles) {
  Write();
  for (const std::string& path : {base_, adapter_}) {
    const std::string whole = test::ReadBytes(path);
    std::string damaged = whole;
    damaged[damaged.size() - 200] = static_cast<char>(damaged[damaged.size() - 200] ^ 1);
    test::WriteBytes(path, damaged);
    EXPECT_TRUE(Joined().ok());
    EXPECT_FALSE(Joined(Verify::kFull).ok()) << path;
    test::WriteBytes(path, whole);
  }
  EXPECT_TRUE(Joined(Verify::kFull).ok());
}

TEST_F(AdapterFile, Float16Base_IsReadInPlace) {
  model_.storage = WeightStorage::kHalf;
  ASSERT_TRUE(WriteModel(base_, model_.contents()).ok());
  Write();
  const auto joined = ModelFile::OpenWithAdapter(base_, adapter_, Verify::kFull);
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_EQ(joined->storage(), WeightStorage::kHalf);
  std::vector<float> room;
  EXPECT_EQ(joined->AllWeights(room)[0], weights_[0]);
}

TEST_F(AdapterFile, WithoutABase_IsNotWritten) {
  ModelContents contents = Contents();
  contents.base_hash = 0;
  EXPECT_NE(WriteModel(adapter_, contents).message().find("no hash of the model"), std::string::npos);
  ModelContents whole = model_.contents();
  whole.base_hash = 7;
  EXPECT_NE(WriteModel(adapter_, whole).message().find("but no adapter"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(adapter_));
}

// Fine-tuning from a base in a file to an adapter in a file, and further from there.
class AdapterFineTune : public test::RingTraining {
 protected:
  AdapterFineTune() : RingTraining(200) {
    const std::vector<float> start = test::StartWeights(kSmall);
    EXPECT_TRUE(WriteModel(base_, {.architecture = kSmall,
                                   .weights = start,
                                   .provenance = {{.description = "new", .dataset = "public"}}})
                    .ok());
  }

  TrainingJob Job(const std::vector<float>& start, const Architecture& a) const {
    TrainingJob job{.spec = {.architecture = a}, .records = ring_.records, .start_weights = start};
    job.spec.training = {.method = Method::kPhantom,
                         .sampling = Sampling::kPoisson,
                         .num_steps = 3,
                         .expected_batch = 20,
                         .num_records_public = 200,
                         .num_threads = 1};
    job.spec.training.optimizer.learning_rate = 0.01f;
    job.spec.goal = {.epsilon = {}, .noise_multiplier = 1, .delta = 1e-3};
    return job;
  }

  // Trains a new adapter of the base, or continues from `before`.
  Status Run(const std::string& before, const std::string& out, std::optional<AdapterSpec> adapter,
             std::optional<bool> allow_seen = {}) {
    WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::OpenWithAdapter(base_, before, Verify::kFull));
    WISP_ASSIGN_OR_RETURN(FineTune run,
                          FineTune::Begin({.base = &base,
                                           .base_path = base_,
                                           .dataset = "ring",
                                           .run = out,
                                           .ledger = LedgerToTrain{.path = folder_ / "ledger",
                                                                   .record = privacy::RecordSpec::OfEvents({})}}));
    std::vector<float> room;
    const auto weights = base.AllWeights(room);
    const std::vector<float> start(weights.begin(), weights.end());
    Architecture a = base.architecture();
    if (adapter) a.adapter = adapter;
    const FineTuneOutput output = {.path = out, .contents = {.architecture = a}, .description = "run"};
    TrainingJob job = Job(start, a);
    job.spec.allow_seen = allow_seen;
    return run.Run(job, output).status();
  }

  const std::string base_ = folder_ / "base.wisp", first_ = folder_ / "first.wisp", second_ = folder_ / "second.wisp";
  const AdapterSpec spec_{.rank = 2, .alpha = 2};
};

// The adapter's lists are those of its base, whose file says what they may hold.
TEST_F(AdapterFineTune, AllowSeen_IsThatOfTheBase) {
  {
    const ModelFile base = *ModelFile::Open(base_);
    std::vector<float> room;
    ModelContents contents = GetContents(base, room);
    contents.allow_seen = true;
    ASSERT_TRUE(WriteModel(base_, contents).ok());
  }
  const Status refused = Run("", first_, spec_, false);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("allowed is what the base says"), std::string::npos) << refused.message();
  const Status status = Run("", first_, spec_);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(ModelFile::Open(first_, Verify::kStructure, Accept::kAnyFile)->lists().allow_seen);
  EXPECT_TRUE(ModelFile::OpenWithAdapter(base_, first_)->lists().allow_seen);
}

TEST_F(AdapterFineTune, WritesAnAdapterAndTrainsItFurther) {
  const std::string before = test::ReadBytes(base_);
  Status status = Run("", first_, spec_);
  ASSERT_TRUE(status.ok()) << status.message();
  status = Run(first_, second_, std::nullopt);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(test::ReadBytes(base_), before);
  std::vector<float> room[3];
  const auto base = ModelFile::Open(base_);
  const auto one = ModelFile::OpenWithAdapter(base_, first_), two = ModelFile::OpenWithAdapter(base_, second_);
  ASSERT_TRUE(one.ok() && two.ok());
  const auto b = base->AllWeights(room[0]), f = one->AllWeights(room[1]), s = two->AllWeights(room[2]);
  ASSERT_EQ(f.size(), s.size());
  size_t moved = 0;
  for (size_t i = 0; i < f.size(); ++i) {
    if (i < b.size()) {
      EXPECT_EQ(f[i], b[i]);
      EXPECT_EQ(s[i], b[i]);
    }
    moved += f[i] != s[i];
  }
  EXPECT_GT(moved, 100u);
  ASSERT_EQ(two->provenance().size(), 3u);
  EXPECT_EQ(two->provenance()[1].base_model_hash, base->content_hash());
  EXPECT_EQ(two->provenance()[2].base_model_hash, one->content_hash());
  EXPECT_EQ(two->base_hash(), base->content_hash());
  EXPECT_TRUE(two->provenance()[2].epsilon.has_value());
}

TEST_F(AdapterFineTune, DoesNotReplaceItsBase) {
  const std::string before = test::ReadBytes(base_);
  EXPECT_EQ(Run("", base_, spec_).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(test::ReadBytes(base_), before);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ledger"));
}

TEST_F(AdapterFineTune, NeedsTheWeightsOfABase) {
  Architecture a = kSmall;
  a.adapter = spec_;
  TrainingJob job = Job({}, a);
  job.spec.training.method = Method::kOrdinary;
  const Status none = RunTrainingJob(job).status();
  EXPECT_NE(none.message().find("an adapter trains beside the weights of a model"), std::string::npos)
      << none.message();
  // The size is neither the base's nor that of all.
  for (const size_t size : {FlatSize(ListParameters(a)) + 16, FlatSize(ListParameters(a)) - 16, size_t{16}}) {
    const std::vector<float> weights(size);
    job.start_weights = weights;
    EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kInvalidArgument) << size;
  }
  job.spec.architecture = kSmall;
  job.start_weights = std::span<const float>(start_).first(start_.size() - 16);
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kInvalidArgument) << "a model cut short";
}

}  // namespace
}  // namespace wisp::adapter_file_test
