// The process, its threads and random bytes on 64-bit Windows: the rest of platform.h.
#include "runtime/core/platform.h"

#if defined(_WIN32)

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00
#endif
#include <windows.h>
//
#include <bcrypt.h>

namespace wisp::platform {

int GetEntropy(void* bytes, size_t size) {
  return BCryptGenRandom(nullptr, static_cast<PUCHAR>(bytes), static_cast<ULONG>(size),
                         BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0
             ? 0
             : -1;
}

int GetProcess() { return static_cast<int>(GetCurrentProcessId()); }

uint64_t GetUser() { return 0; }

void Sleep(int microseconds) { ::Sleep(static_cast<DWORD>((microseconds + 999) / 1000)); }

int WatchForks(void (*)()) { return 0; }

unsigned MakeThreadSlot(void (*release)(void* object)) { return FlsAlloc(release); }
void FreeThreadSlot(unsigned slot) { FlsFree(slot); }
void* GetInSlot(unsigned slot) { return FlsGetValue(slot); }
void SetInSlot(unsigned slot, void* object) { FlsSetValue(slot, object); }

}  // namespace wisp::platform

#endif  // defined(_WIN32)
