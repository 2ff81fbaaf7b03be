#include "runtime/fleet/fleet_device.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/core/date.h"
#include "runtime/core/hex.h"
#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/data/readers.h"
#include "runtime/fleet/fleet_budget.h"
#include "runtime/model/catalogue.h"
#include "runtime/privacy/json.h"
#include "runtime/train/run/fine_tune.h"
#include "runtime/train/run/records.h"

namespace wisp::fleet {
namespace {

constexpr char kRun[] = "fleet";

// A participation as the purpose of its charge, and back.
constexpr std::string_view kPurpose = "participation ";
std::string ToPurpose(const Participation& p) { return std::string(kPurpose) + p.ToText(); }
std::optional<Participation> FromPurpose(std::string_view purpose) {
  return purpose.starts_with(kPurpose) ? Participation::Parse(purpose.substr(kPurpose.size())) : std::nullopt;
}

// An update has no more numbers than bytes.
fleet::Participations CostsOf(const FleetPolicy& policy, uint64_t count) {
  return {.noise_multiplier = policy.noise_multiplier, .num_weights = policy.most_bytes_up, .count = count};
}

// A device cannot see the noise, so what its model says is the plan's promise and its condition.
std::string Describe(const FleetPlan& plan) {
  return JoinText("a fleet, plan ", plan.name, ": epsilon ", privacy::DoubleText(plan.epsilon), " at delta ",
                  privacy::DoubleText(plan.delta), " for each device if the server adds the noise");
}

// The ledger of records, if the policy protects them.
Result<std::optional<privacy::Ledger>> OpenRecordsLedger(const FleetDeviceOptions& o) {
  const bool given = !o.records_ledger_path.empty();
  if (given != o.policy.protects_records()) {
    return InvalidArgument(given ? "there is a ledger of records, and the policy protects none (records_epsilon is 0)"
                                 : "the policy protects records (records_epsilon): their ledger is missing");
  }
  if (!given) return std::optional<privacy::Ledger>();
  WISP_ASSIGN_OR_RETURN(const privacy::RecordSpec record, MakeEventRecord(o.events));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                        OpenLedgerToTrain({.base = o.base,
                                           .base_path = o.base_path,
                                           .adapter_path = {},
                                           .dataset = o.dataset,
                                           .run = kRun,
                                           .ledger = LedgerToTrain{.path = o.records_ledger_path,
                                                                   .anchor = o.records_anchor,
                                                                   .begin_anchor = o.begin_records_anchor,
                                                                   .record = record,
                                                                   .unit_chosen = true}}));
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  for (const privacy::LedgerEntry& entry : entries) {
    if (entry.run == kRun) continue;
    return PrivacyRefused(o.records_ledger_path, ": was charged by '", entry.run,
                          "'; the records of a fleet's device have a ledger of their own");
  }
  WISP_ASSIGN_OR_RETURN(const std::optional<privacy::EpsilonDelta> limit, ledger.Limit());
  if (limit && (limit->epsilon() < o.policy.records_epsilon || limit->delta() < o.policy.records_delta)) {
    return PrivacyRefused(o.records_ledger_path, ": has the limit epsilon ", privacy::DoubleText(limit->epsilon()),
                          " at delta ", privacy::DoubleText(limit->delta()), ", and the policy promises epsilon ",
                          privacy::DoubleText(o.policy.records_epsilon), " at delta ",
                          privacy::DoubleText(o.policy.records_delta));
  }
  return std::optional<privacy::Ledger>(std::move(ledger));
}

}  // namespace

FleetDevice::FleetDevice(FleetDeviceOptions options, privacy::Ledger ledger, std::optional<privacy::Ledger> records,
                         FileLock lock, data::Units units)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      ledger_(std::move(ledger)),
      records_(std::move(records)),
      units_(units),
      worker_(options_.policy, *options_.base, options_.verify) {}

Result<std::unique_ptr<FleetDevice>> FleetDevice::Open(FleetDeviceOptions options) {
  WISP_RETURN_IF_ERROR(options.policy.Check());
  WISP_ASSIGN_OR_RETURN(const data::Units units, MakeUnits(options.events));
  WISP_ASSIGN_OR_RETURN(FileLock lock, FileLock::Take(options.ledger_path + ".lock",
                                                      options.ledger_path + ": another node of a fleet charges it; " +
                                                          "allowed is one at a time"));
  WISP_ASSIGN_OR_RETURN(std::optional<privacy::Ledger> records, OpenRecordsLedger(options));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                        privacy::Ledger::Open(options.ledger_path, {.dataset = "this device",
                                                                    .record = privacy::RecordSpec::OfDevice(),
                                                                    .anchor = options.anchor,
                                                                    .begin_anchor = options.begin_anchor}));
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  for (const privacy::LedgerEntry& entry : entries) {
    if (entry.run == kRun && FromPurpose(entry.purpose)) continue;
    return PrivacyRefused(options.ledger_path, ": was charged by '", entry.run, "' (", entry.purpose,
                          "), which is no participation in a fleet; a fleet has a ledger of its own");
  }
  if (entries.empty()) {
    const fleet::Participations all = CostsOf(options.policy, options.policy.takes_part);
    WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest planned, ChargeFor(all, kRun, "participations"));
    WISP_ASSIGN_OR_RETURN(const double epsilon, EpsilonOf(all, options.policy.delta));
    WISP_ASSIGN_OR_RETURN(const auto limit, privacy::EpsilonDelta::Create(epsilon, options.policy.delta));
    WISP_RETURN_IF_ERROR(ledger.SetUp(
        {.limit = limit, .plan = privacy::PlanRequest{.run = kRun, .purpose = planned.purpose, .charges = {planned}}}));
  }
  return std::unique_ptr<FleetDevice>(
      new FleetDevice(std::move(options), std::move(ledger), std::move(records), std::move(lock), units));
}

Result<std::vector<Participation>> FleetDevice::ListParticipations() const {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger_.Entries());
  std::vector<Participation> all;
  for (const privacy::LedgerEntry& entry : entries) {
    // A charge that something else made since Open counts as a participation.
    all.push_back(FromPurpose(entry.purpose).value_or(Participation{}));
  }
  return all;
}

// Without a log, or from one that cannot be read, a device sends zeros: a refusal would tell what it holds. Where its
// records are protected, only a log that is not there counts as empty.
Result<data::Sequences> FleetDevice::ReadLog() const {
  if (!platform::IsThere(options_.log_path)) return data::Sequences();
  const Result<data::ItemIndex> index = data::ItemIndex::Make(options_.base_path, GetItemKeys(*options_.base));
  Status failed = index.status();
  if (index.ok()) {
    Result<data::ReadResult> read =
        data::ReadLog(options_.log_path,
                      {.known_items = &*index, .units = units_, .private_run = true, .any_form = records_.has_value()});
    if (read.ok()) return std::move(read->sequences);
    failed = read.status();
  }
  return records_ ? Result<data::Sequences>(failed) : Result<data::Sequences>(data::Sequences());
}

// The newest model of the fleet replaces the one that was kept, unless it is worse than the base for the newest events
// of this device. The decision stays on the device, like what its people are shown. Where records are protected, what
// people are shown must not follow from a look that nobody paid for, so the model is kept unseen.
std::string FleetDevice::Keep(uint32_t round) {
  const std::string of_round = "the model of round " + std::to_string(round);
  if (options_.output_path.empty()) return of_round + " was not kept: no path was given";
  if (!records_ && worker_.FindGain(*ReadLog()) < 0)
    return of_round + " was not kept: lists of this device would be worse";
  const Status written = worker_.model().Write(options_.output_path, worker_.held(),
                                               {.description = Describe(worker_.plan()),
                                                .privacy_unit = "device",
                                                .sampling = "allocation",
                                                .steps = round,
                                                .dataset = worker_.plan().name,
                                                .date = Today()});
  return written.ok() ? of_round + " was kept as " + options_.output_path : written.message();
}

Result<FleetDevice::Taken> FleetDevice::Take(const RoundRequest& request, uint64_t node_id) {
  WISP_ASSIGN_OR_RETURN(const std::vector<Participation> before, ListParticipations());
  const RoundWorker::Task task = worker_.Accept(request, node_id, before);
  if (!task.why_absent.empty()) return Taken{.what = "absent: " + task.why_absent};
  if (task.kind == TaskKind::kKeep) return Taken{.what = Keep(static_cast<uint32_t>(request.round))};
  WISP_ASSIGN_OR_RETURN(const data::Sequences log, ReadLog());
  if (records_) WISP_RETURN_IF_ERROR(Charge(task.participation));
  WISP_ASSIGN_OR_RETURN(RoundWorker::Answer computed,
                        worker_.Compute(task, node_id, log, records_ ? &*records_ : nullptr));
  std::string what = std::string(GetName(task.kind)) + ", round " + std::to_string(task.participation.round);
  if (!computed.why_zeros.empty()) what += ": zeros, because " + computed.why_zeros;
  return Taken{.answer = FleetAnswer{.participation = task.participation,
                                     .kind = task.kind,
                                     .plan_hash = ToHex(worker_.plan().hash()),
                                     .update = std::move(computed.update)},
               .what = std::move(what)};
}

Result<bool> FleetDevice::IsCharged(const Participation& participation) const {
  WISP_ASSIGN_OR_RETURN(const std::vector<Participation> all, ListParticipations());
  return std::find(all.begin(), all.end(), participation) != all.end();
}

Status FleetDevice::Charge(const Participation& participation) {
  WISP_ASSIGN_OR_RETURN(const bool charged, IsCharged(participation));
  if (charged) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest charge,
                        ChargeFor(CostsOf(policy(), 1), kRun, ToPurpose(participation)));
  return ledger_.Charge(charge).status();
}

}  // namespace wisp::fleet
