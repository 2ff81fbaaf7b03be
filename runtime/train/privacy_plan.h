// What a run's steps cost, from its public constants: probabilities, mechanisms, the discrete noise's distance from the
// Gaussian that is accounted for. Made once; the job calibrates by it, the trainer draws and charges by it, audits and
// statements read it. There is no second formula for any of it.
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

// What the ledger calls the parts of a step.
inline constexpr const char *kTrainingPurpose = "training", *kHeadPurpose = "class sums of representations",
                            *kEncoderPurpose = "encoder training";

class PrivacyPlan {
 public:
  // One mechanism: Poisson-subsampled Gaussian, `releases` of them a step.
  struct Part {
    const char* purpose;
    double noise_multiplier = 0, sampling_probability = 0;
    uint64_t releases = 1;
    // The sums that are noised in one release: on the grid of `grid_coordinates`, so many numbers, with this much
    // noise.
    struct Noise {
      double clipping_norm = 0, noise_multiplier = 0;
      uint64_t grid_coordinates = 0, coordinates = 0;
    };
    std::vector<Noise> noises;
  };

  // kPrivacyRefused: the run has no guarantee that anything could be said of. Ranges of noise and norms are Trainer's
  // to check.
  static Result<PrivacyPlan> Create(const Architecture& architecture, const TrainingOptions& options);

  // A run that goes on keeps the name under which the ledger has charged it.
  void SetRun(std::string run) { run_ = std::move(run); }

  const std::vector<Part>& parts() const { return parts_; }
  // q of the draw that gradients are taken of.
  double sampling_probability() const { return parts_.back().sampling_probability; }
  // Of so many steps, with the noise multiplied.
  Result<std::vector<privacy::Mechanism>> Mechanisms(uint64_t steps, double noise_factor = 1) const;
  // eta of exact_sum.h: how far the discrete noise of so many steps is from the Gaussian; of one part, of all.
  double LossSlack(const Part& part, uint64_t steps, double noise_factor = 1) const;
  double LossSlack(uint64_t steps, double noise_factor = 1) const;
  // What the ledger is charged; nothing for no steps.
  Result<std::vector<privacy::ChargeRequest>> Charges(uint64_t steps, double noise_factor = 1) const;
  // The same as one plan or one question: the slack of all parts stands in the first.
  Result<std::vector<privacy::ChargeRequest>> ChargesTogether(uint64_t steps, double noise_factor = 1) const;

 private:
  std::vector<Part> parts_;
  std::string run_;
  privacy::RecordPart record_part_ = privacy::RecordPart::kAll;
  privacy::NoiseKind noise_ = privacy::NoiseKind::kSecure;
};

// B / N; of one of a step's micro-batches, B / (m N). N must be known.
double BatchProbability(const TrainingOptions& options);
double MicroBatchProbability(const TrainingOptions& options);

// Numbers that gradients release in a step, at most.
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

// The noise multiplier of the sum of gradients: above the one that is charged where a step releases something else
// beside it.
double GradientNoise(const TrainingOptions& options);

// A pooler or a head of classes.
bool IsOfHead(ParameterRole role);

// Whether records' gradients are multiplied as integers (runtime/gradients/integer_gradients.h) in place of being
// formed one by one: a public constant of the run. Of phantom and dp-fp on the host, where norm_form asks for it, or is
// automatic and the matrices that train have more than 2^20 numbers.
bool MultipliesIntegers(const Architecture& architecture, const TrainingOptions& options);
// Whether such a run could.
bool CanMultiplyIntegers(const Architecture& architecture, const TrainingOptions& options);

// What the run's gradients move, of the architecture's parameters.
TrainedSet TrainedBy(const std::vector<ParameterSpec>& parameters, const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_PRIVACY_PLAN_H_
