// Sessions in a device's memory: scores as on the processor, the same bits whatever was asked before and however work
// is launched, refusals in sentences, and no wrong results from a failing device.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "runtime/inference/session.h"
#ifndef WISP_TEST_GPU
#include "kernels/cuda/emulate/emulate.h"
#endif
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/device/cuda/device_test_util.h"

namespace wisp::device_session_test {
namespace {

using test::FailingMemory, test::OneByOne, test::TheDevice;

// Several tiles of items, the last one smaller.
const UniformArchitecture kLarger = {
    .num_items = 700, .max_length = 40, .width = 24, .num_heads = 2, .num_blocks = 2, .inner_width = 40};

class DeviceSessionTest : public ::testing::Test {
 protected:
  void Write(const Architecture& a, uint32_t seed, WeightStorage tables = WeightStorage::kFloat) {
    weights_ = test::RandomWeights(a, seed);
    ASSERT_TRUE(
        WriteModel(path_, {.architecture = a, .weights = weights_, .created_by = "test", .storage = tables}).ok());
  }
  std::unique_ptr<Session> Open(const kernels::Device& device) {
    auto session = Session::Open(path_, SessionOptions{.device = device});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return *std::move(session);
  }
  // Writes this number into the last row of the item table.
  void Damage(float damage) {
    const auto file = *ModelFile::Open(path_);
    const ParameterSpec& table = file.parameters()[0];
    const auto* last = reinterpret_cast<const char*>(file.Tensor(0) + table.size() - 4);
    std::fstream bytes(path_, std::ios::in | std::ios::out | std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(bytes)), std::istreambuf_iterator<char>());
    const size_t at = all.find(std::string(last, 4 * sizeof(float)));
    ASSERT_NE(at, std::string::npos);
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.write(reinterpret_cast<const char*>(&damage), sizeof damage);
  }
  static std::vector<float> Scores(Session& session, const std::vector<int32_t>& history) {
    std::vector<float> scores(session.architecture().num_items);
    const Status status = session.Score(history, scores);
    EXPECT_TRUE(status.ok()) << status.message();
    return scores;
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.wisp";
  std::vector<float> weights_;
};

TEST_F(DeviceSessionTest, ScoresAreTheProcessors) {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(kLarger);
  all.push_back(UniformArchitecture{.num_items = 9, .max_length = 6, .width = 8, .num_blocks = 0, .inner_width = 8});
  uint32_t seed = 70;
  for (const Architecture& a : all) {
    for (const WeightStorage tables : {WeightStorage::kFloat, WeightStorage::kHalf}) {
      SCOPED_TRACE(seed);
      Write(a, ++seed, tables);
      const auto host = *Session::Open(path_), device = Open(TheDevice());
      for (size_t length : {1, 2, 6, 90}) {
        const std::vector<int32_t> history = test::RandomRecord(a.num_items, length, seed).inputs;
        const std::vector<float> expected = Scores(*host, history), scores = Scores(*device, history);
        for (size_t j = 0; j < scores.size(); ++j)
          ASSERT_NEAR(scores[j], expected[j], 4e-5 * (1 + std::abs(expected[j]))) << "item " << j;
      }
    }
  }
}

#ifndef WISP_TEST_GPU
// The emulator takes the time of a slow device; asked the other way round, the processor is a fast one.
TEST_F(DeviceSessionTest, OneHistory_isMeasured) {
  Write(kLarger, 12);
  const auto slow = Open(TheDevice()), fast = *Session::Open(path_);
  EXPECT_FALSE(*IsFasterForOne(*slow, *fast));
  EXPECT_TRUE(*IsFasterForOne(*fast, *slow));
}

TEST_F(DeviceSessionTest, OneHistory_runsWhereItIsFaster) {
  Write(kLarger, 12);
  const SessionOptions options{.device = TheDevice(), .one_history = OneHistory::kWhereFaster};
  const auto session = *Session::Open(path_, options), host = *Session::Open(path_), device = Open(TheDevice());
  EXPECT_FALSE(session->one_history_on_device());
  EXPECT_FALSE(session->graph().device().memory.is_host()) << "batches are the device's";
  EXPECT_TRUE(device->one_history_on_device());
  const std::vector<int32_t> history = {5, 600, 7};
  EXPECT_EQ(Scores(*session, history), Scores(*host, history));
  EXPECT_EQ(Scores(*session, {}), Scores(*host, {}));
  EXPECT_EQ((*session->Recommend(history, {.count = 4}))[0].score, (*host->Recommend(history, {.count = 4}))[0].score);
  EXPECT_EQ(session->planned_bytes(), Session::PlanMemory(session->file(), options)->total());
  EXPECT_EQ(session->planned_bytes(), device->planned_bytes() + host->planned_bytes());
}

TEST_F(DeviceSessionTest, OneHistory_damagedWeightsAreSaidWhenAsked) {
  Write(kLarger, 12);
  Damage(std::numeric_limits<float>::quiet_NaN());
  const auto session = Session::Open(path_, {.device = TheDevice(), .one_history = OneHistory::kWhereFaster});
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ((*session)->Recommend(std::vector<int32_t>{0}, {.count = 3}).status().code(), StatusCode::kInvalidData);
}

TEST_F(DeviceSessionTest, OneHistory_aDeviceThatFailsIsSaid) {
  Write(kLarger, 12);
  FailingMemory working(1 << 30);
  ASSERT_TRUE(Session::Open(path_, {.device = working.device()}).ok());
  int failed = 0;
  for (int calls = 0;; ++calls) {
    FailingMemory memory(calls);
    const auto session = Session::Open(path_, {.device = memory.device(), .one_history = OneHistory::kWhereFaster});
    if (session.ok()) break;
    EXPECT_EQ(session.status().code(), StatusCode::kIo) << calls;
    ++failed;
  }
  EXPECT_GT(failed, 20) << "some of them while it is measured";
}
#endif

// Appended events are among the histories. They run by one launch, and by one for each op.
TEST_F(DeviceSessionTest, ScoresDoNotDependOnTheHistoriesBeforeNorOnLaunches) {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(kLarger);
  uint32_t seed = 30;
  for (const Architecture& a : all) {
    Write(a, ++seed);
    const auto session = Open(TheDevice()), each = Open(OneByOne());
    std::vector<int32_t> history;
    std::mt19937 random(seed);
    for (int i = 0; i < 14; ++i) {
      const auto item = static_cast<int32_t>(random() % a.num_items);
      if (i % 7 == 6) history.resize(1 + random() % history.size());
      if (i % 5 != 4) history.push_back(item);
      if (i % 4 == 3) history.insert(history.end(), {item, 0, 1});
      const std::vector<float> scores = Scores(*session, history);
      ASSERT_EQ(scores, Scores(*Open(OneByOne()), history)) << "step " << i << ", seed " << seed;
      ASSERT_EQ(scores, Scores(*each, history)) << "step " << i << ", seed " << seed;
    }
  }
}

TEST_F(DeviceSessionTest, RecommendationsAreTheBestThatAreAllowed) {
  Write(kLarger, 5);
  const auto session = Open(TheDevice());
  const std::vector<int32_t> history = {3, 699, 17, 3, 256};
  const std::vector<float> scores = Scores(*session, history);
  const auto expect = [&](const RecommendOptions& options, auto&& allowed) {
    std::vector<int32_t> order;
    for (int32_t i = 0; i < static_cast<int32_t>(scores.size()); ++i) {
      if (allowed(i)) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t x, int32_t y) { return scores[x] > scores[y]; });
    order.resize(std::min(order.size(), options.count));
    const auto top = *session->Recommend(history, options);
    ASSERT_EQ(top.size(), order.size());
    for (size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(top[i].item, order[i]) << "rank " << i;
      EXPECT_EQ(top[i].score, scores[static_cast<size_t>(order[i])]);
    }
  };
  const auto unseen = [&](int32_t i) { return std::find(history.begin(), history.end(), i) == history.end(); };
  const std::vector<int32_t> excluded = {0, 31, 32, 698}, candidates = {2, 17, 64, 64, 255, 699};
  // The host chooses counts above kMostTopK.
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{10}, kernels::kMostTopK, kernels::kMostTopK + 1, size_t{9999}}) {
    expect({.count = count}, unseen);
    expect({.count = count, .seen = SeenItems::kAllow}, [](int32_t) { return true; });
    expect({.count = count, .excluded = excluded},
           [&](int32_t i) { return unseen(i) && std::find(excluded.begin(), excluded.end(), i) == excluded.end(); });
    expect({.count = count, .candidates = candidates}, [&](int32_t i) {
      return unseen(i) && std::find(candidates.begin(), candidates.end(), i) != candidates.end();
    });
  }
}

#ifndef WISP_TEST_GPU
// One launch computes from the history to its best items, whether it computes everything or only the change of one more
// event.
TEST_F(DeviceSessionTest, ARecommendationIsOneLaunch) {
  std::vector<Architecture> all = {kLarger};
  for (const Architecture& a : test::SmallArchitectures()) {
    if (a.re_attention == ReAttention::kOff) all.push_back(a);  // variances have no stages
  }
  for (const Architecture& a : all) {
    Write(a, 4);
    const auto session = Open(TheDevice());
    std::vector<int32_t> history = {1, 2, 0, 3};
    for (int i = 0; i < 3; ++i) {
      const uint64_t before = kernels::cuda::emulate::NumLaunches();
      ASSERT_TRUE(session->Recommend(history, {.count = 3}).ok());
      EXPECT_EQ(kernels::cuda::emulate::NumLaunches() - before, 1u);
      history.push_back(i);
    }
  }
}
#endif

TEST_F(DeviceSessionTest, DamagedWeightsAreSaidAsOnTheProcessor) {
  for (const float damage : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Write(kLarger, 6);
    Damage(damage);
    const std::vector<int32_t> history = {1, 2};
    const auto host = (*Session::Open(path_))->Recommend(history, {.count = 3});
    const auto device = Open(TheDevice())->Recommend(history, {.count = 3});
    ASSERT_FALSE(host.ok());
    EXPECT_EQ(device.status().code(), StatusCode::kInvalidData);
    EXPECT_EQ(device.status().message(), host.status().message());
  }
}

TEST_F(DeviceSessionTest, UnsupportedRequests_AreRefused) {
  Write(test::SmallArchitectures()[0], 7);
  const auto refused = [&](const SessionOptions& options, const char* words) {
    for (const Status& status :
         {Session::Open(path_, options).status(), Session::PlanMemory(*ModelFile::Open(path_), options).status()}) {
      EXPECT_EQ(status.code(), StatusCode::kUnsupported);
      EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    }
  };
  refused({.backend = Backend::kInt8, .device = TheDevice()}, "a session on the device cuda has kernels of its own");
  refused({.backend = Backend::kXnnpack, .device = TheDevice()}, "a session on the device cuda has kernels of its own");
  const auto session = Open(TheDevice());
  const std::vector<int32_t> far = {99};
  EXPECT_EQ(session->Recommend(far, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Recommend(std::vector<int32_t>{1}, {.excluded = far}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(DeviceSessionTest, NoHistory_GivesTheHostsList) {
  Write(test::SmallArchitectures()[0], 7);
  const auto host = Open(kernels::BestOps())->Recommend({}, {.count = 3}),
             device = Open(TheDevice())->Recommend({}, {.count = 3});
  ASSERT_TRUE(host.ok() && device.ok());
  ASSERT_EQ(host->size(), device->size());
  for (size_t i = 0; i < host->size(); ++i) {
    EXPECT_EQ((*device)[i].item, (*host)[i].item);
    EXPECT_NEAR((*device)[i].score, (*host)[i].score, 1e-4);
  }
}

TEST_F(DeviceSessionTest, MemoryIsWhatWasPlanned) {
  for (const Architecture& a : test::SmallArchitectures()) {
    for (const WeightStorage tables : {WeightStorage::kFloat, WeightStorage::kHalf}) {
      Write(a, 8, tables);
      const SessionOptions options{.device = TheDevice()};
      const InferenceMemory plan = *Session::PlanMemory(*ModelFile::Open(path_), options);
      const size_t before = kernels::cuda::AllocatedBytes();
      const auto session = Open(TheDevice());
      EXPECT_EQ(kernels::cuda::AllocatedBytes() - before, plan.on_device);
      EXPECT_EQ(session->memory().on_device, plan.on_device);
      EXPECT_EQ(session->memory().total(), plan.total());
      EXPECT_LT(plan.on_device, plan.total());
    }
  }
}

// On a device that shares the host's memory, the item table of 700 rows is not copied, but gains and biases are.
TEST_F(DeviceSessionTest, TablesAreReadWhereTheyLie) {
  for (const WeightStorage tables : {WeightStorage::kFloat, WeightStorage::kHalf}) {
    Write(kLarger, 12, tables);
    const ModelFile file = *ModelFile::Open(path_);
    const size_t table_bytes = file.parameters()[0].size() * (tables == WeightStorage::kHalf ? 2 : 4);
    size_t all_bytes = 0;
    for (size_t i = 0; i < file.parameters().size(); ++i)
      all_bytes += file.parameters()[i].size() * (file.tensors()[i].halves != nullptr ? 2 : 4);
    const InferenceMemory plan = *Session::PlanMemory(file, {.device = TheDevice()});
    EXPECT_GT(plan.weights, all_bytes - table_bytes);
    if (TheDevice().memory.can_share()) {
      EXPECT_LT(plan.weights, all_bytes);
    } else {
      EXPECT_GT(plan.weights, all_bytes);
    }
    const std::vector<int32_t> history = {3, 699, 17};
    const std::vector<float> host = Scores(**Session::Open(path_), history);
    std::vector<float> expected;
    for (const bool shares : {true, false, true}) {
      kernels::MemoryTable table = kernels::cuda::DeviceMemory();
      if (!shares && table.share != nullptr)
        table.share = [](void*, const void*, size_t) -> const void* { return nullptr; };
      const size_t before = kernels::cuda::AllocatedBytes();
      const auto session = Open({kernels::cuda::Ops(), kernels::Memory(table, nullptr)});
      const std::vector<float> scores = Scores(*session, history);
      if (expected.empty()) expected = scores;
      EXPECT_EQ(scores, expected);
      for (size_t j = 0; j < scores.size(); ++j) ASSERT_NEAR(scores[j], host[j], 4e-5 * (1 + std::abs(host[j])));
      // If the driver shares nothing, this is what the session holds, not what was planned.
      EXPECT_EQ(session->memory().on_device, kernels::cuda::AllocatedBytes() - before);
      EXPECT_EQ(session->memory().on_device == plan.on_device, shares || table.share == nullptr);
    }
  }
}

// If the driver shares nothing, the error about too little memory names what copies take.
TEST_F(DeviceSessionTest, TooLittleMemory_NamesTheCopies) {
  Write(kLarger, 13);
  if (!TheDevice().memory.can_share()) GTEST_SKIP() << "this device has memory of its own";
  static kernels::MemoryTable table = kernels::cuda::DeviceMemory();
  table.share = [](void*, const void*, size_t) -> const void* { return nullptr; };
  const kernels::Memory memory(table, nullptr);
  const size_t held = Open({kernels::cuda::Ops(), memory})->memory().on_device;
  table.allocate = [](void*, size_t) -> void* { throw std::bad_alloc(); };
  const Status status = Session::Open(path_, SessionOptions{.device = {kernels::cuda::Ops(), memory}}).status();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find("which takes " + std::to_string(held) + " bytes there"), std::string::npos)
      << held << ": " << status.message();
}

// Float16 tables are scored in place, in 32-bit floats except with integers.
TEST_F(DeviceSessionTest, OtherArithmetics_ScoreFloat16Tables) {
  Write(kLarger, 23, WeightStorage::kHalf);
  const std::vector<int32_t> history = {3, 699, 17};
  const std::vector<float> expected = Scores(**Session::Open(path_), history);
  float largest = 0;
  for (const float score : expected) largest = std::max(largest, std::abs(score));
  for (const auto arithmetic : {kernels::Arithmetic::kTf32, kernels::Arithmetic::kFloat16,
                                kernels::Arithmetic::kBfloat16, kernels::Arithmetic::kInt8}) {
    const auto session = Open({kernels::cuda::Ops(arithmetic), TheDevice().memory});
    const std::vector<float> scores = Scores(*session, history);
    for (size_t j = 0; j < scores.size(); ++j) ASSERT_NEAR(scores[j], expected[j], 6e-2f * largest) << j;
  }
}

// ---- Other arithmetics. ---------------------------------------------------------------------------------------------

struct Other {
  kernels::Arithmetic arithmetic;
  float off;       // of the scores, relative to the largest
  size_t smaller;  // divisor of the packed weights
};
constexpr Other kOthers[] = {{kernels::Arithmetic::kTf32, 4e-3f, 1},
                             {kernels::Arithmetic::kFloat16, 4e-3f, 2},
                             {kernels::Arithmetic::kBfloat16, 3e-2f, 2},
                             {kernels::Arithmetic::kInt8, 6e-2f, 4}};

kernels::Device ChooseDevice(const Other& other, const kernels::Device& like) {
  return {kernels::cuda::Ops(other.arithmetic), like.memory};
}

TEST_F(DeviceSessionTest, OtherArithmeticsScoreNearby) {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(kLarger);
  uint32_t seed = 130;
  for (const Architecture& a : all) {
    if (a.re_attention == ReAttention::kOn) continue;  // squares of weights are tested elsewhere
    Write(a, ++seed);
    const auto host = *Session::Open(path_);
    const std::vector<int32_t> history = test::RandomRecord(a.num_items, 6, seed).inputs;
    const std::vector<float> expected = Scores(*host, history);
    float largest = 0;
    for (const float score : expected) largest = std::max(largest, std::abs(score));
    for (const Other& other : kOthers) {
      const kernels::Device device = ChooseDevice(other, TheDevice());
      SCOPED_TRACE(::testing::Message() << device.ops->name << ", seed " << seed);
      const std::vector<float> scores = Scores(*Open(device), history);
      EXPECT_NE(scores, expected);
      for (size_t j = 0; j < scores.size(); ++j) ASSERT_NEAR(scores[j], expected[j], other.off * largest) << j;
    }
  }
}

TEST_F(DeviceSessionTest, NumbersBeyondFloat16_AreSaid) {
  const Architecture a = kLarger;
  weights_ = test::RandomWeights(a, 22);
  const ParameterSpec table = ListParameters(a)[0];
  weights_[table.offset + 5] = 1e5f;
  ASSERT_TRUE(WriteModel(path_, {.architecture = a, .weights = weights_, .created_by = "test"}).ok());
  const std::vector<int32_t> history = {1, 2};
  for (const Other& other : kOthers) {
    const auto top = Open(ChooseDevice(other, TheDevice()))->Recommend(history, {.count = 3});
    EXPECT_EQ(top.ok(), other.arithmetic != kernels::Arithmetic::kFloat16) << top.status().message();
    if (top.ok()) continue;
    EXPECT_NE(top.status().message().find("too large for cuda float16, whose largest number is 65504"),
              std::string::npos)
        << top.status().message();
  }
}

TEST_F(DeviceSessionTest, OtherArithmeticsAreOneLaunchAndRememberToTheBit) {
  Write(kLarger, 21);
  const auto float_session = Open(TheDevice());
  for (const Other& other : kOthers) {
    const auto session = Open(ChooseDevice(other, TheDevice())), each = Open(ChooseDevice(other, OneByOne()));
    SCOPED_TRACE(session->graph().ops().name);
    std::vector<int32_t> history = {4, 90, 5};
    for (const int32_t next : {1, 699, 4}) {
      history.push_back(next);
#ifndef WISP_TEST_GPU
      const uint64_t before = kernels::cuda::emulate::NumLaunches();
      ASSERT_TRUE(session->Recommend(history, {.count = 3}).ok());
      EXPECT_EQ(kernels::cuda::emulate::NumLaunches() - before, 1u);
#endif
      const std::vector<float> scores = Scores(*session, history);
      ASSERT_EQ(scores, Scores(*each, history));
      ASSERT_EQ(scores, Scores(*Open(ChooseDevice(other, TheDevice())), history));
    }
    // Besides the words there are constants, and the padding of a row or a matrix.
    const size_t words = float_session->memory().packed_weights / other.smaller;
    EXPECT_GE(session->memory().packed_weights, words);
    EXPECT_LT(session->memory().packed_weights, words + words / 4);
  }
}

// ---- A device that has no room, or fails. ---------------------------------------------------------------------------

TEST_F(DeviceSessionTest, ADeviceThatFailsGivesNoList) {
  Write(kLarger, 9);
  const std::vector<int32_t> history = {5, 6, 7};
  const auto good = *Open(TheDevice())->Recommend(history, {.count = 4});
  bool reached_the_end = false;
  for (int calls = 0; !reached_the_end; ++calls) {
    FailingMemory memory(calls);
    const auto session = Session::Open(path_, SessionOptions{.device = memory.device()});
    if (!session.ok()) {
      EXPECT_NE(session.status().message().find("it fell off the bus"), std::string::npos);
      continue;
    }
    EXPECT_FALSE(memory.failed()) << "a session on a device that has failed";
    const auto top = (*session)->Recommend(history, {.count = 4});
    reached_the_end = top.ok();
    if (!top.ok()) {
      EXPECT_EQ(top.status().code(), StatusCode::kIo);
      std::vector<float> scores(kLarger.num_items);
      EXPECT_FALSE((*session)->Score(history, scores).ok());
      continue;
    }
    ASSERT_EQ(top->size(), good.size());
    for (size_t i = 0; i < good.size(); ++i) EXPECT_EQ((*top)[i].item, good[i].item);
  }
}

TEST_F(DeviceSessionTest, TooLittleMemory_IsSaidAndLeavesNothing) {
  Write(kLarger, 10);
  const size_t before = kernels::cuda::AllocatedBytes();
  for (int allocations = 0;; ++allocations) {
    FailingMemory memory(allocations, /*of_allocations=*/true);
    const auto session = Session::Open(path_, SessionOptions{.device = memory.device()});
    if (session.ok()) {
      EXPECT_GT(allocations, 3);
      break;
    }
    EXPECT_EQ(session.status().code(), StatusCode::kIo);
    EXPECT_NE(session.status().message().find("there is no room on the device cuda"), std::string::npos);
    EXPECT_EQ(kernels::cuda::AllocatedBytes(), before);
  }
}

}  // namespace
}  // namespace wisp::device_session_test
