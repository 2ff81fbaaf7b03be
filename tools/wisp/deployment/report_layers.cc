#include "tools/wisp/deployment/report_layers.h"

#include <algorithm>
#include <cmath>

#include "runtime/model/model_file.h"
#include "runtime/personalise/plan_files.h"
#include "runtime/train/run/shrink_changes.h"

namespace wisp::tools {
namespace {

bool IsWithin(ParameterRole role, ParameterRole first, ParameterRole last) { return role >= first && role <= last; }

std::string NameLayer(const ParameterSpec& p) {
  const std::string block = "block " + std::to_string(p.block + 1);
  if (IsWithin(p.role, ParameterRole::kAttentionNormGain, ParameterRole::kAttentionResidualGateBias))
    return block + ", attention";
  if (IsWithin(p.role, ParameterRole::kFeedForwardNormGain, ParameterRole::kFeedForwardResidualGateBias))
    return block + ", feed-forward";
  std::string name = p.name.substr(0, p.name.find('.'));
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace

std::vector<LayerChange> LayerChanges(const Architecture& architecture, std::span<const float> start,
                                      std::span<const float> weights, const DeploymentSettings& settings,
                                      uint64_t steps) {
  const TrainingOptions training = MakeTrainingOptions(settings);
  const double by_noise = std::sqrt(ComputeNoiseVariance(training.optimizer, steps, training.num_steps));
  std::vector<LayerChange> layers;
  std::vector<double> sums, counts;
  for (const ParameterSpec& p : ListParameters(architecture)) {
    if (!p.trained) continue;
    const std::string name = NameLayer(p);
    if (layers.empty() || layers.back().name != name) {
      layers.push_back({.name = name, .by_noise = by_noise});
      sums.push_back(0);
      counts.push_back(0);
    }
    for (size_t i = p.offset; i < p.offset + p.size(); ++i) {
      const double change = static_cast<double>(weights[i]) - static_cast<double>(start[i]);
      sums.back() += change * change;
    }
    counts.back() += static_cast<double>(p.size());
  }
  for (size_t i = 0; i < layers.size(); ++i) layers[i].moved = std::sqrt(sums[i] / counts[i]);
  return layers;
}

Result<std::vector<LayerChange>> CompareCandidate(const std::string& base_path, const std::string& output,
                                                  const DeploymentSettings& settings) {
  WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::Open(base_path, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const PlanModels models, OpenPlanModels(PlanFiles(output), base));
  if (!models.candidate) return std::vector<LayerChange>();
  const ModelFile& start = models.start ? *models.start : base;
  std::vector<float> room, other;
  return LayerChanges(start.architecture(), start.AllWeights(room), models.candidate->AllWeights(other), settings,
                      models.candidate->provenance().back().steps);
}

}  // namespace wisp::tools
