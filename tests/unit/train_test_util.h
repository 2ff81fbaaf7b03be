// Small training problems that can be learned.
#ifndef WISP_TESTS_UNIT_TRAIN_TEST_UTIL_H_
#define WISP_TESTS_UNIT_TRAIN_TEST_UTIL_H_

#include <cstdint>
#include <vector>

#include "runtime/layers/recommender.h"

namespace wisp::testing {

// Users who walk a ring of items, each from a place of its own: after item i comes i + 1.
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

}  // namespace wisp::testing

#endif  // WISP_TESTS_UNIT_TRAIN_TEST_UTIL_H_
