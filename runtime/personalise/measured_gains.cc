// Made of docs/results/gains.jsonl by tools/lab/reproduce/gains.py draw.
#include "runtime/personalise/measured_gains.h"

namespace wisp {

std::span<const MeasuredGain> MeasuredGains() {
  // clang-format off
  static constexpr MeasuredGain kMeasured[] = {
      {.data = "cafe", .differs = "other tastes, four of ten choices repeat",
       .carried_by = "counts of which item follows which", .by_counts = true, .by_bias = false,
       .people = 500, .runs = 12, .epsilon = 4, .items = 480,
       .noise_to_signal = 1.05, .noise_of_an_item = 4.92, .succession_signal = 2.64,
       .lowest = 0.049, .highest = 0.071, .new_items = false, .found_better = false},
      {.data = "cafe", .differs = "other tastes, four of ten choices repeat",
       .carried_by = "counts of which item follows which", .by_counts = true, .by_bias = false,
       .people = 2000, .runs = 12, .epsilon = 4, .items = 480,
       .noise_to_signal = 0.263, .noise_of_an_item = 1.23, .succession_signal = 10.6,
       .lowest = 0.34, .highest = 0.352, .new_items = false, .found_better = true},
      {.data = "cafe", .differs = "other tastes, four of ten choices repeat",
       .carried_by = "counts of which item follows which", .by_counts = true, .by_bias = false,
       .people = 20000, .runs = 12, .epsilon = 4, .items = 480,
       .noise_to_signal = 0.0188, .noise_of_an_item = 0.0877, .succession_signal = 71.1,
       .lowest = 0.637, .highest = 0.637, .new_items = false, .found_better = true},
      {.data = "games", .differs = "items that the base never saw",
       .carried_by = "the weight of the output bias", .by_counts = false, .by_bias = true,
       .people = 500, .runs = 12, .epsilon = 4, .items = 23715,
       .noise_to_signal = 2.16, .noise_of_an_item = 104.0, .succession_signal = 0.0,
       .lowest = 0.087, .highest = 0.087, .new_items = true, .found_better = false},
      {.data = "games", .differs = "items that the base never saw",
       .carried_by = "the weight of the output bias", .by_counts = false, .by_bias = true,
       .people = 2000, .runs = 12, .epsilon = 4, .items = 23715,
       .noise_to_signal = 0.54, .noise_of_an_item = 26.0, .succession_signal = 0.0,
       .lowest = 0.145, .highest = 0.145, .new_items = true, .found_better = true},
      {.data = "games", .differs = "items that the base never saw",
       .carried_by = "the weight of the output bias", .by_counts = false, .by_bias = true,
       .people = 10000, .runs = 12, .epsilon = 4, .items = 23715,
       .noise_to_signal = 0.108, .noise_of_an_item = 5.21, .succession_signal = 0.0,
       .lowest = 0.153, .highest = 0.153, .new_items = true, .found_better = true},
      {.data = "games", .differs = "items that the base never saw",
       .carried_by = "training all weights", .by_counts = false, .by_bias = false,
       .people = 20000, .runs = 12, .epsilon = 4, .items = 23715,
       .noise_to_signal = 0.0647, .noise_of_an_item = 3.12, .succession_signal = 0,
       .lowest = 0.35, .highest = 0.35, .new_items = true, .found_better = true},
      {.data = "games", .differs = "other people, whole histories",
       .carried_by = "the weight of the output bias", .by_counts = false, .by_bias = true,
       .people = 2000, .runs = 12, .epsilon = 4, .items = 23715,
       .noise_to_signal = 0.54, .noise_of_an_item = 26.0, .succession_signal = 0.0,
       .lowest = 0.074, .highest = 0.074, .new_items = false, .found_better = true},
      {.data = "ML-1M", .differs = "users who like horror most",
       .carried_by = "nothing", .by_counts = false, .by_bias = false,
       .people = 500, .runs = 12, .epsilon = 4, .items = 3416,
       .noise_to_signal = 0.864, .noise_of_an_item = 15.0, .succession_signal = 0.0,
       .lowest = 0.008, .highest = 0.008, .new_items = false, .found_better = false},
      {.data = "ML-1M", .differs = "users who like horror most",
       .carried_by = "nothing", .by_counts = false, .by_bias = false,
       .people = 2000, .runs = 12, .epsilon = 4, .items = 3416,
       .noise_to_signal = 0.216, .noise_of_an_item = 3.75, .succession_signal = 0.0,
       .lowest = 0.01, .highest = 0.01, .new_items = false, .found_better = false},
  };
  // clang-format on
  return kMeasured;
}

}  // namespace wisp
