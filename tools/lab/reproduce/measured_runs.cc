#include "tools/lab/reproduce/measured_runs.h"

#include <algorithm>

#include "tools/wisp/dataset.h"

namespace wisp::tools {

Result<Json> MeasuredRuns::Figures(const ReproductionCell& cell) {
  if (cell.kind == ReproductionCell::Kind::kBench) return BenchFigures(cell.bench);
  if (!decodes_.contains(&cell)) {
    if (std::find(expected_.begin(), expected_.end(), &cell) == expected_.end()) expected_.push_back(&cell);
    WISP_RETURN_IF_ERROR(MeasureExpected());
  }
  return decodes_[&cell];
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
