#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

constexpr const MechanismKind* kMechanismKinds[] = {
    &kGaussianKind,     &kPoissonSubsampledGaussianKind, &kUniformResponseKind,    &kResponseKind,
    &kBoundedRangeKind, &kRandomAllocationKind,          &kCorrelatedGaussianKind, &kPrivateSearchKind};

}  // namespace

std::span<const MechanismKind* const> MechanismKinds() { return kMechanismKinds; }

}  // namespace wisp::privacy
