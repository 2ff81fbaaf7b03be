// A kind of mechanism, as accountants, ledgers and statements see it: one entry of a table. Nothing outside of kinds/
// knows which kinds there are.
//
// To add a kind, write a file in kinds/ that defines its entry, name the entry in kMechanismKinds (mechanism_kinds.cc),
// and test what it costs. Ledgers store the word and the parameters' names, so neither may change afterwards.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_MECHANISM_KIND_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_MECHANISM_KIND_H_

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/accounting/pld.h"

namespace wisp::privacy {

struct MechanismParameter {
  const char* name = nullptr;      // in the text that ledgers store
  const char* in_words = nullptr;  // in sentences
  double least = 0, most = 0;
  const char* allowed = nullptr;  // both in words
  bool is_whole = false;          // a whole number
};

// The parameters that several kinds have.
inline constexpr double kAboveZero = std::numeric_limits<double>::denorm_min(), kBelowOne = 1 - 0x1p-53;
inline constexpr double kLargestWhole = 0x1p53;
// No useful noise is larger; the accountants' squares would overflow only far beyond.
inline constexpr MechanismParameter kNoiseMultiplier{"noise_multiplier", "noise multiplier", kAboveZero, 1e12,
                                                     "a positive number up to 1e12"};

// Each function gets a mechanism of its kind. A function that may be null says what null stands for.
struct MechanismKind {
  const char* word;      // the first of the text that ledgers store; two kinds may share it if their parameters differ
  const char* in_words;  // the first of Mechanism::Describe
  const char* unit;      // what steps() counts, in words
  // A random choice from private scores. If false, noise on a sum over records.
  bool is_sample;
  // The sampling of records, as one word and as a phrase for people who do not know the word. Null: a statement does
  // not name it.
  const char* sampling;
  const char* participation;
  // A statement's words for what is released. Null: the weights after every step, or samples.
  const char* released;
  std::array<MechanismParameter, Mechanism::kMostParameters> parameters;  // unused ones have no name

  // The number of training steps in one unit of steps(). Null: 1.
  uint64_t (*steps_of_unit)(const Mechanism&);
  // kPrivacyRefused if the cost is not proved under the mechanism's adjacency. Null: it is proved under each.
  Status (*check)(const Mechanism&);
  // Epsilon of one step at delta 0. Null: infinity.
  double (*pure_epsilon)(const Mechanism&);
  // Renyi divergence of all steps at an order above 1, the larger of both directions. Null: infinity.
  double (*rdp)(const Mechanism&, double order);
  // Renyi divergence of one step at an integer order from 2 on, rounded up. Null: that of `rdp`, rounded up.
  double (*rdp_of_step)(const Mechanism&, uint32_t order);
  // The square of mu in the central limit of Gaussian DP, of all steps. Null: the theorem is not offered.
  double (*gdp_mu_squared)(const Mechanism&);

  // False if losses are so large that only other bounds are useful, and the arithmetic would overflow.
  bool (*fits_grid)(const Mechanism&);
  // True if both directions have the same losses.
  bool (*is_symmetric)(const Mechanism&);
  // The noise multiplier of one plain Gaussian that costs as much as all steps, if there is one. Null: never.
  std::optional<double> (*as_one_gaussian)(const Mechanism&);
  // The losses of one step that `discretise` covers, and their distribution (pld.h) on a grid of this step. A kind that
  // first computes on a grid of its own makes that as coarse as the figure is; both functions get the same fineness.
  // Null: the distribution is not known, `fits_grid` is false, and RDP alone gives a figure.
  LossRange (*range)(const Mechanism&, Direction, Fineness);
  DiscretePld (*discretise)(const Mechanism&, Direction, double step, Fineness);
  // All steps on a grid of their own, in both directions, if that is more precise. Null: it never is.
  std::optional<DiscretePld> (*compose_alone)(const Mechanism&);

  // True if whatever is seen of one `smaller` could be computed from what is seen of one `larger`, so that it has no
  // more delta at any epsilon. `larger` may be of a kind with the same word. Null: it is not known of any two.
  bool (*is_no_more_than)(const Mechanism& smaller, const Mechanism& larger);
  // A mechanism that costs no less, its parameters rounded to powers of 2^(1 / per_octave). Null: they are kept.
  Mechanism (*rounded_up)(const Mechanism&, double per_octave);
};

// All kinds.
std::span<const MechanismKind* const> MechanismKinds();

extern const MechanismKind kGaussianKind, kPoissonSubsampledGaussianKind, kUniformResponseKind, kResponseKind,
    kBoundedRangeKind, kRandomAllocationKind, kCorrelatedGaussianKind, kPrivateSearchKind;

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_MECHANISM_KIND_H_
