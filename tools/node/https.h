// Posts over HTTPS by libcurl, for the transport of a fleet (wisp_fleet.h).
#ifndef WISP_TOOLS_NODE_HTTPS_H_
#define WISP_TOOLS_NODE_HTTPS_H_

#include <curl/curl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ports/c/wisp_fleet.h"

namespace wisp::node {

class Https {
 public:
  // `ca`: a file of certificates to trust in place of the system's; empty: the system's. A request ends early once
  // `stops` is set. One thread.
  Https(std::string ca, const std::atomic<bool>& stops);
  bool is_open() const { return curl_ != nullptr; }

  // The post of wisp_fleet_transport. TLS 1.2 or later; no redirections.
  int Post(const char* url, const char* headers, const void* body, size_t size, wisp_fleet_sink sink, void* sink_data,
           int32_t* status, double* server_time);
  // The reason of the last failure, in libcurl's words.
  const std::string& reason() const { return reason_; }

 private:
  struct Close {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  };
  std::string ca_, reason_;
  const std::atomic<bool>& stops_;
  std::unique_ptr<CURL, Close> curl_;  // keeps the connection between requests
};

}  // namespace wisp::node

#endif  // WISP_TOOLS_NODE_HTTPS_H_
