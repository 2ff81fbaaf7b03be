// The part of the C interface that needs training and privacy: log, fine-tuning, statement.
#include <algorithm>
#include <limits>
#include <vector>

#include "ports/c/anchor_c.h"
#include "ports/c/device_c.h"
#include "ports/c/log_c.h"
#include "ports/c/personalise_c.h"
#include "ports/c/status_c.h"
#include "runtime/data/readers.h"
#include "runtime/inference/session.h"
#include "runtime/model/catalogue.h"
#include "runtime/privacy/ledger_statement.h"
#include "runtime/train/run/records.h"

namespace {

using wisp::InvalidArgument;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::ports::Counted;
using wisp::ports::GiveText;
using wisp::ports::Guarded;
namespace data = wisp::data;
namespace privacy = wisp::privacy;

Status History(wisp_log* log, const wisp_model* model, const char* user, int32_t* items, size_t* count) {
  if (log == nullptr || model == nullptr || user == nullptr || items == nullptr || count == nullptr) {
    return InvalidArgument("wisp_log_history: no argument but error may be NULL");
  }
  // Events of items unknown to the model do not count, so more than `*count` may have to be read.
  WISP_ASSIGN_OR_RETURN(const auto keys, log->log.History(user, std::numeric_limits<int32_t>::max()));
  std::vector<int32_t> known;
  for (const std::string& key : keys) {
    const auto item = wisp::ports::GetSession(model).file().FindItem(key);
    if (item) known.push_back(static_cast<int32_t>(*item));
  }
  const size_t n = std::min(*count, known.size());
  std::copy(known.end() - static_cast<std::ptrdiff_t>(n), known.end(), items);
  *count = n;
  return OkStatus();
}

// The events of a log, which a recommender learns.
class Events final : public wisp::ports::ToLearn {
 public:
  Status CheckKind(const wisp_personalise_options& o, privacy::PrivacyUnit unit) override {
    WISP_ASSIGN_OR_RETURN(
        record_, wisp::MakeEventRecord({.unit = unit,
                                        .session_gap = o.session_gap,
                                        .times_per_second = o.times_per_second == 0 ? 1 : o.times_per_second}));
    return OkStatus();
  }

  privacy::RecordSpec Record(privacy::PrivacyUnit) const override { return record_; }

  const char* units() const override { return "WISP_UNIT_USER, WISP_UNIT_SESSION or WISP_UNIT_DAY"; }

  Result<Counted> Read(const wisp_personalise_options& o, const wisp::ModelFile& base,
                       wisp::TrainingJob& job) override {
    WISP_ASSIGN_OR_RETURN(const data::ItemIndex index, data::ItemIndex::Make(o.model_path, wisp::GetItemKeys(base)));
    WISP_ASSIGN_OR_RETURN(const data::Units units, wisp::MakeUnits(record_.events()));
    WISP_ASSIGN_OR_RETURN(data::ReadResult events,
                          data::ReadLog(o.log_path, {.known_items = &index, .units = units, .private_run = true}));
    events_ = std::move(events.sequences);
    job.sequences = &events_;
    num_users_ = events.report.num_users;
    const data::ReadReport& r = events.report;
    return Counted{.num_events = r.num_read,
                   .unknown_events = r.unknown_events,
                   .unknown_items = r.unknown_items,
                   .bad_rows = r.bad_rows};
  }

  uint64_t TooShort(const Counted&, const wisp::JobResult& result) const override {
    return num_users_ - std::min(num_users_, result.num_records);
  }

 private:
  privacy::RecordSpec record_ = privacy::RecordSpec::OfEvents({});
  data::Sequences events_;
  uint64_t num_users_ = 0;  // of events
};

// `format` is a wisp_statement_format as a number.
Status Statement(const char* path, const wisp_anchor* given, double delta, int32_t format, char* text, size_t capacity,
                 size_t* needed) {
  if (path == nullptr || needed == nullptr || (text == nullptr && capacity > 0)) {
    return InvalidArgument("wisp_privacy_statement: ledger_path and needed must not be NULL, nor text with a capacity");
  }
  if (format != WISP_STATEMENT_TEXT && format != WISP_STATEMENT_JSON)
    return InvalidArgument("wisp_privacy_statement: there is no format ", format);
  WISP_ASSIGN_OR_RETURN(const privacy::Delta at, privacy::Delta::Create(delta));
  WISP_ASSIGN_OR_RETURN(auto anchor, wisp::ports::OpenAnchor(given));
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger,
                        privacy::Ledger::OpenExisting(path, std::move(anchor.kept), anchor.begins));
  WISP_ASSIGN_OR_RETURN(privacy::PrivacyStatement statement, privacy::MakeStatement(ledger, path, at));
  statement.created_by = std::string("wisp ") + wisp_version();
  GiveText(format == WISP_STATEMENT_JSON ? privacy::ToJson(statement) : privacy::ToText(statement), text, capacity,
           needed);
  return OkStatus();
}

Status DescribeDevice(const wisp_device* given, char* text, size_t capacity, size_t* needed) {
  if (given == nullptr || needed == nullptr || (text == nullptr && capacity > 0))
    return InvalidArgument("wisp_device_describe: device and needed must not be NULL, nor text with a capacity");
  WISP_ASSIGN_OR_RETURN(const wisp::DeviceOptions options,
                        wisp::ports::MakeDeviceOptions(*given, wisp::DeviceUse::kInference));
  WISP_ASSIGN_OR_RETURN(const wisp::OpenedDevice device, wisp::OpenDevice(options));
  GiveText(device.description, text, capacity, needed);
  return OkStatus();
}

}  // namespace

extern "C" {

wisp_code wisp_log_open(const char* path, wisp_log** log, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    if (path == nullptr || log == nullptr) return InvalidArgument("wisp_log_open: path and log must not be NULL");
    WISP_ASSIGN_OR_RETURN(data::EventLog opened, data::EventLog::Open(path));
    *log = new wisp_log{std::move(opened)};
    return OkStatus();
  });
}

void wisp_log_close(wisp_log* log) { delete log; }

wisp_code wisp_log_append(wisp_log* log, const char* user, const char* item_key, int64_t time, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    if (log == nullptr || user == nullptr || item_key == nullptr)
      return InvalidArgument("wisp_log_append: log, user and item_key must not be NULL");
    return log->log.Append({.user = user, .item = item_key, .time = time});
  });
}

wisp_code wisp_log_history(wisp_log* log, const wisp_model* model, const char* user, int32_t* items, size_t* count,
                           wisp_error* error) {
  return Guarded(error, [&] { return History(log, model, user, items, count); });
}

wisp_code wisp_device_describe(const wisp_device* device, char* text, size_t capacity, size_t* needed,
                               wisp_error* error) {
  return Guarded(error, [&] { return DescribeDevice(device, text, capacity, needed); });
}

wisp_code wisp_personalise(const wisp_personalise_options* options, wisp_personalise_result* result,
                           wisp_error* error) {
  return Guarded(error, [&] {
    Events events;
    return wisp::ports::Personalise(options, events, result);
  });
}

wisp_code wisp_personalise_plan_memory(const wisp_personalise_options* options, wisp_personalise_memory* memory,
                                       wisp_error* error) {
  return Guarded(error, [&] { return wisp::ports::PlanPersonalise(options, memory); });
}

wisp_code wisp_privacy_statement(const char* ledger_path, double delta, wisp_statement_format format, char* text,
                                 size_t capacity, size_t* needed, wisp_error* error) {
  return Guarded(error, [&] {
    return Statement(ledger_path, nullptr, delta, wisp::ports::GetNumber(format), text, capacity, needed);
  });
}

wisp_code wisp_privacy_statement_anchored(const char* ledger_path, const wisp_anchor* anchor, double delta,
                                          wisp_statement_format format, char* text, size_t capacity, size_t* needed,
                                          wisp_error* error) {
  return Guarded(error, [&] {
    return Statement(ledger_path, anchor, delta, wisp::ports::GetNumber(format), text, capacity, needed);
  });
}

}  // extern "C"
