// Checks that sequences may be charged to a ledger, and selects one part of a divided data set.
#ifndef WISP_RUNTIME_TRAIN_RUN_PARTS_H_
#define WISP_RUNTIME_TRAIN_RUN_PARTS_H_

#include "runtime/data/sequences.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

// Checks that the log's sessions are those that the ledger's charges were for. If nothing was charged yet, the log
// remembers this ledger from now on. kPrivacyRefused otherwise, because two sessions that were used separately may be
// one now. Call it before the first charge of a run.
Status CheckSessionsAreKnown(const privacy::Ledger& ledger, const data::Sequences& sequences);

// The users of `sequences`, or smaller units, that belong to `part` by privacy::GetPart; all of them for kAll. Items
// keep their numbers.
data::Sequences SelectSequences(privacy::RecordPart part, const privacy::LedgerSplit& split,
                                const data::Sequences& sequences);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_PARTS_H_
