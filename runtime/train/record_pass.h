// Passes records through a graph, forward and backward, and each record's gradient to its method: the core of a
// training step, for the trainer, audits and tests.
//
//   RecordPass pass(graph);
//   for (const Record& record : records) {
//     if (!pass.Fits(record)) Take(pass.Run(context, gradients));
//     pass.Push(record, {.target_weight = weight});
//   }
//   if (!pass.empty()) Take(pass.Run(context, gradients));
#ifndef WISP_RUNTIME_TRAIN_RECORD_PASS_H_
#define WISP_RUNTIME_TRAIN_RECORD_PASS_H_

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/core/function_ref.h"
#include "runtime/gradients/factor_batch.h"
#include "runtime/gradients/record_gradients.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/next_item_head.h"

namespace wisp {

// A pass through a Graph, or through a graph of one kind, which must outlive it. Each worker has one. Nothing is
// allocated after construction.
template <class AnyGraph>
class RecordPass {
 public:
  struct Outcome {
    double loss = 0;  // over all its targets, unweighted
    RecordOutcome gradient;
  };

  explicit RecordPass(const AnyGraph& graph) : graph_(graph), factors_(NumFactors(graph)) {
    batch_.reserve(graph.max_records());
    options_.reserve(graph.max_records());
    losses_.resize(graph.max_records());
    outcomes_.reserve(graph.max_records());
  }

  // Returns size_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const AnyGraph& graph) {
    return FactorBatch::PlanBytes(NumFactors(graph)) +
           graph.max_records() * (sizeof(Record) + sizeof(RecordOptions) + sizeof(double) + sizeof(Outcome));
  }
  size_t size_bytes() const {
    return factors_.size_bytes() + batch_.capacity() * sizeof(Record) + options_.capacity() * sizeof(RecordOptions) +
           losses_.capacity() * sizeof(double) + outcomes_.capacity() * sizeof(Outcome);
  }

  bool empty() const { return batch_.empty(); }
  size_t size() const { return batch_.size(); }
  // True if one more record may pass together with the waiting ones. A single record always may.
  bool Fits(const Record& record) const {
    return batch_.empty() ||
           (batch_.size() < graph_.max_records() && rows_ + record.inputs.size() <= graph_.max_rows());
  }
  // Queues a record; what it points at must stay valid until Run has returned.
  void Push(const Record& record, const RecordOptions& options) {
    batch_.push_back(record);
    options_.push_back(options);
    rows_ += record.inputs.size();
  }
  // Runs all waiting records, at least one, in order, each as if it were alone, and empties the queue. The result is
  // valid until the next call. `meanwhile` is called once if records are taken together: a device then computes, and
  // the host has nothing else to do.
  std::span<const Outcome> Run(
      RecordContext& context, Gradients gradients, FunctionRef<void()> meanwhile = [] {}) {
    outcomes_.clear();
    context.options_B = options_.data();
    if (gradients.at_once() != nullptr) {
      RunAtOnce(context, *gradients.at_once(), meanwhile);
    } else {
      batch_.size() == 1 ? RunOne(context, *gradients.one_by_one()) : RunSeveral(context, *gradients.one_by_one());
    }
    batch_.clear();
    options_.clear();
    rows_ = 0;
    return outcomes_;
  }

 private:
  // The number of factors: one for each parameter, two for a tied table, and the head's in tiles.
  static size_t NumFactors(const AnyGraph& graph) {
    if (graph.max_records() == 1 || !graph.device().memory.is_host()) return 0;
    const size_t most_tiles = kStoredLogitsBytes / (kHeadTile * sizeof(float) * graph.max_rows());
    const size_t tiles = std::min<size_t>(graph.architecture().num_items / kHeadTile, most_tiles) + 1;
    return 2 * graph.parameters().size() + 2 * tiles;
  }

  class RecomputedHead final : public HeadReplay {
   public:
    RecomputedHead(const RecordPass& pass, const RecordContext& context, size_t b)
        : pass_(pass), context_(context), b_(b) {}
    void Replay(FactorSink& sink) override {
      RecordSlice slice(b_, sink);
      pass_.graph_.ReplayHead(context_, pass_.batch_, slice);
    }

   private:
    const RecordPass& pass_;
    const RecordContext& context_;
    size_t b_;
  };

  double Loss(size_t b) const { return losses_[b] / options_[b].target_weight; }

  // Factors go to the method as they are computed, so the head need not keep them.
  void RunOne(RecordContext& context, RecordGradients& gradients) {
    gradients.BeginRecord(batch_[0].inputs);
    graph_.Forward(context, batch_, losses_.data());
    graph_.Backward(context, batch_, gradients);
    RecomputedHead replay(*this, context, 0);
    outcomes_.push_back({Loss(0), gradients.FinishRecord(replay)});
  }

  void RunSeveral(RecordContext& context, RecordGradients& gradients) {
    factors_.Begin(gradients);
    graph_.Forward(context, batch_, losses_.data());
    graph_.Backward(context, batch_, factors_);
    for (size_t b = 0; b < batch_.size(); ++b) {
      gradients.BeginRecord(batch_[b].inputs);
      factors_.Emit(b, gradients);
      RecomputedHead replay(*this, context, b);
      outcomes_.push_back({Loss(b), gradients.FinishRecord(replay)});
    }
  }

  void RunAtOnce(RecordContext& context, BatchGradients& gradients, FunctionRef<void()> meanwhile) {
    gradients.TakeOptions(options_.data());
    gradients.BeginRecords(batch_);
    graph_.Forward(context, batch_, losses_.data());
    graph_.Backward(context, batch_, gradients);
    meanwhile();
    const std::span<const RecordOutcome> outcomes = gradients.FinishRecords();
    for (size_t b = 0; b < batch_.size(); ++b) outcomes_.push_back({Loss(b), outcomes[b]});
  }

  const AnyGraph& graph_;
  FactorBatch factors_;
  std::vector<Record> batch_;
  std::vector<RecordOptions> options_;
  std::vector<double> losses_;
  std::vector<Outcome> outcomes_;
  size_t rows_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RECORD_PASS_H_
