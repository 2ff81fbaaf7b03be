#include "runtime/train/memory.h"

#include "runtime/privacy/audit/binomial.h"
#include "runtime/train/check_options.h"
#include "runtime/train/gradient_step.h"
#include "runtime/train/method_table.h"
#include "runtime/train/state_cache.h"

namespace wisp {

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

namespace {

// Trainer::Check for the options that memory depends on.
Status CheckMemory(const Architecture& a, size_t num_records, const TrainingOptions& o) {
  WISP_RETURN_IF_ERROR(Validate(a));
  WISP_RETURN_IF_ERROR(CheckBuilt(a, o));
  if (HasGradients(o)) WISP_RETURN_IF_ERROR(Validate(o.optimizer));
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  WISP_RETURN_IF_ERROR(ValidateBase(a, o));
  WISP_RETURN_IF_ERROR(ValidateRecompute(a, o));
  WISP_RETURN_IF_ERROR(ValidateAverage(o));
  WISP_RETURN_IF_ERROR(ValidateTrains(a, o));
  WISP_RETURN_IF_ERROR(ValidateDevice(o));
  WISP_RETURN_IF_ERROR(ValidateNegatives(a, o));
  WISP_RETURN_IF_ERROR(ValidateTowers(a, o));
  WISP_RETURN_IF_ERROR(ValidateFeatures(a, o));
  WISP_RETURN_IF_ERROR(CheckMethod(a, o));
  if (o.method == Method::kDpFp && (o.dp_fp.micro_batches == 0 || o.expected_batch == 0))
    return InvalidArgument("`expected_batch` and micro_batches must be 1 or above");
  return IsAdaptive(o.method) ? ValidateBatch(o, num_records) : OkStatus();
}

}  // namespace

Result<TrainingMemory> PlanTrainingMemory(const Architecture& architecture, size_t num_records,
                                          const TrainingOptions& given) {
  WISP_RETURN_IF_ERROR(CheckMemory(architecture, num_records, given));
  TrainingOptions o = given;
  if (o.num_threads == 0) o.num_threads = DefaultThreads();
  if (o.num_records_public == 0) o.num_records_public = static_cast<uint32_t>(num_records);
  if (o.method == Method::kDpFp) o.sampling = Sampling::kPoisson;
  const std::unique_ptr<Graph> graph = MakeGraph(architecture, o.device, GraphFor(architecture, o));
  const size_t size = FlatSize(graph->parameters()) - FirstHeld(graph->parameters(), o);
  const bool is_host = o.device.memory.is_host();
  TrainingMemory m{.weights = (o.ema_decay > 0 ? 2 : 1) * AlignedArray<float>::AllocatedBytes(size) +
                              (is_host ? 0 : size * sizeof(float)),
                   .packed_weights = PackedWeights::PlanBytes(graph->base()),
                   .activations = NumCallers(o) * graph->training_bytes(),
                   .lists = o.sparse.rows.size() * sizeof(int32_t)};
  if (StateCache::IsUsedFor(architecture, num_records, o)) m.states = StateCache::PlanBytes(*graph, num_records, o);
  if (HasGradients(o)) GradientStep::AddPlannedMemory(*graph, num_records, o, m);
  AddHeadMemory(*graph, num_records, o, m);
  return m;
}

}  // namespace wisp
