// Small recommenders, records, and naive gradients with which the product's are compared.
#ifndef WISP_TESTS_UNIT_GRADIENTS_GRADIENT_TEST_UTIL_H_
#define WISP_TESTS_UNIT_GRADIENTS_GRADIENT_TEST_UTIL_H_

#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/reference/dual.h"
#include "runtime/methods/phantom/phantom_gradients.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/layers/recommender.h"
#include "runtime/train/record_pass.h"
#include "tests/unit/layers/naive_recommender.h"

namespace wisp::test {

inline std::vector<float> RandomWeights(const Architecture& a, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.4f);
  std::vector<float> weights(FlatSize(ListParameters(a)), 0.0f);
  for (const ParameterSpec& p : ListParameters(a)) {
    for (size_t i = 0; i < p.size(); ++i)
      weights[p.offset + i] = normal(random) + (p.name.ends_with("gain") ? 1.0f : 0.0f);
    for (size_t i = 0; p.name.ends_with("variance") && i < p.size(); ++i)
      weights[p.offset + i] = 0.1f * std::abs(weights[p.offset + i]);
  }
  return weights;
}

// A record that owns its items: `length` random transitions, the first `padding` of them padding.
struct OwnedRecord {
  std::vector<int32_t> inputs, targets;
  Record view() const { return {inputs, targets}; }
};

inline OwnedRecord RandomRecord(uint32_t num_items, size_t length, uint32_t seed, size_t padding = 0) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int32_t> item(0, static_cast<int32_t>(num_items) - 1);
  OwnedRecord record;
  for (size_t t = 0; t < length; ++t) {
    record.inputs.push_back(t < padding ? -1 : item(random));
    record.targets.push_back(t < padding ? -1 : item(random));
  }
  return record;
}

// Makes a record of the first and the last item, which a loop over rows might miss: as inputs and as targets, alone and
// repeated.
inline OwnedRecord EndsRecord(uint32_t num_items) {
  const auto last = static_cast<int32_t>(num_items) - 1;
  return {{0, last, 3, 0, last, 2}, {last, 0, 1, 3, 0, last}};
}

// Returns d loss / d weight for every trained weight (0 for others), by dual numbers through the naive recommender.
// With negatives, the loss is that of the sampled softmax.
inline std::vector<double> NaiveGradient(const Architecture& a, std::span<const float> weights, const Record& record,
                                         std::span<const int32_t> negatives = {}) {
  using kernels::reference::Dual;
  std::vector<Dual> dual(weights.begin(), weights.end());
  std::vector<double> gradient(weights.size(), 0.0);
  double targets = 0;
  for (int32_t id : record.targets) targets += id >= 0;
  const NaiveRecommender<Dual> naive(a, dual);
  for (const ParameterSpec& p : ListParameters(a)) {
    for (size_t i = p.offset; p.trained && i < p.offset + p.size(); ++i) {
      dual[i].derivative = 1;
      gradient[i] = negatives.empty()
                        ? naive.Loss(record.inputs, record.targets, 1.0 / targets).derivative
                        : naive.SampledLoss(record.inputs, record.targets, negatives, 1.0 / targets).derivative;
      dual[i].derivative = 0;
    }
  }
  return gradient;
}

inline double Norm(std::span<const double> g) {
  double sum = 0;
  for (double v : g) sum += v * v;
  return std::sqrt(sum);
}

// Returns everything that the architecture trains.
inline TrainedSet AllTrained(const std::vector<ParameterSpec>& parameters) {
  return TrainedSet(parameters, [](const ParameterSpec& p) { return p.trained; });
}

// Returns the weights with those that follow from others.
inline std::vector<float> Derived(const Graph& graph, std::vector<float> weights) {
  graph.Derive(weights, 0, 1);
  return weights;
}

// The product's graph, with all that a record needs.
class Harness {
 public:
  Harness(const Architecture& a, std::vector<float> weights, const kernels::OpTable& ops)
      : made(MakeGraph(a, ops, {})),
        graph(*made),
        trained(AllTrained(graph.parameters())),
        flat(Derived(graph, std::move(weights))),
        packed(graph.base(), flat.data()),
        buffers(graph.AllocateForTraining()),
        view(packed.view()) {}

  double Loss(const Record& record) {
    const RecordOptions options{.target_weight = PositionWeight(record)};
    RecordContext context{.weights = view, .buffers = buffers, .options_B = &options};
    double loss = 0;
    graph.Forward(context, {&record, 1}, &loss);
    return loss;
  }

  RecordOutcome Add(const Record& record, RecordGradients& gradients) {
    RecordContext context{.weights = view, .buffers = buffers};
    RecordPass pass(graph);
    pass.Push(record, {.target_weight = PositionWeight(record)});
    return pass.Run(context, gradients)[0].gradient;
  }

  PhantomGradients::Setup Setup() const {
    return {.parameters = graph.parameters(),
            .trained = trained,
            .head_parameter = graph.head_parameter(),
            .max_rows = graph.max_record_rows(),
            .worker = 0,
            .norms_head_rows = graph.architecture().head.temperature > 0};
  }

  std::unique_ptr<const Graph> made;
  const Graph& graph;
  TrainedSet trained;
  std::vector<float> flat;
  PackedWeights packed;
  Buffers buffers;
  Weights view;

 private:
  static float PositionWeight(const Record& record) {
    size_t targets = 0;
    for (int32_t id : record.targets) targets += id >= 0;
    return 1.0f / static_cast<float>(targets);
  }
};

// Returns an architecture whose blocks differ in all that a block can have: heads, their width, the place of norms, the
// activation.
inline Architecture MixedArchitecture() {
  return {.num_items = 9,
          .max_length = 6,
          .width = 4,
          .embedding_scale = 1.7f,
          .blocks = {{.norm = NormPlacement::kPost,
                      .norm_epsilon = 1e-3f,
                      .attention = {.num_heads = 3, .num_kv_heads = 3, .head_width = 2},
                      .feed_forward = {.inner_width = 5, .activation = ActivationKind::kRelu}},
                     {.attention = {.num_heads = 1, .num_kv_heads = 1, .head_width = 3, .slope = 0.4f},
                      .feed_forward = {.inner_width = 9}},
                     {.attention = {.num_heads = 2, .num_kv_heads = 2, .head_width = 2},
                      .feed_forward = {.inner_width = 2}}},
          .final_norm_epsilon = 1e-4f};
}

// Architectures with switches that are not in the first recommenders, each alone and combined: norms, gates,
// activations, rotary positions, fewer heads of keys, no biases, no table of positions.
inline std::vector<Architecture> NewerArchitectures() {
  UniformArchitecture base{.num_items = 9,
                           .max_length = 6,
                           .width = 4,
                           .num_heads = 2,
                           .num_blocks = 1,
                           .inner_width = 6,
                           .embedding_scale = 1.7f};
  UniformArchitecture rms = base, gated = base, rotary = base, residual = base, few_keys = base, gated_twice = base;
  rms.norm_kind = NormKind::kRms;
  gated.activation = ActivationKind::kSilu;
  gated.gated = true;
  rotary.rotary = {.width = 2, .base = 100.0f};
  rotary.positions = PositionAlignment::kEnd;
  residual.residual = Residual::kGated;
  residual.norm = NormPlacement::kPost;
  few_keys.activation = ActivationKind::kGeluTanh;
  few_keys.num_kv_heads = 1;
  few_keys.biases = Biases::kNone;
  // Llama's architecture, and eSASRec's block.
  const UniformArchitecture llama = {.num_items = 9,
                                     .max_length = 6,
                                     .width = 8,
                                     .num_heads = 4,
                                     .num_kv_heads = 2,
                                     .num_blocks = 1,
                                     .inner_width = 5,
                                     .activation = ActivationKind::kSilu,
                                     .rotary = {.width = 2, .interleaved = true},
                                     .norm_kind = NormKind::kRms,
                                     .biases = Biases::kNone,
                                     .gated = true,
                                     .position_table = PositionTable::kNone};
  gated_twice.residual = Residual::kGated;
  gated_twice.activation = ActivationKind::kSilu;
  gated_twice.gated = true;
  UniformArchitecture noisy_rms = rms, noisy_few_keys = few_keys;
  noisy_rms.re_attention = ReAttention::kOn;
  noisy_few_keys.re_attention = ReAttention::kOn;
  std::vector<Architecture> every = {rms, gated, rotary, residual, few_keys, llama, gated_twice, noisy_rms};
  // Types and a norm of the embedding; biases of queries, keys and values alone.
  every.push_back(rotary);
  every.back().attend = Attend::kAll;
  every.back().token_types = {.count = 3, .separator = 2};
  every.back().embedding_norm_epsilon = 1e-3f;
  every.push_back(llama);
  for (BlockSpec& b : every.back().blocks) b.biases = Biases::kQkv;
  // A cosine head, on a tied and on an untied table.
  every.push_back(rotary);
  every.back().head.temperature = 0.3f;
  every.push_back(gated_twice);
  every.back().head = {.output_table = OutputTable::kUntied, .output_bias = OutputBias::kTrained, .temperature = 0.5f};
  every.push_back(noisy_few_keys);
  // Windows, of one block or of all, and the variances of Re-Attention within one.
  for (const UniformArchitecture& of : {llama, noisy_rms, residual}) {
    every.push_back(of);
    every.back().blocks.push_back(every.back().blocks.front());
    every.back().blocks.back().attention.window = 2;
    if (of == noisy_rms) every.back().blocks.front().attention.window = 3;
  }
  return every;
}

// Returns models of two towers: few features and many, a fixed and a trained bias, one tile of items and several.
inline std::vector<Architecture> TowerArchitectures() {
  UniformArchitecture base{.num_items = 9,
                           .max_length = 6,
                           .width = 4,
                           .num_heads = 2,
                           .num_blocks = 1,
                           .inner_width = 6,
                           .embedding_scale = 1.7f};
  std::vector<Architecture> all(3, base);
  all[0].item_features = 3;
  all[1].item_features = 5;
  all[1].positions = PositionAlignment::kEnd;
  all[1].head.output_bias = OutputBias::kTrained;
  all[2].item_features = 5;
  all[2].num_items = 2 * kHeadTile + 3;
  all[2].head.output_bias = OutputBias::kFixed;
  return all;
}

// Returns architectures that use every switch of the graph at least once.
inline std::vector<Architecture> SmallArchitectures() {
  const UniformArchitecture base{.num_items = 9,
                                 .max_length = 6,
                                 .width = 4,
                                 .num_heads = 2,
                                 .num_blocks = 2,
                                 .inner_width = 6,
                                 .embedding_scale = 1.7f,
                                 .positions = PositionAlignment::kEnd};
  std::vector<UniformArchitecture> all(10, base);
  all[1].norm = NormPlacement::kPost;
  all[2].output_table = OutputTable::kUntied;
  all[2].output_bias = OutputBias::kTrained;
  all[3].activation = ActivationKind::kRelu;
  all[3].output_bias = OutputBias::kFixed;
  all[4].attend = Attend::kAll;
  all[4].num_heads = 1;
  all[5].norm = NormPlacement::kPost;
  all[5].output_table = OutputTable::kUntied;
  all[5].activation = ActivationKind::kRelu;
  all[6].re_attention = ReAttention::kOn;
  all[7] = all[5];
  all[7].re_attention = ReAttention::kOn;
  all[8].attention_slope = 0.7f;
  all[9] = all[4];
  all[9].num_heads = 4;
  all[9].attention_slope = 2.0f;
  all[9].re_attention = ReAttention::kOn;
  std::vector<Architecture> every(all.begin(), all.end());
  every.insert(every.end(), 2, MixedArchitecture());
  every.back().re_attention = ReAttention::kOn;
  const std::vector<Architecture> newer = NewerArchitectures();
  every.insert(every.end(), newer.begin(), newer.end());
  return every;
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_GRADIENTS_GRADIENT_TEST_UTIL_H_
