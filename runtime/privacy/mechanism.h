// What a release costs, as data: mechanisms with their parameters, and the targets they are held to. Every value of these
// types is valid; the factories refuse what is not.
//
//   WISP_ASSIGN_OR_RETURN(Mechanism steps, Mechanism::PoissonSubsampledGaussian(
//       {.noise_multiplier = 1.1, .sampling_probability = 0.01, .steps = 1000}));
//
// What it is not: an accountant (accountant.h), which reads lists of these.
#ifndef WISP_RUNTIME_PRIVACY_MECHANISM_H_
#define WISP_RUNTIME_PRIVACY_MECHANISM_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace wisp::privacy {

// What "neighbouring" means: which change of the data the guarantee hides.
enum class Adjacency {
  kAddRemove,   // one record more or less
  kReplaceOne,  // one record exchanged for another
  kZeroOut,     // one record's contribution replaced by nothing, the number of records known
};
std::string_view ToText(Adjacency adjacency);  // "add_remove", "replace_one", "zero_out"
Result<Adjacency> AdjacencyFromText(std::string_view text);

class Delta {
 public:
  static Result<Delta> Create(double value);  // 0 < value < 1
  double value() const { return value_; }

 private:
  explicit Delta(double value) : value_(value) {}
  double value_;
};

class EpsilonDelta {
 public:
  static Result<EpsilonDelta> Create(double epsilon, double delta);  // epsilon > 0 and finite
  double epsilon() const { return epsilon_; }
  double delta() const { return delta_; }

 private:
  EpsilonDelta(double epsilon, double delta) : epsilon_(epsilon), delta_(delta) {}
  double epsilon_, delta_;
};

class Mechanism {
 public:
  enum class Kind {
    kGaussian,                   // N(0, (noise_multiplier * L2 sensitivity)^2), `steps` times on the same data
    kPoissonSubsampledGaussian,  // the same on a sample that every record enters with probability q, drawn anew each step
  };
  struct GaussianOptions {
    double noise_multiplier = 0;
    uint64_t count = 1;
    Adjacency adjacency = Adjacency::kAddRemove;
  };
  struct SubsampledOptions {
    double noise_multiplier = 0;
    double sampling_probability = 0;
    uint64_t steps = 0;
    Adjacency adjacency = Adjacency::kAddRemove;
  };
  // noise_multiplier: standard deviation of the noise over the L2 sensitivity, above 0 and finite.
  static Result<Mechanism> Gaussian(const GaussianOptions& options);
  static Result<Mechanism> PoissonSubsampledGaussian(const SubsampledOptions& options);

  Kind kind() const { return kind_; }
  double noise_multiplier() const { return noise_multiplier_; }
  double sampling_probability() const { return sampling_probability_; }  // 1 for the plain Gaussian
  uint64_t steps() const { return steps_; }
  Adjacency adjacency() const { return adjacency_; }

  // The same mechanism, another number of times.
  Result<Mechanism> WithSteps(uint64_t steps) const;
  bool DiffersInStepsOnly(const Mechanism& other) const;

  // For people: "Poisson-subsampled Gaussian, noise multiplier 1.1, sampling probability 0.01, 1000 steps, add_remove".
  std::string Describe() const;
  // One line that FromText reads back to the same value, bit for bit. What ledgers store.
  std::string ToText() const;
  static Result<Mechanism> FromText(std::string_view text);

  bool operator==(const Mechanism&) const = default;

 private:
  Mechanism(Kind kind, double noise_multiplier, double sampling_probability, uint64_t steps, Adjacency adjacency)
      : kind_(kind), noise_multiplier_(noise_multiplier), sampling_probability_(sampling_probability), steps_(steps), adjacency_(adjacency) {}

  Kind kind_;
  double noise_multiplier_, sampling_probability_;
  uint64_t steps_;
  Adjacency adjacency_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_MECHANISM_H_
