// On a device records pass together. Their clipped sums equal those of the host, which takes the records one by one.
#include "runtime/methods/phantom/formed_gradients.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/cuda.h"
#include "runtime/train/record_pass.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::formed_gradients_test {
namespace {

const kernels::Device& TheDevice() {
  static const kernels::Device device(kernels::cuda::Ops(), kernels::Memory(kernels::cuda::DeviceMemory(), nullptr));
  return device;
}

struct Outcome {
  std::vector<RecordOutcome> records;
  std::vector<int64_t> sum;
};

// A device takes all records in one pass; the host takes one after the other.
Outcome Sum(const Architecture& a, const kernels::Device& device, const std::vector<float>& weights,
            const std::vector<Record>& records, const ClipRule& clip, GridGradientSum::Grid grid) {
  const auto graph = MakeGraph(a, device, {.max_records = device.memory.is_host() ? 1 : records.size()});
  const TrainedSet trained = test::AllTrained(graph->parameters());
  AlignedArray<float> flat(weights.size(), device.memory);
  device.memory.copy_in(flat.data(), weights.data(), weights.size() * sizeof(float));
  const PackedWeights packed(graph->base(), flat.data());
  const Buffers buffers = graph->AllocateForTraining();
  RecordContext context{.weights = packed.view(), .buffers = buffers};
  GridGradientSum sum(device, trained.size(), grid);
  sum.Clear();
  const bool cosine = a.head.temperature > 0;
  std::unique_ptr<PhantomGradients> one_by_one;
  std::unique_ptr<FormedGradients> at_once;
  if (device.memory.is_host()) {
    one_by_one = std::make_unique<PhantomGradients>(device,
                                                    PhantomGradients::Setup{.parameters = graph->parameters(),
                                                                            .trained = trained,
                                                                            .head_parameter = graph->head_parameter(),
                                                                            .max_rows = a.max_length,
                                                                            .worker = 0,
                                                                            .norms_head_rows = cosine},
                                                    PhantomOptions{.clip = clip, .form = NormForm::kFormed}, sum);
  } else {
    const FormedGradients::Setup setup{graph->parameters(), trained, graph->max_records(), cosine};
    at_once = std::make_unique<FormedGradients>(device, setup, clip, sum);
  }
  const Gradients gradients = one_by_one ? Gradients(*one_by_one) : Gradients(*at_once);
  RecordPass pass(*graph);
  Outcome outcome{.records = {}, .sum = std::vector<int64_t>(trained.size())};
  const auto take = [&] {
    for (const auto& passed : pass.Run(context, gradients)) outcome.records.push_back(passed.gradient);
  };
  for (const Record& record : records) {
    if (!pass.Fits(record)) take();
    pass.Push(record, {.target_weight = 0.25f});
  }
  take();
  device.memory.copy_out(outcome.sum.data(), sum.sum().data(), trained.size() * sizeof(int64_t));
  return outcome;
}

struct Records {
  Records(const Architecture& a, uint32_t seed)
      : owned{test::RandomRecord(a.num_items, a.max_length, seed, 2), test::RandomRecord(a.num_items, 1, seed + 50),
              test::RandomRecord(a.num_items, a.max_length - 1, seed + 90)} {
    for (const auto& record : owned) views.push_back(record.view());
  }
  std::vector<test::OwnedRecord> owned;
  std::vector<Record> views;
};

constexpr float kSteps = 0x1p20f;

TEST(CudaFormedGradients, SumsAndNormsAreThoseOfTheHost) {
  uint32_t seed = 0;
  for (const Architecture& a : test::SmallArchitectures()) {
    SCOPED_TRACE(seed);
    const std::vector<float> weights = test::RandomWeights(a, ++seed);
    const Records records(a, seed);
    for (const ClipRule& clip : {ClipRule::Flat(0.5), ClipRule::Automatic(0.5)}) {
      const GridGradientSum::Grid grid{.steps_per_unit = kSteps, .max_sum_squares = std::pow(0.501 * kSteps, 2)};
      const Outcome device = Sum(a, TheDevice(), weights, records.views, clip, grid);
      const Outcome host = Sum(a, kernels::ReferenceOps(), weights, records.views, clip, grid);
      for (size_t b = 0; b < 3; ++b) {
        EXPECT_NEAR(device.records[b].norm, host.records[b].norm, 3e-5 * host.records[b].norm);
        EXPECT_NEAR(device.records[b].factor, host.records[b].factor, 3e-5 * host.records[b].factor);
        EXPECT_TRUE(device.records[b].within && device.records[b].finite);
      }
      for (size_t i = 0; i < host.sum.size(); ++i)
        ASSERT_NEAR(static_cast<double>(device.sum[i]), static_cast<double>(host.sum[i]), 5e-5 * kSteps) << i;
    }
  }
}

// A record above its bound is removed exactly, to the bit, and nothing else is.
TEST(CudaFormedGradients, ARecordAboveItsBoundIsTakenBack) {
  const Architecture a = test::SmallArchitectures()[0];
  const std::vector<float> weights = test::RandomWeights(a, 1);
  const Records records(a, 1);
  const ClipRule clip = ClipRule::Flat(1e6);  // bounds nothing
  const GridGradientSum::Grid open{.steps_per_unit = kSteps, .max_sum_squares = INFINITY};
  std::vector<double> norms;
  for (const RecordOutcome& record : Sum(a, TheDevice(), weights, records.views, clip, open).records)
    norms.push_back(record.norm);
  std::vector<double> ascending = norms;
  std::sort(ascending.begin(), ascending.end());
  const double between = (ascending[1] + ascending[2]) / 2 * kSteps;
  const Outcome bounded = Sum(a, TheDevice(), weights, records.views, clip,
                              {.steps_per_unit = kSteps, .max_sum_squares = between * between});
  std::vector<Record> small;
  for (size_t b = 0; b < 3; ++b) {
    EXPECT_EQ(bounded.records[b].within, norms[b] < ascending[2]) << b;
    if (norms[b] < ascending[2]) small.push_back(records.views[b]);
  }
  ASSERT_EQ(small.size(), 2u);
  EXPECT_EQ(bounded.sum, Sum(a, TheDevice(), weights, small, clip, open).sum);
}

// A record whose gradient is not finite adds nothing, and changes no other.
TEST(CudaFormedGradients, ARecordThatIsNotFiniteIsLeftOut) {
  Architecture a = test::SmallArchitectures()[0];
  a.head.output_table = OutputTable::kUntied;  // otherwise every record's softmax would read item 0's row
  std::vector<float> weights = test::RandomWeights(a, 1);
  // Only the middle record names item 0, whose row overflows.
  const test::OwnedRecord good[] = {{{1, 2, 3}, {2, 3, 1}}, {{3, 2}, {1, 1}}}, bad{{0, 2}, {2, 3}};
  for (size_t i = 0; i < a.width; ++i) weights[i] = 3e38f;
  const GridGradientSum::Grid grid{.steps_per_unit = kSteps, .max_sum_squares = std::pow(0.501 * kSteps, 2)};
  const Outcome outcome =
      Sum(a, TheDevice(), weights, {good[0].view(), bad.view(), good[1].view()}, ClipRule::Flat(0.5), grid);
  EXPECT_TRUE(outcome.records[0].finite && outcome.records[2].finite);
  EXPECT_FALSE(outcome.records[1].finite);
  const Outcome without = Sum(a, TheDevice(), weights, {good[0].view(), good[1].view()}, ClipRule::Flat(0.5), grid);
  EXPECT_EQ(outcome.sum, without.sum);
}

}  // namespace
}  // namespace wisp::formed_gradients_test
