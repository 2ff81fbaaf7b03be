#include "runtime/text/classifier_session.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "runtime/inference/not_finite.h"

namespace wisp {
namespace {

Status CheckTokens(const Architecture& a, std::span<const int32_t> tokens) {
  if (tokens.empty() || tokens.size() > a.max_length)
    return InvalidArgument("a text has ", tokens.size(), " tokens, allowed are 1 to ", a.max_length);
  for (const int32_t id : tokens) {
    if (static_cast<uint32_t>(id) >= a.num_items)
      return InvalidArgument("a text names token ", id, "; the model has tokens 0 to ", a.num_items - 1);
  }
  return OkStatus();
}

}  // namespace

ClassifierSession::ClassifierSession(const Architecture& architecture, std::span<const StoredTensor> tensors,
                                     const ClassifierOptions& o)
    : name_(o.name),
      graph_(architecture, o.device, MakeInferenceOptions(o.device, architecture, tensors)),
      buffers_(graph_.AllocateForInference()),
      kept_(o.num_threads > 1 ? CacheBlocks::kTwoInTurn : CacheBlocks::kInTurn),
      cache_(graph_.AllocateCache(kept_)),
      helpers_(graph_.AllocateHelpers(o.num_threads, o.executor)),
      tensors_(o.device.memory.is_host() ? nullptr : MakeDeviceWeights(graph_.parameters(), tensors, o.device.memory)),
      weights_(graph_, tensors_ == nullptr ? ParameterSource(tensors) : tensors_->source()),
      context_{.weights = weights_.view(),
               .buffers = buffers_,
               .cache = &cache_,
               .head_input = {.norm_bound = o.norm_bound},
               .helpers = helpers_.get()} {}

Result<std::unique_ptr<ClassifierSession>> ClassifierSession::Create(const Architecture& architecture,
                                                                     std::span<const StoredTensor> tensors,
                                                                     const ClassifierOptions& o) {
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  if (o.device.memory.is_host())
    return std::unique_ptr<ClassifierSession>(new ClassifierSession(architecture, tensors, o));
  WISP_RETURN_IF_ERROR(CheckDevice(o.device));
  ClassifierOptions alone = o;
  alone.num_threads = 1;
  const Classifier graph(architecture, o.device, MakeInferenceOptions(o.device, architecture, tensors));
  const size_t there = graph.inference_bytes() - graph.host_bytes() + graph.cache_bytes(CacheBlocks::kInTurn) +
                       PackedWeights::PlanBytes(graph) +
                       PlanDeviceWeights(graph.parameters(), tensors, o.device.memory).at_most;
  try {
    std::unique_ptr<ClassifierSession> session(new ClassifierSession(architecture, tensors, alone));
    WISP_RETURN_IF_ERROR(WaitForDevice(o.device));
    return session;
  } catch (const std::bad_alloc&) {
    return NoRoomOnDevice(o.device, "a classifier", there, graph.host_bytes());
  }
}

template <class Compute>
Status ClassifierSession::Run(std::span<const int32_t> tokens, std::span<float> to, size_t size, const char* what,
                              const Compute& compute) {
  WISP_RETURN_IF_ERROR(CheckTokens(architecture(), tokens));
  if (to.size() != size) return InvalidArgument("room for ", to.size(), " numbers, there are ", size);
  const kernels::Memory& memory = graph_.device().memory;
  {
    const Gathering gathering(memory);
    memory.copy_out(to.data(), compute(), to.size_bytes());
  }
  if (!memory.is_host()) WISP_RETURN_IF_ERROR(WaitForDevice(graph_.device()));
  const bool finite = std::all_of(to.begin(), to.end(), [](float x) { return std::isfinite(x); });
  return finite ? OkStatus() : NotFiniteOn(graph_.device(), name_, what);
}

Status ClassifierSession::Logits(std::span<const int32_t> tokens, std::span<float> z) {
  return Run(tokens, z, architecture().head.num_classes, "the score of a class",
             [&] { return graph_.Logits(context_, tokens); });
}

Status ClassifierSession::Represent(std::span<const int32_t> tokens, std::span<float> h_D) {
  return Run(tokens, h_D, architecture().width, "a number of a representation",
             [&] { return graph_.Represent(context_, tokens); });
}

Result<ClassifierSession::Plan> ClassifierSession::PlanBytes(const Architecture& architecture, size_t num_threads,
                                                             std::span<const StoredTensor> tensors) {
  WISP_RETURN_IF_ERROR(CheckThreads(num_threads));
  const Classifier graph(architecture, kernels::BestOps(),
                         MakeInferenceOptions(kernels::BestOps(), architecture, tensors));
  const size_t packed = PackedWeights::PlanBytes(graph);
  return Plan{.total = graph.inference_bytes() + graph.helper_bytes(num_threads) +
                       graph.cache_bytes(num_threads > 1 ? CacheBlocks::kTwoInTurn : CacheBlocks::kInTurn) + packed,
              .packed_weights = packed};
}

size_t ClassifierSession::bytes() const {
  return graph_.inference_bytes() + graph_.helper_bytes(num_threads()) + graph_.cache_bytes(kept_) +
         weights_.allocated_bytes() + (tensors_ == nullptr ? 0 : tensors_->allocated_bytes());
}

}  // namespace wisp
