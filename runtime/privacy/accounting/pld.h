// Discretised privacy loss distributions: masses on multiples of a grid step, an upper bound by construction.
//
// Internal to the PLD accountant (accountant.h). A mechanism's loss L = log(P/Q) under P is put on a grid by connecting
// the dots (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): the P- and Q-mass of each interval between two grid
// points is split between its ends so that both masses are kept. The pair so made dominates the true pair.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_PLD_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_PLD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// The two directions of a pair of neighbours: P with the record and Q without it, or the other way round.
enum class Direction { kRemove, kAdd };

struct DiscretePld {
  double step = 0;    // of the grid
  int64_t first = 0;  // mass[i] lies at (first + i) * step
  std::vector<double> mass;
  double infinity = 0;  // mass at loss infinity
};

// The range of losses that a grid covers.
struct LossRange {
  double low, high;
};

// The P-mass of an interval of losses (low, high], and excess = p - q exp(low) with its Q-mass q.
struct Masses {
  double p, excess;
};

// One step of a mechanism on a pair of neighbours that dominates all others.
class LossPair {
 public:
  virtual Masses Between(double low, double high) const = 0;
  // The losses outside of it have almost no mass.
  virtual LossRange Range() const = 0;

 protected:
  ~LossPair() = default;
};
DiscretePld ConnectTheDots(const LossPair& pair, double step);

// The distribution of one step of the mechanism. `step` > 0; at most about 2^22 points.
DiscretePld Discretise(const Mechanism& mechanism, Direction direction, double step,
                       Fineness fineness = Fineness::kFull);

// The distribution on another grid, by connecting the dots; it dominates the given one.
DiscretePld Regrid(const DiscretePld& pld, double step);

// One term of a composition: `pld` composed with itself `count` times.
struct PldPower {
  DiscretePld pld;
  uint64_t count;
};

// Removes mass of less than `cut` at either end: from below it moves to the lowest point that is kept, from above to
// infinity.
void TrimTails(DiscretePld& pld, double cut);
constexpr double kTailCut = 1e-30;
// The composition of two, with tails trimmed to kTailCut; each mass has the relative accuracy of a sum of products.
// Time is the number of points times the number of nonzero points of `sparse`.
DiscretePld ConvolveDirectly(const DiscretePld& dense, const DiscretePld& sparse);

// The t > 0 of the Chernoff bounds on the sum of the losses, E exp(-t loss) below and E exp(t loss) above. Each t gives
// a bound; those of the smallest are found by a search, which takes coarse terms.
struct Tilts {
  double low = 0, high = 0;
};
Tilts BestTilts(const std::vector<PldPower>& terms);

// The range that contains the composition's mass, except for e^-40 = 4e-18 at either end.
LossRange ComposedRange(const std::vector<PldPower>& terms, const Tilts& tilts);

// The composition of all terms, on the same step. The bounds on the mass outside the computed range and on rounding are
// added to `infinity`. `tilts`: those of the same terms on a coarse grid; without them it searches on this one.
DiscretePld Compose(const std::vector<PldPower>& terms, const std::optional<Tilts>& tilts = {});

// The points of all transforms that this thread has made for compositions: the accountant's work, for tests.
uint64_t TransformedPoints();

// ComputeDelta: delta at epsilon. ComputeEpsilon: the smallest epsilon >= 0 for a delta (infinity if no epsilon does).
double ComputeDelta(const DiscretePld& pld, double epsilon);
double ComputeEpsilon(const DiscretePld& pld, double delta);

// ComputeEpsilon at deltas near one: a few points of the distribution, and the sums over those above.
class EpsilonNear {
 public:
  EpsilonNear(const DiscretePld& pld, double delta);
  // ComputeEpsilon's figure, with the same bits. Nullopt if delta is too far.
  std::optional<double> Epsilon(double delta) const;

 private:
  DiscretePld points_;  // none if epsilon is 0 or infinite
  double above_ = 0, missed_ = 0;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_PLD_H_
