// The privacy cost of a run's steps, computed from its public constants: probabilities, mechanisms, the discrete
// noise's distance from the Gaussian that is accounted for. It is made once. The job calibrates by it, the trainer
// samples and charges by it, audits and statements read it. No other code has a formula for any of these.
//
//   WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(architecture, options));
//   WISP_ASSIGN_OR_RETURN(auto charges, plan.Charges(steps));        // of so many steps, in the order of charging
#ifndef WISP_RUNTIME_TRAIN_PRIVACY_PLAN_H_
#define WISP_RUNTIME_TRAIN_PRIVACY_PLAN_H_

#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/trained_set.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/options.h"

namespace wisp {

// The ledger's names for the mechanisms of a step.
inline constexpr const char *kTrainingPurpose = "training", *kHeadPurpose = "class sums of representations",
                            *kEncoderPurpose = "encoder training";

class PrivacyPlan {
 public:
  // One mechanism of a step: a Poisson-subsampled Gaussian with `releases` releases.
  struct Part {
    const char* purpose;
    double noise_multiplier = 0, sampling_probability = 0;
    uint64_t releases = 1;
    // The sums that are noised in one release: how many numbers, on the grid for `grid_coordinates` coordinates, and
    // with how much noise.
    struct Noise {
      double clipping_norm = 0, noise_multiplier = 0;
      uint64_t grid_coordinates = 0, coordinates = 0;
    };
    std::vector<Noise> noises;
  };

  // kPrivacyRefused: the run has no guarantee that could be stated. Trainer checks the ranges of noise and norms.
  static Result<PrivacyPlan> Create(const Architecture& architecture, const TrainingOptions& options);

  // Sets the name under which the ledger has charged a run that resumes.
  void SetRun(std::string run) { run_ = std::move(run); }

  const std::vector<Part>& parts() const { return parts_; }
  // q of the draw whose gradients are summed.
  double sampling_probability() const { return parts_.back().sampling_probability; }
  // The mechanisms of so many steps, with each noise multiplier multiplied by noise_factor.
  Result<std::vector<privacy::Mechanism>> Mechanisms(uint64_t steps, double noise_factor = 1) const;
  // eta of exact_sum.h: how far the discrete noise of so many steps is from the Gaussian, for one part, and for all
  // parts.
  double LossSlack(const Part& part, uint64_t steps, double noise_factor = 1) const;
  double LossSlack(uint64_t steps, double noise_factor = 1) const;
  // The charges to the ledger for so many steps; empty for 0 steps.
  Result<std::vector<privacy::ChargeRequest>> Charges(uint64_t steps, double noise_factor = 1) const;
  // The charges as one plan or one query: the slack of all parts is in the first charge.
  Result<std::vector<privacy::ChargeRequest>> ChargesTogether(uint64_t steps, double noise_factor = 1) const;

 private:
  std::vector<Part> parts_;
  std::string run_;
  privacy::RecordPart record_part_ = privacy::RecordPart::kAll;
  privacy::NoiseKind noise_ = privacy::NoiseKind::kSecure;
};

// B / N, and B / (m N) for one of a step's micro-batches. N must be known.
double BatchProbability(const TrainingOptions& options);
double MicroBatchProbability(const TrainingOptions& options);

// The largest number of coordinates that gradients release in a step.
uint64_t NumReleased(const Architecture& architecture, const TrainingOptions& options);
// How far the discrete noise of `steps` steps with this noise multiplier is from the Gaussian that is accounted for.
double StepLossSlack(const Architecture& architecture, const TrainingOptions& options, double noise_multiplier,
                     uint64_t steps);
// sigma1 and sigma2 of an AdaFEST step whose cost is that of one Gaussian with `noise_multiplier`:
// sigma1^-2 + sigma2^-2 = noise_multiplier^-2. (Two Gaussians on one sample are one with the sum of their precisions.)
struct PairOfNoises {
  double map = 0, gradient = 0;
};
PairOfNoises SplitNoise(double noise_multiplier, double map_noise_ratio);

// The noise multiplier of the sum of gradients. It is above the one that is charged if a step also releases something
// else.
double GradientNoise(const TrainingOptions& options);

// True for a pooler or a head of classes.
bool IsOfHead(ParameterRole role);

// True if records' gradients are multiplied as integers (methods/phantom/integer_gradients.h) instead of formed one by
// one. This is a public constant of the run. It applies to phantom and dp-fp on the host, if norm_form asks for it, or
// if norm_form is automatic and the matrices that train have more than 2^20 numbers.
bool MultipliesIntegers(const Architecture& architecture, const TrainingOptions& options);
// True if MultipliesIntegers could be chosen for such a run.
bool CanMultiplyIntegers(const Architecture& architecture, const TrainingOptions& options);

// The parameters that the run's gradients change.
TrainedSet TrainedBy(const std::vector<ParameterSpec>& parameters, const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_PRIVACY_PLAN_H_
