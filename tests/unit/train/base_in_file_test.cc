// An adapter, blocks or a head train with the base in its file, in any storage, exactly as with the same weights in
// memory: to the bit. So the gradients are those of the function that the stored numbers define.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/model/model_file.h"
#include "runtime/train/run/fine_tune.h"
#include "runtime/train/trainer.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/classifier_test_util.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/memory_test_util.h"

namespace wisp::base_in_file_test {
namespace {

constexpr uint32_t kRecords = 24;
constexpr WeightStorage kStorages[] = {WeightStorage::kFloat, WeightStorage::kPanels, WeightStorage::kHalf,
                                       WeightStorage::kInt8, WeightStorage::kInt4};

// More than one tile of rows in a matrix and in the table, the last one smaller.
UniformArchitecture Decoder() {
  return {.num_items = 300, .max_length = 10, .width = 40, .num_heads = 2, .num_blocks = 2, .inner_width = 300};
}

Architecture Encoder() {
  Architecture a = Decoder();
  a.attend = Attend::kAll;
  a.head.kind = HeadKind::kEmbedding;
  a.head.pooler = Pooler::kTanh;
  a.token_types = {.count = 2, .separator = 3};
  a.embedding_norm_epsilon = 1e-5f;
  return a;
}

// Adds a head of two classes if the base is an encoder.
Architecture Adapted(const Architecture& base) {
  const bool encodes = base.head.kind == HeadKind::kEmbedding;
  Architecture a = encodes ? WithClasses(base, 2) : base;
  a.adapter = AdapterSpec{.rank = 3, .alpha = 6};
  a.adapter->has_head = encodes;
  return a;
}

class BaseInFile : public ::testing::Test {
 protected:
  ModelFile WriteBase(const Architecture& a, WeightStorage storage) {
    std::vector<float> weights = test::RandomWeights(a, 5);
    for (float& w : weights) w *= 0.3f;
    EXPECT_TRUE(WriteModel(path_, {.architecture = a, .weights = weights, .storage = storage}).ok());
    return *ModelFile::Open(path_, Verify::kFull, Accept::kAny);
  }

  std::vector<Record> RecordsFor(const Architecture& a) {
    owned_.clear();
    for (uint32_t i = 0; i < kRecords; ++i)
      owned_.push_back(test::RandomRecord(a.num_items, 2 + i % (a.max_length - 1), i));
    std::vector<Record> records;
    for (uint32_t i = 0; i < kRecords; ++i)
      records.push_back(a.head.kind == HeadKind::kClasses ? test::Labelled(owned_[i].inputs, i % 2) : owned_[i].view());
    return records;
  }

  TrainingOptions Options(Method method) {
    TrainingOptions o{.method = method,
                      .sampling = method == Method::kOrdinary ? Sampling::kShuffled : Sampling::kPoisson,
                      .num_steps = 3,
                      .expected_batch = 12,
                      .num_records_public = kRecords,
                      .num_threads = 2};
    o.optimizer.learning_rate = 0.01f;
    o.dropout = {.embedding = 0.1f, .attention = 0.1f, .residual = 0.1f};
    o.rgp.rank = 2;
    if (method != Method::kOrdinary)
      o.privacy = {.noise_multiplier = 0.3, .ledger = &ledger_, .run = "r", .reproducible_seed = 7};
    return o;
  }

  // Returns what the run holds after three steps, from FirstHeld of `held` on.
  std::vector<float> Train(const Architecture& a, std::span<const float> start, std::span<const Record> records,
                           const TrainingOptions& o) {
    const auto trainer = Trainer::Create(a, start, records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    if (!trainer.ok()) return {};
    test::ExpectEqual(*PlanTrainingMemory(a, records.size(), o), (*trainer)->memory());
    for (int step = 0; step < 3; ++step) {
      const auto report = (*trainer)->Step();
      EXPECT_TRUE(report.ok()) << report.status().message();
    }
    return {(*trainer)->weights().begin(), (*trainer)->weights().end()};
  }

  void ExpectSame(const ModelFile& base, const Architecture& a, const TrainingOptions& options) {
    const std::vector<Record> records = RecordsFor(a);
    const StartBesideBase start = StartBeside(base, a, options, {}, /*seed=*/3);
    TrainingOptions in_file = options;
    in_file.base = start.base;
    const std::vector<ParameterSpec> parameters = ListParameters(a);
    const size_t first = FirstHeld(parameters, in_file);
    ASSERT_EQ(in_file.base.size(), NumReadable(a, options));
    ASSERT_GT(first, 0u) << "all of it is held";
    // All weights in memory, initialised as a whole.
    std::vector<float> room, whole(FlatSize(parameters));
    auto random = privacy::RandomStream::Reproducible(3, privacy::StreamPurpose::kInitialisation);
    InitialiseWeights(a, {}, random, whole);
    const std::span<const float> dequantised = base.AllWeights(room);
    std::copy(dequantised.begin(), dequantised.end(), whole.begin());
    ASSERT_TRUE(std::equal(start.held.begin(), start.held.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
    const std::vector<float> expected = Train(a, whole, records, options),
                             held = Train(a, start.held, records, in_file);
    ASSERT_EQ(held.size() + first, expected.size());
    EXPECT_NE(held, start.held) << "nothing was trained";
    EXPECT_TRUE(std::equal(held.begin(), held.end(), expected.begin() + static_cast<std::ptrdiff_t>(first)));
    EXPECT_EQ(PlanTrainingMemory(a, kRecords, in_file)->weights + first * sizeof(float),
              PlanTrainingMemory(a, kRecords, options)->weights);
    ExpectSameFile(a, held, start.base, expected);
  }

  // Compares the files that both write.
  void ExpectSameFile(const Architecture& a, const std::vector<float>& held, std::span<const StoredTensor> base,
                      const std::vector<float>& whole) {
    ModelContents contents{.architecture = a, .weights = whole};
    if (a.head.kind == HeadKind::kClasses) contents.classifier.emplace();
    if (a.adapter) contents.base_hash = 1;
    ASSERT_TRUE(WriteModel(folder_ / "whole", contents).ok());
    contents.weights = held;
    contents.first_weight = whole.size() - held.size();
    contents.before = base;
    ASSERT_TRUE(WriteModel(folder_ / "held", contents).ok());
    EXPECT_EQ(test::ReadBytes(folder_ / "held"), test::ReadBytes(folder_ / "whole"));
    if (a.adapter) return;
    contents.before = base.first(base.size() - 1);
    EXPECT_EQ(WriteModel(folder_ / "refused", contents).code(), StatusCode::kInvalidArgument);
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "base.wisp";
  privacy::Ledger ledger_ = *privacy::Ledger::Open(
      folder_ / "l",
      {.dataset = "d", .record = privacy::RecordSpec::OfEvents({.unit = privacy::PrivacyUnit::kInteraction})});
  std::vector<test::OwnedRecord> owned_;
};

TEST_F(BaseInFile, TrainsAsBesideTheSameWeightsInMemory) {
  for (const Architecture& shape : {Architecture(Decoder()), Encoder()}) {
    for (const WeightStorage storage : kStorages) {
      const ModelFile base = WriteBase(shape, storage);
      ASSERT_EQ(base.storage(), storage);
      for (const Method method : {Method::kOrdinary, Method::kPhantom, Method::kRgp}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(storage)) + " " + GetName(method));
        TrainingOptions o = Options(method);
        if (!CheckBuilt(shape, o).ok()) continue;
        const Architecture whole = shape.head.kind == HeadKind::kEmbedding ? WithClasses(shape, 2) : shape;
        ExpectSame(base, Adapted(shape), o);
        o.trained_part = TrainedPart::kBlocks;
        ExpectSame(base, whole, o);
        o.recompute_blocks = true;
        ExpectSame(base, Adapted(shape), o);
        if (whole.head.kind != HeadKind::kClasses) continue;
        o.trained_part = TrainedPart::kHead;
        ExpectSame(base, whole, o);
      }
    }
  }
}

// Scores by cosine read rows of length 1, which no file has.
TEST_F(BaseInFile, TrainsAsBesideTheSameWeightsInMemoryWithScoresByCosine) {
  Architecture shape = Decoder();
  shape.head.temperature = 0.1f;
  shape.head.output_bias = OutputBias::kNone;
  for (const WeightStorage storage : kStorages) {
    const ModelFile base = WriteBase(shape, storage);
    for (const Method method : {Method::kOrdinary, Method::kPhantom}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(storage)) + " " + GetName(method));
      TrainingOptions o = Options(method);
      ExpectSame(base, Adapted(shape), o);
      o.recompute_blocks = true;
      ExpectSame(base, Adapted(shape), o);
    }
  }
}

// If blocks are multiplied in place, no packed floats of them are held.
TEST_F(BaseInFile, HoldsNoFloatsOfBlocks) {
  const ModelFile base = WriteBase(Decoder(), WeightStorage::kInt8);
  const Architecture a = Adapted(base.architecture());
  TrainingOptions o = Options(Method::kPhantom), in_file = o;
  in_file.base = BaseBeside(base, a, o);
  EXPECT_LT(PlanTrainingMemory(a, kRecords, in_file)->packed_weights,
            PlanTrainingMemory(a, kRecords, o)->packed_weights / 4);
}

// A difference quotient of the training loss, in one number of an adapter's matrix.
TEST_F(BaseInFile, GradientsAreThoseOfTheLoss) {
  const ModelFile base = WriteBase(Decoder(), WeightStorage::kInt4);
  const Architecture a = Adapted(base.architecture());
  const std::vector<Record> records = RecordsFor(a);
  StartBesideBase start = StartBeside(base, a, Options(Method::kOrdinary), {}, 3);
  TrainingOptions o = Options(Method::kOrdinary);
  o.base = start.base;
  o.dropout = {};
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 1};
  o.expected_batch = kRecords;
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  const ParameterSpec& up = parameters[RequireParameter(parameters, ParameterRole::kFeedForwardInUp, 0)];
  const size_t i = up.offset - FirstHeld(parameters, o) + 2;
  o.loss = LossWeighting::kPositionMean;  // a step descends the reported loss
  const auto step = [&](const std::vector<float>& held, double& loss) {
    const auto trainer = *Trainer::Create(a, held, records, o);
    loss = trainer->Step()->mean_loss;
    return held[i] - trainer->weights()[i];
  };
  double at = 0, above = 0, below = 0;
  const float gradient = step(start.held, at), h = 0.05f;
  start.held[i] += h;
  step(start.held, above);
  start.held[i] -= 2 * h;
  step(start.held, below);
  EXPECT_GT(std::abs(gradient), 1e-5f);
  EXPECT_NEAR((above - below) / (2 * static_cast<double>(h)), gradient, 0.02 * std::abs(gradient) + 1e-6);
}

TEST_F(BaseInFile, RefusesABaseThatTrains) {
  const ModelFile base = WriteBase(Decoder(), WeightStorage::kInt8);
  const Architecture a = Adapted(base.architecture());
  const std::vector<Record> records = RecordsFor(a);
  const StartBesideBase start = StartBeside(base, a, Options(Method::kOrdinary), {}, 3);
  TrainingOptions o = Options(Method::kOrdinary);
  o.base = start.base;
  EXPECT_EQ(Trainer::Check(a, {}, records, o).code(), StatusCode::kInvalidArgument) << "too few weights";
  // Without an adapter everything trains.
  EXPECT_EQ(Trainer::Check(base.architecture(), start.held, records, o).code(), StatusCode::kInvalidArgument);
  const std::vector<StoredTensor> too_many(start.base.size() + 1, start.base.front());
  o.base = too_many;
  EXPECT_EQ(Trainer::Check(a, start.held, records, o).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wisp::base_in_file_test
