// A steady training step and a score allocate nothing, and a ledger rolls back without memory. The tests see this by
// replacing the global allocator.
#include "tests/unit/core/counting_allocator.h"

#include <gtest/gtest.h>

#include "runtime/inference/batch_recommender.h"
#include "runtime/privacy/ledger/ledger_database.h"
#include "runtime/train/trainer.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::allocation_test {
namespace {

using test::num_allocations;

const UniformArchitecture kSmall{
    .num_items = 300, .max_length = 12, .width = 16, .num_heads = 2, .num_blocks = 2, .inner_width = 16};

// An architecture with newer switches of blocks and a cosine head.
Architecture Newer() {
  UniformArchitecture a = kSmall;
  a.num_kv_heads = 1;
  a.rotary.width = 4;
  a.norm_kind = NormKind::kRms;
  a.residual = Residual::kGated;
  a.gated = true;
  a.activation = ActivationKind::kSilu;
  a.temperature = 0.2f;
  return a;
}

size_t CountStepAllocations(Trainer& trainer) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(trainer.Step().ok());
  const size_t before = num_allocations;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(trainer.Step().ok());
  return num_allocations - before;
}

TEST(Allocation, SteadyStepAllocatesNothing) {
  const test::Ring ring(300, 40, 10);
  const std::vector<float> weights = test::StartWeights(kSmall, {});
  for (Sampling sampling : {Sampling::kShuffled, Sampling::kPoisson}) {
    TrainingOptions o{.sampling = sampling,
                      .num_steps = 100,
                      .expected_batch = 8,
                      .dropout = {0.1f, 0.1f, 0.1f},
                      .ema_decay = 0.9f,
                      .num_threads = 2};
    EXPECT_EQ(CountStepAllocations(**Trainer::Create(kSmall, weights, ring.records, o)), 0u);
  }
}

// Tests steps that an earlier charge has paid for, with repeatable noise and with the system's randomness.
TEST(Allocation, SteadyPrivateStepAllocatesNothing) {
  const test::Ring ring(300, 40, 10);
  const std::vector<float> weights = test::StartWeights(kSmall, {});
  const test::TemporaryFolder folder;
  for (const bool secure : {false, true}) {
    for (const NormForm form : {NormForm::kFormed, NormForm::kGram}) {
      auto ledger = *privacy::Ledger::Open(folder / (std::to_string(secure) + std::to_string(static_cast<int>(form))),
                                           {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
      TrainingOptions o{.method = Method::kPhantom,
                        .sampling = Sampling::kPoisson,
                        .num_steps = 100,
                        .expected_batch = 8,
                        .num_records_public = 40,
                        .dropout = {0.1f, 0.1f, 0.1f},
                        .num_threads = 2};
      o.privacy = {.noise_multiplier = 1,
                   .clipping_norm = 1,
                   .norm_form = form,
                   .ledger = &ledger,
                   .run = "r",
                   .steps_per_charge = 100};
      if (!secure) o.privacy.reproducible_seed = 7;
      EXPECT_EQ(CountStepAllocations(**Trainer::Create(kSmall, weights, ring.records, o)), 0u) << "secure " << secure;
    }
  }
}

// The other methods. rgp, fest and a sampled softmax reserve their workspace before the first step. That of adafest
// grows if a step changes more rows than any before it (no longer after 60 steps with these seeds).
// Each method runs on an architecture that it is offered for.
std::vector<std::pair<Method, Architecture>> Cases() {
  std::vector<std::pair<Method, Architecture>> all;
  for (const Method method :
       {Method::kOrdinary, Method::kPhantom, Method::kRgp, Method::kFest, Method::kAdaFest, Method::kAdaFestPlus}) {
    all.emplace_back(method, kSmall);
    if (method != Method::kRgp) all.emplace_back(method, Newer());
  }
  return all;
}

TEST(Allocation, SteadyStepOfEveryMethodAllocatesNothing) {
  const test::Ring ring(300, 40, 10);
  const test::TemporaryFolder folder;
  auto ledger = *privacy::Ledger::Open(folder / "l", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  std::vector<int32_t> rows(100);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(3 * i);
  int run = 0;
  for (const auto& [method, a] : Cases()) {
    const std::vector<float> weights = test::StartWeights(a, {});
    for (const uint32_t negatives : {0, 50}) {
      if ((method == Method::kRgp || a.head.temperature > 0) && negatives > 0) continue;
      TrainingOptions o{.method = method,
                        .sampling = Sampling::kPoisson,
                        .num_steps = 100,
                        .expected_batch = 8,
                        .num_records_public = 40,
                        .dropout = {0.1f, 0.1f, 0.1f},
                        .num_threads = 2};
      o.privacy = {.noise_multiplier = 1,
                   .ledger = &ledger,
                   .run = std::to_string(run++),
                   .steps_per_charge = 100,
                   .reproducible_seed = 7};
      if (method == Method::kFest || method == Method::kAdaFestPlus) o.sparse.rows = rows;
      o.sparse.map_threshold = 0.1;
      o.num_negatives = negatives;
      if (!CheckBuilt(a, o).ok()) continue;
      const auto trainer = *Trainer::Create(a, weights, ring.records, o);
      EXPECT_TRUE(trainer->Step().ok());  // charges
      const size_t before = num_allocations;
      const bool grows = method == Method::kAdaFest || method == Method::kAdaFestPlus;
      for (int i = 0; i < (grows ? 40 : 1); ++i) EXPECT_TRUE(trainer->Step().ok());
      if (!grows) {
        EXPECT_EQ(num_allocations - before, 0u)
            << "method " << static_cast<int>(method) << ", " << negatives << " negatives: the second step";
      }
      EXPECT_EQ(CountStepAllocations(*trainer), 0u)
          << "method " << static_cast<int>(method) << ", " << negatives << " negatives";
    }
  }
}

// A charge writes a row of the ledger. Only the ledger allocates for it, and each charge allocates the same.
TEST(Allocation, StepThatChargesAllocatesInTheLedgerOnly) {
  const test::Ring ring(300, 40, 10);
  const std::vector<float> weights = test::StartWeights(kSmall, {});
  const test::TemporaryFolder folder;
  auto ledger = *privacy::Ledger::Open(folder / "l", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  TrainingOptions o{.method = Method::kPhantom,
                    .sampling = Sampling::kPoisson,
                    .num_steps = 1000,
                    .expected_batch = 8,
                    .num_records_public = 40,
                    .num_threads = 1};
  o.privacy = {.noise_multiplier = 1,
               .clipping_norm = 1,
               .ledger = &ledger,
               .run = "r",
               .steps_per_charge = 10,
               .reproducible_seed = 7};
  const auto trainer = *Trainer::Create(kSmall, weights, ring.records, o);
  const size_t charging = CountStepAllocations(*trainer);  // two charges
  EXPECT_GT(charging, 0u);
  EXPECT_LT(charging, 2 * 200u);  // 2 x 67 with g++ 12.2, 2026-11-21
  size_t most = 0;
  for (int i = 0; i < 20; ++i) {
    const size_t before = num_allocations;
    ASSERT_TRUE(trainer->Step().ok());
    if (i % 10 != 0) most = std::max<size_t>(most, num_allocations - before);
  }
  EXPECT_EQ(most, 0u);
}

// SQLite rolls back by itself if memory fails. The explicit rollback after it then fails, and there may be no memory
// for its error sentence.
TEST(Allocation, ARollbackThatFailsNeedsNoMemory) {
  auto database = *privacy::Database::InMemory("a ledger in memory");
  const auto roll_back_twice = [&](const auto& begun) {
    ASSERT_TRUE(begun.ok());
    ASSERT_TRUE(database.Execute("ROLLBACK").ok());
    test::no_memory = true;
  };
  roll_back_twice(privacy::Transaction::Begin(database));
  test::no_memory = false;
  roll_back_twice(privacy::Snapshot::Begin(database));
  test::no_memory = false;
  EXPECT_FALSE(database.in_transaction());
}

TEST(Allocation, BatchAllocatesNothing) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WriteModel(folder / "m", {.architecture = kSmall, .weights = test::StartWeights(kSmall)}).ok());
  const auto session = *Session::Open(folder / "m");
  std::vector<int32_t> items(40);
  for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<int32_t>(i * 7);
  std::vector<std::span<const int32_t>> histories;
  for (size_t i = 1; i <= items.size(); ++i) histories.push_back(std::span(items).first(i));
  std::vector<Recommendation> best(histories.size() * 10);
  std::vector<size_t> found(histories.size());
  for (const size_t threads : {1, 2}) {
    const auto batch = *BatchRecommender::Create(*session, {.num_threads = threads, .rows = 8});
    for (size_t count = 1; count <= histories.size(); ++count) {
      const size_t before = num_allocations;
      ASSERT_TRUE(batch
                      ->Recommend(std::span(histories).first(count),
                                  {.count = 10, .excluded = std::span(items).first(1)}, best, found)
                      .ok());
      EXPECT_EQ(num_allocations - before, 0u) << count;
    }
  }
}

TEST(Allocation, ScoreAllocatesNothingAndRecommendWhatItReturns) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WriteModel(folder / "m", {.architecture = kSmall, .weights = test::StartWeights(kSmall)}).ok());
  const auto session = *Session::Open(folder / "m");
  std::vector<float> scores(kSmall.num_items);
  std::vector<int32_t> history;
  for (int32_t item = 0; item < 20; ++item) {  // grows by one event at a time, then slides
    history.push_back(item * 3);
    size_t before = num_allocations;
    ASSERT_TRUE(session->Score(history, scores).ok());
    EXPECT_EQ(num_allocations - before, 0u) << history.size();
    before = num_allocations;
    const auto top = session->Recommend(history, {.count = 10, .excluded = std::span(history).first(1)});
    EXPECT_EQ(num_allocations - before, 1u) << history.size();  // the returned vector
    ASSERT_TRUE(top.ok());
  }
}

// The model is large enough for the threads to share it.
TEST(Allocation, ScoreOnSeveralThreadsAllocatesNothing) {
  const UniformArchitecture a{
      .num_items = 300, .max_length = 90, .width = 96, .num_heads = 2, .num_blocks = 2, .inner_width = 200};
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WriteModel(folder / "m", {.architecture = a, .weights = test::StartWeights(a)}).ok());
  const auto session = *Session::Open(folder / "m", {.num_threads = 2});
  std::vector<float> scores(a.num_items);
  std::vector<int32_t> history(80);
  for (int32_t i = 0; i < 10; ++i) {
    history[0] = i;  // so that nothing can be reused
    const size_t before = num_allocations;
    ASSERT_TRUE(session->Score(history, scores).ok());
    EXPECT_EQ(num_allocations - before, 0u);
  }
}

}  // namespace
}  // namespace wisp::allocation_test
