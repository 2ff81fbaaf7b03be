// A temporary folder for one test, which is deleted with its contents. Declare it before objects that hold its files
// open.
#ifndef WISP_TESTS_UNIT_CORE_TEMPORARY_FOLDER_H_
#define WISP_TESTS_UNIT_CORE_TEMPORARY_FOLDER_H_

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

#include "runtime/core/platform.h"

namespace wisp::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = platform::MakeNewFolder((std::filesystem::temp_directory_path() / "wisp_").generic_string());
    if (path_.empty()) std::abort();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  // Returns the path of something in the folder.
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }
  size_t NumFiles() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::string path_;
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_CORE_TEMPORARY_FOLDER_H_
