#include "tools/lab/reproduce/measured_runs.h"

#include <algorithm>

#include "runtime/train/run/records.h"
#include "tools/wisp/dataset.h"

namespace wisp::tools {

Result<Json> MeasuredRuns::Figures(const ReproductionCell& cell) {
  if (cell.kind == ReproductionCell::Kind::kBench) return BenchFigures(cell.bench);
  if (cell.kind == ReproductionCell::Kind::kBaseline) return BaselineFigures(cell);
  if (!decodes_.contains(&cell)) {
    if (std::find(expected_.begin(), expected_.end(), &cell) == expected_.end()) expected_.push_back(&cell);
    WISP_RETURN_IF_ERROR(MeasureExpected());
  }
  return decodes_[&cell];
}

// Reads and divides the data as a training run does.
Result<Json> MeasuredRuns::BaselineFigures(const ReproductionCell& cell) {
  const RunSpec& r = cell.recipe;
  if (!baselines_) {
    WISP_ASSIGN_OR_RETURN(const data::ReadResult read,
                          ReadData(decoding_.data,
                                   {.min_user_events = r.min_user_events, .min_item_events = r.min_item_events},
                                   nullptr));
    const data::Sequences& s = read.sequences;
    const bool fits = (decoding_.users == 0 || s.num_users() == decoding_.users) &&
                      (decoding_.items == 0 || s.num_items() == decoding_.items);
    if (!fits)
      return InvalidData(decoding_.data.path, " has ", s.num_users(), " users and ", s.num_items(),
                         " items, the table wants ", decoding_.users, " and ", decoding_.items);
    const data::Split split = data::MakeSplit(s, r.hold_out);
    std::vector<RankingCase> cases;
    for (const data::HeldOutItem& held : split.test) cases.push_back({held.history, held.item});
    if (cases.empty()) return InvalidData(decoding_.data.path, ": no user has enough events to be tested");
    Workers workers(threads_);
    baselines_ =
        EvaluateBaselines(s.num_items(), split.train, cases, workers, {.allow_seen = r.allow_seen.value_or(false)});
  }
  const RankingQuality& q = cell.transitions ? baselines_->transitions : baselines_->popularity;
  return Json{{"ndcg@10", q.ndcg_at_10}, {"hit@10", q.hit_at_10}, {"users", q.num_users}};
}

Result<Json> MeasuredRuns::BenchFigures(const BenchCell& cell) {
  Measured& measured = benches_[cell.together];
  if (measured.methods.empty()) {
    BenchArguments arguments = cell.arguments;
    arguments.threads = threads_;
    WISP_ASSIGN_OR_RETURN(measured.methods,
                          arguments.what == "sparse" ? MeasureSparse(arguments) : MeasureClipping(arguments));
    measured.id = Timestamp() + "-" + std::to_string(benches_.size());
  }
  for (const MethodFigures& m : measured.methods) {
    if (m.method != cell.method) continue;
    Json figures = m.figures;
    figures["ops"] = kernels::BestOps().name;
    figures["together"] = measured.id;
    return figures;
  }
  return InvalidArgument("the bench ", cell.arguments.what, " has no method '", cell.method, "'");
}

Status MeasuredRuns::MeasureExpected() {
  std::vector<DecodeCell> cells;
  for (const ReproductionCell* cell : expected_) cells.push_back(cell->decode);
  WISP_ASSIGN_OR_RETURN(const DecodingFiles files, CheckDecodingFiles(decoding_));
  std::vector<Json> figures;
  Status status;
  const double seconds = Seconds([&] {
    Result<std::vector<Json>> measured = MeasureDecoding(decoding_, cells);
    status = measured.status();
    if (measured.ok()) figures = *std::move(measured);
  });
  WISP_RETURN_IF_ERROR(status);
  const std::string id = Timestamp();
  for (size_t i = 0; i < expected_.size(); ++i) {
    figures[i]["measured_seconds"] = seconds;
    figures[i]["together"] = id;
    figures[i]["model"] = files.model;
    if (cells[i].NeedsBase()) figures[i]["base"] = files.base;
    decodes_[expected_[i]] = figures[i];
  }
  return OkStatus();
}

}  // namespace wisp::tools
