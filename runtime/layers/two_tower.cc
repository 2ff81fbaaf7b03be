#include "runtime/layers/two_tower.h"

namespace wisp {

// Turns the factors of the item table into rows of the tower's factor, and passes on all others.
class TwoTower::Sink final : public FactorSink {
 public:
  Sink(const TwoTower& graph, const RecordContext& context, FactorSink& sink)
      : graph_(graph),
        ops_(context.ops()),
        sink_(sink),
        features_(context.weights.at(graph.features_)),
        dy_(context.backward(graph.dy_)),
        x_(context.backward(graph.x_)),
        f_(graph.architecture_.item_features),
        d_(graph.architecture_.width) {}

  bool Wants(size_t parameter) const override {
    return sink_.Wants(parameter == graph_.table_ ? graph_.tower_ : parameter);
  }

  // A tile of the head: adds dZ X of these items to the first rows of each record.
  void Outer(const OuterFactor& factor) override {
    if (factor.parameter != graph_.table_) return sink_.Outer(factor);
    for (size_t b = 0; b < factor.records.num_records; ++b) {
      const size_t begin = factor.records.begin(b), rows = factor.records.size(b);
      ops_.linear_backward_input({.dy_RN = factor.dy_RN + begin * factor.lddy,
                                  .lddy = factor.lddy,
                                  .w_NK = features_ + factor.first_row * f_,
                                  .ldw = f_,
                                  .dx_RK = dy_ + 2 * begin * f_,
                                  .lddx = f_,
                                  .rows = rows,
                                  .n = factor.n,
                                  .k = f_,
                                  .store = factor.first_row == 0 ? kernels::Store::kAssign : kernels::Store::kAdd});
      if (factor.first_row == 0) Copy(factor.x_RK + begin * factor.ldx, factor.ldx, 2 * begin, rows);
    }
  }

  // The input use of the items: these are the last rows of each record.
  void Rows(const RowsFactor& factor) override {
    if (factor.parameter != graph_.table_) return sink_.Rows(factor);
    for (size_t b = 0; b < factor.records.num_records; ++b) {
      const size_t begin = factor.records.begin(b), rows = factor.records.size(b), to = 2 * begin + rows;
      ops_.embed_forward({.table_MD = features_,
                          .positions_TD = nullptr,
                          .ids_T = factor.ids_R + begin,
                          .y_TD = dy_ + to * f_,
                          .rows = rows,
                          .d = f_,
                          .scale = factor.scale});
      Copy(factor.dx_RD + begin * factor.lddx, factor.lddx, to, rows);
    }
  }

  void Vector(const VectorFactor& factor) override { sink_.Vector(factor); }
  void EndKept() override { sink_.EndKept(); }

 private:
  void Copy(const float* from, size_t ld, size_t to, size_t rows) const {
    ops_.copy_rows({.x_RD = from,
                    .ldx = ld,
                    .from_R = nullptr,
                    .y_RD = x_ + to * d_,
                    .ldy = d_,
                    .to_R = nullptr,
                    .rows = rows,
                    .d = d_});
  }

  const TwoTower& graph_;
  const kernels::OpTable& ops_;
  FactorSink& sink_;
  const float* features_;
  float *dy_, *x_;
  size_t f_, d_;
};

TwoTower::TwoTower(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : Recommender(a, device, options),
      tower_(RequireParameter(parameters_, ParameterRole::kItemTower)),
      features_(RequireParameter(parameters_, ParameterRole::kItemFeatures)),
      table_(RequireParameter(parameters_, ParameterRole::kItemTable)),
      dy_(plan_.backward.Reserve<float>(2 * plan_.max_rows() * a.item_features)),
      x_(plan_.backward.Reserve<float>(2 * plan_.max_rows() * a.width)),
      begin_(plan_.host.Reserve<uint32_t>(plan_.max_records + 1)) {}

Segments TwoTower::FactorRecords(const RecordContext& context) const {
  Segments records = context.records;
  records.rows *= 2;
  if (records.begin_B == nullptr) return records;
  uint32_t* begin = context.buffers.host[begin_];
  for (size_t b = 0; b <= records.num_records; ++b) begin[b] = 2 * records.begin_B[b];
  records.begin_B = begin;
  return records;
}

void TwoTower::Emit(const RecordContext& context, FactorSink& sink) const {
  if (!sink.Wants(tower_)) return;
  sink.Outer({.parameter = tower_,
              .first_row = 0,
              .dy_RN = context.backward(dy_),
              .lddy = architecture_.item_features,
              .x_RK = context.backward(x_),
              .ldx = architecture_.width,
              .records = FactorRecords(context),
              .n = architecture_.item_features,
              .k = architecture_.width});
}

void TwoTower::Backward(const RecordContext& context, Batch batch, FactorSink& sink) const {
  Sink tower(*this, context, sink);
  Recommender::Backward(context, batch, tower);
  Emit(context, sink);
}

void TwoTower::ReplayHead(const RecordContext& context, Batch, FactorSink& sink) const { Emit(context, sink); }

void TwoTower::Derive(std::span<float> weights, size_t part, size_t num_parts) const {
  const size_t f = architecture_.item_features, d = architecture_.width, items = architecture_.num_items;
  const float* x = weights.data() + parameters_[features_].offset;
  const float* v = weights.data() + parameters_[tower_].offset;
  float* e = weights.data() + parameters_[table_].offset;
  for (size_t first = part * kHeadTile; first < items; first += num_parts * kHeadTile) {
    ops().linear_backward_input({.dy_RN = x + first * f,
                                 .lddy = f,
                                 .w_NK = v,
                                 .ldw = d,
                                 .dx_RK = e + first * d,
                                 .lddx = d,
                                 .rows = std::min(kHeadTile, items - first),
                                 .n = f,
                                 .k = d,
                                 .store = kernels::Store::kAssign});
  }
}

}  // namespace wisp
