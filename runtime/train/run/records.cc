// Built for speed: a loop over every user of a log.
#include "runtime/train/run/records.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace wisp {

Result<privacy::RecordSpec> MakeEventRecord(const privacy::RecordSpec::Events& events) {
  WISP_RETURN_IF_ERROR(MakeUnits(events).status());
  return privacy::RecordSpec::OfEvents(events);
}

Result<data::Units> MakeUnits(const privacy::RecordSpec::Events& events) {
  data::Units units{.session_gap = events.session_gap, .times_per_second = events.times_per_second};
  switch (events.unit) {
    case privacy::PrivacyUnit::kUser:
      break;
    case privacy::PrivacyUnit::kSession:
      units.unit = data::RecordUnit::kSession;
      break;
    case privacy::PrivacyUnit::kDay:
      units.unit = data::RecordUnit::kDay;
      break;
    case privacy::PrivacyUnit::kInteraction:
      return PrivacyRefused(
          "the unit is interaction: a recommender learns which item follows which, so a record of one event alone "
          "teaches nothing, and two "
          "events of one record would each be protected in part; allowed are user, session (with a short session gap) "
          "and day");
    case privacy::PrivacyUnit::kDevice:
      return PrivacyRefused(
          "the unit is device, which only a fleet of devices protects; allowed are user, session and day");
  }
  WISP_RETURN_IF_ERROR(data::CheckUnits(units));
  return units;
}

RecordSet MakeRecords(const data::Sequences& sequences, uint32_t max_length, HoldOut hold_out) {
  const data::Split split = data::MakeSplit(sequences, hold_out);
  RecordSet set;
  set.too_short = split.untrainable;
  for (std::span<const int32_t> train : split.train) {
    if (train.size() < 2) continue;
    const std::span<const int32_t> window = train.last(std::min<size_t>(train.size(), size_t{max_length} + 1));
    set.records.push_back({window.first(window.size() - 1), window.last(window.size() - 1)});
  }
  for (const data::HeldOutItem& held : split.validation) set.validation.push_back({held.history, held.item});
  for (const data::HeldOutItem& held : split.test) set.test.push_back({held.history, held.item});
  return set;
}

DividedLog DivideFromEnd(const data::Sequences& sequences, size_t from_end, size_t needed) {
  DividedLog divided;
  for (size_t u = 0; u < sequences.num_users(); ++u) {
    const std::span<const int32_t> record = sequences.User(u);
    divided.train.push_back(record);
    if (record.size() < needed || record.size() <= from_end) continue;
    const size_t target = record.size() - from_end;
    divided.train.back() = record.first(target);
    divided.cases.push_back({record.first(target), record[target]});
  }
  return divided;
}

DividedLog DivideAt(const data::Sequences& sequences, const data::Moment& moment) {
  DividedLog divided;
  for (size_t u = 0; u < sequences.num_users(); ++u) {
    const std::span<const int32_t> record = sequences.User(u);
    const std::span<const int64_t> times = sequences.GetTimes(u);
    const auto is_later = [&](int64_t time) { return moment.IsBefore(time); };
    const size_t later = static_cast<size_t>(std::find_if(times.begin(), times.end(), is_later) - times.begin());
    divided.train.push_back(record.first(later));
    const size_t target = std::max<size_t>(later, 1);
    if (target < record.size() && is_later(times[target]))
      divided.cases.push_back({record.first(target), record[target]});
  }
  return divided;
}

Result<uint64_t> EpochsToSteps(double epochs, double num_records, uint32_t expected_batch) {
  if (!(epochs >= 0 && epochs <= 1e6)) return InvalidArgument("epochs is ", epochs, ", allowed is 0 to 1000000");
  return static_cast<uint64_t>(std::ceil(epochs * num_records / std::max(1u, expected_batch)));
}

}  // namespace wisp
