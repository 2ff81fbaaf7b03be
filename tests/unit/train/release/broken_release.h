// DP-SGD written naively, and broken on purpose, for audits to tell apart. For tests only: the product does not use it.
#ifndef WISP_TESTS_UNIT_TRAIN_RELEASE_BROKEN_RELEASE_H_
#define WISP_TESTS_UNIT_TRAIN_RELEASE_BROKEN_RELEASE_H_

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "runtime/train/audit/audit_training.h"

namespace wisp::test {

enum class Breach {
  kNone,
  kNoNoise,
  kHalfNoise,
  kNoClipping,
  kNoCrossTerm,        // the norm of a tied table as the sum of the norms of its two uses
  kTableWithoutNoise,  // DP-FP as printed: noise above the embedding only
  kSkippedEmpty,       // nothing is released for an empty batch
};

class BrokenRelease final : public GradientMethod {
 public:
  BrokenRelease(const Graph& graph, const TrainingOptions& o, Breach breach)
      : graph_(&graph), options_(o), breach_(breach), sum_(FlatSize(graph.parameters()), 0.0), gradients_(this) {}

  Gradients GetGradients(size_t) override { return gradients_; }
  void Begin(uint64_t, std::span<const float>, const StepBatch& batch, privacy::RandomStream&) override {
    empty_ = batch.records.empty();
    sum_.assign(sum_.size(), 0.0);
  }
  void Update(size_t, privacy::RandomStream& noise, double divisor, const Apply& apply) override {
    if (breach_ == Breach::kSkippedEmpty && empty_) return;
    double sigma = options_.privacy.noise_multiplier * options_.privacy.clipping_norm;
    if (breach_ == Breach::kHalfNoise) sigma /= 2;
    if (breach_ == Breach::kNoNoise) sigma = 0;
    for (size_t k = 0; k < graph_->parameters().size(); ++k) {
      const ParameterSpec& p = graph_->parameters()[k];
      if (!p.trained) continue;
      const bool silent = breach_ == Breach::kTableWithoutNoise && p.shape == ParameterShape::kTable;
      std::vector<float> g(p.size());
      for (size_t i = 0; i < g.size(); ++i)
        g[i] = static_cast<float>((sum_[p.offset + i] + (silent ? 0 : sigma * noise.Normal())) / divisor);
      apply({k, 0, g.data(), g.size()});
    }
  }
  size_t planned_bytes() const override { return 0; }

  // Returns the last record's true norm over the norm without the cross term.
  double last_cross_ratio() const { return gradients_.ratio; }

 private:
  struct Naive final : RecordGradients {
    explicit Naive(BrokenRelease* r) : release(r), outer(r->sum_.size()), rows(r->sum_.size()) {}
    size_t scratch_bytes() const override { return 0; }
    void BeginRecord(std::span<const int32_t>) override {
      outer.assign(outer.size(), 0.0);
      rows.assign(rows.size(), 0.0);
    }
    const ParameterSpec& At(size_t parameter) const { return release->graph_->parameters()[parameter]; }
    bool Wants(size_t parameter) const override { return At(parameter).trained; }
    void Outer(const OuterFactor& f) override {
      for (size_t r = 0; r < f.records.rows; ++r) {
        for (size_t i = 0; i < f.n * f.k; ++i) {
          outer[At(f.parameter).offset + f.first_row * f.k + i] +=
              static_cast<double>(f.dy_RN[r * f.lddy + i / f.k]) * static_cast<double>(f.x_RK[r * f.ldx + i % f.k]);
        }
      }
    }
    void Rows(const RowsFactor& f) override {
      for (size_t r = 0; r < f.records.rows; ++r) {
        if (f.ids_R[r] < 0) continue;
        for (size_t i = 0; i < f.d; ++i) {
          rows[At(f.parameter).offset + static_cast<size_t>(f.ids_R[r]) * f.d + i] +=
              static_cast<double>(f.scale) * static_cast<double>(f.dx_RD[r * f.lddx + i]);
        }
      }
    }
    void Vector(const VectorFactor& f) override {
      for (size_t i = 0; i < f.n; ++i) outer[At(f.parameter).offset + f.first + i] += static_cast<double>(f.g_BN[i]);
    }
    RecordOutcome FinishRecord(HeadReplay&) override {
      double squares = 0, apart = 0;
      for (size_t p = 0; p < release->graph_->parameters().size(); ++p) {
        for (size_t i = At(p).offset; At(p).trained && i < At(p).offset + At(p).size(); ++i) {
          squares += (outer[i] + rows[i]) * (outer[i] + rows[i]);
          apart += outer[i] * outer[i] + rows[i] * rows[i];
        }
      }
      ratio = std::sqrt(squares / apart);
      const PrivateTraining& o = release->options_.privacy;
      const ClipRule clip =
          o.clipping == ClipKind::kFlat ? ClipRule::Flat(o.clipping_norm) : ClipRule::Automatic(o.clipping_norm);
      const double norm = std::sqrt(release->breach_ == Breach::kNoCrossTerm ? apart : squares);
      const double factor = release->breach_ == Breach::kNoClipping ? 1 : clip.Factor(norm);
      for (size_t i = 0; i < outer.size(); ++i) release->sum_[i] += factor * (outer[i] + rows[i]);
      return {.norm = norm, .factor = factor};
    }
    BrokenRelease* release;
    std::vector<double> outer, rows;
    double ratio = 1;
  };

  const Graph* graph_;
  TrainingOptions options_;
  Breach breach_;
  std::vector<double> sum_;
  bool empty_ = true;
  Naive gradients_;
};

inline MethodFactory MakeBroken(Breach breach) {
  return [breach](const MethodSetup& setup) {
    return std::make_unique<BrokenRelease>(setup.graph, setup.options, breach);
  };
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_TRAIN_RELEASE_BROKEN_RELEASE_H_
