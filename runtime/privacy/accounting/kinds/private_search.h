// A search among candidates for the best of several private runs (Papernot and Steinke 2022).
//
//   WISP_ASSIGN_OR_RETURN(Mechanism search, PrivateSearch({.noise_multiplier = 2, .sampling_probability = 0.1,
//       .run_steps = 200, .score_noise_multiplier = 10, .expected_runs = 8}));
//
// One run takes a candidate from a public list by chance, each with the same probability. It makes run_steps steps of
// the Poisson-subsampled Gaussian, and releases one noised score of what it trained. The number of runs is sampled from
// the Poisson distribution with mean expected_runs. Of all runs only that with the highest score is released, with its
// candidate and its score; where no run was sampled, nothing is. The number of runs is not released, nor is anything of
// the others. A candidate may differ from these numbers if its run has no larger Renyi divergence at any order of
// kRenyiOrders up to largest_order. At higher orders the search is taken to have no bound. The mechanism's steps() are
// searches.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_PRIVATE_SEARCH_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_PRIVATE_SEARCH_H_

#include <cstdint>

#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/accounting/privacy_filter.h"

namespace wisp::privacy {

struct PrivateSearchOptions {
  double noise_multiplier = 0;
  double sampling_probability = 0;
  uint64_t run_steps = 0;                        // 1 to 2^40
  double score_noise_multiplier = 0;             // standard deviation of the score's noise over the score's sensitivity
  double loss_slack = 0;                         // of all that one run samples (ChargeRequest::loss_slack); 0 to 1
  uint32_t expected_runs = 0;                    // 1 to 1e6
  uint32_t largest_order = kRenyiOrders.back();  // 2 to 512
  uint64_t searches = 1;
  Adjacency adjacency = Adjacency::kAddRemove;  // the accountants refuse others
};
Result<Mechanism> PrivateSearch(const PrivateSearchOptions& options);

// The Renyi divergence of one run of the search at each order, rounded up; infinity above the largest order.
RenyiSums RunRdp(const Mechanism& search);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_PRIVATE_SEARCH_H_
