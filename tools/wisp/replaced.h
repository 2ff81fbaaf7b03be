// Files that commands write. A file that is there is replaced by one of its own kind alone: a name that was mistyped
// may be anything.
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
  kItemNames,   // likewise
  kLog,         // SQLite, which no new file makes up for: runtime/core/file.h refuses it then
};

// That nothing is at the path but a file of this kind, or an empty one: kInvalidArgument names both. By the beginning
// of the file. An empty path is none.
Status CheckReplaces(FileKind kind, const NamedFile& output);

// CheckReplaces and CheckOutput (runtime/core/file.h): all that commands ask of a file before they work for it.
Status CheckOutputOf(FileKind kind, const NamedFile& output, std::initializer_list<NamedFile> others);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_REPLACED_H_
