// A device of a fleet: a round worker with the device's ledger, log and model.
//
//   WISP_ASSIGN_OR_RETURN(const auto device, FleetDevice::Open({.policy = policy, .base = &base, ...}));
//   WISP_ASSIGN_OR_RETURN(const FleetDevice::Taken taken, device->Take(request, node_id));
//   if (taken.answer) { ... store it ...; WISP_RETURN_IF_ERROR(device->Charge(taken.answer->participation)); ... }
//
// Charges. From before the first look the ledger has the plan of the policy: so many participations, each a Gaussian
// with the policy's smallest noise, and their cost as its limit. Charge writes one, and an answer may leave the device
// only after that. An answer that is sent again is the stored one, bit for bit; a second one would be a second release.
// The ledger's record is all that the device holds (RecordSpec::OfDevice).
//
// A policy that protects records needs a second ledger, of records. Take then charges both ledgers before the run reads
// a record, so a crash between run and answer costs the participation. A log that cannot be read is then an error, with
// nothing charged: without it one record could decide whether the others count.
#ifndef WISP_RUNTIME_FLEET_FLEET_DEVICE_H_
#define WISP_RUNTIME_FLEET_FLEET_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/file_lock.h"
#include "runtime/data/sequences.h"
#include "runtime/fleet/round_worker.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger/ledger_anchor.h"

namespace wisp::fleet {

struct FleetAnswer {
  Participation participation;
  TaskKind kind = TaskKind::kTrain;
  std::string plan_hash;  // whole, in hex
  std::string update;
};

struct FleetDeviceOptions {
  FleetPolicy policy;
  const ModelFile* base = nullptr;  // must outlive the device
  std::string base_path, log_path, ledger_path;
  std::shared_ptr<privacy::LedgerAnchor> anchor = {};  // null: the policy's count holds for an installation
  bool begin_anchor = false;
  // How events are grouped into training records. The device is protected whatever this says; a policy that protects
  // records means these.
  privacy::RecordSpec::Events events = {};
  // For a policy that protects records, and only then.
  std::string records_ledger_path = {}, dataset = {};
  std::shared_ptr<privacy::LedgerAnchor> records_anchor = {};
  bool begin_records_anchor = false;
  std::string output_path = {};  // where a model of the fleet is kept; empty: nowhere
  RoundWorker::Verify verify = {};
};

class FleetDevice {
 public:
  // Opens the ledger, and writes the policy's plan into a new one. One device at a time has it (kIo): two would take
  // part in one block. kPrivacyRefused: its records are not devices, it was charged by something else, or the anchor
  // knows more than it; the ledger of records was charged by something else, or has a lower limit than the policy.
  // Errors of MakeEventRecord, and of OpenLedgerToTrain for the records.
  static Result<std::unique_ptr<FleetDevice>> Open(FleetDeviceOptions options);

  struct Taken {
    std::optional<FleetAnswer> answer;  // nullopt: nothing is sent
    std::string what;                   // a sentence for the device's own log, never for the server
  };
  // An error only if a ledger fails, or the log of a device that protects its records. Nothing is charged but what such
  // a device charges.
  Result<Taken> Take(const RoundRequest& request, uint64_t node_id);
  // Charges a participation, once, however often it is called. kPrivacyRefused: no participation is left.
  Status Charge(const Participation& participation);
  Result<bool> IsCharged(const Participation& participation) const;

  // All participations that are charged.
  Result<std::vector<Participation>> ListParticipations() const;
  const FleetPolicy& policy() const { return worker_.policy(); }

 private:
  FleetDevice(FleetDeviceOptions options, privacy::Ledger ledger, std::optional<privacy::Ledger> records, FileLock lock,
              data::Units units);
  Result<data::Sequences> ReadLog() const;
  std::string Keep(uint32_t round);

  FleetDeviceOptions options_;
  FileLock lock_;
  privacy::Ledger ledger_;
  std::optional<privacy::Ledger> records_;  // the ledger of records
  data::Units units_;
  RoundWorker worker_;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_FLEET_DEVICE_H_
