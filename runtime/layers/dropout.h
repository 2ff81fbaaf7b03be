// Dropout. Keep masks come from a counter-based generator (the op draw_keep). A record's masks depend only on its seed
// and the site, never on which worker ran it or in what order. The generator is not secure: privacy does not depend on
// it.
#ifndef WISP_RUNTIME_LAYERS_DROPOUT_H_
#define WISP_RUNTIME_LAYERS_DROPOUT_H_

#include <string>

#include "runtime/layers/context.h"

namespace wisp {

// 1 / (the probability that a number is kept). That probability is 1 - rate, rounded to 1/65536.
float KeepScale(float rate);

class Dropout {
 public:
  // Reserves a mask for `size` elements. `site` must differ between the dropouts of a graph.
  Dropout(uint64_t site, size_t size, BufferPlan& plan) : site_(site), keep_(plan.ReserveBackward<uint8_t>(size)) {}

  // Drops in place, x [rows, width]. The identity in inference or at rate 0.
  void Forward(const RecordContext& context, float rate, float* x, size_t width) const;

  // Computes dx = dy * mask * scale where Forward dropped. Returns dy itself where Forward was the identity.
  const float* Backward(const RecordContext& context, float rate, const float* dy, float* dx, size_t width) const;

  // Samples record b's mask of n elements, stored from element `first` of the mask memory on, for a kernel that applies
  // it. Returns null where dropout is the identity.
  const uint8_t* Draw(const RecordContext& context, float rate, size_t b, size_t first, size_t n) const;
  // Samples the masks of all records, `width` numbers for each row.
  const uint8_t* DrawAll(const RecordContext& context, float rate, size_t width) const;
  // Returns a mask that Draw has sampled.
  const uint8_t* Mask(const RecordContext& context, float rate, size_t first) const;

 private:
  uint64_t site_;
  Slot<uint8_t> keep_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_DROPOUT_H_
