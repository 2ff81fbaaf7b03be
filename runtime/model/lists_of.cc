#include "runtime/model/lists_of.h"

#include <algorithm>
#include <iterator>

namespace wisp {

std::vector<int32_t> MergeWithheld(std::span<const int32_t> retired, std::span<const int32_t> untrained) {
  std::vector<int32_t> withheld;
  std::set_union(retired.begin(), retired.end(), untrained.begin(), untrained.end(), std::back_inserter(withheld));
  return withheld;
}

ModelLists MakeLists(bool allow_seen, std::span<const int32_t> withheld, std::span<const int32_t> untrained,
                     OutputBiasOrigin origin, std::span<const Succession> successions) {
  return {.allow_seen = allow_seen,
          .withheld = withheld,
          .untrained = untrained,
          .bias_is_popularity = origin != OutputBiasOrigin::kNone,
          .successions = successions};
}

ModelLists MakeLists(const ModelContents& contents, std::vector<int32_t>& withheld) {
  withheld = MergeWithheld(contents.retired, contents.untrained);
  return MakeLists(contents.allow_seen, withheld, contents.untrained, contents.output_bias_origin,
                   contents.successions);
}

}  // namespace wisp
