// SHA-256, for what has to be named or signed: plans, weights, the roles of devices.
//
//   ToHex(Sha256("abc"))   // "ba7816bf..."
#ifndef WISP_RUNTIME_FLEET_SHA256_H_
#define WISP_RUNTIME_FLEET_SHA256_H_

#include <sodium.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace wisp::fleet {

using Sha256Hash = std::array<uint8_t, crypto_hash_sha256_BYTES>;

inline Sha256Hash Sha256(std::string_view bytes) {
  Sha256Hash hash;
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hash;
}

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_SHA256_H_
