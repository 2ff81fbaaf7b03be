// Lineages of training. A lineage begins with the base and includes all that was trained from there: over runs, over
// a lost checkpoint or another plan (training then starts from the candidate), and over a rebase, which continues it.
// It ends when neither candidate nor checkpoint is left and training starts from the base again. Evaluations of one
// lineage say nothing about another.
//
// A lineage's number is the ledger's seq of the first charge to the run that began it. A model's provenance leads to
// it: behind the base's own entries, the first receipt of that ledger belongs to that run.
#ifndef WISP_RUNTIME_PERSONALISE_LINEAGE_H_
#define WISP_RUNTIME_PERSONALISE_LINEAGE_H_

#include <cstdint>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/personalise/evaluation_rule.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

// The lineage of a model for which BeganWith(model, base); 0: its provenance does not say who paid. kPrivacyRefused:
// `ledger` did not pay for what the model learned.
Result<uint64_t> FindLineage(const privacy::Ledger& ledger, const ModelFile& model, const ModelFile& base);
// The lineage of the run that a receipt was given to; `path` names the file that contains it.
Result<uint64_t> FindLineage(const privacy::Ledger& ledger, const privacy::Receipt& receipt, const std::string& path);

// The evaluations of that lineage's candidates against that base, oldest to newest. Evaluations without a lineage count
// if the lineage had begun when they were made.
Result<std::vector<Evaluation>> ReadEvaluations(const privacy::Ledger& ledger, uint64_t base_hash, uint64_t line);
// True if any candidate was evaluated against that base.
Result<bool> WasEvaluated(const privacy::Ledger& ledger, uint64_t base_hash);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_LINEAGE_H_
