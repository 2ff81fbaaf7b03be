// The integer grid of a device's update: how numbers travel, and the bound that devices keep and the server checks.
//
//   const UpdateGrid grid(plan.clipping_norm, plan.num_weights, plan.bits);
//   device:  if (!grid.Round(fine, stream, update)) update = all zeros
//   server:  if (grid.Within(update)) grid.Add(update, sum);
//
// A clipped update lies on the fine grid of privacy::ExactGrid, of 2^30 steps for the clipping norm C. It travels on a
// coarser one, of K = 2^(30 - shift()) steps, as whole numbers of 8, 16 or 32 bits. Coordinates are rounded up or down
// at random so that the mean is exact. A coordinate that does not fit is cut, which only shortens the update.
//
// Sensitivity. An update is added only if the squares of its whole numbers sum to at most K^2, counted in integers (for
// 32 bits, where the grid is the fine one: ExactGrid::Within). Multiplied by 2^shift() it is a vector on the fine grid
// that is no longer than ExactGrid allows, and the noise is drawn on the fine grid.
#ifndef WISP_RUNTIME_FLEET_UPDATE_GRID_H_
#define WISP_RUNTIME_FLEET_UPDATE_GRID_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/fleet/fleet_plan.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/privacy/noise/random.h"

namespace wisp::fleet {

class UpdateGrid {
 public:
  explicit UpdateGrid(const FleetPlan& plan);

  const privacy::ExactGrid& fine() const { return fine_; }
  int shift() const { return shift_; }
  size_t bytes() const { return size_t{bits_} / 8 * static_cast<size_t>(fine_.num_coordinates()); }
  // The norm to which a device clips, so that its rounded update hardly ever exceeds the bound.
  double clip_bound() const { return clip_bound_; }

  // Rounds an update on the fine grid to little-endian integers. False, with `update` unspecified, if the rounded
  // update exceeds the bound; another state of the stream may then do better.
  bool Round(std::span<const int64_t> fine, privacy::RandomStream& stream, std::string& update) const;
  // False for another size, or an update beyond the bound.
  bool Within(std::string_view update) const;
  // Adds an update that is Within to a sum on the fine grid.
  void Add(std::string_view update, std::span<int64_t> sum) const;

 private:
  template <class Integer>
  bool RoundTo(std::span<const int64_t> fine, privacy::RandomStream& stream, std::string& update) const;
  template <class Integer>
  bool IsWithin(std::string_view update) const;
  template <class Integer>
  void AddTo(std::string_view update, std::span<int64_t> sum) const;

  privacy::ExactGrid fine_;
  uint32_t bits_;
  int shift_;
  double clip_bound_;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_UPDATE_GRID_H_
