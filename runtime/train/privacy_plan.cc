#include "runtime/train/privacy_plan.h"

#include <algorithm>

#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/train/method_table.h"

namespace wisp {

using privacy::Mechanism;

namespace {

PrivacyPlan::Part GradientPartOf(const Architecture& a, const TrainingOptions& o, const char* purpose) {
  const double norm = o.privacy.clipping_norm;
  const uint64_t coordinates = NumReleased(a, o);
  PrivacyPlan::Part part{.purpose = purpose,
                         .noise_multiplier = o.privacy.noise_multiplier,
                         .sampling_probability = BatchProbability(o),
                         .noises = {{norm, GradientNoise(o), coordinates, coordinates}}};
  if (IsAdaptive(o.method)) {
    // Untouched rows survive with the rounded Gaussian's probability, touched ones with the discrete Gaussian's: the
    // slack of the map counts all rows.
    const PairOfNoises pair = SplitNoise(o.privacy.noise_multiplier, o.sparse.map_noise_ratio);
    part.noises.push_back({norm, pair.map, coordinates, a.num_items});
  }
  return part;
}

}  // namespace

Result<PrivacyPlan> PrivacyPlan::Create(const Architecture& a, const TrainingOptions& o) {
  if (IsPaper(o)) return PrivacyRefused(WhyPaperHasNoGuarantee());
  if (!IsPrivate(o)) return PrivacyRefused("ordinary training has no guarantee that anything could be said of");
  if (o.num_records_public == 0 || o.dp_fp.micro_batches == 0)
    return InvalidArgument("num_records_public and micro_batches must be 1 or above");
  PrivacyPlan plan;
  plan.run_ = o.privacy.run;
  plan.record_part_ = o.privacy.part;
  plan.noise_ = o.privacy.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure;
  if (ReleasesHead(o)) plan.parts_.push_back(HeadPart(a, o));
  if (HasGradients(o))
    plan.parts_.push_back(GradientPartOf(a, o, ReleasesHead(o) ? kEncoderPurpose : kTrainingPurpose));
  return plan;
}

Result<std::vector<Mechanism>> PrivacyPlan::Mechanisms(uint64_t steps, double noise_factor) const {
  std::vector<Mechanism> mechanisms;
  for (const Part& part : parts_) {
    WISP_ASSIGN_OR_RETURN(Mechanism mechanism, Mechanism::PoissonSubsampledGaussian(
                                                   {.noise_multiplier = part.noise_multiplier * noise_factor,
                                                    .sampling_probability = part.sampling_probability,
                                                    .steps = part.releases * steps}));
    mechanisms.push_back(mechanism);
  }
  return mechanisms;
}

double PrivacyPlan::LossSlack(const Part& part, uint64_t steps, double noise_factor) const {
  double slack = 0;
  for (const Part::Noise& noise : part.noises) {
    const privacy::ExactGrid grid(noise.clipping_norm, noise.grid_coordinates);
    slack += privacy::DiscretisationLoss({.sigma_in_steps = grid.sigma_in_steps(noise.noise_multiplier * noise_factor),
                                          .num_coordinates = noise.coordinates,
                                          .num_steps = part.releases * steps});
  }
  return slack;
}

double PrivacyPlan::LossSlack(uint64_t steps, double noise_factor) const {
  double slack = 0;
  for (const Part& part : parts_) slack += LossSlack(part, steps, noise_factor);
  return slack;
}

Result<std::vector<privacy::ChargeRequest>> PrivacyPlan::Charges(uint64_t steps, double noise_factor) const {
  std::vector<privacy::ChargeRequest> charges;
  if (steps == 0) return charges;
  WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> mechanisms, Mechanisms(steps, noise_factor));
  for (size_t i = 0; i < parts_.size(); ++i) {
    charges.push_back({.mechanism = mechanisms[i],
                       .run = run_,
                       .purpose = parts_[i].purpose,
                       .noise = noise_,
                       .loss_slack = LossSlack(parts_[i], steps, noise_factor),
                       .part = record_part_});
  }
  return charges;
}

Result<std::vector<privacy::ChargeRequest>> PrivacyPlan::ChargesTogether(uint64_t steps, double noise_factor) const {
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

bool IsOfHead(ParameterRole role) {
  return role == ParameterRole::kPoolerWeight || role == ParameterRole::kPoolerBias ||
         role == ParameterRole::kClassWeight || role == ParameterRole::kClassBias;
}

namespace {

bool IsChosen(TrainedPart part, const ParameterSpec& p) {
  if (part == TrainedPart::kHead) return IsOfHead(p.role);
  return part == TrainedPart::kAll || p.shape != ParameterShape::kTable;
}

}  // namespace

TrainedSet TrainedBy(const std::vector<ParameterSpec>& parameters, const TrainingOptions& o) {
  const MethodEntry& method = EntryOf(o);
  return TrainedSet(parameters, [&](const ParameterSpec& p) {
    const bool head = p.role == ParameterRole::kClassWeight || p.role == ParameterRole::kClassBias;
    if (!p.trained || (head && ReleasesHead(o))) return false;  // the head is made of the releases
    return IsChosen(o.trained_part, p) && (method.trains == nullptr || method.trains(p, o));
  });
}

// A tied table gets a gradient from both of its uses, and no code takes their product in integers. A bias of outputs
// comes in parts.
bool CanMultiplyIntegers(const Architecture& a, const TrainingOptions& o) {
  const bool has_method = o.method == Method::kPhantom || o.method == Method::kDpFp;
  if (!IsPrivate(o) || !HasGradients(o) || !has_method || o.num_negatives > 0 || !o.device.memory.is_host())
    return false;
  if (a.head.kind == HeadKind::kClasses) return true;
  const std::vector<ParameterSpec> parameters = ParametersOf(a);
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
  const std::vector<ParameterSpec> parameters = ParametersOf(a);
  const TrainedSet trained = TrainedBy(parameters, o);
  size_t size = 0;
  for (const uint32_t i : trained.parameters())
    size += parameters[i].shape == ParameterShape::kMatrix ? parameters[i].size() : 0;
  return size > kFormed;
}

uint64_t NumReleased(const Architecture& a, const TrainingOptions& o) {
  const MethodEntry& method = EntryOf(o);
  return method.num_released != nullptr ? method.num_released(a, o) : TrainedBy(ParametersOf(a), o).num_coordinates();
}

PairOfNoises SplitNoise(double noise_multiplier, double ratio) {
  const double gradient = noise_multiplier * std::sqrt(1 + ratio * ratio) / ratio;
  return {.map = ratio * gradient, .gradient = gradient};
}

double GradientNoise(const TrainingOptions& o) {
  return IsAdaptive(o.method) ? SplitNoise(o.privacy.noise_multiplier, o.sparse.map_noise_ratio).gradient
                              : o.privacy.noise_multiplier;
}

double StepLossSlack(const Architecture& a, const TrainingOptions& given, double noise_multiplier, uint64_t steps) {
  TrainingOptions o = given;
  o.privacy.noise_multiplier = noise_multiplier;
  if (o.num_records_public == 0) o.num_records_public = 1;  // no probability is needed here
  const Result<PrivacyPlan> plan = PrivacyPlan::Create(a, o);
  return plan.ok() ? plan->LossSlack(steps) : 0;
}

}  // namespace wisp
