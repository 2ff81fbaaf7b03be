// Checks of the files that commands write. An existing file is only replaced by one of its own kind: a mistyped name
// could point to anything.
//
//   WISP_RETURN_IF_ERROR(CheckOutputOf(FileKind::kModel, {"--out", a.out}, {{"--model", a.model}}));
#ifndef WISP_TOOLS_WISP_REPLACED_H_
#define WISP_TOOLS_WISP_REPLACED_H_

#include <initializer_list>

#include "runtime/core/file.h"
#include "runtime/core/status.h"

namespace wisp::tools {

enum class FileKind {
  kModel,    // an adapter too
  kTensors,  // safetensors
  kJson,
  kPage,       // HTML, as `wisp report` writes it
  kEventsCsv,  // "user,item,time", as `wisp log export` and `wisp synth` write them
  kEventsTsv,
  kEventsInter,
  kEventLines,  // "u00003 tea-mint", as `wisp synth` writes them
  kItemNames,   // as `wisp synth` writes them
  kLog,         // SQLite, which is never replaced: runtime/core/file.h refuses it
};

// Checks that the path is empty, or has no file, an empty file or a file of this kind, by its first bytes.
// kInvalidArgument names the option and the path.
Status CheckReplaces(FileKind kind, const NamedFile& output);

// Runs CheckReplaces and CheckOutput (runtime/core/file.h): all checks of an output file before the work starts.
Status CheckOutputOf(FileKind kind, const NamedFile& output, std::initializer_list<NamedFile> others);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_REPLACED_H_
