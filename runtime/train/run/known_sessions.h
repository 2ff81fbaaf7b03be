// Checks that sessions may be charged to a ledger.
#ifndef WISP_RUNTIME_TRAIN_RUN_KNOWN_SESSIONS_H_
#define WISP_RUNTIME_TRAIN_RUN_KNOWN_SESSIONS_H_

#include "runtime/data/sequences.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

// Checks that the log's sessions are those that the ledger's charges were for. If nothing was charged yet, the log
// remembers this ledger from now on. kPrivacyRefused otherwise, because two sessions that were used separately may be
// one now. Call it before the first charge of a run.
Status CheckSessionsAreKnown(const privacy::Ledger& ledger, const data::Sequences& sequences);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_KNOWN_SESSIONS_H_
