// A ledger file with one wrong bit: it is refused, or it says the same as before.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <random>
#include <sstream>
#include <string>

#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_flips_test {
namespace {

namespace fs = std::filesystem;

constexpr char kRefused[] = "refused";

// Returns everything but an entry's state, which is for display.
std::string Said(const std::string& path) {
  const auto ledger = Ledger::OpenExisting(path);
  if (!ledger.ok()) return kRefused;
  const auto entries = ledger->Entries();
  const auto limits = ledger->Limits();
  const auto plans = ledger->Plans();
  const auto results = ledger->Results();
  if (!entries.ok() || !limits.ok() || !plans.ok() || !results.ok()) return kRefused;
  std::ostringstream out;
  out << std::hexfloat << ledger->dataset() << '|' << ToText(ledger->unit()) << ledger->unit_chosen()
      << ToText(ledger->adjacency()) << '\n';
  for (const LedgerLimit& l : *limits) {
    out << l.seq << '|' << l.time_utc << '|' << l.limit.epsilon() << '|' << l.limit.delta() << '\n';
  }
  for (const LedgerPlan& p : *plans) {
    out << p.seq << '|' << p.time_utc << '|' << p.run << '|' << p.purpose << '|' << p.settings << '\n';
    for (const PlannedMechanism& m : p.mechanisms) out << m.mechanism.ToText() << '|' << m.loss_slack << '\n';
  }
  for (const LedgerEntry& e : *entries) {
    out << e.id << '|' << e.seq << '|' << e.time_utc << '|' << e.run << '|' << e.purpose << '|' << e.mechanism.ToText()
        << '|' << ToText(e.noise) << '|' << e.loss_slack << '|' << e.plan << '\n';
  }
  for (const LedgerResult& r : *results) out << r.seq << '|' << r.time_utc << '|' << r.entry << '|' << r.text << '\n';
  return out.str();
}

std::string ReadWhole(const std::string& path) {
  std::string whole(fs::file_size(path), '\0');
  std::FILE* file = std::fopen(path.c_str(), "rb");
  EXPECT_EQ(std::fread(whole.data(), 1, whole.size(), file), whole.size());
  std::fclose(file);
  return whole;
}

void Write(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  std::fclose(file);
}

// Makes a ledger with a limit, a plan of two mechanisms, entries under it and beside it, and a result.
void MakeLedger(const std::string& path) {
  Ledger ledger = MustOpen(path);
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(8)).ok());
  const ChargeRequest planned[] = {{.mechanism = Steps(20), .run = "a", .purpose = "training"},
                                   {.mechanism = Steps(1, 30), .run = "a", .purpose = "counts", .loss_slack = 0.25}};
  ASSERT_TRUE(ledger.WritePlan("a", "all of it", planned, "{}").ok());
  for (const uint64_t steps : {10, 5, 25}) {
    const auto id = ledger.Charge({.mechanism = Steps(steps), .run = "a", .purpose = "training"});
    ASSERT_TRUE(id.ok()) << id.status().message();
    ASSERT_TRUE(ledger.MarkReleased(*id).ok());
  }
  ASSERT_TRUE(ledger.SetLimit(MakeLimit(9)).ok());
  const auto id = ledger.Charge({.mechanism = Steps(1, 30), .run = "j"});
  ASSERT_TRUE(id.ok() && ledger.AddResult(*id, "12").ok());
}

TEST_F(LedgerTest, AFlippedBitIsRefusedOrChangesNothing) {
  MakeLedger(Path());
  const std::string truth = Said(Path());
  ASSERT_NE(truth, kRefused);
  const double spent = *MustOpen(Path()).Spent(AtDelta());
  const std::string whole = ReadWhole(Path());
  const uint32_t seed = std::random_device()();
  std::cout << "seed " << seed << ", " << whole.size() << " bytes\n";
  std::minstd_rand random(seed);
  int accepted = 0, refused = 0;
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    if (whole[byte] == 0 && byte % 16 != 0) continue;  // unused bytes are all zeros
    const int bit = static_cast<int>(random() / 64 % 8);
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
    Write(Path("damaged"), damaged);
    const std::string said = Said(Path("damaged"));
    fs::remove(Path("damaged-journal"));
    fs::remove(Path("damaged-wal"));
    if (said == kRefused) {
      ++refused;
      continue;
    }
    EXPECT_EQ(said, truth) << "byte " << byte << ", bit " << bit;
    // The total follows from the rows, so a sample is enough.
    if (++accepted % 64 == 1) {
      EXPECT_EQ(*Ledger::OpenExisting(Path("damaged"))->Spent(AtDelta()), spent) << "byte " << byte << ", bit " << bit;
    }
  }
  std::cout << accepted << " accepted, " << refused << " refused\n";
  EXPECT_GT(refused, accepted);
  EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace wisp::privacy::ledger_flips_test
