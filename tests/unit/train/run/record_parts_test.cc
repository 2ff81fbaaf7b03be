// Training and evaluation records are divided by the records' own names, once and for all; a run of one part never sees
// the other.
#include "runtime/train/run/parts.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/privacy/ledger/record_parts.h"
#include "runtime/train/run/job.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/train/run/ring_job.h"

namespace wisp::record_parts_test {
namespace {

using privacy::GetPart;
using privacy::Ledger;
using privacy::RecordPart;

constexpr RecordPart kAll = RecordPart::kAll, kTraining = RecordPart::kTraining, kEvaluation = RecordPart::kEvaluation;

privacy::LedgerSplit WithShare(double share) { return {.evaluation_share = share, .salt = "0123456789abcdef"}; }

char Letter(const privacy::LedgerSplit& split, const privacy::RecordName& name) {
  return GetPart(split, name) == kEvaluation ? 'j' : 't';
}

// Computed by Python's hashlib from the words in record_parts.h. Another result in a later version would move records
// of devices to the other side.
TEST(GetPart, IsWhatItWasInEveryVersion) {
  std::string users, days;
  for (int i = 0; i < 24; ++i) users += Letter(WithShare(0.3), {.user = std::to_string(i)});
  for (int64_t day = 20500; day < 20524; ++day) days += Letter(WithShare(0.3), {.user = "anna", .begins = day});
  EXPECT_EQ(users, "tjttttttjjjtttjjtttjttjt");
  EXPECT_EQ(days, "ttttttjttttjjtjtjtjtjttt");
  EXPECT_EQ(Letter(WithShare(0.3), {.user = "anna", .begins = -1}), 'j');
}

TEST(GetPart, FollowsTheShareAndTheSalt) {
  constexpr int kUsers = 20000;
  int evaluation = 0, moved = 0, more = 0;
  for (int i = 0; i < kUsers; ++i) {
    const std::string user = "user " + std::to_string(i);
    const bool evaluates = GetPart(WithShare(0.2), {.user = user}) == kEvaluation;
    privacy::LedgerSplit other = WithShare(0.2);
    other.salt[0] = 'x';
    evaluation += evaluates;
    moved += evaluates != (GetPart(other, {.user = user}) == kEvaluation);
    more += evaluates && GetPart(WithShare(0.4), {.user = user}) == kTraining;
  }
  EXPECT_NEAR(evaluation, 0.2 * kUsers, 300);  // five standard deviations
  EXPECT_NEAR(moved, 2 * 0.2 * 0.8 * kUsers, 400);
  EXPECT_EQ(more, 0) << "a larger share has the records of a smaller one";
}

TEST(SelectSequences, EveryRecordIsInOnePartWhole) {
  data::Sequences all = test::RingSequences(80);
  const auto split = WithShare(0.3);
  for (const bool days : {false, true}) {
    if (days) all.unit_begins.assign(80, 0);
    for (size_t u = 0; days && u < 80; ++u) all.unit_begins[u] = 20000 + static_cast<int64_t>(u);
    const data::Sequences training = SelectSequences(kTraining, split, all),
                          evaluation = SelectSequences(kEvaluation, split, all);
    EXPECT_EQ(training.num_users() + evaluation.num_users(), 80u);
    EXPECT_GT(evaluation.num_users(), 10u);
    for (const data::Sequences* part : {&training, &evaluation}) {
      EXPECT_EQ(part->item_keys, all.item_keys);
      EXPECT_EQ(part->unit_begins.size(), days ? part->num_users() : 0);
      for (size_t u = 0; u < part->num_users(); ++u) {
        const std::span<const int32_t> got = part->User(u), want = all.User(std::stoul(part->user_keys[u]));
        EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin(), want.end())) << part->user_keys[u];
      }
    }
  }
  EXPECT_EQ(SelectSequences(kAll, split, all).num_users(), 80u);
}

class RecordPartsTest : public ::testing::Test {
 protected:
  Result<JobResult> Run(const data::Sequences& sequences, Ledger& ledger, RecordPart part) {
    TrainingJob job = test::RingJob(sequences, ledger, OutputBias::kFixed);
    job.spec.training.num_steps = 4;
    job.spec.training.num_records_public = 60;
    job.spec.training.privacy.part = part;
    job.spec.training.privacy.reproducible_seed = 3;  // the same noise, so that any read record shows
    job.spec.goal = {.epsilon = {}, .noise_multiplier = 2.0, .delta = 1e-3};
    job.spec.goal.histogram_noise = 5;
    return RunTrainingJob(job);
  }
  Ledger Open(const char* name) { return test::OpenRingLedger(folder_ / name); }

  test::TemporaryFolder folder_;
};

TEST_F(RecordPartsTest, ReadsAndChargesItsPartAlone) {
  Ledger ledger = Open("l");
  ASSERT_TRUE(ledger.Split(0.3).ok());
  const privacy::LedgerSplit split = **ledger.TheSplit();
  const data::Sequences all = test::RingSequences(80), training = SelectSequences(kTraining, split, all);
  const auto run = Run(all, ledger, kTraining);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->num_records, training.num_users());
  const auto entries = *ledger.Entries();
  ASSERT_EQ(entries.size(), 5u);
  for (const privacy::LedgerEntry& e : entries) EXPECT_EQ(e.part, kTraining) << e.purpose;
  // Without the evaluation records, and with others in their place, no bit changes.
  Ledger whole = Open("whole");
  EXPECT_EQ(Run(training, whole, kAll)->weights, run->weights);
  data::Sequences others = all;
  for (size_t u = 0; u < all.num_users(); ++u) {
    if (GetPart(split, {.user = all.user_keys[u]}) != kEvaluation) continue;
    for (uint64_t i = all.offsets[u]; i < all.offsets[u + 1]; ++i) others.items[i] = 19 - others.items[i];
  }
  EXPECT_EQ(Run(others, ledger, kTraining)->weights, run->weights);
  EXPECT_NE(Run(others, ledger, kAll)->weights, Run(all, ledger, kAll)->weights);
}

TEST_F(RecordPartsTest, NeedsRecordsThatAreDivided) {
  Ledger ledger = Open("l");
  const auto run = Run(test::RingSequences(80), ledger, kTraining);
  EXPECT_EQ(run.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(run.status().message().find("does not divide"), std::string::npos) << run.status().message();
  EXPECT_TRUE(ledger.Entries()->empty());
}

}  // namespace
}  // namespace wisp::record_parts_test
