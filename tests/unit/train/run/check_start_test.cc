// Which weights a private run may begin with, and with which ledger.
#include "runtime/train/run/check_start.h"

#include <filesystem>

#include "tests/unit/model/model_test_util.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::check_start_test {
namespace {

using privacy::Ledger;
using privacy::LedgerTest;

class CheckStartTest : public LedgerTest {
 protected:
  CheckStartTest()
      : ledger_(*Ledger::Open(Path(), {.dataset = "log.db", .record = privacy::RecordSpec::OfEvents({})})) {}
  // Checks a run on "log.db" with weights whose provenance is `entry`.
  Status Check(const ProvenanceEntry& entry, const Ledger& ledger) {
    ModelContents contents = model_.contents();
    contents.provenance = {entry};
    if (entry == ProvenanceEntry{}) contents.provenance.clear();
    EXPECT_TRUE(WriteModel(folder_ / "m.wisp", contents).ok());
    return CheckStart(*ModelFile::Open(folder_ / "m.wisp"), "m.wisp", {.dataset = "log.db", .other_data = other_data_},
                      ledger);
  }
  static ProvenanceEntry Guaranteed(double epsilon, const char* dataset = "log.db") {
    return {.mechanisms = {"Gaussian"},
            .epsilon = epsilon,
            .delta = 1e-6,
            .noise = NoiseOrigin::kSecure,
            .dataset = dataset};
  }

  // Returns the provenance of a run that was charged to `ledger`.
  static ProvenanceEntry Paid(Ledger& ledger) {
    EXPECT_TRUE(ledger.Charge({.mechanism = privacy::Steps(100), .run = "paid"}).ok());
    ProvenanceEntry entry = Guaranteed(3);
    entry.receipt = *ledger.MakeReceipt("paid");
    EXPECT_EQ(entry.receipt.size(), kReceiptBytes);
    return entry;
  }

  bool other_data_ = false;
  test::SmallModel model_;
  Ledger ledger_;
};

TEST_F(CheckStartTest, WithoutAGuaranteeTheDataMustBeOther) {
  EXPECT_TRUE(Check({.dataset = "shipped"}, ledger_).ok());
  for (const char* same : {"log.db", "/data/app/log.db", "./log.db"}) {
    const Status status = Check({.dataset = same}, ledger_);
    EXPECT_EQ(status.code(), StatusCode::kPrivacyRefused) << same;
    EXPECT_NE(status.message().find("without a guarantee"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(Check({.dataset = "catalog.db"}, ledger_).ok());
  // If nothing is known about the weights, nothing can be guaranteed.
  EXPECT_NE(Check({.dataset = kUnknownDataset}, ledger_).message().find("imported"), std::string::npos);
  EXPECT_EQ(Check({.description = "no label"}, ledger_).code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(Check({}, ledger_).code(), StatusCode::kPrivacyRefused) << "no provenance at all";
  EXPECT_EQ(Check({.dataset = "shipped", .base_model_hash = 7}, ledger_).code(), StatusCode::kPrivacyRefused)
      << "of a base that left no entry";
  // The user may say that data with the same name is other data; unnamed data stays unknown.
  other_data_ = true;
  EXPECT_TRUE(Check({.dataset = "log.db"}, ledger_).ok());
  EXPECT_FALSE(Check({.dataset = kUnknownDataset}, ledger_).ok());
}

TEST_F(CheckStartTest, AGuaranteeMustHaveBeenPaidFromThisLedger) {
  EXPECT_TRUE(Check(Guaranteed(3, "shipped"), ledger_).ok()) << "other data, another ledger";
  EXPECT_FALSE(Check(Guaranteed(0), ledger_).ok()) << "its delta adds up";
  const ProvenanceEntry here = Paid(ledger_);
  EXPECT_TRUE(Check(here, ledger_).ok());
  ASSERT_TRUE(ledger_.Charge({.mechanism = privacy::Steps(100), .run = "later"}).ok());
  EXPECT_TRUE(Check(here, ledger_).ok()) << "what comes after it takes nothing away";

  // The other ledger has as large a charge, at the same time, by a run of the same name, but not for these weights.
  Ledger other = *Ledger::Open(Path("other"), {.dataset = "log.db", .record = privacy::RecordSpec::OfEvents({})});
  ProvenanceEntry elsewhere = Paid(other);
  Status refused = Check(elsewhere, ledger_);
  EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.message().find("for epsilon 3 at delta 1e-06, and ledger '"), std::string::npos)
      << refused.message();
  EXPECT_NE(refused.message().find("did not pay for it"), std::string::npos) << refused.message();
  elsewhere.dataset = "/data/log.db";
  EXPECT_FALSE(Check(elsewhere, ledger_).ok());
  elsewhere.receipt.clear();
  EXPECT_NE(Check(elsewhere, ledger_).message().find("has no receipt"), std::string::npos);
  elsewhere.receipt = std::string(kReceiptBytes, '\0');
  EXPECT_FALSE(Check(elsewhere, ledger_).ok());
  other_data_ = true;
  EXPECT_TRUE(Check(elsewhere, ledger_).ok());
}

TEST_F(CheckStartTest, ACopyFromBeforeTheLastChargeDidNotPay) {
  ASSERT_TRUE(ledger_.Charge({.mechanism = privacy::Steps(1000), .run = "paid"}).ok());
  std::filesystem::copy_file(ledger_.path(), Path("copy"));
  const ProvenanceEntry after = Paid(ledger_);
  EXPECT_TRUE(Check(after, ledger_).ok());
  EXPECT_FALSE(
      Check(after, *Ledger::Open(Path("copy"), {.dataset = "log.db", .record = privacy::RecordSpec::OfEvents({})}))
          .ok());
}

}  // namespace
}  // namespace wisp::check_start_test
