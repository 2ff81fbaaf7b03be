// The functions by which an app embeds a model under its own rules: models in memory and in the middle of a file, its
// own allocator, a limit on memory, the model's own figures, and a logger of training sessions.
#include "ports/c/wisp_embed.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "ports/c/wisp_deployment.h"
#include "runtime/core/platform.h"
#include "tests/unit/ports/c_personalise_fixture.h"

namespace wisp::test::c_embed_test {
namespace {

// Counts allocations, and fails after a chosen number of calls.
class CountingAllocator {
 public:
  explicit CountingAllocator(size_t most = SIZE_MAX) : most_(most) {}
  ~CountingAllocator() { EXPECT_TRUE(live_.empty()) << live_.size() << " buffers were not given back"; }
  wisp_allocator get() {
    wisp_allocator a = WISP_INIT(wisp_allocator);
    a.allocate = [](void* data, size_t bytes, size_t alignment) {
      return static_cast<CountingAllocator*>(data)->Allocate(bytes, alignment);
    };
    a.release = [](void* data, void* memory, size_t bytes) {
      static_cast<CountingAllocator*>(data)->Release(memory, bytes);
    };
    a.data = this;
    return a;
  }
  size_t bytes() const { return bytes_; }  // that are in use
  size_t calls() const { return calls_; }

 private:
  void* Allocate(size_t bytes, size_t alignment) {
    if (calls_ == most_) return nullptr;
    ++calls_;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    live_[memory] = bytes;
    bytes_ += bytes;
    return memory;
  }
  void Release(void* memory, size_t bytes) {
    const auto found = live_.find(memory);
    ASSERT_NE(found, live_.end()) << "never given out";
    EXPECT_EQ(found->second, bytes);
    bytes_ -= bytes;
    live_.erase(found);
    std::free(memory);
  }

  size_t most_, calls_ = 0, bytes_ = 0;
  std::map<void*, size_t> live_;
};

class CEmbedTest : public CPersonaliseTest {
 protected:
  ~CEmbedTest() override { wisp_model_close(model_); }

  // Returns the best item after a history; -1 without a model.
  int32_t Best() {
    const int32_t history[] = {1, 2, 3};
    wisp_recommendation best[1];
    size_t count = 1;
    if (model_ == nullptr || wisp_recommend(model_, history, 3, nullptr, best, &count, &error_) != WISP_OK) return -1;
    return best[0].item;
  }
  int32_t FindBestItem() {
    EXPECT_EQ(wisp_model_open(base_.c_str(), &model_, &error_), WISP_OK) << error_.message;
    const int32_t best = Best();
    Close();
    return best;
  }
  void Close() {
    wisp_model_close(model_);
    model_ = nullptr;
  }
  bool Says(const char* words) const { return std::string(error_.message).find(words) != std::string::npos; }
  wisp_code OpenWith(const wisp_allocator* allocator, uint64_t max_bytes = 0) {
    wisp_open_options options = WISP_INIT(wisp_open_options);
    options.allocator = allocator;
    options.max_bytes = max_bytes;
    return wisp_model_open_with(base_.c_str(), &options, &model_, &error_);
  }
  // Opens the base's file within a file, after `before` other bytes and before some more.
  wisp_code OpenWithin(size_t before, uint64_t length) {
    const std::string path = folder_ / "package", whole = ReadBytes(base_);
    WriteBytes(path, std::string(before, 'x') + whole + (length == 0 ? "" : std::string(100, 'y')));
    const int descriptor = platform::Open(path, platform::kRead);
    const wisp_code code =
        wisp_model_open_descriptor("package's model", descriptor, before, length, nullptr, &model_, &error_);
    EXPECT_EQ(platform::Close(descriptor), 0) << "it is the caller's";
    return code;
  }

  wisp_model* model_ = nullptr;
};

TEST_F(CEmbedTest, OpensModelsInMemory) {
  const std::string file = ReadBytes(base_);
  AlignedArray<std::byte> bytes(file.size() + 64);
  std::memcpy(bytes.data(), file.data(), file.size());
  const auto open = [&](size_t at, size_t length) {
    return wisp_model_open_memory("asset", bytes.data() + at, length, nullptr, &model_, &error_);
  };
  ASSERT_EQ(open(0, file.size()), WISP_OK) << error_.message;
  const int32_t best = Best();
  Close();
  EXPECT_EQ(best, FindBestItem());
  EXPECT_EQ(open(8, file.size()), WISP_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("asset")) << error_.message;
  EXPECT_EQ(open(0, file.size() / 2), WISP_INVALID_DATA) << "cut short";
  EXPECT_EQ(open(0, 0), WISP_INVALID_DATA);
  // The weights differ from their checksum, and are checked before anything is recommended.
  bytes.data()[file.size() - 4] ^= std::byte{1};
  EXPECT_EQ(open(0, file.size()), WISP_INVALID_DATA);
  EXPECT_EQ(wisp_model_open_memory(nullptr, bytes.data(), 1, nullptr, &model_, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_model_open_memory("asset", nullptr, 1, nullptr, &model_, &error_), WISP_INVALID_ARGUMENT);
}

TEST_F(CEmbedTest, RefusesWhatNeedsAPath) {
  const std::string file = ReadBytes(base_);
  AlignedArray<std::byte> bytes(file.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  const auto open = [&](const wisp_open_options& options) {
    return wisp_model_open_memory("asset", bytes.data(), file.size(), &options, &model_, &error_);
  };
  wisp_verified verified = {};
  wisp_open_options options = WISP_INIT(wisp_open_options);
  options.verify = WISP_VERIFY_ONCE;
  options.verified = &verified;
  EXPECT_EQ(open(options), WISP_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("WISP_VERIFY_ONCE")) << error_.message;
  options = WISP_INIT(wisp_open_options);
  options.adapter_path = base_.c_str();
  EXPECT_EQ(open(options), WISP_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("adapter_path")) << error_.message;
}

TEST_F(CEmbedTest, OpensModelsInTheMiddleOfAFile) {
  const int32_t best = FindBestItem();
  const size_t length = ReadBytes(base_).size();
  // On a page, on 64 bytes, and at any place in an archive: the last is copied.
  for (const size_t before : {0, 64, 4096, 8192 + 64, 4, 4099}) {
    for (const size_t asked : {size_t{0}, length}) {
      SCOPED_TRACE(std::to_string(asked) + " bytes from " + std::to_string(before));
      ASSERT_EQ(OpenWithin(before, asked), WISP_OK) << error_.message;
      EXPECT_EQ(Best(), best);
      Close();
    }
  }
  EXPECT_EQ(OpenWithin(64, length + 1000), WISP_INVALID_ARGUMENT) << "more than the file has";
  EXPECT_TRUE(Says("package's model")) << error_.message;
  EXPECT_EQ(OpenWithin(64, UINT64_MAX - 10), WISP_INVALID_ARGUMENT) << "no overflow";
  EXPECT_EQ(OpenWithin(64, length - 4), WISP_INVALID_DATA);
  EXPECT_EQ(wisp_model_open_descriptor("m", -1, 0, 0, nullptr, &model_, &error_), WISP_IO);
}

TEST_F(CEmbedTest, TakesLargeBuffersFromTheApp) {
  wisp_model_memory memory = WISP_INIT(wisp_model_memory);
  ASSERT_EQ(wisp_model_plan_memory(base_.c_str(), &memory, &error_), WISP_OK);
  const int32_t best = FindBestItem();
  CountingAllocator app;
  const wisp_allocator allocator = app.get();
  ASSERT_EQ(OpenWith(&allocator), WISP_OK) << error_.message;
  EXPECT_GT(app.calls(), 0u);
  EXPECT_GE(app.bytes(), memory.activation_bytes);
  EXPECT_LE(app.bytes(), memory.total_bytes);
  EXPECT_EQ(Best(), best);
  Close();
  EXPECT_EQ(app.bytes(), 0u);
}

TEST_F(CEmbedTest, AnAllocatorWithoutMemoryIsAnErrorWheneverItEnds) {
  size_t calls = 0;
  {
    CountingAllocator app;
    const wisp_allocator allocator = app.get();
    ASSERT_EQ(OpenWith(&allocator), WISP_OK);
    calls = app.calls();
    Close();
  }
  for (size_t most = 0; most < calls; ++most) {
    CountingAllocator app(most);
    const wisp_allocator allocator = app.get();
    EXPECT_EQ(OpenWith(&allocator), WISP_INTERNAL);
    EXPECT_TRUE(Says("memory")) << error_.message;
    EXPECT_EQ(model_, nullptr);
  }
  wisp_allocator none = WISP_INIT(wisp_allocator);
  EXPECT_EQ(OpenWith(&none), WISP_INVALID_ARGUMENT);
}

TEST_F(CEmbedTest, HoldsOpeningToACeiling) {
  wisp_model_memory memory = WISP_INIT(wisp_model_memory);
  ASSERT_EQ(wisp_model_plan_memory(base_.c_str(), &memory, &error_), WISP_OK);
  EXPECT_EQ(OpenWith(nullptr, memory.total_bytes), WISP_OK) << error_.message;
  Close();
  CountingAllocator app;
  const wisp_allocator allocator = app.get();
  EXPECT_EQ(OpenWith(&allocator, memory.total_bytes - 1), WISP_INVALID_ARGUMENT);
  EXPECT_TRUE(Says(std::to_string(memory.total_bytes).c_str())) << error_.message;
  EXPECT_EQ(app.calls(), 0u) << "looked at before anything is allocated";
}

TEST_F(CEmbedTest, SaysWhatAModelIs) {
  ASSERT_EQ(wisp_model_open(base_.c_str(), &model_, &error_), WISP_OK);
  wisp_model_info info = WISP_INIT(wisp_model_info);
  ASSERT_EQ(wisp_model_info_read(model_, &info, &error_), WISP_OK) << error_.message;
  const ModelFile file = *ModelFile::Open(base_);
  EXPECT_EQ(info.num_items, 12u);
  EXPECT_EQ(info.max_length, 6u);
  EXPECT_EQ(info.width, 8u);
  EXPECT_EQ(info.num_blocks, 1u);
  EXPECT_EQ(info.num_retired, 0u);
  EXPECT_EQ(info.allow_seen, 0);
  EXPECT_EQ(info.num_provenance, 1u);
  EXPECT_EQ(info.format, file.format_version());
  EXPECT_EQ(info.has_keys, 1);
  EXPECT_EQ(info.content_hash, file.content_hash());
  EXPECT_EQ(info.file_bytes, ReadBytes(base_).size());
  AtEverySize(wisp_model_info{}, [&](Cut<wisp_model_info>& cut) {
    EXPECT_EQ(wisp_model_info_read(model_, cut.get(), &error_), cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT);
  });
}

TEST_F(CEmbedTest, SaysWhereTheWeightsComeFrom) {
  MustRun();
  ASSERT_EQ(wisp_model_open(out_.c_str(), &model_, &error_), WISP_OK);
  wisp_provenance first = WISP_INIT(wisp_provenance), last = WISP_INIT(wisp_provenance);
  ASSERT_EQ(wisp_model_provenance(model_, 0, &first, &error_), WISP_OK) << error_.message;
  ASSERT_EQ(wisp_model_provenance(model_, 1, &last, &error_), WISP_OK) << error_.message;
  EXPECT_STREQ(first.description, "random weights");
  EXPECT_STREQ(first.mechanisms, "random");
  EXPECT_EQ(last.base_hash, ModelFile::Open(base_)->content_hash());
  EXPECT_GT(last.epsilon, 0);
  EXPECT_LE(last.epsilon, 8);
  EXPECT_EQ(last.delta, 1e-4);
  EXPECT_STREQ(last.privacy_unit, "user");
  EXPECT_NE(std::string(last.mechanisms).find("Gaussian"), std::string::npos) << last.mechanisms;
  EXPECT_EQ(last.secure_noise, 1);
  EXPECT_GT(last.steps, 0u);
  EXPECT_STREQ(first.mechanisms, "random") << "strings stay as they are";
  EXPECT_EQ(wisp_model_provenance(model_, 2, &last, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("2 entries")) << error_.message;
}

class CPlannedRunTest : public CEmbedTest {
 protected:
  CPlannedRunTest() {
    wisp_plan_options plan = WISP_INIT(wisp_plan_options);
    plan.model_path = base_.c_str();
    plan.ledger_path = ledger_.c_str();
    plan.dataset = "log.db";
    plan.epsilon = 8;
    plan.delta = 1e-4;
    plan.num_records_public = 20;
    plan.runs = 2;
    plan.steps_per_run = 3;
    plan.evaluations = 1;
    plan.unit = WISP_UNIT_USER;
    EXPECT_EQ(wisp_plan_make(&plan, nullptr, &error_), WISP_OK) << error_.message;
    run_.model_path = base_.c_str();
    run_.log_path = log_.c_str();
    run_.output_path = out_.c_str();
    run_.ledger_path = ledger_.c_str();
    run_.num_threads = 1;
  }
  wisp_code RunPlanned() { return wisp_run_planned(&run_, nullptr, &error_); }
  uint64_t StepsLeft() {
    wisp_budget budget = WISP_INIT(wisp_budget);
    EXPECT_EQ(wisp_budget_read(ledger_.c_str(), nullptr, 1e-4, &budget, &error_), WISP_OK) << error_.message;
    return budget.steps_left;
  }

  wisp_run_options run_ = WISP_INIT(wisp_run_options);
};

TEST_F(CPlannedRunTest, APlannedRunTakesItsMemoryFromTheApp) {
  CountingAllocator app;
  const wisp_allocator allocator = app.get();
  run_.allocator = &allocator;
  ASSERT_EQ(RunPlanned(), WISP_OK) << error_.message;
  EXPECT_GT(app.calls(), 0u);
  EXPECT_EQ(app.bytes(), 0u);
}

// The app runs out of memory at any one allocation: the served model stays, and later sessions continue it.
TEST_F(CPlannedRunTest, APlannedRunWithoutMemoryIsAnErrorAndLosesNothing) {
  for (const size_t most : {0, 1, 3}) {
    CountingAllocator app(most);
    const wisp_allocator allocator = app.get();
    run_.allocator = &allocator;
    EXPECT_EQ(RunPlanned(), WISP_INTERNAL) << most;
  }
  run_.allocator = nullptr;
  ASSERT_EQ(RunPlanned(), WISP_OK) << error_.message;
  EXPECT_EQ(ModelFile::Open(out_)->content_hash(), ModelFile::Open(base_)->content_hash());
}

TEST_F(CPlannedRunTest, ACeilingRefusesAPlannedRunBeforeAnythingIsCharged) {
  run_.max_bytes = 1000;
  EXPECT_EQ(RunPlanned(), WISP_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("1000")) << error_.message;
  EXPECT_EQ(StepsLeft(), 6u);
  run_.max_bytes = 100 << 20;
  ASSERT_EQ(RunPlanned(), WISP_OK) << error_.message;
  EXPECT_EQ(StepsLeft(), 3u);
}

TEST_F(CPlannedRunTest, ALoggerHearsOfStepsVerdictsAndEndsButOfNoRecord) {
  std::vector<std::pair<wisp_log_level, std::string>> heard;
  wisp_logger logger = WISP_INIT(wisp_logger);
  logger.data = &heard;
  logger.write = [](void* data, wisp_log_level level, const char* sentence) {
    static_cast<decltype(heard)*>(data)->emplace_back(level, sentence);
  };
  run_.logger = &logger;
  const auto hears = [&](wisp_log_level level, const std::string& sentence) {
    return std::find(heard.begin(), heard.end(), std::pair(level, sentence)) != heard.end();
  };
  ASSERT_EQ(RunPlanned(), WISP_OK) << error_.message;
  EXPECT_TRUE(hears(WISP_LOG_INFO, "trained 3 steps, 3 in all"));
  EXPECT_TRUE(hears(WISP_LOG_INFO, "the base is served"));
  ASSERT_EQ(RunPlanned(), WISP_OK) << error_.message;
  EXPECT_TRUE(hears(WISP_LOG_INFO, "trained 3 steps, 6 in all"));
  EXPECT_TRUE(hears(WISP_LOG_INFO, "evaluated: undecided"));
  heard.clear();
  ASSERT_EQ(RunPlanned(), WISP_OK) << error_.message;
  EXPECT_TRUE(hears(WISP_LOG_WARNING, "the plan has no steps left: nothing is trained"));
  logger.write = nullptr;
  EXPECT_EQ(RunPlanned(), WISP_INVALID_ARGUMENT);
}

TEST_F(CEmbedTest, ScoresAndVectors_AreThoseOfTheLists) {
  ASSERT_EQ(wisp_model_open(base_.c_str(), &model_, &error_), WISP_OK) << error_.message;
  wisp_model_info info = WISP_INIT(wisp_model_info);
  ASSERT_EQ(wisp_model_info_read(model_, &info, &error_), WISP_OK);
  const int32_t history[] = {1, 2, 3};
  wisp_recommend_options seen = WISP_INIT(wisp_recommend_options);
  seen.allow_seen = 1;
  std::vector<wisp_recommendation> best(info.num_items);
  size_t count = best.size();
  ASSERT_EQ(wisp_recommend(model_, history, 3, &seen, best.data(), &count, &error_), WISP_OK) << error_.message;
  std::vector<float> scores(info.num_items), state(info.width), items(size_t{info.num_items} * info.width);
  ASSERT_EQ(wisp_score(model_, history, 3, scores.data(), scores.size(), &error_), WISP_OK) << error_.message;
  ASSERT_EQ(wisp_history_vector(model_, history, 3, state.data(), state.size(), &error_), WISP_OK) << error_.message;
  ASSERT_EQ(wisp_item_vectors(model_, items.data(), items.size(), &error_), WISP_OK) << error_.message;
  const auto rest = [&](const wisp_recommendation& r) {  // the item's bias
    double product = 0;
    for (size_t i = 0; i < info.width; ++i) product += state[i] * items[size_t(r.item) * info.width + i];
    return r.score - product;
  };
  const int32_t other[] = {5};
  std::vector<float> others(info.num_items), other_state(info.width);
  ASSERT_EQ(wisp_score(model_, other, 1, others.data(), others.size(), &error_), WISP_OK);
  ASSERT_EQ(wisp_history_vector(model_, other, 1, other_state.data(), other_state.size(), &error_), WISP_OK);
  for (const wisp_recommendation& r : best) {
    EXPECT_EQ(scores[size_t(r.item)], r.score);
    const double first = rest(r);
    std::swap(state, other_state);
    EXPECT_NEAR(rest({r.item, others[size_t(r.item)]}), first, 1e-4) << r.item;
    std::swap(state, other_state);
  }
  EXPECT_EQ(wisp_score(model_, nullptr, 0, scores.data(), scores.size(), &error_), WISP_OK);
  EXPECT_EQ(wisp_history_vector(model_, nullptr, 0, state.data(), state.size(), &error_), WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("it has no vector"), std::string::npos) << error_.message;
  EXPECT_EQ(wisp_score(model_, nullptr, 3, scores.data(), scores.size(), &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_score(model_, history, 3, scores.data(), 3, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_item_vectors(model_, items.data(), items.size() + 1, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_item_vectors(nullptr, items.data(), items.size(), &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_history_vector(model_, history, 3, nullptr, state.size(), &error_), WISP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace wisp::test::c_embed_test
