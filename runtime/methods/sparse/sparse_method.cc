// Built for speed: noise and sums over every row of a step.
#include "runtime/methods/sparse/sparse_method.h"

#include <algorithm>
#include <vector>

#include "runtime/core/capacity.h"
#include "runtime/methods/sparse/sparse_batch_gradients.h"
#include "runtime/methods/sparse/sparse_gradients.h"
#include "runtime/methods/sparse/step_rows.h"
#include "runtime/train/memory.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/method_table.h"

namespace wisp {

const bool kHasSparse = true;

namespace {

SparseGradients::Setup HostSetup(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o,
                                 size_t worker) {
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

SparseBatchGradients::SparseSetup DeviceSetup(const std::vector<ParameterSpec>& parameters, const TrainedSet& trained,
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

SparseBatchGradients::SparseSetup DeviceSetup(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o) {
  return DeviceSetup(graph.parameters(), trained, graph.architecture(), graph.max_records(), o);
}

bool TrainsAllRows(const Architecture& a, const TrainingOptions& o) {
  return !IsAdaptive(o.method) && StepRows::Counts(a, o).most == a.num_items;
}

// The number of rows that memory is reserved for at the start.
size_t FirstRoom(const StepRows::Counts& counts, const TrainingOptions& o) {
  return o.device.memory.is_host() ? counts.known : counts.most;
}

class SparseMethod final : public SumMethod {
 public:
  explicit SparseMethod(const MethodSetup& s)
      : SumMethod(s, SumSize(s), NumReleased(s.graph.architecture(), s.options)),
        layout_(s.graph.parameters(), s.trained),
        step_rows_(s.graph.architecture(), s.options),
        room_(FirstRoom(step_rows_.counts(), s.options)),
        rows_(s.graph.architecture().num_items) {
    const kernels::Device& device = s.graph.device();
    rows_.Reserve(room_);
    if (sum_.is_on_device()) {
      on_device_ = Own(std::make_unique<SparseBatchGradients>(device, DeviceSetup(s.graph, s.trained, s.options), rows_,
                                                              sum_.clip(), sum_.integers()));
      const bool all = TrainsAllRows(s.graph.architecture(), s.options);
      table_gradient_ = AlignedArray<float>(all ? s.graph.parameters()[0].size() : 0, device.memory);
      return;
    }
    for (size_t w = 0; w < num_workers_; ++w) {
      on_host_.push_back(Own(std::make_unique<SparseGradients>(device, HostSetup(s.graph, s.trained, s.options, w),
                                                               rows_, sum_.clip(), sum_.gradients())));
      on_host_.back()->ReserveCapacity(room_);
    }
  }

  void Begin(uint64_t step, std::span<const float>, const StepBatch& batch, privacy::RandomStream& noise) override {
    step_rows_.Choose(batch, noise);
    SetRows(batch.negatives);
    BeginSum(step, layout_.size(rows_.size()), noise);
  }

  bool ReadsBatch() const override { return step_rows_.selects(); }
  std::optional<ItemRows> StepItemRows() const override {
    return ItemRows{rows_.rows(), on_device_ != nullptr ? on_device_->set_rows() : nullptr};
  }
  std::span<const int32_t> FixedItemRows() const override { return step_rows_.fixed(); }
  size_t planned_bytes() const override {
    return SumMethod::planned_bytes() + rows_.size_bytes() + step_rows_.size_bytes() +
           table_gradient_.allocated_bytes();
  }

 protected:
  // The rows of the table come last, in ascending order, a range of them for each worker.
  void ForEachPiece(size_t worker, const Visit& visit) const override {
    VisitPieces(
        trained_->parameters().subspan(1), worker, [this](size_t i) { return layout_.dense(i); }, visit);
    const std::span<const int32_t> rows = step_rows_.rows();
    const size_t d = layout_.d(), end = rows.size() * (worker + 1) / num_workers_;
    for (size_t i = rows.size() * worker / num_workers_; i < end; ++i) {
      const size_t offset = layout_.slot(static_cast<size_t>(rows_.slot(rows[i])));
      for (size_t first = 0; first < d; first += kUpdateChunk) {
        visit({.offset = offset + first,
               .n = std::min(kUpdateChunk, d - first),
               .parameter = 0,
               .first = static_cast<size_t>(rows[i]) * d + first});
      }
    }
  }

  void ApplyAll(const float* gradient, const Apply& apply) override {
    for (const uint32_t i : trained_->parameters().subspan(1))
      apply({i, 0, gradient + layout_.dense(i), graph_->parameters()[i].size()});
    ApplyTable(gradient + layout_.slot(0), apply);
  }

 private:
  static size_t SumSize(const MethodSetup& s) {
    const StepRows::Counts counts(s.graph.architecture(), s.options);
    return SparseLayout(s.graph.parameters(), s.trained).size(FirstRoom(counts, s.options));
  }

  // On a device negatives come first: they are the block of a sampled softmax.
  void SetRows(std::span<const int32_t> negatives) {
    if (rows_.size() > 0 && !step_rows_.differ() && (on_device_ == nullptr || negatives.empty())) return;
    rows_.Clear();
    ReserveCapacity(step_rows_.rows().size());
    if (on_device_ != nullptr) {
      for (int32_t row : negatives) rows_.Insert(row);
    }
    for (int32_t row : step_rows_.rows()) rows_.Insert(row);
    if (on_device_ != nullptr) on_device_->BeginStep();
  }

  // Reserves memory for steps of up to `rows` rows; a float sum has it from the start.
  void ReserveCapacity(size_t rows) {
    if (rows <= room_) return;
    room_ = GrownCapacity(room_, rows, step_rows_.counts().most);
    rows_.Reserve(room_);
    sum_.ReserveCapacity(layout_.size(room_));
    for (SparseGradients* gradients : on_host_) gradients->ReserveCapacity(room_);
  }

  // Sorts a whole table's gradient into the table's order, because weights may be averaged, which is not offered by
  // rows.
  void ApplyTable(const float* gradient_JD, const Apply& apply) {
    const size_t d = layout_.d(), n = rows_.size() * d;
    if (table_gradient_.size() == 0) return apply({0, 0, gradient_JD, n, on_device_->set_rows()});
    graph_->ops().copy_rows({.x_RD = gradient_JD,
                             .ldx = d,
                             .from_R = nullptr,
                             .y_RD = table_gradient_.data(),
                             .ldy = d,
                             .to_R = on_device_->set_rows(),
                             .rows = rows_.size(),
                             .d = d});
    apply({0, 0, table_gradient_.data(), n});
  }

  SparseLayout layout_;
  StepRows step_rows_;
  size_t room_;                         // number of rows that memory is reserved for
  RowSet rows_;                         // this step's rows, in the order of the sum
  AlignedArray<float> table_gradient_;  // on a device, if all rows train
  std::vector<SparseGradients*> on_host_;
  SparseBatchGradients* on_device_ = nullptr;
};

// The list of selected rows is on the host, and grows.
MethodBytes PlanOnDevice(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o) {
  const Architecture& a = graph.architecture();
  const size_t most = StepRows::Counts(a, o).most, table = TrainsAllRows(a, o) ? graph.parameters()[0].size() : 0;
  MethodBytes bytes{.sums = StepSum::PlanBytes(o, SparseLayout(graph.parameters(), trained).size(most)) +
                            AlignedArray<float>::AllocatedBytes(table) + RowSet::PlanBytes(a.num_items, most) +
                            StepRows::PlanBytes(a, o),
                    .records = SparseBatchGradients::PlanBytes(DeviceSetup(graph, trained, o))};
  if (IsAdaptive(o.method)) bytes.growth_at_most = StepRows::GrowthAtMost(a, o, most, most);
  return bytes;
}

}  // namespace

std::unique_ptr<GradientMethod> MakeSparseMethod(const MethodSetup& setup) {
  return std::make_unique<SparseMethod>(setup);
}

MethodBytes PlanSparseMethod(const Graph& graph, const TrainedSet& trained, size_t num_records,
                             const TrainingOptions& o) {
  if (!o.device.memory.is_host()) return PlanOnDevice(graph, trained, o);
  const Architecture& a = graph.architecture();
  const StepRows::Counts counts(a, o);
  const SparseLayout layout(graph.parameters(), trained);
  const SparseGradients::Setup setup = HostSetup(graph, trained, o, 0);
  const auto sums = [&](size_t room) {
    return RowSet::PlanBytes(a.num_items, room) + StepSum::PlanBytes(o, layout.size(room));
  };
  const auto records = [&](size_t room) { return o.num_threads * SparseGradients::PlanBytes(setup, room); };
  MethodBytes bytes{.sums = sums(counts.known) + StepRows::PlanBytes(a, o), .records = records(counts.known)};
  if (!IsAdaptive(o.method)) return bytes;
  const ContributionMapOptions map = MapOptions(o);
  bytes.records_at_most = BinomialUpperQuantile(num_records, BatchProbability(o));
  const size_t touched =
      std::min(counts.places, bytes.records_at_most * ContributionMap::kNamesPerPosition * a.max_length);
  const size_t selected =
      std::min(counts.places, touched + BinomialUpperQuantile(counts.places, ContributionMap::FalseRowChance(map)));
  bytes.rows_at_most = std::min(counts.most, selected + counts.negatives);
  const size_t room = MostCapacity(bytes.rows_at_most, counts.most);
  bytes.growth_at_most =
      sums(room) - sums(0) + records(room) - records(0) + StepRows::GrowthAtMost(a, o, touched, selected);
  return bytes;
}

Status CheckSparse(const Architecture& a, const TrainingOptions& o) {
  if (a.head.kind != HeadKind::kNextItem)
    return Unsupported(ListMethods(IsSparse), " are for a next-item head, whose targets name rows too");
  if (a.adapter)
    return Unsupported(ListMethods(IsSparse), " train rows of the item table, an adapter leaves them as they are");
  if (a.head.output_table != OutputTable::kTied) {
    return PrivacyRefused(ListMethods(IsSparse),
                          " with an untied output table: its softmax touches every row, and no mask covers it; use a "
                          "tied table");
  }
  if (o.ema_decay > 0)
    return InvalidArgument(ListMethods(IsSparse),
                           " step some rows only: averaged weights (ema_decay) are not offered with them");
  if (o.method != Method::kFest) {
    if (!(o.sparse.map_noise_ratio >= 1e-3 && o.sparse.map_noise_ratio <= 1e3)) {
      return InvalidArgument("adafest: map_noise_ratio is ", o.sparse.map_noise_ratio, ", allowed is 0.001 to 1000");
    }
    WISP_RETURN_IF_ERROR(Validate(MapOptions(o)));
  }
  if (o.method == Method::kAdaFest) return OkStatus();
  if (o.sparse.rows.empty())
    return InvalidArgument(ListMethods(NamesRows), " need the rows that may be trained; none are given");
  int64_t before = -1;
  for (int32_t row : o.sparse.rows) {
    if (row <= before || row >= static_cast<int64_t>(a.num_items)) {
      return InvalidArgument("fest: row ", row, " after ", before, "; allowed are ascending rows below ", a.num_items);
    }
    before = row;
  }
  return OkStatus();
}

uint64_t NumReleasedByFest(const Architecture& a, const TrainingOptions& o) {
  const uint64_t rows = std::min<uint64_t>(a.num_items, o.sparse.rows.size() + o.num_negatives);
  return TrainedBy(ListParameters(a), o).num_coordinates() - (a.num_items - rows) * a.width;
}

size_t SparseRowFloats(const Architecture& a, const TrainingOptions& o) {
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  return SparseBatchGradients::MostRowFloats(DeviceSetup(parameters, TrainedBy(parameters, o), a, 1, o));
}

}  // namespace wisp
