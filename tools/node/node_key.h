// The device's key of a fleet: P-256, in a file that only its owner can read.
#ifndef WISP_TOOLS_NODE_NODE_KEY_H_
#define WISP_TOOLS_NODE_NODE_KEY_H_

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace wisp::node {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

// Reads the key in a file (PEM), or makes one if the file does not exist. Null, with a sentence in `error`: the file is
// no such key, others can read it, or it cannot be written.
Key OpenKey(const std::string& path, std::string& error);

// The public key as PEM, as Flower writes it. Empty if OpenSSL fails.
std::string GetPublicPem(EVP_PKEY* key);

// Signs by ECDSA with SHA-256. False if OpenSSL fails, or the signature has more than `capacity` bytes.
bool Sign(EVP_PKEY* key, const void* message, size_t size, uint8_t* der, size_t capacity, size_t* length);
// True if `der` is the signature of the message by the owner of a key on an elliptic curve.
bool Verifies(const std::string& key_pem, const void* message, size_t size, const uint8_t* der, size_t length);

}  // namespace wisp::node

#endif  // WISP_TOOLS_NODE_NODE_KEY_H_
