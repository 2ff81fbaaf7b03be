// Whether the draws of a ledger may come from a model.
#ifndef WISP_RUNTIME_DECODING_CHECK_PAID_H_
#define WISP_RUNTIME_DECODING_CHECK_PAID_H_

#include <span>
#include <string>

#include "runtime/model/model_file.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

// What is drawn shows what `model` (called `name` in the refusal) has spent on the ledger's data set, and the ledger
// must have that: else kPrivacyRefused. Entries on `public_datasets` are no matter, nor those without a finite epsilon:
// such draws are charged.
Status CheckPaid(const ModelFile& model, const std::string& name, std::span<const std::string> public_datasets,
                 const privacy::Ledger& ledger);

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_CHECK_PAID_H_
