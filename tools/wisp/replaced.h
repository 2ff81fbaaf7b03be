// Checks of the files that commands write. An existing file is only replaced by one of its own kind: a mistyped name
// could point to anything.
//
//   WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kModel, {"--out", a.out}, {{"--model", a.model}}));
#ifndef WISP_TOOLS_WISP_REPLACED_H_
#define WISP_TOOLS_WISP_REPLACED_H_

#include <initializer_list>
#include <string>

#include "runtime/core/file.h"
#include "runtime/core/status.h"

namespace wisp::tools {

enum class FileKind {
  kModel,    // an adapter too
  kTensors,  // safetensors
  kJson,
  kPage,          // HTML, as `wisp report` writes it
  kMadeUpEvents,  // text with the users of `wisp synth`
  kItemNames,     // the names of its items
  kLog,           // SQLite, which is never replaced: runtime/core/file.h refuses it
};

// Checks that the path is empty, or has no file, an empty file or a file of this kind, by its first bytes.
// kInvalidArgument names the option and the path.
Status CheckReplaces(FileKind kind, const NamedFile& output);

// Returns true if a file is at the path, and its first bytes are those of this kind.
bool IsOfKind(FileKind kind, const std::string& path);

// Checks that the path is empty, or has no file or an empty one. For a file whose kind does not tell who wrote it.
Status CheckReplacesNothing(const NamedFile& output);

// Checks what `wisp synth` would replace by text: a file of events that is there must begin as one of its own and have
// the names of its items beside it.
Status CheckReplacesMadeUp(const NamedFile& events, const NamedFile& names);

// Runs CheckReplaces and CheckOutput (runtime/core/file.h): all checks of an output file before the work starts.
Status CheckOutputFile(FileKind kind, const NamedFile& output, std::initializer_list<NamedFile> others);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_REPLACED_H_
