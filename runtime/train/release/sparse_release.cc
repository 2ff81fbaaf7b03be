// Built for speed: noise and sums over every row of a step.

// DP-FEST, DP-AdaFEST(+), and every method with a sampled softmax: the item table is summed, noised and updated by
// rows. step_rows.h selects them. Other rows get neither gradient nor noise nor an optimizer step; all of this depends
// on the released set alone. In an AdaFEST step nothing loops over the table.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/core/room.h"
#include "runtime/gradients/sparse_gradients.h"
#include "runtime/train/memory.h"
#include "runtime/train/options.h"
#include "runtime/train/release/step_release_parts.h"
#include "runtime/train/release/step_rows.h"

namespace wisp {
namespace {

SparseGradients::Setup SetupOf(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o, size_t worker) {
  const size_t num_items = graph.architecture().num_items, length = graph.architecture().max_length,
               negatives = o.num_negatives;
  SparseGradients::Setup setup{
      .parameters = graph.parameters(), .trained = trained, .max_rows = length, .worker = worker};
  // A full softmax names every row. A sampled one names the negatives, which always belong to the set, and targets and
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
        step_rows_(graph.architecture(), o),
        room_(step_rows_.counts().known),
        rows_(graph.architecture().num_items) {
    MakeSum(o);
    rows_.Reserve(room_);
    if (!step_rows_.differ()) SetRows();
  }

  Gradients GradientsOf(size_t worker) override { return *gradients_[worker]; }

  void Begin(uint64_t, std::span<const float>, const StepBatch& batch, privacy::RandomStream& noise) override {
    if (step_rows_.differ()) {
      step_rows_.Choose(batch, noise);
      SetRows();
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
      apply({parameter, first, g, n});
    };
    ForEachChunk(graph_->parameters(), trained_->parameters().subspan(1), worker, num_workers_, take);
    const size_t d = layout_.d(), begin = rows_.size() * worker / num_workers_,
                 end = rows_.size() * (worker + 1) / num_workers_;
    for (size_t slot = begin; slot < end; ++slot) {
      const size_t row = static_cast<size_t>(rows_.rows()[slot]);
      for (size_t first = 0; first < d; first += kUpdateChunk) {
        const size_t n = std::min(kUpdateChunk, d - first);
        Take(layout_.slot(slot) + first, n, scale, noise, g);
        apply({0, row * d + first, g, n});
      }
    }
  }

  std::optional<ItemRows> StepItemRows() const override { return ItemRows{rows_.rows()}; }
  std::span<const int32_t> FixedItemRows() const override { return step_rows_.fixed(); }
  size_t planned_bytes() const override {
    size_t bytes = grid_ ? grid_sum_->size_bytes() : float_sum_->size_bytes();
    for (const auto& gradients : gradients_) bytes += gradients->scratch_bytes();
    return bytes + rows_.size_bytes() + step_rows_.size_bytes();
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

  // Reserves memory for steps of up to `rows` rows; the float sum has it from the start.
  void MakeRoom(size_t rows) {
    if (rows <= room_) return;
    room_ = GrownRoom(room_, rows, step_rows_.counts().most);
    rows_.Reserve(room_);
    if (grid_) grid_sum_->MakeRoom(layout_.size(room_));
    for (auto& gradients : gradients_) gradients->MakeRoom(room_);
  }

  void SetRows() {
    rows_.Clear();
    MakeRoom(step_rows_.rows().size());
    for (int32_t row : step_rows_.rows()) rows_.Insert(row);
  }

  // Sets g to the gradient at [offset, offset + n) of the sum; its noise is drawn here and nowhere else.
  void Take(size_t offset, size_t n, float scale, privacy::RandomStream& noise, float* g) {
    if (grid_) {
      NoiseAndScale(grid_sum_->sum().subspan(offset, n), sigma_, scale, noise, g);
    } else {
      graph_->ops().scale(
          {.x = float_sum_->sum().data() + offset, .y = g, .n = n, .a = scale, .store = kernels::Store::kAssign});
    }
  }

  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  SparseLayout layout_;
  StepRows step_rows_;
  size_t room_;                             // number of rows that memory is reserved for
  RowSet rows_;                             // this step's rows
  std::optional<privacy::ExactGrid> grid_;  // set for private training
  uint64_t sigma_ = 0;
  std::unique_ptr<FloatGradientSum> float_sum_;
  std::unique_ptr<GridGradientSum> grid_sum_;
  std::vector<std::unique_ptr<SparseGradients>> gradients_;
};

}  // namespace

ReleaseBytes PlanSparseRelease(const Graph& graph, const TrainedSet& trained, size_t num_records,
                               const TrainingOptions& o) {
  const Architecture& a = graph.architecture();
  const StepRows::Counts counts(a, o);
  const SparseLayout layout(graph.parameters(), trained);
  const SparseGradients::Setup setup = SetupOf(graph, trained, o, 0);
  const size_t workers = o.num_threads;
  const auto sums = [&](size_t room) {
    return RowSet::PlanBytes(a.num_items, room) +
           (o.method == Method::kOrdinary ? workers * AlignedArray<float>::AllocatedBytes(layout.size(room))
                                          : AlignedArray<int64_t>::AllocatedBytes(layout.size(room)));
  };
  const auto records = [&](size_t room) { return workers * SparseGradients::PlanBytes(setup, room); };
  ReleaseBytes bytes{.sums = sums(counts.known) + StepRows::PlanBytes(a, o), .records = records(counts.known)};
  if (!IsAdaptive(o.method)) return bytes;
  const ContributionMapOptions map = MapOptions(o);
  bytes.records_at_most =
      BinomialUpperQuantile(num_records, static_cast<double>(o.expected_batch) / o.num_records_public);
  const size_t touched =
      std::min(counts.places, bytes.records_at_most * ContributionMap::kNamesPerPosition * a.max_length);
  const size_t selected =
      std::min(counts.places, touched + BinomialUpperQuantile(counts.places, ContributionMap::FalseRowChance(map)));
  bytes.rows_at_most = std::min(counts.most, selected + counts.negatives);
  const size_t room = MostRoom(bytes.rows_at_most, counts.most);
  bytes.growth_at_most =
      sums(room) - sums(0) + records(room) - records(0) + StepRows::GrowthAtMost(a, o, touched, selected);
  return bytes;
}

std::unique_ptr<StepRelease> MakeSparseRelease(const Graph& graph, const TrainedSet& trained,
                                               const TrainingOptions& options) {
  return std::make_unique<SparseRelease>(graph, trained, options);
}

}  // namespace wisp
