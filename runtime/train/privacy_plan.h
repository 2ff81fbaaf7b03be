// The privacy cost of a run's steps, computed from its public constants: probabilities, mechanisms, the discrete
// noise's distance from the Gaussian that is accounted for. It is made once. The job calibrates by it, the trainer
// samples and charges by it, audits and statements read it. No other code has a formula for any of these.
//
//   WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(architecture, options));
//   WISP_ASSIGN_OR_RETURN(auto charges, plan.Charges(steps));        // of a range of steps, in the order of charging
#ifndef WISP_RUNTIME_TRAIN_PRIVACY_PLAN_H_
#define WISP_RUNTIME_TRAIN_PRIVACY_PLAN_H_

#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/trained_set.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/privacy/noise/noise_process.h"
#include "runtime/train/options.h"
#include "runtime/train/sampler.h"

namespace wisp {

// The ledger's names for the mechanisms of a step.
inline constexpr const char *kTrainingPurpose = "training", *kHeadPurpose = "class sums of representations",
                            *kEncoderPurpose = "encoder training";

// Steps [first, first + count) of a run.
struct StepRange {
  StepRange(uint64_t steps) : count(steps) {}
  StepRange(uint64_t first_step, uint64_t steps) : first(first_step), count(steps) {}
  uint64_t first = 0, count = 0;
};

class PrivacyPlan {
 public:
  // One sum of a step: how its records are sampled, and which noise it gets.
  struct Part {
    const char* purpose;
    privacy::NoiseOptions noise;  // as it is charged
    SamplingLaw law;
    uint64_t releases = 1;  // in a step, each like a step of its own
    // The sums that are noised in one release: how many numbers, on the grid for `grid_coordinates` coordinates, and
    // with how much noise.
    struct Noise {
      double clipping_norm = 0;
      privacy::NoiseOptions noise;
      uint64_t grid_coordinates = 0, coordinates = 0;
    };
    std::vector<Noise> noises;
  };

  // kPrivacyRefused: the run has no guarantee that could be stated. Trainer checks the ranges of noise and norms.
  static Result<PrivacyPlan> Create(const Architecture& architecture, const TrainingOptions& options);

  // Sets the name under which the ledger has charged a run that resumes.
  void SetRun(std::string run) { run_ = std::move(run); }

  const std::vector<Part>& parts() const { return parts_; }
  // The steps that are charged at a time are a multiple of this many: an epoch, where records are allocated to steps;
  // all of a run, if its noise is correlated. `left`: the steps that are left of the run.
  uint64_t StepsPerCharge(uint64_t steps, uint64_t left) const;
  // The mechanisms of a range of steps, with each noise multiplier multiplied by noise_factor: of one part, or of all.
  Result<std::vector<privacy::Mechanism>> Mechanisms(const Part& part, StepRange steps, double noise_factor = 1) const;
  Result<std::vector<privacy::Mechanism>> Mechanisms(StepRange steps, double noise_factor = 1) const;
  // eta of exact_sum.h: how far the discrete noise of a range of steps is from the Gaussian, for one part, and for all
  // parts.
  double LossSlack(const Part& part, StepRange steps, double noise_factor = 1) const;
  double LossSlack(StepRange steps, double noise_factor = 1) const;
  // The charges to the ledger for a range of steps, of one part or of all; empty for 0 steps.
  Result<std::vector<privacy::ChargeRequest>> Charges(const Part& part, StepRange steps, double noise_factor = 1) const;
  Result<std::vector<privacy::ChargeRequest>> Charges(StepRange steps, double noise_factor = 1) const;
  // The charges as one plan or one query: the slack of all parts is in the first charge.
  Result<std::vector<privacy::ChargeRequest>> ChargesTogether(StepRange steps, double noise_factor = 1) const;

 private:
  std::vector<Part> parts_;
  std::string run_;
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
struct NoisePair {
  double map = 0, gradient = 0;
};
NoisePair SplitNoise(double noise_multiplier, double map_noise_ratio);

// The noise multiplier of the sum of gradients. It is above the one that is charged if a step also releases something
// else.
double GradientNoise(const TrainingOptions& options);
// The noise of that sum, with this multiplier: as it is drawn (GradientNoise), or as it is charged.
privacy::NoiseOptions GetNoise(const TrainingOptions& options, double multiplier);

// True for a pooler or a head of classes.
bool IsHeadRole(ParameterRole role);

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
