#include "ports/c/wisp_fleet.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "ports/c/anchor_c.h"
#include "ports/c/options_c.h"
#include "ports/c/status_c.h"
#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/fleet/fleet_node.h"
#include "runtime/train/run/records.h"

using wisp::InvalidArgument;
using wisp::IoError;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::ports::Guarded;
using wisp::ports::Text;

namespace fleet = wisp::fleet;
namespace privacy = wisp::privacy;

namespace {

// A node that asks less often than once an hour would count as offline between.
constexpr double kMostAskSeconds = 3600;

// The app's transport.
class CallbackTransport final : public fleet::Transport {
 public:
  CallbackTransport(const wisp_fleet_transport& given, std::string server)
      : given_(given), server_(std::move(server)), key_(given.public_key_pem) {
    while (server_.ends_with('/')) server_.pop_back();
  }

  Result<fleet::HttpReply> Post(const std::string& path, std::span<const fleet::HttpHeader> headers,
                                std::string_view body, size_t most_bytes) override {
    std::string lines;
    for (const fleet::HttpHeader& header : headers) lines += header.name + ": " + header.value + "\n";
    fleet::HttpReply reply;
    Body answer{&reply.body, most_bytes};
    int32_t status = 0;
    const int ended = given_.post(given_.user_data, (server_ + path).c_str(), lines.c_str(), body.data(), body.size(),
                                  &CallbackTransport::Take, &answer, &status, &reply.server_time);
    if (answer.too_many)
      return wisp::InvalidData("the server's answer to ", path, " has more than ", most_bytes, " bytes");
    if (ended == 1) return IoError("the server of the fleet cannot be reached (", path, ")");
    if (ended != 0) return InvalidArgument("the app's transport refuses to post to ", path);
    reply.status = status;
    return reply;
  }

  Result<std::string> Sign(std::string_view message) override {
    std::string der(kMostSignatureBytes, '\0');
    size_t length = 0;
    if (given_.sign(given_.user_data, message.data(), message.size(), reinterpret_cast<uint8_t*>(der.data()),
                    der.size(), &length) != 0 ||
        length > der.size())
      return IoError("wisp_fleet_transport: the app could not sign with the device's key");
    der.resize(length);
    return der;
  }
  const std::string& public_key_pem() const override { return key_; }
  Status Verify(const std::string& key_pem, std::string_view message, std::string_view signature) override {
    if (given_.verify != nullptr &&
        given_.verify(given_.user_data, key_pem.c_str(), message.data(), message.size(),
                      reinterpret_cast<const uint8_t*>(signature.data()), signature.size()) == 0)
      return OkStatus();
    return wisp::PrivacyRefused("the round is not signed by the operator whom the policy names");
  }
  double Now() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  bool can_wait() const { return given_.wait != nullptr; }
  bool Wait(double seconds) { return given_.wait(given_.user_data, seconds) == 0; }

 private:
  static constexpr size_t kMostSignatureBytes = 160;
  struct Body {
    std::string* bytes;
    size_t most;
    bool too_many = false;
  };
  static int Take(void* data, const void* bytes, size_t size) {
    Body& body = *static_cast<Body*>(data);
    body.too_many = body.too_many || size > body.most - body.bytes->size();
    if (body.too_many) return 1;
    body.bytes->append(static_cast<const char*>(bytes), size);
    return 0;
  }

  const wisp_fleet_transport given_;
  std::string server_;
  const std::string key_;
};

Result<fleet::FleetPolicy> ReadPolicy(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const wisp::MappedFile file, wisp::MappedFile::Open(path));
  return fleet::FleetPolicy::FromText({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

Status CheckTransport(const wisp_fleet_transport& t, const fleet::FleetPolicy& policy) {
  if (t.post == nullptr || t.sign == nullptr || t.public_key_pem == nullptr)
    return InvalidArgument("wisp_fleet_transport: post, sign and public_key_pem must not be NULL");
  if (!policy.operator_key.empty() && t.verify == nullptr)
    return InvalidArgument("wisp_fleet_transport: the policy names an operator's key, so verify must not be NULL");
  return OkStatus();
}

}  // namespace

struct wisp_fleet {
  wisp_fleet(const wisp_fleet_transport& given, const std::string& server, wisp::ModelFile opened)
      : transport(given, server), base(std::move(opened)) {}

  CallbackTransport transport;
  const wisp::ModelFile base;
  wisp_logger logger{};
  uint32_t most_participations = 0;
  std::unique_ptr<fleet::FleetNode> node;
};

namespace {

Status Open(const wisp_fleet_options* given, wisp_fleet** out) {
  if (given == nullptr || out == nullptr) return InvalidArgument("wisp_fleet_open: options and fleet must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_fleet_options"));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckGiven("wisp_fleet_open", "policy_path, model_path, log_path and ledger_path",
                                               {o.policy_path, o.model_path, o.log_path, o.ledger_path}));
  if (o.transport == nullptr) return InvalidArgument("wisp_fleet_open: transport must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto transport, wisp::ports::MakeOptions(o.transport, "wisp_fleet_transport"));
  WISP_ASSIGN_OR_RETURN(const fleet::FleetPolicy policy, ReadPolicy(o.policy_path));
  WISP_RETURN_IF_ERROR(CheckTransport(transport, policy));
  if (!(o.ask_seconds >= 0 && o.ask_seconds <= kMostAskSeconds)) {
    return InvalidArgument("wisp_fleet_options: ask_seconds is ", o.ask_seconds, ", allowed are 0 to ",
                           kMostAskSeconds);
  }
  const int32_t number = wisp::ports::GetNumber(o.unit);
  const auto unit = number == 0 ? privacy::PrivacyUnit::kUser : wisp::ports::UnitFromNumber(number);
  if (!unit) return InvalidArgument("wisp_fleet_options: there is no unit ", number);
  const privacy::RecordSpec::Events events{
      .unit = *unit, .session_gap = o.session_gap, .times_per_second = std::max(1u, o.times_per_second)};
  const std::string ledger = o.ledger_path, reply = o.reply_path == nullptr ? ledger + ".reply" : o.reply_path,
                    output = Text(o.output_path), records = Text(o.records_ledger_path);
  const wisp::NamedFile files[] = {{"the policy", o.policy_path}, {"the base", o.model_path}, {"the log", o.log_path}};
  const wisp::NamedFile of_devices{"the ledger", ledger}, of_records{"the ledger of records", records};
  WISP_RETURN_IF_ERROR(
      wisp::CheckOutput({"reply_path", reply}, {files[0], files[1], files[2], of_devices, of_records}));
  WISP_RETURN_IF_ERROR(wisp::CheckOutput(
      {"output_path", output}, {files[0], files[1], files[2], of_devices, of_records, {"reply_path", reply}}));
  WISP_RETURN_IF_ERROR(wisp::CheckApart({"the log", o.log_path}, of_devices));
  WISP_RETURN_IF_ERROR(wisp::CheckApart({"the log", o.log_path}, of_records));
  WISP_RETURN_IF_ERROR(wisp::CheckApart(of_devices, of_records));
  WISP_ASSIGN_OR_RETURN(wisp::ModelFile base, wisp::ModelFile::Open(o.model_path, wisp::Verify::kFull));
  WISP_ASSIGN_OR_RETURN(auto anchor, wisp::ports::OpenAnchor(o.anchor));
  WISP_ASSIGN_OR_RETURN(auto records_anchor, wisp::ports::OpenAnchor(o.records_anchor));
  auto opened = std::make_unique<wisp_fleet>(transport, policy.server, std::move(base));
  opened->most_participations = policy.takes_part;
  if (o.logger != nullptr) {
    WISP_ASSIGN_OR_RETURN(opened->logger, wisp::ports::MakeOptions(o.logger, "wisp_logger"));
  }
  CallbackTransport& posts = opened->transport;
  WISP_ASSIGN_OR_RETURN(
      auto device,
      fleet::FleetDevice::Open({.policy = policy,
                                .base = &opened->base,
                                .base_path = o.model_path,
                                .log_path = o.log_path,
                                .ledger_path = ledger,
                                .anchor = std::move(anchor.kept),
                                .begin_anchor = anchor.begins,
                                .events = events,
                                .records_ledger_path = records,
                                .dataset = Text(o.dataset),
                                .records_anchor = std::move(records_anchor.kept),
                                .begin_records_anchor = records_anchor.begins,
                                .output_path = output,
                                .verify = [&posts](const std::string& key, std::string_view text,
                                                   std::string_view der) { return posts.Verify(key, text, der); }}));
  opened->node = fleet::FleetNode::Open(std::move(device), posts, reply, o.ask_seconds);
  *out = opened.release();
  return OkStatus();
}

Status Work(wisp_fleet* fleet, double seconds, wisp_fleet_result* out) {
  if (fleet == nullptr) return InvalidArgument("wisp_fleet_work: fleet must not be NULL");
  if (!(seconds >= 0 && std::isfinite(seconds)))
    return InvalidArgument("wisp_fleet_work: seconds is ", seconds, ", allowed is a finite number from 0 on");
  if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_fleet_result"));
  std::function<bool(double)> wait;
  if (fleet->transport.can_wait()) wait = [fleet](double pause) { return fleet->transport.Wait(pause); };
  const auto say = [fleet](const std::string& sentence) {
    if (fleet->logger.write != nullptr)
      fleet->logger.write(fleet->logger.data, WISP_LOG_INFO, wisp::OneLine(sentence).c_str());
  };
  WISP_ASSIGN_OR_RETURN(const fleet::FleetNode::Progress progress, fleet->node->Work(seconds, say, wait));
  if (out == nullptr) return OkStatus();
  return wisp::ports::FillResult(wisp_fleet_result{.size = sizeof(wisp_fleet_result),
                                                   .answers = progress.answers,
                                                   .participations = progress.participations,
                                                   .most_participations = fleet->most_participations,
                                                   .not_read = 0,
                                                   .wait_seconds = progress.wait_seconds},
                                 out, "wisp_fleet_result");
}

}  // namespace

extern "C" {

wisp_code wisp_fleet_open(const wisp_fleet_options* options, wisp_fleet** fleet, wisp_error* error) {
  return Guarded(error, [&] { return Open(options, fleet); });
}

wisp_code wisp_fleet_work(wisp_fleet* fleet, double seconds, wisp_fleet_result* result, wisp_error* error) {
  return Guarded(error, [&] { return Work(fleet, seconds, result); });
}

void wisp_fleet_close(wisp_fleet* fleet) { delete fleet; }

}  // extern "C"
