// Built for speed: sums over every feature of every record.
#include "runtime/methods/dp_fp/head_releases.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/gradients/clipping.h"
#include "runtime/privacy/noise/discrete_gaussian.h"

namespace wisp {

HeadReleases::HeadReleases(const kernels::Device& device, const HeadReleaseOptions& options)
    : options_(options),
      grid_(options.clipping_norm, size_t{options.num_classes} * options.width),
      sum_(device, size_t{options.micro_batches} * options.num_classes * options.width,
           {.steps_per_unit = static_cast<float>(grid_.steps_per_unit()), .max_sum_squares = grid_.max_sum_squares()}),
      total_(size_t{options.num_classes} * options.width, 0.0),
      centre_(options.width),
      difference_(total_.size()),
      squares_(options.num_classes) {
  if (options_.class_prior.empty()) options_.class_prior.assign(options.num_classes, 1.0 / options.num_classes);
}

bool HeadReleases::Add(size_t worker, size_t micro_batch, const float* h, uint32_t label) {
  const size_t d = options_.width;
  double squares = 0;
  for (size_t k = 0; k < d; ++k) squares += static_cast<double>(h[k]) * h[k];
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return false;
  const float factor = static_cast<float>(ClipRule::Flat(grid_.reduced_clipping_norm()).Factor(norm));
  const size_t offset = (micro_batch * options_.num_classes + label) * d;
  // The bound is checked on what was really added, not inferred from the norm.
  if (sum_.Add(worker, offset, h, d, factor, 1) <= sum_.MaxSumSquares()) return true;
  sum_.Add(worker, offset, h, d, factor, -1);
  return false;
}

void HeadReleases::Release(privacy::RandomStream& noise) {
  privacy::AddDiscreteGaussian(noise, grid_.sigma_in_steps(options_.noise_multiplier), sum_.sum());
  for (double& a : total_) a *= options_.release_decay;
  weight_ = weight_ * options_.release_decay + options_.micro_batches;
  squared_weight_ = squared_weight_ * options_.release_decay * options_.release_decay + options_.micro_batches;
  for (size_t i = 0; i < sum_.sum().size(); ++i)
    total_[i % total_.size()] += static_cast<double>(sum_.sum()[i]) * grid_.grid();
}

size_t HeadReleases::PlanBytes(const HeadReleaseOptions& o) {
  const size_t coordinates = size_t{o.num_classes} * o.width;
  return AlignedArray<int64_t>::AllocatedBytes(o.micro_batches * coordinates) +
         (2 * coordinates + o.width + size_t{2} * o.num_classes) * sizeof(double);
}

size_t HeadReleases::size_bytes() const {
  size_t bytes = sum_.size_bytes();
  for (const auto* list : {&options_.class_prior, &total_, &centre_, &difference_, &squares_})
    bytes += list->capacity() * sizeof(double);
  return bytes;
}

std::vector<uint32_t> HeadReleases::State() const {
  std::vector<double> values = total_;
  values.insert(values.end(), {weight_, squared_weight_});
  std::vector<uint32_t> state(2 * values.size());
  std::memcpy(state.data(), values.data(), values.size() * sizeof(double));
  return state;
}

namespace {

std::vector<double> ComputeValues(std::span<const uint32_t> state) {
  std::vector<double> values(state.size() / 2);
  std::memcpy(values.data(), state.data(), values.size() * sizeof(double));
  return values;
}

}  // namespace

bool HeadReleases::Fits(std::span<const uint32_t> state) const {
  if (state.size() != 2 * (total_.size() + 2)) return false;
  const std::vector<double> values = ComputeValues(state);
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

bool HeadReleases::Restore(std::span<const uint32_t> state) {
  if (!Fits(state)) return false;
  const std::vector<double> values = ComputeValues(state);
  std::copy(values.begin(), values.end() - 2, total_.begin());
  weight_ = values[total_.size()];
  squared_weight_ = values[total_.size() + 1];
  return true;
}

uint32_t HeadReleases::ClassifyMean(size_t of, double trust, double variance) const {
  const size_t d = options_.width;
  uint32_t best = 0;
  double best_logit = 0;
  for (uint32_t c = 0; c < options_.num_classes; ++c) {
    double product = 0;
    for (size_t j = 0; j < d; ++j) product += difference_[of * d + j] * difference_[c * d + j];
    const double logit = trust * trust * (product - squares_[c] / 2) / variance + std::log(options_.class_prior[c]);
    if (c == 0 || logit > best_logit) best = c, best_logit = logit;
  }
  return best;
}

void HeadReleases::FitHead(float* weight, float* bias) {
  const size_t d = options_.width, classes = options_.num_classes;
  const std::vector<double>& prior = options_.class_prior;
  const double n = weight_ * options_.sampling_probability * options_.num_records_public;
  const double c2 = options_.clipping_norm * options_.clipping_norm;
  // The noise's variance in one coordinate of A.
  const double noise = squared_weight_ * options_.noise_multiplier * options_.noise_multiplier * c2;
  std::vector<double>&centre = centre_, &difference = difference_, &squares = squares_;
  std::fill(centre.begin(), centre.end(), 0.0);
  std::fill(squares.begin(), squares.end(), 0.0);
  for (size_t i = 0; i < total_.size(); ++i) centre[i % d] += total_[i] / n;
  double between = 0, inverse_priors = 0, centre_squares = 0;
  for (double v : centre) centre_squares += v * v;
  for (size_t c = 0; c < classes; ++c) {
    for (size_t k = 0; k < d; ++k) {
      difference[c * d + k] = total_[c * d + k] / (n * prior[c]) - centre[k];
      squares[c] += difference[c * d + k] * difference[c * d + k];
    }
    between += prior[c] * squares[c];
    inverse_priors += 1 / prior[c];
  }
  // The expectation of `between` and of |centre|^2 under noise alone: each coordinate of mu_c has variance noise / (n
  // prior_c)^2.
  const double width = static_cast<double>(d), k = static_cast<double>(classes);
  const double noise_between = width * noise * (inverse_priors - k) / (n * n),
               noise_centre = width * noise * k / (n * n);
  const double trust = between > 0 ? std::max(kLeastTrust, 1 - noise_between / between) : kLeastTrust;
  const double explained = std::max(0.0, centre_squares - noise_centre) + std::max(0.0, between - noise_between);
  // A variance of 0 would make logits infinite.
  const double variance = std::max(c2 - explained, 1e-3 * c2) / options_.effective_dimensions;
  for (size_t c = 0; c < classes; ++c) {
    double along = 0;
    for (size_t j = 0; j < d; ++j) {
      const double w = trust * difference[c * d + j] / variance;
      weight[c * d + j] = static_cast<float>(w);
      along += w * centre[j];
    }
    bias[c] = static_cast<float>(-along - trust * trust * squares[c] / (2 * variance) + std::log(prior[c]));
  }
  class_of_all_means_ = ClassifyMean(0, trust, variance);
  for (size_t c = 1; c < classes; ++c) {
    if (ClassifyMean(c, trust, variance) != *class_of_all_means_) return class_of_all_means_.reset();
  }
}

}  // namespace wisp
