#include "tools/lab/bench/bench_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/layers/model_view.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/methods/phantom/phantom_gradients.h"
#include "runtime/train/record_pass.h"

namespace wisp::tools {
namespace {

constexpr double kTolerance = 1e-4;  // for losses and gradients, which sum thousands of floats in another order

std::string Digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

Status Void(const std::string& what, double difference, double tolerance) {
  return InvalidData(what, " differs from the reference by ", Digits(difference), " of the largest, allowed is ",
                     Digits(tolerance), ": the measurement is void");
}

// The scores of all items by the reference ops.
std::vector<float> ReferenceScores(const Architecture& architecture, const ParameterSource& source,
                                   std::span<const int32_t> history) {
  const kernels::OpTable& ops = kernels::ReferenceOps();
  const auto graph = MakeModelView(architecture, ops,
                                   {.use = GraphUse::kInference, .head = HeadPackingFor(ops, architecture, source)});
  const PackedWeights weights(*graph, source);
  const Buffers buffers = graph->AllocateForInference();
  const KeyValueCache cache = graph->AllocateCache(CacheBlocks::kInTurn);
  RecordContext context{.weights = weights.view(), .buffers = buffers, .cache = &cache};
  std::vector<float> scores(graph->num_items());
  graph->Score(context, history.last(std::min<size_t>(history.size(), architecture.max_length)), scores.data());
  return scores;
}

// A graph for training, with its weights packed and its buffers.
class Subject {
 public:
  Subject(const Architecture& architecture, const kernels::OpTable& ops, const ParameterSource& weights)
      : graph_(MakeGraph(architecture, ops, {.head = HeadPackingFor(ops, architecture, weights)})),
        buffers_(graph_->AllocateForTraining()),
        weights_(graph_->base(), weights),
        context_{.weights = weights_.view(), .buffers = buffers_} {}
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  // Returns the mean over the record's positions, all of which have a target.
  double Loss(const Record& record) {
    const RecordOptions options{.target_weight = 1.0f / static_cast<float>(record.targets.size())};
    context_.options_B = &options;
    double loss = 0;
    graph_->Forward(context_, {&record, 1}, &loss);
    return loss;
  }

  std::vector<float> Gradient(const Record& record) {
    const std::vector<ParameterSpec>& parameters = graph_->parameters();
    const TrainedSet trained(parameters, [](const ParameterSpec& p) { return p.trained; });
    FloatGradientSum sum(graph_->ops(), trained.size(), /*num_workers=*/1);
    sum.Clear();
    PhantomGradients gradients(graph_->ops(),
                               {.parameters = parameters,
                                .trained = trained,
                                .head_parameter = graph_->head_parameter(),
                                .max_rows = graph_->architecture().max_length,
                                .worker = 0},
                               {}, sum);
    RecordPass pass(*graph_);
    pass.Push(record, {.target_weight = 1.0f / static_cast<float>(record.targets.size())});
    pass.Run(context_, gradients);
    std::vector<float> flat(FlatSize(parameters), 0.0f);
    trained.Scatter(parameters, sum.sum(), flat);
    return flat;
  }

 private:
  std::unique_ptr<const Graph> graph_;
  Buffers buffers_;
  PackedWeights weights_;
  RecordContext context_;
};

}  // namespace

Status CheckNear(const std::string& what, std::span<const float> actual, std::span<const float> expected,
                 double tolerance) {
  double largest = 0, difference = 0;
  bool finite = actual.size() == expected.size();
  for (size_t i = 0; finite && i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    difference = std::max(difference, std::abs(double{actual[i]} - expected[i]));
    finite = std::isfinite(actual[i]) && std::isfinite(expected[i]);
  }
  return finite && difference <= tolerance * largest
             ? OkStatus()
             : Void(what, finite ? difference / largest : std::nan(""), tolerance);
}

Status CheckScores(const std::string& what, Session& session, std::span<const int32_t> history, double tolerance) {
  const ParameterSource weights(session.file().tensors());
  const std::vector<float> expected = ReferenceScores(session.architecture(), weights, history);
  std::vector<float> scores(expected.size());
  WISP_RETURN_IF_ERROR(session.Score(history, scores));
  WISP_RETURN_IF_ERROR(CheckNear(what, scores, expected, tolerance));
  if (history.size() == 1) return OkStatus();
  WISP_RETURN_IF_ERROR(session.Score(history.first(history.size() - 1), scores));
  WISP_RETURN_IF_ERROR(session.Score(history, scores));
  return CheckNear(what + " after one more event", scores, expected, tolerance);
}

Status CheckGradient(const BenchProblem& p) {
  Subject subject(p.architecture, kernels::BestOps(), p.weights.data());
  Subject reference(p.architecture, kernels::ReferenceOps(), p.weights.data());
  const float loss = static_cast<float>(subject.Loss(p.records[0])),
              expected = static_cast<float>(reference.Loss(p.records[0]));
  WISP_RETURN_IF_ERROR(CheckNear("the loss of a record", {&loss, 1}, {&expected, 1}, kTolerance));
  return CheckNear("the gradient of a record", subject.Gradient(p.records[0]), reference.Gradient(p.records[0]),
                   kTolerance);
}

Status CheckFirstLoss(const BenchProblem& p, const StepReport& first) {
  Subject subject(p.architecture, kernels::BestOps(), p.weights.data());
  double sum = 0;
  for (const Record& record : p.records) sum += subject.Loss(record);
  const float expected = static_cast<float>(sum / static_cast<double>(p.records.size())),
              loss = static_cast<float>(first.mean_loss);
  return CheckNear("the loss of a step", {&loss, 1}, {&expected, 1}, kTolerance);
}

}  // namespace wisp::tools
