// Gaussian noise of which each step takes back a part in the next (DP-lambda-CGD, arXiv 2601.22334).
//
//   WISP_ASSIGN_OR_RETURN(Mechanism run, CorrelatedGaussian({.noise_multiplier = 4, .lambda = 0.9, .participations = 5,
//       .separation = 100}));                         // a run of 500 steps
//
// The noise of step s is z_s - lambda z_(s-1), with independent Gaussians z_s of noise_multiplier times a record's
// bound and z_(-1) = 0. A record takes part in the steps j, j + separation, ... of a run, with any j below separation,
// or in fewer of them. That may be public: no amplification by sampling is claimed. The mechanism's steps() are whole
// runs of participations * separation steps. One that ends early, or begins its noise anew from z = 0 in the middle,
// costs no more.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_CORRELATED_GAUSSIAN_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_CORRELATED_GAUSSIAN_H_

#include <cstdint>

#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

struct CorrelatedGaussianOptions {
  double noise_multiplier = 0;  // of z; 1e-6 to 1e12
  double lambda = 0;            // 0 <= lambda < 1
  uint64_t participations = 1;  // 1 to 2^20
  uint64_t separation = 1;      // 1 to 2^32
  uint64_t runs = 1;
  Adjacency adjacency = Adjacency::kAddRemove;  // or kZeroOut; under kReplaceOne the accountants refuse it
};
Result<Mechanism> CorrelatedGaussian(const CorrelatedGaussianOptions& options);

// The run costs as much as one Gaussian of noise_multiplier / CorrelatedSensitivity. Rounded up; at least 1.
double CorrelatedSensitivity(double lambda, uint64_t participations, uint64_t separation);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_CORRELATED_GAUSSIAN_H_
