// Whether sequences may be charged to a ledger, and those of one part of a divided data set.
#ifndef WISP_RUNTIME_TRAIN_RUN_PARTS_H_
#define WISP_RUNTIME_TRAIN_RUN_PARTS_H_

#include "runtime/data/sequences.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

// That the sessions of a log are those that the ledger's charges were for. Where nothing was charged yet, the log
// remembers from now on that they are. kPrivacyRefused where others were: two that were used apart may be one now.
// Before the first charge of a run.
Status CheckSessionsAreKnown(const privacy::Ledger& ledger, const data::Sequences& sequences);

// Those users of `sequences`, or smaller units, that are in `part` by privacy::PartOf: all of them for kAll. Items keep
// their numbers.
data::Sequences SequencesOf(privacy::RecordPart part, const privacy::LedgerSplit& split,
                            const data::Sequences& sequences);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_PARTS_H_
