// The factor that bounds one record's influence, as a function of its gradient's L2 norm (docs/algorithms.md, section
// 1).
#ifndef WISP_RUNTIME_GRADIENTS_CLIPPING_H_
#define WISP_RUNTIME_GRADIENTS_CLIPPING_H_

#include <algorithm>
#include <cmath>

namespace wisp {

enum class ClipKind {
  kNone,       // factor 1: ordinary training
  kFlat,       // min(1, C / norm)
  kAutomatic,  // C / (norm + 0.01), Bu et al. 2022; every record is scaled to just below C
};

class ClipRule {
 public:
  static ClipRule None() { return ClipRule(ClipKind::kNone, 0); }
  // `l2_norm_bound` C > 0.
  static ClipRule Flat(double l2_norm_bound) { return ClipRule(ClipKind::kFlat, l2_norm_bound); }
  static ClipRule Automatic(double l2_norm_bound) { return ClipRule(ClipKind::kAutomatic, l2_norm_bound); }

  ClipKind kind() const { return kind_; }
  double l2_norm_bound() const { return bound_; }

  // Returns 0 for a norm that is not finite: such a record never reaches the sum.
  double Factor(double norm) const {
    if (kind_ == ClipKind::kNone) return 1;
    if (!std::isfinite(norm)) return 0;
    return kind_ == ClipKind::kFlat ? (norm > bound_ ? bound_ / norm : 1.0) : bound_ / (norm + kStability);
  }

 private:
  static constexpr double kStability = 0.01;  // gamma of automatic clipping: limits the factor for a vanishing gradient
  ClipRule(ClipKind kind, double bound) : kind_(kind), bound_(bound) {}
  ClipKind kind_;
  double bound_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_CLIPPING_H_
