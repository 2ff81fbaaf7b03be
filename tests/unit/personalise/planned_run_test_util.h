// A small world for training sessions: the base learned that item i + 1 follows item i, and on the device i + 3
// follows.
#ifndef WISP_TESTS_UNIT_PERSONALISE_PLANNED_RUN_TEST_UTIL_H_
#define WISP_TESTS_UNIT_PERSONALISE_PLANNED_RUN_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "runtime/layers/recommender.h"
#include "runtime/personalise/planned_run.h"
#include "runtime/personalise/plan_files.h"
#include "runtime/train/run/fine_tune.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp {

class PlannedRunTest : public ::testing::Test {
 protected:
  // Each user has events that train and later ones, which evaluate.
  static constexpr int kItems = 20, kUsers = 300, kEvents = 8, kLater = 8;
  static constexpr int64_t kBegin = 1'700'000'000, kUntil = kBegin + 1'000'000;

  PlannedRunTest() {
    MakeBase(base_path_, 1);
    WriteLog(log_path_, kDeviceStride);
  }

  static void WriteLog(const std::string& path, int stride) { WriteLog(path, stride, stride); }
  static void WriteLog(const std::string& path, int stride, int later_stride, int later = kLater) {
    data::EventLog log = *data::EventLog::Open(path);
    std::mt19937 random(3);
    std::vector<data::Event> events;
    for (int u = 0; u < kUsers; ++u) {
      int item = static_cast<int>(random() % kItems);
      for (int t = 0; t < kEvents + later; ++t, item = (item + (t < kEvents ? stride : later_stride)) % kItems)
        events.push_back({"u" + std::to_string(u), Key(item), (t < kEvents ? kBegin : kUntil + 1) + u * 1000 + t});
    }
    EXPECT_TRUE(log.AppendAll(events).ok());
  }

  static std::string Key(int item) { return "item " + std::to_string(item); }

  static data::Sequences Ring(int stride) {
    data::Sequences ring;
    for (int i = 0; i < kItems; ++i) ring.item_keys.push_back(Key(i));
    for (int u = 0; u < 2 * kItems; ++u) {
      for (int t = 0; t < kEvents; ++t) ring.items.push_back((u + t * stride) % kItems);
      ring.offsets.push_back(ring.items.size());
      ring.user_keys.push_back(std::to_string(u));
    }
    return ring;
  }
  // Writes other weights to `path`, as runs of that provenance would make of the base.
  void TrainFurther(const std::string& path, std::vector<ProvenanceEntry> runs) const {
    const ModelFile base = *ModelFile::Open(base_path_);
    std::vector<float> room;
    ModelContents contents = GetContents(base, room);
    std::vector<float> weights(contents.weights.begin(), contents.weights.end());
    for (float& weight : weights) weight *= 1.01f;
    contents.weights = weights;
    runs.front().base_model_hash = base.content_hash();
    contents.provenance.insert(contents.provenance.end(), runs.begin(), runs.end());
    ASSERT_TRUE(WriteModel(path, contents).ok());
  }
  void MakeBase(const std::string& path, uint64_t seed, bool allow_seen = false, uint32_t item_features = 0,
                OutputBias bias = OutputBias::kNone) {
    const data::Sequences ring = Ring(1);
    TrainingJob job{.spec = {.hold_out = HoldOut::kNothing, .allow_seen = allow_seen}, .sequences = &ring};
    job.spec.architecture = UniformArchitecture{
        .num_items = kItems, .max_length = 8, .width = 16, .num_heads = 1, .num_blocks = 1, .inner_width = 16};
    job.spec.architecture.item_features = item_features;
    job.spec.architecture.head.output_bias = bias;
    job.spec.training.num_steps = 60;
    job.spec.training.expected_batch = 20;
    job.spec.training.optimizer.learning_rate = 0.01f;
    job.spec.training.seed = seed;
    job.spec.training.num_threads = 1;
    FineTune run = *FineTune::Begin({.dataset = "public ring", .run = "base"});
    ModelContents contents;
    contents.architecture = job.spec.architecture;
    contents.item_keys = ring.item_keys;
    const auto trained = run.Run(job, {.path = path, .contents = contents, .description = "trained"});
    ASSERT_TRUE(trained.ok()) << trained.status().message();
  }

  static DeploymentSettings Settings() {
    return {.num_records_public = kUsers,
            .epsilon = 8,
            .delta = 1e-4,
            .runs = 6,
            .steps_per_run = 6,
            .expected_batch = 200,
            .evaluations = 3,
            .gain_scale = 1,
            .learning_rate = 0.01,
            .trains_until = kUntil};
  }
  privacy::Ledger OpenLedger() {
    return *privacy::Ledger::Open(ledger_path_, {.dataset = "log.db", .record = privacy::RecordSpec::OfEvents({})});
  }
  void Plan(const DeploymentSettings& settings) {
    const ModelFile base = *ModelFile::Open(base_path_);
    const auto deployment = CalibrateDeployment(base.architecture(), settings);
    ASSERT_TRUE(deployment.ok()) << deployment.status().message();
    privacy::Ledger ledger = OpenLedger();
    const Status written = WriteDeployment(ledger, *deployment, "plan");
    ASSERT_TRUE(written.ok()) << written.message();
  }

  PlannedRunOptions Options() {
    PlannedRunOptions o;
    o.base_path = base_path_;
    o.output = output_;
    o.ledger.path = ledger_path_;
    o.run = "run " + std::to_string(runs_++);
    o.num_threads = 1;
    o.read = [this](const data::ReadOptions& options) {
      ++times_read_;
      return data::ReadSequences(log_path_, data::Format::kSqlite, options);
    };
    return o;
  }
  PlannedRunResult MustRun() {
    auto planned_run = RunPlanned(Options());
    EXPECT_TRUE(planned_run.ok()) << planned_run.status().message();
    return planned_run.ok() ? *std::move(planned_run) : PlannedRunResult{};
  }

  uint64_t ComputeHash(const std::string& path) const { return ModelFile::Open(path)->content_hash(); }
  uint64_t Charged(std::string_view purpose) {
    uint64_t steps = 0;
    const privacy::Ledger ledger = OpenLedger();
    for (const auto& entry : *ledger.Entries()) steps += entry.purpose == purpose ? entry.mechanism.steps() : 0;
    return steps;
  }
  // Returns the share of items for which the model predicts what follows on the device.
  double Knows(const std::string& path) const {
    const ModelFile model = *ModelFile::Open(path);
    const Recommender graph(model.architecture(), kernels::Device(kernels::BestOps()), {.use = GraphUse::kInference});
    data::Sequences ring = Ring(kDeviceStride);
    for (int32_t& item : ring.items) item = static_cast<int32_t>(*model.FindItem(Key(item)));
    const RecordSet set = MakeRecords(ring, 8, HoldOut::kTest);
    Workers workers(1, {});
    return EvaluateRanking(graph, ParameterSource(model.tensors()), set.test, workers).ndcg_at_10;
  }

  static constexpr int kDeviceStride = 3;
  test::TemporaryFolder folder_;
  const std::string base_path_ = folder_ / "base.wisp", log_path_ = folder_ / "log.db",
                    known_path_ = folder_ / "known.db", ledger_path_ = folder_ / "log.ledger",
                    output_ = folder_ / "mine.wisp";
  const PlanFiles files_{output_};
  int runs_ = 0, times_read_ = 0;
};

}  // namespace wisp

#endif  // WISP_TESTS_UNIT_PERSONALISE_PLANNED_RUN_TEST_UTIL_H_
