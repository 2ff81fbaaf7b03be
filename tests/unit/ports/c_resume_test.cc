// wisp_personalise, interrupted and resumed, and the ledger's anchor in the app's own store.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/core/file_size_limit.h"
#include "tests/unit/ports/c_personalise_fixture.h"

namespace wisp::c_resume_test {
namespace {

using test::AtEverySize;
using test::Cut;

class CResume : public test::CPersonaliseTest {
 protected:
  // All users take part in every step, for which calibration is fastest: an epoch is a step.
  CResume() { options_.num_records_public = options_.expected_batch = 12; }

  // Ends the run after this many steps.
  void CancelAfter(uint64_t steps) {
    stop_ = steps;
    options_.user_data = &stop_;
    options_.progress = [](const wisp_progress* progress, void* stop) {
      return progress->step >= *static_cast<uint64_t*>(stop) ? 1 : 0;
    };
  }
  uint64_t StepsCharged() const {
    const auto ledger = privacy::Ledger::OpenExisting(ledger_);
    uint64_t steps = 0;
    if (!ledger.ok()) return steps;
    for (const auto& entry : *ledger->Entries()) steps += entry.mechanism.steps();
    return steps;
  }
  double Spent() const {
    const auto ledger = privacy::Ledger::OpenExisting(ledger_);
    return ledger.ok() ? *ledger->Spent(*privacy::Delta::Create(options_.delta)) : 0;
  }
  uint64_t stop_ = 0;
  const std::string checkpoint_ = folder_ / "run.ck";
};

TEST_F(CResume, CancelledRun_ResumesWithinItsOwnBudget) {
  options_.epochs = 8;
  options_.budget_epsilon = 8;
  options_.checkpoint_path = checkpoint_.c_str();
  CancelAfter(5);
  ASSERT_EQ(Run(), WISP_CANCELLED) << error_.message;
  EXPECT_TRUE(std::filesystem::exists(checkpoint_));
  EXPECT_FALSE(std::filesystem::exists(out_));
  const uint64_t before = StepsCharged();
  EXPECT_GE(before, 5u);
  options_.progress = nullptr;
  const wisp_personalise_result result = MustRun();
  EXPECT_EQ(result.num_steps, 8u);
  EXPECT_EQ(result.planned_steps, 8u);
  EXPECT_EQ(result.resumed_from, 5u);
  EXPECT_EQ(StepsCharged(), before + 3) << "the steps that were left, and no others";
  EXPECT_LE(Spent(), 8);
  EXPECT_TRUE(std::filesystem::exists(out_));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_)) << "a run that is complete leaves nothing to resume from";
}

// The run continues without it, and the app is told.
TEST_F(CResume, ACheckpointThatCannotBeWritten_IsToldInTheResult) {
  const std::string folder = folder_ / "run", path = folder + "/run.ck";
  std::filesystem::create_directory(folder);
  options_.epochs = 4;
  options_.checkpoint_path = path.c_str();
  EXPECT_EQ(MustRun().checkpoint_failed, 0);
  std::string gone = folder;
  options_.user_data = &gone;
  options_.progress = [](const wisp_progress*, void* name) {
    std::filesystem::remove_all(*static_cast<std::string*>(name));
    return 0;
  };
  const wisp_personalise_result result = MustRun();
  EXPECT_EQ(result.num_steps, 4u);
  EXPECT_EQ(result.checkpoint_failed, 1);
  EXPECT_TRUE(std::filesystem::exists(out_));
}

// The check comes before anything is spent, because the result could not be stored. The space asked for is the model's,
// which is the largest that is needed: with one byte less it is refused, and everything else fits.
TEST_F(CResume, DiskWithoutSpaceForTheModel_RefusesBeforeTheFirstCharge) {
  const std::string refusal = out_ + ": the disk has no room for its ";
  uint64_t room = std::filesystem::file_size(base_) + (128 << 10);  // too little, but enough to read the log
  for (int i = 0; i < 2; ++i) {
    const test::FileSizeLimit full(room - 1);
    ASSERT_EQ(Run(), WISP_IO);
    ASSERT_TRUE(std::string_view(error_.message).starts_with(refusal)) << error_.message;
    room = std::stoull(error_.message + refusal.size());
  }
  EXPECT_EQ(StepsCharged(), 0u);
  EXPECT_FALSE(std::filesystem::exists(out_));
  const test::FileSizeLimit enough(room);
  EXPECT_EQ(Run(), WISP_OK) << error_.message;
}

// An app that starts two jobs at once would pay twice and keep only one result.
TEST_F(CResume, ASecondRunOnOneCheckpointOrOutput_IsRefusedAndPaysNothing) {
  struct Second {
    wisp_personalise_options options;
    uint64_t num_tried = 0;
  };
  const std::string other_out = folder_ / "other.wisp", other_checkpoint = folder_ / "other.ck";
  const auto try_beside = [&](const std::string& out, const std::string& checkpoint, const std::string& held) {
    Second second{options_};
    second.options.output_path = out.c_str();
    second.options.checkpoint_path = checkpoint.c_str();
    options_.user_data = &second;
    options_.progress = [](const wisp_progress*, void* data) {
      Second& tried = *static_cast<Second*>(data);
      wisp_error error = {};
      EXPECT_EQ(wisp_personalise(&tried.options, nullptr, &error), WISP_IO) << error.message;
      const std::string sentence = error.message;
      EXPECT_NE(sentence.find("another run is under way that is to write it"), std::string::npos) << sentence;
      EXPECT_NE(sentence.find("; nothing was charged"), std::string::npos) << sentence;
      ++tried.num_tried;
      return 0;
    };
    const uint64_t before = StepsCharged();
    EXPECT_EQ(MustRun().num_steps, 4u);
    EXPECT_EQ(second.num_tried, 4u) << held;
    EXPECT_EQ(StepsCharged(), before + 4) << held;
    options_.progress = nullptr;
  };
  options_.epochs = 4;
  options_.checkpoint_path = checkpoint_.c_str();
  options_.checkpoint_every = 1;
  try_beside(other_out, checkpoint_, "the checkpoint");
  try_beside(out_, other_checkpoint, "the output");
  EXPECT_EQ(MustRun().num_steps, 4u) << "nothing stays held";
}

TEST_F(CResume, ACheckpointOfOtherOptions_IsRefusedAndKept) {
  options_.epochs = 8;
  options_.checkpoint_path = checkpoint_.c_str();
  CancelAfter(3);
  ASSERT_EQ(Run(), WISP_CANCELLED) << error_.message;
  const uint64_t before = StepsCharged();
  options_.progress = nullptr;
  options_.learning_rate = 0.01;
  EXPECT_NE(Run(), WISP_OK);
  EXPECT_TRUE(std::filesystem::exists(checkpoint_));
  EXPECT_EQ(StepsCharged(), before);
}

TEST_F(CResume, Checkpoint_DiffersFromTheOtherFiles) {
  for (const std::string* path : {&log_, &ledger_, &base_, &out_}) {
    options_.checkpoint_path = path->c_str();
    EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT) << *path;
  }
  EXPECT_FALSE(std::filesystem::exists(ledger_));
}

// An app's store, as the callbacks of wisp_anchor see it.
struct Store {
  std::vector<uint8_t> blob;
  int writes = 0;
  bool fails = false;
  int failing_write = 0;  // this many more writes succeed, then one fails
  wisp_anchor Anchor() {
    wisp_anchor anchor = WISP_INIT(wisp_anchor);
    anchor.user_data = this;
    anchor.read = [](void* store, uint8_t* out, size_t capacity, size_t* length) {
      const Store& s = *static_cast<Store*>(store);
      *length = s.blob.size();
      std::copy_n(s.blob.begin(), std::min(capacity, s.blob.size()), out);
      return s.fails ? 1 : 0;
    };
    anchor.write = [](void* store, const uint8_t* bytes, size_t length) {
      Store& s = *static_cast<Store*>(store);
      if (s.fails || (s.failing_write > 0 && --s.failing_write == 0)) return 1;
      s.blob.assign(bytes, bytes + length);
      ++s.writes;
      return 0;
    };
    return anchor;
  }
};

TEST_F(CResume, AnOldLedgerPutBack_IsNoticedByItsAnchor) {
  Store store;
  const wisp_anchor anchor = store.Anchor();
  options_.anchor = &anchor;
  MustRun();
  EXPECT_GT(store.writes, 0);
  EXPECT_GT(store.blob.size(), 0u);
  EXPECT_LE(store.blob.size(), size_t{WISP_ANCHOR_BYTES});
  const std::string old = folder_ / "old";
  std::filesystem::copy_file(ledger_, old);
  MustRun();
  std::filesystem::copy_file(old, ledger_, std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(Run(), WISP_OK) << "the ledger lacks what the anchor knows";
  size_t needed = 0;
  EXPECT_EQ(wisp_privacy_statement(ledger_.c_str(), 1e-4, WISP_STATEMENT_TEXT, nullptr, 0, &needed, &error_), WISP_OK)
      << error_.message;
  EXPECT_EQ(wisp_privacy_statement_anchored(ledger_.c_str(), &anchor, 1e-4, WISP_STATEMENT_TEXT, nullptr, 0, &needed,
                                            &error_),
            WISP_PRIVACY_REFUSED);
  options_.anchor = nullptr;
  EXPECT_EQ(Run(), WISP_PRIVACY_REFUSED) << "without its anchor nobody can tell";
  EXPECT_NE(std::string(error_.message).find("(kept by the app), which was not given"), std::string::npos)
      << error_.message;
}

// The charge is in the ledger: another try would pay twice.
TEST_F(CResume, AnAnchorThatFailsOnce_EndsTheRunAndIsPaidOnce) {
  Store store;
  const wisp_anchor anchor = store.Anchor();
  options_.anchor = &anchor;
  MustRun();
  const size_t before = privacy::Ledger::OpenExisting(ledger_)->Entries()->size();
  store.failing_write = 1;
  EXPECT_EQ(Run(), WISP_IO) << error_.message;
  EXPECT_LE(privacy::Ledger::OpenExisting(ledger_)->Entries()->size(), before + 1);
}

TEST_F(CResume, FailingOrInvalidAnchor_EndsTheRun) {
  Store store;
  store.fails = true;
  wisp_anchor anchor = store.Anchor();
  options_.anchor = &anchor;
  EXPECT_EQ(Run(), WISP_IO) << error_.message;
  EXPECT_NE(std::string(error_.message).find("anchor"), std::string::npos) << error_.message;
  EXPECT_FALSE(std::filesystem::exists(out_));
  store.fails = false;
  store.blob = {9, 9, 9};
  EXPECT_EQ(Run(), WISP_INVALID_DATA) << error_.message;
  AtEverySize(anchor, [&](Cut<wisp_anchor>& cut) {
    if (cut.get()->size >= offsetof(wisp_anchor, user_data)) return;  // has both callbacks
    options_.anchor = cut.get();
    EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
  });
}

}  // namespace
}  // namespace wisp::c_resume_test
