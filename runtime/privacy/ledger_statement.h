// The privacy statement of a whole ledger: everything ever charged to its data set, merged.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_

#include <string>

#include "runtime/privacy/ledger.h"
#include "runtime/privacy/statement.h"

namespace wisp::privacy {

// `path` is shown as it is given.
Result<PrivacyStatement> StatementOf(const Ledger& ledger, const std::string& path, const Delta& delta);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_
