// The cost of a release as data: mechanisms with their parameters, and the targets they must meet. Every value of these
// types is valid; the factories refuse invalid ones.
//
//   WISP_ASSIGN_OR_RETURN(Mechanism steps, Mechanism::PoissonSubsampledGaussian(
//       {.noise_multiplier = 1.1, .sampling_probability = 0.01, .steps = 1000}));
//
// Accountants (accountant.h) read lists of these.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_MECHANISM_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_MECHANISM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace wisp::privacy {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The meaning of "neighbouring": the change of the data that the guarantee hides.
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

struct MechanismKind;  // mechanism_kind.h

// A kind, its parameters, and how often it runs.
class Mechanism {
 public:
  // N(0, (noise_multiplier * L2 sensitivity)^2), `count` times on the same data.
  struct GaussianOptions {
    double noise_multiplier = 0;
    uint64_t count = 1;
    Adjacency adjacency = Adjacency::kAddRemove;
  };
  // A Gaussian on a sample that every record enters with probability q, sampled anew each step.
  struct SubsampledOptions {
    double noise_multiplier = 0;
    double sampling_probability = 0;
    uint64_t steps = 0;
    Adjacency adjacency = Adjacency::kAddRemove;
  };
  // One of `support` values is sampled from lambda q + (1 - lambda) uniform. q may be any distribution computed from
  // the records and from earlier samples; the support is public. k distinct values, each sampled from those left, are k
  // mechanisms with supports n, n - 1, ...
  struct ResponseOptions {
    uint64_t support = 0;  // 2 and above
    double lambda = 0;     // 0 <= lambda < 1
    uint64_t count = 1;
    Adjacency adjacency = Adjacency::kAddRemove;
  };
  // Randomised response with a public u that is not uniform: no value of the support has a smaller probability in u.
  struct NonUniformResponseOptions {
    double min_probability = 0;  // 1e-200 to 0.5
    double lambda = 0;
    uint64_t count = 1;
    Adjacency adjacency = Adjacency::kAddRemove;
  };
  // Exponential mechanism, softmax sampling, Gumbel-max: between neighbours the logits (divided by the temperature)
  // move by amounts that differ by at most range. That holds if each moves by at most range / 2, or if all move the
  // same way by at most range, as counts do when a record joins. Logits (b + clip(f - b, -c, c)) / tau with public b
  // have range 4 c / tau. Gumbel noise with the k largest taken, in order or not, is k such samples.
  struct BoundedRangeOptions {
    double range = 0;  // above 0 and finite
    uint64_t count = 1;
    Adjacency adjacency = Adjacency::kAddRemove;
  };
  // noise_multiplier: standard deviation of the noise over the L2 sensitivity, above 0, up to 1e12.
  static Result<Mechanism> Gaussian(const GaussianOptions& options);
  static Result<Mechanism> PoissonSubsampledGaussian(const SubsampledOptions& options);
  static Result<Mechanism> RandomisedResponse(const ResponseOptions& options);
  static Result<Mechanism> NonUniformResponse(const NonUniformResponseOptions& options);
  static Result<Mechanism> BoundedRange(const BoundedRangeOptions& options);

  // A mechanism of any kind, with the values of the kind's parameters in their order.
  static constexpr size_t kMostParameters = 7;
  using Values = std::array<double, kMostParameters>;
  static Result<Mechanism> Make(const MechanismKind& kind, const Values& values, uint64_t steps, Adjacency adjacency);

  const MechanismKind& kind() const { return *kind_; }
  std::string_view word() const;  // of the kind: "gaussian"
  bool is_sample() const;         // else noise on a sum over records
  const Values& values() const { return values_; }
  // The parameter of this name, or `otherwise` if the kind has none.
  double Parameter(std::string_view name, double otherwise = 0) const;
  double noise_multiplier() const { return Parameter("noise_multiplier"); }
  double sampling_probability() const { return Parameter("sampling_probability", 1); }
  double lambda() const { return Parameter("lambda"); }
  double range() const { return Parameter("range"); }
  uint64_t support() const { return static_cast<uint64_t>(Parameter("support")); }
  // The smallest public probability of a randomised response; 1 / support for the uniform distribution.
  double min_probability() const { return support() > 0 ? 1 / Parameter("support") : Parameter("min_probability"); }
  uint64_t steps() const { return steps_; }  // samples, epochs or runs: the kind says which
  uint64_t training_steps() const;           // steps() in steps of training
  Adjacency adjacency() const { return adjacency_; }

  // The loss that no outcome of one step exceeds: epsilon at delta 0. Infinity where noise is added.
  //   randomised response   eps0 = log(1 + lambda / ((1 - lambda) min_probability)); bounded range: the range
  double PureEpsilonPerStep() const;

  // This mechanism with another number of steps.
  Result<Mechanism> WithSteps(uint64_t steps) const;
  bool DiffersInStepsOnly(const Mechanism& other) const;

  // A description for people: "Poisson-subsampled Gaussian, noise multiplier 1.1, sampling probability 0.01, 1000
  // steps, add_remove".
  std::string Describe() const;
  // One line that FromText reads back to the same value, bit for bit; ledgers store it.
  std::string ToText() const;
  static Result<Mechanism> FromText(std::string_view text);

  bool operator==(const Mechanism&) const = default;

 private:
  Mechanism(const MechanismKind& kind, const Values& values, uint64_t steps, Adjacency adjacency)
      : kind_(&kind), values_(values), steps_(steps), adjacency_(adjacency) {}

  const MechanismKind* kind_;
  Values values_;
  uint64_t steps_;
  Adjacency adjacency_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_MECHANISM_H_
