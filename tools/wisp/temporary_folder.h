// A folder that is deleted with its contents when this object is destroyed.
#ifndef WISP_TOOLS_WISP_TEMPORARY_FOLDER_H_
#define WISP_TOOLS_WISP_TEMPORARY_FOLDER_H_

#include <filesystem>
#include <string>
#include <utility>

#include "runtime/core/native_path.h"
#include "runtime/core/platform.h"
#include "runtime/core/status.h"

namespace wisp::tools {

class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Create() {
    std::error_code error;
    const std::u8string begin = (std::filesystem::temp_directory_path(error) / "wisp-").u8string();
    std::string path = error ? std::string() : platform::MakeNewFolder({begin.begin(), begin.end()});
    if (path.empty()) return IoError(std::string(begin.begin(), begin.end()), "...: no temporary folder can be made");
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(NativePath(path_), ignored);
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TEMPORARY_FOLDER_H_
