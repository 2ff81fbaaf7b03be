// Implements `wisp convert` with --f16, --int8, --int4 or --panels: the same model in fewer bytes
// (docs/small-models.md). It stores tables as float16, or matrices in blocks of small integers. It can also store the
// matrices unrounded, in panels that are used without a copy.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/model/model_file.h"
#include "tools/wisp/convert.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
namespace {

struct Target {
  WeightStorage storage;
  const char* said;  // in the description of the model
};

// One of the options is given.
Target ChooseTarget(const ConvertArguments& a) {
  if (a.int8) return {WeightStorage::kInt8, "weights in blocks of 8-bit integers"};
  if (a.int4) return {WeightStorage::kInt4, "weights in blocks of 4-bit integers, tables of 8-bit ones"};
  if (a.panels) return {WeightStorage::kPanels, "weights in panels"};
  return {WeightStorage::kHalf, "tables rounded to f16"};
}

const char* GetName(WeightStorage storage) {
  switch (storage) {
    case WeightStorage::kFloat:
      return "f32";
    case WeightStorage::kPanels:
      return "f32 panels";
    case WeightStorage::kHalf:
      return "f16";
    case WeightStorage::kInt8:
      return "int8";
    case WeightStorage::kInt4:
      return "int4";
  }
  return "";
}

Status Check(const ConvertArguments& a, const ModelFile& model, WeightStorage storage) {
  if (storage == WeightStorage::kPanels && model.storage() > storage)
    return InvalidArgument(a.in, ": its ", (model.storage() == WeightStorage::kHalf ? "tables are " : "weights are "),
                           GetName(model.storage()), "; allowed for --panels is a model that is f32 throughout");
  if (model.storage() >= storage)
    return InvalidArgument(a.in, ": its ", (storage == WeightStorage::kHalf ? "tables are " : "weights are "),
                           GetName(model.storage()), " already");
  const auto may = [&](const ParameterSpec& p) { return MayBePanels(model.architecture(), p); };
  if (storage == WeightStorage::kHalf || std::any_of(model.parameters().begin(), model.parameters().end(), may))
    return OkStatus();
  return Unsupported(a.in, ": a model with Re-Attention computes with squares of its weights as floats; allowed is ",
                     "--f16");
}

// Only the stored, already rounded weights exist, so the errors of both roundings add up.
void WarnIfRoundedTwice(const ConvertArguments& a, const ModelFile& model, WeightStorage storage) {
  if (model.storage() != WeightStorage::kInt8 || storage != WeightStorage::kInt4) return;
  std::fprintf(stderr,
               "wisp: warning: %s has weights that were rounded to int8 before, and they are rounded a second time; "
               "convert the model that it was made of with --int4 to lose a little less\n",
               OneLine(a.in).c_str());
}

// Keeps everything but how weights are stored. Rounding is post-processing, so the statements of the provenance still
// hold.
Status Write(const ConvertArguments& a, const ModelFile& model, const Target& target) {
  std::vector<float> room;
  ModelContents contents = GetContents(model, room);
  contents.storage = target.storage;
  contents.description +=
      (contents.description.empty() ? "" : "; ") + std::string(target.said) + " by wisp " + Version();
  return WriteModel(a.out, contents);
}

// Returns the largest difference that rounding made to a weight.
double LargestError(const ModelFile& before, const ModelFile& after) {
  std::vector<float> room_before, room_after;
  const auto old_weights = before.AllWeights(room_before), new_weights = after.AllWeights(room_after);
  double largest = 0;
  for (size_t i = 0; i < old_weights.size(); ++i)
    largest = std::max<double>(largest, std::abs(old_weights[i] - new_weights[i]));
  return largest;
}

void Print(const ConvertArguments& a, const ModelFile& before, const ModelFile& after, OutputFormat format) {
  const double largest = LargestError(before, after);
  if (format == OutputFormat::kJson) {
    PrintJson(Json({{"model", a.out},
                    {"weights", GetName(after.storage())},
                    {"bytes", after.size_bytes()},
                    {"bytes_before", before.size_bytes()},
                    {"largest_rounding", largest}}));
    return;
  }
  PrintText("%s: %s in %s, %llu bytes of %llu; rounding moved no weight by more than %.2g\n", OneLine(a.out).c_str(),
            (after.storage() == WeightStorage::kHalf ? "tables" : "weights"), GetName(after.storage()),
            static_cast<unsigned long long>(after.size_bytes()), static_cast<unsigned long long>(before.size_bytes()),
            largest);
}

}  // namespace

Status Compress(const ConvertArguments& a, OutputFormat format) {
  const Target target = ChooseTarget(a);
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kModel, {"--out", a.out}, {{"the model", a.in}}));
  WISP_ASSIGN_OR_RETURN(const ModelFile before, ModelFile::Open(a.in, Verify::kFull, Accept::kAny));
  WISP_RETURN_IF_ERROR(Check(a, before, target.storage));
  WarnIfRoundedTwice(a, before, target.storage);
  WISP_RETURN_IF_ERROR(Write(a, before, target));
  WISP_ASSIGN_OR_RETURN(const ModelFile after, ModelFile::Open(a.out, Verify::kFull, Accept::kAny));
  Print(a, before, after, format);
  return OkStatus();
}

}  // namespace wisp::tools
