// Several texts that grow at once on one session's weights, each with keys and values of its own.
//
//   TextStates states(*session, 9);
//   WISP_RETURN_IF_ERROR(states.Score(3, tokens, scores));   // costs what is new of the fourth text
//
// One set of buffers serves all: texts take turns. What it is not: a batch, which passes several through a product at
// once.
#ifndef WISP_RUNTIME_INFERENCE_TEXT_STATES_H_
#define WISP_RUNTIME_INFERENCE_TEXT_STATES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/inference/session.h"

namespace wisp {

// Not thread-safe. The session must outlive it, on the host, and may be used beside it.
class TextStates {
 public:
  TextStates(const Session& session, size_t count);

  // Scores of all tokens [num_items] after `tokens`, 1 to max_length of them. `which`: below count. kInvalidArgument
  // for a token that the model does not have, for none and for too many.
  Status Score(size_t which, std::span<const int32_t> tokens, std::span<float> scores);

  size_t bytes() const;

 private:
  struct State {
    KeyValueCache cache;
    std::vector<int32_t> encoded;  // the tokens whose keys and values are in it
  };
  const Session* session_;
  Buffers buffers_;
  std::vector<State> states_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_TEXT_STATES_H_
