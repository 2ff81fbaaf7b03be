#include "runtime/methods/phantom/phantom_method.h"

#include "runtime/methods/phantom/formed_gradients.h"
#include "runtime/methods/phantom/integer_gradients.h"
#include "runtime/methods/phantom/phantom_gradients.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {
namespace {

// The Gram form keeps factors of all blocks.
PhantomOptions Phantom(const TrainingOptions& o) {
  return {.form = o.recompute_blocks ? NormForm::kFormed : o.privacy.norm_form};
}

PhantomGradients::Setup MakeSetup(const Graph& graph, const TrainedSet& trained, size_t worker) {
  return {.parameters = graph.parameters(),
          .trained = trained,
          .head_parameter = graph.head_parameter(),
          .max_rows = graph.max_record_rows(),
          .worker = worker,
          .norms_head_rows = graph.architecture().head.temperature > 0};
}

IntegerGradients::Setup MakeIntegerSetup(const Graph& graph, const TrainedSet& trained) {
  return {.parameters = graph.parameters(),
          .trained = trained,
          .max_records = graph.max_records(),
          .max_rows = graph.max_rows()};
}

class PhantomMethod final : public FlatMethod {
 public:
  explicit PhantomMethod(const MethodSetup& s) : FlatMethod(s) {
    for (size_t w = 0; w < NumCallers(s.options); ++w)
      Own(MakePhantomGradients(s.graph, s.trained, s.options, sum_.clip(), w, sum_.integers()));
  }
};

size_t PlanGradients(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o) {
  if (!o.device.memory.is_host()) return FormedGradients::PlanBytes(MakeBatchSetup(graph, trained));
  if (MultipliesIntegers(graph.architecture(), o)) return IntegerGradients::PlanBytes(MakeIntegerSetup(graph, trained));
  return PhantomGradients::PlanBytes(graph.ops(), MakeSetup(graph, trained, 0), Phantom(o));
}

}  // namespace

OwnedGradients MakePhantomGradients(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options,
                                    const ClipRule& clip, size_t worker, GridGradientSum& sum) {
  const kernels::Device& device = graph.device();
  if (!device.memory.is_host()) {
    return OwnedGradients(std::make_unique<FormedGradients>(device, MakeBatchSetup(graph, trained), clip, sum));
  }
  if (MultipliesIntegers(graph.architecture(), options)) {
    return OwnedGradients(std::make_unique<IntegerGradients>(device, MakeIntegerSetup(graph, trained), clip, sum));
  }
  PhantomOptions phantom = Phantom(options);
  phantom.clip = clip;
  return OwnedGradients(std::make_unique<PhantomGradients>(device, MakeSetup(graph, trained, worker), phantom, sum));
}

std::unique_ptr<GradientMethod> MakePhantomMethod(const MethodSetup& setup) {
  return std::make_unique<PhantomMethod>(setup);
}

MethodBytes PlanPhantomMethod(const Graph& graph, const TrainedSet& trained, size_t /*num_records*/,
                              const TrainingOptions& o) {
  return {.sums = StepSum::PlanBytes(o, trained.size()), .records = NumCallers(o) * PlanGradients(graph, trained, o)};
}

}  // namespace wisp
