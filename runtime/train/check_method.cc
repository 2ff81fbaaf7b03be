// What the methods that release rows, the sampled softmax, the batch and the averaged weights ask of the options.
#include <string>

#include "runtime/train/step_release_parts.h"
#include "runtime/train/trainer.h"

namespace wisp {

Status ValidateSparse(const Architecture& a, const TrainingOptions& o) {
  if (a.head.output_table != OutputTable::kTied) {
    return PrivacyRefused(
        "fest and adafest with an untied output table: its softmax touches every row, and no mask covers it; use a "
        "tied table");
  }
  if (o.ema_decay > 0)
    return InvalidArgument(
        "fest and adafest step some rows only: averaged weights (ema_decay) are not offered with them");
  if (o.method != Method::kFest) {
    if (!(o.sparse.map_noise_ratio >= 1e-3 && o.sparse.map_noise_ratio <= 1e3)) {
      return InvalidArgument("adafest: map_noise_ratio is ", o.sparse.map_noise_ratio, ", allowed is 0.001 to 1000");
    }
    WISP_RETURN_IF_ERROR(Validate(MapOptions(o)));
  }
  if (o.method == Method::kAdaFest) return OkStatus();
  if (o.sparse.rows.empty())
    return InvalidArgument("fest and adafest+ need the rows that may be trained; none are given");
  int64_t before = -1;
  for (int32_t row : o.sparse.rows) {
    if (row <= before || row >= static_cast<int64_t>(a.num_items)) {
      return InvalidArgument("fest: row ", row, " after ", before, "; allowed are ascending rows below ", a.num_items);
    }
    before = row;
  }
  return OkStatus();
}

Status ValidateNegatives(const Architecture& a, const TrainingOptions& o) {
  if (o.num_negatives == 0) return OkStatus();
  if (o.num_negatives < 2 || o.num_negatives > a.num_items / 2) {
    return InvalidArgument("num_negatives is ", o.num_negatives, ", allowed are 0 (full softmax) and 2 to half of the ",
                           a.num_items, " items");
  }
  if (o.method == Method::kRgp) return Unsupported("rgp with a sampled softmax is not offered: set num_negatives to 0");
  if (a.head.output_table != OutputTable::kTied || a.head.output_bias == OutputBias::kTrained) {
    return Unsupported("a sampled softmax needs a tied table and no trained output bias");
  }
  return OkStatus();
}

Status ValidateBatch(const TrainingOptions& o, uint64_t num_records) {
  if (o.expected_batch == 0) return InvalidArgument("expected_batch is 0, allowed are 1 and above");
  const uint64_t n = o.num_records_public != 0 ? o.num_records_public : num_records;
  if (o.expected_batch <= n) return OkStatus();
  return InvalidArgument("expected_batch is ", o.expected_batch, ", more than the ", n, " records");
}

Status ValidateAverage(const TrainingOptions& o) {
  if (o.ema_decay >= 0 && o.ema_decay < 1) return OkStatus();
  return InvalidArgument("ema_decay is ", o.ema_decay, ", allowed is 0 <= decay < 1");
}

}  // namespace wisp
