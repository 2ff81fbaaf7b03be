// An audit of private decoding: all outcomes of k draws on a small support, under pairs of private models among which
// the worst are, held against the epsilon that the draws are charged for (draw_cost.h).
//
//   WISP_ASSIGN_OR_RETURN(DecodingAuditResult seen, AuditDecoding({.mode = DecodingMode::kUniform, .num_items = 4,
//                                                                  .lambda = 0.1, .draws = 2, .delta = 1e-5}));
//
// Enumerated are the laws of draw_law.h, to rounding: no sampling, no confidence. With `observations` the sampler
// itself draws under the pair that draws tell apart best: what it does could differ from its law. What it is not: a
// proof for large supports. No private data takes part: models here are made up.
#ifndef WISP_RUNTIME_DECODING_AUDIT_DECODING_H_
#define WISP_RUNTIME_DECODING_AUDIT_DECODING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/decoding/private_sampling.h"
#include "runtime/privacy/audit/audit.h"

namespace wisp {

inline constexpr uint32_t kMostAuditedItems = 6;

struct DecodingAuditOptions {
  DecodingMode mode = DecodingMode::kUniform;  // not kPlain
  uint32_t num_items = 4;                      // the support, 2 to kMostAuditedItems
  uint32_t draws = 1;                          // distinct items, 1 to num_items
  double lambda = 0;
  std::vector<double> mixing = {};      // kNonUniform: u
  double clip = 0, temperature = 1;     // base-anchored
  std::vector<float> base_scores = {};  // base-anchored; empty: one likely item, the others at -8
  double delta = 0;                     // above 0: epsilon at this delta too, by PLD

  // The claim for all draws together at delta 0; what is charged where absent.
  std::optional<double> claimed_epsilon = std::nullopt;

  // Draws of the sampler itself under each model of a pair; 0: none. They are charged to `ledger`, of its own.
  uint64_t observations = 0;
  double confidence = 0.95;
  privacy::Ledger* ledger = nullptr;
  std::optional<uint64_t> reproducible_seed = std::nullopt;
};

struct DecodingAuditResult {
  uint64_t models = 0;  // all pairs of these were compared
  double exact = 0, claimed = 0;
  std::optional<double> exact_at_delta, claimed_at_delta;
  std::optional<double> sampled;  // lower bound on epsilon, at delta 0, from the sampler's own draws
  bool refuted = false;
};

// Models: every ranking of the items with gaps that leave no doubt (mixing), or every item pushed against the clip up
// or down (base-anchored): by convexity the worst pairs for a draw are among these; and some that are not extreme.
Result<DecodingAuditResult> AuditDecoding(const DecodingAuditOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_AUDIT_DECODING_H_
