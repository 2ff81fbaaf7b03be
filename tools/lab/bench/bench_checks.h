// `wisp-lab bench` checks its subjects before it times them, because the time of wrong results is worth nothing. It
// compares them with the reference kernels, at full size, through the same graph; the tests compare that graph with
// other code. An error ends the bench.
#ifndef WISP_TOOLS_LAB_BENCH_BENCH_CHECKS_H_
#define WISP_TOOLS_LAB_BENCH_BENCH_CHECKS_H_

#include <span>
#include <string>

#include "runtime/inference/session.h"
#include "tools/lab/bench/bench_parts.h"

namespace wisp::tools {

// Returns kInvalidData, with `what` in its message, unless both spans have the same length, all numbers are finite, and
// max |actual - expected| <= tolerance * max |expected|.
Status CheckNear(const std::string& what, std::span<const float> actual, std::span<const float> expected,
                 double tolerance);

// Checks the scores of every item after `history`, computed at once. If the history has more than one item, it checks
// them again with all but the last item in the key/value cache.
Status CheckScores(const std::string& what, Session& session, std::span<const int32_t> history, double tolerance);

// Checks the loss and the gradient of the problem's first record.
Status CheckGradient(const BenchProblem& problem);

// Checks the mean loss that a trainer reports for its first step, against one forward pass for each record of the
// problem.
Status CheckFirstLoss(const BenchProblem& problem, const StepReport& first);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_BENCH_BENCH_CHECKS_H_
