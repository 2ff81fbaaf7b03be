// Texts that grow together on one session's weights. One step of all texts reads the weights once.
//
//   WISP_ASSIGN_OR_RETURN(const auto batch, TextBatch::Create(*session, {.places = 16, .positions = 200}));
//   const TextBatch::Text texts[] = {{.place = 0, .tokens = a}, {.place = 1, .tokens = b}};
//   WISP_RETURN_IF_ERROR(batch->Score(texts, scores));      // scores [2, num_items]
//
// Each place caches keys and values of its last text. A text that begins like it costs only its new tokens. A text's
// scores have the same bits whatever the other places hold. generate_batch.h samples tokens.
#ifndef WISP_RUNTIME_TEXT_TEXT_BATCH_H_
#define WISP_RUNTIME_TEXT_TEXT_BATCH_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/inference/session.h"

namespace wisp {

struct TextBatchOptions {
  size_t places = 16;      // texts at once: 1 to TextBatch::kMostPlaces
  size_t positions = 0;    // tokens of the longest text, at most the model's; 0: the model's
  size_t num_threads = 1;  // see SessionOptions
  Executor executor = {};
};

// Not thread-safe. The session must outlive it; both may be used in turn.
class TextBatch {
 public:
  static constexpr size_t kMostPlaces = 256;

  // kInvalidArgument: an option is out of range; the session is on a device; or the model's positions see later ones.
  // kUnsupported: several threads with XNNPACK.
  static Result<std::unique_ptr<TextBatch>> Create(const Session& session, const TextBatchOptions& options);

  struct Text {
    size_t place;
    std::span<const int32_t> tokens;
  };
  // Scores all tokens after each text [texts, num_items]. kInvalidArgument: a place does not exist or is named twice;
  // the model lacks a token; a text has no tokens or too many.
  Status Score(std::span<const Text> texts, std::span<float> scores);

  size_t places() const { return places_.size(); }
  size_t bytes() const;  // memory held beside the session, for the places used so far

 private:
  struct Place {
    KeyValueCache cache;
    std::vector<int32_t> encoded;  // tokens whose keys and values the cache holds
  };
  TextBatch(const Session& session, const GraphOptions& graph, const TextBatchOptions& options);
  Status Check(std::span<const Text> texts, std::span<const float> scores) const;
  // The number of the text's tokens that the place has cached. The newest token is always computed.
  size_t Kept(const Text& text);
  // True if the text's new tokens fill a pass of their own.
  bool Alone(const Text& text);
  void ScoreAlone(const Text& text, float* scores);
  void ScoreSome(std::span<const Text> texts, float* scores);

  const Session& session_;
  size_t positions_;
  bool in_turn_;  // the model's texts pass one after another
  std::unique_ptr<const ModelView> graph_;
  Buffers buffers_;
  std::unique_ptr<Helpers> helpers_;  // null with one thread
  std::vector<Place> places_;
  std::vector<Record> records_;  // records of one pass
  std::vector<GrowingText> grown_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TEXT_TEXT_BATCH_H_
