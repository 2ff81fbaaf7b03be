// The definition of one record: each charge states it, and it must be the same in all of them, whoever charges.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <functional>

#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_record_test {
namespace {

using Events = RecordSpec::Events;

RecordSpec Sessions(int64_t gap) { return RecordSpec::OfEvents({.unit = PrivacyUnit::kSession, .session_gap = gap}); }
LedgerOptions With(const RecordSpec& record) { return {.dataset = "watch history", .record = record}; }
// Runs SQL; returns an empty text on success.
std::string Sql(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  std::string error = "cannot be opened";
  if (sqlite3_open(path.c_str(), &database) == SQLITE_OK)
    error = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? "" : sqlite3_errmsg(database);
  sqlite3_close(database);
  return error;
}

const ChargeRequest kStep = {.mechanism = Steps(1), .run = "a"};

class LedgerRecordTest : public LedgerTest {
 protected:
  // Expects a refusal with a sentence that has both parts.
  void ExpectRefused(const Status& status, const std::string& one, const std::string& other) {
    EXPECT_EQ(status.code(), StatusCode::kPrivacyRefused) << status.message();
    for (const std::string& part : {one, other, std::string("costs of different records do not add up")})
      EXPECT_NE(status.message().find(part), std::string::npos) << part << " is missing in: " << status.message();
  }
};

// A record of a whole sitting and a record of each of its minutes must not add up to one figure.
TEST_F(LedgerRecordTest, AnotherRecord_isRefusedAndBothAreNamed) {
  const Events session = {.unit = PrivacyUnit::kSession, .session_gap = 1800};
  const auto changed = [&](const std::function<void(Events&)>& change) {
    Events other = session;
    change(other);
    return RecordSpec::OfEvents(other);
  };
  ASSERT_TRUE(Ledger::Open(Path(), With(RecordSpec::OfEvents(session)))->Charge(kStep).ok());
  const struct {
    RecordSpec record;
    const char* in_words;
  } others[] = {
      {changed([](Events& e) { e.session_gap = 10; }), "a pause of more than 10 seconds"},
      {changed([](Events& e) { e.times_per_second = 1000; }), "times that count 1000 to the second"},
      {changed([](Events& e) { e.source.user_column = "household"; }), "users by the column 'household'"},
      {changed([](Events& e) { e.source.item_column = "sku"; }), "items by the column 'sku'"},
      {changed([](Events& e) { e.source.time_column = "sent"; }), "times by the column 'sent'"},
      {changed([](Events& e) { e.source.table = "archive"; }), "from the table 'archive'"},
  };
  for (const auto& other : others) {
    ExpectRefused(Ledger::Open(Path(), With(other.record)).status(), "a pause of more than 1800 seconds",
                  other.in_words);
  }
  EXPECT_TRUE(Ledger::Open(Path(), With(RecordSpec::OfEvents(session)))->Charge(kStep).ok());
  EXPECT_EQ(Ledger::OpenExisting(Path())->Entries()->size(), 2u);
}

TEST_F(LedgerRecordTest, AnotherKindOfText_isRefused) {
  const auto texts = [](const char* kind) { return RecordSpec::OfTexts(PrivacyUnit::kInteraction, kind); };
  ASSERT_TRUE(Ledger::Open(Path(), With(texts("paragraph")))->Charge(kStep).ok());
  ExpectRefused(Ledger::Open(Path(), With(texts("line"))).status(), "one paragraph of text", "one line of text");
  ExpectRefused(Ledger::Open(Path(), With(texts("chunk:16"))).status(), "one paragraph", "one chunk of 16 bytes");
  ExpectRefused(Ledger::Open(Path(), With(texts(RecordSpec::kPromptText))).status(), "one paragraph",
                "one private text in a prompt");
  ExpectRefused(Ledger::Open(Path(), With(RecordSpec::OfEvents({.unit = PrivacyUnit::kInteraction}))).status(),
                "one paragraph", "one event");
}

// This ledger was opened before the other one charged, so the charge itself is refused.
TEST_F(LedgerRecordTest, AChargeOfWhoOpenedEarlier_isRefused) {
  Ledger wide = *Ledger::Open(Path(), With(Sessions(1800))), narrow = *Ledger::Open(Path(), With(Sessions(10)));
  ASSERT_TRUE(wide.Charge(kStep).ok());
  ExpectRefused(narrow.Charge(kStep).status(), "1800 seconds", "10 seconds");
  EXPECT_EQ(wide.Entries()->size(), 1u);
}

TEST_F(LedgerRecordTest, APlan_saysItUntilTheFirstCharge) {
  ASSERT_TRUE(Ledger::Open(Path(), With(Sessions(10)))->WritePlan("p", "plan", {&kStep, 1}).ok());
  EXPECT_EQ(**Ledger::OpenExisting(Path())->Record(), Sessions(10));
  ASSERT_TRUE(Ledger::Open(Path(), With(Sessions(1800)))->WritePlan("p", "plan", {&kStep, 1}).ok());
  Ledger ledger = *Ledger::OpenExisting(Path());  // takes the definition from the ledger
  EXPECT_EQ(**ledger.Record(), Sessions(1800));
  Ledger narrow = *Ledger::Open(Path(), With(Sessions(10)));  // it could still plan anew, and does not
  ExpectRefused(narrow.Charge(kStep).status(), "1800 seconds", "10 seconds");
  ASSERT_TRUE(ledger.Charge(kStep).ok());
  EXPECT_EQ(ledger.Entries()->front().record, Sessions(1800));
  ExpectRefused(Ledger::Open(Path(), With(Sessions(10))).status(), "1800 seconds", "10 seconds");
}

// A run that was killed between its plan and its first charge binds nobody.
TEST_F(LedgerRecordTest, PlanOfAKilledRun_isReplacedByTheNextRun) {
  ASSERT_TRUE(Ledger::Open(Path(), With(Sessions(10)))->PlanRun({&kStep, 1}).ok());
  Ledger next = *Ledger::Open(Path(), With(Sessions(1800)));
  ASSERT_TRUE(next.PlanRun({&kStep, 1}).ok());
  ASSERT_TRUE(next.Charge(kStep).ok());
  EXPECT_EQ(**next.Record(), Sessions(1800));
}

// Sampling from weights costs the same whatever a record is, so it does not define one and is never refused for it.
TEST_F(LedgerRecordTest, DrawsFromWeights_leaveItOpen) {
  ASSERT_TRUE(Ledger::Open(Path(), With(RecordSpec::Any(PrivacyUnit::kSession)))->Charge(kStep).ok());
  EXPECT_FALSE(Ledger::OpenExisting(Path())->Record()->has_value());
  EXPECT_EQ(Ledger::OpenExisting(Path())->Charge(kStep).status().code(), StatusCode::kPrivacyRefused);
  ASSERT_TRUE(Ledger::Open(Path(), With(Sessions(1800)))->Charge(kStep).ok());
  ASSERT_TRUE(Ledger::Open(Path(), With(RecordSpec::Any(PrivacyUnit::kDay)))->Charge(kStep).ok());
  const std::vector<LedgerEntry> entries = *Ledger::OpenExisting(Path())->Entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_FALSE(entries[0].record || entries[2].record);
  EXPECT_EQ(entries[1].record, Sessions(1800));
}

TEST_F(LedgerRecordTest, WhatWasSaid_cannotBeChangedInTheFile) {
  ASSERT_TRUE(Ledger::Open(Path(), With(Sessions(1800)))->Charge(kStep).ok());
  ASSERT_NE(Sql(Path(), "UPDATE entries SET record = 'events unit=session gap=10 times_per_second=1'"), "");
  ASSERT_EQ(Sql(Path(), "DROP TRIGGER entries_are_final; UPDATE entries SET record = ''"), "");
  EXPECT_EQ(Ledger::OpenExisting(Path()).status().code(), StatusCode::kInvalidData);
}

TEST(RecordSpecTest, Texts_areReadAsTheyWereWritten) {
  for (const RecordSpec& record :
       {RecordSpec::OfEvents({}), Sessions(1800), RecordSpec::OfEvents({.unit = PrivacyUnit::kDay}),
        RecordSpec::OfEvents({.unit = PrivacyUnit::kSession,
        .session_gap = 60,
        .times_per_second = 1000,
        .source = {.user_column = "a b=%c\n\xc3\xa4 time=x", .item_column = "%", .time_column = " ", .table = "'"}}),
        RecordSpec::OfTexts(PrivacyUnit::kUser, "chunk:16")}) {
    const auto read = RecordSpec::FromText(record.ToText());
    ASSERT_TRUE(read.ok()) << record.ToText();
    EXPECT_EQ(*read, record);
    EXPECT_EQ(read->events().source.user_column, record.events().source.user_column);
    EXPECT_EQ(read->events().source.table, record.events().source.table);
    EXPECT_EQ(read->InWords().find('\n'), std::string::npos);
  }
  for (const char* text : {"", "events", "events unit=week", "events unit=session", "events unit=user gap=1",
                           "events unit=session gap=1x times_per_second=1", "events unit=user user=%", " unit=user",
                           "events unit=user user=%zz", "events unit=user ", "line unit=interaction gap=3"})
    EXPECT_EQ(RecordSpec::FromText(text).status().code(), StatusCode::kInvalidData) << text;
}

// Default columns of the readers do not make another record, and neither do times of which only the order counts.
TEST(RecordSpecTest, IrrelevantSettings_MakeNoOtherRecord) {
  EXPECT_EQ(RecordSpec::OfEvents(
                {.source = {.user_column = "user", .item_column = "item", .time_column = "sent", .table = "events"}}),
            RecordSpec::OfEvents({}));
  EXPECT_FALSE(RecordSpec::OfEvents({.times_per_second = 1000}) == RecordSpec::OfEvents({}));
  EXPECT_FALSE(RecordSpec::OfEvents({.source = {.user_column = "user_id"}}) == RecordSpec::OfEvents({}));
}

}  // namespace
}  // namespace wisp::privacy::ledger_record_test
