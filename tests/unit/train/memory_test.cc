// Memory is known before there is a session or a trainer, and the stated amount is the allocated one.
#include "tests/unit/core/counting_allocator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/inference/session.h"
#include "runtime/train/trainer.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/memory_test_util.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::memory_test {
namespace {

using test::allocated_bytes;
using test::ExpectEqual;

std::vector<Architecture> Architectures() {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(UniformArchitecture{
      .num_items = 3416, .max_length = 200, .width = 64, .num_heads = 1, .num_blocks = 2, .inner_width = 256});
  all.push_back(UniformArchitecture{.num_items = 1001,
                                    .max_length = 33,
                                    .width = 24,
                                    .num_heads = 3,
                                    .num_blocks = 1,
                                    .inner_width = 40,
                                    .output_table = OutputTable::kUntied,
                                    .output_bias = OutputBias::kTrained});
  all.push_back(UniformArchitecture{.num_items = 9, .max_length = 6, .width = 8, .num_blocks = 0, .inner_width = 8});
  return all;
}

// Memory outside of the plan: layers, names, small vectors, and temporary ones. It does not grow with any size: 25
// tensors took 23 KB in a session, 48 KB in a trainer and 11 KB for each of its workers but the first (g++ 12.2,
// 2026-11-21). A block's objects are there even if it has few tensors.
size_t Tensors(const Architecture& a) { return ListParameters(a).size() + 6 * a.blocks.size(); }
size_t SessionObjects(const Architecture& a) { return Tensors(a) * 1024 + 4096; }
// The place of a base and the recomputation of blocks take 100 bytes (2026-11-25). 64-bit Arm, whose locks are larger,
// takes 185 more (2026-11-26). A step's parts take 140, and the place of features of items 60 (2026-11-28); what counts
// the noise that is drawn ahead 40 (2026-11-29).
size_t TrainerObjects(const Architecture& a, size_t workers) { return Tensors(a) * 2048 + workers * 8192 + 9900; }

// `planned` covers all allocations except for `objects`.
void ExpectAllocated(size_t planned, size_t allocated, size_t objects) {
  EXPECT_GE(allocated, planned);
  EXPECT_LE(allocated, planned + objects);
}

TEST(Memory, SessionHoldsWhatIsPlanned) {
  const test::TemporaryFolder folder;
  for (const Architecture& a : Architectures()) {
    const std::vector<float> weights = test::RandomWeights(a, 5);
    ASSERT_TRUE(WriteModel(folder / "m", {.architecture = a, .weights = weights}).ok());
    ModelFile file = *ModelFile::Open(folder / "m");
    size_t before = allocated_bytes;
    const InferenceMemory planned = *Session::PlanMemory(a);
    EXPECT_LE(allocated_bytes - before, SessionObjects(a)) << "planning allocates what it plans";
    before = allocated_bytes;
    const auto session = *Session::Create(std::move(file));
    ExpectAllocated(planned.total(), allocated_bytes - before, SessionObjects(a));
    EXPECT_EQ(session->planned_bytes(), planned.total());
    EXPECT_EQ(session->memory().activations, planned.activations);
    EXPECT_EQ(session->memory().packed_weights, planned.packed_weights);
    EXPECT_EQ(session->memory().scores, planned.scores);
    std::vector<float> scores(a.num_items);
    ASSERT_TRUE(session->Score(std::vector<int32_t>{1, 2}, scores).ok());
    EXPECT_EQ(session->planned_bytes(), planned.total());
    // A user without history.
    EXPECT_GT(planned.cold_start, 4 * a.num_items);
    EXPECT_EQ(session->memory().cold_start, planned.cold_start);
    before = allocated_bytes;
    ASSERT_TRUE(session->Score({}, scores).ok());
    EXPECT_EQ(allocated_bytes - before, planned.cold_start);
    before = allocated_bytes;
    ASSERT_TRUE(session->Score({}, scores).ok());
    EXPECT_EQ(allocated_bytes, before) << "once";
  }
}

// If the file stores counts as a bias, these are copied and nothing is computed.
TEST(Memory, NoHistory_TakesLessMemoryIfTheBiasIsCounts) {
  const test::TemporaryFolder folder;
  Architecture a = Architectures()[0];
  a.head.output_bias = OutputBias::kFixed;
  const std::vector<float> weights = test::RandomWeights(a, 5);
  ASSERT_TRUE(WriteModel(folder / "m",
                         {.architecture = a, .weights = weights, .output_bias_origin = OutputBiasOrigin::kExactCounts})
                  .ok());
  const ModelFile file = *ModelFile::Open(folder / "m");
  const InferenceMemory planned = *Session::PlanMemory(file);
  const auto session = *Session::Create(*ModelFile::Open(folder / "m"));
  std::vector<float> scores(a.num_items);
  const size_t before = allocated_bytes;
  ASSERT_TRUE(session->Score({}, scores).ok());
  EXPECT_EQ(allocated_bytes - before, 4 * a.num_items);
  EXPECT_LT(allocated_bytes - before, planned.cold_start);
}

// Opening maps the file: nothing of the size of the weights is allocated, and tensors lie in the mapping.
TEST(Memory, OpeningAModelCopiesNoWeights) {
  const test::TemporaryFolder folder;
  const UniformArchitecture a = {
      .num_items = 20000, .max_length = 20, .width = 64, .num_heads = 1, .num_blocks = 1, .inner_width = 64};
  ASSERT_TRUE(WriteModel(folder / "m", {.architecture = a, .weights = test::RandomWeights(a, 5)}).ok());
  const size_t before = allocated_bytes;
  const auto file = ModelFile::Open(folder / "m");
  ASSERT_TRUE(file.ok());
  EXPECT_LE(allocated_bytes - before, size_t{100} << 10);  // the weights are 5 MB
  EXPECT_EQ(file->Tensor(0), file->flat_weights().data());
}

TEST(Memory, RefusesToPlanMoreThreadsThanAllowed) {
  TrainingOptions o{.num_steps = 2, .expected_batch = 3, .num_threads = kMaxThreads};
  EXPECT_TRUE(PlanTrainingMemory(Architectures()[0], 100, o).ok());
  o.num_threads = kMaxThreads + 1;
  EXPECT_EQ(PlanTrainingMemory(Architectures()[0], 100, o).status().code(), StatusCode::kInvalidArgument);
}

TEST(Memory, TrainerHoldsWhatIsPlanned) {
  const test::TemporaryFolder folder;
  auto ledger = *privacy::Ledger::Open(folder / "l", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  for (const Architecture& a : Architectures()) {
    const test::Ring ring(a.num_items, 1000, std::min<size_t>(a.max_length, 5));
    const std::vector<float> weights = test::StartWeights(a, {});
    for (const size_t threads : {1, 3}) {
      for (const NormForm form : {NormForm::kAutomatic, NormForm::kGram}) {
        for (const bool is_private : {false, true}) {
          if (is_private && form == NormForm::kGram && a.head.temperature > 0) continue;  // refused
          TrainingOptions o{.num_steps = 2, .expected_batch = 3, .num_threads = threads};
          o.ema_decay = threads == 3 ? 0.9f : 0.0f;
          if (form == NormForm::kGram)
            o.optimizer = {.kind = OptimizerKind::kSgd, .momentum = is_private ? 0.9f : 0.0f};
          o.privacy = {.noise_multiplier = 1, .norm_form = form, .ledger = &ledger, .run = "r", .reproducible_seed = 1};
          if (is_private) {
            o.method = Method::kPhantom;
            o.sampling = Sampling::kPoisson;
            o.num_records_public = 1000;
          }
          if (!CheckBuilt(a, o).ok()) continue;
          size_t before = allocated_bytes;
          const auto planned = PlanTrainingMemory(a, ring.records.size(), o);
          ASSERT_TRUE(planned.ok()) << planned.status().message();
          EXPECT_LE(allocated_bytes - before, TrainerObjects(a, threads)) << "planning allocates what it plans";
          before = allocated_bytes;
          const auto trainer = Trainer::Create(a, weights, ring.records, o);
          ASSERT_TRUE(trainer.ok()) << trainer.status().message();
          ExpectAllocated(planned->total(), allocated_bytes - before, TrainerObjects(a, threads));
          ExpectEqual(*planned, (*trainer)->memory());
          ASSERT_TRUE((*trainer)->Step().ok());
          EXPECT_EQ((*trainer)->planned_bytes(), planned->total());
        }
      }
    }
  }
}

// The largest rank that every matrix allows.
uint32_t SmallestSide(const Architecture& a) {
  uint32_t side = a.width;
  for (const ParameterSpec& p : ListParameters(a)) {
    if (p.shape == ParameterShape::kMatrix) side = std::min({side, p.rows, p.cols});
  }
  return side;
}

// Methods whose sums have another shape than the weights: everything is allocated before the first step.
class MethodsMemory : public ::testing::Test {
 protected:
  TrainingOptions Options(Method method, size_t threads) {
    TrainingOptions o{.method = method, .num_steps = 50, .expected_batch = 3, .num_threads = threads};
    if (method == Method::kOrdinary) return o;
    o.sampling = Sampling::kPoisson;
    o.num_records_public = 1000;
    o.privacy = {.noise_multiplier = 1,
                 .ledger = &ledger_,
                 .run = "r" + std::to_string(runs_++),
                 .steps_per_charge = 50,
                 .reproducible_seed = 1};
    return o;
  }

  // The plan equals the allocations, the trainer's own figure, and all that it holds after three steps.
  void ExpectHeld(const Architecture& a, const TrainingOptions& o) {
    ExpectHeld(a, o, test::Ring(a.num_items, 1000, std::min<size_t>(a.max_length, 5)));
  }
  void ExpectHeld(const Architecture& a, const TrainingOptions& o, const test::Ring& ring) {
    const std::vector<float> weights = test::StartWeights(a, {});
    const size_t objects = TrainerObjects(a, o.num_threads);
    size_t before = allocated_bytes;
    const auto planned = PlanTrainingMemory(a, ring.records.size(), o);
    ASSERT_TRUE(planned.ok()) << planned.status().message();
    EXPECT_LE(allocated_bytes - before, objects) << "planning allocates what it plans";
    before = allocated_bytes;
    const auto trainer = Trainer::Create(a, weights, ring.records, o);
    ASSERT_TRUE(trainer.ok()) << trainer.status().message();
    ExpectAllocated(planned->total(), allocated_bytes - before, objects);
    ExpectEqual(*planned, (*trainer)->memory());
    for (int step = 0; step < 3; ++step) ASSERT_TRUE((*trainer)->Step().ok());
    ExpectEqual(*planned, (*trainer)->memory());
    EXPECT_EQ(planned->growth_at_most, 0u);
    EXPECT_EQ(planned->rows_at_most, 0u);
  }

  std::vector<int32_t> Rows(size_t count, int32_t stride) {
    std::vector<int32_t> rows(count);
    for (size_t i = 0; i < count; ++i) rows[i] = static_cast<int32_t>(i) * stride;
    return rows;
  }

  const UniformArchitecture a_{
      .num_items = 3000, .max_length = 20, .width = 32, .num_heads = 2, .num_blocks = 1, .inner_width = 32};
  const test::TemporaryFolder folder_;
  privacy::Ledger ledger_ =
      *privacy::Ledger::Open(folder_ / "l", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  int runs_ = 0;
};

TEST_F(MethodsMemory, RgpHoldsWhatIsPlanned) {
  WISP_NEEDS(kHasRgp);
  std::vector<RgpOptions> all = {{.rank = 1}, {.rank = 4}};
  all.push_back({.rank = 3, .item_tables = RgpTrain::kFrozen});
  all.push_back({.rank = 2, .positions = RgpTrain::kFull, .vectors = RgpTrain::kFrozen});
  for (const Architecture& a : Architectures()) {
    if (a.head.temperature > 0) continue;  // refused
    for (const RgpOptions& rgp : all) {
      for (const size_t threads : {1, 3}) {
        TrainingOptions o = Options(Method::kRgp, threads);
        o.rgp = rgp;
        o.rgp.rank = std::min(rgp.rank, SmallestSide(a));
        o.ema_decay = threads == 3 ? 0.9f : 0.0f;
        ExpectHeld(a, o);
      }
    }
  }
  UniformArchitecture wide = *AsUniform(a_);  // a row that is more than a chunk of an update
  wide.width = 5000;
  wide.num_items = 9;
  wide.num_blocks = 0;
  TrainingOptions o = Options(Method::kRgp, 2);
  ExpectHeld(wide, o);
}

TEST_F(MethodsMemory, FestHoldsWhatIsPlanned) {
  WISP_NEEDS(kHasSparse);
  for (const size_t count : {1, 500, 3000}) {
    const std::vector<int32_t> rows = Rows(count, count == 3000 ? 1 : 6);
    for (const uint32_t negatives : {0, 64, 1500}) {
      for (const size_t threads : {1, 3}) {
        TrainingOptions o = Options(Method::kFest, threads);
        o.sparse.rows = rows;
        o.num_negatives = negatives;
        ExpectHeld(a_, o);
      }
    }
  }
}

TEST_F(MethodsMemory, SampledSoftmaxHoldsWhatIsPlanned) {
  WISP_NEEDS(kHasSparse);
  for (const Method method : {Method::kOrdinary, Method::kPhantom}) {
    for (const uint32_t negatives : {2, 300, 1500}) {
      TrainingOptions o = Options(method, 2);
      o.num_negatives = negatives;
      o.ema_decay = 0.9f;
      ExpectHeld(a_, o);
    }
  }
}

// Records of the longest kind, with all inputs and targets different: each names as many rows as a record can.
TEST_F(MethodsMemory, RecordsThatNameTheMostRows_Fit) {
  WISP_NEEDS(kHasSparse);
  Architecture a = a_;
  a.max_length = 5;
  test::Ring ring(a.num_items, 1000, 5);
  const std::vector<int32_t> items = Rows(1000, 2);
  for (size_t i = 0; i < ring.records.size(); ++i) {
    ring.records[i] = {std::span(items).subspan(10 * (i % 100), 5), std::span(items).subspan(10 * (i % 100) + 5, 5)};
  }
  for (const Method method : {Method::kOrdinary, Method::kPhantom, Method::kFest}) {
    TrainingOptions o = Options(method, 2);
    o.num_negatives = 2;
    o.sparse.rows = method == Method::kFest ? std::span<const int32_t>(items) : std::span<const int32_t>();
    ExpectHeld(a, o, ring);
  }
}

TEST_F(MethodsMemory, ReAttentionsPrintedVariancesAreCounted) {
  WISP_NEEDS(kHasReAttention);
  Architecture a = a_;
  a.re_attention = ReAttention::kOn;
  const std::vector<float> frequencies(a.num_items, 0.5f);
  TrainingOptions o = Options(Method::kPhantom, 2);
  ExpectHeld(a, o);
  EXPECT_EQ(PlanTrainingMemory(a, 1000, o)->variances, 0u);
  o = Options(Method::kPhantom, 2);
  o.re_attention = {.source = ReAttentionOptions::Source::kPrinted, .item_frequencies = frequencies};
  ExpectHeld(a, o);
  EXPECT_EQ(PlanTrainingMemory(a, 1000, o)->variances, 4u * a.num_items);
}

// DP-AdaFEST selects rows by the batch: the plan has a fixed part, and a bound for the part that grows.
class AdaptiveMemory : public MethodsMemory {
 protected:
  void SetUp() override { WISP_NEEDS(kHasSparse); }
  // Returns the trainer after `steps` steps, compared with its plan at each.
  size_t ExpectWithin(const Architecture& a, const TrainingOptions& o, const TrainingMemory& planned,
                      const test::Ring& ring, int steps) {
    const size_t before = allocated_bytes;
    const auto trainer = *Trainer::Create(a, test::StartWeights(a, {}), ring.records, o);
    ExpectAllocated(planned.total(), allocated_bytes - before,
                    TrainerObjects(a, o.num_threads) + FlatSize(ListParameters(a)) * sizeof(float));
    ExpectEqual(planned, trainer->memory());
    size_t records = 0, held = 0;
    for (int step = 0; step < steps; ++step) {
      const auto report = trainer->Step();
      EXPECT_TRUE(report.ok());
      records = std::max(records, report->num_records);
      const TrainingMemory now = trainer->memory();
      EXPECT_LE(now.total(), planned.total() + planned.growth_at_most) << "after step " << step;
      EXPECT_GE(now.total(), held) << "what a step took is kept";
      held = now.total();
      // Nothing else grows.
      EXPECT_EQ(now.total() - now.gradient_sums - now.record_gradients,
                planned.total() - planned.gradient_sums - planned.record_gradients);
    }
    EXPECT_GT(records, 0u);
    EXPECT_LE(records, planned.records_at_most);
    return held;
  }
};

TEST_F(AdaptiveMemory, StaysWithinItsBound) {
  const test::Ring ring(a_.num_items, 1000, 5);
  const std::vector<int32_t> rows = Rows(1000, 3);
  for (const bool masked : {false, true}) {
    for (const uint32_t negatives : {0, 64}) {
      for (const double threshold : {0.3, 3.0, 6.0}) {
        TrainingOptions o = Options(masked ? Method::kAdaFestPlus : Method::kAdaFest, 2);
        if (masked) o.sparse.rows = rows;
        o.sparse.map_threshold = threshold;
        o.num_negatives = negatives;
        o.expected_batch = 20;
        const auto planned = PlanTrainingMemory(a_, ring.records.size(), o);
        ASSERT_TRUE(planned.ok()) << planned.status().message();
        EXPECT_GT(ExpectWithin(a_, o, *planned, ring, 30), planned->total());
        EXPECT_LE(planned->rows_at_most, (masked ? rows.size() : a_.num_items) + negatives);
      }
    }
  }
}

// Every record is sampled and there is hardly any noise, so all rows that can be selected are, and the held memory
// equals the bound.
TEST_F(AdaptiveMemory, TheBoundIsReached) {
  Architecture a = a_;
  a.num_items = 400;
  const test::Ring ring(a.num_items, 1000, 5);
  const std::vector<int32_t> rows = Rows(200, 2);
  for (const bool masked : {false, true}) {
    for (const size_t threads : {1, 3}) {
      TrainingOptions o = Options(masked ? Method::kAdaFestPlus : Method::kAdaFest, threads);
      if (masked) o.sparse.rows = rows;
      o.expected_batch = 1000;
      o.privacy.noise_multiplier = 1e-3;
      o.sparse.map_threshold = 0.01;
      const auto planned = PlanTrainingMemory(a, ring.records.size(), o);
      ASSERT_TRUE(planned.ok()) << planned.status().message();
      EXPECT_EQ(planned->records_at_most, 1000u);
      EXPECT_EQ(planned->rows_at_most, masked ? rows.size() : a.num_items);
      EXPECT_EQ(ExpectWithin(a, o, *planned, ring, 2), planned->total() + planned->growth_at_most);
    }
  }
}

// A step that changes a few more rows than any before it reserves half as many again: more than it needs, but within
// the bound. Every record is sampled and touches ten rows of its own; about 97 in 100 survive, and hardly any other
// row.
TEST_F(AdaptiveMemory, SpaceReservedAhead_IsInTheBound) {
  Architecture a = a_;
  a.max_length = 5;
  test::Ring ring(a.num_items, 100, 5);
  std::vector<int32_t> items = Rows(1000, 1);
  for (size_t i = 0; i < 100; ++i)
    ring.records[i] = {std::span(items).subspan(10 * i, 5), std::span(items).subspan(10 * i + 5, 5)};
  TrainingOptions o = Options(Method::kAdaFest, 1);
  o.num_records_public = o.expected_batch = 100;
  o.privacy.noise_multiplier = 0.035;
  o.sparse.map_threshold = 0.22;
  const TrainingMemory planned = *PlanTrainingMemory(a, 100, o);
  EXPECT_GE(planned.rows_at_most, 1000u);
  EXPECT_LE(planned.rows_at_most, 1020u);
  const size_t held = ExpectWithin(a, o, planned, ring, 10);
  EXPECT_GT(held, planned.total() + 1020 * a.width * (sizeof(int64_t) + sizeof(float))) << "no room was made ahead";
}

TEST(Memory, BinomialUpperQuantileIsTheLeastCountThatIsSeldomPassed) {
  EXPECT_EQ(BinomialUpperQuantile(0, 0.5), 0u);
  EXPECT_EQ(BinomialUpperQuantile(7, 1.0), 7u);
  EXPECT_EQ(BinomialUpperQuantile(7, 0.5), 7u);  // all seven: 1 / 128
  // more than 48: 51 / 2^50 = 4.5e-14; more than 47: 1276 / 2^50 = 1.1e-12
  EXPECT_EQ(BinomialUpperQuantile(50, 0.5), 48u);
  EXPECT_EQ(BinomialUpperQuantile(1000000, 1e-20), 0u);
}

// In a large catalogue the bound depends on the batch and is far below the table's size. It grows with batch and false
// rows.
TEST_F(AdaptiveMemory, TheBoundIsOfTheBatch) {
  Architecture a = a_;
  a.num_items = 2000000;
  TrainingOptions o = Options(Method::kAdaFest, 1);
  o.num_negatives = 100;
  o.num_records_public = 100000;
  o.expected_batch = 32;
  const TrainingMemory planned = *PlanTrainingMemory(a, 100000, o);
  EXPECT_GT(planned.records_at_most, 60u);  // of Binomial(100000, 32 / 100000), P[more than 80] = 2e-13
  EXPECT_LT(planned.records_at_most, 90u);
  const size_t touched = planned.records_at_most * 2 * a.max_length;
  EXPECT_GT(planned.rows_at_most, touched + 100);  // and rows that nobody touched: the threshold is 3.5 deviations away
  EXPECT_LT(planned.rows_at_most, touched + 2000);
  EXPECT_LT(planned.growth_at_most, 3 * planned.rows_at_most * a.width * sizeof(int64_t));
  o.sparse.map_threshold = 2;
  EXPECT_GT(PlanTrainingMemory(a, 100000, o)->rows_at_most, 50000u);
  o.sparse.map_threshold = 5;
  o.expected_batch = 64;
  EXPECT_GT(PlanTrainingMemory(a, 100000, o)->growth_at_most, planned.growth_at_most);
  EXPECT_EQ(PlanTrainingMemory(a, 0, o)->records_at_most, 0u);
  o.num_records_public = 0;  // as many as there are
  EXPECT_EQ(PlanTrainingMemory(a, 100, o)->records_at_most, BinomialUpperQuantile(100, 0.64));
}

TEST_F(MethodsMemory, WhatATrainerWouldRefuseIsNotPlanned) {
  WISP_NEEDS(kHasSparse && kHasRgp);
  TrainingOptions o = Options(Method::kFest, 1);
  EXPECT_EQ(PlanTrainingMemory(a_, 1000, o).status().code(), StatusCode::kInvalidArgument);  // no rows
  o = Options(Method::kRgp, 1);
  o.rgp.rank = 33;
  EXPECT_EQ(PlanTrainingMemory(a_, 1000, o).status().code(), StatusCode::kInvalidArgument);
  o = Options(Method::kRgp, 1);
  o.num_negatives = 10;
  EXPECT_EQ(PlanTrainingMemory(a_, 1000, o).status().code(), StatusCode::kUnsupported);
  o = Options(Method::kAdaFest, 1);
  o.privacy.noise_multiplier = 0;  // the number of surviving rows depends on it
  EXPECT_EQ(PlanTrainingMemory(a_, 1000, o).status().code(), StatusCode::kInvalidArgument);
  o = Options(Method::kPhantom, 1);
  o.num_negatives = 1501;
  EXPECT_EQ(PlanTrainingMemory(a_, 1000, o).status().code(), StatusCode::kInvalidArgument);
}

// The trainer's sentence, word for word; the batch is named only if the plan depends on it.
TEST_F(MethodsMemory, WhatIsNotPlannedIsRefusedInTheTrainersWords) {
  WISP_NEEDS(kHasSparse && kHasRgp);
  const test::Ring ring(a_.num_items, 1000, 5);
  const std::vector<float> weights = test::StartWeights(a_, {});
  const std::vector<int32_t> rows = Rows(100, 3);
  const auto expect_refused = [&](const TrainingOptions& o, const char* reason) {
    const Status planned = PlanTrainingMemory(a_, ring.records.size(), o).status();
    EXPECT_EQ(planned.code(), StatusCode::kInvalidArgument) << reason;
    EXPECT_NE(planned.message().find(reason), std::string::npos) << planned.message();
    EXPECT_EQ(planned.message(), Trainer::Check(a_, weights, ring.records, o).message());
  };
  for (const Method method : {Method::kAdaFest, Method::kAdaFestPlus}) {
    TrainingOptions o = Options(method, 1);
    if (method == Method::kAdaFestPlus) o.sparse.rows = rows;
    for (const uint32_t records_public : {1000, 2000}) {
      o.num_records_public = records_public;
      o.expected_batch = 0;
      expect_refused(o, "`expected_batch` is 0, allowed");
      o.expected_batch = records_public + 1;
      expect_refused(o, "01, more than the ");
      o.expected_batch = records_public;
      EXPECT_TRUE(PlanTrainingMemory(a_, ring.records.size(), o).ok());
    }
  }
  for (const Method method : {Method::kOrdinary, Method::kPhantom, Method::kRgp}) {
    TrainingOptions o = Options(method, 1);
    for (const float decay : {-0.1f, 1.0f, NAN}) {
      o.ema_decay = decay;
      expect_refused(o, "ema_decay is ");
    }
    o.ema_decay = 0.5f;
    EXPECT_TRUE(PlanTrainingMemory(a_, 0, o).ok());
  }
}

}  // namespace
}  // namespace wisp::memory_test
