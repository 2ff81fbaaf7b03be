#include "runtime/personalise/lineage.h"

#include <optional>

#include "runtime/train/bias_weight.h"

namespace wisp {
namespace {

struct Evaluated {
  uint64_t seq = 0;
  Evaluation evaluation;
};

Result<std::vector<Evaluated>> ReadEvaluationsAgainst(const privacy::Ledger& ledger, uint64_t base_hash) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerResult> results, ledger.Results());
  std::vector<Evaluated> evaluated;
  for (const privacy::LedgerResult& result : results) {
    if (IsWeighedBias(result.text)) continue;
    WISP_ASSIGN_OR_RETURN(const Evaluation evaluation, ParseEvaluation(result.text));
    if (evaluation.base == base_hash) evaluated.push_back({result.seq, evaluation});
  }
  return evaluated;
}

}  // namespace

Result<uint64_t> FindLineage(const privacy::Ledger& ledger, const privacy::Receipt& receipt, const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const uint64_t line, ledger.FindFirstCharge(receipt));
  if (line != 0) return line;
  return PrivacyRefused(path, ": ledger '", ledger.path(),
                        "' did not pay for what it learned: resume with the ledger that did, in its newest copy");
}

Result<uint64_t> FindLineage(const privacy::Ledger& ledger, const ModelFile& model, const ModelFile& base) {
  // A carried-over model also lists what the old base learned from, which another ledger may have paid for.
  std::optional<privacy::Receipt> unpaid;
  for (const ProvenanceEntry& entry : model.provenance().subspan(base.provenance().size())) {
    if (entry.receipt.empty()) continue;
    WISP_ASSIGN_OR_RETURN(const uint64_t line, ledger.FindFirstCharge(entry.receipt));
    if (line > 0) return line;
    if (!unpaid) unpaid = entry.receipt;
  }
  return unpaid ? FindLineage(ledger, *unpaid, model.name()) : 0;
}

Result<std::vector<Evaluation>> ReadEvaluations(const privacy::Ledger& ledger, uint64_t base_hash, uint64_t line) {
  WISP_ASSIGN_OR_RETURN(const std::vector<Evaluated> evaluated, ReadEvaluationsAgainst(ledger, base_hash));
  std::vector<Evaluation> evaluations;
  for (const auto& [seq, evaluation] : evaluated) {
    if (evaluation.line == 0 ? seq > line : evaluation.line == line) evaluations.push_back(evaluation);
  }
  return evaluations;
}

Result<bool> WasEvaluated(const privacy::Ledger& ledger, uint64_t base_hash) {
  WISP_ASSIGN_OR_RETURN(const std::vector<Evaluated> evaluated, ReadEvaluationsAgainst(ledger, base_hash));
  return !evaluated.empty();
}

}  // namespace wisp
