#include "runtime/personalise/related_bases.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/core/text.h"

namespace wisp {
namespace {

// Lies between values measured on people's histories with games: 0.92 for a base that was trained further on more of
// them, 0.03 and -0.01 for bases that were trained from other random weights.
constexpr double kLeastLikeness = 0.5;
// The cosine of rows in random directions has a deviation of 1 / sqrt(numbers). Chance reaches five deviations in one
// of three million cases, so with fewer numbers than kLeastNumbers more than kLeastLikeness is required. Rows that are
// equal up to rounding suffice from kFewestNumbers on.
constexpr double kDeviations = 5, kSame = 0.9999, kFewestNumbers = 8;
constexpr double kLeastNumbers = (kDeviations / kLeastLikeness) * (kDeviations / kLeastLikeness);

// True if the architectures differ at most in the number of items.
bool SameButForItems(const Architecture& one, const Architecture& other) {
  Architecture same = one;
  same.num_items = other.num_items;
  return same == other;
}

// True if the provenance of `model` says that it was trained from `base`.
bool Names(const ModelFile& model, const ModelFile& base) {
  const auto runs = model.provenance();
  return std::any_of(runs.begin(), runs.end(),
                     [&](const ProvenanceEntry& run) { return run.base_model_hash == base.content_hash(); });
}

}  // namespace

std::vector<uint32_t> ItemsIn(const ModelFile& from, const ModelFile& to) {
  std::vector<uint32_t> items(to.num_items(), kNoItem);
  if (!from.has_item_keys() && !to.has_item_keys() && from.num_items() == to.num_items())
    std::iota(items.begin(), items.end(), 0u);
  for (uint32_t i = 0; i < to.num_items(); ++i) {
    if (const auto found = from.FindItem(to.item_key(i))) items[i] = *found;
  }
  return items;
}

double Likeness(const ModelFile& from, const ModelFile& to, const std::vector<uint32_t>& items) {
  const std::vector<ParameterSpec> old_parameters = ListParameters(from.architecture()),
                                   new_parameters = ListParameters(to.architecture());
  const ParameterSpec& old_p = old_parameters[RequireParameter(old_parameters, ParameterRole::kItemTable)];
  const ParameterSpec& new_p = new_parameters[RequireParameter(new_parameters, ParameterRole::kItemTable)];
  std::vector<float> old_room, new_room;
  const float* const old_rows = from.AllWeights(old_room).data() + old_p.offset;
  const float* const new_rows = to.AllWeights(new_room).data() + new_p.offset;
  const size_t d = old_p.cols;
  std::vector<double> old_mean(d), new_mean(d);
  double shared = 0;
  for (const uint32_t item : items) shared += item != kNoItem ? 1 : 0;
  const auto each = [&](const auto& visit) {
    for (size_t item = 0; item < items.size(); ++item) {
      for (size_t c = 0; c < d && items[item] != kNoItem; ++c)
        visit(c, static_cast<double>(old_rows[items[item] * d + c]), static_cast<double>(new_rows[item * d + c]));
    }
  };
  each([&](size_t c, double of_old, double of_new) {
    old_mean[c] += of_old / shared;
    new_mean[c] += of_new / shared;
  });
  double both = 0, old_square = 0, new_square = 0;
  each([&](size_t c, double of_old, double of_new) {
    both += (of_old - old_mean[c]) * (of_new - new_mean[c]);
    old_square += (of_old - old_mean[c]) * (of_old - old_mean[c]);
    new_square += (of_new - new_mean[c]) * (of_new - new_mean[c]);
  });
  const double lengths = std::sqrt(old_square * new_square);
  return lengths > 0 ? both / lengths : 0;  // with at most one shared item there is no evidence
}

std::string ExplainUnrelated(const ModelFile& from, const ModelFile& to, const std::vector<uint32_t>& items) {
  if (!SameButForItems(from.architecture(), to.architecture()))
    return "the new base has another shape, in more than its number of items";
  // Minus the mean row, a single row carries no information.
  const auto shared = items.size() - static_cast<size_t>(std::count(items.begin(), items.end(), kNoItem));
  const double numbers = (std::max<double>(static_cast<double>(shared), 1) - 1) * from.architecture().width;
  const double likeness = Likeness(from, to, items);
  const double least = std::max(kLeastLikeness, std::min(kSame, kDeviations / std::sqrt(numbers)));
  if (numbers >= kFewestNumbers && likeness >= least) return "";
  if (numbers < kLeastNumbers) {
    if (Names(to, from) || Names(from, to)) return "";
    return "nothing shows that the new base was trained from the old one: they share " + Counted(shared, "item") +
           ", too few to compare, and neither names the other as what it was trained from";
  }
  const auto percent = [](double share) { return std::to_string(std::lround(100 * share)) + " %"; };
  return "the new base was not trained from the old one: the directions of their items agree to " + percent(likeness) +
         ", allowed are " + percent(kLeastLikeness) + " and more";
}

}  // namespace wisp
