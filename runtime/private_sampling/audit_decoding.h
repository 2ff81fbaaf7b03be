// Audits private decoding on a small support. It enumerates all outcomes of k samples under pairs of private models,
// the worst pairs among them, and compares them with the epsilon charged for the samples (sample_cost.h).
//
//   WISP_ASSIGN_OR_RETURN(DecodingAuditResult seen, AuditDecoding({.mode = DecodingMode::kUniform, .num_items = 4,
//                                                                  .lambda = 0.1, .samples = 2, .delta = 1e-5}));
//
// The laws of sample_law.h are enumerated, up to rounding: no sampling, no confidence. With `observations` the sampler
// itself runs on the pair that samples separate best, because its behaviour could differ from the law. This is no proof
// for large supports. Models are invented here; no private data is used.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_AUDIT_DECODING_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_AUDIT_DECODING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/private_sampling/private_sampling.h"
#include "runtime/privacy/audit/audit.h"

namespace wisp {

inline constexpr uint32_t kMostAuditedItems = 6;

struct DecodingAuditOptions {
  DecodingMode mode = DecodingMode::kUniform;  // not kPlain
  uint32_t num_items = 4;                      // size of the support, 2 to kMostAuditedItems
  uint32_t samples = 1;                        // distinct items to sample, 1 to num_items
  double lambda = 0;
  std::vector<double> mixing = {};      // kNonUniform: u
  double clip = 0, temperature = 1;     // base-anchored
  std::vector<float> base_scores = {};  // base-anchored; empty: one likely item, the others have score -8
  double delta = 0;                     // above 0: also computes epsilon at this delta, by PLD

  // The claimed epsilon of all samples together at delta 0. nullopt: what the samples are charged.
  std::optional<double> claimed_epsilon = std::nullopt;

  // Samples by the sampler itself under each model of a pair; 0: none. They are charged to `ledger`, which must be used
  // for nothing else.
  uint64_t observations = 0;
  double confidence = 0.95;
  privacy::Ledger* ledger = nullptr;
  std::optional<uint64_t> reproducible_seed = std::nullopt;
};

struct DecodingAuditResult {
  uint64_t models = 0;  // number of models; all pairs of these were compared
  double exact = 0, claimed = 0;
  std::optional<double> exact_at_delta, claimed_at_delta;
  std::optional<double> sampled;  // lower bound on epsilon at delta 0, from the sampler's own samples
  bool refuted = false;
};

// For mixing, the models are all rankings of the items, with gaps so large that the first item is certain. For
// base-anchored, each model pushes every item to one end of the clip. By convexity, the worst pairs for one sample are
// among these. Some models that are not extreme are added.
Result<DecodingAuditResult> AuditDecoding(const DecodingAuditOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_AUDIT_DECODING_H_
