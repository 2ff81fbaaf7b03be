// Built for speed: loops over every weight of a step.
#include "runtime/methods/re_attention/noise_variance.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/layers/weights.h"

namespace wisp {

Status Validate(const ReAttentionOptions& o, const Architecture& a) {
  if (!(o.scale >= 0 && o.scale <= 1e6))
    return InvalidArgument("re-attention scale is ", o.scale, ", allowed is 0 to 1e6");
  if (o.source != ReAttentionOptions::Source::kPrinted) return OkStatus();
  if (o.item_frequencies.size() != a.num_items) {
    return InvalidArgument("re-attention with the printed deviations needs the frequency of each of the ", a.num_items,
                           " items; ", o.item_frequencies.size(), " are given");
  }
  for (size_t i = 0; i < o.item_frequencies.size(); ++i) {
    const float p = o.item_frequencies[i];
    if (!(p > 0 && p <= 1)) {
      return InvalidArgument("the frequency of item ", i, " is ", p, ", allowed is above 0 and up to 1");
    }
  }
  return OkStatus();
}

NoiseVariance::NoiseVariance(const Architecture& a, const TrainedSet& trained, const ReAttentionOptions& options,
                             double noise_deviation)
    : parameters_(ListParameters(a)), trained_(&trained), options_(options), deviation_(noise_deviation) {
  item_variance_ = RequireParameter(parameters_, ParameterRole::kItemVariance);
  parameter_variance_ = RequireParameter(parameters_, ParameterRole::kParameterVariance);
  options_.item_frequencies = {};
  if (options.source != ReAttentionOptions::Source::kPrinted) return;
  printed_item_variance_.reserve(options.item_frequencies.size());
  for (float p : options.item_frequencies)
    printed_item_variance_.push_back(
        static_cast<float>(std::pow(deviation_ * options.scale / static_cast<double>(p), 2)));
}

void NoiseVariance::KeepItems(std::span<const int32_t> rows) {
  for (size_t row = 0; row < printed_item_variance_.size(); ++row) {
    if (!std::binary_search(rows.begin(), rows.end(), static_cast<int32_t>(row))) printed_item_variance_[row] = 0;
  }
}

void NoiseVariance::Initialise(std::span<float> weights) const {
  if (options_.source != ReAttentionOptions::Source::kPrinted) return;
  const auto of_items = weights.begin() + static_cast<std::ptrdiff_t>(parameters_[item_variance_].offset);
  if (trained_->contains(0)) std::copy(printed_item_variance_.begin(), printed_item_variance_.end(), of_items);
  for (size_t i = 0; i < item_variance_; ++i) {
    weights[parameters_[parameter_variance_].offset + i] =
        trained_->contains(i) ? static_cast<float>(std::pow(deviation_ * options_.scale, 2)) : 0.0f;
  }
}

void NoiseVariance::Add(const Step& s, size_t part, size_t num_parts, std::span<float> weights) const {
  if (options_.source != ReAttentionOptions::Source::kOptimizer) return;
  const double moved = std::pow(static_cast<double>(s.rate) * options_.scale, 2);
  const auto left = [&](size_t offset, size_t n) {
    return static_cast<float>(moved * s.optimizer.MeanSquaredMove(offset, n, s.step, deviation_));
  };
  for (size_t i = 0; i < item_variance_; ++i) {
    if (!trained_->contains(i)) continue;
    const ParameterSpec& p = parameters_[i];
    const size_t offset = trained_->offset(i);
    if (s.optimizer.is_on_device()) {  // part 0 of 1
      AddOnDevice(s, i, moved, weights);
    } else if (i == 0) {  // the item table, row by row
      const size_t count = s.item_rows ? s.item_rows->rows.size() : p.rows;
      for (size_t r = count * part / num_parts; r < count * (part + 1) / num_parts; ++r) {
        const size_t row = s.item_rows ? static_cast<size_t>(s.item_rows->rows[r]) : r;
        weights[parameters_[item_variance_].offset + row] += left(offset + row * p.cols, p.cols);
      }
    } else if (i % num_parts == part) {
      weights[parameters_[parameter_variance_].offset + i] += left(offset, p.size());
    }
  }
}

// Adds to the item table row by row, to other parameters as a whole.
void NoiseVariance::AddOnDevice(const Step& s, size_t i, double moved, std::span<float> weights) const {
  const ParameterSpec& p = parameters_[i];
  const size_t offset = trained_->offset(i);
  if (i > 0) {
    float* variance = &weights[parameters_[parameter_variance_].offset + i];
    return s.optimizer.AddSquaredMoves(offset, 1, p.size(), s.step, deviation_, moved, variance, nullptr);
  }
  const ItemRows of = s.item_rows.value_or(ItemRows{});
  const size_t rows = s.item_rows ? of.rows.size() : p.rows;
  float* variance = &weights[parameters_[item_variance_].offset];
  s.optimizer.AddSquaredMoves(offset, rows, p.cols, s.step, deviation_, moved, variance, of.on_device);
}

}  // namespace wisp
