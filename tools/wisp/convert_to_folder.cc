// Implements `wisp convert --family`: writes a model with the names of Hugging Face, as a folder or as tensors alone
// (docs/convert.md).
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "tools/convert/hugging_face/config.h"
#include "tools/convert/hugging_face/export.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/convert.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
namespace {

namespace hf = convert::hugging_face;

bool IsTensorsFile(const std::string& path) { return path.ends_with(".safetensors"); }

// Writes the text to a temporary file beside `path`, without replacing `path` yet.
Result<FileReplacement> Prepare(const std::string& path, const std::string& text) {
  WISP_RETURN_IF_ERROR(MakeFolder(GetFolder(path)));
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path, FileAccess::kShared));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
  return file;
}

// Warns about settings that make another program compute something else from the same tensors.
void WarnAboutLoss(const ModelFile& model) {
  if (model.is_classifier() && model.classifier().norm_bound > 0) {
    std::fprintf(
        stderr,
        "wisp: the representation is clipped to a norm of %g before the head; a model of transformers does not "
        "do that\n",
        model.classifier().norm_bound);
  }
  const ModelLists lists = model.lists();
  if (lists.allow_seen || !lists.withheld.empty()) {
    Warn(std::string("a folder does not say ") +
         (lists.withheld.empty() ? "that lists may hold items of the history"
                                 : "which items are retired or have not learned yet: " +
                                       Counted(lists.withheld.size(), "item") + " would be shown again") +
         "; wisp convert to a safetensors file without --family keeps it");
  }
}

}  // namespace

Status ExportFolder(const ConvertArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const hf::Family* family, hf::FamilyNamed(a.family));
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(a.in, Verify::kFull, Accept::kAny));
  const Architecture& architecture = model.architecture();
  const std::vector<std::string> names =
      model.is_classifier() ? model.classifier().class_names : std::vector<std::string>();
  WISP_ASSIGN_OR_RETURN(const hf::TextFiles texts, hf::ExportTexts(a.in, *family, architecture, names));
  std::vector<float> dequantised;
  WISP_ASSIGN_OR_RETURN(const hf::ExportedTensors out,
                        hf::ExportTensors(a.in, *family, architecture, model.AllWeights(dequantised)));
  const bool alone = IsTensorsFile(a.out);
  if (!alone) WISP_RETURN_IF_ERROR(MakeFolder(a.out));
  const std::string tensors = alone ? a.out : a.out + "/model.safetensors";
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kTensors, {"--out", tensors}, {{"the model", a.in}}));
  // If the folder exists, nothing in it is replaced before all other files are written. The tensors are the exception,
  // because they need the most space.
  std::vector<FileReplacement> prepared;
  for (const auto& [name, text] : texts) {
    if (alone) break;
    const std::string path = a.out + "/" + name;
    if (name.ends_with(".json")) WISP_RETURN_IF_ERROR(CheckReplaces(FileKind::kJson, {"a file of --out", path}));
    WISP_ASSIGN_OR_RETURN(FileReplacement file, Prepare(path, text));
    prepared.push_back(std::move(file));
  }
  WISP_RETURN_IF_ERROR(convert::WriteSafeTensors(tensors, out.tensors, {{"format", "pt"}}));
  for (FileReplacement& file : prepared) WISP_RETURN_IF_ERROR(file.Commit());
  WarnAboutLoss(model);
  if (format == OutputFormat::kJson) {
    PrintJson(nlohmann::ordered_json({{"out", a.out},
                                      {"family", family->name},
                                      {"model_class", hf::WrittenAs(*family, architecture.head.kind).model_class},
                                      {"tensors", out.tensors.size()}}));
    return OkStatus();
  }
  PrintText("%s: %s, %zu tensors%s; it carries no privacy guarantee, the model keeps its own\n", OneLine(a.out).c_str(),
            hf::WrittenAs(*family, architecture.head.kind).model_class, out.tensors.size(),
            alone ? " without a config.json" : "");
  return OkStatus();
}

}  // namespace wisp::tools
