// The release that compares lists: for each alternative to a model, the noised sums over records of its gain and of
// the gain's square. The squares say how much records differ, so that evidence needs no guess about them.
//
//   sensitivity   a record's gains, one an alternative, are cut to the L2 norm 1. With their squares times
//                 kSquareWeight its vector is no longer than RecordNorm()
//   noise         exact discrete Gaussian, noise_multiplier times RecordNorm() on every sum
#ifndef WISP_RUNTIME_TRAIN_GAIN_SUMS_H_
#define WISP_RUNTIME_TRAIN_GAIN_SUMS_H_

#include <cstdint>
#include <span>

namespace wisp {

// The weight of the squares of gains in the release, beside the gains. It is so small that both together are hardly
// longer than the gains alone.
inline constexpr double kSquareWeight = 0.25;

// The largest length of the vector that one record adds, for gains of the length 1.
double RecordNorm();

// Grid steps for a gain of 1.
inline constexpr int64_t kGainSteps = int64_t{1} << 20;
// RecordNorm in grid steps, rounded up: the sensitivity. And the noise of a sum in grid steps.
double GainNorm();
uint64_t GainSigma(double noise_multiplier);

// Puts a record's gains on the grid: [2 * gains], the gains cut to the L2 norm 1 and then kSquareWeight times their
// squares, rounded towards zero. All 0 if a square is not finite.
void PutOnGrid(std::span<const double> gains, std::span<int64_t> on_grid);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_GAIN_SUMS_H_
