#include "tools/wisp/system.h"
#if defined(_WIN32)

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
//
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "runtime/core/platform.h"

namespace wisp::tools {
namespace {

std::string ToUtf8(const wchar_t* text) {
  const int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, nullptr, 0, nullptr, nullptr);
  if (size <= 0) return {};
  std::string utf8(static_cast<size_t>(size), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text, -1, utf8.data(), size, nullptr, nullptr);
  utf8.pop_back();  // the zero at the end
  return utf8;
}

// The end of its starter ends this program at once: a thread waits for it.
DWORD WINAPI WaitForStarter(void* starter) {
  WaitForSingleObject(static_cast<HANDLE>(starter), INFINITE);
  TerminateProcess(GetCurrentProcess(), 1);
  return 0;
}

}  // namespace

void TakeCommandLine(int& argc, char**& argv) {
  SetConsoleOutputCP(CP_UTF8);
  for (std::FILE* file : {stdout, stderr}) _setmode(_fileno(file), _O_BINARY);
  int count = 0;
  wchar_t** const given = CommandLineToArgvW(GetCommandLineW(), &count);
  if (given == nullptr) return;
  static std::vector<std::string> words;
  static std::vector<char*> pointers;
  for (int i = 0; i < count; ++i) words.push_back(ToUtf8(given[i]));
  LocalFree(given);
  for (std::string& word : words) pointers.push_back(word.data());
  argc = count;
  pointers.push_back(nullptr);
  argv = pointers.data();
}

bool IsErrorTerminal() { return _isatty(_fileno(stderr)) != 0; }

void ExitWithStarter() {
  const char* starter = std::getenv("WISP_ENDS_WITH");
  if (starter == nullptr) return;
  const HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(std::strtoul(starter, nullptr, 10)));
  if (process == nullptr) std::exit(1);  // the starter has ended already
  const HANDLE thread = CreateThread(nullptr, 0, WaitForStarter, process, 0, nullptr);
  if (thread != nullptr) CloseHandle(thread);
}

std::string FindOwnFolder() {
  std::wstring path(32768, L'\0');  // the longest path that there is
  path.resize(GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  const std::string own = ToUtf8(path.c_str());
  return own.substr(0, platform::FindName(own));
}

void Become(const std::string&, std::vector<std::string>) { errno = ENOSYS; }  // there is no wisp-node here

}  // namespace wisp::tools

#endif  // defined(_WIN32)
