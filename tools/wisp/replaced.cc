#include "tools/wisp/replaced.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/core/platform.h"
#include "runtime/core/text.h"

namespace wisp::tools {
namespace {

struct Kind {
  const char* name;
  bool (*begins)(std::string_view text);
};

// `wisp synth` names its users "u00003", and writes them first in a row. A header may stand before the first row.
bool BeginsWithMadeUpUser(std::string_view text) {
  for (const std::string_view header :
       {"user,item,time\n", "user\titem\ttime\n", "user_id:token\titem_id:token\ttimestamp:float\n"}) {
    if (text.starts_with(header)) text.remove_prefix(header.size());
  }
  size_t digits = 0;
  while (1 + digits < text.size() && IsAsciiDigit(text[1 + digits])) ++digits;
  const char behind = 1 + digits < text.size() ? text[1 + digits] : '\0';
  return text.starts_with('u') && digits >= 5 && (behind == ' ' || behind == ',' || behind == '\t');
}

Kind GetKind(FileKind kind) {
  using Text = std::string_view;
  switch (kind) {
    case FileKind::kModel:
      return {"a wisp model", [](Text text) { return text.starts_with("\x89WSPM\r\n\x1a"); }};
    case FileKind::kTensors:  // an eight-byte length, then JSON
      return {"a safetensors file", [](Text text) { return text.size() > 8 && text[8] == '{'; }};
    case FileKind::kJson:
      return {"JSON", [](Text text) {
                const size_t first = text.find_first_not_of(" \t\r\n");
                return first != Text::npos && text[first] == '{';
              }};
    case FileKind::kPage:
      return {"a page of HTML", [](Text text) { return text.starts_with("<!doctype html>"); }};
    case FileKind::kMadeUpEvents:
      return {"one that `wisp synth` made", BeginsWithMadeUpUser};
    case FileKind::kItemNames:
      return {"a table of items and their names", [](Text text) { return text.starts_with("item\tname\n"); }};
    case FileKind::kLog:
      return {"a log", [](Text text) { return text.starts_with("SQLite format 3"); }};
  }
  return {"", nullptr};
}

// The first bytes of the file at the path. Empty for a pipe or a terminal, from which reading would consume data, and
// for a file that cannot be read: there the write decides.
std::string ReadBeginning(const std::string& path) {
  platform::FileInfo there;
  if (path.empty() || platform::GetInfo(path, there) != 0 || there.type != platform::FileType::kRegular) return "";
  const int file = platform::Open(path, platform::kRead | platform::kNoWait);
  if (file < 0) return "";
  char beginning[128];
  const int64_t size = platform::Read(file, beginning, sizeof beginning);
  platform::Close(file);
  return {beginning, static_cast<size_t>(std::max<int64_t>(size, 0))};
}

}  // namespace

Status CheckReplaces(FileKind kind, const NamedFile& output) {
  const std::string beginning = ReadBeginning(output.path);
  if (beginning.empty()) return OkStatus();
  const Kind wanted = GetKind(kind);
  if (wanted.begins(beginning)) return OkStatus();
  return InvalidArgument(output.name, " is ", output.path, ", a file that is there and is not ", wanted.name,
                         ": it will not be replaced; name another file");
}

bool IsOfKind(FileKind kind, const std::string& path) { return GetKind(kind).begins(ReadBeginning(path)); }

Status CheckReplacesNothing(const NamedFile& output) {
  if (ReadBeginning(output.path).empty()) return OkStatus();
  return InvalidArgument(output.name, " is ", output.path,
                         ", a file that is there, and nothing says whose events it holds: it will not be replaced; "
                         "name another file");
}

Status CheckReplacesMadeUp(const NamedFile& events, const NamedFile& names) {
  WISP_RETURN_IF_ERROR(CheckReplaces(FileKind::kMadeUpEvents, events));
  WISP_RETURN_IF_ERROR(CheckReplaces(FileKind::kItemNames, names));
  return ReadBeginning(names.path).empty() ? CheckReplacesNothing(events) : OkStatus();
}

Status CheckOutputFile(FileKind kind, const NamedFile& output, std::initializer_list<NamedFile> others) {
  WISP_RETURN_IF_ERROR(CheckOutput(output, others));
  return CheckReplaces(kind, output);
}

}  // namespace wisp::tools
