// A ledger that pays for samples must include what the model has spent on private data.
#include "runtime/private_sampling/check_paid.h"

#include "tests/unit/model/model_test_util.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::check_paid_test {
namespace {

using privacy::Ledger;

class CheckPaidTest : public privacy::LedgerTest {
 protected:
  // Checks weights that were trained on `dataset` with a guarantee.
  StatusCode Check(const char* dataset, const Ledger& ledger, const std::vector<std::string>& is_public = {}) {
    ModelContents contents = model_.contents();
    contents.provenance = {
        {.mechanisms = {"Gaussian"}, .epsilon = 3, .delta = 1e-6, .noise = NoiseOrigin::kSecure, .dataset = dataset}};
    EXPECT_TRUE(WriteModel(folder_ / "m.wisp", contents).ok());
    return CheckPaid(*ModelFile::Open(folder_ / "m.wisp"), "the model", is_public, ledger).code();
  }

  test::SmallModel model_;
};

// A ledger without a data set's name may belong to any.
TEST_F(CheckPaidTest, NamelessLedger_MayBeOfEveryDataSet) {
  const Ledger unnamed = *Ledger::Open(Path("unnamed"), {.record = privacy::RecordSpec::OfEvents({})});
  const Ledger named = *Ledger::Open(Path(), {.dataset = "log.db", .record = privacy::RecordSpec::OfEvents({})});
  for (const Ledger* ledger : {&unnamed, &named}) {
    EXPECT_EQ(Check("log.db", *ledger), StatusCode::kPrivacyRefused);
    EXPECT_EQ(Check("log.db", *ledger, {"log.db"}), StatusCode::kOk);
  }
  EXPECT_EQ(Check("other.db", unnamed), StatusCode::kPrivacyRefused);
  EXPECT_EQ(Check("other.db", named), StatusCode::kOk);
}

}  // namespace
}  // namespace wisp::check_paid_test
