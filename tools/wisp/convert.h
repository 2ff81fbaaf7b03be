// The parts of `wisp convert` (cmd_convert.cc), one for each kind of work, and what they share.
#ifndef WISP_TOOLS_WISP_CONVERT_H_
#define WISP_TOOLS_WISP_CONVERT_H_

#include <string>
#include <vector>

#include "runtime/core/date.h"
#include "runtime/model/model_file.h"
#include "tools/convert/foreign_sasrec.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/output.h"

namespace wisp::tools {

// Each checks its output before it begins to work. The first two read other programs' models, the others a wisp model.
Status ImportTensors(const ConvertArguments& arguments, OutputFormat format);  // a safetensors file of a recommender
Status ImportFolder(const ConvertArguments& arguments, OutputFormat format);   // a folder of Hugging Face
Status ExportTensors(const ConvertArguments& arguments, OutputFormat format);
Status ExportFolder(const ConvertArguments& arguments, OutputFormat format);  // with --family
Status Merge(const ConvertArguments& arguments, OutputFormat format);
Status Compress(const ConvertArguments& arguments, OutputFormat format);

inline std::string GetDataset(const ConvertArguments& a) { return a.dataset.empty() ? kUnknownDataset : a.dataset; }

// Nothing that the file says about itself is believed: weights from outside have no guarantee here, and they do not
// count as untrained either.
inline ProvenanceEntry Imported(const ConvertArguments& a, bool lost_guarantee) {
  const char* lost = lost_guarantee ? "; the file stated a privacy guarantee, which was not carried over" : "";
  return {.description = "imported from " + FileName(a.in) + ", not trained by wisp" + lost,
          .dataset = GetDataset(a),
          .date = Today()};
}

// Reads the architecture and weights of a SASRec that another program wrote. Warns where its lists differ from ours.
Status ReadSasrec(const ConvertArguments& arguments, const convert::SafeTensorsFile& file, convert::SasrecLayout layout,
                  ModelContents& contents, std::vector<float>& weights);

// Returns "1", "2", ...: the keys of a SASRec's items if nobody names others. Its own numbers start at 1, after
// padding.
std::vector<std::string> NumbersFromOne(uint32_t count);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_CONVERT_H_
