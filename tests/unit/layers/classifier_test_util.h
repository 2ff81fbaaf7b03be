// Small classifiers, the naive one with which the product's is compared, and helpers for tests of their private
// training.
#ifndef WISP_TESTS_UNIT_LAYERS_CLASSIFIER_TEST_UTIL_H_
#define WISP_TESTS_UNIT_LAYERS_CLASSIFIER_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "kernels/reference/dual.h"
#include "runtime/methods/phantom/phantom_gradients.h"
#include "runtime/layers/classifier.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/record_pass.h"
#include "runtime/train/run/classification.h"
#include "runtime/train/run/initialise.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/layers/naive_recommender.h"
#include "tests/unit/layers/parameter_names.h"

namespace wisp::test {

inline std::vector<float> RandomClassifierWeights(const Architecture& a, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.4f);
  const auto parameters = ListParameters(a);
  std::vector<float> weights(FlatSize(parameters), 0.0f);
  for (const ParameterSpec& p : parameters) {
    for (size_t i = 0; i < p.size(); ++i)
      weights[p.offset + i] = normal(random) + (p.name.ends_with("gain") ? 1.0f : 0.0f);
  }
  return weights;
}

inline constexpr UniformArchitecture kTinyClassifier{.num_items = 12,
                                                     .max_length = 4,
                                                     .width = 8,
                                                     .num_heads = 2,
                                                     .num_blocks = 1,
                                                     .inner_width = 8,
                                                     .attend = Attend::kAll,
                                                     .num_classes = 2};

// Returns initial weights, always the same. A head of deviation 0 is 0, and the first step's gradient does not reach
// the encoder.
inline std::vector<float> StartClassifier(const Architecture& a, const InitialisationOptions& options,
                                          double head_deviation = 0) {
  const auto parameters = ListParameters(a);
  std::vector<float> weights(FlatSize(parameters));
  auto random = privacy::RandomStream::Reproducible(3, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(a, options, random, weights);
  const ParameterSpec& head = parameters[RequireParameter(parameters, ParameterRole::kClassWeight)];
  for (size_t i = 0; i < head.size(); ++i)
    weights[head.offset + i] += static_cast<float>(head_deviation * random.Normal());
  return weights;
}

// Returns a text of that class, 0 to 15. Its label stays valid forever; the tokens belong to the caller.
inline Record Labelled(std::span<const int32_t> tokens, int32_t label) {
  static constexpr int32_t kLabels[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return {tokens, {kLabels + label, 1}};
}

// Private training: a folder for ledgers whose unit is one text.
class ClassifierTraining : public ::testing::Test {
 protected:
  privacy::Ledger OpenLedger(std::string_view name) {
    return *privacy::Ledger::Open(
        folder_ / name,
        {.dataset = "texts", .record = privacy::RecordSpec::OfEvents({.unit = privacy::PrivacyUnit::kInteraction})});
  }

  test::TemporaryFolder folder_;
};

// Pooler, tanh, clipping, noise and head in any number type, after the naive encoder.
template <class T>
struct NaiveClassifier {
  const Architecture& a;
  std::span<const T> weights;

  T At(const char* name, size_t i) const {
    const auto parameters = ListParameters(a);
    return weights[parameters[FindIndex(parameters, name)].offset + i];
  }
  std::vector<T> Represent(std::span<const int32_t> tokens) const {
    using std::tanh;
    const size_t d = a.width;
    const auto states = NaiveRecommender<T>(a, weights).Encode(tokens);
    std::vector<T> pooled = states[0], h(d, T(0));
    for (size_t j = 0; a.head.pooling == Pooling::kMean && j < d; ++j) {
      pooled[j] = T(0);
      for (const auto& state : states) pooled[j] = pooled[j] + state[j] / T(double(states.size()));
    }
    if (a.head.pooler == Pooler::kNone) return pooled;
    for (size_t j = 0; j < d; ++j) {
      h[j] = At("pooler.bias", j);
      for (size_t k = 0; k < d; ++k) h[j] = h[j] + pooled[k] * At("pooler.weight", j * d + k);
      h[j] = a.head.pooler == Pooler::kTanh ? tanh(h[j]) : h[j] < T(0) ? T(0) : h[j];
    }
    return h;
  }
  T Loss(const Record& record, const HeadInput& input) const {
    using std::exp;
    using std::log;
    using std::sqrt;
    std::vector<T> x = Represent(record.inputs);
    T squares(0), sum(0), own(0);
    for (const T& v : x) squares = squares + v * v;
    const bool clip = input.norm_bound > 0 && T(input.norm_bound) < sqrt(squares);
    for (size_t k = 0; k < x.size(); ++k) {
      if (clip) x[k] = x[k] * T(input.norm_bound) / sqrt(squares);
      if (input.noise_BD != nullptr) x[k] = x[k] + T(input.noise_BD[k]);
    }
    for (size_t c = 0; c < a.head.num_classes; ++c) {
      T z = At("head.bias", c);
      for (size_t k = 0; k < x.size(); ++k) z = z + x[k] * At("head.weight", c * x.size() + k);
      sum = sum + exp(z);
      if (static_cast<size_t>(record.targets[0]) == c) own = z;
    }
    return log(sum) - own;
  }
};

// Returns d loss / d weight for every weight, by dual numbers.
inline std::vector<double> NaiveClassifierGradient(const Architecture& a, std::span<const float> weights,
                                                   const Record& record, const HeadInput& input) {
  using kernels::reference::Dual;
  std::vector<Dual> dual(weights.begin(), weights.end());
  std::vector<double> gradient(weights.size(), 0.0);
  for (const ParameterSpec& p : ListParameters(a)) {
    for (size_t i = p.offset; i < p.offset + p.size(); ++i) {
      dual[i].derivative = 1;
      gradient[i] = NaiveClassifier<Dual>{a, dual}.Loss(record, input).derivative;
      dual[i].derivative = 0;
    }
  }
  return gradient;
}

// The product's graph, with all that a record needs.
class ClassifierHarness {
 public:
  ClassifierHarness(const Architecture& a, std::vector<float> weights, const kernels::OpTable& ops)
      : graph(a, ops),
        trained(graph.parameters(), [](const ParameterSpec& p) { return p.trained; }),
        flat(std::move(weights)),
        packed(graph, flat.data()),
        buffers(graph.AllocateForTraining()),
        view(packed.view()) {
    // NaN, because nothing may be read before it is written.
    std::memset(buffers.backward[Slot<std::byte>{0}], 0xff, buffers.backward.size_bytes());
  }
  RecordContext Context() const { return {.weights = view, .buffers = buffers}; }
  RecordOutcome Add(const Record& record, const HeadInput& input, PhantomGradients& gradients) {
    RecordContext context = Context();
    context.head_input = input;
    RecordPass pass(graph);
    pass.Push(record, {});
    const auto outcome = pass.Run(context, gradients)[0];
    loss = outcome.loss;
    return outcome.gradient;
  }
  PhantomGradients::Setup Setup() const {
    return {.parameters = graph.parameters(),
            .trained = trained,
            .head_parameter = graph.head_weight(),
            .max_rows = graph.architecture().max_length,
            .worker = 0};
  }

  Classifier graph;
  TrainedSet trained;
  std::vector<float> flat;
  PackedWeights packed;
  Buffers buffers;
  Weights view;
  double loss = 0;
};

inline std::vector<Architecture> SmallClassifiers() {
  UniformArchitecture base{.num_items = 9,
                           .max_length = 6,
                           .width = 4,
                           .num_heads = 2,
                           .num_blocks = 2,
                           .inner_width = 6,
                           .embedding_scale = 1.7f,
                           .attend = Attend::kAll,
                           .num_classes = 3};
  std::vector<UniformArchitecture> all(4, base);
  all[1].norm = NormPlacement::kPost;
  all[2].num_classes = 2;
  all[2].positions = PositionAlignment::kEnd;
  all[2].activation = ActivationKind::kRelu;
  all[3].num_blocks = 0;
  all[3].num_classes = 5;
  std::vector<Architecture> classifiers(all.begin(), all.end());
  // BERT's architecture: types, a norm of the embedding, norms after the sublayers.
  Architecture bert = all[1];
  bert.token_types = {.count = 2, .separator = 3};
  bert.embedding_norm_epsilon = 1e-3f;
  classifiers.push_back(bert);
  // Mean pooling, with norms before the sublayers and after them.
  for (Architecture mean : {bert, classifiers[0]}) {
    mean.head.pooling = Pooling::kMean;
    mean.head.pooler = Pooler::kNone;
    classifiers.push_back(mean);
    mean.head.pooler = Pooler::kTanh;
    mean.token_types = {.count = 1, .separator = -1};
    for (BlockSpec& b : mean.blocks) b.biases = Biases::kQkv;
    classifiers.push_back(mean);
  }
  Architecture bare = classifiers[0];
  bare.head.pooler = Pooler::kNone;
  classifiers.push_back(bare);
  // DistilBERT's pooler.
  bert.head.pooler = Pooler::kRelu;
  classifiers.push_back(bert);
  return classifiers;
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_LAYERS_CLASSIFIER_TEST_UTIL_H_
