// Random allocation: in each epoch every record takes part in exactly one of its steps.
//
//   WISP_ASSIGN_OR_RETURN(Mechanism run, RandomAllocation({.noise_multiplier = 1, .epoch_steps = 100, .epochs = 5}));
//
// An epoch has epoch_steps steps. Before it begins, each record is given one of them, each with the same probability
// and independently of other records and epochs; who was given which is not released. Each step releases the sum of its
// records' contributions with Gaussian noise. The mechanism's steps() are whole epochs: an epoch that ends early costs
// what a whole one costs.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_RANDOM_ALLOCATION_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_RANDOM_ALLOCATION_H_

#include <cstdint>

#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

struct RandomAllocationOptions {
  double noise_multiplier = 0;  // 0.1 to 1e4
  uint64_t epoch_steps = 0;     // 1 to 2^20
  uint64_t epochs = 1;
  Adjacency adjacency = Adjacency::kAddRemove;  // or kZeroOut; under kReplaceOne the accountants refuse it
};
Result<Mechanism> RandomAllocation(const RandomAllocationOptions& options);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_RANDOM_ALLOCATION_H_
