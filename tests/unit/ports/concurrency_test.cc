// Several threads at once, over whole parts: one ledger, an app's threads under the C interface, recommending while
// training. Run under ThreadSanitizer, the same tests find races that these figures cannot show (tools/dev sanitize
// thread).
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "ports/c/wisp.h"
#include "runtime/inference/session.h"
#include "runtime/train/trainer.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::concurrency_test {
namespace {

constexpr int kCharges = 5;

class Concurrency : public test::RingTraining {
 protected:
  Concurrency() : RingTraining(40) {}

  void WriteStart(const std::string& path, std::span<const float> weights) {
    const Status status = WriteModel(path, {.architecture = kSmall, .weights = weights, .description = "ring"});
    ASSERT_TRUE(status.ok()) << status.message();
  }
};

TEST_F(Concurrency, OneLedgerChargedBySeveralThreads_EveryChargeIsCountedOnce) {
  privacy::Ledger shared = OpenLedger("shared");
  std::vector<std::set<privacy::ChargeId>> ids(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < ids.size(); ++t) {
    threads.emplace_back([&, t] {
      // Two threads share a handle, two have one each.
      std::optional<privacy::Ledger> own;
      if (t >= 2) own.emplace(OpenLedger("shared"));
      privacy::Ledger& ledger = own ? *own : shared;
      const auto mechanism = privacy::Mechanism::Gaussian({.noise_multiplier = 20, .count = t + 1});
      for (int i = 0; i < kCharges; ++i) {
        const auto id = ledger.Charge({.mechanism = *mechanism, .run = "run " + std::to_string(t)});
        ASSERT_TRUE(id.ok()) << id.status().message();
        ids[t].insert(*id);
        EXPECT_TRUE(ledger.MarkReleased(*id).ok());
        EXPECT_TRUE(ledger.Entries().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<privacy::ChargeId> all;
  for (const auto& some : ids) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), ids.size() * kCharges);
  const auto entries = shared.Entries();
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), all.size());
}

// Like an app: one thread recommends from the current file, while another trains and replaces it.
TEST_F(Concurrency, RecommendingWhileTraining_SeesWholeModelsOnly) {
  const std::string path = folder_ / "model.wisp";
  WriteStart(path, start_);
  std::atomic<bool> done = false;
  std::atomic<int> answers = 0;
  std::thread app([&] {
    auto held = Session::Open(path);
    const std::vector<int32_t> history = {1, 2, 3};
    const auto first = (*held)->Recommend(history, {.count = 5});
    do {
      const auto now = Session::Open(path);
      ASSERT_TRUE(now.ok()) << now.status().message();
      EXPECT_TRUE((*now)->Recommend(history, {.count = 5}).ok());
      // A session that has the old file open keeps it.
      const auto again = (*held)->Recommend(history, {.count = 5});
      ASSERT_TRUE(again.ok() && again->size() == first->size());
      for (size_t i = 0; i < first->size(); ++i) EXPECT_EQ((*again)[i].score, (*first)[i].score);
      ++answers;
    } while (!done);
  });
  auto trainer = *Trainer::Create(
      kSmall, start_, ring_.records,
      {.num_steps = 20, .expected_batch = 16, .optimizer = {.learning_rate = 0.01f}, .seed = 5, .num_threads = 2});
  for (int step = 0; step < 20; ++step) {
    EXPECT_TRUE(trainer->Step().ok());
    WriteStart(path, trainer->weights());
  }
  while (answers == 0) std::this_thread::yield();
  done = true;
  app.join();
}

// The app's own pool: every task on a thread of its own, all at once.
void RunOnThreads(void*, size_t num_tasks, wisp_task task, void* task_data) {
  std::vector<std::thread> pool;
  for (size_t i = 0; i < num_tasks; ++i) pool.emplace_back(task, task_data, i);
  for (std::thread& thread : pool) thread.join();
}

TEST_F(Concurrency, CInterfaceOnTheAppsThreads_GivesWhatOneThreadGives) {
  const std::string path = folder_ / "model.wisp";
  WriteStart(path, start_);
  const std::vector<int32_t> items = {1, 2, 3, 4, 5, 6, 7, 8};
  const size_t n = items.size();
  std::vector<const int32_t*> histories(n, items.data());
  std::vector<size_t> lengths;
  for (size_t i = 1; i <= n; ++i) lengths.push_back(i);
  const auto batch = [&](wisp_run_tasks run_tasks) {
    wisp_model* model = nullptr;
    wisp_error error{};
    std::vector<wisp_recommendation> best(n * 3);
    std::vector<size_t> found(n);
    wisp_batch_options how = WISP_INIT(wisp_batch_options);
    how.num_threads = run_tasks == nullptr ? 1 : 3;
    how.run_tasks = run_tasks;
    EXPECT_EQ(wisp_model_open(path.c_str(), &model, &error), WISP_OK) << error.message;
    for (int call = 0; call < 3; ++call) {
      EXPECT_EQ(wisp_recommend_batch(model, histories.data(), lengths.data(), n, nullptr, &how, 3, best.data(),
                                     found.data(), &error),
                WISP_OK)
          << error.message;
    }
    wisp_model_close(model);
    std::vector<std::pair<int32_t, float>> all;
    for (const wisp_recommendation& r : best) all.emplace_back(r.item, r.score);
    return all;
  };
  const auto alone = batch(nullptr);
  // Two handles on two threads, each of which lends threads.
  std::vector<std::pair<int32_t, float>> a, b;
  std::thread first([&] { a = batch(RunOnThreads); }), second([&] { b = batch(RunOnThreads); });
  first.join();
  second.join();
  EXPECT_EQ(a, alone);
  EXPECT_EQ(b, alone);
}

}  // namespace
}  // namespace wisp::concurrency_test
