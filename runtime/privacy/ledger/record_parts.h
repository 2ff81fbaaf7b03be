// Tells in which part of a divided data set a record is.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_RECORD_PARTS_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_RECORD_PARTS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/privacy/ledger/ledger.h"

namespace wisp::privacy {

// The identity of a record: properties of its own, which no other record changes.
struct RecordName {
  std::string_view user;               // the key of the record's user
  std::optional<int64_t> begins = {};  // for a unit smaller than a user: the time of its first event, or its day
};

// Compares the first 64 bits of BLAKE2b over the salt and the name, as a number from 0 to 1, with the split's share:
// kEvaluation or kTraining. It must give the same on every machine and in every version: a record that changed sides
// would be in both parts.
RecordPart GetPart(const LedgerSplit& split, const RecordName& record);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_RECORD_PARTS_H_
