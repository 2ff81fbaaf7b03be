// A short private run on a device, with options that a test changes, and a log on which wisp_personalise is called.
#ifndef WISP_TESTS_UNIT_PORTS_C_PERSONALISE_FIXTURE_H_
#define WISP_TESTS_UNIT_PORTS_C_PERSONALISE_FIXTURE_H_

#include <fstream>

#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/ports/c_test_util.h"

namespace wisp::test {

// The paths that a run on `log` reads and writes. The test writes the model and the log.
class CShortRunTest : public ::testing::Test {
 protected:
  CShortRunTest(const std::string& log, uint32_t num_records_public, wisp_unit unit) : log_(folder_ / log) {
    options_.model_path = base_.c_str();
    options_.log_path = log_.c_str();
    options_.output_path = out_.c_str();
    options_.ledger_path = ledger_.c_str();
    options_.epsilon = 8;
    options_.delta = 1e-4;
    options_.num_records_public = num_records_public;
    options_.expected_batch = num_records_public / 2;
    options_.epochs = 1;
    options_.num_threads = 1;
    options_.unit = unit;
  }

  // Writes a model of random weights, whose provenance says so.
  static void WriteRandom(const std::string& path, ModelContents contents) {
    const std::vector<float> weights = test::RandomWeights(contents.architecture, 7);
    contents.weights = weights;
    contents.provenance.push_back({.description = "random weights",
                                   .mechanisms = {"random weights"},
                                   .epsilon = 0,
                                   .noise = NoiseOrigin::kSecure});
    const Status status = WriteModel(path, contents);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  // Expects that the run was refused with this sentence before anything was spent.
  void ExpectNothingSpent(wisp_code code, const char* sentence) {
    EXPECT_NE(code, WISP_OK) << sentence;
    EXPECT_NE(std::string(error_.message).find(sentence), std::string::npos) << error_.message;
    EXPECT_FALSE(std::ifstream(ledger_).good());
    EXPECT_FALSE(std::ifstream(out_).good());
  }

  const TemporaryFolder folder_;
  const std::string base_ = folder_ / "m.wisp", log_, out_ = folder_ / "out.wisp", ledger_ = folder_ / "log.ledger";
  wisp_personalise_options options_ = WISP_INIT(wisp_personalise_options);
  wisp_error error_ = {};
};

class CPersonaliseTest : public CShortRunTest {
 protected:
  CPersonaliseTest() : CShortRunTest("log.db", 20, WISP_UNIT_USER) {
    WriteTiny(base_);
    wisp_log* log = nullptr;
    EXPECT_EQ(wisp_log_open(log_.c_str(), &log, &error_), WISP_OK) << error_.message;
    // 10 users with two sessions each, a day and a half apart. Each session has three events, one of them of an unknown
    // item.
    for (int user = 0; user < 10; ++user) {
      for (int event = 0; event < 6; ++event) {
        const std::string name = "u" + std::to_string(user),
                          item = event == 2 ? "unknown" : "k" + std::to_string((user + event) % 12);
        const int64_t time = 1700000000 + event * 60 + (event >= 3 ? 130000 : 0);
        EXPECT_EQ(wisp_log_append(log, name.c_str(), item.c_str(), time, &error_), WISP_OK) << error_.message;
      }
    }
    EXPECT_EQ(wisp_log_append(log, "short", "k1", 1700000000, &error_), WISP_OK);
    wisp_log_close(log);
  }

  wisp_code Run(wisp_personalise_result* result = nullptr) { return wisp_personalise(&options_, result, &error_); }
  wisp_personalise_result MustRun() {
    wisp_personalise_result result = WISP_INIT(wisp_personalise_result);
    EXPECT_EQ(Run(&result), WISP_OK) << error_.message;
    return result;
  }
  // Returns the unit in the ledger and in the new model.
  std::string Stated() const {
    const auto ledger = privacy::Ledger::OpenExisting(ledger_);
    const auto model = ModelFile::Open(out_);
    if (!ledger.ok() || !model.ok()) return "none";
    return std::string(privacy::ToText(ledger->unit())) + (ledger->unit_chosen() ? " " : " by nobody's choice ") +
           model->provenance().back().privacy_unit;
  }
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_PORTS_C_PERSONALISE_FIXTURE_H_
