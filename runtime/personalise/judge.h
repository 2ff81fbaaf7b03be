// A private test of whether a model serves people better than another: how much more often, and how much further in
// front, the lists that it would have shown hold what the records that judge did next; summed with noise and charged
// (docs/algorithms.md, section 12). Lists are those that are served (runtime/core/served_list.h).
//
//   WISP_ASSIGN_OR_RETURN(const Judgement night, Judge(architecture, base, candidate, judging, {.ledger = &ledger,
//       .run = "2026-11-23", .noise_multiplier = 4}));
//   const Verdict verdict = Decide(rule, judgements);             // judge_rule.h
//
// What it is not: a decision, or a figure of quality. `base` and `candidate` must not have learned from the records
// that judge: those of the other part, in a ledger that divides them (Ledger::Split). Nor from anybody's events of the
// time by which they are judged (JudgeOptions::after): a trend that the candidate saw in others would count as a gain.
//
// Sensitivity: a record adds one vector (GainOnGrid), no longer than JudgeNorm(), and changes no other record's: the
// moment is public. Charged in Judge, before a record is read.
#ifndef WISP_RUNTIME_PERSONALISE_JUDGE_H_
#define WISP_RUNTIME_PERSONALISE_JUDGE_H_

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
#include "runtime/personalise/judge_rule.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

struct JudgeOptions {
  privacy::Ledger* ledger = nullptr;  // required; of records that are divided
  std::string run;
  // Standard deviation of the noise on what one record adds, which is at most 1 in length.
  double noise_multiplier = 0;
  double gain_scale = 0.2;  // the mean gain of a record that counts as 1; larger ones count as 1. Public, above 0
  uint64_t base = 0, candidate = 0;  // content hashes of the two, kept with the result (Judgement)
  uint64_t line = 0;                 // to which the candidate belongs (Judgement)
  uint32_t num_targets = 8;          // a record is judged by at most so many of its newest events
  // Set: of its events after this moment alone, which must not be earlier than anything that the candidate learned
  // from. Without times in the records none is later.
  std::optional<data::Moment> after = {};
  ModelLists lists_of_base = {}, lists_of_candidate = {};  // what people are shown of each (ModelFile::lists)
  uint32_t num_threads = 1;
  Executor executor = {};
  // Set: noise repeats and there is NO guarantee. For tests.
  std::optional<uint64_t> reproducible_seed = {};
};

// Steps of the grid on which gains are summed, for a gain of 1.
inline constexpr int64_t kJudgeSteps = int64_t{1} << 20;

// A record's gain and its square on the grid: g s and w g^2 s, rounded towards zero, with g = clip(mean gain in
// NDCG@10 / gain_scale, -1, 1), s = kJudgeSteps, w = kSquareWeight. Its length is at most JudgeNorm(): that is
// the sensitivity. 0 where the record has no event to judge by, or one of its gains is no finite number.
struct GainOnGrid {
  int64_t gain = 0, square = 0;
};
GainOnGrid OnGrid(double mean_gain, double gain_scale);
// In steps, rounded up.
double JudgeNorm();

// What one judging costs and releases: one Gaussian mechanism of two sums.
Result<privacy::ChargeRequest> JudgeCharge(const JudgeOptions& options, uint64_t num_judgings = 1);

// Gains of each record of `judging` (GainOnGrid of base and candidate), in their order. Local only: not private.
std::vector<GainOnGrid> Gains(const Architecture& architecture, const ParameterSource& base,
                              const ParameterSource& candidate, const data::Sequences& judging,
                              const JudgeOptions& options);

// Charges, then sums the gains of `judging`, adds noise, keeps the sums with the charge (Ledger::AddResult) and returns
// them. Architecture and sources: as EvaluateRanking. kInvalidArgument for options out of range, kPrivacyRefused as
// Ledger::Charge: then nothing was read.
Result<Judgement> Judge(const Architecture& architecture, const ParameterSource& base, const ParameterSource& candidate,
                        const data::Sequences& judging, const JudgeOptions& options);

// The same without noise, a charge or a trace in the ledger, whose division of the records is read. Local only: not
// private.
Result<Judgement> JudgeLocally(const Architecture& architecture, const ParameterSource& base,
                               const ParameterSource& candidate, const data::Sequences& judging,
                               const JudgeOptions& options);

// By how many events they judge. Local only: not private.
Result<uint64_t> EventsThatJudge(const data::Sequences& judging, const JudgeOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_JUDGE_H_
