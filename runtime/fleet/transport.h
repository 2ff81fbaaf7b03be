// The outside of a fleet: an HTTP client, the device's key and a clock. The library has none of them, so each platform
// gives its own: libcurl, Android's and Apple's clients and key stores, a page's fetch.
//
// Calls come from one thread at a time. Nothing here tries again: callers decide that by the code of an error. kIo
// means that the same call may succeed later (no network, a timeout, a cut connection). Other codes are final, for
// instance for a certificate that is not trusted.
#ifndef WISP_RUNTIME_FLEET_TRANSPORT_H_
#define WISP_RUNTIME_FLEET_TRANSPORT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace wisp::fleet {

struct HttpHeader {
  std::string name, value;
};

struct HttpReply {
  int status = 0;
  double server_time = 0;  // the header Date, in seconds since 1970; 0 if it is missing
  std::string body;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Posts to a path of the fleet's server, for instance "/v1/fleet/pull-messages". Every answer is a reply, whatever
  // its status. A body of more than `most_bytes` is an error (kInvalidData), and is not downloaded further.
  // Redirections are not followed. Flower's server closes connections that idle for 5 s; a client that keeps one then
  // opens another.
  virtual Result<HttpReply> Post(const std::string& path, std::span<const HttpHeader> headers, std::string_view body,
                                 size_t most_bytes) = 0;

  // Signs with the device's key: ECDSA with SHA-256 on P-256 or P-384, in DER.
  virtual Result<std::string> Sign(std::string_view message) = 0;
  // The device's public key as PEM (SubjectPublicKeyInfo, lines of 64 columns, a newline at the end). The server knows
  // a device by these bytes.
  virtual const std::string& public_key_pem() const = 0;

  // An error if `signature` (DER, ECDSA with SHA-256) of `message` is not by the owner of a key, the fleet's operator.
  virtual Status Verify(const std::string& key_pem, std::string_view message, std::string_view signature) = 0;

  // Seconds since 1970 by the device's clock, which may be wrong.
  virtual double Now() const = 0;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_TRANSPORT_H_
