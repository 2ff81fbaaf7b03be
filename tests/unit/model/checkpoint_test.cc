// Checkpoints: they restore what was saved, and some state must never be saved.
// model_corruption_test.cc tests damage of every byte.
#include "runtime/model/checkpoint.h"

#include <gtest/gtest.h>
#if !defined(_WIN32)
#include <sys/stat.h>
#endif

#include <cmath>

#include "tests/unit/model/model_test_util.h"

namespace wisp::checkpoint_test {
namespace {

using schema::CheckpointT;
using test::SmallModel;

class CheckpointFile : public testing::Test {
 protected:
  // Returns the result of reading a good file after `change` to its metadata, with valid checksums.
  Status AfterChange(const std::function<void(CheckpointT&)>& change) {
    const Status written = WriteCheckpoint(path_, full_);
    EXPECT_TRUE(written.ok()) << written.message();
    test::WriteBytes(path_, test::Changed<schema::Checkpoint>(test::ReadBytes(path_), change));
    return ReadCheckpoint(path_).status();
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "run.ckpt";
  Checkpoint full_ = test::SmallCheckpoint();
};

TEST_F(CheckpointFile, EverythingComesBack) {
  ASSERT_TRUE(WriteCheckpoint(path_, full_).ok());
  const auto read = ReadCheckpoint(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(*read == full_);
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(CheckpointFile, ClassifierCheckpoint_ComesBack) {
  full_.architecture.attend = Attend::kAll;
  full_.architecture.head = {.kind = HeadKind::kClasses, .num_classes = 3};
  full_.item_rows.clear();
  const size_t size = FlatSize(ListParameters(full_.architecture));
  for (auto* floats : {&full_.weights, &full_.first_moment, &full_.second_moment, &full_.average})
    floats->assign(size, 0.5f);
  full_.head_releases = {1, 2, 3};
  const Status written = WriteCheckpoint(path_, full_);
  ASSERT_TRUE(written.ok()) << written.message();
  const auto read = ReadCheckpoint(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(*read == full_);
  EXPECT_FALSE(AfterChange([](CheckpointT& c) { c.num_classes = 1u << 30; }).ok());
  EXPECT_FALSE(AfterChange([](CheckpointT& c) { c.num_classes = 100; }).ok()) << "the weights are of three classes";
}

// Reserved space does not show in the file, and is used up by one file.
TEST_F(CheckpointFile, ReservedSpace_IsWrittenAndTheRestGivenBack) {
  ASSERT_TRUE(WriteCheckpoint(path_, full_).ok());
  const std::string bytes = test::ReadBytes(path_);
  auto room = FileReplacement::Begin(path_);
  ASSERT_TRUE(room.ok() && room->Reserve(bytes.size() + 100000).ok());
  EXPECT_EQ(folder_.NumFiles(), 2u);
  ASSERT_TRUE(WriteCheckpoint(path_, full_, &*room).ok());
  EXPECT_EQ(test::ReadBytes(path_), bytes);
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(CheckpointFile, EveryFieldMatters) {
  ASSERT_TRUE(WriteCheckpoint(path_, full_).ok());
  const std::string bytes = test::ReadBytes(path_);
  const std::function<void(Checkpoint&)> changes[] = {[](Checkpoint& c) { c.architecture.blocks[0].norm_epsilon *= 2; },
                                                      [](Checkpoint& c) { c.weights[1] += 1; },
                                                      [](Checkpoint& c) { c.first_moment[1] += 1; },
                                                      [](Checkpoint& c) { c.second_moment[1] += 1; },
                                                      [](Checkpoint& c) { c.average[1] += 1; },
                                                      [](Checkpoint& c) { std::swap(c.order[0], c.order[1]); },
                                                      [](Checkpoint& c) { ++c.order_next; },
                                                      [](Checkpoint& c) { ++c.step; },
                                                      [](Checkpoint& c) { ++c.epoch; },
                                                      [](Checkpoint& c) { --c.seed; },
                                                      [](Checkpoint& c) { ++c.streams[0].position; },
                                                      [](Checkpoint& c) { c.streams[0].name += "x"; },
                                                      [](Checkpoint& c) { c.run_id += "x"; },
                                                      [](Checkpoint& c) { c.config += "x"; },
                                                      [](Checkpoint& c) { c.created_by += "x"; },
                                                      [](Checkpoint& c) { ++c.base_model_hash; }};
  for (const auto& change : changes) {
    Checkpoint changed = full_;
    change(changed);
    ASSERT_TRUE(WriteCheckpoint(path_, changed).ok());
    EXPECT_NE(test::ReadBytes(path_), bytes);
    const auto read = ReadCheckpoint(path_);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(*read == changed);
    EXPECT_FALSE(*read == full_);
  }
}

TEST_F(CheckpointFile, WeightsAloneAreEnough) {
  const Checkpoint bare{.architecture = full_.architecture, .weights = full_.weights, .random = RandomSource::kSecure};
  ASSERT_TRUE(WriteCheckpoint(path_, bare).ok());
  const auto read = ReadCheckpoint(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(*read == bare);
}

#if !defined(_WIN32)  // tests/windows/left_out.txt has the reason
TEST_F(CheckpointFile, OnlyTheOwnerMayReadIt) {
  ASSERT_TRUE(WriteCheckpoint(path_, full_).ok());
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}
#endif

TEST_F(CheckpointFile, PositionsOfSecureStreamsAreNeverWrittenNorBelieved) {
  Checkpoint secure = full_;
  secure.random = RandomSource::kSecure;
  const Status status = WriteCheckpoint(path_, secure);
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(StatusCode::kInvalidArgument));
  EXPECT_NE(status.message().find("the noise would repeat"), std::string::npos) << status.message();
  EXPECT_EQ(folder_.NumFiles(), 0u);
  const Status read = AfterChange([](CheckpointT& c) { c.random = schema::RandomSource::Secure; });
  EXPECT_EQ(static_cast<int>(read.code()), static_cast<int>(StatusCode::kInvalidData));
  EXPECT_NE(read.message().find("the noise would repeat"), std::string::npos) << read.message();
}

TEST_F(CheckpointFile, ContentsThatNobodyCouldReadAreNotWritten) {
  ASSERT_TRUE(WriteCheckpoint(path_, full_).ok());
  const std::string bytes = test::ReadBytes(path_);
  struct Case {
    const char* part;
    std::function<void(Checkpoint&)> spoil;
  };
  const Case cases[] = {
      {"has no weights", [](Checkpoint& c) { c.weights.clear(); }},
      {"tensor weights has shape", [](Checkpoint& c) { c.weights.pop_back(); }},
      {"tensor average has shape", [](Checkpoint& c) { c.average.resize(3); }},
      {"first_moment holds a number that is not finite", [](Checkpoint& c) { c.first_moment[7] = std::nanf(""); }},
      {"num_items is 0", [](Checkpoint& c) { c.architecture.num_items = 0; }},
      {"order_next is 6, allowed are 0 to 5", [](Checkpoint& c) { c.order_next = 6; }},
      {"order_next is 1, allowed are 0 to 0",
       [](Checkpoint& c) {
         c.order.clear();
         c.order_next = 1;
       }},
      {"run_id is not text", [](Checkpoint& c) { c.run_id = "a\nb"; }},
      {"config is not text", [](Checkpoint& c) { c.config = "\xff"; }},
      {"has two streams \"sampling\"", [](Checkpoint& c) { c.streams[2].name = "sampling"; }},
      {"has 4097 streams, allowed are 4096", [](Checkpoint& c) { c.streams.resize(4097); }},
      {"random is 7", [](Checkpoint& c) { c.random = RandomSource(7); }},
      {"texts and streams take", [](Checkpoint& c) { c.config.assign(container::kMaxMetadataBytes + 1, 'x'); }}};
  for (const Case& c : cases) {
    Checkpoint spoilt = full_;
    c.spoil(spoilt);
    const Status status = WriteCheckpoint(path_, spoilt);
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(StatusCode::kInvalidArgument)) << c.part;
    EXPECT_NE(status.message().find(c.part), std::string::npos)
        << "wanted: " << c.part << "\nfound: " << status.message();
    EXPECT_EQ(status.message().rfind(path_ + ": ", 0), 0u) << status.message();
  }
  EXPECT_EQ(test::ReadBytes(path_), bytes);
}

TEST_F(CheckpointFile, LiesWithFittingChecksumsAreRefused) {
  struct Case {
    const char* part;
    std::function<void(CheckpointT&)> tell;
    StatusCode code = StatusCode::kInvalidData;
  };
  const Case cases[] = {
      {"has no weights", [](CheckpointT& c) { c.arrays.clear(); }},
      {"has 9 arrays, allowed are 8",
       [](CheckpointT& c) {
         for (int i = 0; i < 2; ++i) c.arrays.push_back(std::make_unique<schema::TensorT>(*c.arrays[0]));
       }},
      {"has two arrays weights", [](CheckpointT& c) { c.arrays[1]->name = "weights"; }},
      {"has an array \"ledger\", which is unknown", [](CheckpointT& c) { c.arrays[1]->name = "ledger"; }},
      {"name of an array is not text", [](CheckpointT& c) { c.arrays[1]->name = "\xff"; }},
      {"has elements of type u32", [](CheckpointT& c) { c.arrays[0]->type = schema::ElementType::U32; },
       StatusCode::kUnsupported},
      {"has elements of type f32, this build reads it as u32",
       [](CheckpointT& c) { c.arrays[4]->type = schema::ElementType::F32; }, StatusCode::kUnsupported},
      {"tensor weights has shape", [](CheckpointT& c) { c.architecture->num_items = kMaxItems; }},
      {"tensor order has", [](CheckpointT& c) { c.arrays[4]->shape = {uint64_t{1} << 62}; }},
      {"tensor order has", [](CheckpointT& c) { c.arrays[4]->shape = {}; }},
      {"tensor order has 0 bytes",
       [](CheckpointT& c) {
         c.arrays[4]->shape = {0};
         c.arrays[4]->bytes = 0;
         c.order_next = 0;
       }},
      {"tensor order has 16 bytes, its shape needs 20", [](CheckpointT& c) { c.arrays[4]->bytes = 16; }},
      {"tensor order is at offset 64", [](CheckpointT& c) { c.arrays[4]->offset = 64; }},
      {"order_next is 18446744073709551615", [](CheckpointT& c) { c.order_next = ~uint64_t{0}; }},
      {"would end behind the file", [](CheckpointT& c) { c.segment_bytes[0] = ~uint64_t{63}; }},
      {"random is 2, allowed are 0 to 1", [](CheckpointT& c) { c.random = schema::RandomSource(2); }},
      {"created_by is not text", [](CheckpointT& c) { c.created_by = std::string("a\0b", 3); }},
      {"name of a stream is not text", [](CheckpointT& c) { c.streams[0]->name = "\n"; }}};
  for (const Case& c : cases) {
    const Status status = AfterChange(c.tell);
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(c.code))
        << "wanted: " << c.part << "\nfound: " << status.message();
    EXPECT_NE(status.message().find(c.part), std::string::npos)
        << "wanted: " << c.part << "\nfound: " << status.message();
    EXPECT_EQ(status.message().rfind(path_ + ": ", 0), 0u) << status.message();
  }
}

TEST_F(CheckpointFile, ModelsAndNewerCheckpointsHaveTheirOwnMessages) {
  test::WriteBytes(path_, SmallModel().Bytes());
  EXPECT_EQ(ReadCheckpoint(path_).status().message(), path_ + ": is a wisp model, a wisp checkpoint file is needed");
  EXPECT_EQ(static_cast<int>(ReadCheckpoint(folder_ / "absent").status().code()), static_cast<int>(StatusCode::kIo));
  ASSERT_TRUE(WriteCheckpoint(path_, full_).ok());
  std::string bytes = test::ReadBytes(path_);
  test::Set<uint32_t>(bytes, test::kVersionAt, 2);
  test::Set<uint32_t>(bytes, test::kOldestReaderAt, 2);
  test::WriteBytes(path_, test::Reseal(bytes));
  const Status status = ReadCheckpoint(path_).status();
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(StatusCode::kUnsupported));
  EXPECT_NE(status.message().find("written by format 2 for readers of format 2 or newer, this build reads up to 1"),
            std::string::npos);
}

TEST_F(CheckpointFile, NotFiniteNumbersAreRefusedOnReading) {
  ASSERT_TRUE(WriteCheckpoint(path_, full_).ok());
  std::string bytes = test::ReadBytes(path_);
  test::Set(bytes, container::kSegmentAlignment, 0x7fc00000u);
  bytes = test::Changed<schema::Checkpoint>(bytes, [&](CheckpointT& c) {
    c.arrays[0]->hash = test::ComputeHash(test::GetData(bytes).substr(0, c.arrays[0]->bytes));
  });
  test::WriteBytes(path_, bytes);
  EXPECT_NE(ReadCheckpoint(path_).status().message().find("weights holds a number that is not finite"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp::checkpoint_test
