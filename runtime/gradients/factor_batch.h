// The factors of several records that passed at once, handed on record by record: so a gradient method sees one record
// after the other, whatever passed together.
//
//   FactorBatch factors(capacity);
//   factors.Begin(gradients);
//   graph.Backward(context, batch, factors);
//   for (size_t b = 0; b < batch.size(); ++b) { ... factors.Emit(b, gradients) ... }
#ifndef WISP_RUNTIME_GRADIENTS_FACTOR_BATCH_H_
#define WISP_RUNTIME_GRADIENTS_FACTOR_BATCH_H_

#include <cstddef>
#include <variant>
#include <vector>

#include "runtime/layers/factors.h"

namespace wisp {

// Passes on record b's part of each factor.
class RecordSlice final : public FactorSink {
 public:
  RecordSlice(size_t b, FactorSink& sink) : b_(b), sink_(sink) {}
  bool Wants(size_t parameter) const override { return sink_.Wants(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;

 private:
  size_t b_;
  FactorSink& sink_;
};

// Keeps factors until they are emitted. What they point at must stay until then.
class FactorBatch final : public FactorSink {
 public:
  // Room for so many factors; more make more room.
  explicit FactorBatch(size_t capacity) { factors_.reserve(capacity); }
  static size_t PlanBytes(size_t capacity) { return capacity * sizeof(Factor); }
  size_t size_bytes() const { return factors_.capacity() * sizeof(Factor); }

  // Nothing is kept; `asked` says what is wanted.
  void Begin(const FactorSink& asked) {
    factors_.clear();
    asked_ = &asked;
  }
  bool Wants(size_t parameter) const override { return asked_->Wants(parameter); }
  void Outer(const OuterFactor& factor) override { factors_.emplace_back(factor); }
  void Rows(const RowsFactor& factor) override { factors_.emplace_back(factor); }
  void Vector(const VectorFactor& factor) override { factors_.emplace_back(factor); }

  // Record b's, in the order in which they came.
  void Emit(size_t b, FactorSink& sink) const;

 private:
  using Factor = std::variant<OuterFactor, RowsFactor, VectorFactor>;
  std::vector<Factor> factors_;
  const FactorSink* asked_ = nullptr;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_FACTOR_BATCH_H_
