// The definition of one record of a data set. Charges state it, because costs of different kinds of records do not add
// up: a run with one record per session and a run with one record per minute are two different promises.
//
//   const RecordSpec record = RecordSpec::OfEvents({.unit = PrivacyUnit::kSession, .session_gap = 1800});
//   WISP_ASSIGN_OR_RETURN(Ledger ledger, Ledger::Open("log.ledger", {.dataset = "log.db", .record = record}));
//
// Code that reads the data uses the same object (runtime/train/run/records.h, MakeUnits), so a run cannot charge for
// one kind of record and read another. How much of a record is read is not part of the definition: whatever is cut off,
// all of the record is protected.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_RECORD_SPEC_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_RECORD_SPEC_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/status.h"

namespace wisp::privacy {

// Everything in one unit is protected together. Use kUser only if a device holds several users. kDevice is the unit of
// fleets (runtime/fleet): everything that one device holds.
enum class PrivacyUnit { kUser, kSession, kDay, kInteraction, kDevice };
std::string_view ToText(PrivacyUnit unit);  // "user", "session", "day", "interaction", "device"
Result<PrivacyUnit> PrivacyUnitFromText(std::string_view text);

class RecordSpec {
 public:
  // Where the events are read, by the caller's names. Empty: the readers' defaults. Other columns or another table
  // contain other rows, and the rows determine the records.
  struct Source {
    std::string user_column = {}, item_column = {}, time_column = {};
    std::string table = {};  // in a SQLite file
  };
  struct Events {
    PrivacyUnit unit = PrivacyUnit::kUser;
    int64_t session_gap = 0;        // kSession: in seconds
    uint32_t times_per_second = 1;  // units of the log's times
    Source source = {};
  };
  static RecordSpec OfEvents(const Events& events);
  // `kind`: "line", "paragraph", "chunk:16", kLabelledText or kPromptText. With kUser each record is declared to be all
  // that one user wrote.
  static RecordSpec OfTexts(PrivacyUnit unit, std::string kind);
  static constexpr char kLabelledText[] = "labelled-text", kPromptText[] = "prompt-text";
  // All that a device has, whatever it is.
  static RecordSpec OfDevice() { return OfEvents({.unit = PrivacyUnit::kDevice}); }
  // For samples from weights, which cost the same whatever a record is. `unit` is used when the ledger is created.
  static RecordSpec Any(PrivacyUnit unit);

  PrivacyUnit unit() const { return events_.unit; }
  const Events& events() const { return events_; }
  const std::string& kind() const { return kind_; }  // "events", the kind of OfTexts, or "any"
  bool is_any() const;
  bool is_of_texts() const;
  bool is_chunk() const { return kind_.starts_with("chunk:"); }

  // In words for people: "the events of one user without a pause of more than 1800 seconds".
  std::string InWords() const;
  // The text for files: "events unit=session gap=1800 times_per_second=1".
  std::string ToText() const;
  // kInvalidData for anything that ToText does not write.
  static Result<RecordSpec> FromText(const std::string& text);
  bool operator==(const RecordSpec& other) const { return ToText() == other.ToText(); }

 private:
  RecordSpec(std::string kind, Events events) : kind_(std::move(kind)), events_(std::move(events)) {}

  std::string kind_;
  Events events_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_RECORD_SPEC_H_
