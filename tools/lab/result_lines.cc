#include "tools/lab/result_lines.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/core/file.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

namespace fs = std::filesystem;

// Locks a folder for one writer at a time, until the destructor or the end of the process.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) : fd_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    int result = -1;
    if (fd_ >= 0) {
      do {
        result = flock(fd_, LOCK_EX);
      } while (result != 0 && errno == EINTR);
    }
    if (result != 0) status_ = IoError(folder, ": the folder cannot be locked: ", std::strerror(errno));
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  const Status& status() const { return status_; }

 private:
  int fd_;
  Status status_;
};

Result<std::string> ReadText(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error) && !error) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  // An empty file sets failbit on the insertion, so only the file's own state counts.
  if (!file.is_open() || file.bad()) return IoError(path, ": the results cannot be read");
  return text.str();
}

Result<std::vector<ResultLine>> Parse(const std::string& path, const std::string& text) {
  std::vector<ResultLine> lines;
  for (size_t begin = 0; begin < text.size();) {
    const std::string where = path + ", line " + std::to_string(lines.size() + 1);
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos)
      return InvalidData(where, ": the last line is cut off; remove it and run its cell again");
    ResultLine line = ResultLine::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                        text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!line.is_object()) return InvalidData(where, ": it is damaged, allowed is a JSON object on one line");
    lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

Result<std::vector<ResultLine>> ReadResultLines(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return Parse(path, text);
}

Status CheckAppendable(const std::string& path) {
  WISP_RETURN_IF_ERROR(MakeFolder(GetFolder(path)));
  const FolderLock lock(GetFolder(path));
  WISP_RETURN_IF_ERROR(lock.status());
  return FileReplacement::Begin(path).status();  // and is dropped again
}

Status AppendResultLine(const std::string& path, const ResultLine& line) {
  WISP_RETURN_IF_ERROR(MakeFolder(GetFolder(path)));
  const FolderLock lock(GetFolder(path));
  WISP_RETURN_IF_ERROR(lock.status());
  WISP_ASSIGN_OR_RETURN(std::string text, ReadText(path));
  WISP_RETURN_IF_ERROR(Parse(path, text).status());
  text += JsonText(line) + "\n";
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
  return file.Commit();
}

}  // namespace wisp::tools
