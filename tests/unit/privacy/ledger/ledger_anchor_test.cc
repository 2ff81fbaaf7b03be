// A ledger that is checked against its anchor: restored old copies, a missing ledger, and the times at which the anchor
// is written.
#include <gtest/gtest.h>
#if !defined(_WIN32)
#include <sys/stat.h>
#endif

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger/ledger_anchor.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_anchor_test {
namespace {

namespace fs = std::filesystem;

// An anchor in memory that can be told to fail.
class CachedValue final : public LedgerAnchor {
 public:
  Result<std::optional<AnchorValue>> Read() override { return value; }
  Status Write(const AnchorValue& next) override {
    if (fails) return IoError("the key store is locked");
    value = next;
    return OkStatus();
  }
  std::optional<AnchorValue> value;
  bool fails = false;
};

class LedgerAnchorTest : public LedgerTest {
 protected:
  LedgerAnchorTest() { options_.anchor = FileAnchor(Path("anchor")); }

  Status Charge(const LedgerOptions& options, int times = 1, const char* run = "a") const {
    auto ledger = Ledger::Open(Path(), options);
    Status status = ledger.status();
    for (int i = 0; i < times && status.ok(); ++i)
      status = ledger->Charge({.mechanism = Steps(1), .run = run}).status();
    return status;
  }
  void MustCharge(const LedgerOptions& options, int times = 1, const char* run = "a") const {
    const Status status = Charge(options, times, run);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void ExpectRefused(const LedgerOptions& options, const std::string& part) const {
    const Status status = Ledger::Open(Path(), options).status();
    EXPECT_EQ(status.code(), StatusCode::kPrivacyRefused) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }

  size_t NumCharges() const { return Ledger::OpenExisting(Path())->Entries()->size(); }

  LedgerOptions options_ = kOptions;
};

TEST_F(LedgerAnchorTest, AnOldCopyPutBack_IsRefused) {
  MustCharge(options_);
  fs::copy_file(Path(), Path("copy"));
  MustCharge(options_, 2);
  EXPECT_TRUE(Ledger::OpenExisting(Path(), options_.anchor).ok());
  fs::rename(Path(), Path("kept"));
  ExpectRefused(options_, "is not there");
  fs::copy_file(Path("copy"), Path());
  ExpectRefused(options_, "is an old copy");
  EXPECT_EQ(Ledger::OpenExisting(Path(), options_.anchor).status().code(), StatusCode::kPrivacyRefused);
  LedgerOptions another = kOptions;
  another.anchor = FileAnchor(Path("another"));
  another.begin_anchor = true;
  MustCharge(another, 1, "b");  // as many rows, but other ones
  ExpectRefused(options_, "row 4, which is another here");
  fs::rename(Path("kept"), Path());
  MustCharge(options_);
}

TEST_F(LedgerAnchorTest, ALimitAndAPlan_AreKnownToo) {
  const std::vector<ChargeRequest> run = {{.mechanism = Steps(5), .run = "a"}};
  const auto write = [&](auto&& function) {
    auto ledger = Ledger::Open(Path(), options_);
    ASSERT_TRUE(ledger.ok()) << ledger.status().message();
    ASSERT_TRUE(function(*ledger).ok());
  };
  write([](Ledger& l) { return l.SetLimit(MakeLimit(8)); });
  fs::copy_file(Path(), Path("limited"));
  write([](Ledger& l) { return l.SetLimit(MakeLimit(4)); });
  fs::copy_file(Path(), Path("lower"));
  write([&](Ledger& l) { return l.PlanRun(run); });
  for (const char* old : {"limited", "lower"}) {
    fs::copy_file(Path(old), Path(), fs::copy_options::overwrite_existing);
    ExpectRefused(options_, "is an old copy");
  }
}

// Every charge of an open ledger is checked, not only its opening.
TEST_F(LedgerAnchorTest, WhatIsWrittenWhileItIsOpen_IsChecked) {
  auto anchor = std::make_shared<CachedValue>();
  options_.anchor = anchor;
  auto ledger = Ledger::Open(Path(), options_);
  ASSERT_TRUE(ledger.ok());
  ASSERT_TRUE(ledger->Charge({.mechanism = Steps(1), .run = "a"}).ok());
  ASSERT_EQ(anchor->value->seq, 2u);
  anchor->value->seq = 3;  // as of a copy of the ledger that went on elsewhere
  const auto id = ledger->Charge({.mechanism = Steps(1), .run = "a"});
  EXPECT_EQ(id.status().code(), StatusCode::kPrivacyRefused) << id.status().message();
  EXPECT_NE(id.status().message().find("charged to run 'a' before, and spent: 1 step"), std::string::npos)
      << id.status().message();
  EXPECT_EQ(NumCharges(), 1u);
}

TEST_F(LedgerAnchorTest, AnAnchorThatCannotBeWritten_FailsTheChargeAndLeavesItCharged) {
  auto anchor = std::make_shared<CachedValue>();
  options_.anchor = anchor;
  MustCharge(options_);
  anchor->fails = true;
  const Status failed = Charge(options_);
  EXPECT_EQ(failed.code(), StatusCode::kIo);
  EXPECT_EQ(failed.message(),
            "ledger '" + Path() + "': the key store is locked; charged to run 'a' before, and spent: 2 steps");
  EXPECT_EQ(NumCharges(), 2u) << "the charge comes first";
  EXPECT_EQ(anchor->value->seq, 2u);
  // Simulates a crash in between: the ledger is ahead of the anchor.
  anchor->fails = false;
  MustCharge(options_);
  EXPECT_EQ(anchor->value->seq, 4u);
}

// A crash before the first row, or after it, leaves a usable ledger.
TEST_F(LedgerAnchorTest, ANewLedger_HasItsAnchorBeforeItsFirstRow) {
  auto anchor = std::make_shared<CachedValue>();
  options_.anchor = anchor;
  anchor->fails = true;
  EXPECT_EQ(Charge(options_).code(), StatusCode::kIo);
  EXPECT_EQ(NumCharges(), 0u);
  anchor->fails = false;
  MustCharge(options_);
  EXPECT_EQ(anchor->value->seq, 2u);
}

// Nothing is known when a ledger is read for the first time; at the second question another process has begun the
// anchor.
class BegunByAnother final : public LedgerAnchor {
 public:
  // `other` is what that process does after the first question.
  BegunByAnother(std::shared_ptr<CachedValue> kept, std::function<void()> other)
      : kept_(std::move(kept)), other_(std::move(other)) {}
  Result<std::optional<AnchorValue>> Read() override {
    const auto known = kept_->Read();
    if (other_) std::exchange(other_, nullptr)();
    return known;
  }
  Status Write(const AnchorValue& next) override { return kept_->Write(next); }

 private:
  std::shared_ptr<CachedValue> kept_;
  std::function<void()> other_;
};

TEST_F(LedgerAnchorTest, WhoBeginsTheAnchor_TakesWhatAnotherBegan) {
  auto kept = std::make_shared<CachedValue>();
  options_.anchor = kept;
  kept->fails = true;
  EXPECT_EQ(Charge(options_).code(), StatusCode::kIo);  // leaves a ledger without rows
  kept->fails = false;
  LedgerOptions reader = options_;
  reader.anchor = std::make_shared<BegunByAnother>(kept, [&] { MustCharge(options_, 2); });
  const auto opened = Ledger::Open(Path(), reader);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(kept->value->seq, 3u);
  EXPECT_EQ(opened->Entries()->size(), 2u);
}

// The other process's row may be in the file, though it was not read yet. If the file lacks it, the file is an old
// copy.
TEST_F(LedgerAnchorTest, WhoBeginsTheAnchor_IsHeldToWhatAnotherBegan) {
  auto kept = std::make_shared<CachedValue>();
  options_.anchor = kept;
  MustCharge(options_, 2);
  fs::copy_file(Path(), Path("copy"));
  MustCharge(options_);
  const AnchorValue newest = *kept->value;
  const auto begun_at = [&](const AnchorValue& later) {
    kept->value.reset();
    LedgerOptions reader = options_;
    reader.anchor = std::make_shared<BegunByAnother>(kept, [&] { kept->value = later; });
    return Ledger::Open(Path(), reader).status();
  };
  EXPECT_TRUE(begun_at(newest).ok());
  AnchorValue another = newest;
  another.chain[0] ^= 1;
  EXPECT_EQ(begun_at(another).code(), StatusCode::kPrivacyRefused);
  fs::rename(Path("copy"), Path());
  const Status old = begun_at(newest);
  EXPECT_EQ(old.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(old.message().find("its anchor knows row 4, which is missing here"), std::string::npos) << old.message();
  EXPECT_EQ(kept->value->seq, 4u);
}

TEST_F(LedgerAnchorTest, ALedgerWithRowsAndNoAnchor_IsRefusedUnlessItBegins) {
  MustCharge(kOptions, 2);
  ExpectRefused(options_, "`begin` of the anchor");
  EXPECT_FALSE(fs::exists(Path("anchor")));
  options_.begin_anchor = true;
  EXPECT_TRUE(Ledger::Open(Path(), options_).ok());
  options_.begin_anchor = false;
  EXPECT_TRUE(Ledger::Open(Path(), options_).ok());
  // An existing anchor is not begun anew.
  fs::copy_file(Path(), Path("copy"));
  MustCharge(options_);
  fs::rename(Path("copy"), Path());
  options_.begin_anchor = true;
  ExpectRefused(options_, "is an old copy");
}

// Whoever forgets the anchor would not notice an old copy, so nothing is written without it.
TEST_F(LedgerAnchorTest, ALedgerWithAnAnchor_IsReadAndNotWrittenWithoutIt) {
  MustCharge(options_);
  ExpectRefused(kOptions, "has an anchor (" + Path("anchor") + "), which was not given (`anchor`)");
  auto ledger = Ledger::OpenExisting(Path());
  ASSERT_TRUE(ledger.ok()) << ledger.status().message();
  const std::vector<ChargeRequest> run = {{.mechanism = Steps(1), .run = "a"}};
  for (const Status& written :
       {ledger->Charge(run.front()).status(), ledger->SetLimit(MakeLimit(8)), ledger->AddResult(1, "{}"),
        ledger->ChangePlan("a", "more", run, "", *ledger->NewestRow())}) {
    EXPECT_EQ(written.code(), StatusCode::kPrivacyRefused) << written.message();
    EXPECT_NE(written.message().find("which was not given"), std::string::npos) << written.message();
  }
  EXPECT_EQ(*ledger->NewestRow(), 2u) << "a note, and the charge";
  EXPECT_TRUE(ledger->Results()->empty()) << "the note is no result";
  const auto state = ledger->StateNow(AtDelta());
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->anchors.begun, 1u);
  EXPECT_FALSE(state->anchors.compared);
  // An open ledger learns of the anchor that another process begins.
  fs::remove(Path());
  MustCharge(kOptions);
  Ledger open = MustOpen(Path());
  options_.anchor = FileAnchor(Path("later"));
  options_.begin_anchor = true;
  EXPECT_TRUE(Ledger::Open(Path(), options_).ok());
  EXPECT_EQ(open.Charge(run.front()).status().code(), StatusCode::kPrivacyRefused);
}

// An app's own anchor has no name.
TEST_F(LedgerAnchorTest, AnAnchorWithoutAName_IsMissedAllTheSame) {
  options_.anchor = std::make_shared<CachedValue>();
  MustCharge(options_);
  ExpectRefused(kOptions, "has an anchor (kept by the app), which was not given");
}

// Who lost the anchor begins another one, and the ledger shows it for good.
TEST_F(LedgerAnchorTest, AnotherAnchor_BeginsAndIsNoted) {
  MustCharge(options_);
  fs::remove(Path("anchor"));
  ExpectRefused(options_, "`begin` of the anchor");
  LedgerOptions another = kOptions;
  auto anchor = std::make_shared<CachedValue>();
  anchor->fails = true;
  another.anchor = anchor;
  another.begin_anchor = true;
  EXPECT_EQ(Ledger::OpenExisting(Path(), anchor, true).status().code(), StatusCode::kIo);
  anchor->fails = false;
  MustCharge(another);
  MustCharge(another);
  const auto ledger = Ledger::OpenExisting(Path(), anchor);
  ASSERT_TRUE(ledger.ok()) << ledger.status().message();
  const auto state = ledger->StateNow(AtDelta());
  ASSERT_TRUE(state.ok());
  // The note comes before the anchor, so that a crash in between leaves no ledger that has no note.
  EXPECT_EQ(state->anchors.begun, 3u);
  EXPECT_TRUE(state->anchors.compared);
  EXPECT_EQ(anchor->value->seq, 6u);
  const auto states = ledger->StatesWith(1, AtDelta());
  ASSERT_TRUE(states.ok());
  EXPECT_EQ(states->front().anchors.begun, 3u);
  EXPECT_EQ(states->back().anchors.begun, 1u);
}

TEST_F(LedgerAnchorTest, TheAnchorOfAnotherLedger_IsRefused) {
  MustCharge(options_);
  fs::remove(Path());
  MustCharge(kOptions, 3);
  ExpectRefused(options_, "is not the one that its anchor is kept for");
}

#if !defined(_WIN32)  // tests/windows/left_out.txt has the reason
TEST_F(LedgerAnchorTest, AFileThatIsNoAnchor_IsRefusedAndKept) {
  MustCharge(options_);
  struct stat status {};
  ASSERT_EQ(stat(Path("anchor").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  std::ifstream file(Path("anchor"));
  const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const std::string& text : {std::string(), std::string("notes\n"), line.substr(0, line.size() - 1),
                                  line.substr(0, line.size() / 2), line + line, " " + line}) {
    std::ofstream(Path("anchor"), std::ios::trunc) << text;
    EXPECT_EQ(Ledger::Open(Path(), options_).status().code(), StatusCode::kInvalidData) << text;
    EXPECT_EQ(fs::file_size(Path("anchor")), text.size());
  }
  std::ofstream(Path("anchor"), std::ios::trunc) << line;
  EXPECT_TRUE(Ledger::Open(Path(), options_).ok());
}

// A program was killed in the middle of it.
TEST_F(LedgerAnchorTest, ATemporaryFileLeftBehind_IsUsedByTheNextWriter) {
  std::ofstream(Path("anchor.tmp")) << "wisp ledger anchor 1: " << std::string(4096, 'x');
  fs::permissions(Path("anchor.tmp"), fs::perms::all);
  MustCharge(options_);
  EXPECT_FALSE(fs::exists(Path("anchor.tmp")));
  EXPECT_LT(fs::file_size(Path("anchor")), 256u);
  EXPECT_EQ(fs::status(Path("anchor")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  MustCharge(options_);
}
#endif

TEST_F(LedgerAnchorTest, AFileOfOthersWithTheTemporaryName_Stays) {
  std::ofstream(Path("anchor.tmp")) << "a letter";
  const Status written = FileAnchor(Path("anchor"))->Write({std::string(16, 'a'), 1, {}});
  EXPECT_EQ(written.code(), StatusCode::kIo);
  std::string left;
  std::getline(std::ifstream(Path("anchor.tmp")) >> std::ws, left);
  EXPECT_EQ(left, "a letter");
}

// With several writers, none is refused because another was between its charge and its anchor.
// This anchor waits in the write of the first row for another write, which would overtake it.
class SlowValue final : public LedgerAnchor {
 public:
  Result<std::optional<AnchorValue>> Read() override {
    std::lock_guard lock(mutex_);
    return value_;
  }
  Status Write(const AnchorValue& next) override {
    std::unique_lock lock(mutex_);
    if (next.seq == 2) {  // a note, and the first charge
      first_row_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, std::chrono::milliseconds(300), [&] { return written_.back() > 2; });
    }
    value_ = next;
    written_.push_back(next.seq);
    changed_.notify_all();
    return OkStatus();
  }
  void WaitForTheFirstRow() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return first_row_; });
  }
  std::vector<uint64_t> written() const { return written_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<AnchorValue> value_;
  std::vector<uint64_t> written_;
  bool first_row_ = false;
};

// Otherwise a process that ends there would leave an anchor that agrees with an old copy.
TEST_F(LedgerAnchorTest, TwoWriters_NeverTakeTheAnchorBack) {
  auto anchor = std::make_shared<SlowValue>();
  options_.anchor = anchor;
  std::thread other([&] {
    anchor->WaitForTheFirstRow();
    MustCharge(options_, 1, "b");
  });
  MustCharge(options_);
  other.join();
  EXPECT_EQ(anchor->written(), (std::vector<uint64_t>{0, 2, 3}));
}

TEST_F(LedgerAnchorTest, WritersAtOnce_AgreeOnOneAnchor) {
  MustCharge(options_);
  std::vector<std::thread> writers;
  std::vector<Status> ends(3);
  for (size_t i = 0; i < ends.size(); ++i) {
    writers.emplace_back([&, i] {
      LedgerOptions own = kOptions;
      own.anchor = FileAnchor(Path("anchor"));
      ends[i] = Charge(own, 20);
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << end.message();
  MustCharge(options_);
  const auto known = FileAnchor(Path("anchor"))->Read();
  ASSERT_TRUE(known.ok() && *known);
  EXPECT_EQ((*known)->seq, 63u);
}

}  // namespace
}  // namespace wisp::privacy::ledger_anchor_test
