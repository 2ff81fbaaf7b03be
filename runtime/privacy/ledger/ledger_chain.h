// The hash chain over a ledger's rows: each row carries a hash of everything before it and of itself.
//
// A changed row, two exchanged rows, or a row missing in the middle gives another value from there on. The last value
// is in the ledger's head, so a row missing at the end is noticed too. The chain is not a signature: whoever can write
// the file can compute a new chain. LedgerAnchor (ledger_anchor.h) helps against that.
//
//   const ChainValue value = ChainLink("limit").Number(seq).Text(time).Real(epsilon).Real(delta).After(before);
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_CHAIN_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_CHAIN_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace wisp::privacy {

using ChainValue = std::array<unsigned char, 32>;  // BLAKE2b-256

// Tells which ledger paid for what a run released: the chain value at the run's last charge, as bytes. No other ledger
// has it, and no earlier copy. It is a hash over the rows and over random bytes that stay in the ledger: on its own it
// reveals nothing.
using Receipt = std::string;

// One row as bytes: its kind, then its fields in order. Each is preceded by its length, so different rows have
// different bytes.
class ChainLink {
 public:
  explicit ChainLink(std::string_view kind) { Text(kind); }
  ChainLink& Text(std::string_view text);
  ChainLink& Number(uint64_t number);
  ChainLink& Real(double number);  // -0 counts as 0, which is what SQLite stores
  // The hash of `before` and these bytes.
  ChainValue After(const ChainValue& before) const;

 private:
  std::string bytes_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_CHAIN_H_
