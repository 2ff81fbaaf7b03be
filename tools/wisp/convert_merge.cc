// Implements `wisp convert --adapter`: a model and an adapter become one model.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/layers/adapter.h"
#include "runtime/model/model_file.h"
#include "tools/wisp/convert.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {

// Adding is post-processing, so the statements of the adapter's provenance hold for the sum.
Status Merge(const ConvertArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(
      CheckOutputFile(FileKind::kModel, {"--out", a.out}, {{"the model", a.in}, {"--adapter", a.adapter}}));
  WISP_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::OpenWithAdapter(a.in, a.adapter, Verify::kFull, Accept::kAny));
  std::vector<float> room;
  ModelContents contents = GetContents(file, room);
  const std::vector<float> merged = MergedWeights(file.architecture(), contents.weights);
  contents.architecture = WithoutAdapter(file.architecture());
  contents.weights = merged;
  contents.base_hash = 0;
  // In blocks of integers an adapter's change may be smaller than a step, and would be rounded away. The tables of such
  // a base are not float16 either. So the result is stored as float32.
  contents.storage = file.storage() <= WeightStorage::kHalf ? file.storage() : WeightStorage::kFloat;
  contents.description += (contents.description.empty() ? "" : "; ") + ("adapter merged by wisp " + Version());
  WISP_RETURN_IF_ERROR(WriteModel(a.out, contents));
  if (format == OutputFormat::kJson) {
    PrintJson(nlohmann::ordered_json({{"model", a.out}, {"floats", merged.size()}}));
  } else {
    PrintText("%s: %zu weights, the adapter among them\n", OneLine(a.out).c_str(), merged.size());
  }
  return OkStatus();
}

}  // namespace wisp::tools
