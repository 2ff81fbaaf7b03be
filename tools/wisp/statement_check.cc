// Implements `wisp privacy check`: tests that a kept statement still agrees with a ledger and with models.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
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

// The statement's own claims. Json's accessors throw if a file has another type, so they are not used.
struct Kept {
  Json json;
  std::string receipt;  // of the newest charge, in hex; empty: there was no charge
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

// True for names such as "accounting.ledger_epsilon" and "accounting.parts.0.epsilon". A limit is not computed, because
// the ledger has it.
bool IsComputed(const std::string& name) {
  return name.find("limit.") == std::string::npos && name.find("epsilon", name.rfind('.') + 1) != std::string::npos;
}

// Figures of another processor or C library may differ in their last digits.
bool AreEqual(const Json& kept, const Json& now, const std::string& name) {
  constexpr double kTolerance = 1e-6;  // relative
  if (!kept.is_number() || !now.is_number() || !IsComputed(name)) return kept == now;
  const double a = kept.get<double>(), b = now.get<double>();
  return a == b || std::abs(a - b) <= kTolerance * std::max(std::abs(a), std::abs(b));
}

// Adds the names of differing values, such as "accounting.epsilon".
void AddDifferences(const Json& kept, const Json& now, const std::string& name, std::vector<std::string>& out) {
  if (AreEqual(kept, now, name)) return;
  if (kept.is_array() && now.is_array() && kept.size() == now.size()) {
    for (size_t i = 0; i < now.size(); ++i) AddDifferences(kept[i], now[i], name + "." + std::to_string(i), out);
    return;
  }
  if (!kept.is_object() || !now.is_object()) {
    out.push_back(name);
    return;
  }
  for (const auto& [key, value] : kept.items()) AddDifferences(value, now.value(key, Json()), name + "." + key, out);
  for (const auto& [key, value] : now.items()) {
    if (!kept.contains(key)) out.push_back(name + "." + key);
  }
}

// Returns the names of all values in which the statement differs from the ledger with as many charges. It leaves out
// what the ledger does not know: who wrote the statement, the ledger's path, whether its anchor was compared, and the
// models that it names.
std::vector<std::string> DifferencesFrom(const Kept& kept, const privacy::PrivacyStatement& then) {
  Json stated = kept.json;
  stated.erase("created_by");
  for (const char* own : {"ledger", "models"}) stated["verification"].erase(own);
  Json now = Json::parse(privacy::ToJson(then));
  now["verification"].erase("ledger");
  for (Json* j : {&stated, &now}) {
    Json& verification = (*j)["verification"];
    if (verification.contains("anchor") && verification["anchor"].is_object()) verification["anchor"].erase("compared");
  }
  std::vector<std::string> differ;
  for (const auto& [section, value] : stated.items())
    AddDifferences(value, now.value(section, Json()), section, differ);
  for (const auto& [section, value] : now.items()) {
    if (!stated.contains(section)) differ.push_back(section);
  }
  return differ;
}

// Computes every figure again, from the charges that the statement says it was made of and from the terms that the
// ledger had then. Later charges change none of it.
Status CheckStated(const std::string& path, const Kept& kept, const std::vector<privacy::PrivacyStatement>& then) {
  if (kept.receipt != then.front().receipt)
    return PrivacyRefused(path, ": the ledger does not have the charge that the statement ends with as its charge ",
                          kept.num_charges, ": it is another ledger, or one of the two was changed");
  std::vector<std::string> differ = DifferencesFrom(kept, then.front());
  for (const privacy::PrivacyStatement& one : then) {
    std::vector<std::string> from_one = DifferencesFrom(kept, one);
    if (from_one.size() < differ.size()) differ = std::move(from_one);
  }
  if (differ.empty()) return OkStatus();
  std::string names;
  for (const std::string& name : differ) names += (names.empty() ? "" : ", ") + OneLine(name);
  return PrivacyRefused(path, ": the ledger has the same charges, and says otherwise of ", names);
}

Status CheckModels(const std::string& path, const Kept& kept, const privacy::Ledger& ledger,
                   const PrivacyArguments& a) {
  const Json named = kept.json["verification"].value("models", Json::array());
  for (const std::string& model : a.models) {
    WISP_ASSIGN_OR_RETURN(const privacy::StatedModel stated, StateModel(model, ledger, a.other_data));
    const bool is_named = std::any_of(named.begin(), named.end(), [&](const Json& m) {
      return m.is_object() && m.value("sha256", Json()) == stated.sha256 &&
             m.value("receipt", Json()) == stated.receipt;
    });
    if (!is_named)
      return PrivacyRefused(path, ": names no model of SHA-256 ", stated.sha256, ", which is that of ", model,
                            ", with the charge that its training ended with");
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
  WISP_ASSIGN_OR_RETURN(const privacy::PrivacyStatement statement, privacy::MakeStatement(ledger, a.ledger, delta));
  const uint64_t charges = *statement.num_charges;
  if (kept.num_charges > charges)
    return PrivacyRefused(a.statement, ": it was made of ", kept.num_charges, " charges, and the ledger has ", charges,
                          ": the ledger is an old copy, or another one");
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::PrivacyStatement> then,
                        privacy::StatementsWith(ledger, a.ledger, delta, kept.num_charges));
  WISP_RETURN_IF_ERROR(CheckStated(a.statement, kept, then));
  const Json now = Json::parse(privacy::ToJson(statement));
  WISP_RETURN_IF_ERROR(CheckModels(a.statement, kept, ledger, a));
  const bool same = kept.num_charges == charges;
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
            same ? "every figure was computed again"
                 : "every figure was computed again from its charges; the ledger has more since",
            a.models.empty() ? "no model was looked at" : (Counted(a.models.size(), "model") + " named in it").c_str());
  if (statement.anchors.begun > 0 && !statement.anchors.compared)
    PrintText("the ledger's anchor was not compared (--anchor): an old copy of the ledger would not be noticed\n");
  if (!same && now["accounting"]["ledger_epsilon"].is_number())
    PrintText("charged since: %s; the ledger now states epsilon %s at delta %s\n",
              Counted(charges - kept.num_charges, "charge").c_str(),
              privacy::EpsilonText(now["accounting"]["ledger_epsilon"].get<double>()).c_str(),
              privacy::EpsilonText(kept.delta).c_str());
  return OkStatus();
}

}  // namespace wisp::tools
