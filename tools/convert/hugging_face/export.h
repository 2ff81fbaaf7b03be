// Writes our models as tensors with the names of Hugging Face. It reads the tables of families.h in the other
// direction. config.h writes config.json.
//
//   WISP_ASSIGN_OR_RETURN(const ExportedTensors out, ExportTensors("m.wisp", BertFamily(), architecture, weights));
//   WriteSafeTensors("out/model.safetensors", out.tensors, {{"format", "pt"}});
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_EXPORT_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_EXPORT_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/architecture.h"
#include "tools/convert/hugging_face/families.h"
#include "tools/convert/safetensors.h"

namespace wisp::convert::hugging_face {

// Tensors point into the given weights, or into `made`. Movable.
struct ExportedTensors {
  std::vector<TensorToWrite> tensors;
  std::vector<std::vector<float>> made;  // transposed, or with rows put before them
};

// `weights` is the flat buffer of ListParameters(architecture). Rows that a family has before its first position are
// zeros. Returns kUnsupported if the family has no tensor for a parameter.
Result<ExportedTensors> ExportTensors(const std::string& name, const Family& family, const Architecture& architecture,
                                      std::span<const float> weights);

// The small files beside them, each with its name within the folder: config.json, and the files that tell
// sentence-transformers of a mean or of a unit length. Returns kUnsupported if the family cannot express a part of the
// architecture.
using TextFiles = std::vector<std::pair<std::string, std::string>>;
Result<TextFiles> ExportTexts(const std::string& name, const Family& family, const Architecture& architecture,
                              const std::vector<std::string>& class_names);

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_EXPORT_H_
