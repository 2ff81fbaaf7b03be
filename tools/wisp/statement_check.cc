// `wisp privacy check` tells whether a statement that was kept still agrees with a ledger and with models.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger/ledger_anchor.h"
#include "runtime/privacy/ledger_statement.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/output.h"
#include "tools/wisp/statement_models.h"

namespace wisp::tools {
namespace {

// What a statement says of itself. Json's own accessors throw where a file says something else.
struct Kept {
  Json json;
  std::string receipt;  // of the newest charge, in hex; empty: there was none
  uint64_t num_charges = 0;
  double delta = 0;
};

Status NotOurs(const std::string& path, const char* what) {
  return InvalidData(path, ": is no statement that can be checked: ", what,
                     "; allowed is what `wisp privacy --ledger LEDGER --json` has written");
}

Result<Kept> ReadKept(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  Kept kept;
  const auto bytes = file.bytes();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  kept.json = Json::parse(text, text + bytes.size(), nullptr, /*allow_exceptions=*/false);
  const Json& j = kept.json;
  if (!j.is_object() || !j.contains("statement_version")) return NotOurs(path, "it is not JSON of a statement");
  if (j["statement_version"] != privacy::kStatementVersion)
    return Unsupported(path, ": is a statement of version ", OneLine(j["statement_version"].dump()),
                       ", this build checks version ", privacy::kStatementVersion);
  const auto has = [&](const char* section, const char* key, auto is) {
    return j.contains(section) && j[section].is_object() && j[section].contains(key) && is(j[section][key]);
  };
  if (!has("verification", "receipt", [](const Json& v) { return v.is_string(); }) ||
      !has("verification", "charges", [](const Json& v) { return v.is_number_unsigned(); }))
    return NotOurs(path, "it does not name the newest charge");
  if (!has("accounting", "delta", [](const Json& v) { return v.is_number(); })) return NotOurs(path, "it has no delta");
  kept.receipt = j["verification"]["receipt"];
  kept.num_charges = j["verification"]["charges"];
  kept.delta = j["accounting"]["delta"];
  return kept;
}

// Names of what differs, such as "accounting.epsilon".
void AddDifferences(const Json& kept, const Json& now, const std::string& name, std::vector<std::string>& out) {
  if (kept == now) return;
  if (!kept.is_object() || !now.is_object()) {
    out.push_back(name);
    return;
  }
  for (const auto& [key, value] : kept.items()) AddDifferences(value, now.value(key, Json()), name + "." + key, out);
  for (const auto& [key, value] : now.items()) {
    if (!kept.contains(key)) out.push_back(name + "." + key);
  }
}

// Of a ledger that stands where it stood: every figure is computed again.
Status CompareFigures(const std::string& path, const Kept& kept, const Json& now) {
  std::vector<std::string> differ;
  for (const char* section : {"setting", "definition", "accounting"})
    AddDifferences(kept.json.value(section, Json()), now.value(section, Json()), section, differ);
  if (differ.empty()) return OkStatus();
  std::string names;
  for (const std::string& name : differ) names += (names.empty() ? "" : ", ") + OneLine(name);
  return PrivacyRefused(path, ": the ledger has the same charges, and says otherwise of ", names);
}

// Of one that was charged since: what is spent only grows.
Status CompareTotals(const std::string& path, const Kept& kept, const Json& now) {
  const Json then = kept.json["accounting"].value("ledger_epsilon", Json()),
             today = now["accounting"]["ledger_epsilon"];
  if (!then.is_number() || !today.is_number() || then.get<double>() <= today.get<double>()) return OkStatus();
  return PrivacyRefused(path, ": it states epsilon ", privacy::EpsilonText(then.get<double>()),
                        " for less than what the ledger states ", privacy::EpsilonText(today.get<double>()), " for");
}

Status CheckModels(const std::string& path, const Kept& kept, const privacy::Ledger& ledger,
                   const std::vector<std::string>& models) {
  const Json named = kept.json["verification"].value("models", Json::array());
  for (const std::string& model : models) {
    WISP_ASSIGN_OR_RETURN(const privacy::StatedModel stated, StateModel(model, ledger));
    const bool is_named = std::any_of(named.begin(), named.end(), [&](const Json& m) {
      return m.is_object() && m.value("sha256", Json()) == stated.sha256;
    });
    if (!is_named)
      return PrivacyRefused(path, ": names no model of SHA-256 ", stated.sha256, ", which is that of ", model);
  }
  return OkStatus();
}

}  // namespace

Status PrivacyCheck(const PrivacyArguments& a, OutputFormat format) {
  if (a.ledger.empty()) return InvalidArgument("wisp privacy check needs --ledger");
  WISP_ASSIGN_OR_RETURN(const Kept kept, ReadKept(a.statement));
  const auto anchor = a.anchor.file.empty() ? nullptr : privacy::FileAnchor(a.anchor.file);
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger, privacy::Ledger::OpenExisting(a.ledger, anchor, a.anchor.begin));
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(kept.delta));
  WISP_ASSIGN_OR_RETURN(privacy::PrivacyStatement statement, privacy::StatementOf(ledger, a.ledger, delta));
  WISP_RETURN_IF_ERROR(privacy::NameNewestCharge(ledger, statement));
  const uint64_t charges = *statement.num_charges;
  if (kept.num_charges > charges)
    return PrivacyRefused(a.statement, ": it was made of ", kept.num_charges, " charges, and the ledger has ", charges,
                          ": the ledger is an old copy, or another one");
  const bool same = kept.num_charges == charges;
  if (kept.num_charges > 0) {
    WISP_ASSIGN_OR_RETURN(const bool has_paid, privacy::HasCharge(ledger, kept.receipt));
    if (!has_paid || (same && kept.receipt != statement.receipt))
      return PrivacyRefused(a.statement,
                            ": the ledger does not have the charge that the statement ends with: it is "
                            "another ledger, or one of the two was changed");
  }
  const Json now = Json::parse(privacy::ToJson(statement));
  WISP_RETURN_IF_ERROR(same ? CompareFigures(a.statement, kept, now) : CompareTotals(a.statement, kept, now));
  WISP_RETURN_IF_ERROR(CheckModels(a.statement, kept, ledger, a.models));
  if (format == OutputFormat::kJson) {
    const Json j = {{"statement", a.statement},
                    {"holds", true},
                    {"charges", kept.num_charges},
                    {"charges_since", charges - kept.num_charges},
                    {"models", a.models.size()},
                    {"created_by", kept.json.value("created_by", Json())},
                    {"ledger_epsilon_now", now["accounting"]["ledger_epsilon"]}};
    PrintJson(j);
    return OkStatus();
  }
  PrintText("%s: holds; %s, %s\n", OneLine(a.statement).c_str(),
            same ? "every figure was computed again" : "the ledger has its charges, and more since",
            a.models.empty() ? "no model was looked at" : (Counted(a.models.size(), "model") + " named in it").c_str());
  if (!same && now["accounting"]["ledger_epsilon"].is_number())
    PrintText("charged since: %s; the ledger now states epsilon %s at delta %s\n",
              Counted(charges - kept.num_charges, "charge").c_str(),
              privacy::EpsilonText(now["accounting"]["ledger_epsilon"].get<double>()).c_str(),
              privacy::EpsilonText(kept.delta).c_str());
  return OkStatus();
}

}  // namespace wisp::tools
