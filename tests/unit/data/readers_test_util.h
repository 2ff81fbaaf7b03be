// Helpers of the readers' tests: the result of reading a text, a folder of logs, random damage.
#ifndef WISP_TESTS_UNIT_DATA_READERS_TEST_UTIL_H_
#define WISP_TESTS_UNIT_DATA_READERS_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

#include "runtime/data/readers.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::data {

// Sentences about times end in this way.
inline const std::string kAllowedTimes =
    "; allowed is a number between -9e18 and 9e18, such as 978300760 (seconds), or a date of ISO 8601, such as "
    "2026-11-27T09:30:00Z";
inline const std::string kTimesNeeded =
    "; times are needed, as numbers such as seconds or as dates: they put the events of a user in order. Events "
    "without times can "
    "be lines of a user and an "
    "item, in their order (the format user-item)";

// Returns "anna: tea coffee; ben: tea", the sequences by their keys.
inline std::string Told(const Sequences& s) {
  std::string told;
  for (size_t u = 0; u < s.num_users(); ++u) {
    told += (u == 0 ? "" : "; ") + s.user_keys[u] + ":";
    for (int32_t item : s.User(u)) told += " " + s.item_keys[static_cast<size_t>(item)];
  }
  return told;
}

inline std::string ReadFileAndTell(const std::string& path, Format format = Format::kAuto,
                                   const ReadOptions& options = {}) {
  const Result<ReadResult> read = ReadSequences(path, format, options);
  return read.ok() ? Told(read->sequences) : "error: " + read.status().message();
}

class LogFolder : public test::TemporaryFolder {
 public:
  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }
  std::string MakeDatabase(const std::string& name, const std::string& sql) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open((*this / name).c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(database);
    return *this / name;
  }
};

// Makes random bytes that a format cares about, and valid files with random damage.
class Noise {
 public:
  explicit Noise(uint32_t seed) : random_(seed) {}
  std::string Bytes(size_t most) {
    using std::string_view_literals::operator""sv;
    static constexpr std::string_view kLikely = "\"\"\n\n\r\t\t,,:::: 0123456789-+.e\0ab\xc3\xa9\xff"sv;
    std::string bytes(random_() % (most + 1), ' ');
    for (char& c : bytes) c = random_() % 8 == 0 ? static_cast<char>(random_()) : kLikely[random_() % kLikely.size()];
    return bytes;
  }
  std::string Damage(std::string text) {
    for (uint32_t n = 1 + random_() % 4; n > 0 && !text.empty(); --n) {
      const size_t at = random_() % text.size();
      switch (random_() % 3) {
        case 0:
          text[at] = Bytes(1).append("\"")[0];
          break;
        case 1:
          text.erase(at, random_() % 5);
          break;
        default:
          text.insert(at, Bytes(3));
          break;
      }
    }
    return text;
  }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  std::mt19937 random_;
};

// Expects either an error with a sentence, or consistent sequences.
inline void ExpectSound(const Result<ReadResult>& read) {
  if (!read.ok()) {
    EXPECT_FALSE(read.status().message().empty());
    return;
  }
  const Sequences& s = read->sequences;
  ASSERT_EQ(s.offsets.front(), 0u);
  ASSERT_EQ(s.offsets.back(), s.items.size());
  ASSERT_EQ(s.user_keys.size(), s.num_users());
  ASSERT_EQ(read->report.num_events, s.items.size());
  for (size_t u = 0; u < s.num_users(); ++u) ASSERT_LT(s.offsets[u], s.offsets[u + 1]);
  for (int32_t item : s.items) ASSERT_TRUE(item >= 0 && static_cast<size_t>(item) < s.num_items());
}

}  // namespace wisp::data

#endif  // WISP_TESTS_UNIT_DATA_READERS_TEST_UTIL_H_
