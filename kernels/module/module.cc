#include "kernels/module/module.h"

#include <dlfcn.h>
#include <locale.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

namespace wisp::kernels {
namespace {

bool IsInProgram(const Dl_info& info) {
  Dl_info program;
  return dladdr(reinterpret_cast<const void*>(getauxval(AT_PHDR)), &program) != 0 &&
         program.dli_fbase == info.dli_fbase;
}

// The folder, with a slash, of the program or library that contains this function; empty if the system does not say.
// The program's name is not used, because its caller chooses it.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&OpenModule), &info) == 0 || info.dli_fname == nullptr) return {};
  std::string file = info.dli_fname;
  if (IsInProgram(info)) {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == sizeof path) return {};
    file.assign(path, static_cast<size_t>(length));
  }
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
}

// The folder of installed modules, for a program that is installed. Empty if `own` is not a folder of programs.
std::string FindModuleFolder(const std::string& own) {
#ifdef WISP_MODULES_OF_PROGRAMS
  if (own.ends_with("/" WISP_PROGRAMS "/")) return own + WISP_MODULES_OF_PROGRAMS "/";
#endif
  (void)own;
  return {};
}

std::string ModulePath(const ModuleRequest& request) {
  if (!request.file.empty()) return request.file;
  std::string name = "libwisp_" + request.name + ".so";
  const std::string own = OwnFolder();
  for (const std::string& folder : {own, FindModuleFolder(own)}) {
    std::string file = folder + name;
    if (!folder.empty() && access(file.c_str(), R_OK) == 0) return file;
  }
  return name;
}

// The loader's message in English, whatever the program's language. Empty if it has no message.
std::string GetLoadError() {
  const locale_t english = newlocale(LC_ALL_MASK, "C", nullptr), before = uselocale(english);
  const char* error = dlerror();
  std::string why = error != nullptr ? error : "";
  uselocale(before);
  if (english != locale_t{}) freelocale(english);
  return why;
}

}  // namespace

OpenedModule OpenModule(const ModuleRequest& request) {
  const std::string file = ModulePath(request);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string why = GetLoadError();
    return {.why = "its module was not loaded: " + (why.empty() ? file : why), .is_wrong = !request.file.empty()};
  }
  const auto entry = reinterpret_cast<ModuleEntry>(dlsym(library, kModuleEntry));
  if (entry == nullptr) return {.why = file + " is no module of wisp: it has no " + kModuleEntry, .is_wrong = true};
  const KernelModule* module = entry();
  if (std::strcmp(module->ops_version, WISP_OPS_VERSION) != 0)
    return {.why = file + " was built from other sources than this program: build both from the same",
            .is_wrong = true};
  if (const char* why = module->open()) return {.why = why};
  return {.module = module};
}

}  // namespace wisp::kernels
