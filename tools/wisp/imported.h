// The provenance of weights from outside: where they came from, and that nothing vouches for them. The commands that
// convert files and folders share it.
#ifndef WISP_TOOLS_WISP_IMPORTED_H_
#define WISP_TOOLS_WISP_IMPORTED_H_

#include <string>
#include <vector>

#include "runtime/core/date.h"
#include "runtime/model/model_file.h"
#include "tools/convert/foreign_sasrec.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/output.h"

namespace wisp::tools {

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

// `wisp convert` of a Hugging Face folder, and `wisp export` to one (cmd_convert_folder.cc, cmd_export_folder.cc).
Status ConvertFolder(const ConvertArguments& arguments, OutputFormat format);
Status ExportFolder(const ExportArguments& arguments, OutputFormat format);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_IMPORTED_H_
