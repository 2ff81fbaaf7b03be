// DP-FEST, DP-AdaFEST(+), and every method with a sampled softmax: the item table is summed, noised and stepped by rows.
//
// Which rows: all (ordinary and phantom training with a sampled softmax), a fixed set (FEST), what the contribution map
// selects each step (AdaFEST), that within a fixed set (AdaFEST+); a sampled softmax's negatives always belong to it, as
// they are drawn without the data. Rows outside get neither gradient nor noise nor a step of the optimizer: all of it
// depends on the released set alone. In an AdaFEST step nothing loops over the table.
#include "runtime/train/sparse_release.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/gradients/sparse_gradients.h"
#include "runtime/train/contribution_map.h"
#include "runtime/train/step_release_parts.h"
#include "runtime/train/trainer.h"

namespace wisp {
namespace {

class SparseRelease final : public StepRelease {
 public:
  SparseRelease(const Recommender& graph, const TrainingOptions& o)
      : graph_(&graph), num_workers_(o.num_threads), layout_(graph.parameters()), rows_(graph.architecture().num_items), any_negative_(o.num_negatives > 0) {
    const uint32_t num_items = graph.architecture().num_items;
    if (o.method == Method::kFest || o.method == Method::kAdaFestPlus) {
      fixed_.emplace(num_items);
      for (int32_t row : o.sparse.rows) fixed_->Insert(row);
      candidates_.assign(o.sparse.rows.begin(), o.sparse.rows.end());
    }
    if (IsAdaptive(o.method)) {
      map_.emplace(num_items, MapOptions(o), fixed_ ? &*fixed_ : nullptr);
    } else if (o.method != Method::kFest) {
      candidates_.resize(num_items);
      std::iota(candidates_.begin(), candidates_.end(), 0);
    }
    MakeSum(o);
    if (!map_) SetRows({});
  }

  RecordGradients& Gradients(size_t worker) override { return *gradients_[worker]; }

  void Begin(uint64_t, std::span<const float>, const StepBatch& batch, privacy::RandomStream& noise) override {
    if (map_) {
      map_->Select(batch.records, noise, candidates_);
      SetRows(batch.negatives);
    } else if (fixed_ && !batch.negatives.empty()) {
      candidates_.assign(fixed_->rows().begin(), fixed_->rows().end());
      SetRows(batch.negatives);
    }
    grid_ ? grid_sum_->Clear(layout_.size(rows_.size())) : float_sum_->Clear();
  }
  void Reduce() override {
    if (!grid_) float_sum_->Reduce();
  }

  void Update(size_t worker, privacy::RandomStream& noise, double divisor, const Apply& apply) override {
    const float scale = static_cast<float>(grid_ ? grid_->Scale(divisor) : 1.0 / divisor);
    float g[kUpdateChunk];
    const std::span<const ParameterSpec> parameters = graph_->parameters();
    ForEachChunk(parameters.subspan(1), worker, num_workers_, [&](const ParameterSpec& p, size_t first, size_t n) {
      Take(layout_.dense(p.offset) + first, n, scale, noise, g);
      apply(p, first, g, n);
    });
    const size_t d = layout_.d(), begin = rows_.size() * worker / num_workers_, end = rows_.size() * (worker + 1) / num_workers_;
    for (size_t slot = begin; slot < end; ++slot) {
      const size_t row = static_cast<size_t>(rows_.rows()[slot]);
      for (size_t first = 0; first < d; first += kUpdateChunk) {
        const size_t n = std::min(kUpdateChunk, d - first);
        Take(layout_.slot(slot) + first, n, scale, noise, g);
        apply(parameters[0], row * d + first, g, n);
      }
    }
  }

  std::span<const int32_t> ItemRows() const override { return rows_.rows(); }
  std::span<const int32_t> FixedItemRows() const override {
    if (fixed_ && !any_negative_) return fixed_->rows();
    return {};
  }
  size_t planned_bytes() const override {
    size_t bytes = grid_ ? grid_sum_->size_bytes() : float_sum_->size_bytes();
    for (const auto& gradients : gradients_) bytes += gradients->scratch_bytes();
    bytes += rows_.size_bytes() + (map_ ? map_->size_bytes() : 0) + (fixed_ ? fixed_->size_bytes() : 0);
    return bytes + candidates_.capacity() * sizeof(int32_t);
  }

 private:
  void MakeSum(const TrainingOptions& o) {
    ClipRule clip = ClipRule::None();
    GradientSum* sum;
    const size_t known_rows = map_ ? 0 : candidates_.size() + o.num_negatives;
    if (o.method == Method::kOrdinary) {
      float_sum_ = std::make_unique<FloatGradientSum>(graph_->ops(), layout_.size(known_rows), num_workers_);
      sum = float_sum_.get();
    } else {
      grid_.emplace(MakeGrid(o, NumReleased(graph_->architecture(), o)));
      sigma_ = grid_->sigma_in_steps(GradientNoise(o));
      clip = ClipOnGrid(o.privacy.clipping, *grid_);
      grid_sum_ = std::make_unique<GridGradientSum>(graph_->ops(), layout_.size(known_rows), SumGrid(*grid_));
      sum = grid_sum_.get();
    }
    for (size_t w = 0; w < num_workers_; ++w) {
      gradients_.push_back(std::make_unique<SparseGradients>(
          graph_->ops(), SparseGradients::Setup{.parameters = graph_->parameters(), .max_rows = graph_->architecture().max_length, .worker = w},
          rows_, clip, *sum));
    }
  }

  // rows_ <- candidates_ and the step's negatives, ascending.
  void SetRows(std::span<const int32_t> negatives) {
    candidates_.insert(candidates_.end(), negatives.begin(), negatives.end());
    std::sort(candidates_.begin(), candidates_.end());
    candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
    rows_.Clear();
    for (int32_t row : candidates_) rows_.Insert(row);
  }

  // g <- the gradient at [offset, offset + n) of the sum, its noise drawn here and only here.
  void Take(size_t offset, size_t n, float scale, privacy::RandomStream& noise, float* g) {
    if (grid_) {
      NoiseAndScale(grid_sum_->sum().subspan(offset, n), sigma_, scale, noise, g);
    } else {
      graph_->ops().scale({.x = float_sum_->sum().data() + offset, .y = g, .n = n, .a = scale, .store = kernels::Store::kAssign});
    }
  }

  const Recommender* graph_;
  size_t num_workers_;
  SparseLayout layout_;
  RowSet rows_;                      // of this step
  bool any_negative_;                // every row may become one
  std::optional<RowSet> fixed_;      // FEST, AdaFEST+
  std::optional<ContributionMap> map_;
  std::vector<int32_t> candidates_;
  std::optional<privacy::ExactGrid> grid_;  // private
  uint64_t sigma_ = 0;
  std::unique_ptr<FloatGradientSum> float_sum_;
  std::unique_ptr<GridGradientSum> grid_sum_;
  std::vector<std::unique_ptr<SparseGradients>> gradients_;
};

}  // namespace

PairOfNoises SplitNoise(double noise_multiplier, double ratio) {
  const double gradient = noise_multiplier * std::sqrt(1 + ratio * ratio) / ratio;
  return {.map = ratio * gradient, .gradient = gradient};
}

ContributionMapOptions MapOptions(const TrainingOptions& o) {
  return {.clipping_norm = o.sparse.map_clipping_norm, .threshold = o.sparse.map_threshold,
          .noise_multiplier = SplitNoise(o.privacy.noise_multiplier, o.sparse.map_noise_ratio).map};
}

std::unique_ptr<StepRelease> MakeSparseRelease(const Recommender& graph, const TrainingOptions& options) {
  return std::make_unique<SparseRelease>(graph, options);
}

}  // namespace wisp
