#include "runtime/train/privacy_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/privacy/accounting/kinds/correlated_gaussian.h"
#include "runtime/privacy/accounting/kinds/random_allocation.h"
#include "runtime/privacy/noise/correlated_noise.h"
#include "runtime/train/method_table.h"

namespace wisp {

using privacy::Mechanism;

namespace {

PrivacyPlan::Part MakeGradientPart(const Architecture& a, const TrainingOptions& o, const char* purpose) {
  const double norm = o.privacy.clipping_norm;
  const uint64_t coordinates = NumReleased(a, o);
  PrivacyPlan::Part part{.purpose = purpose,
                         .noise = GetNoise(o, o.privacy.noise_multiplier),
                         .law = MakeLaw(o),
                         .noises = {{norm, GetNoise(o, GradientNoise(o)), coordinates, coordinates}}};
  if (IsAdaptive(o.method)) {
    // Untouched rows survive with the rounded Gaussian's probability, touched ones with the discrete Gaussian's: the
    // slack of the map counts all rows.
    const NoisePair pair = SplitNoise(o.privacy.noise_multiplier, o.sparse.map_noise_ratio);
    part.noises.push_back({norm, {.multiplier = pair.map}, coordinates, a.num_items});
  }
  return part;
}

uint64_t RoundedUp(uint64_t steps, uint64_t multiple) { return (steps + multiple - 1) / multiple * multiple; }

// Calls f(level's ratio, its steps) for each level of the noise in a range of steps.
template <class F>
Status ForEachLevel(const privacy::NoiseOptions& noise, StepRange steps, const F& f) {
  const uint64_t end = steps.first + steps.count;
  for (uint64_t first = steps.first; first < end;) {
    const double ratio = noise.GetRatio(first);
    const auto next = std::find_if(noise.levels.begin(), noise.levels.end(),
                                   [first](const auto& level) { return level.first_step > first; });
    const uint64_t until = next == noise.levels.end() ? end : std::min(end, next->first_step);
    WISP_RETURN_IF_ERROR(f(ratio, until - first));
    first = until;
  }
  return OkStatus();
}

}  // namespace

Result<PrivacyPlan> PrivacyPlan::Create(const Architecture& a, const TrainingOptions& o) {
  WISP_RETURN_IF_ERROR(CheckBuilt(a, o));
  if (IsPaper(o)) return PrivacyRefused(ExplainPaperMode());
  if (!IsPrivate(o)) return PrivacyRefused("ordinary training has no guarantee that anything could be said of");
  if (o.num_records_public == 0 || o.dp_fp.micro_batches == 0)
    return InvalidArgument("num_records_public and micro_batches must be 1 or above");
  PrivacyPlan plan;
  plan.run_ = o.privacy.run;
  plan.noise_ = o.privacy.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure;
  if (ReleasesHead(o)) plan.parts_.push_back(HeadPart(a, o));
  if (HasGradients(o))
    plan.parts_.push_back(MakeGradientPart(a, o, ReleasesHead(o) ? kEncoderPurpose : kTrainingPurpose));
  return plan;
}

uint64_t PrivacyPlan::StepsPerCharge(uint64_t steps, uint64_t left) const {
  for (const Part& part : parts_) {
    if (part.law.kind == Sampling::kCyclic) steps = std::max(steps, left);
    if (part.law.kind != Sampling::kPoisson) steps = RoundedUp(steps, part.law.epoch_steps);
  }
  return steps;
}

Result<std::vector<Mechanism>> PrivacyPlan::Mechanisms(const Part& part, StepRange steps, double noise_factor) const {
  std::vector<Mechanism> mechanisms;
  const SamplingLaw& law = part.law;
  const uint64_t epochs = RoundedUp(steps.count, law.epoch_steps) / law.epoch_steps;
  const Status status = ForEachLevel(part.noise, steps, [&](double ratio, uint64_t count) -> Status {
    const double multiplier = part.noise.multiplier * ratio * noise_factor;
    Result<Mechanism> mechanism =
        law.kind == Sampling::kAllocation
            ? privacy::RandomAllocation(
                  {.noise_multiplier = multiplier, .epoch_steps = law.epoch_steps, .epochs = epochs})
        : law.kind == Sampling::kCyclic
            ? privacy::CorrelatedGaussian({.noise_multiplier = multiplier,
                                           .lambda = privacy::PartTakenBack(part.noise.lambda).lambda(),
                                           .participations = epochs,
                                           .separation = law.epoch_steps})
            : Mechanism::PoissonSubsampledGaussian({.noise_multiplier = multiplier,
                                                    .sampling_probability = law.probability,
                                                    .steps = part.releases * count});
    if (!mechanism.ok()) return mechanism.status();
    mechanisms.push_back(*mechanism);
    return OkStatus();
  });
  if (!status.ok()) return status;
  return mechanisms;
}

Result<std::vector<Mechanism>> PrivacyPlan::Mechanisms(StepRange steps, double noise_factor) const {
  std::vector<Mechanism> all;
  for (const Part& part : parts_) {
    WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> of_part, Mechanisms(part, steps, noise_factor));
    all.insert(all.end(), of_part.begin(), of_part.end());
  }
  return all;
}

double PrivacyPlan::LossSlack(const Part& part, StepRange steps, double noise_factor) const {
  double slack = 0;
  for (const Part::Noise& noise : part.noises) {
    const privacy::ExactGrid grid(noise.clipping_norm, noise.grid_coordinates);
    (void)ForEachLevel(noise.noise, steps, [&](double ratio, uint64_t count) {
      const uint64_t sigma = grid.sigma_in_steps(noise.noise.multiplier * ratio * noise_factor);
      slack += privacy::DiscretisationLoss(
          {.sigma_in_steps = sigma, .num_coordinates = noise.coordinates, .num_steps = part.releases * count});
      return OkStatus();
    });
  }
  return slack;
}

double PrivacyPlan::LossSlack(StepRange steps, double noise_factor) const {
  double slack = 0;
  for (const Part& part : parts_) slack += LossSlack(part, steps, noise_factor);
  return slack;
}

Result<std::vector<privacy::ChargeRequest>> PrivacyPlan::Charges(const Part& part, StepRange steps,
                                                                 double noise_factor) const {
  std::vector<privacy::ChargeRequest> charges;
  if (steps.count == 0) return charges;
  WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> mechanisms, Mechanisms(part, steps, noise_factor));
  double slack = LossSlack(part, steps, noise_factor);
  for (const Mechanism& mechanism : mechanisms) {
    charges.push_back({.mechanism = mechanism,
                       .run = run_,
                       .purpose = part.purpose,
                       .noise = noise_,
                       .loss_slack = std::exchange(slack, 0)});
  }
  return charges;
}

Result<std::vector<privacy::ChargeRequest>> PrivacyPlan::Charges(StepRange steps, double noise_factor) const {
  std::vector<privacy::ChargeRequest> all;
  for (const Part& part : parts_) {
    WISP_ASSIGN_OR_RETURN(const auto of_part, Charges(part, steps, noise_factor));
    all.insert(all.end(), of_part.begin(), of_part.end());
  }
  return all;
}

Result<std::vector<privacy::ChargeRequest>> PrivacyPlan::ChargesTogether(StepRange steps, double noise_factor) const {
  WISP_ASSIGN_OR_RETURN(std::vector<privacy::ChargeRequest> charges, Charges(steps, noise_factor));
  for (size_t i = 1; i < charges.size(); ++i) {
    charges[0].loss_slack += charges[i].loss_slack;
    charges[i].loss_slack = 0;
  }
  return charges;
}

double BatchProbability(const TrainingOptions& o) {
  return static_cast<double>(o.expected_batch) / o.num_records_public;
}
double MicroBatchProbability(const TrainingOptions& o) { return BatchProbability(o) / o.dp_fp.micro_batches; }

bool IsHeadRole(ParameterRole role) {
  return role == ParameterRole::kPoolerWeight || role == ParameterRole::kPoolerBias ||
         role == ParameterRole::kClassWeight || role == ParameterRole::kClassBias;
}

namespace {

// With last_blocks, `first_block` is the first that trains.
bool IsChosen(const TrainingOptions& o, uint32_t first_block, const ParameterSpec& p) {
  if (o.trained_part == TrainedPart::kHead) return IsHeadRole(p.role);
  if (o.last_blocks == 0) return o.trained_part == TrainedPart::kAll || p.shape != ParameterShape::kTable;
  if (IsBlockRole(p.role)) return p.block >= first_block;
  return IsHeadRole(p.role) || p.role == ParameterRole::kFinalNormGain || p.role == ParameterRole::kFinalNormBias;
}

}  // namespace

TrainedSet TrainedBy(const std::vector<ParameterSpec>& parameters, const TrainingOptions& o) {
  const MethodEntry& method = GetEntry(o);
  uint32_t num_blocks = 0;
  for (const ParameterSpec& p : parameters)
    num_blocks = IsBlockRole(p.role) ? std::max(num_blocks, p.block + 1) : num_blocks;
  const uint32_t first_block = num_blocks - std::min(num_blocks, o.last_blocks);
  return TrainedSet(parameters, [&](const ParameterSpec& p) {
    const bool head = p.role == ParameterRole::kClassWeight || p.role == ParameterRole::kClassBias;
    if (!p.trained || (head && ReleasesHead(o))) return false;  // the head is made of the releases
    return IsChosen(o, first_block, p) && (method.trains == nullptr || method.trains(p, o));
  });
}

// A tied table gets a gradient from both of its uses, and no code takes their product in integers. A bias of outputs
// comes in parts.
bool CanMultiplyIntegers(const Architecture& a, const TrainingOptions& o) {
  const bool has_method = o.method == Method::kPhantom || o.method == Method::kDpFp;
  if (!IsPrivate(o) || !HasGradients(o) || !has_method || o.num_negatives > 0 || !o.device.memory.is_host())
    return false;
  if (a.head.kind == HeadKind::kClasses) return true;
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  const TrainedSet trained = TrainedBy(parameters, o);
  return std::none_of(trained.parameters().begin(), trained.parameters().end(), [&](uint32_t i) {
    return parameters[i].shape == ParameterShape::kTable || parameters[i].role == ParameterRole::kOutputBias;
  });
}

bool MultipliesIntegers(const Architecture& a, const TrainingOptions& o) {
  if (o.privacy.norm_form != NormForm::kAutomatic && o.privacy.norm_form != NormForm::kIntegers) return false;
  if (o.recompute_blocks) return false;  // integer products keep factors of all blocks
  if (!CanMultiplyIntegers(a, o)) return false;
  if (o.privacy.norm_form == NormForm::kIntegers) return true;
  // An adapter's products are narrow: forming them is less work than converting both of their sides to integers, and a
  // record keeps less memory. MiniLM with --lora 8, one text of SST-2: 3.8 ms against 4.1 (EPYC with AVX-512, November
  // 2026); GPT-2's 1,024 positions: 5 MB against 318.
  if (a.adapter) return false;
  // A formed gradient of more numbers exceeds the second-level cache; a smaller one is cheap to form.
  constexpr size_t kFormed = size_t{1} << 20;
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  const TrainedSet trained = TrainedBy(parameters, o);
  size_t size = 0;
  for (const uint32_t i : trained.parameters())
    size += parameters[i].shape == ParameterShape::kMatrix ? parameters[i].size() : 0;
  return size > kFormed;
}

uint64_t NumReleased(const Architecture& a, const TrainingOptions& o) {
  const MethodEntry& method = GetEntry(o);
  return method.num_released != nullptr ? method.num_released(a, o) : TrainedBy(ListParameters(a), o).num_coordinates();
}

NoisePair SplitNoise(double noise_multiplier, double ratio) {
  const double gradient = noise_multiplier * std::sqrt(1 + ratio * ratio) / ratio;
  return {.map = ratio * gradient, .gradient = gradient};
}

double GradientNoise(const TrainingOptions& o) {
  return IsAdaptive(o.method) ? SplitNoise(o.privacy.noise_multiplier, o.sparse.map_noise_ratio).gradient
                              : o.privacy.noise_multiplier;
}

privacy::NoiseOptions GetNoise(const TrainingOptions& o, double multiplier) {
  privacy::NoiseOptions noise{.multiplier = multiplier, .lambda = o.privacy.noise_lambda};
  if (noise.lambda > 0) noise.num_steps = RoundedUp(o.num_steps, MakeLaw(o).epoch_steps);
  if (o.privacy.noise_schedule == NoiseSchedule::kConstant) return noise;
  // Levels of 2^(1/8), so that a run has a dozen mechanisms and not one for each step.
  constexpr double kPerOctave = 8, kMostRatio = 4;
  float highest = 0;
  for (uint64_t step = 0; step < o.num_steps; ++step)
    highest = std::max(highest, LearningRate(o.optimizer, static_cast<double>(step), o.num_steps));
  for (uint64_t step = 0; step < o.num_steps; ++step) {
    const double rate = LearningRate(o.optimizer, static_cast<double>(step), o.num_steps);
    const double ratio = std::min(kMostRatio, std::sqrt(static_cast<double>(highest) / rate));
    const double level = std::exp2(std::round(kPerOctave * std::log2(ratio)) / kPerOctave);
    if (noise.levels.empty() || noise.levels.back().ratio != level) noise.levels.push_back({step, level});
  }
  return noise;
}

double StepLossSlack(const Architecture& a, const TrainingOptions& given, double noise_multiplier, uint64_t steps) {
  TrainingOptions o = given;
  o.privacy.noise_multiplier = noise_multiplier;
  if (o.num_records_public == 0) o.num_records_public = 1;  // no probability is needed here
  const Result<PrivacyPlan> plan = PrivacyPlan::Create(a, o);
  return plan.ok() ? plan->LossSlack(steps) : 0;
}

}  // namespace wisp
