/* The parts of Apple's header of this name that runtime/core/platform_posix.cc uses, for tests/apple.sh elsewhere. */
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef int32_t CCRNGStatus;
enum { kCCSuccess = 0 };
extern "C" CCRNGStatus CCRandomGenerateBytes(void* bytes, size_t count);
