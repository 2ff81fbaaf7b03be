// Helpers of the ledger's tests: a fixture with a folder, and mechanisms for which the accountant is quick.
#ifndef WISP_TESTS_UNIT_PRIVACY_LEDGER_LEDGER_TEST_UTIL_H_
#define WISP_TESTS_UNIT_PRIVACY_LEDGER_LEDGER_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::privacy {

// Gives every test a folder of its own.
class LedgerTest : public ::testing::Test {
 protected:
  std::string Path(const char* name = "test.ledger") const { return folder_ / name; }

  test::TemporaryFolder folder_;
};

inline const LedgerOptions kOptions{.dataset = "watch history",
                                    .record = RecordSpec::OfEvents({.unit = PrivacyUnit::kSession})};

// Returns parameters for which the accountant is quick.
inline Mechanism Steps(uint64_t steps, double noise_multiplier = 20, double q = 0.1) {
  return *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = noise_multiplier, .sampling_probability = q, .steps = steps});
}
inline Delta AtDelta(double delta = 1e-6) { return *Delta::Create(delta); }
inline EpsilonDelta MakeLimit(double epsilon, double delta = 1e-6) { return *EpsilonDelta::Create(epsilon, delta); }

// Returns the bytes of a file; "" for a folder.
inline std::string ReadFile(const std::string& path) {
  if (std::filesystem::is_directory(path)) return "";
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Ledger MustOpen(const std::string& path) {
  auto ledger = Ledger::Open(path, kOptions);
  EXPECT_TRUE(ledger.ok()) << ledger.status().message();
  return *std::move(ledger);
}

}  // namespace wisp::privacy

#endif  // WISP_TESTS_UNIT_PRIVACY_LEDGER_LEDGER_TEST_UTIL_H_
