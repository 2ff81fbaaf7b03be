// What every layer needs while records pass through it: weights, buffers, where each record lies, dropout.
//
// In training several records may pass at once, one behind the other (Segments): a product then has as many rows as
// fill its tiles, however short the records are. In inference it is one; or, where texts grow beside each other, what
// is new of each (GrowingText).
//
// Buffers come in two halves: `forward` holds activations (all that inference needs), `backward` holds gradients. Both
// are in the device's memory, which ops alone touch; `host` has the few numbers that the host writes.
// A layer reserves its slots in a BufferPlan when the graph is built; an inference session never allocates `backward`.
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

// What a graph is for. One for inference has less room: nothing is kept for a Backward, which it must not be asked for.
enum class GraphUse { kTraining, kInference };

// Rows [first, first + count) of an activation.
struct RowRange {
  size_t first, count;
};

struct BufferPlan {
  // What passes through at once: `records` records, at most `record_rows` rows each and `rows` together; 0: as many as
  // that gives.
  BufferPlan(GraphUse graph_use, size_t record_rows, size_t records, size_t rows, bool in_host_memory)
      : use(graph_use),
        max_record_rows(record_rows),
        max_records(records),
        is_host(in_host_memory),
        max_rows_(rows == 0 ? record_rows * records : std::max(rows, record_rows)) {}

  const GraphUse use;
  const size_t max_record_rows, max_records;
  const bool is_host;  // whether the host may touch forward and backward
  size_t max_rows() const { return max_rows_; }

  ArenaPlan forward, backward;
  ArenaPlan host;      // in the host's memory, on every device: where records begin, what is to be copied in
  KeyValuePlan cache;  // of a graph for inference

  // Of a graph for training: what a block computes is not kept, but computed again before its Backward.
  bool recomputes = false;

  // Room of `forward` that a block needs while it runs, and in training until its Backward: there each has its own. In
  // inference, and where blocks are computed again, they take turns in room that is as large as the largest of them
  // asks for; where they are computed again, in room of `backward` too. Who plans blocks plans them twice: once to see
  // how large that is, then, after ReserveTurns, for good.
  void ReserveTurns(const BufferPlan& sizes) {
    forward_turns_.first = forward.Reserve<std::byte>(sizes.forward_turns_.largest).offset_bytes;
    backward_turns_.first = backward.Reserve<std::byte>(sizes.backward_turns_.largest).offset_bytes;
  }
  // Around what the layers of each block reserve.
  void BeginBlock() {
    forward_turns_.turn = backward_turns_.turn = ArenaPlan();
    in_block_ = true;
  }
  void EndBlock() { in_block_ = false; }
  template <class T>
  Slot<T> ReserveInTurn(size_t count) {
    return use == GraphUse::kTraining && !recomputes ? forward.Reserve<T>(count) : forward_turns_.Reserve<T>(count);
  }
  // Of `backward`, for layers that stand in blocks and elsewhere.
  template <class T>
  Slot<T> ReserveBackward(size_t count) {
    return recomputes && in_block_ ? backward_turns_.Reserve<T>(count) : backward.Reserve<T>(count);
  }

 private:
  struct Turns {
    size_t first = 0, largest = 0;  // where they are in the arena, bytes
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

// Probabilities of dropping; all zero (or `training` off) makes every dropout the identity at no cost.
struct DropoutRates {
  float embedding = 0, attention = 0, residual = 0;
};

// The negatives of a step's sampled softmax, the same for all its records, chosen independently of the data.
struct Negatives {
  std::span<const int32_t> items;  // K, distinct, ascending; in the host's memory
  const int32_t* item_K;           // the same in the graph's
  const float* rows_KD;            // their rows of the output table
  const float* packed;             // the same, packed for linear_forward
  const float* bias_K;             // output bias + log of how many items each stands for
};

// What is done to a classifier's representations before its head reads them.
struct HeadInput {
  double norm_bound = 0;            // C; 0: not clipped
  const float* noise_BD = nullptr;  // added after clipping; null: none. Must stay until the records are finished
};

using kernels::RecordOptions;

struct Helpers;

// Inference on the host: a text of which only what is new passes, beside others. Its keys and values are its own.
struct GrowingText {
  const KeyValueCache* cache;  // of all blocks, with room for what is new
  size_t past;                 // positions before these that are still in it
};

struct RecordContext {
  const Weights& weights;
  const Buffers& buffers;
  Segments records;                         // positions that pass through, padding included
  size_t first_valid = 0;                   // of one record: rows before this one are padding
  const uint32_t* first_valid_B = nullptr;  // the same of several
  // records.begin_B where ops read it as an array; of several records.
  const uint32_t* begin_on_device_B = nullptr;
  const int32_t* type_R = nullptr;       // of each token (TokenTypes), where ops read it; null: they have none
  const KeyValueCache* cache = nullptr;  // of a graph for inference; required there
  // Inference only. Positions before these whose keys and values are still in the cache: 0 to max_length - rows.
  size_t past = 0;
  const GrowingText* text_B =
      nullptr;  // of several records, where they are texts that grow: in place of cache and past
  // Inference only, where the rows are a part of those that pass: how many are behind these, in other parts (parts.h).
  size_t after = 0;
  // Inference only. The last so many rows are wanted from the next block; earlier ones give it keys and values. 0: all.
  size_t wanted = 0;
  const DropoutRates* dropout = nullptr;     // null: inference
  const RecordOptions* options_B = nullptr;  // null: as RecordOptions has them
  const Negatives* negatives = nullptr;      // null: softmax over all items
  HeadInput head_input;                      // of a head of classes
  // Of a classifier on the host: what was pooled of each record that passes [B, D] (Graph::Pool), computed before. The
  // records then have one row each, and nothing below the pooler runs. Null: they pass the stack.
  const float* pooled_BD = nullptr;
  const Helpers* helpers = nullptr;  // inference: threads to share the rows with (parts.h); null: none

  size_t rows() const { return records.rows; }
  size_t first_valid_of(size_t b) const { return first_valid_B == nullptr ? first_valid : first_valid_B[b]; }

  size_t past_of(size_t b) const { return text_B == nullptr ? past : text_B[b].past; }

  size_t wanted_rows() const { return wanted == 0 ? rows() : wanted; }
  // The same with the wanted rows alone.
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
