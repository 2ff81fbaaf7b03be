// A model that recommends, as inference, evaluation and reports see it: it encodes a history and scores items.
// MakeModelView alone knows the kind of the model.
//
//   const std::unique_ptr<const ModelView> model = MakeModelView(architecture, ops, {.use = GraphUse::kInference});
//   Buffers buffers = model->AllocateForInference();
//   KeyValueCache cache = model->AllocateCache(CacheBlocks::kAll);
//   RecordContext context{.weights = weights, .buffers = buffers, .cache = &cache};
//   model->Score(context, history, scores);
//
// The keys, names and lists of its items are the file's (ModelFile).
#ifndef WISP_RUNTIME_LAYERS_MODEL_VIEW_H_
#define WISP_RUNTIME_LAYERS_MODEL_VIEW_H_

#include <memory>
#include <span>

#include "runtime/core/served_list.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/next_item_head.h"

namespace wisp {

class ModelView : public GraphBase {
 public:
  virtual ~ModelView() = default;
  ModelView(const ModelView&) = delete;
  ModelView& operator=(const ModelView&) = delete;

  size_t num_items() const { return architecture_.num_items; }

  // Scores every item [num_items] after `history` (1 to max_length items, oldest first). Uses forward buffers only.
  // Computes only the items after the first context.past ones, which must be fewer than all. Those must be the first
  // items of the history that passed last through this cache of all blocks, with the same weights, and KeepsKeys must
  // hold for the two lengths. The scores have the same bits as without a past.
  void Score(RecordContext& context, std::span<const int32_t> history, float* scores) const {
    head_.Score(context, Represent(context, history), scores);
  }

  // The two halves of Score: the hidden state [D] after the last item, valid until the buffers are used again; and the
  // scores of one tile of items for `rows` such states (NextItemHead::ScoreTile).
  const float* Represent(RecordContext& context, std::span<const int32_t> history) const;
  // The hidden states after every item of a history [items, D]. The whole history passes: context.past is 0.
  const float* RepresentEach(RecordContext& context, std::span<const int32_t> history) const;
  // See Graph. The records pass one after another.
  void Represent(RecordContext& context, Batch batch, float* h_BD) const;
  // Scores every item [num_items] for one hidden state h [D]. Both are in the device's memory.
  void ScoreState(const RecordContext& context, const float* h_D, float* scores) const {
    head_.Score(context, h_D, scores);
  }
  void ScoreTile(const Weights& weights, const float* h_RD, size_t rows, size_t tile, float* scores) const {
    head_.ScoreTile(weights, h_RD, rows, tile, scores);
  }

  // The two halves for several histories at once, in a device's memory: hidden states [histories, D] and scores [rows,
  // num_items]. Needs a graph for inference of that many records. A history has 1 to max_length items. Only growing
  // texts (context.text_B) read the cache. The bits equal those of one history at a time.
  const float* RepresentTogether(RecordContext& context, Batch histories) const;
  void ScoreRows(const Weights& weights, const float* h_RD, size_t rows, float* scores) const {
    head_.ScoreRows(weights, h_RD, rows, scores);
  }

  // Scores every item after each of several growing texts [texts, num_items]. A record holds the text's new tokens;
  // context.text_B has its past. On the host, with a graph for inference of that many records, without Re-Attention.
  // The bits equal those of Score.
  void ScoreTogether(RecordContext& context, Batch texts, float* scores) const {
    head_.ScoreTogether(context, RepresentTogether(context, texts), texts.size(), scores);
  }

  // Scores every item [num_items] for a cold start: a user without history, or with a history of untrained items only.
  // Serving and evaluation both use this function, so that the list that is evaluated is the list that is shown.
  //
  // A score is the item's popularity, as the model knows it. If the head has a bias made of counts
  // (lists.bias_is_popularity), this is the bias. Otherwise it is the mean of the scores after one item, over at most
  // 256 items, none of them in lists.untrained. Overwrites the cache. `scores` is host memory. Ops write to `room`
  // [num_items] in the device's memory; on the host it may be `scores`.
  void ScoreColdStart(RecordContext& context, const ModelLists& lists, float* room, float* scores) const;

  // True if keys and values of a history of `before` items are valid for one of `now` items with the same beginning:
  // items see only earlier items, and their positions have not changed.
  bool KeepsKeys(size_t before, size_t now) const;

 protected:
  // The architecture must have passed Validate.
  ModelView(const Architecture& architecture, const kernels::Device& device, const GraphOptions& options);

  // Each kind of model defines this. Runs the layers before the head on what Enter or EnterOne has placed. Returns the
  // head's input for the last `wanted` rows [wanted, D]; 0: for all rows.
  virtual const float* Encode(RecordContext& context, const int32_t* inputs, size_t wanted) const = 0;

  NextItemHead head_;

 private:
  // For several histories: their last hidden states, and the rows of these, on the host and on the device.
  Slot<float> together_;
  Slot<uint32_t> last_row_, last_row_on_device_;
};

// Makes the view for the architecture, which must have passed Validate and have a next-item head.
[[gnu::cold]] std::unique_ptr<const ModelView> MakeModelView(const Architecture& architecture,
                                                             const kernels::Device& device,
                                                             const GraphOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_MODEL_VIEW_H_
