// DP-FEST, DP-AdaFEST(+), and DP-SGD with a sampled softmax in a device's memory, which holds only those rows of the
// item table that a step trains. step_rows.h selects the rows. Memory for the largest set is reserved before the run,
// so that no charged step can fail for lack of it.
#include <algorithm>

#include "runtime/gradients/sparse_batch_gradients.h"
#include "runtime/train/options.h"
#include "runtime/train/release/device_noise.h"
#include "runtime/train/release/step_release_parts.h"
#include "runtime/train/release/step_rows.h"

namespace wisp {
namespace {

SparseBatchGradients::SparseSetup SetupOf(const std::vector<ParameterSpec>& parameters, const TrainedSet& trained,
                                          const Architecture& a, size_t max_records, const TrainingOptions& o) {
  return {.batch = {.parameters = parameters,
                    .trained = trained,
                    .max_records = max_records,
                    .norms_head_rows = a.head.temperature > 0},
          .max_length = a.max_length,
          .max_rows = max_records * a.max_length,
          .most_set_rows = StepRows::Counts(a, o).most,
          .num_negatives = o.num_negatives};
}

SparseBatchGradients::SparseSetup SetupOf(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o) {
  return SetupOf(graph.parameters(), trained, graph.architecture(), graph.max_records(), o);
}

bool TrainsAllRows(const Architecture& a, const TrainingOptions& o) {
  return !IsAdaptive(o.method) && StepRows::Counts(a, o).most == a.num_items;
}

class DeviceSparseRelease final : public StepRelease {
 public:
  DeviceSparseRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o)
      : graph_(&graph),
        trained_(&trained),
        num_workers_(o.num_threads),
        layout_(graph.parameters(), trained),
        step_rows_(graph.architecture(), o),
        rows_(graph.architecture().num_items),
        grid_(MakeGrid(o, NumReleased(graph.architecture(), o))),
        sum_(graph.device(), layout_.size(step_rows_.counts().most), SumGrid(grid_)),
        gradients_(graph.device(), SetupOf(graph, trained, o), rows_, ClipOnGrid(o.privacy.clipping, grid_), sum_),
        noise_(graph.device(), layout_.size(step_rows_.counts().most), grid_.sigma_in_steps(GradientNoise(o))),
        table_gradient_(TrainsAllRows(graph.architecture(), o) ? graph.parameters()[0].size() : 0,
                        graph.device().memory) {
    rows_.Reserve(step_rows_.counts().most);
  }

  Gradients GradientsOf(size_t) override { return gradients_; }

  void Begin(uint64_t, std::span<const float>, const StepBatch& batch, privacy::RandomStream& noise) override {
    step_rows_.Choose(batch, noise);
    SetRows(batch.negatives);
    sum_.Clear(layout_.size(rows_.size()));
  }

  // Draws the same integers as the host's release would with as many threads, in its order: rows ascending.
  void DrawNoise(size_t worker, privacy::RandomStream& noise) override {
    const auto draw = [&](size_t parameter, size_t first, size_t n) {
      noise_.Draw(layout_.dense(parameter) + first, n, noise);
    };
    ForEachChunk(graph_->parameters(), trained_->parameters().subspan(1), worker, num_workers_, draw);
    const std::span<const int32_t> rows = step_rows_.rows();
    const size_t d = layout_.d(), begin = rows.size() * worker / num_workers_,
                 end = rows.size() * (worker + 1) / num_workers_;
    for (size_t i = begin; i < end; ++i) {
      const size_t offset = layout_.slot(static_cast<size_t>(rows_.slot(rows[i])));
      for (size_t first = 0; first < d; first += kUpdateChunk)
        noise_.Draw(offset + first, std::min(kUpdateChunk, d - first), noise);
    }
  }
  void Prepare() override { noise_.Send(layout_.size(rows_.size())); }

  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    if (worker > 0) return;
    const float* gradient = noise_.AddTo(sum_, static_cast<float>(grid_.Scale(divisor)));
    for (uint32_t i : trained_->parameters().subspan(1))
      apply({i, 0, gradient + layout_.dense(i), graph_->parameters()[i].size()});
    ApplyTable(gradient + layout_.slot(0), apply);
    noise_.Forget();
    sum_.Clear();
    gradients_.Forget();
  }

  std::optional<ItemRows> StepItemRows() const override { return ItemRows{rows_.rows(), gradients_.set_rows()}; }
  std::span<const int32_t> FixedItemRows() const override { return step_rows_.fixed(); }

  size_t planned_bytes() const override {
    return sum_.size_bytes() + gradients_.scratch_bytes() + noise_.size_bytes() + table_gradient_.allocated_bytes() +
           rows_.size_bytes() + step_rows_.size_bytes();
  }

 private:
  // Negatives come first: they are the block of a sampled softmax.
  void SetRows(std::span<const int32_t> negatives) {
    if (rows_.size() > 0 && negatives.empty() && !step_rows_.differ()) return;
    rows_.Clear();
    for (int32_t row : negatives) rows_.Insert(row);
    for (int32_t row : step_rows_.rows()) rows_.Insert(row);
    gradients_.BeginStep();
  }

  // Sorts a whole table's gradient into the table's order, because weights may be averaged, which is not offered by
  // rows.
  void ApplyTable(const float* gradient_JD, const Apply& apply) {
    const size_t d = layout_.d(), n = rows_.size() * d;
    if (table_gradient_.size() == 0) return apply({0, 0, gradient_JD, n, gradients_.set_rows()});
    graph_->ops().copy_rows({.x_RD = gradient_JD,
                             .ldx = d,
                             .from_R = nullptr,
                             .y_RD = table_gradient_.data(),
                             .ldy = d,
                             .to_R = gradients_.set_rows(),
                             .rows = rows_.size(),
                             .d = d});
    apply({0, 0, table_gradient_.data(), n});
  }

  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  SparseLayout layout_;
  StepRows step_rows_;
  RowSet rows_;  // this step's rows, in the order of the sum
  privacy::ExactGrid grid_;
  GridGradientSum sum_;
  SparseBatchGradients gradients_;
  DeviceNoise noise_;
  AlignedArray<float> table_gradient_;
};

}  // namespace

size_t RowFloatsOnDevice(const Architecture& a, const TrainingOptions& o) {
  const std::vector<ParameterSpec> parameters = ParametersOf(a);
  const TrainedSet trained = TrainedBy(parameters, o);
  if (o.method == Method::kRgp) return RgpCarriers::PlanOf(parameters, trained, o.rgp, o.device.memory).release_size;
  if (!IsSparse(o.method) && o.num_negatives == 0) return trained.size();
  return SparseBatchGradients::MostRowFloats(SetupOf(parameters, trained, a, 1, o));
}

ReleaseBytes PlanDeviceSparseRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o) {
  const Architecture& a = graph.architecture();
  const size_t most = StepRows::Counts(a, o).most, size = SparseLayout(graph.parameters(), trained).size(most),
               table = TrainsAllRows(a, o) ? graph.parameters()[0].size() : 0;
  ReleaseBytes bytes{.sums = AlignedArray<int64_t>::AllocatedBytes(size) + DeviceNoise::PlanBytes(size) +
                             AlignedArray<float>::AllocatedBytes(table) + RowSet::PlanBytes(a.num_items, most) +
                             StepRows::PlanBytes(a, o),
                     .records = SparseBatchGradients::PlanBytes(SetupOf(graph, trained, o))};
  // The list of selected rows is on the host, and grows.
  if (IsAdaptive(o.method)) bytes.growth_at_most = StepRows::GrowthAtMost(a, o, most, most);
  return bytes;
}

std::unique_ptr<StepRelease> MakeDeviceSparseRelease(const Graph& graph, const TrainedSet& trained,
                                                     const TrainingOptions& options) {
  return std::make_unique<DeviceSparseRelease>(graph, trained, options);
}

}  // namespace wisp
