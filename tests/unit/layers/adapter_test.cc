// Low-rank adapters: the graph with them, its gradients, and training that changes nothing else.
#include "runtime/layers/adapter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/model/checkpoint.h"
#include "runtime/train/trainer.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/memory_test_util.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::adapter_test {
namespace {

using test::Harness;
using test::RandomWeights;

// Every matrix, and some matrices of blocks that differ; ranks that do not fill a register.
std::vector<Architecture> AdaptedArchitectures() {
  Architecture even = test::SmallArchitectures()[1], mixed = test::MixedArchitecture();
  even.adapter = AdapterSpec{.rank = 3, .alpha = 2};
  mixed.adapter = AdapterSpec{.rank = 2, .alpha = 5, .matrices = AdapterSpec::kQkv | AdapterSpec::kFeedForwardOut};
  return {even, mixed};
}

TEST(Adapter, StandsBehindAFrozenBase) {
  for (const Architecture& a : AdaptedArchitectures()) {
    ASSERT_TRUE(Validate(a).ok()) << Validate(a).message();
    const auto base = ListParameters(WithoutAdapter(a)), all = ListParameters(a);
    ASSERT_GT(all.size(), base.size());
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].trained, i >= base.size()) << all[i].name;
      if (i >= base.size()) continue;
      EXPECT_EQ(all[i].name, base[i].name);
      EXPECT_EQ(all[i].offset, base[i].offset);
    }
  }
}

TEST(Adapter, InvalidAdapters_AreRefused) {
  const Architecture good = AdaptedArchitectures()[0];
  const auto refused = [&](auto&& change) {
    Architecture a = good;
    change(a);
    return Validate(a).message();
  };
  EXPECT_NE(refused([](Architecture& a) { a.adapter->rank = 0; }).find("adapter.rank is 0"), std::string::npos);
  EXPECT_NE(refused([](Architecture& a) { a.adapter->rank = 5; }).find("adapter.rank is 5"), std::string::npos);
  EXPECT_NE(refused([](Architecture& a) { a.adapter->alpha = 0; }).find("adapter.alpha"), std::string::npos);
  EXPECT_NE(refused([](Architecture& a) { a.adapter->alpha = NAN; }).find("adapter.alpha"), std::string::npos);
  EXPECT_NE(refused([](Architecture& a) { a.adapter->matrices = 0; }).find("adapter.matrices"), std::string::npos);
  EXPECT_NE(refused([](Architecture& a) { a.adapter->matrices = 16; }).find("adapter.matrices"), std::string::npos);
  EXPECT_NE(refused([](Architecture& a) { a.blocks.clear(); }).find("no block"), std::string::npos);
  EXPECT_NE(refused([](Architecture& a) { a.re_attention = ReAttention::kOn; }).find("Re-Attention"),
            std::string::npos);
}

TEST(Adapter, ScoresAsTheMergedModelDoes) {
  for (const Architecture& a : AdaptedArchitectures()) {
    const std::vector<float> weights = RandomWeights(a, 3), merged = MergedWeights(a, weights);
    ASSERT_EQ(merged.size(), FlatSize(ListParameters(WithoutAdapter(a))));
    for (const kernels::OpTable* ops : kernels::AllOps()) {
      if (ops == kernels::Int8Ops()) continue;  // rounds weights: merged ones to other integers
      const auto record = test::EndsRecord(a.num_items);
      Harness beside(a, weights, *ops), one(WithoutAdapter(a), merged, *ops),
          without(WithoutAdapter(a), {weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(merged.size())},
                  *ops);
      EXPECT_NEAR(beside.Loss(record.view()), one.Loss(record.view()), 1e-4 * std::abs(one.Loss(record.view())));
      EXPECT_GT(std::abs(beside.Loss(record.view()) - without.Loss(record.view())), 1e-3);
    }
  }
}

// Compares with dual numbers, in both ways of computing a norm; the base gets no gradient.
TEST(Adapter, GradientsEqualTheOracles) {
  for (const Architecture& a : AdaptedArchitectures()) {
    const std::vector<float> weights = RandomWeights(a, 5);
    const auto parameters = ListParameters(a);
    const auto record = test::EndsRecord(a.num_items);
    const std::vector<double> expected = test::NaiveGradient(a, weights, record.view());
    ASSERT_GT(test::Norm(expected), 0.01);
    for (const kernels::OpTable* ops : kernels::AllOps()) {
      for (NormForm form : {NormForm::kFormed, NormForm::kGram}) {
        Harness h(a, weights, *ops);
        FloatGradientSum sum(*ops, h.trained.size(), 1);
        PhantomGradients gradients(*ops, h.Setup(), {.clip = ClipRule::Flat(1e6), .form = form}, sum);
        sum.Clear();
        const RecordOutcome outcome = h.Add(record.view(), gradients);
        std::vector<float> flat(weights.size(), 0.0f);
        h.trained.Scatter(parameters, sum.sum(), flat);
        double wrong = 0;
        for (size_t i = 0; i < flat.size(); ++i) wrong += std::pow(flat[i] - expected[i], 2);
        EXPECT_LT(std::sqrt(wrong), 2e-4 * test::Norm(expected)) << ops->name;
        EXPECT_NEAR(outcome.norm, test::Norm(expected), 2e-4 * test::Norm(expected));
      }
    }
  }
}

class AdapterTraining : public test::RingTraining {
 protected:
  AdapterTraining() : RingTraining(200), adapted_(kSmall) {
    adapted_.adapter = AdapterSpec{.rank = 2, .alpha = 2};
    start_of_all_ = test::StartWeights(adapted_);
  }

  TrainingOptions Options(Method method, uint64_t steps) {
    TrainingOptions o{.method = method, .num_steps = steps, .expected_batch = 20, .num_threads = 2};
    o.optimizer.learning_rate = 0.01f;
    if (method == Method::kOrdinary) return o;
    o.sampling = Sampling::kPoisson;
    o.num_records_public = 200;
    o.privacy = {.noise_multiplier = 0.5, .ledger = &ledger_, .run = "r", .reproducible_seed = 1};
    o.rgp.rank = 1;
    return o;
  }

  // Returns the weights after several steps. Those of the base must equal the start, bit for bit, and each of the
  // adapter's must differ.
  std::vector<float> Train(const TrainingOptions& o) {
    auto trainer = *Trainer::Create(adapted_, start_of_all_, ring_.records, o);
    for (uint64_t step = 0; step < o.num_steps; ++step) EXPECT_TRUE(trainer->Step().ok());
    size_t moved = 0, kept = 0;
    for (const ParameterSpec& p : ListParameters(adapted_)) {
      for (size_t i = p.offset; i < p.offset + p.size(); ++i) {
        const bool same = trainer->weights()[i] == start_of_all_[i];
        EXPECT_EQ(same, !p.trained) << p.name << " " << i - p.offset;
        ++(same ? kept : moved);
      }
    }
    EXPECT_GT(kept, moved);
    return {trainer->weights().begin(), trainer->weights().end()};
  }

  Architecture adapted_;
  std::vector<float> start_of_all_;
  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(AdapterTraining, StartsAsItsBase) {
  const std::vector<float> merged = MergedWeights(adapted_, start_of_all_);
  for (size_t i = 0; i < merged.size(); ++i) ASSERT_EQ(merged[i], start_of_all_[i]) << i;
}

TEST_F(AdapterTraining, OrdinaryTrainingMovesTheAdapterAlone) { Train(Options(Method::kOrdinary, 5)); }

TEST_F(AdapterTraining, PrivateTrainingNoisesTheAdapterAlone) {
  Train(Options(Method::kPhantom, 2));
  if (kHasRgp) Train(Options(Method::kRgp, 2));
}

TEST_F(AdapterTraining, ReleasesWhatTheAdapterHas) {
  uint64_t numbers = 0;
  for (const ParameterSpec& p : ListParameters(adapted_)) numbers += p.trained ? p.size() : 0;
  EXPECT_EQ(numbers, 2u * (16 + 48 + 16 + 16 + 16 + 16 + 16 + 16));
  EXPECT_EQ(NumReleased(adapted_, Options(Method::kPhantom, 1)), numbers);
}

TEST_F(AdapterTraining, CostsWhatTheAdapterWeighs) {
  for (Method method : {Method::kOrdinary, Method::kPhantom, Method::kRgp}) {
    const TrainingOptions o = Options(method, 3);
    if (!CheckBuilt(adapted_, o).ok()) continue;
    const TrainingMemory all = *PlanTrainingMemory(kSmall, 200, o), adapter = *PlanTrainingMemory(adapted_, 200, o);
    EXPECT_LT(adapter.optimizer_state, all.optimizer_state / 2);
    EXPECT_LT(adapter.gradient_sums, all.gradient_sums);
    // Ordinary training forms no gradients of single records.
    if (method != Method::kOrdinary) {
      EXPECT_LT(adapter.record_gradients, all.record_gradients);
    }
    auto trainer = *Trainer::Create(adapted_, start_of_all_, ring_.records, o);
    test::ExpectEqual(adapter, trainer->memory());
  }
}

// The checkpoint has weights, moments and average of the adapter alone; whoever resumes brings the base.
TEST_F(AdapterTraining, CheckpointHoldsTheAdapterAlone) {
  TrainingOptions o = Options(Method::kPhantom, 6);
  o.ema_decay = 0.9f;
  o.base_model_hash = 7;
  const std::vector<float> whole = Train(o);
  auto half = *Trainer::Create(adapted_, start_of_all_, ring_.records, o);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(half->Step().ok());
  const std::string path = folder_ / "c";
  ASSERT_TRUE(WriteCheckpoint(path, *half->Save()).ok());
  const Checkpoint c = *ReadCheckpoint(path);
  const size_t size = test::AllTrained(ListParameters(adapted_)).size();
  for (const auto* array : {&c.weights, &c.first_moment, &c.second_moment, &c.average}) EXPECT_EQ(array->size(), size);
  auto rest = *Trainer::Create(adapted_, start_of_all_, ring_.records, o);
  ASSERT_TRUE(rest->Restore(c).ok()) << rest->Restore(c).message();
  for (int step = 3; step < 6; ++step) ASSERT_TRUE(rest->Step().ok());
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), rest->weights().begin()));
  Checkpoint cut = c;
  cut.weights.pop_back();
  EXPECT_FALSE(rest->Restore(cut).ok());
  cut = c;
  cut.average.clear();
  EXPECT_FALSE(rest->Restore(cut).ok());
}

TEST_F(AdapterTraining, RowsOfTheTableAreNotItsToTrain) {
  WISP_NEEDS(kHasSparse);
  TrainingOptions o = Options(Method::kAdaFest, 1);
  const Status refused = Trainer::Check(adapted_, start_of_all_, ring_.records, o);
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.message().find("adapter"), std::string::npos) << refused.message();
  o = Options(Method::kOrdinary, 1);
  o.num_negatives = 4;
  EXPECT_EQ(Trainer::Check(adapted_, start_of_all_, ring_.records, o).code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace wisp::adapter_test
