// Implements `wisp convert`: decides by the input and the options what is done, and refuses combinations that mean
// nothing. The parts are in convert_*.cc.
#include <filesystem>
#include <string>
#include <utility>

#include "runtime/core/native_path.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/convert.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
namespace {

constexpr const char* kAllowed =
    "allowed are --adapter, which merges; one of --f16, --int8, --int4 and --panels, which compresses; an --out that "
    "ends in .safetensors, which exports; and --family, which exports by the names of Hugging Face";

using Given = std::pair<const char*, bool>;

// Returns the first option that is given; null if none is.
const char* FirstGiven(std::initializer_list<Given> options) {
  for (const auto& [option, given] : options) {
    if (given) return option;
  }
  return nullptr;
}

bool IsTensors(const std::string& path) { return path.ends_with(".safetensors"); }

Status ConvertModel(const ConvertArguments& a, OutputFormat format) {
  const ConvertArguments none;
  const char* const of_import = FirstGiven({{"--config", !a.config.empty()},
                                            {"--item-keys", !a.item_keys.empty()},
                                            {"--item-names", !a.item_names.empty()},
                                            {"--dataset", !a.dataset.empty()},
                                            {"--report", !a.report.empty()},
                                            {"--max-length", a.max_length > 0},
                                            {"--pooling", a.pooling != none.pooling},
                                            {"--no-tokenizer", a.no_tokenizer},
                                            {"--allow-seen", a.allow_seen}});
  if (of_import != nullptr)
    return InvalidArgument(of_import, " is for models of other programs, and ", a.in, " is a wisp model: ", kAllowed);
  const Given works[] = {{"--adapter", !a.adapter.empty()},
                         {"--f16", a.f16},
                         {"--int8", a.int8},
                         {"--int4", a.int4},
                         {"--panels", a.panels},
                         {"--family", !a.family.empty()}};
  const char* work = nullptr;
  for (const auto& [option, given] : works) {
    if (!given) continue;
    if (work != nullptr)
      return InvalidArgument(work, " and ", option,
                             " are both given, allowed is one of them: convert twice, the second time what the first "
                             "has written");
    work = option;
  }
  if (!a.family.empty() && a.out.ends_with(".wisp"))
    return InvalidArgument("--family exports to a folder or a safetensors file, and --out is ", a.out,
                           ", which would be a wisp model");
  if (!a.family.empty()) return ExportFolder(a, format);
  if (work != nullptr && IsTensors(a.out))
    return InvalidArgument(work, " writes a wisp model, and --out is ", a.out,
                           ", a safetensors file: convert twice, the second time what the first has written");
  if (!a.adapter.empty()) return Merge(a, format);
  if (work != nullptr) return Compress(a, format);
  if (IsTensors(a.out)) return ExportTensors(a, format);
  std::error_code error;
  if (std::filesystem::is_directory(NativePath(a.out), error))
    return InvalidArgument("--out is ", a.out,
                           ", a folder, which is written by the names of Hugging Face: give --family");
  return InvalidArgument(a.in, ": is a wisp model, and nothing says what to make of it: ", kAllowed);
}

Status Import(const ConvertArguments& a, bool is_folder, OutputFormat format) {
  const char* const of_models = FirstGiven({{"--adapter", !a.adapter.empty()},
                                            {"--f16", a.f16},
                                            {"--int8", a.int8},
                                            {"--int4", a.int4},
                                            {"--panels", a.panels},
                                            {"--family", !a.family.empty()}});
  if (of_models != nullptr)
    return InvalidArgument(of_models, " changes a wisp model, which ", a.in,
                           " is not: convert it first, then what that has written");
  if (IsTensors(a.out))
    return InvalidArgument("--out is ", a.out, ", a safetensors file, and ", a.in,
                           " is no wisp model: allowed is the name of a model file to write");
  return is_folder ? ImportFolder(a, format) : ImportTensors(a, format);
}

}  // namespace

Status Convert(const ConvertArguments& a, OutputFormat format) {
  std::error_code error;
  if (!std::filesystem::exists(NativePath(a.in), error))
    return IoError(a.in,
                   ": there is no such folder or file, and nothing is downloaded; allowed are a wisp model, a "
                   "folder with config.json and model.safetensors, and a safetensors file");
  if (std::filesystem::is_directory(NativePath(a.in), error)) return Import(a, true, format);
  return IsOfKind(FileKind::kModel, a.in) || a.in.ends_with(".wisp") ? ConvertModel(a, format)
                                                                     : Import(a, false, format);
}

}  // namespace wisp::tools
