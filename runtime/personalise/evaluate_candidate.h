// A private evaluation of whether a model serves people better than another. It compares how often, and how far up, the
// lists that each would have shown contain what people did next. The gains are summed with noise and charged
// (docs/algorithms.md, section 12). Lists are those that are served (runtime/core/served_list.h).
//
//   WISP_ASSIGN_OR_RETURN(const Evaluation newest, EvaluateCandidate(architecture, base, candidate, records,
//       {.ledger = &ledger, .run = "2026-11-23", .noise_multiplier = 4, .after = trained_until}));
//   const Verdict verdict = Decide(rule, evaluations);             // evaluation_rule.h
//
// It is neither a decision nor a figure of quality. The records may be those that trained, but neither model may have
// learned from anybody's events of the period that the evaluation tests (EvaluationOptions::after): a trend that the
// candidate saw in other people would count as a gain.
//
// Sensitivity: a record adds one vector (GainOnGrid), no longer than GainNorm(), and changes no other record's
// vector, because the moment is public. EvaluateCandidate charges before it reads a record.
#ifndef WISP_RUNTIME_PERSONALISE_EVALUATE_CANDIDATE_H_
#define WISP_RUNTIME_PERSONALISE_EVALUATE_CANDIDATE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/served_list.h"
#include "runtime/core/status.h"
#include "runtime/core/threads.h"
#include "runtime/data/sequences.h"
#include "runtime/data/split.h"
#include "runtime/layers/weights.h"
#include "runtime/model/history_window.h"
#include "runtime/personalise/evaluation_rule.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

inline constexpr char kEvaluationPurpose[] = "evaluation";

struct EvaluationOptions {
  privacy::Ledger* ledger = nullptr;  // required
  std::string run;
  // Standard deviation of the noise, relative to the largest vector that one record adds (length 1).
  double noise_multiplier = 0;
  double gain_scale = 0.2;           // the mean gain of a record that counts as 1, as do larger ones. Public, above 0
  uint64_t base = 0, candidate = 0;  // content hashes of the two models, stored with the result (Evaluation)
  uint64_t line = 0;                 // lineage of the candidate (Evaluation)
  uint32_t num_targets = 8;          // at most so many of a record's newest events are tested
  // If set, only events after this moment are tested. The candidate must not have learned from a later event. Records
  // without times have no such events.
  std::optional<data::Moment> after = {};
  // the lists' rules of each model as it is served (ModelFile::lists)
  ModelLists lists_of_base = {}, lists_of_candidate = {};
  uint32_t num_threads = 1;
  Executor executor = {};
  // If set, noise repeats and there is NO guarantee. For tests.
  std::optional<uint64_t> reproducible_seed = {};
};

// A record's gain and its square on the grid (PutOnGrid): of the mean gain in NDCG@10 / gain_scale. Both numbers are 0
// if the record has no event to test, or if one of its gains is not finite.
struct GainOnGrid {
  int64_t gain = 0, square = 0;
};
GainOnGrid OnGrid(double mean_gain, double gain_scale);

// The charge for an evaluation, which releases two sums by one Gaussian mechanism.
Result<privacy::ChargeRequest> EvaluationCharge(const EvaluationOptions& options, uint64_t num_evaluations = 1);

// The gain of each record (GainOnGrid of base and candidate), in their order. Local only: not private.
std::vector<GainOnGrid> Gains(const Architecture& architecture, const ParameterSource& base,
                              const ParameterSource& candidate, const data::Sequences& records,
                              const EvaluationOptions& options);

// Charges, then sums the gains of the records, adds noise, stores the sums with the charge (Ledger::AddResult) and
// returns them. Architecture and sources are as in EvaluateRanking. kInvalidArgument for options out of range,
// kPrivacyRefused as in Ledger::Charge; in both cases nothing was read.
Result<Evaluation> EvaluateCandidate(const Architecture& architecture, const ParameterSource& base,
                                     const ParameterSource& candidate, const data::Sequences& records,
                                     const EvaluationOptions& options);

// EvaluateCandidate without noise, without a charge and without a trace in the ledger. Local only: not private.
Result<Evaluation> EvaluateLocally(const Architecture& architecture, const ParameterSource& base,
                                   const ParameterSource& candidate, const data::Sequences& records,
                                   const EvaluationOptions& options);

// The number of events that the models are tested on. Local only: not private.
Result<uint64_t> CountEvaluationEvents(const data::Sequences& records, const EvaluationOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_EVALUATE_CANDIDATE_H_
