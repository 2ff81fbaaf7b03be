#include "runtime/inference/text_states.h"

#include <algorithm>

namespace wisp {

TextStates::TextStates(const Session& session, size_t count)
    : session_(&session), buffers_(session.graph().AllocateForInference()) {
  for (size_t i = 0; i < count; ++i) states_.push_back({session.graph().AllocateCache(KeptBlocks::kAll), {}});
}

Status TextStates::Score(size_t which, std::span<const int32_t> tokens, std::span<float> scores) {
  const Architecture& a = session_->architecture();
  if (tokens.empty() || tokens.size() > a.max_length)
    return InvalidArgument("a text of ", tokens.size(), " tokens, allowed are 1 to ", a.max_length);
  if (scores.size() != a.num_items)
    return InvalidArgument("room for ", scores.size(), " scores, the model has ", a.num_items, " items");
  WISP_RETURN_IF_ERROR(session_->CheckItems("a text", tokens));
  State& state = states_[which];
  size_t kept = 0;
  if (session_->graph().KeepsKeys(state.encoded.size(), tokens.size())) {
    // The newest token is always computed: its hidden state is what is asked for.
    const auto differs = std::mismatch(state.encoded.begin(), state.encoded.end(), tokens.begin(), tokens.end() - 1);
    kept = static_cast<size_t>(differs.first - state.encoded.begin());
  }
  RecordContext context{.weights = session_->weights(), .buffers = buffers_, .cache = &state.cache, .past = kept};
  session_->graph().Score(context, tokens, scores.data());
  state.encoded.assign(tokens.begin(), tokens.end());
  return OkStatus();
}

size_t TextStates::bytes() const {
  const Recommender& graph = session_->graph();
  return graph.inference_bytes() + states_.size() * graph.cache_bytes(KeptBlocks::kAll);
}

}  // namespace wisp
