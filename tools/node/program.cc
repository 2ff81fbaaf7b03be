// The program wisp-node, which `wisp node` executes: a node of a fleet for kiosks and desktops, and an example of an
// app that gives wisp_fleet.h its HTTP client and key. It is a program of its own because linking libcurl into wisp
// makes each start of it 5 ms longer. `wisp node` checks the options, and gives each as --name=value.
#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>
#include <string>

#include "ports/c/wisp_fleet.h"
#include "tools/node/https.h"
#include "tools/node/node_key.h"

namespace wisp::node {
namespace {

// The pauses after errors of the network: the first, and the longest.
constexpr double kFirstPause = 2, kLongestPause = 300;

std::atomic<bool> stops{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set by a signal");
void Stop(int) { stops = true; }

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Sleeps so long, or until a signal asks the program to end. False for the latter.
bool Pause(double seconds) {
  constexpr double kStep = 0.25;
  for (const double end = Seconds() + seconds; !stops;) {
    const double left = std::min(end - Seconds(), kStep);
    if (left <= 0) return true;
    const timespec step{0, static_cast<long>(left * 1e9)};
    nanosleep(&step, nullptr);
  }
  return false;
}

double Jitter() {
  static std::mt19937 random{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.5, 1.5)(random);
}

// Prints a sentence on standard error, without characters that a terminal would act on.
void Say(std::string sentence) {
  for (char& c : sentence) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = '?';
  }
  std::fprintf(stderr, "wisp: %s\n", sentence.c_str());
}

using Options = std::map<std::string, std::string>;

// The options --name=value, each known and given once.
bool Parse(int argc, char** argv, Options& options) {
  for (const char* name : {"policy", "data", "model", "ledger", "output", "key", "ca", "records-ledger", "dataset",
                           "unit", "session-gap", "times-per-second", "once", "seconds", "ask-seconds", "json"}) {
    options[name];
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    const auto option = word.starts_with("--") && equals != std::string::npos ? options.find(word.substr(2, equals - 2))
                                                                              : options.end();
    if (option == options.end() || !option->second.empty()) {
      Say("wisp-node does not know '" + word + "'; use wisp node, whose --help lists the options");
      return false;
    }
    option->second = word.substr(equals + 1);
  }
  for (const char* name : {"policy", "data", "model", "ledger"}) {
    if (!options[name].empty()) continue;
    Say(std::string("wisp-node needs --") + name + "; use wisp node, whose --help lists the options");
    return false;
  }
  return true;
}

wisp_unit UnitNamed(const std::string& name) {
  return name == "session" ? WISP_UNIT_SESSION : name == "day" ? WISP_UNIT_DAY : WISP_UNIT_USER;
}

// The exit code of `wisp` for an error.
int ExitCode(wisp_code code) {
  const char* codes = std::getenv("WISP_EXIT_CODES");
  const bool as_in_c = codes != nullptr && std::string(codes) == "c";
  switch (code) {
    case WISP_OK:
      return 0;
    case WISP_INVALID_ARGUMENT:
      return 2;
    case WISP_INVALID_DATA:
      return 3;
    case WISP_PRIVACY_REFUSED:
      return 4;
    case WISP_IO:
      return as_in_c ? 5 : 3;
    case WISP_UNSUPPORTED:
      return as_in_c ? 6 : 3;
    case WISP_CANCELLED:
      return 130;
    case WISP_TOO_EARLY:
      return 8;
    default:
      return 1;
  }
}

// The data of the transport's callbacks.
struct Device {
  Https https;
  Key key;
  std::string public_pem;
};

int Post(void* data, const char* url, const char* headers, const void* body, size_t size, wisp_fleet_sink sink,
         void* sink_data, int32_t* status, double* server_time) {
  Https& https = static_cast<Device*>(data)->https;
  if (stops) return 1;
  const int ended = https.Post(url, headers, body, size, sink, sink_data, status, server_time);
  if (ended != 0 && !stops) Say(std::string(url) + ": " + https.reason());
  return ended;
}
int SignMessage(void* data, const void* message, size_t size, uint8_t* der, size_t capacity, size_t* length) {
  return Sign(static_cast<Device*>(data)->key.get(), message, size, der, capacity, length) ? 0 : 1;
}
int VerifyMessage(void*, const char* key_pem, const void* message, size_t size, const uint8_t* der, size_t length) {
  return Verifies(key_pem, message, size, der, length) ? 0 : 1;
}
int Wait(void*, double seconds) { return Pause(seconds) ? 0 : 1; }
void Log(void*, wisp_log_level, const char* sentence) { Say(sentence); }

struct Totals {
  unsigned long answers = 0;
  wisp_fleet_result last = WISP_INIT(wisp_fleet_result);
};

// Works until the time is over, a signal comes, or an error that time does not change.
wisp_code Work(wisp_fleet* fleet, bool once, double seconds, Totals& totals, wisp_error& error) {
  const double end = seconds > 0 ? Seconds() + seconds : 1e300;
  for (double pause = kFirstPause; !stops;) {
    const double left = std::max(0.0, std::min(end - Seconds(), 3600.0));
    wisp_fleet_result result = WISP_INIT(wisp_fleet_result);
    const wisp_code code = wisp_fleet_work(fleet, once ? 0 : left, &result, &error);
    if (code == WISP_OK) {
      totals.answers += result.answers;
      totals.last = result;
      pause = kFirstPause;
      if (once || Seconds() >= end) return WISP_OK;
      if (left < 1) Pause(std::min(result.wait_seconds, end - Seconds()));
      continue;
    }
    if (stops) return WISP_OK;
    if (once || code != WISP_IO) return code;
    const double rest = Jitter() * pause;
    if (Seconds() + rest >= end) return code;
    Say(std::string(error.message) + "; the next attempt is in " + std::to_string(static_cast<int>(rest + 1)) + " s");
    Pause(rest);
    pause = std::min(2 * pause, kLongestPause);
  }
  return once ? WISP_CANCELLED : WISP_OK;
}

int Run(int argc, char** argv) {
  Options o;
  if (!Parse(argc, argv, o)) return 2;
  std::signal(SIGINT, Stop);
  std::signal(SIGTERM, Stop);
  std::signal(SIGPIPE, SIG_IGN);
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    Say("libcurl could not be started");
    return 1;
  }
  const std::string key_path = o["key"].empty() ? o["ledger"] + ".pem" : o["key"];
  std::string fault;
  Device device{Https(o["ca"], stops), OpenKey(key_path, fault), {}};
  if (device.key != nullptr) device.public_pem = GetPublicPem(device.key.get());
  if (device.public_pem.empty() || !device.https.is_open()) {
    Say(fault.empty() ? "OpenSSL or libcurl could not be started" : fault);
    return 3;
  }
  wisp_fleet_transport transport = WISP_INIT(wisp_fleet_transport);
  transport.user_data = &device;
  transport.post = Post;
  transport.sign = SignMessage;
  transport.verify = VerifyMessage;
  transport.wait = Wait;
  transport.public_key_pem = device.public_pem.c_str();
  wisp_logger logger = WISP_INIT(wisp_logger);
  logger.write = Log;
  wisp_fleet_options options = WISP_INIT(wisp_fleet_options);
  options.policy_path = o["policy"].c_str();
  options.model_path = o["model"].c_str();
  options.log_path = o["data"].c_str();
  options.ledger_path = o["ledger"].c_str();
  options.output_path = o["output"].empty() ? nullptr : o["output"].c_str();
  options.records_ledger_path = o["records-ledger"].empty() ? nullptr : o["records-ledger"].c_str();
  options.dataset = o["dataset"].c_str();
  options.transport = &transport;
  options.logger = &logger;
  options.unit = UnitNamed(o["unit"]);
  options.session_gap = std::strtoll(o["session-gap"].c_str(), nullptr, 10);
  options.times_per_second = static_cast<uint32_t>(std::strtoul(o["times-per-second"].c_str(), nullptr, 10));
  options.ask_seconds = std::strtod(o["ask-seconds"].c_str(), nullptr);
  wisp_fleet* fleet = nullptr;
  wisp_error error = {};
  Totals totals;
  wisp_code code = wisp_fleet_open(&options, &fleet, &error);
  if (code == WISP_OK) {
    code = Work(fleet, !o["once"].empty(), std::strtod(o["seconds"].c_str(), nullptr), totals, error);
    wisp_fleet_close(fleet);
  }
  if (code == WISP_CANCELLED) {
    Say("stopped before it was done; the next call goes on");
  } else if (code != WISP_OK) {
    Say(error.message);
  }
  if (code != WISP_OK) return ExitCode(code);
  const wisp_fleet_result& r = totals.last;
  const bool printed =
      !o["json"].empty()
          ? std::printf(
                "{\"answers\": %lu, \"participations\": %u, \"most_participations\": %u, \"wait_seconds\": %.3f}\n",
                totals.answers, r.participations, r.most_participations, r.wait_seconds) > 0
          : std::printf("%lu sent; this device took part in %u of at most %u rounds\n", totals.answers,
                        r.participations, r.most_participations) > 0;
  return printed && std::fflush(stdout) == 0 ? 0 : ExitCode(WISP_IO);
}

}  // namespace
}  // namespace wisp::node

int main(int argc, char** argv) { return wisp::node::Run(argc, argv); }
