#include "runtime/layers/dropout.h"

#include <cmath>

namespace wisp {
namespace {

uint32_t DropThreshold(float rate) { return static_cast<uint32_t>(std::lround(rate * 65536.0f)); }

}  // namespace

float KeepScale(float rate) { return 65536.0f / (65536.0f - static_cast<float>(DropThreshold(rate))); }

void Dropout::Forward(const RecordContext& context, float rate, float* x, size_t width) const {
  const uint8_t* keep = DrawAll(context, rate, width);
  if (keep == nullptr) return;
  context.ops().apply_keep({.x = x, .keep = keep, .y = x, .n = context.rows() * width, .scale = KeepScale(rate)});
}

const uint8_t* Dropout::DrawAll(const RecordContext& context, float rate, size_t width) const {
  if (context.dropout == nullptr || rate <= 0) return nullptr;
  uint8_t* keep = context.backward(keep_);
  context.ops().draw_keep({.keep_RW = keep,
                           .records = context.records,
                           .options_B = context.options_B,
                           .width = width,
                           .site = site_,
                           .threshold = DropThreshold(rate)});
  return keep;
}

const float* Dropout::Backward(const RecordContext& context, float rate, const float* dy, float* dx,
                               size_t width) const {
  const uint8_t* keep = Mask(context, rate, 0);
  if (keep == nullptr) return dy;
  context.ops().apply_keep({.x = dy, .keep = keep, .y = dx, .n = context.rows() * width, .scale = KeepScale(rate)});
  return dx;
}

const uint8_t* Dropout::Draw(const RecordContext& context, float rate, size_t b, size_t first, size_t n) const {
  if (context.dropout == nullptr || rate <= 0) return nullptr;
  uint8_t* keep = context.backward(keep_) + first;
  context.ops().draw_keep({.keep_RW = keep,
                           .records = {.rows = n},
                           .options_B = context.options_B == nullptr ? nullptr : context.options_B + b,
                           .width = 1,
                           .site = site_,
                           .threshold = DropThreshold(rate)});
  return keep;
}

const uint8_t* Dropout::Mask(const RecordContext& context, float rate, size_t first) const {
  return context.dropout == nullptr || rate <= 0 ? nullptr : context.backward(keep_) + first;
}

}  // namespace wisp
