// Random bytes from the operating system, for keys and identities.
#ifndef WISP_RUNTIME_PRIVACY_NOISE_ENTROPY_H_
#define WISP_RUNTIME_PRIVACY_NOISE_ENTROPY_H_

#include <cstddef>
#if defined(__APPLE__)
#include <CommonCrypto/CommonRandom.h>
#else
#include <unistd.h>
#endif

namespace wisp::privacy {

// Fills `size` bytes, at most 256; 0 on success, like getentropy(3). Apple's systems use CommonCrypto: getentropy is
// only in the headers of macOS, and the App Store refuses apps for iOS that call it.
inline int SystemEntropy(void* bytes, size_t size) {
#if defined(__APPLE__)
  return CCRandomGenerateBytes(bytes, size) == kCCSuccess ? 0 : -1;
#else
  return getentropy(bytes, size);
#endif
}

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_ENTROPY_H_
