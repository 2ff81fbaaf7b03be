// Lines of training. A line begins with the base and goes on through all that was trained from there: over nights, over
// a lost checkpoint or another plan (training then begins with the candidate), and over a rebase, which carries it on.
// It ends where neither candidate nor checkpoint is left and training begins with the base again. What judges found of
// one line says nothing of another.
//
// Its number is the seq in the ledger of the first charge to the run that began it. A model leads there by its
// provenance: behind the base's own entries, the first receipt of that ledger is of that run.
#ifndef WISP_RUNTIME_PERSONALISE_LINE_H_
#define WISP_RUNTIME_PERSONALISE_LINE_H_

#include <cstdint>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/personalise/judge_rule.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

// Of a model that BeganWith(model, base); 0: it says nothing of who paid. kPrivacyRefused: `ledger` did
// not pay for what the model learned.
Result<uint64_t> LineOf(const privacy::Ledger& ledger, const ModelFile& model, const ModelFile& base);
// Of the run that a receipt was given to; `path` names the file that has it.
Result<uint64_t> LineOf(const privacy::Ledger& ledger, const privacy::Receipt& receipt, const std::string& path);

// What was judged of candidates of that line against that base, from the oldest to the newest. Judgements that name no
// line count if the line had begun when they were made.
Result<std::vector<Judgement>> JudgementsOf(const privacy::Ledger& ledger, uint64_t base_hash, uint64_t line);
// Whether any candidate was judged against that base.
Result<bool> WasJudged(const privacy::Ledger& ledger, uint64_t base_hash);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_LINE_H_
