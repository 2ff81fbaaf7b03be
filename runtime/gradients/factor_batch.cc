#include "runtime/gradients/factor_batch.h"

namespace wisp {

void RecordSlice::Outer(const OuterFactor& factor) {
  OuterFactor own = factor;
  const size_t begin = factor.records.begin(b_);
  own.dy_RN += begin * factor.lddy;
  own.x_RK += begin * factor.ldx;
  own.records = {.rows = factor.records.size(b_)};
  sink_.Outer(own);
}

void RecordSlice::Rows(const RowsFactor& factor) {
  RowsFactor own = factor;
  const size_t begin = factor.records.begin(b_);
  own.ids_R += begin;
  own.dx_RD += begin * factor.lddx;
  own.records = {.rows = factor.records.size(b_)};
  sink_.Rows(own);
}

void RecordSlice::Vector(const VectorFactor& factor) {
  VectorFactor own = factor;
  own.g_BN += b_ * factor.n;
  sink_.Vector(own);
}

void FactorBatch::Emit(size_t b, FactorSink& sink) const {
  RecordSlice slice(b, sink);
  for (const Factor& factor : factors_) {
    if (const auto* outer = std::get_if<OuterFactor>(&factor)) {
      slice.Outer(*outer);
    } else if (const auto* rows = std::get_if<RowsFactor>(&factor)) {
      slice.Rows(*rows);
    } else {
      slice.Vector(std::get<VectorFactor>(factor));
    }
  }
}

}  // namespace wisp
