#include "runtime/train/memory.h"

#include "runtime/train/step_release_parts.h"
#include "runtime/train/trainer.h"

namespace wisp {

Result<TrainingMemory> PlanTrainingMemory(const Architecture& architecture, size_t num_records, const TrainingOptions& given) {
  if ((given.method != Method::kOrdinary && given.method != Method::kPhantom) || given.num_negatives > 0) {
    return Unsupported("memory is planned for ordinary and phantom training with the full softmax; of other methods the trainer says it");
  }
  WISP_RETURN_IF_ERROR(Validate(architecture));
  WISP_RETURN_IF_ERROR(Validate(given.optimizer));
  TrainingOptions options = given;
  if (options.num_threads == 0) options.num_threads = DefaultThreads();
  const Recommender graph(architecture, kernels::BestOps());
  const size_t size = FlatSize(graph.parameters()), threads = options.num_threads;
  const ReleaseBytes release = PlanFlatRelease(graph, options);
  return TrainingMemory{.weights = (options.ema_decay > 0 ? 2 : 1) * AlignedArray<float>::AllocatedBytes(size),
                        .packed_weights = AlignedArray<float>::AllocatedBytes(graph.pack_plan().size()),
                        .optimizer_state = Optimizer::PlanBytes(options.optimizer, size),
                        .gradient_sums = release.sums,
                        .activations = threads * graph.training_bytes(),
                        .record_gradients = release.records,
                        .lists = num_records * ((2 + threads) * sizeof(uint32_t) + sizeof(const Record*))};
}

}  // namespace wisp
