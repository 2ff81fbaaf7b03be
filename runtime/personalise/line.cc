#include "runtime/personalise/line.h"

#include <optional>

namespace wisp {
namespace {

struct Judged {
  uint64_t seq = 0;
  Judgement judgement;
};

Result<std::vector<Judged>> JudgedAgainst(const privacy::Ledger& ledger, uint64_t base_hash) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerResult> results, ledger.Results());
  std::vector<Judged> judged;
  for (const privacy::LedgerResult& result : results) {
    WISP_ASSIGN_OR_RETURN(const Judgement judgement, JudgementFromText(result.text));
    if (judgement.base == base_hash) judged.push_back({result.seq, judgement});
  }
  return judged;
}

}  // namespace

Result<uint64_t> LineOf(const privacy::Ledger& ledger, const privacy::Receipt& receipt, const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const uint64_t line, ledger.FirstChargeOf(receipt));
  if (line != 0) return line;
  return PrivacyRefused(path, ": ledger '", ledger.path(),
                        "' did not pay for what it learned: go on with the ledger that did, in its newest copy");
}

Result<uint64_t> LineOf(const privacy::Ledger& ledger, const ModelFile& model, const ModelFile& base) {
  // A carried-over model also lists what the old base learned from, which another ledger may have paid for.
  std::optional<privacy::Receipt> unpaid;
  for (const ProvenanceEntry& entry : model.provenance().subspan(base.provenance().size())) {
    if (entry.receipt.empty()) continue;
    WISP_ASSIGN_OR_RETURN(const uint64_t line, ledger.FirstChargeOf(entry.receipt));
    if (line > 0) return line;
    if (!unpaid) unpaid = entry.receipt;
  }
  return unpaid ? LineOf(ledger, *unpaid, model.name()) : 0;
}

Result<std::vector<Judgement>> JudgementsOf(const privacy::Ledger& ledger, uint64_t base_hash, uint64_t line) {
  WISP_ASSIGN_OR_RETURN(const std::vector<Judged> judged, JudgedAgainst(ledger, base_hash));
  std::vector<Judgement> judgements;
  for (const auto& [seq, judgement] : judged) {
    if (judgement.line == 0 ? seq > line : judgement.line == line) judgements.push_back(judgement);
  }
  return judgements;
}

Result<bool> WasJudged(const privacy::Ledger& ledger, uint64_t base_hash) {
  WISP_ASSIGN_OR_RETURN(const std::vector<Judged> judged, JudgedAgainst(ledger, base_hash));
  return !judged.empty();
}

}  // namespace wisp
