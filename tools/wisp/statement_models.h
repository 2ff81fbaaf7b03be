// Models as a privacy statement names them, so that they can be checked later.
#ifndef WISP_TOOLS_WISP_STATEMENT_MODELS_H_
#define WISP_TOOLS_WISP_STATEMENT_MODELS_H_

#include <string>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/statement.h"

namespace wisp::tools {

// Returns the model's SHA-256 and the charge with which its training ended. Returns kPrivacyRefused if it learned from
// the ledger's data set and this ledger did not pay for that, also if it learned without a guarantee. `other_data`: a
// data set of that name that was not paid for is other data.
Result<privacy::StatedModel> StateModel(const std::string& path, const privacy::Ledger& ledger, bool other_data);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_STATEMENT_MODELS_H_
