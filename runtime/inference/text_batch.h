// Texts that grow beside each other on one session's weights: a step of all of them reads the weights once.
//
//   WISP_ASSIGN_OR_RETURN(const auto batch, TextBatch::Create(*session, {.places = 16, .positions = 200}));
//   const TextBatch::Text texts[] = {{.place = 0, .tokens = a}, {.place = 1, .tokens = b}};
//   WISP_RETURN_IF_ERROR(batch->Score(texts, scores));      // scores [2, num_items]
//
// Each place keeps keys and values of its last text: one that begins alike costs what is new. A text's scores are the
// same, bit for bit, whatever stands in the other places. What it leaves to others: drawing tokens (generate_batch.h).
#ifndef WISP_RUNTIME_INFERENCE_TEXT_BATCH_H_
#define WISP_RUNTIME_INFERENCE_TEXT_BATCH_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/inference/session.h"

namespace wisp {

struct TextBatchOptions {
  size_t places = 16;      // texts at once: 1 to TextBatch::kMostPlaces
  size_t positions = 0;    // tokens of the longest text, at most as many as the model has; 0: as many
  size_t num_threads = 1;  // as of SessionOptions
  Executor executor = {};
};

// Not thread-safe. The session must outlive it, and may be used beside it.
class TextBatch {
 public:
  static constexpr size_t kMostPlaces = 256;

  // kInvalidArgument: options out of range; a session on a device, or of a model whose positions see those behind them.
  // kUnsupported: several threads with XNNPACK.
  static Result<std::unique_ptr<TextBatch>> Create(const Session& session, const TextBatchOptions& options);

  struct Text {
    size_t place;
    std::span<const int32_t> tokens;
  };
  // Scores of all tokens after each text [texts, num_items]. kInvalidArgument for a place that there is not or that is
  // named twice, for a token that the model does not have, for a text without tokens or with too many.
  Status Score(std::span<const Text> texts, std::span<float> scores);

  size_t places() const { return places_.size(); }
  size_t bytes() const;  // held beside the session, as far as places have been used

 private:
  struct Place {
    KeyValueCache cache;
    std::vector<int32_t> encoded;  // the tokens whose keys and values are in it
  };
  TextBatch(const Session& session, const GraphOptions& graph, const TextBatchOptions& options);
  Status Check(std::span<const Text> texts, std::span<const float> scores) const;
  // Tokens of the text that the place still knows; the newest one is always computed.
  size_t Kept(const Text& text);
  // Whether what is new of a text fills a pass of its own.
  bool Alone(const Text& text);
  void ScoreAlone(const Text& text, float* scores);
  void ScoreSome(std::span<const Text> texts, float* scores);

  const Session& session_;
  size_t positions_;
  bool in_turn_;  // the model's texts pass one after the other
  Recommender graph_;
  Buffers buffers_;
  std::unique_ptr<Helpers> helpers_;  // null with one thread
  std::vector<Place> places_;
  std::vector<Record> records_;  // of a pass
  std::vector<GrowingText> grown_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_TEXT_BATCH_H_
