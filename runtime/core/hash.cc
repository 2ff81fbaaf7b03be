// Built for speed: a hash over every byte of a file.
#include "runtime/core/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace wisp {

uint64_t Hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace wisp
