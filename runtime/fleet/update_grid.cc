// Built for speed: loops over every weight of an update.
#include "runtime/fleet/update_grid.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace wisp::fleet {
namespace {

static_assert(std::endian::native == std::endian::little, "updates travel as they lie in memory");

// Random rounding adds at most 1/4 to the expected square of each coordinate. The sum of squares then deviates by some
// K, of which six are left as a reserve.
double ClipBound(const privacy::ExactGrid& fine, double k, int shift) {
  if (shift == 0) return fine.reduced_clipping_norm();
  const double rounding = static_cast<double>(fine.num_coordinates()) / (4 * k * k);
  return fine.reduced_clipping_norm() * std::sqrt(std::max(0.01, 1 - rounding - 6 / k));
}

}  // namespace

UpdateGrid::UpdateGrid(const FleetPlan& plan)
    : fine_(plan.clipping_norm, plan.num_weights),
      bits_(plan.bits),
      shift_(30 - std::countr_zero(plan.steps_per_clip())),
      clip_bound_(ClipBound(fine_, static_cast<double>(plan.steps_per_clip()), shift_)) {}

template <class Integer>
bool UpdateGrid::RoundTo(std::span<const int64_t> fine, privacy::RandomStream& stream, std::string& update) const {
  constexpr int64_t kMost = std::numeric_limits<Integer>::max();
  const int64_t mask = (int64_t{1} << shift_) - 1;
  for (size_t i = 0; i < fine.size(); ++i) {
    // Adding a uniform fraction of a step and rounding down rounds up with exactly the right probability.
    const int64_t up = shift_ == 0 ? 0 : static_cast<int64_t>(stream.NextU32()) & mask;
    const auto rounded = static_cast<Integer>(std::clamp((fine[i] + up) >> shift_, -kMost, kMost));
    std::memcpy(update.data() + i * sizeof(Integer), &rounded, sizeof(Integer));
  }
  return IsWithin<Integer>(update);
}

template <class Integer>
bool UpdateGrid::IsWithin(std::string_view update) const {
  if (sizeof(Integer) == 4) {
    double squares = 0;
    for (size_t at = 0; at < update.size(); at += sizeof(Integer)) {
      Integer value;
      std::memcpy(&value, update.data() + at, sizeof(Integer));
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    return fine_.Within(squares);
  }
  // At most 2^32 squares below 2^30.
  uint64_t squares = 0;
  for (size_t at = 0; at < update.size(); at += sizeof(Integer)) {
    Integer value;
    std::memcpy(&value, update.data() + at, sizeof(Integer));
    squares += static_cast<uint64_t>(int64_t{value} * int64_t{value});
  }
  return squares <= uint64_t{1} << 2 * (30 - shift_);
}

template <class Integer>
void UpdateGrid::AddTo(std::string_view update, std::span<int64_t> sum) const {
  for (size_t i = 0; i < sum.size(); ++i) {
    Integer value;
    std::memcpy(&value, update.data() + i * sizeof(Integer), sizeof(Integer));
    sum[i] += int64_t{value} * (int64_t{1} << shift_);
  }
}

bool UpdateGrid::Round(std::span<const int64_t> fine, privacy::RandomStream& stream, std::string& update) const {
  update.resize(bytes());
  if (bits_ == 8) return RoundTo<int8_t>(fine, stream, update);
  if (bits_ == 16) return RoundTo<int16_t>(fine, stream, update);
  return RoundTo<int32_t>(fine, stream, update);
}

bool UpdateGrid::Within(std::string_view update) const {
  if (update.size() != bytes()) return false;
  if (bits_ == 8) return IsWithin<int8_t>(update);
  if (bits_ == 16) return IsWithin<int16_t>(update);
  return IsWithin<int32_t>(update);
}

void UpdateGrid::Add(std::string_view update, std::span<int64_t> sum) const {
  if (bits_ == 8) return AddTo<int8_t>(update, sum);
  if (bits_ == 16) return AddTo<int16_t>(update, sum);
  return AddTo<int32_t>(update, sum);
}

}  // namespace wisp::fleet
