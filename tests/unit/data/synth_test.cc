// The synthetic cafe: the same bytes everywhere, readable, learnable, and different on a device.
#include "runtime/data/synth.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::data::synth_test {
namespace {

SynthData Make(const SynthOptions& options) {
  Result<SynthData> data = Synthesize(options);
  EXPECT_TRUE(data.ok()) << data.status().message();
  return *std::move(data);
}

// Returns the FNV-1a hash of everything that is generated.
uint64_t ComputeHash(const SynthData& data) {
  uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) hash = (hash ^ (value >> (8 * i) & 0xff)) * 0x100000001b3ull;
  };
  const auto add_text = [&](const std::string& text) {
    for (char c : text) add(static_cast<uint8_t>(c), 1);
    add(0, 1);
  };
  for (int32_t item : data.sequences.items) add(static_cast<uint32_t>(item), 4);
  for (uint64_t offset : data.sequences.offsets) add(offset, 8);
  for (int64_t time : data.times) add(static_cast<uint64_t>(time), 8);
  for (const auto* texts : {&data.sequences.user_keys, &data.sequences.item_keys, &data.item_names}) {
    for (const std::string& text : *texts) add_text(text);
  }
  return hash;
}

TEST(Synthesize, SameOptions_SameDataOnEveryMachine) {
  // The shipped model was trained on these data: after a change it must be trained again.
  EXPECT_EQ(ComputeHash(Make({})), 8955975446515933051u);
  EXPECT_EQ(ComputeHash(Make({.population = Population::kDevice})), 8166637626294834084u);
  EXPECT_EQ(ComputeHash(Make({.seed = 7, .num_items = 96, .num_users = 50, .min_events = 3, .max_events = 9})),
            361541061630396103u);
}

TEST(Synthesize, SeedAndPopulation_ChangeTheGuestsNotTheMenu) {
  const SynthData a = Make({}), b = Make({.seed = 2}), c = Make({.population = Population::kDevice});
  EXPECT_NE(a.sequences.items, b.sequences.items);
  EXPECT_NE(a.sequences.items, c.sequences.items);
  EXPECT_EQ(a.sequences.item_keys, b.sequences.item_keys);
  EXPECT_EQ(a.item_names, c.item_names);
}

TEST(Synthesize, Sequences_AreAsPromised) {
  const SynthData data = Make({.num_users = 300, .min_events = 5, .max_events = 120, .repeats = 0});
  const Sequences& s = data.sequences;
  ASSERT_EQ(s.num_users(), 300u);
  ASSERT_EQ(s.user_keys.size(), 300u);
  ASSERT_EQ(data.times.size(), s.items.size());
  size_t shortest = 1000, longest = 0;
  for (size_t u = 0; u < 300; ++u) {
    const auto items = s.User(u);
    shortest = std::min(shortest, items.size());
    longest = std::max(longest, items.size());
    EXPECT_EQ(std::set<int32_t>(items.begin(), items.end()).size(), items.size()) << "an item twice, user " << u;
    for (size_t i = s.offsets[u] + 1; i < s.offsets[u + 1]; ++i) ASSERT_LT(data.times[i - 1], data.times[i]);
  }
  EXPECT_GE(shortest, 5u);
  EXPECT_LE(longest, 120u);
  EXPECT_GT(longest, 100u);
  EXPECT_EQ(s.user_keys.front(), "u00001");
}

TEST(Synthesize, Repeats_AreAsManyAsAskedFor) {
  EXPECT_EQ(SynthOptions().repeats, 40u) << "as in public logs of groceries";
  for (const uint32_t repeats : {0u, 30u, SynthOptions().repeats, 90u}) {
    const SynthData data = Make({.num_users = 400, .repeats = repeats});
    const Sequences& s = data.sequences;
    double again = 0, all = 0;
    for (size_t u = 0; u < s.num_users(); ++u) {
      const auto items = s.User(u);
      for (size_t i = 1; i < items.size(); ++i) {
        again += std::count(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i), items[i]) > 0;
        all += 1;
      }
    }
    EXPECT_NEAR(again / all, repeats / 100.0, 0.02) << repeats;
  }
}

TEST(SynthCatalogue, NamesAreReadableKeysAscendAndAreUnique) {
  for (uint32_t items = 48; items <= kSynthMaxItems; items += 48) {
    const Result<SynthData> menu = SynthCatalogue(items);
    ASSERT_TRUE(menu.ok());
    const std::vector<std::string>& keys = menu->sequences.item_keys;
    ASSERT_EQ(keys.size(), items);
    ASSERT_EQ(menu->item_names.size(), items);
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), items);
    EXPECT_EQ(std::set<std::string>(menu->item_names.begin(), menu->item_names.end()).size(), items);
  }
  const Result<SynthData> menu = SynthCatalogue(kSynthMaxItems);
  EXPECT_EQ(menu->sequences.item_keys[80], "coffee-almond");
  EXPECT_EQ(menu->item_names[80], "Almond Coffee");
}

TEST(Synthesize, OptionsOutOfRange_AreNamed) {
  const auto refused = [](const SynthOptions& options) {
    const Result<SynthData> data = Synthesize(options);
    EXPECT_EQ(data.status().code(), StatusCode::kInvalidArgument);
    return data.status().message();
  };
  EXPECT_EQ(refused({.num_items = 100}), "synth: 100 items; allowed are multiples of 48 up to 480");
  EXPECT_EQ(refused({.num_items = 0}), "synth: 0 items; allowed are multiples of 48 up to 480");
  EXPECT_EQ(refused({.num_items = 528}), "synth: 528 items; allowed are multiples of 48 up to 480");
  EXPECT_EQ(refused({.num_users = 0}), "synth: 0 users; allowed are 1 to 1000000");
  EXPECT_EQ(refused({.num_users = 1000001}), "synth: 1000001 users; allowed are 1 to 1000000");
  EXPECT_EQ(refused({.repeats = 100}), "synth: 100 % of repeats; allowed are 0 to 99");
  const std::string events =
      " events per user; allowed are 1 to 120 (a quarter of the items), the smaller number first";
  EXPECT_EQ(refused({.min_events = 0}), "synth: 0 to 40" + events);
  EXPECT_EQ(refused({.min_events = 9, .max_events = 8}), "synth: 9 to 8" + events);
  EXPECT_EQ(refused({.max_events = 121}), "synth: 12 to 121" + events);
}

// The simplest models that could learn the data: counts of items, and counts of pairs with the counts of items as a
// fallback. They are fitted on all but the last event of each user.
class CountModel {
 public:
  explicit CountModel(const SynthData& data)
      : num_items_(data.sequences.num_items()), next_(num_items_ * num_items_, 0), count_(num_items_, 0) {
    for (size_t u = 0; u < data.sequences.num_users(); ++u) {
      const auto all = data.sequences.User(u);
      for (size_t i = 0; i + 1 < all.size(); ++i) {
        ++count_[static_cast<size_t>(all[i])];
        if (i > 0) ++next_[static_cast<size_t>(all[i - 1]) * num_items_ + static_cast<size_t>(all[i])];
      }
    }
  }
  double ByCount(size_t, size_t item) const { return count_[item]; }
  double ByFollowing(size_t last, size_t item) const { return next_[last * num_items_ + item] + 1e-6 * count_[item]; }
  const std::vector<uint32_t>& count() const { return count_; }

 private:
  size_t num_items_;
  std::vector<uint32_t> next_, count_;
};

// Returns the share of users whose last item is among the ten with the highest score, whether or not they had it
// before.
template <class Score>
double HitAt10(const SynthData& data, Score&& score) {
  size_t hits = 0;
  for (size_t u = 0; u < data.sequences.num_users(); ++u) {
    const auto all = data.sequences.User(u);
    const auto last = static_cast<size_t>(all[all.size() - 2]), target = static_cast<size_t>(all.back());
    size_t above = 0;
    for (size_t i = 0; i < data.sequences.num_items(); ++i) {
      above += i != target && score(last, i) >= score(last, target);
    }
    hits += above < 10;
  }
  return static_cast<double>(hits) / static_cast<double>(data.sequences.num_users());
}

// The data are fixed, so the figures are fixed: the bounds leave room for changes of the menu, not for chance.
TEST(Synthesize, Device_CanBeLearntAndIsNotThePublic) {
  const SynthData crowd = Make({.num_users = 8000});
  const SynthData device = Make({.seed = 3, .population = Population::kDevice});
  const SynthData others = Make({.seed = 4, .num_users = 8000, .population = Population::kDevice});
  const CountModel by_crowd(crowd), by_device(device), by_others(others);
  const auto counting = [](const CountModel& m) {
    return [&](size_t last, size_t item) { return m.ByCount(last, item); };
  };
  const auto following = [](const CountModel& m) {
    return [&](size_t last, size_t item) { return m.ByFollowing(last, item); };
  };

  const double popular = HitAt10(device, counting(by_device));
  const double base = HitAt10(device, following(by_crowd));     // the knowledge of a publicly trained model
  const double learnt = HitAt10(device, following(by_device));  // the most that the device's own log can teach
  const double oracle = HitAt10(device, following(by_others));  // the most that can be known
  const double at_home = HitAt10(Make({.seed = 5}), following(by_crowd));
  std::printf("HIT@10 popularity %.3f, public model %.3f (in public %.3f), device's log %.3f, oracle %.3f\n", popular,
              base, at_home, learnt, oracle);
  EXPECT_GT(popular, 0.05);
  EXPECT_LT(popular, 0.2);
  EXPECT_GT(at_home, 0.45);
  EXPECT_LT(base, 0.45);
  EXPECT_GT(base, popular + 0.1);
  EXPECT_GT(learnt, base + 0.15);
  EXPECT_GT(oracle, 0.45);
}

TEST(Synthesize, Popularity_FallsLikeZipfAndDiffersOnADevice) {
  const SynthData crowd = Make({.num_users = 4000}),
                  device = Make({.num_users = 4000, .population = Population::kDevice});
  std::vector<uint32_t> falling = CountModel(crowd).count();
  std::sort(falling.rbegin(), falling.rend());
  uint64_t total = 0, head = 0;
  for (size_t i = 0; i < falling.size(); ++i) total += falling[i], head += i < falling.size() / 10 ? falling[i] : 0;
  EXPECT_GT(head * 4, total);      // a tenth of the items has more than a quarter of the events
  EXPECT_GT(falling.back(), 25u);  // no item is too rare to be learnt
  const std::vector<uint32_t> a = CountModel(crowd).count(), b = CountModel(device).count();
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  EXPECT_LT(ab / std::sqrt(aa * bb), 0.9);
}

void ExpectSameSequences(const SynthData& data, const ReadResult& read) {
  std::map<std::string, std::vector<int32_t>> want, got;
  for (size_t u = 0; u < data.sequences.num_users(); ++u) {
    want[data.sequences.user_keys[u]] = {data.sequences.User(u).begin(), data.sequences.User(u).end()};
  }
  for (size_t u = 0; u < read.sequences.num_users(); ++u) {
    got[read.sequences.user_keys[u]] = {read.sequences.User(u).begin(), read.sequences.User(u).end()};
  }
  EXPECT_EQ(got, want);
  EXPECT_EQ(read.report.ties, 0u);
  EXPECT_TRUE(Warnings(read.report).empty());
}

TEST(WriteSqliteLog, ReadBack_IsTheSame) {
  const test::TemporaryFolder folder;
  const SynthData data = Make({.num_users = 400, .population = Population::kDevice});
  ASSERT_TRUE(WriteSqliteLog(folder / "events.db", data).ok());
  const Result<ItemIndex> index = ItemIndex::Make("menu", data.sequences.item_keys);
  ASSERT_TRUE(index.ok());
  const Result<ReadResult> read = ReadSequences(folder / "events.db", Format::kAuto, {.known_items = &*index});
  ASSERT_TRUE(read.ok()) << read.status().message();
  ExpectSameSequences(data, *read);
  EXPECT_EQ(folder.NumFiles(), 1u);
  // The events came in the order of time, as on a device.
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((folder / "events.db").c_str(), &database), SQLITE_OK);
  sqlite3_stmt* query = nullptr;
  sqlite3_prepare_v2(
      database,
      "SELECT (SELECT count(*) FROM events a JOIN events b ON b.rowid = a.rowid + 1 WHERE b.time < a.time),"
      "(SELECT name FROM items WHERE key = 'soup-tomato'), (SELECT count(*) FROM items)",
      -1, &query, nullptr);
  ASSERT_EQ(sqlite3_step(query), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(query, 0), 0);
  EXPECT_STREQ(reinterpret_cast<const char*>(sqlite3_column_text(query, 1)), "Tomato Soup");
  EXPECT_EQ(sqlite3_column_int(query, 2), 480);
  sqlite3_finalize(query);
  sqlite3_close(database);
}

TEST(WriteSqliteLog, Result_IsAnEventLog) {
  const test::TemporaryFolder folder;
  const SynthData data = Make({.num_users = 20});
  ASSERT_TRUE(WriteSqliteLog(folder / "events.db", data).ok());
  Result<EventLog> log = EventLog::Open(folder / "events.db");
  ASSERT_TRUE(log.ok()) << log.status().message();
  const Result<std::vector<std::string>> history = log->History("u00001", 1);
  ASSERT_TRUE(history.ok());
  ASSERT_EQ(history->size(), 1u);
  EXPECT_EQ(history->front(), data.sequences.item_keys[static_cast<size_t>(data.sequences.User(0).back())]);
}

TEST(WriteSqliteLog, Database_IsNotReplacedAndAJournalIsRespected) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "events.db";
  ASSERT_TRUE(WriteSqliteLog(path, Make({.num_users = 50})).ok());
  for (const Status& status :
       {WriteSqliteLog(path, Make({.num_users = 20})), WriteUserItemText(path, Make({.num_users = 20}))}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("will not be replaced"), std::string::npos) << status.message();
  }
  EXPECT_EQ(ReadSequences(path, Format::kAuto, {})->report.num_users, 50u);
  std::filesystem::remove(path);
  std::ofstream(path + "-wal") << "";
  const Status status = WriteSqliteLog(path, Make({.num_users = 5}));
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_EQ(status.message(), path + ": will not be replaced while " + path +
                                  "-wal is there, which a database left behind: name another file");
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove(path + "-wal");
  EXPECT_TRUE(WriteSqliteLog(path, Make({.num_users = 20})).ok());
}

TEST(Write, FolderThatIsNotThere_IsNamedAndNothingIsLeft) {
  const test::TemporaryFolder folder;
  const SynthData data = Make({.num_users = 5});
  for (const Status& status :
       {WriteSqliteLog(folder / "no/x", data), WriteUserItemText(folder / "no/x", data),
        WriteTable(folder / "no/x", data, Format::kCsv), WriteItemNames(folder / "no/x", data)}) {
    EXPECT_EQ(status.code(), StatusCode::kIo);
    EXPECT_NE(status.message().find(folder / "no/x"), std::string::npos) << status.message();
  }
  EXPECT_EQ(folder.NumFiles(), 0u);
}

TEST(WriteUserItemText, ReadBack_IsTheSame) {
  const test::TemporaryFolder folder;
  const SynthData data = Make({.num_users = 2000});
  ASSERT_TRUE(WriteUserItemText(folder / "public.txt", data).ok());
  // All items occur, so they get the catalogue's numbers without an index.
  const Result<ReadResult> read = ReadSequences(folder / "public.txt", Format::kAuto, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->sequences.item_keys, data.sequences.item_keys);
  EXPECT_EQ(read->sequences.user_keys, data.sequences.user_keys);
  ExpectSameSequences(data, *read);
}

TEST(WriteTable, ReadBack_IsTheSame) {
  const test::TemporaryFolder folder;
  const SynthData data = Make({.num_users = 2000, .population = Population::kDevice});
  const Result<ItemIndex> index = ItemIndex::Make("menu", data.sequences.item_keys);
  ASSERT_TRUE(index.ok());
  for (const auto& [name, header] : {std::pair{"log.csv", "user,item,time"}, std::pair{"log.tsv", "user\titem\ttime"},
                                     std::pair{"log.inter", "user_id:token\titem_id:token\ttimestamp:float"}}) {
    ASSERT_TRUE(WriteTable(folder / name, data, FormatFromName(name)).ok());
    std::ifstream in(folder / name);
    std::string line;
    std::getline(in, line);
    EXPECT_EQ(line, header);
    const Result<ReadResult> read = ReadSequences(folder / name, Format::kAuto, {.known_items = &*index});
    ASSERT_TRUE(read.ok()) << read.status().message();
    ExpectSameSequences(data, *read);
  }
  EXPECT_EQ(WriteTable(folder / "log.txt", data, Format::kUserItem).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(folder.NumFiles(), 3u);
}

TEST(WriteItemNames, FirstLines_AreHeaderAndNames) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WriteItemNames(folder / "items.tsv", *SynthCatalogue(kSynthMaxItems)).ok());
  std::ifstream in(folder / "items.tsv");
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "item\tname");
  std::getline(in, line);
  EXPECT_EQ(line, "bagel-avocado\tAvocado Bagel");
}

}  // namespace
}  // namespace wisp::data::synth_test
