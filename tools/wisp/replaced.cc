#include "tools/wisp/replaced.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "runtime/core/text.h"

namespace wisp::tools {
namespace {

struct Kind {
  const char* name;
  bool (*begins)(std::string_view text);
};

// `wisp synth` names its users "u00003 ".
bool BeginsWithUser(std::string_view text) {
  size_t digits = 0;
  while (1 + digits < text.size() && IsAsciiDigit(text[1 + digits])) ++digits;
  return text.starts_with('u') && digits >= 5 && text.substr(1 + digits).starts_with(' ');
}

Kind KindOf(FileKind kind) {
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
    case FileKind::kEventsCsv:
      return {"a table that begins with 'user,item,time'",
              [](Text text) { return text.starts_with("user,item,time\n") || text.starts_with("user,item,time\r\n"); }};
    case FileKind::kEventsTsv:
      return {"a table that begins with user, item and time",
              [](Text text) { return text.starts_with("user\titem\ttime\n"); }};
    case FileKind::kEventsInter:
      return {"an .inter file", [](Text text) { return text.starts_with("user_id:token\titem_id:token\t"); }};
    case FileKind::kEventLines:
      return {"a file of lines such as 'u00003 tea-mint'", BeginsWithUser};
    case FileKind::kItemNames:
      return {"a table of items and their names", [](Text text) { return text.starts_with("item\tname\n"); }};
    case FileKind::kLog:
      return {"a log", [](Text text) { return text.starts_with("SQLite format 3"); }};
  }
  return {"", nullptr};
}

}  // namespace

Status CheckReplaces(FileKind kind, const NamedFile& output) {
  if (output.path.empty()) return OkStatus();
  // Reading from a pipe or a terminal would consume data, and an unreadable file cannot be recognised. In these cases
  // the write decides.
  struct stat there;
  if (stat(output.path.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) return OkStatus();
  const int file = open(output.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return OkStatus();
  char beginning[64];
  ssize_t size = 0;
  do size = read(file, beginning, sizeof beginning);
  while (size < 0 && errno == EINTR);
  close(file);
  if (size <= 0) return OkStatus();
  const Kind wanted = KindOf(kind);
  if (wanted.begins(std::string_view(beginning, static_cast<size_t>(size)))) return OkStatus();
  return InvalidArgument(output.name, " is ", output.path, ", a file that is there and is not ", wanted.name,
                         ": it will not be replaced; name another file");
}

Status CheckOutputOf(FileKind kind, const NamedFile& output, std::initializer_list<NamedFile> others) {
  WISP_RETURN_IF_ERROR(CheckOutput(output, others));
  return CheckReplaces(kind, output);
}

}  // namespace wisp::tools
