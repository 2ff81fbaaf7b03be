// A graph whose buffers lie in memory that the host cannot touch, so that any access other than an op or a copy ends
// the process. Loss and every record's gradient equal those of the reference on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "runtime/gradients/form_outer.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/packed_weights.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::graph_test {
namespace {

// Writes each record's gradient into a row of its own, in the layout of the weights.
class FormedRows final : public FactorSink {
 public:
  FormedRows(const Graph& graph, size_t records)
      : graph_(graph),
        size_(FlatSize(graph.parameters())),
        rows_(records * size_, graph.device().memory),
        scratch_(FormOuterScratch(kHeadTile, graph.architecture().width), graph.device().memory) {}

  bool Wants(size_t parameter) const override { return graph_.parameters()[parameter].trained; }
  void Outer(const OuterFactor& f) override {
    if (f.row_norm) return AddNormedOuter(f);
    graph_.ops().record_weight_gradients({.dy_RN = f.dy_RN,
                                          .lddy = f.lddy,
                                          .x_RK = f.x_RK,
                                          .ldx = f.ldx,
                                          .dw_BNK = At(f.parameter) + f.first_row * f.k,
                                          .stride = size_,
                                          .records = f.records,
                                          .n = f.n,
                                          .k = f.k});
  }
  void Rows(const RowsFactor& f) override {
    graph_.ops().record_scatter_add({.dx_RD = f.dx_RD,
                                     .lddx = f.lddx,
                                     .ids_R = f.ids_R,
                                     .table_BMD = At(f.parameter),
                                     .stride = size_,
                                     .records = f.records,
                                     .d = f.d,
                                     .scale = f.scale});
  }
  void Vector(const VectorFactor& f) override {
    graph_.ops().add_rows({.x_BN = f.g_BN,
                           .ldx = f.n,
                           .y_BN = At(f.parameter) + f.first,
                           .ldy = size_,
                           .rows = rows_.size() / size_,
                           .n = f.n});
  }
  std::vector<float> Values() const {
    std::vector<float> values(rows_.size());
    graph_.device().memory.copy_out(values.data(), rows_.data(), values.size() * sizeof(float));
    return values;
  }

 private:
  float* At(size_t parameter) const { return rows_.data() + graph_.parameters()[parameter].offset; }
  void AddNormedOuter(const OuterFactor& f) {
    for (size_t b = 0; b < f.records.num_records; ++b) {
      OuterFactor own = f;
      own.dy_RN += f.records.begin(b) * f.lddy;
      own.x_RK += f.records.begin(b) * f.ldx;
      own.records = {.rows = f.records.size(b)};
      FormOuter(graph_.ops(), own, kernels::Store::kAdd, scratch_.data(),
                At(f.parameter) + b * size_ + f.first_row * f.k);
    }
  }

  const Graph& graph_;
  size_t size_;
  AlignedArray<float> rows_, scratch_;
};

struct Outcome {
  std::vector<double> losses;
  std::vector<float> gradients, representations;
};

Outcome Pass(const Architecture& a, const kernels::Device& device, const std::vector<float>& weights,
             const std::vector<Record>& records) {
  const auto graph = MakeGraph(a, device, {.max_records = records.size()});
  AlignedArray<float> flat(weights.size(), device.memory);
  device.memory.copy_in(flat.data(), weights.data(), weights.size() * sizeof(float));
  const PackedWeights packed(graph->base(), flat.data());
  const Buffers buffers = graph->AllocateForTraining();
  const std::vector<RecordOptions> options(records.size(), {.dropout_seed = 7, .target_weight = 0.25f});
  const DropoutRates dropout{.embedding = 0.2f, .attention = 0.1f, .residual = 0.3f};
  RecordContext context{.weights = packed.view(), .buffers = buffers, .dropout = &dropout, .options_B = options.data()};
  FormedRows sink(*graph, records.size());
  Outcome outcome{.losses = std::vector<double>(records.size()),
                  .gradients = {},
                  .representations = std::vector<float>(records.size() * a.width)};
  graph->Forward(context, records, outcome.losses.data());
  graph->Backward(context, records, sink);
  outcome.gradients = sink.Values();
  RecordContext whole{.weights = packed.view(), .buffers = buffers};
  if (a.head.kind == HeadKind::kNextItem) return outcome;
  graph->Represent(whole, records, outcome.representations.data());
  return outcome;
}

void ExpectSame(const Outcome& device, const Outcome& host) {
  for (size_t b = 0; b < host.losses.size(); ++b) EXPECT_NEAR(device.losses[b], host.losses[b], 2e-5) << b;
  ASSERT_EQ(device.gradients.size(), host.gradients.size());
  float largest = 0;
  for (float g : host.gradients) largest = std::max(largest, std::abs(g));
  EXPECT_GT(largest, 0);
  for (size_t i = 0; i < host.gradients.size(); ++i)
    ASSERT_NEAR(device.gradients[i], host.gradients[i], 3e-5f * largest) << i;
  for (size_t i = 0; i < host.representations.size(); ++i)
    ASSERT_NEAR(device.representations[i], host.representations[i], 2e-5f) << i;
}

const kernels::Device& TheDevice() {
  static const kernels::Device device(kernels::cuda::Ops(), kernels::Memory(kernels::cuda::DeviceMemory(), nullptr));
  return device;
}

TEST(CudaGraph, EveryRecommenderGivesTheLossAndGradientsOfTheHost) {
  uint32_t seed = 0;
  for (const Architecture& a : test::SmallArchitectures()) {
    SCOPED_TRACE(seed);
    const std::vector<float> weights = test::RandomWeights(a, ++seed);
    const test::OwnedRecord owned[] = {test::RandomRecord(a.num_items, a.max_length, seed, 2),
                                       test::RandomRecord(a.num_items, 1, seed + 50),
                                       test::RandomRecord(a.num_items, a.max_length - 1, seed + 90)};
    for (size_t count : {size_t{1}, size_t{3}}) {
      std::vector<Record> records;
      for (size_t b = 0; b < count; ++b) records.push_back(owned[b].view());
      ExpectSame(Pass(a, TheDevice(), weights, records), Pass(a, kernels::ReferenceOps(), weights, records));
    }
  }
}

// Several tiles of the host are one of a device. Of several tiles of its own a head keeps neither logits nor gradients
// from one to the next.
TEST(CudaGraph, ACatalogueOfSeveralTilesDoesToo) {
  for (const size_t more : {kHeadTile, kDeviceHeadTile}) {
    const Architecture a = UniformArchitecture{.num_items = static_cast<uint32_t>(more + kHeadTile + 40),
                                               .max_length = 5,
                                               .width = 4,
                                               .num_heads = 2,
                                               .num_blocks = 1,
                                               .inner_width = 6,
                                               .output_table = OutputTable::kUntied,
                                               .output_bias = OutputBias::kTrained};
    const std::vector<float> weights = test::RandomWeights(a, 4);
    test::OwnedRecord owned[] = {test::RandomRecord(a.num_items, 5, 1, 1), test::RandomRecord(a.num_items, 3, 2)};
    owned[1].targets[1] = static_cast<int32_t>(a.num_items - 1);  // in the last tile
    const std::vector<Record> records = {owned[0].view(), owned[1].view()};
    ExpectSame(Pass(a, TheDevice(), weights, records), Pass(a, kernels::ReferenceOps(), weights, records));
  }
}

TEST(CudaGraph, ClassifiersDoToo) {
  const UniformArchitecture uniform{.num_items = 9,
                                    .max_length = 6,
                                    .width = 4,
                                    .num_heads = 2,
                                    .num_blocks = 2,
                                    .inner_width = 6,
                                    .attend = Attend::kAll};
  const Architecture a = WithClasses(uniform, 3);
  const std::vector<float> weights = test::RandomWeights(a, 5);
  const std::vector<int32_t> texts[] = {{0, 4, 3, 8}, {0, 1}, {0, 2, 2, 5, 7, 1}};
  const std::vector<int32_t> labels = {2, 0, 1};
  for (size_t count : {size_t{1}, size_t{3}}) {
    std::vector<Record> records;
    for (size_t b = 0; b < count; ++b) records.push_back({texts[b], {&labels[b], 1}});
    ExpectSame(Pass(a, TheDevice(), weights, records), Pass(a, kernels::ReferenceOps(), weights, records));
  }
}

}  // namespace
}  // namespace wisp::graph_test
