// Built for speed: sums over every weight of a step.
#include "runtime/train/sum_method.h"

#include "runtime/gradients/sum_gradients.h"

namespace wisp {

SumMethod::SumMethod(const MethodSetup& s, size_t size, uint64_t num_released)
    : graph_(&s.graph),
      trained_(&s.trained),
      num_workers_(s.options.num_threads),
      sum_(s.graph.device(), s.options, size, num_released),
      num_drawn_(num_workers_) {
  gradients_.reserve(NumCallers(s.options));
}

void SumMethod::BeginSum(uint64_t step, size_t size, privacy::RandomStream& noise) {
  sum_.Begin(step, size, noise);
  std::fill(num_drawn_.begin(), num_drawn_.end(), 0);
}

void SumMethod::DrawNoise(size_t worker, privacy::RandomStream& noise, double share) {
  if (!sum_.draws_ahead()) return;
  size_t num_pieces = 0, turn = 0;
  ForEachPiece(worker, [&](const Piece&) { ++num_pieces; });
  const auto until = static_cast<size_t>(share * static_cast<double>(num_pieces));
  size_t& drawn = num_drawn_[worker];
  ForEachPiece(worker, [&](const Piece& piece) {
    if (turn++ != drawn || drawn >= until) return;
    sum_.DrawAhead(piece.offset, piece.n, noise);
    ++drawn;
  });
}

void SumMethod::Update(size_t worker, privacy::RandomStream& noise, double divisor, const Apply& apply) {
  const float scale = sum_.Scale(divisor);
  if (sum_.is_on_device()) {
    if (worker > 0) return;
    ApplyAll(sum_.TakeAll(scale), apply);
    return Forget();
  }
  float g[kUpdateChunk];
  ForEachPiece(worker, [&](const Piece& piece) {
    sum_.Take(piece.offset, piece.n, scale, noise, g);
    apply({piece.parameter, piece.first, g, piece.n});
  });
}

void SumMethod::Forget() {
  sum_.Forget();
  for (OwnedGradients& gradients : gradients_) gradients.Forget();
}

size_t SumMethod::planned_bytes() const {
  size_t bytes = sum_.size_bytes();
  for (const OwnedGradients& gradients : gradients_) bytes += gradients.get().scratch_bytes();
  return bytes;
}

void FlatMethod::ForEachPiece(size_t worker, const Visit& visit) const {
  VisitPieces(
      trained_->parameters(), worker, [this](size_t i) { return trained_->offset(i); }, visit);
}

void FlatMethod::ApplyAll(const float* gradient, const Apply& apply) {
  for (const uint32_t i : trained_->parameters())
    apply({i, 0, gradient + trained_->offset(i), graph_->parameters()[i].size()});
}

BatchGradients::Setup MakeBatchSetup(const Graph& graph, const TrainedSet& trained) {
  return {.parameters = graph.parameters(),
          .trained = trained,
          .max_records = graph.max_records(),
          .norms_head_rows = graph.architecture().head.temperature > 0};
}

namespace {

// On the host a sampled softmax has a method with sums of its own rows (methods/sparse).
class OrdinaryMethod final : public FlatMethod {
 public:
  explicit OrdinaryMethod(const MethodSetup& s) : FlatMethod(s) {
    for (size_t w = 0; w < NumCallers(s.options); ++w)
      Own(std::make_unique<SumGradients>(s.graph.device(), MakeBatchSetup(s.graph, s.trained), s.options.num_negatives,
                                         sum_.floats(), w));
  }
};

}  // namespace

std::unique_ptr<GradientMethod> MakeOrdinaryMethod(const MethodSetup& setup) {
  return std::make_unique<OrdinaryMethod>(setup);
}

MethodBytes PlanOrdinaryMethod(const Graph& graph, const TrainedSet& trained, size_t /*num_records*/,
                               const TrainingOptions& o) {
  return {.sums = StepSum::PlanBytes(o, trained.size()),
          .records = NumCallers(o) * SumGradients::PlanBytes(MakeBatchSetup(graph, trained), o.num_negatives)};
}

}  // namespace wisp
