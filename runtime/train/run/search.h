// The runs of a private search: how many there are, and the noised score by which the best of them is chosen.
// search_plan.h has what they cost.
//
//   sensitivity   each record adds the NDCG@10 of one list, from 0 to 1: that after all its events but the last, which
//                 no run trains on. A record changes no other record's list
//   released      of the best run alone: its weights and its candidate. The number of runs, and all of the others, stay
//                 in memory
//   ledger        the search was charged before its first run (ChargeSearch)
//   noise         exact discrete Gaussian, SearchPlan::score_noise records
#ifndef WISP_RUNTIME_TRAIN_RUN_SEARCH_H_
#define WISP_RUNTIME_TRAIN_RUN_SEARCH_H_

#include <cstdint>

#include "runtime/core/architecture.h"
#include "runtime/core/served_list.h"
#include "runtime/core/threads.h"
#include "runtime/data/sequences.h"
#include "runtime/layers/weights.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/run/records.h"
#include "runtime/train/search_plan.h"

namespace wisp {

// A sample from the Poisson distribution with a whole mean, exactly.
uint64_t SamplePoisson(privacy::RandomStream& random, uint32_t mean);

// The sum of the records' NDCG@10 in grid steps (count_grid.h), with noise. `hold_out` is that of the runs, and holds
// something out. `weights` and `lists` are those of the model as it would be served.
int64_t ScorePrivately(const Architecture& architecture, const ParameterSource& weights,
                       const data::Sequences& sequences, HoldOut hold_out, const ModelLists& lists,
                       const SearchPlan& plan, Workers& workers, privacy::RandomStream& noise);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_SEARCH_H_
