// DP-AdaFEST's first release of a step (docs/algorithms.md, section 5): the rows of the item table that enough records
// touch.
//
//   v_i[j] = 1 for each of the n rows that record i's inputs and targets name, scaled to L2 norm at most C1
//   V = sum over the batch of v_i + N(0, sigma1^2 C1^2);   the set is { j : V[j] >= tau }
//
//   sensitivity   C1: each entry is floor(2^30 min(1/C1, 1/sqrt(n))) steps of C1 / 2^30, so the squares sum to 2^60 at
//                 most
//   released      the set, and nothing else of V
//   noise         discrete Gaussian for touched rows; a row that no record touches survives with p = P[N(0,1) >= tau /
//                 (sigma1 C1)] (tau half a step lower, as rounding has it), and the gaps between such rows are drawn
//                 from their exact distribution: no loop over rows
// The caller of Select must have charged for it. Together with the gradient's noise it is one subsampled Gaussian
// (sparse_release.cc).
#ifndef WISP_RUNTIME_METHODS_SPARSE_CONTRIBUTION_MAP_H_
#define WISP_RUNTIME_METHODS_SPARSE_CONTRIBUTION_MAP_H_

#include <optional>
#include <span>
#include <vector>

#include "runtime/gradients/row_set.h"
#include "runtime/layers/record.h"
#include "runtime/privacy/noise/geometric_gaps.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

struct ContributionMapOptions {
  double clipping_norm = 1;     // C1
  double threshold = 5;         // tau, in units of the scaled contributions
  double noise_multiplier = 1;  // sigma1
};

// Beyond this many deviations an untouched row survives with a probability below 1e-19; 2^-70 is the smallest
// probability that is drawn.
inline constexpr double kMostThresholdDeviations = 9;

// kInvalidArgument for numbers that are not positive, for a threshold above kMostThresholdDeviations deviations of the
// noise, and for a noise multiplier above 2^19.
Status Validate(const ContributionMapOptions& options);

class ContributionMap {
 public:
  // `allowed` are the rows that may be selected, ascending (DP-AdaFEST+); null: all. It must outlive this object.
  // `max_length` is the length of the longest record, if known.
  ContributionMap(uint32_t num_rows, const ContributionMapOptions& options, const RowSet* allowed,
                  size_t max_length = 0);

  // Sets `survivors` to the selected rows, ascending.
  void Select(std::span<const Record* const> batch, privacy::RandomStream& noise, std::vector<int32_t>& survivors);

  // The probability that a row is selected although no record touches it.
  static double FalseRowChance(const ContributionMapOptions& options);
  // The expected number of rows that are selected although no record touches them.
  double expected_false_rows() const { return false_rows_; }
  // The noise's standard deviation, in grid steps.
  uint64_t sigma_in_steps() const { return sigma_; }
  size_t size_bytes() const {
    return touched_.size_bytes() + counts_.capacity() * sizeof(int64_t) +
           (distinct_.capacity() + ascending_.capacity()) * sizeof(int32_t);
  }
  // The bytes of a map with room for `touched` rows in a step, and for those of one record.
  static size_t PlanBytes(uint32_t num_rows, size_t max_length, size_t touched) {
    return RowSet::PlanBytes(num_rows, touched) + touched * (sizeof(int64_t) + sizeof(int32_t)) +
           kNamesPerPosition * max_length * sizeof(int32_t);
  }
  // The most rows that a record names at each position: its input and its target.
  static constexpr size_t kNamesPerPosition = 2;

 private:
  void ReserveCapacity(std::span<const Record* const> batch);
  void Count(const Record& record);
  void Keep(int32_t row, std::vector<int32_t>& survivors) const;
  void SelectUntouched(privacy::RandomStream& noise, std::vector<int32_t>& survivors);

  size_t places_;    // rows that may be selected
  size_t room_ = 0;  // number of touched rows that fit
  double clipping_norm_;
  const RowSet* allowed_;
  uint64_t sigma_;
  int64_t threshold_;  // in steps
  std::optional<privacy::GeometricGaps> gaps_;
  double false_rows_;
  RowSet touched_;
  std::vector<int64_t> counts_;  // counts of touched_, by slot
  std::vector<int32_t> distinct_, ascending_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_SPARSE_CONTRIBUTION_MAP_H_
