// What `wisp bench` holds its subjects to before it times them: the reference kernels, at full size, through the same
// graph (which the tests hold to other code). An error ends the bench, as a time of wrong results is none.
#ifndef WISP_TOOLS_WISP_BENCH_BENCH_CHECKS_H_
#define WISP_TOOLS_WISP_BENCH_BENCH_CHECKS_H_

#include <span>
#include <string>

#include "runtime/inference/session.h"
#include "tools/wisp/bench/bench_parts.h"

namespace wisp::tools {

// kInvalidData unless max |actual - expected| <= tolerance * max |expected|, all being finite and as many; names
// `what`.
Status CheckNear(const std::string& what, std::span<const float> actual, std::span<const float> expected,
                 double tolerance);

// The scores of every item after `history`: of the whole at once, and of more than one item once more with all but the
// last remembered.
Status CheckScores(const std::string& what, Session& session, std::span<const int32_t> history, double tolerance);

// Loss and gradient of the problem's first record.
Status CheckGradient(const BenchProblem& problem);

// The mean loss that a trainer reports of its first step, over all records of the problem, forward by forward.
Status CheckFirstLoss(const BenchProblem& problem, const StepReport& first);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_BENCH_BENCH_CHECKS_H_
