/* What runtime/privacy/noise/entropy.h takes of Apple's header of this name, for tests/apple.sh on other systems. */
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef int32_t CCRNGStatus;
enum { kCCSuccess = 0 };
extern "C" CCRNGStatus CCRandomGenerateBytes(void* bytes, size_t count);
