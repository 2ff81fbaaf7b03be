// Pages that hold records, gradients or keys are in no core dump.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "runtime/data/readers.h"
#include "runtime/privacy/noise/random.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp {
namespace {

#ifdef __linux__

struct Area {
  uintptr_t begin = 0, end = 0;
  bool is_excluded = false, is_locked = false;
};

// The areas of this process's memory, as the kernel lists them.
std::vector<Area> ListAreas() {
  std::vector<Area> areas;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    char dash = 0;
    if (Area area; words >> std::hex >> area.begin >> dash >> area.end && dash == '-') areas.push_back(area);
    if (line.starts_with("VmFlags:") && !areas.empty()) {
      areas.back().is_excluded = line.find(" dd") != std::string::npos;
      areas.back().is_locked = line.find(" lo") != std::string::npos;
    }
  }
  return areas;
}

bool IsExcluded(const void* begin, size_t size) {
  size_t excluded = 0;
  const auto from = reinterpret_cast<uintptr_t>(begin), to = from + size;
  for (const Area& area : ListAreas()) {
    const uintptr_t first = std::max(area.begin, from), last = std::min(area.end, to);
    if (area.is_excluded && last > first) excluded += last - first;
  }
  return excluded == size;
}

size_t CountExcludedBytes() {
  size_t bytes = 0;
  for (const Area& area : ListAreas()) bytes += area.is_excluded ? area.end - area.begin : 0;
  return bytes;
}

TEST(CoreDumps, ActivationsAndGradientsAreLeftOut) {
  const kernels::Memory memory;
  for (const size_t size : {size_t{1} << 14, size_t{1} << 22}) {
    void* const bytes = memory.table->allocate(nullptr, size);
    EXPECT_TRUE(IsExcluded(bytes, size)) << size;
    memory.table->release(nullptr, bytes, size);
  }
}

TEST(CoreDumps, ItemsOfALogAreLeftOut) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "events.tsv";
  std::ofstream file(path);
  file << "user\titem\ttime\n";
  for (int i = 0; i < 20000; ++i) file << "u" << i / 20 << "\ti" << i % 50 << "\t" << 1700000000 + i << "\n";
  file.close();
  const auto read = data::ReadSequences(path, data::Format::kAuto, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const std::vector<int32_t>& items = read->sequences.items;
  ASSERT_EQ(items.size(), 20000u);
  EXPECT_TRUE(IsExcluded(items.data(), items.size() * sizeof(int32_t)));
}

TEST(CoreDumps, KeysOfNoiseAreLeftOut) {
  auto first = privacy::RandomStream::Secure();  // pages that libsodium needs once
  ASSERT_TRUE(first.ok());
  const size_t before = CountExcludedBytes();
  auto stream = privacy::RandomStream::Secure();
  ASSERT_TRUE(stream.ok());
  EXPECT_GE(CountExcludedBytes(), before + 4096);
  EXPECT_NE(stream->NextU64(), first->NextU64());
}

#endif  // __linux__

}  // namespace
}  // namespace wisp
