// Built for speed: noise and sums over every row of a step.

// DP-FEST, DP-AdaFEST(+), and every method with a sampled softmax: the item table is summed, noised and stepped by
// rows.
//
// Which rows: all (ordinary and phantom training with a sampled softmax), a fixed set (FEST), what the contribution map
// selects each step (AdaFEST), that within a fixed set (AdaFEST+); a sampled softmax's negatives always belong to it,
// as they are drawn without the data. Rows outside get neither gradient nor noise nor a step of the optimizer: all of
// it depends on the released set alone. In an AdaFEST step nothing loops over the table.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/core/room.h"
#include "runtime/gradients/sparse_gradients.h"
#include "runtime/train/memory.h"
#include "runtime/train/options.h"
#include "runtime/train/release/contribution_map.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {
namespace {

// How many rows there are to make room for.
struct RowCounts {
  RowCounts(const Architecture& a, const TrainingOptions& o)
      : places(NamesRows(o.method) ? o.sparse.rows.size() : a.num_items),
        negatives(o.num_negatives),
        most(std::min<size_t>(a.num_items, places + negatives)),
        known(IsAdaptive(o.method) ? 0 : most) {}

  size_t places;     // rows that may be trained, negatives aside
  size_t negatives;  // of a step
  size_t most;       // rows of a step, whatever is selected
  size_t known;      // rows that room is made for before the first step: all, where none are selected step by step
};

SparseGradients::Setup SetupOf(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o, size_t worker) {
  const size_t num_items = graph.architecture().num_items, length = graph.architecture().max_length,
               negatives = o.num_negatives;
  SparseGradients::Setup setup{
      .parameters = graph.parameters(), .trained = trained, .max_rows = length, .worker = worker};
  // A full softmax names every row. A sampled one: the negatives, which always belong to the set, and targets and
  // inputs.
  setup.max_record_rows = negatives == 0 ? num_items : std::min(num_items, negatives + 2 * length);
  setup.norms_head_rows = graph.architecture().head.temperature > 0;
  setup.block_columns = negatives == 0 ? std::min(num_items, kHeadTile) : negatives;
  setup.gathers = negatives == 0;
  return setup;
}

class SparseRelease final : public StepRelease {
 public:
  SparseRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o)
      : graph_(&graph),
        trained_(&trained),
        num_workers_(o.num_threads),
        layout_(graph.parameters(), trained),
        counts_(graph.architecture(), o),
        room_(counts_.known),
        rows_(graph.architecture().num_items) {
    const uint32_t num_items = graph.architecture().num_items;
    if (NamesRows(o.method)) {
      fixed_.emplace(num_items);
      fixed_->Reserve(o.sparse.rows.size());
      for (int32_t row : o.sparse.rows) fixed_->Insert(row);
    }
    if (IsAdaptive(o.method))
      map_.emplace(num_items, MapOptions(o), fixed_ ? &*fixed_ : nullptr, graph.architecture().max_length);
    MakeSum(o);
    if (map_) return;
    rows_.Reserve(room_);
    if (any_negative() && fixed_) ReallocateEmpty(candidates_, counts_.places + counts_.negatives);
    if (fixed_) {
      for (int32_t row : fixed_->rows()) rows_.Insert(row);
    } else {
      for (size_t row = 0; row < num_items; ++row) rows_.Insert(static_cast<int32_t>(row));
    }
  }

  Gradients GradientsOf(size_t worker) override { return *gradients_[worker]; }

  void Begin(uint64_t, std::span<const float>, const StepBatch& batch, privacy::RandomStream& noise) override {
    if (map_) {
      map_->Select(batch.records, noise, candidates_);
      wisp::MakeRoom(candidates_, candidates_.size() + batch.negatives.size(), counts_.places + counts_.negatives);
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
    const auto take = [&](size_t parameter, size_t first, size_t n) {
      Take(layout_.dense(parameter) + first, n, scale, noise, g);
      apply(parameter, first, g, n);
    };
    ForEachChunk(graph_->parameters(), trained_->parameters().subspan(1), worker, num_workers_, take);
    const size_t d = layout_.d(), begin = rows_.size() * worker / num_workers_,
                 end = rows_.size() * (worker + 1) / num_workers_;
    for (size_t slot = begin; slot < end; ++slot) {
      const size_t row = static_cast<size_t>(rows_.rows()[slot]);
      for (size_t first = 0; first < d; first += kUpdateChunk) {
        const size_t n = std::min(kUpdateChunk, d - first);
        Take(layout_.slot(slot) + first, n, scale, noise, g);
        apply(0, row * d + first, g, n);
      }
    }
  }

  std::span<const int32_t> ItemRows() const override { return rows_.rows(); }
  std::span<const int32_t> FixedItemRows() const override {
    if (fixed_ && !any_negative()) return fixed_->rows();
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
    if (o.method == Method::kOrdinary) {
      float_sum_ = std::make_unique<FloatGradientSum>(graph_->device(), layout_.size(room_), num_workers_);
      sum = float_sum_.get();
    } else {
      grid_.emplace(MakeGrid(o, NumReleased(graph_->architecture(), o)));
      sigma_ = grid_->sigma_in_steps(GradientNoise(o));
      clip = ClipOnGrid(o.privacy.clipping, *grid_);
      grid_sum_ = std::make_unique<GridGradientSum>(graph_->device(), layout_.size(room_), SumGrid(*grid_));
      sum = grid_sum_.get();
    }
    for (size_t w = 0; w < num_workers_; ++w) {
      gradients_.push_back(
          std::make_unique<SparseGradients>(graph_->device(), SetupOf(*graph_, *trained_, o, w), rows_, clip, *sum));
      gradients_.back()->MakeRoom(room_);
    }
  }

  // For steps of up to `rows` rows; the float sum has it from the start.
  void MakeRoom(size_t rows) {
    if (rows <= room_) return;
    room_ = GrownRoom(room_, rows, counts_.most);
    rows_.Reserve(room_);
    if (grid_) grid_sum_->MakeRoom(layout_.size(room_));
    for (auto& gradients : gradients_) gradients->MakeRoom(room_);
  }

  // rows_ <- candidates_ and the step's negatives, ascending.
  void SetRows(std::span<const int32_t> negatives) {
    candidates_.insert(candidates_.end(), negatives.begin(), negatives.end());
    std::sort(candidates_.begin(), candidates_.end());
    candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
    rows_.Clear();
    MakeRoom(candidates_.size());
    for (int32_t row : candidates_) rows_.Insert(row);
  }

  // g <- the gradient at [offset, offset + n) of the sum, its noise drawn here and only here.
  void Take(size_t offset, size_t n, float scale, privacy::RandomStream& noise, float* g) {
    if (grid_) {
      NoiseAndScale(grid_sum_->sum().subspan(offset, n), sigma_, scale, noise, g);
    } else {
      graph_->ops().scale(
          {.x = float_sum_->sum().data() + offset, .y = g, .n = n, .a = scale, .store = kernels::Store::kAssign});
    }
  }

  bool any_negative() const { return counts_.negatives > 0; }  // every row may become one

  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  SparseLayout layout_;
  RowCounts counts_;
  size_t room_;                  // rows that room is made for
  RowSet rows_;                  // of this step
  std::optional<RowSet> fixed_;  // FEST, AdaFEST+
  std::optional<ContributionMap> map_;
  std::vector<int32_t> candidates_;
  std::optional<privacy::ExactGrid> grid_;  // private
  uint64_t sigma_ = 0;
  std::unique_ptr<FloatGradientSum> float_sum_;
  std::unique_ptr<GridGradientSum> grid_sum_;
  std::vector<std::unique_ptr<SparseGradients>> gradients_;
};

}  // namespace

ContributionMapOptions MapOptions(const TrainingOptions& o) {
  return {.clipping_norm = o.sparse.map_clipping_norm,
          .threshold = o.sparse.map_threshold,
          .noise_multiplier = SplitNoise(o.privacy.noise_multiplier, o.sparse.map_noise_ratio).map};
}

ReleaseBytes PlanSparseRelease(const Graph& graph, const TrainedSet& trained, size_t num_records,
                               const TrainingOptions& o) {
  const Architecture& a = graph.architecture();
  const RowCounts counts(a, o);
  const SparseLayout layout(graph.parameters(), trained);
  const SparseGradients::Setup setup = SetupOf(graph, trained, o, 0);
  const size_t workers = o.num_threads, list = sizeof(int32_t);
  const auto sums = [&](size_t room) {
    return RowSet::PlanBytes(a.num_items, room) +
           (o.method == Method::kOrdinary ? workers * AlignedArray<float>::AllocatedBytes(layout.size(room))
                                          : AlignedArray<int64_t>::AllocatedBytes(layout.size(room)));
  };
  const auto records = [&](size_t room) { return workers * SparseGradients::PlanBytes(setup, room); };
  ReleaseBytes bytes{.sums = sums(counts.known), .records = records(counts.known)};
  if (NamesRows(o.method)) bytes.sums += RowSet::PlanBytes(a.num_items, counts.places);
  if (!IsAdaptive(o.method)) {
    if (o.method == Method::kFest && o.num_negatives > 0) bytes.sums += (counts.places + counts.negatives) * list;
    return bytes;
  }
  bytes.sums += ContributionMap::PlanBytes(a.num_items, a.max_length, 0);
  const ContributionMapOptions map = MapOptions(o);
  bytes.records_at_most =
      BinomialUpperQuantile(num_records, static_cast<double>(o.expected_batch) / o.num_records_public);
  const size_t touched =
      std::min(counts.places, bytes.records_at_most * ContributionMap::kNamesPerPosition * a.max_length);
  const size_t selected =
      std::min(counts.places, touched + BinomialUpperQuantile(counts.places, ContributionMap::FalseRowChance(map)));
  bytes.rows_at_most = std::min(counts.most, selected + counts.negatives);
  const size_t room = MostRoom(bytes.rows_at_most, counts.most);
  bytes.growth_at_most = sums(room) - sums(0) + records(room) - records(0) +
                         MostRoom(selected + counts.negatives, counts.places + counts.negatives) * list +
                         ContributionMap::PlanBytes(a.num_items, a.max_length, MostRoom(touched, counts.places)) -
                         ContributionMap::PlanBytes(a.num_items, a.max_length, 0);
  return bytes;
}

std::unique_ptr<StepRelease> MakeSparseRelease(const Graph& graph, const TrainedSet& trained,
                                               const TrainingOptions& options) {
  return std::make_unique<SparseRelease>(graph, trained, options);
}

}  // namespace wisp
