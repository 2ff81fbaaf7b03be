#include "tools/wisp/statement_models.h"

#include <sodium.h>

#include <string>

#include "runtime/core/file.h"
#include "runtime/core/hex.h"
#include "runtime/core/text.h"
#include "runtime/model/model_file.h"
#include "runtime/privacy/ledger/earlier_claims.h"
#include "runtime/privacy/ledger_statement.h"

namespace wisp::tools {

Result<privacy::StatedModel> StateModel(const std::string& path, const privacy::Ledger& ledger, bool other_data) {
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(path, Verify::kFull, Accept::kAnyFile));
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::string hash(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(hash.data()),
                     reinterpret_cast<const unsigned char*>(file.bytes().data()), file.bytes().size());
  privacy::StatedModel stated{.file = path, .sha256 = ToHex(hash)};
  for (const ProvenanceEntry& entry : model.provenance()) {
    if (privacy::DatasetName(entry.dataset) != privacy::DatasetName(ledger.dataset())) continue;
    const bool is_charged = !entry.receipt.empty(), is_free = entry.epsilon && *entry.epsilon <= 0 && entry.delta <= 0;
    if (!is_charged && !is_free && !other_data)
      return PrivacyRefused(path, ": learned from '", OneLine(entry.dataset),
                            "', the data set of the ledger, without a charge to it: no figure covers the model. ",
                            privacy::kIfOtherData);
    if (!is_charged) continue;
    WISP_ASSIGN_OR_RETURN(const bool has_paid, ledger.HasPaid(entry.receipt));
    if (!has_paid)
      return PrivacyRefused(path, ": learned from the data set of the ledger, and this ledger did not pay for it");
    stated.receipt = ToHex(entry.receipt);
  }
  return stated;
}

}  // namespace wisp::tools
