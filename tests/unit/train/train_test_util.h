// Small training problems that can be learned.
#ifndef WISP_TESTS_UNIT_TRAIN_TRAIN_TEST_UTIL_H_
#define WISP_TESTS_UNIT_TRAIN_TRAIN_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/layers/recommender.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/method_table.h"
#include "runtime/train/run/initialise.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::test {

// Returns initial weights, always the same.
inline std::vector<float> StartWeights(const Architecture& a,
                                       const InitialisationOptions& options = {.table_deviation = 0.1f}) {
  std::vector<float> weights(FlatSize(ListParameters(a)));
  auto random = privacy::RandomStream::Reproducible(3, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(a, options, random, weights);
  return weights;
}

// Users who walk around a ring of items, each from a place of its own: after item i comes i + 1.
struct Ring {
  Ring(uint32_t num_items, size_t num_users, size_t length) {
    for (size_t u = 0; u < num_users; ++u) {
      for (size_t t = 0; t <= length; ++t) items.push_back(static_cast<int32_t>((u * 7 + t) % num_items));
    }
    for (size_t u = 0; u < num_users; ++u) {
      const std::span<const int32_t> all(items.data() + u * (length + 1), length + 1);
      records.push_back({all.first(length), all.last(length)});
    }
  }
  std::vector<int32_t> items;
  std::vector<Record> records;
};

// Training on the ring: a model that learns it in a second, its initial weights, and a folder for ledgers.
class RingTraining : public ::testing::Test {
 protected:
  explicit RingTraining(size_t num_users) : ring_(kSmall.num_items, num_users, 10) {}

  privacy::Ledger OpenLedger(std::string_view name) {
    return *privacy::Ledger::Open(folder_ / name, {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  }

  static constexpr UniformArchitecture kSmall{.num_items = 30,
                                              .max_length = 12,
                                              .width = 16,
                                              .num_heads = 2,
                                              .num_blocks = 1,
                                              .inner_width = 16,
                                              .embedding_scale = 4.0f};
  test::TemporaryFolder folder_;
  Ring ring_;
  std::vector<float> start_ = StartWeights(kSmall);
};

// Returns the ways of training whose methods this build has. A way has a method and a num_negatives.
template <class Way>
std::vector<Way> Built(std::vector<Way> ways) {
  std::erase_if(ways, [](const Way& way) {
    return !CheckBuilt(UniformArchitecture{}, {.method = way.method, .num_negatives = way.num_negatives}).ok();
  });
  return ways;
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_TRAIN_TRAIN_TEST_UTIL_H_
