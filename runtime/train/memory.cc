#include "runtime/train/memory.h"

#include "runtime/privacy/binomial.h"
#include "runtime/train/step_release_parts.h"
#include "runtime/train/trainer.h"

namespace wisp {
namespace {

ReleaseBytes PlanRelease(const Graph& graph, size_t num_records, const TrainingOptions& o) {
  if (o.method == Method::kRgp) return PlanRgpRelease(graph, o);
  if (IsSparse(o.method) || o.num_negatives > 0) return PlanSparseRelease(graph, num_records, o);
  return PlanFlatRelease(graph, o);
}

}  // namespace

size_t SeldomMore(size_t trials, double chance) {
  if (chance >= 1) return trials;
  size_t low = 0, high = trials;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (privacy::BinomialUpperTail(middle + 1, trials, privacy::Chance::Of(chance)) < kSeldom) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Result<TrainingMemory> PlanTrainingMemory(const Architecture& architecture, size_t num_records,
                                          const TrainingOptions& given) {
  WISP_RETURN_IF_ERROR(Validate(architecture));
  WISP_RETURN_IF_ERROR(Validate(given.optimizer));
  WISP_RETURN_IF_ERROR(CheckThreads(given.num_threads));
  WISP_RETURN_IF_ERROR(ValidateAverage(given));
  WISP_RETURN_IF_ERROR(ValidateNegatives(architecture, given));
  if (given.method == Method::kRgp) WISP_RETURN_IF_ERROR(Validate(given.rgp, ParametersOf(architecture)));
  if (IsSparse(given.method)) WISP_RETURN_IF_ERROR(ValidateSparse(architecture, given));
  if (given.method == Method::kAdaFest || given.method == Method::kAdaFestPlus)
    WISP_RETURN_IF_ERROR(ValidateBatch(given, num_records));
  TrainingOptions options = given;
  if (options.num_threads == 0) options.num_threads = DefaultThreads();
  if (options.num_records_public == 0) options.num_records_public = static_cast<uint32_t>(num_records);
  const Recommender graph(architecture, kernels::BestOps(), options.num_negatives);
  const size_t size = FlatSize(graph.parameters()), threads = options.num_threads;
  const bool has_variances = options.method != Method::kOrdinary && architecture.re_attention == ReAttention::kOn;
  const ReleaseBytes release = PlanRelease(graph, num_records, options);
  return TrainingMemory{.weights = (options.ema_decay > 0 ? 2 : 1) * AlignedArray<float>::AllocatedBytes(size),
                        .packed_weights = AlignedArray<float>::AllocatedBytes(graph.pack_plan().size()),
                        .optimizer_state = Optimizer::PlanBytes(options.optimizer, size),
                        .gradient_sums = release.sums,
                        .negatives =
                            options.num_negatives > 0 ? NegativeSampler::PlanBytes(graph, options.num_negatives) : 0,
                        .activations = threads * graph.training_bytes(),
                        .record_gradients = release.records,
                        .variances = has_variances ? NoiseVariance::PlanBytes(architecture, options.re_attention) : 0,
                        .lists = num_records * ((2 + threads) * sizeof(uint32_t) + sizeof(const Record*)) +
                                 options.sparse.rows.size() * sizeof(int32_t),
                        .growth_at_most = release.growth_at_most,
                        .rows_at_most = release.rows_at_most,
                        .records_at_most = release.records_at_most};
}

}  // namespace wisp
