// The model of a round: what of the base trains, and how its weights travel. Server and devices make it from the same
// base and plan.
//
//   WISP_ASSIGN_OR_RETURN(const RoundModel model, RoundModel::Create(base, plan));
//   const std::string wire = *model.Encode(held);        // server
//   WISP_RETURN_IF_ERROR(model.Decode(wire, held));      // device
#ifndef WISP_RUNTIME_FLEET_ROUND_MODEL_H_
#define WISP_RUNTIME_FLEET_ROUND_MODEL_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/fleet/fleet_plan.h"
#include "runtime/layers/graph.h"
#include "runtime/model/model_file.h"
#include "runtime/train/options.h"

namespace wisp::fleet {

class RoundModel {
 public:
  // kInvalidArgument: the plan is for another base or number of weights; the base cannot train so. `base` must outlive
  // the result.
  static Result<RoundModel> Create(const ModelFile& base, const FleetPlan& plan);
  // The number of weights that train with such a part. What `plan` otherwise says is not read.
  static Result<uint64_t> CountWeights(const ModelFile& base, const FleetPlan& plan);

  const Architecture& architecture() const { return graph_->architecture(); }
  const Graph& graph() const { return *graph_; }
  // Options of a run that trains the plan's part by the methods' gradients, one clipped record at a time.
  const TrainingOptions& options() const { return options_; }
  const std::vector<ParameterSpec>& parameters() const { return graph_->parameters(); }
  const TrainedSet& trained() const { return trained_; }
  // The weights that a run holds at its start: those from first_held() on, in the flat layout of the parameters.
  std::span<const float> start() const { return start_; }
  size_t first_held() const { return first_held_; }

  // Calls visit(parameter, offset in the held weights, offset in the trained set, offset in what travels).
  template <class Visit>
  void ForEachTrained(const Visit& visit) const {
    size_t travels = 0;
    for (const uint32_t i : trained_.parameters()) {
      const ParameterSpec& p = graph_->parameters()[i];
      visit(p, p.offset - first_held_, trained_.offset(i), travels);
      travels += p.size();
    }
  }

  // The trained weights as they travel: little-endian float16 or float32. kInvalidData if one is not finite, or too
  // large for float16.
  Result<std::string> Encode(std::span<const float> held) const;
  // Sets the trained weights, and those that follow from them. kInvalidData, with nothing changed: another size, or a
  // weight is not finite.
  Status Decode(std::string_view wire, std::span<float> held) const;

  // Writes the base with these weights as a model, or as an adapter of the base. `entry` is added to the provenance.
  Status Write(const std::string& path, std::span<const float> held, ProvenanceEntry entry) const;

 private:
  RoundModel(const ModelFile& base, const Architecture& architecture, const TrainingOptions& options,
             std::vector<float> start, uint32_t bits);

  const ModelFile* base_;
  TrainingOptions options_;  // its `base` are tensors of the file
  std::unique_ptr<Graph> graph_;
  TrainedSet trained_;
  bool halves_;  // weights travel as float16
  std::vector<float> start_;
  size_t first_held_;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_ROUND_MODEL_H_
