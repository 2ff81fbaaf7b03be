// Dropout: keep masks drawn from a counter, so that a record's masks depend on its seed and the site alone, never on
// which worker ran it or in what order (the op draw_keep). Not a source of privacy; the generator is not secure and
// need not be.
#ifndef WISP_RUNTIME_LAYERS_DROPOUT_H_
#define WISP_RUNTIME_LAYERS_DROPOUT_H_

#include <string>

#include "runtime/layers/context.h"

namespace wisp {

// 1 / (the probability that a number is kept): 1 - rate, to 1/65536.
float KeepScale(float rate);

class Dropout {
 public:
  // Reserves a mask for `size` elements. `site` must differ between the dropouts of a graph.
  Dropout(uint64_t site, size_t size, BufferPlan& plan) : site_(site), keep_(plan.ReserveBackward<uint8_t>(size)) {}

  // In place, of x [rows, width]. The identity in inference or at rate 0.
  void Forward(const RecordContext& context, float rate, float* x, size_t width) const;

  // dx <- dy * mask * scale where Forward dropped; returns dy itself where Forward was the identity.
  const float* Backward(const RecordContext& context, float rate, const float* dy, float* dx, size_t width) const;

  // Draws record b's mask of n elements, from element `first` of the room on, for a kernel that applies it itself; null
  // where dropout is the identity.
  const uint8_t* Draw(const RecordContext& context, float rate, size_t b, size_t first, size_t n) const;
  // The same of all records, `width` numbers for each row.
  const uint8_t* DrawAll(const RecordContext& context, float rate, size_t width) const;
  // A mask that Draw drew.
  const uint8_t* Mask(const RecordContext& context, float rate, size_t first) const;

 private:
  uint64_t site_;
  Slot<uint8_t> keep_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_DROPOUT_H_
