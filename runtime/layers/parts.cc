#include "runtime/layers/parts.h"

#include <algorithm>

namespace wisp {

size_t ThreadsFor(const Helpers* helpers, double adds) {
  if (helpers == nullptr) return 1;
  return std::clamp<size_t>(static_cast<size_t>(adds / helpers->least_of_part), 1, helpers->team.size());
}

RowParts::RowParts(const RecordContext& context, const RowCost& cost) {
  if (context.helpers == nullptr || context.text_B != nullptr || context.cache->one_at_a_time()) return;
  const size_t rows = context.rows();
  const auto past = static_cast<double>(context.past);
  const auto up_to = [&](size_t r) {  // cost of the first r rows
    const auto n = static_cast<double>(r), all = static_cast<double>(rows);
    return n * cost.row + cost.key * (cost.causal ? n * past + n * (n + 1) / 2 : n * (past + all));
  };
  const double whole = up_to(rows);
  count_ = std::min(std::max<size_t>(1, rows), ThreadsFor(context.helpers, whole));
  begin_[0] = 0;
  begin_[count_] = rows;
  for (size_t p = 1; p < count_; ++p) {
    const double goal = whole * static_cast<double>(p) / static_cast<double>(count_);
    size_t r = begin_[p - 1] + 1;
    while (r < rows - (count_ - p) && up_to(r) + up_to(r + 1) < 2 * goal) ++r;
    begin_[p] = r;
  }
}

size_t RowParts::FirstWanted(const RecordContext& context) const {
  const size_t first_row = context.rows() - context.wanted_rows();
  size_t part = 0;
  while (begin_[part + 1] <= first_row) ++part;
  return part;
}

RecordContext RowParts::GetPart(const RecordContext& context, size_t index) const {
  const size_t begin = begin_[index], end = begin_[index + 1];
  const size_t not_wanted = context.rows() - context.wanted_rows();
  return {.weights = context.weights,
          .buffers = index == 0 ? context.buffers : context.helpers->buffers[index - 1],
          .records = {.rows = end - begin},
          .first_valid = context.first_valid,
          .type_R = context.type_R == nullptr ? nullptr : context.type_R + begin,
          .cache = context.cache,
          .past = context.past + begin,
          .after = context.rows() - end,
          .wanted = context.wanted == 0 ? 0 : end - std::max(begin, not_wanted)};
}

}  // namespace wisp
