#include "runtime/fleet/round_model.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/half.h"
#include "runtime/model/provenance.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/run/fine_tune.h"

namespace wisp::fleet {
namespace {

Result<std::pair<Architecture, TrainingOptions>> MakeTraining(const ModelFile& base, const FleetPlan& plan) {
  Architecture architecture = base.architecture();
  if (architecture.head.kind != HeadKind::kNextItem)
    return InvalidArgument(base.name(), ": a fleet trains models that recommend items, not other ones");
  TrainingOptions options;
  options.method = Method::kPhantom;
  options.privacy.clipping_norm = plan.clipping_norm;
  options.optimizer = plan.optimizer;
  options.num_threads = 1;
  if (plan.part == FleetPlan::Part::kBlocks) options.trained_part = TrainedPart::kBlocks;
  if (plan.part == FleetPlan::Part::kAdapter) {
    if (architecture.adapter) return InvalidArgument(base.name(), ": has an adapter; a fleet trains one beside a base");
    architecture.adapter = AdapterSpec{.rank = plan.adapter_rank, .alpha = static_cast<float>(plan.adapter_rank)};
  }
  return std::pair(architecture, options);
}

}  // namespace

RoundModel::RoundModel(const ModelFile& base, const Architecture& architecture, const TrainingOptions& options,
                       std::vector<float> start, uint32_t bits)
    : base_(&base),
      options_(options),
      graph_(MakeGraph(architecture, options.device, GraphFor(architecture, options))),
      trained_(TrainedBy(graph_->parameters(), options)),
      halves_(bits == 16),
      start_(std::move(start)),
      first_held_(FirstHeld(graph_->parameters(), options)) {}

Result<RoundModel> RoundModel::Create(const ModelFile& base, const FleetPlan& plan) {
  if (plan.base_hash != base.content_hash())
    return InvalidArgument(base.name(), ": is not the model that the fleet's plan was made for");
  WISP_ASSIGN_OR_RETURN(auto training, MakeTraining(base, plan));
  auto& [architecture, options] = training;
  StartBesideBase start = StartBeside(base, architecture, options, {}, options.seed);
  options.base = start.base;
  RoundModel model(base, architecture, options, std::move(start.held), plan.weight_bits);
  if (model.trained_.num_coordinates() != plan.num_weights) {
    return InvalidArgument(base.name(), ": ", model.trained_.num_coordinates(), " of its weights train, and the plan ",
                           "of the fleet is for ", plan.num_weights);
  }
  return model;
}

Result<uint64_t> RoundModel::CountWeights(const ModelFile& base, const FleetPlan& plan) {
  WISP_ASSIGN_OR_RETURN(const auto training, MakeTraining(base, plan));
  return TrainedBy(ListParameters(training.first), training.second).num_coordinates();
}

Result<std::string> RoundModel::Encode(std::span<const float> held) const {
  std::string wire(trained_.num_coordinates() * (halves_ ? sizeof(kernels::Half) : sizeof(float)), '\0');
  bool fits = true;
  ForEachTrained([&](const ParameterSpec& p, size_t at, size_t, size_t travels) {
    const float* from = held.data() + at;
    for (size_t i = 0; i < p.size(); ++i) {
      if (halves_) {
        const kernels::Half half = kernels::ToHalf(from[i]);
        fits = fits && kernels::IsFinite(half);
        std::memcpy(wire.data() + (travels + i) * sizeof(half), &half, sizeof(half));
      } else {
        fits = fits && std::isfinite(from[i]);
        std::memcpy(wire.data() + (travels + i) * sizeof(float), from + i, sizeof(float));
      }
    }
  });
  if (fits) return wire;
  return InvalidData(
      "the weights of a round are not finite, or too large for float16: lower the learning rate, or let ",
      "weights travel with 32 bits");
}

Status RoundModel::Decode(std::string_view wire, std::span<float> held) const {
  const size_t bytes = halves_ ? sizeof(kernels::Half) : sizeof(float), expected = trained_.num_coordinates() * bytes;
  if (wire.size() != expected)
    return InvalidData("the weights of a round have ", wire.size(), " bytes; the plan says ", expected);
  const auto get = [&](size_t i) {
    if (halves_) {
      kernels::Half half;
      std::memcpy(&half, wire.data() + i * sizeof(half), sizeof(half));
      return kernels::ToFloat(half);
    }
    float value;
    std::memcpy(&value, wire.data() + i * sizeof(value), sizeof(value));
    return value;
  };
  for (size_t i = 0; i < trained_.num_coordinates(); ++i) {
    if (!std::isfinite(get(i))) return InvalidData("weight ", i, " of a round is not finite");
  }
  ForEachTrained([&](const ParameterSpec& p, size_t at, size_t, size_t travels) {
    for (size_t i = 0; i < p.size(); ++i) held[at + i] = get(travels + i);
  });
  if (graph_->derived(trained_)) graph_->Derive(held, 0, 1);
  return OkStatus();
}

Status RoundModel::Write(const std::string& path, std::span<const float> held, ProvenanceEntry entry) const {
  std::vector<float> weights(held.begin(), held.end());
  if (graph_->derived(trained_)) graph_->Derive(weights, 0, 1);
  ModelContents contents = ContentsWithoutWeights(*base_);
  contents.architecture = architecture();
  contents.storage = WeightStorage::kFloat;
  contents.weights = weights;
  contents.first_weight = first_held_;
  contents.before = options_.base;
  if (architecture().adapter) contents.base_hash = base_->content_hash();
  entry.base_model_hash = base_->content_hash();
  contents.provenance = JoinProvenance({base_->provenance()});
  contents.provenance.push_back(std::move(entry));
  return WriteModel(path, contents);
}

}  // namespace wisp::fleet
