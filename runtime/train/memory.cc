#include "runtime/train/memory.h"

#include "runtime/privacy/audit/binomial.h"
#include "runtime/train/pooled_cache.h"
#include "runtime/train/record_pass.h"
#include "runtime/train/release/head_pass.h"
#include "runtime/train/release/step_release_parts.h"
#include "runtime/train/trainer.h"

namespace wisp {
namespace {

ReleaseBytes PlanRelease(const Graph& graph, const TrainedSet& trained, size_t num_records, const TrainingOptions& o) {
  if (!graph.device().memory.is_host()) return PlanDeviceRelease(graph, trained, o);
  if (o.method == Method::kRgp) return PlanRgpRelease(graph, trained, o);
  if (IsSparse(o.method) || o.num_negatives > 0) return PlanSparseRelease(graph, trained, num_records, o);
  return IsPrivate(o) ? PlanFlatRelease(graph, trained, o) : PlanOrdinaryRelease(graph, trained, o);
}

}  // namespace

size_t BinomialUpperQuantile(size_t trials, double chance) {
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

ListRoom PlanLists(const TrainingOptions& o, size_t num_records) {
  if (!HasGradients(o)) return {};
  if (IsPaper(o)) return {.sample = num_records, .batch = MicroBatchDrawsAtMost(o, num_records)};
  return {.batch = num_records,
          // a private run samples by Poisson and keeps no order
          .order = o.sampling == Sampling::kShuffled && !IsPrivate(o) ? num_records : 0,
          .batch_records = IsAdaptive(o.method) ? num_records : 0,
          .of_workers = o.method == Method::kDpFp ? 0 : o.num_threads * num_records};
}

namespace {

// Trainer::Check for the options that memory depends on.
Status CheckMemory(const Architecture& a, size_t num_records, const TrainingOptions& o) {
  WISP_RETURN_IF_ERROR(Validate(a));
  if (HasGradients(o)) WISP_RETURN_IF_ERROR(Validate(o.optimizer));
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  WISP_RETURN_IF_ERROR(ValidateBase(a, o));
  WISP_RETURN_IF_ERROR(ValidateRecompute(a, o));
  WISP_RETURN_IF_ERROR(ValidateAverage(o));
  WISP_RETURN_IF_ERROR(ValidateTrains(a, o));
  WISP_RETURN_IF_ERROR(ValidateDevice(o));
  WISP_RETURN_IF_ERROR(ValidateNegatives(a, o));
  if (o.method == Method::kRgp) WISP_RETURN_IF_ERROR(ValidateRgp(a, o));
  if (IsSparse(o.method)) WISP_RETURN_IF_ERROR(ValidateSparse(a, o));
  if (o.method == Method::kDpFp && (o.dp_fp.micro_batches == 0 || o.expected_batch == 0))
    return InvalidArgument("`expected_batch` and micro_batches must be 1 or above");
  return IsAdaptive(o.method) ? ValidateBatch(o, num_records) : OkStatus();
}

// Adds the memory of gradients: everything beside the weights.
void AddGradients(const Graph& graph, size_t num_records, const TrainingOptions& o, TrainingMemory& m) {
  const TrainedSet trained = TrainedBy(graph.parameters(), o);
  const ReleaseBytes release = PlanRelease(graph, trained, num_records, o);
  m.optimizer_state = Optimizer::PlanBytes(o.optimizer, trained.size());
  m.gradient_sums += release.sums;
  m.record_gradients = release.records;
  m.growth_at_most = release.growth_at_most;
  m.rows_at_most = release.rows_at_most;
  m.records_at_most = release.records_at_most;
  if (!IsPaper(o)) return;
  const size_t parts = o.device.memory.is_host() ? o.num_threads : 1;
  m.record_gradients += parts * PaperNoise::PlanBytes(o, graph.architecture().width, graph.max_records());
  m.records_at_most = MicroBatchDrawsAtMost(o, num_records);
}

}  // namespace

Result<TrainingMemory> PlanTrainingMemory(const Architecture& architecture, size_t num_records,
                                          const TrainingOptions& given) {
  WISP_RETURN_IF_ERROR(CheckMemory(architecture, num_records, given));
  TrainingOptions o = given;
  if (o.num_threads == 0) o.num_threads = DefaultThreads();
  if (o.num_records_public == 0) o.num_records_public = static_cast<uint32_t>(num_records);
  if (o.method == Method::kDpFp) o.sampling = Sampling::kPoisson;
  const std::unique_ptr<Graph> graph = MakeGraph(architecture, o.device, GraphOf(architecture, o));
  const size_t size = FlatSize(graph->parameters()) - FirstHeld(graph->parameters(), o);
  const bool has_variances = IsPrivate(o) && architecture.re_attention == ReAttention::kOn;
  const ListRoom lists = PlanLists(o, num_records);
  const bool is_host = o.device.memory.is_host();
  TrainingMemory m{.weights = (o.ema_decay > 0 ? 2 : 1) * AlignedArray<float>::AllocatedBytes(size) +
                              (is_host ? 0 : size * sizeof(float)),
                   .packed_weights = PackedWeights::PlanBytes(graph->base()),
                   .negatives = o.num_negatives > 0 ? NegativeSampler::PlanBytes(graph->base(), o.num_negatives) : 0,
                   .activations = (is_host ? o.num_threads : 1) * graph->training_bytes() +
                                  o.num_threads * RecordPass<Graph>::PlanBytes(*graph),
                   .variances = has_variances ? NoiseVariance::PlanBytes(architecture, o.re_attention) : 0,
                   .lists = (lists.sample + lists.batch + lists.order + lists.of_workers) * sizeof(uint32_t) +
                            lists.batch_records * sizeof(const Record*) + o.sparse.rows.size() * sizeof(int32_t)};
  if (HasGradients(o)) AddGradients(*graph, num_records, o, m);
  if (PooledCache::IsOf(architecture, num_records, o))
    m.pooled = PooledCache::PlanBytes(*graph, num_records, o.num_threads);
  if (!ReleasesHead(o)) return m;
  const HeadPass::Bytes head = HeadPass::PlanBytes(*graph, o, num_records);
  m.gradient_sums += head.releases;
  m.lists += head.lists;
  m.records_at_most = head.records_at_most;
  return m;
}

}  // namespace wisp
