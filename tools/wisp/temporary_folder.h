// A folder that is deleted with its contents when this object is destroyed.
#ifndef WISP_TOOLS_WISP_TEMPORARY_FOLDER_H_
#define WISP_TOOLS_WISP_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "runtime/core/status.h"

namespace wisp::tools {

class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Create() {
    std::error_code error;
    std::string pattern = (std::filesystem::temp_directory_path(error) / "wisp-XXXXXX").string();
    if (error || mkdtemp(pattern.data()) == nullptr) return IoError(pattern, ": no temporary folder can be made");
    return TemporaryFolder(std::move(pattern));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TEMPORARY_FOLDER_H_
