// A path as std::filesystem and streams take it. They read bytes by the system's code page on Windows, and our paths
// are UTF-8 everywhere.
//
//   std::ifstream file(NativePath(path), std::ios::binary);
#ifndef WISP_RUNTIME_CORE_NATIVE_PATH_H_
#define WISP_RUNTIME_CORE_NATIVE_PATH_H_

#include <filesystem>
#include <string>

namespace wisp {

inline std::filesystem::path NativePath(const std::string& path) {
#if defined(_WIN32)
  return std::filesystem::path(std::u8string(path.begin(), path.end()));
#else
  return path;
#endif
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_NATIVE_PATH_H_
