// Ledgers: files of any bytes, and true ledgers that somebody edited. A ledger that opens can be read, stated and
// charged; a charge that succeeded is counted; everything else is a sentence.
#include <sqlite3.h>

#include <cmath>
#include <optional>
#include <vector>

#include "runtime/privacy/accounting/mechanism_kind.h"
#include "runtime/privacy/ledger/ledger.h"
#include "tests/fuzz/input.h"
#include "tests/unit/core/temporary_folder.h"

namespace {

using namespace wisp;
using namespace wisp::privacy;

constexpr int kMostOperations = 12;

// Errors of SQLite may repeat text of the file, and a terminal must not act on it.
bool Held(const Status& status) {
  if (!status.ok()) fuzz::RequireSentence(status.message());
  return status.ok();
}

// A text is read to a mechanism that writes the same text, or refused with a sentence.
void ReadMechanism(std::string_view text) {
  const auto read = Mechanism::FromText(text);
  if (!Held(read.status())) return;
  const auto again = Mechanism::FromText(read->ToText());
  fuzz::Require(again.ok() && *again == *read && again->ToText() == read->ToText(), "a mechanism's text reads back");
}

std::optional<Mechanism> MakeMechanism(fuzz::Input& input) {
  const uint8_t choice = input.Byte();
  const MechanismKind& kind = *MechanismKinds()[choice % MechanismKinds().size()];
  Mechanism::Values values = {};
  for (size_t i = 0; i < values.size() && kind.parameters[i].name != nullptr; ++i) {
    values[i] = kind.parameters[i].is_whole ? input.Number<uint16_t>() : input.Number<double>();
  }
  const uint64_t steps = choice & 0x80 ? input.Number<uint64_t>() : input.Byte();
  const auto made = Mechanism::Make(kind, values, steps, Adjacency::kAddRemove);
  if (!Held(made.status())) return std::nullopt;
  const auto read = Mechanism::FromText(made->ToText());
  fuzz::Require(read.ok() && *read == *made, "a mechanism's text reads back");
  std::string text = made->ToText();
  text[input.Byte() % text.size()] = static_cast<char>(input.Byte());
  ReadMechanism(text);
  return *made;
}

// Changes one value of one row, whatever the triggers say.
void Edit(const std::string& path, fuzz::Input& input) {
  constexpr const char* kColumns[] = {"entries SET run",        "entries SET noise",     "entries SET mechanism",
                                      "entries SET loss_slack", "entries SET state",     "entries SET id",
                                      "dataset SET unit",       "dataset SET adjacency", "dataset SET name",
                                      "limits SET epsilon",     "limits SET delta",      "head SET seq"};
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  // If triggers were dropped, the ledger would be refused without a look at its rows.
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_exec(database, "PRAGMA ignore_check_constraints = ON", nullptr, nullptr, nullptr);
  const std::string sql = std::string("UPDATE ") + kColumns[input.Byte() % std::size(kColumns)] + " = ?1";
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK) {
    const uint8_t type = input.Byte();
    const std::string_view text = input.Piece(type >> 2);
    if (type % 4 == 0) sqlite3_bind_text(statement, 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    if (type % 4 == 1) sqlite3_bind_blob(statement, 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    if (type % 4 == 2) sqlite3_bind_double(statement, 1, input.Number<double>());
    if (type % 4 == 3) sqlite3_bind_int64(statement, 1, input.Number<int64_t>());
    sqlite3_step(statement);
  }
  sqlite3_finalize(statement);
  sqlite3_close(database);
}

// `state` says if the accountant is asked, which takes most of the time.
void Read(Ledger& ledger, bool state) {
  const auto entries = ledger.Entries();
  Held(entries.status());
  Held(ledger.Limit().status());
  if (!state) return;
  const auto spent = ledger.Spent(*Delta::Create(1e-6));
  if (Held(spent.status())) fuzz::Require(*spent >= 0, "what is spent is no negative number");
  const auto text = ledger.ExportJson(*Delta::Create(1e-6));
  Held(text.status());
}

// `state` says if limits may be set, under which a charge asks the accountant too.
void Operate(Ledger& ledger, fuzz::Input& input, bool state) {
  for (int i = 0; i < kMostOperations && !input.empty(); ++i) {
    switch (input.Byte() % 4) {
      case 0: {
        const auto mechanism = MakeMechanism(input);
        if (!mechanism) break;
        const auto before = ledger.Entries();
        const auto id = ledger.Charge({.mechanism = *mechanism,
                                       .run = std::string(input.Piece(input.Byte() % 8)),
                                       .noise = input.Byte() % 8 == 7 ? NoiseKind::kReproducible : NoiseKind::kSecure});
        if (!Held(id.status())) break;
        const auto after = ledger.Entries();
        fuzz::Require(before.ok() && after.ok() && after->size() == before->size() + 1 &&
                          after->back().mechanism == *mechanism,
                      "a charge that went through is counted");
        break;
      }
      case 1: {
        const auto epsilon = input.Number<double>();
        const auto limit = EpsilonDelta::Create(epsilon, 1e-6);
        if (Held(limit.status()) && state) Held(ledger.SetLimit(*limit));
        break;
      }
      case 2:
        Held(ledger.MarkReleased(input.Number<int8_t>()));
        break;
      case 3:
        Read(ledger, false);
        break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::TemporaryFolder folder;
  const std::string path = folder / "test.ledger";
  for (const char* side : {"", "-wal", "-shm", "-journal"}) std::remove((path + side).c_str());
  fuzz::Input input(data, size);
  const uint8_t how = input.Byte();
  if (how & 1) {
    fuzz::WriteFile(path, input.Rest());
  } else {
    auto ledger = Ledger::Open(path, {.dataset = "watch history", .record = privacy::RecordSpec::OfEvents({})});
    if (!Held(ledger.status())) return 0;
    Operate(*ledger, input, (how & 2) != 0);
    if (how & 4) Read(*ledger, (how & 2) != 0);
  }
  if (how & 8) Edit(path, input);
  auto again = how & 16 ? Ledger::OpenExisting(path)
                        : Ledger::Open(path, {.dataset = "watch history",
                                              .record = privacy::RecordSpec::OfEvents({}),
                                              .busy_timeout_ms = 100});
  if (!Held(again.status())) return 0;
  Read(*again, (how & 2) != 0);
  if (how & 32) Operate(*again, input, (how & 2) != 0);
  return 0;
}
