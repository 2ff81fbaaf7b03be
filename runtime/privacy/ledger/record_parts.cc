#include "runtime/privacy/ledger/record_parts.h"

#include <cmath>

#include "runtime/privacy/ledger/ledger_chain.h"

namespace wisp::privacy {

RecordPart GetPart(const LedgerSplit& split, const RecordName& record) {
  ChainLink name("record");
  name.Text(split.salt).Text(record.user);
  if (record.begins) name.Number(static_cast<uint64_t>(*record.begins));
  const ChainValue hash = name.After({});
  uint64_t first = 0;
  for (int i = 7; i >= 0; --i) first = first << 8 | hash[static_cast<size_t>(i)];
  return std::ldexp(static_cast<double>(first >> 11), -53) < split.evaluation_share ? RecordPart::kEvaluation
                                                                                    : RecordPart::kTraining;
}

}  // namespace wisp::privacy
