// Handles of the C interface in a forked process: each can be closed, and what was made for the parent is used or
// refused.
#include <gtest/gtest.h>

#include "ports/c/wisp_deployment.h"
#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/ports/c_fork_test_util.h"

namespace wisp::c_fork_test {
namespace {

using test::CFork;
using test::InChild;
using test::kRefused;

TEST_F(CFork, Models_ServeOnOneThreadAndClose) {
  wisp_model* model = nullptr;
  ASSERT_EQ(wisp_model_open_with(WriteItems("m.wisp", "shop").c_str(), &two_, &model, &error_), WISP_OK)
      << error_.message;
  std::vector<int32_t> history(40);
  for (size_t i = 0; i < history.size(); ++i) history[i] = static_cast<int32_t>(i * 7);
  const int32_t* histories[] = {history.data(), history.data() + 1};
  const size_t lengths[] = {40, 39};
  wisp_batch_options batch = WISP_INIT(wisp_batch_options);
  batch.num_threads = 2;
  const auto recommend = [&](size_t length) -> std::string {
    wisp_recommendation top[3];
    size_t count = 3, found[2];
    std::string said;
    if (wisp_recommend(model, history.data(), length, nullptr, top, &count, &error_) != WISP_OK) return error_.message;
    for (const wisp_recommendation& r : top) said += std::to_string(r.item) + " ";
    wisp_recommendation both[6];
    if (wisp_recommend_batch(model, histories, lengths, 2, nullptr, &batch, 3, both, found, &error_) != WISP_OK)
      return error_.message;
    for (const wisp_recommendation& r : both) said += std::to_string(r.item) + " ";
    return said;
  };
  const std::string expected = recommend(40);
  (void)recommend(30);  // so that the child computes all positions again
  EXPECT_EQ(InChild([&] {
              const std::string said = recommend(40);
              wisp_model_close(model);
              return said;
            }),
            expected);
  EXPECT_EQ(InChild([&] {
              wisp_model_close(model);
              return std::string("closed");
            }),
            "closed");
  EXPECT_EQ(recommend(40), expected) << "of the parent";
  wisp_model_close(model);
}

TEST_F(CFork, Logs_RefuseAndClose) {
  const std::string path = folder_ / "events.db";
  wisp_log* log = nullptr;
  ASSERT_EQ(wisp_log_open(path.c_str(), &log, &error_), WISP_OK) << error_.message;
  ASSERT_EQ(wisp_log_append(log, "anna", "k1", 1, &error_), WISP_OK);
  const std::string refused = "2 event log '" + path + "' " + kRefused + "\n";
  EXPECT_EQ(InChild([&] {
              std::string said = Say(wisp_log_append(log, "anna", "k2", 2, &error_), error_);
              const wisp_event event = {"anna", "k2", 2};
              said += Say(wisp_log_append_all(log, &event, 1, &error_), error_);
              wisp_log_counts counts = WISP_INIT(wisp_log_counts);
              said += Say(wisp_log_count(log, &counts, &error_), error_);
              uint64_t gone = 0;
              said += Say(wisp_log_erase(log, "anna", &gone, &error_), error_);
              wisp_log_close(log);
              return said;
            }),
            refused + refused + refused + refused);
  // The log is as the parent left it, and can be appended to.
  ASSERT_EQ(wisp_log_append(log, "anna", "k3", 3, &error_), WISP_OK) << error_.message;
  wisp_log_counts counts = WISP_INIT(wisp_log_counts);
  ASSERT_EQ(wisp_log_count(log, &counts, &error_), WISP_OK);
  EXPECT_EQ(counts.events, 2u);
  wisp_log_close(log);
}

// The handle behind private runs.
TEST_F(CFork, Ledgers_RefuseAndClose) {
  const std::string path = folder_ / "l";
  auto ledger = std::make_unique<privacy::Ledger>(*privacy::Ledger::Open(
      path, {.dataset = "shop", .record = privacy::RecordSpec::OfEvents({.unit = privacy::PrivacyUnit::kUser})}));
  const privacy::ChargeRequest charge{
      .mechanism = *privacy::Mechanism::Gaussian({.noise_multiplier = 10}), .run = "run", .purpose = "training"};
  ASSERT_TRUE(ledger->Charge(charge).ok());
  const std::string refused = "ledger '" + path + "' " + kRefused;
  EXPECT_EQ(InChild([&] {
              const std::string said = ledger->Charge(charge).status().message();
              ledger.reset();
              return said;
            }).substr(0, refused.size()),
            refused);
  EXPECT_TRUE(ledger->Charge(charge).ok());
  EXPECT_EQ(ledger->Entries()->size(), 2u);
}

}  // namespace
}  // namespace wisp::c_fork_test
