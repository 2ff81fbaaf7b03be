// Checks that a ledger contains what training a model has spent, before samples of that model are charged to the
// ledger.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_CHECK_PAID_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_CHECK_PAID_H_

#include <span>
#include <string>

#include "runtime/model/model_file.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

// Samples reveal what `model` (called `name` in messages) has spent on the ledger's data set. kPrivacyRefused: the
// ledger does not contain those spendings. Entries on `public_datasets` are ignored. So are entries without a finite
// epsilon, because sampling from such weights is charged.
Status CheckPaid(const ModelFile& model, const std::string& name, std::span<const std::string> public_datasets,
                 const privacy::Ledger& ledger);

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_CHECK_PAID_H_
