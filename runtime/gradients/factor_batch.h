// Keeps the factors of several records that passed together, and hands them on record by record. So a gradient method
// sees one record after another, whatever passed together.
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

// Passes record b's part of each factor on to another sink.
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

// Keeps factors until they are emitted. The data that they point to must stay valid until then.
class FactorBatch final : public FactorSink {
 public:
  // Reserves space for `capacity` factors. It grows if there are more.
  explicit FactorBatch(size_t capacity) { factors_.reserve(capacity); }
  static size_t PlanBytes(size_t capacity) { return capacity * sizeof(Factor); }
  size_t size_bytes() const { return factors_.capacity() * sizeof(Factor); }

  // Drops all factors. `asked` decides from now on which factors are wanted.
  void Begin(const FactorSink& asked) {
    factors_.clear();
    asked_ = &asked;
  }
  bool Wants(size_t parameter) const override { return asked_->Wants(parameter); }
  void Outer(const OuterFactor& factor) override { factors_.emplace_back(factor); }
  void Rows(const RowsFactor& factor) override { factors_.emplace_back(factor); }
  void Vector(const VectorFactor& factor) override { factors_.emplace_back(factor); }

  // Emits the factors of record b, in the order in which they came.
  void Emit(size_t b, FactorSink& sink) const;

 private:
  using Factor = std::variant<OuterFactor, RowsFactor, VectorFactor>;
  std::vector<Factor> factors_;
  const FactorSink* asked_ = nullptr;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_FACTOR_BATCH_H_
