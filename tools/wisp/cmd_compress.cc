// wisp compress: the same model with its tables as halves (docs/f16.md).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "runtime/model/model_file.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"

namespace wisp::tools {
namespace {

using Json = nlohmann::ordered_json;

// All of it but how tables are stored. Rounding is post-processing: what the provenance states holds as before.
Status Write(const CompressArguments& a, const ModelFile& model) {
  if (model.tables() == TableStorage::kHalf) return InvalidArgument(a.model, ": its tables are f16 already");
  std::vector<float> room;
  ModelContents contents = ContentsOf(model, room);
  contents.tables = TableStorage::kHalf;
  contents.description +=
      (contents.description.empty() ? "" : "; ") + ("tables rounded to f16 by wisp compress " + Version());
  return WriteModel(a.out, contents);
}

// The largest difference that rounding made to a weight.
double LargestError(const ModelFile& before, const ModelFile& after) {
  std::vector<float> room_before, room_after;
  const auto old_weights = before.AllWeights(room_before), new_weights = after.AllWeights(room_after);
  double largest = 0;
  for (size_t i = 0; i < old_weights.size(); ++i)
    largest = std::max<double>(largest, std::abs(old_weights[i] - new_weights[i]));
  return largest;
}

void Print(const CompressArguments& a, const ModelFile& before, const ModelFile& after, OutputFormat format) {
  const double largest = LargestError(before, after);
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", Json({{"model", a.out},
                              {"tables", a.tables},
                              {"bytes", after.size_bytes()},
                              {"bytes_before", before.size_bytes()},
                              {"largest_rounding", largest}})
                            .dump(2)
                            .c_str());
    return;
  }
  std::printf("%s: tables in f16, %llu bytes of %llu; rounding moved no weight by more than %.2g\n", a.out.c_str(),
              static_cast<unsigned long long>(after.size_bytes()), static_cast<unsigned long long>(before.size_bytes()),
              largest);
}

}  // namespace

Status Compress(const CompressArguments& a, OutputFormat format) {
  if (a.tables != "f16") return InvalidArgument("--tables is '", a.tables, "', allowed is f16");
  WISP_RETURN_IF_ERROR(CheckOutput({"--out", a.out}, {{"the model", a.model}}));
  WISP_ASSIGN_OR_RETURN(const ModelFile before, ModelFile::Open(a.model, Verify::kFull, Accept::kAny));
  WISP_RETURN_IF_ERROR(Write(a, before));
  WISP_ASSIGN_OR_RETURN(const ModelFile after, ModelFile::Open(a.out, Verify::kFull, Accept::kAny));
  Print(a, before, after, format);
  return OkStatus();
}

}  // namespace wisp::tools
