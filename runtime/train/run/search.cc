#include "runtime/train/run/search.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/layers/model_view.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/train/count_grid.h"
#include "runtime/train/list_scorer.h"

namespace wisp {
namespace {

// A sample with mean 1 by rejection: k with probability 2^-(k + 1) is kept with probability 2^(k - 1) / k!, which is
// 1/2 for 0 and else the product of 2 / j for j from 2 to k.
uint64_t SamplePoissonOfOne(privacy::RandomStream& random) {
  for (;;) {
    uint64_t k = 0;
    while (random.UniformBelow(2) == 1) ++k;
    bool is_kept = k > 0 || random.UniformBelow(2) == 0;
    for (uint64_t j = 3; is_kept && j <= k; ++j) is_kept = random.UniformBelow(j) < 2;
    if (is_kept) return k;
  }
}

}  // namespace

uint64_t SamplePoisson(privacy::RandomStream& random, uint32_t mean) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < mean; ++i) sum += SamplePoissonOfOne(random);
  return sum;
}

int64_t ScorePrivately(const Architecture& a, const ParameterSource& source, const data::Sequences& sequences,
                       HoldOut hold_out, const ModelLists& lists, const SearchPlan& plan, Workers& workers,
                       privacy::RandomStream& noise) {
  const kernels::Device host(kernels::BestOps());
  const std::unique_ptr<const ModelView> graph =
      MakeModelView(a, host, {.use = GraphUse::kInference, .head = HeadPackingFor(kernels::BestOps(), a, source)});
  const PackedWeights weights(*graph, source);
  const RecordSet records = MakeRecords(sequences, a.max_length, hold_out);
  std::vector<int64_t> sums(workers.size());
  workers.Run([&](size_t worker) {
    ListScorer scorer(*graph, weights.view(), lists);
    for (size_t i = worker; i < records.test.size(); i += workers.size()) {
      const auto& [history, target] = records.test[i];
      if (!IsRankable(a, records.test[i])) continue;
      // From 0 to 1 whatever the scores are, and rounded down.
      const double ndcg = std::clamp(Ndcg(scorer.FindPosition(target, scorer.Score(history), history)), 0.0, 1.0);
      sums[worker] += static_cast<int64_t>(ndcg * kCountSteps);
    }
  });
  std::array<int64_t, 1> sum = {0};
  for (const int64_t part : sums) sum[0] += part;
  privacy::AddDiscreteGaussian(noise, CountSigma(plan.score_noise), sum);
  return sum[0];
}

}  // namespace wisp
