#include "runtime/data/split.h"

namespace wisp::data {

Split MakeSplit(const Sequences& sequences, HoldOut hold_out) {
  constexpr size_t kLeastTrain = 2;  // one to predict from, one to predict
  const size_t held = hold_out == HoldOut::kNothing ? 0 : hold_out == HoldOut::kTest ? 1 : 2;
  Split split;
  split.train.reserve(sequences.num_users());
  for (size_t u = 0; u < sequences.num_users(); ++u) {
    const std::span<const int32_t> items = sequences.User(u);
    const auto user = static_cast<uint32_t>(u);
    const size_t n = items.size(), give = n >= held + kLeastTrain ? held : 0;
    split.not_held_out += give < held;
    split.untrainable += n - give < kLeastTrain;
    split.train.push_back(items.first(n - give));
    if (give >= 1) split.test.push_back({user, items.first(n - 1), items[n - 1]});
    if (give == 2) split.validation.push_back({user, items.first(n - 2), items[n - 2]});
  }
  return split;
}

Sequences EventsUntil(const Sequences& sequences, const Moment& moment) {
  if (sequences.times.empty()) return sequences;
  Sequences kept{.user_keys = sequences.user_keys,
                 .item_keys = sequences.item_keys,
                 .unit_begins = sequences.unit_begins,
                 .sessions = sequences.sessions};
  for (size_t u = 0; u < sequences.num_users(); ++u) {
    const std::span<const int32_t> items = sequences.User(u);
    const std::span<const int64_t> times = sequences.GetTimes(u);
    for (size_t i = 0; i < items.size(); ++i) {
      if (moment.IsBefore(times[i])) continue;
      kept.items.push_back(items[i]);
      kept.times.push_back(times[i]);
    }
    kept.offsets.push_back(kept.items.size());
  }
  return kept;
}

}  // namespace wisp::data
