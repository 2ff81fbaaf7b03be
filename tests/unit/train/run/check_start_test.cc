// Which weights a private run may begin with, and with which ledger.
#include "runtime/train/run/check_start.h"

#include <cmath>

#include "runtime/decoding/check_paid.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp {
namespace {

using privacy::Ledger;
using privacy::LedgerTest;

class CheckStartTest : public LedgerTest {
 protected:
  CheckStartTest() : ledger_(*Ledger::Open(Path(), {.dataset = "log.db"})) {}
  // Of a run on "log.db" with weights whose provenance is `entry`.
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
  // Of weights of which nothing is known, nothing can be said.
  EXPECT_NE(Check({.dataset = kUnknownDataset}, ledger_).message().find("imported"), std::string::npos);
  EXPECT_EQ(Check({.description = "no label"}, ledger_).code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(Check({}, ledger_).code(), StatusCode::kPrivacyRefused) << "no provenance at all";
  EXPECT_EQ(Check({.dataset = "shipped", .base_model_hash = 7}, ledger_).code(), StatusCode::kPrivacyRefused)
      << "of a base that left no entry";
  // Other data of the same name, if the user says so; what nobody named stays unknown.
  other_data_ = true;
  EXPECT_TRUE(Check({.dataset = "log.db"}, ledger_).ok());
  EXPECT_FALSE(Check({.dataset = kUnknownDataset}, ledger_).ok());
}

TEST_F(CheckStartTest, AGuaranteeMustHaveBeenPaidFromThisLedger) {
  EXPECT_TRUE(Check(Guaranteed(3, "shipped"), ledger_).ok()) << "other data, another ledger";
  EXPECT_TRUE(Check(Guaranteed(0), ledger_).ok());
  const Status unpaid = Check(Guaranteed(3), ledger_);
  EXPECT_EQ(unpaid.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(unpaid.message().find("for epsilon 3 at delta 1e-06, and this ledger has epsilon 0 spent"),
            std::string::npos)
      << unpaid.message();
  ASSERT_TRUE(ledger_.Charge({.mechanism = privacy::Steps(100), .run = "a"}).ok());
  const double spent = *ledger_.Spent(privacy::AtDelta(1e-6));
  EXPECT_TRUE(Check(Guaranteed(spent), ledger_).ok());
  EXPECT_FALSE(Check(Guaranteed(1.1 * spent), ledger_).ok());
  EXPECT_FALSE(Check(Guaranteed(1.1 * spent, "/data/log.db"), ledger_).ok());
  other_data_ = true;
  EXPECT_TRUE(Check(Guaranteed(1.1 * spent), ledger_).ok());
}

// For draws. A ledger that names no data set may be that of any: what a model has spent on private data must be in it.
TEST_F(CheckStartTest, DrawsNeedALedgerThatHasWhatTheModelSpent) {
  const Ledger unnamed = *Ledger::Open(Path("unnamed"), {});
  const auto check = [&](const ProvenanceEntry& entry, const Ledger& ledger, std::vector<std::string> is_public = {}) {
    ModelContents contents = model_.contents();
    contents.provenance = {entry};
    EXPECT_TRUE(WriteModel(folder_ / "m.wisp", contents).ok());
    return CheckPaid(*ModelFile::Open(folder_ / "m.wisp"), "the model", is_public, ledger).code();
  };
  for (const Ledger* ledger : std::initializer_list<const Ledger*>{&unnamed, &ledger_}) {
    EXPECT_EQ(check(Guaranteed(3), *ledger), StatusCode::kPrivacyRefused);
    EXPECT_EQ(check(Guaranteed(3), *ledger, {"log.db"}), StatusCode::kOk);
  }
  EXPECT_EQ(check(Guaranteed(3, "other.db"), unnamed), StatusCode::kPrivacyRefused);
  EXPECT_EQ(check(Guaranteed(3, "other.db"), ledger_), StatusCode::kOk);
}

// A run's figure and that of all together come from different grids: two parts in a hundred are left to that, and no
// more.
TEST_F(CheckStartTest, TheStatedEpsilonMayExceedWhatIsSpentByTwoPartsInAHundred) {
  ASSERT_TRUE(ledger_.Charge({.mechanism = privacy::Steps(100), .run = "a"}).ok());
  const double spent = *ledger_.Spent(privacy::AtDelta(1e-6));
  for (double share : {0.999, 0.985}) EXPECT_TRUE(Check(Guaranteed(spent / share), ledger_).ok()) << share;
  for (double share : {0.975, 0.965, 0.955}) {
    EXPECT_EQ(Check(Guaranteed(spent / share), ledger_).code(), StatusCode::kPrivacyRefused) << share;
  }
}

}  // namespace
}  // namespace wisp
