#include "tools/node/https.h"

#include <cstring>
#include <string_view>
#include <utility>

namespace wisp::node {
namespace {

constexpr long kConnectSeconds = 30, kSlowSeconds = 60, kMostSeconds = 900;

struct Answer {
  wisp_fleet_sink sink;
  void* sink_data;
  bool refused;        // by the sink
  double server_time;  // of the header Date
};

size_t TakeBody(char* bytes, size_t, size_t size, void* data) {
  Answer& answer = *static_cast<Answer*>(data);
  answer.refused = answer.refused || answer.sink(answer.sink_data, bytes, size) != 0;
  return answer.refused ? 0 : size;
}

size_t TakeHeader(char* bytes, size_t, size_t size, void* data) {
  constexpr std::string_view kDate = "date:";
  const std::string line(bytes, size);
  if (line.size() > kDate.size() && curl_strnequal(line.c_str(), kDate.data(), kDate.size()) != 0) {
    const time_t date = curl_getdate(line.c_str() + kDate.size(), nullptr);
    if (date > 0) static_cast<Answer*>(data)->server_time = static_cast<double>(date);
  }
  return size;
}

int StopsEarly(void* data, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(data)->load() ? 1 : 0;
}

// Errors that trying again cannot change: the certificate, the address, what this libcurl can do.
bool IsFinal(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_UNKNOWN_OPTION:
    case CURLE_BAD_FUNCTION_ARGUMENT:
      return true;
    default:
      return false;
  }
}

class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list_); }
  bool Add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list_, line.c_str());
    if (longer != nullptr) list_ = longer;
    return longer != nullptr;
  }
  curl_slist* get() { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

}  // namespace

Https::Https(std::string ca, const std::atomic<bool>& stops)
    : ca_(std::move(ca)), stops_(stops), curl_(curl_easy_init()) {}

int Https::Post(const char* url, const char* headers, const void* body, size_t size, wisp_fleet_sink sink,
                void* sink_data, int32_t* status, double* server_time) {
  constexpr int kLater = 1, kNever = 2;
  CURL* const curl = curl_.get();
  curl_easy_reset(curl);
  HeaderList list;
  bool is_set = list.Add("Expect:") && list.Add("Accept:");  // without what libcurl adds by itself
  for (std::string_view rest = headers; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    is_set = is_set && list.Add(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  Answer answer{sink, sink_data, false, 0};
  char reason[CURL_ERROR_SIZE] = "";
  const auto set = [&](CURLoption option, auto value) {
    is_set = is_set && curl_easy_setopt(curl, option, value) == CURLE_OK;
  };
  set(CURLOPT_URL, url);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!ca_.empty()) set(CURLOPT_CAINFO, ca_.c_str());
  set(CURLOPT_HTTPHEADER, list.get());
  set(CURLOPT_POST, 1L);
  set(CURLOPT_POSTFIELDS, static_cast<const char*>(body));
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(size));
  set(CURLOPT_WRITEFUNCTION, TakeBody);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&answer));
  set(CURLOPT_HEADERFUNCTION, TakeHeader);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&answer));
  set(CURLOPT_XFERINFOFUNCTION, StopsEarly);
  set(CURLOPT_XFERINFODATA, const_cast<void*>(static_cast<const void*>(&stops_)));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
  set(CURLOPT_TIMEOUT, kMostSeconds);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(reason));
  if (!is_set) {
    reason_ = "this libcurl lacks an option, or memory is short";
    return kNever;
  }
  const CURLcode done = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (done != CURLE_OK) {
    reason_ = answer.refused ? "the answer is too large" : reason[0] != '\0' ? reason : curl_easy_strerror(done);
    return answer.refused || IsFinal(done) ? kNever : kLater;
  }
  long code = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
  *status = static_cast<int32_t>(code);
  *server_time = answer.server_time;
  return 0;
}

}  // namespace wisp::node
