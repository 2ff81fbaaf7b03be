// The checksum of wisp's files: XXH3, 64 bits, seed 0. Finds damage; it is no defence against somebody who means harm.
//
//   const uint64_t hash = Hash64(std::as_bytes(weights));
#ifndef WISP_RUNTIME_CORE_HASH_H_
#define WISP_RUNTIME_CORE_HASH_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace wisp {

// The same on every platform. About 10 GB/s or more with SSE2 or NEON once the bytes are in cache.
uint64_t Hash64(std::span<const std::byte> bytes);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_HASH_H_
