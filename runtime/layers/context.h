// The state that every layer needs while records pass through it: weights, buffers, record boundaries, dropout.
//
// In training several records may pass at once, one after another (Segments). A product then has enough rows to fill
// its tiles, however short the records are. In inference one record passes, or the new tokens of several growing texts
// (GrowingText).
//
// There are two sets of buffers: `forward` holds activations, which is all that inference needs; `backward` holds
// gradients. Both are in the device's memory, which only ops access. `host` holds the few numbers that the host writes.
// A layer reserves its slots in a BufferPlan when the graph is built. An inference session never allocates `backward`.
#ifndef WISP_RUNTIME_LAYERS_CONTEXT_H_
#define WISP_RUNTIME_LAYERS_CONTEXT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/layers/key_value_cache.h"
#include "runtime/layers/segments.h"
#include "runtime/layers/weights.h"

namespace wisp {

// The purpose of a graph. One for inference takes less memory: it keeps nothing for Backward, which must not be called.
enum class GraphUse { kTraining, kInference };

// Rows [first, first + count) of an activation.
struct RowRange {
  size_t first, count;
};

struct BufferPlan {
  // At most `records` records pass at once, with at most `record_rows` rows each and `rows` rows together. `rows` 0: no
  // lower limit than the other two give.
  BufferPlan(GraphUse graph_use, size_t record_rows, size_t records, size_t rows, bool in_host_memory)
      : use(graph_use),
        max_record_rows(record_rows),
        max_records(records),
        is_host(in_host_memory),
        max_rows_(rows == 0 ? record_rows * records : std::max(rows, record_rows)) {}

  const GraphUse use;
  const size_t max_record_rows, max_records;
  const bool is_host;  // true if the host may access forward and backward
  size_t max_rows() const { return max_rows_; }

  ArenaPlan forward, backward;
  ArenaPlan host;      // host memory on every device: record boundaries, data to be copied in
  KeyValuePlan cache;  // used by a graph for inference

  // Training only: a block's activations are not kept but computed again before its Backward.
  bool recomputes = false;

  // Reserves `forward` memory that a block needs while it runs and, in training, until its Backward. In training each
  // block has memory of its own. In inference, and where blocks are recomputed, blocks take turns in memory as large as
  // the largest block needs; recomputed blocks take turns in `backward` too. So blocks are planned twice: first to find
  // the largest, then, after ReserveTurns, for the final plan.
  void ReserveTurns(const BufferPlan& sizes) {
    forward_turns_.first = forward.Reserve<std::byte>(sizes.forward_turns_.largest).offset_bytes;
    backward_turns_.first = backward.Reserve<std::byte>(sizes.backward_turns_.largest).offset_bytes;
  }
  // Call these two around the reservations of each block.
  void BeginBlock() {
    forward_turns_.turn = backward_turns_.turn = ArenaPlan();
    in_block_ = true;
  }
  void EndBlock() { in_block_ = false; }
  template <class T>
  Slot<T> ReserveInTurn(size_t count) {
    return use == GraphUse::kTraining && !recomputes ? forward.Reserve<T>(count) : forward_turns_.Reserve<T>(count);
  }
  // Reserves `backward` memory, for layers inside blocks and elsewhere.
  template <class T>
  Slot<T> ReserveBackward(size_t count) {
    return recomputes && in_block_ ? backward_turns_.Reserve<T>(count) : backward.Reserve<T>(count);
  }

 private:
  struct Turns {
    size_t first = 0, largest = 0;  // the shared memory's offset in the arena, and the largest block's need, in bytes
    ArenaPlan turn;
    template <class T>
    Slot<T> Reserve(size_t count) {
      const Slot<T> slot{first + turn.Reserve<T>(count).offset_bytes};
      largest = std::max(largest, turn.size_bytes());
      return slot;
    }
  };

  size_t max_rows_;
  Turns forward_turns_, backward_turns_;
  bool in_block_ = false;
};

struct Buffers {
  Arena forward, backward, host;
};

// Dropout probabilities. If all are zero, or `training` is off, dropout is the identity and costs nothing.
struct DropoutRates {
  float embedding = 0, attention = 0, residual = 0;
};

// The negatives of a sampled softmax. One step uses them for all its records. They are chosen independently of the
// data.
struct Negatives {
  std::span<const int32_t> items;  // K, distinct, ascending; in host memory
  const int32_t* item_K;           // the same ids in the graph's memory
  const float* rows_KD;            // their rows of the output table, in the graph's memory
  const float* packed;             // rows_KD packed for linear_forward
  const float* bias_K;             // output bias + log of the number of items that each negative stands for
};

// The clipping and noise applied to a classifier's representations before its head reads them.
struct HeadInput {
  double norm_bound = 0;  // C; 0: no clipping
  // added after clipping; null: no noise. Must stay unchanged until the records are finished
  const float* noise_BD = nullptr;
};

using kernels::RecordOptions;

struct Helpers;

// Inference on the host: a text of which only the new tokens pass, together with those of other texts. It has its own
// cache.
struct GrowingText {
  const KeyValueCache* cache;  // the cache of all blocks, with space for the new tokens
  size_t past;                 // earlier positions whose keys and values are in the cache
};

struct RecordContext {
  const Weights& weights;
  const Buffers& buffers;
  Segments records;                         // positions of this pass, padding included
  size_t first_valid = 0;                   // for one record: rows before this one are padding
  const uint32_t* first_valid_B = nullptr;  // first_valid of each of several records
  // With several records: records.begin_B as an array that ops can read.
  const uint32_t* begin_on_device_B = nullptr;
  const int32_t* type_R = nullptr;       // type of each token (TokenTypes), in memory that ops read; null: no types
  const KeyValueCache* cache = nullptr;  // required by a graph for inference
  // Inference only. Earlier positions whose keys and values are in the cache: 0 to max_length - rows.
  size_t past = 0;
  const GrowingText* text_B = nullptr;  // for several growing texts: replaces cache and past
  // Inference only, when the rows are split into parts (parts.h): the number of later rows, which other parts hold.
  size_t after = 0;
  // Inference only. The next block must output only its last `wanted` rows; earlier rows give it keys and values. 0:
  // all rows.
  size_t wanted = 0;
  const DropoutRates* dropout = nullptr;     // null in inference
  const RecordOptions* options_B = nullptr;  // null: the defaults of RecordOptions
  const Negatives* negatives = nullptr;      // null: the softmax is over all items
  HeadInput head_input;                      // classifier only
  // For a classifier on the host: the pooled state of each record [B, D] (Graph::Pool), computed earlier. Each record
  // then has one row, and no layer below the pooler runs. Null: records pass through the stack.
  const float* pooled_BD = nullptr;
  // For a classifier that trains on the host: what enters block `first_block` [rows, D] (Graph::PassBelow), computed
  // earlier. Neither the embedding nor a block below runs. Null: the pass starts from the tokens.
  const float* below_RD = nullptr;
  uint32_t first_block = 0;
  const Helpers* helpers = nullptr;  // inference: threads that share the rows (parts.h); null: none

  size_t rows() const { return records.rows; }
  size_t first_valid_of(size_t b) const { return first_valid_B == nullptr ? first_valid : first_valid_B[b]; }

  size_t past_of(size_t b) const { return text_B == nullptr ? past : text_B[b].past; }

  size_t wanted_rows() const { return wanted == 0 ? rows() : wanted; }
  // The context reduced to its wanted rows.
  RecordContext Tail() const {
    RecordContext tail = *this;
    tail.past += rows() - wanted_rows();
    tail.records.rows = wanted_rows();
    tail.wanted = 0;
    return tail;
  }

  const kernels::OpTable& ops() const { return *weights.ops; }
  template <class T>
  T* forward(Slot<T> slot) const {
    return buffers.forward[slot];
  }
  template <class T>
  T* backward(Slot<T> slot) const {
    return buffers.backward[slot];
  }
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_CONTEXT_H_
