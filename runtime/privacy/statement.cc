#include "runtime/privacy/statement.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/text.h"
#include "runtime/privacy/accounting/mechanism_kind.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

constexpr char kTuned[] = ", after choosing without a charge: ";  // part of a run's name
constexpr char kOfTheServer[] = "promised by the fleet's server; a device cannot check it";
constexpr char kReproducible[] = "noise: reproducible, no guarantee";

// Joins the descriptions of sampling that the kinds of mechanisms give, each once; Poisson sampling if none gives one.
std::string Participation(const PrivacyStatement& s, const char* MechanismKind::*said, const char* between) {
  std::string text;
  for (const Mechanism& m : s.mechanisms) {
    const char* words = m.kind().*said;
    if (words == nullptr || text.find(words) != std::string::npos) continue;
    text.append(text.empty() ? "" : between).append(words);
  }
  return text.empty() ? kPoissonSubsampledGaussianKind.*said : text;
}

// True for a mechanism in which every record takes part.
bool TakesAll(const Mechanism& m) {
  return &m.kind() == &kGaussianKind || (&m.kind() == &kPoissonSubsampledGaussianKind && m.sampling_probability() == 1);
}

// How records were chosen, as the mechanisms say.
SamplingDone FindSampling(const PrivacyStatement& s) {
  const bool all = s.sampling == SamplingDone::kPoisson && !s.mechanisms.empty() &&
                   std::all_of(s.mechanisms.begin(), s.mechanisms.end(),
                               [](const Mechanism& m) { return m.is_sample() || TakesAll(m); });
  return all ? SamplingDone::kFullBatch : s.sampling;
}

// True for the ledger of a device in a fleet: plain sums in which it took part, noised by the fleet's server. The
// server's own ledger has another mechanism.
bool IsOfOneDevice(const PrivacyStatement& s) {
  return s.unit == PrivacyUnit::kDevice && !s.mechanisms.empty() &&
         std::all_of(s.mechanisms.begin(), s.mechanisms.end(),
                     [](const Mechanism& m) { return &m.kind() == &kGaussianKind; });
}

std::string SamplingText(const PrivacyStatement& s) {
  switch (FindSampling(s)) {
    case SamplingDone::kPoisson:
      return Participation(s, &MechanismKind::sampling, ", ");
    case SamplingDone::kFullBatch:
      return "full batch";
    case SamplingDone::kShuffled:
      return "shuffled";
    case SamplingDone::kNone:
      return "none";
  }
  return "unknown";
}

std::string_view ModeText(NoiseMode mode) { return mode == NoiseMode::kExact ? "exact" : "fast"; }

const char* ModeInWords(NoiseMode mode) {
  return mode == NoiseMode::kExact ? "integers on a grid, discrete Gaussian: no leak through rounding"
                                   : "floating point on a power-of-two grid, its error accounted for";
}

std::string SamplingInWords(const PrivacyStatement& s) {
  if (IsOfOneDevice(s)) return "this device took part in each of them; no amplification by sampling is claimed";
  switch (FindSampling(s)) {
    case SamplingDone::kPoisson:
      return Participation(s, &MechanismKind::participation, "; ");
    case SamplingDone::kFullBatch:
      return "every record took part in every step; no amplification by sampling is claimed";
    case SamplingDone::kShuffled:
      return "records were shuffled into fixed batches, which no accountant here covers";
    case SamplingDone::kNone:
      break;
  }
  if (!s.samples_from_texts) return "no records were sampled: what was charged are samples from weights as they are";
  const std::string texts =
      "no records were sampled: each private text took part in each token, by its clipped share of a sum";
  return s.samples_from_weights ? texts + "; other charged samples are from weights as they are" : texts;
}

// The scope of the promise, for readers who would take "one session" for "the person".
std::string_view UnitInWords(PrivacyUnit unit) {
  switch (unit) {
    case PrivacyUnit::kUser:
      return "everything one user did in this data; where one person made all of it, that is the one record there is";
    case PrivacyUnit::kSession:
      return "one session of a user, not the user: what is done in many sessions may be learned";
    case PrivacyUnit::kDay:
      return "one day of a user, not the user: what is done on many days may be learned";
    case PrivacyUnit::kInteraction:
      return "one interaction of a user, or one text, not the user: what is done or written many times may be learned";
    case PrivacyUnit::kDevice:
      return "everything one device holds, of all people who use it";
  }
  return "";
}

// The definition of one record; for texts also whom it protects less than a record.
std::string RecordInWords(const RecordSpec& record) {
  if (!record.is_of_texts()) return record.InWords();
  if (record.unit() == PrivacyUnit::kUser) return record.InWords() + ", as was declared";
  if (record.is_chunk()) return record.InWords() + ": no person, as whoever wrote the text is in many of them";
  return record.InWords() +
         ": who wrote k of them is protected less: the epsilon is k times as large, and delta is larger";
}

// Appends a "name: value" line. Both are made one line, because names of data sets, runs and purposes come from a
// ledger.
void Line(std::string& text, std::string_view name, std::string_view value) {
  text.append("  ").append(OneLine(std::string(name))).append(": ").append(OneLine(std::string(value))).append("\n");
}

void Lines(std::string& text, std::string_view name, const std::vector<std::string>& values, std::string_view none) {
  if (values.empty()) return Line(text, name, none);
  for (const std::string& v : values) Line(text, name, v);
}

// "2.4971 (delta 1e-06)": the printed figure is never less than the computed one.
std::string EpsilonInWords(double epsilon, double delta) {
  if (!std::isfinite(epsilon)) return "infinite: nothing can be bounded at delta " + DoubleText(delta);
  return EpsilonText(epsilon, 5) + " (delta " + DoubleText(delta) + ")";
}

std::string SetByInWords(Accountant accountant) {
  switch (accountant) {
    case Accountant::kPld:
      return "PLD, the smallest of what the accountants prove";
    case Accountant::kRdp:
      return "RDP, the smallest of what the accountants prove; an upper bound";
    case Accountant::kPure:
      return "adding up (pure differential privacy, it holds at delta 0), which is below PLD here";
  }
  return "";
}

std::string_view BasisText(LedgerFigures::Basis basis) {
  switch (basis) {
    case LedgerFigures::Basis::kNothing:
      return "nothing";
    case LedgerFigures::Basis::kPlan:
      return "plan";
    case LedgerFigures::Basis::kAdaptive:
      return "adaptive";
    case LedgerFigures::Basis::kNoGuarantee:
      return "none";
  }
  return "unknown";
}

// The promise of the limits, which may differ from the enforced limit `newest`.
std::string LimitInWords(const LedgerFigures& f, const EpsilonDelta& newest) {
  if (f.held_limit) {
    const bool is_newest = f.held_limit->epsilon() == newest.epsilon() && f.held_limit->delta() == newest.delta();
    return "epsilon " + EpsilonInWords(f.held_limit->epsilon(), f.held_limit->delta()) +
           " holds however charges were chosen: it was set before the first of them and never raised" +
           (is_newest ? "" : "; the newest limit was set after a charge: it is enforced, and promises nothing");
  }
  if (f.limit_is_late)
    return "was set after a charge: it is enforced since, but was not promised beforehand; the figure of the data set "
           "is what holds";
  if (f.limit_was_raised)
    return "was raised after a charge: a new guarantee, the one before it is gone; the figure of the data set is what "
           "holds";
  return "does not hold for what was charged before this rule: the figure of the data set is what holds";
}

// The basis of the data set's figure.
void Ground(std::string& text, const PrivacyStatement& s) {
  if (!s.basis) return;
  if (s.basis->basis == LedgerFigures::Basis::kPlan) {
    Line(text, "the data set's figure holds for",
         "the whole plan that was fixed before the first charge, whatever of it is run, in any order");
    for (const Mechanism& left : s.basis->planned_left)
      Line(text, "left of the plan", left.Describe() + "; these alone add nothing to the figure");
    if (s.basis->used) {
      Line(text, "the part of the plan that is used",
           EpsilonInWords(s.basis->used->epsilon, s.delta) +
               "; only where stopping did not depend on what was released");
    }
  } else if (s.basis->basis == LedgerFigures::Basis::kAdaptive) {
    Line(text, "the data set's figure holds for",
         "charges that were chosen after looking at what earlier ones released (Renyi filter and odometer)");
    Line(
        text, "how the figure grows",
        "in steps of 9 % (2^(1/8)) up to the limit, so it stays as it is for some charges; each of them counts "
        "all the same. It may be above the sum of what the runs cost alone: that sum holds at the sum of their deltas, "
        "and for runs whose length was fixed when they began, which the ledger does not know");
  }
  if (s.limit) Line(text, "the limit", LimitInWords(*s.basis, *s.limit));
}

// The assumption under which figures of parts hold.
const char* Caveat(const PrivacyStatement& s) {
  switch (s.parts_assume) {
    case PrivacyStatement::Assumed::kNothing:
      return "";
    case PrivacyStatement::Assumed::kNoEarlyStop:
      return "; only where stopping did not depend on what was released";
    case PrivacyStatement::Assumed::kFixedBeforehand:
      return ", had it been fixed beforehand, which it was not: no guarantee";
  }
  return "";
}

void Breakdown(std::string& text, const PrivacyStatement& s) {
  for (const SpendingPart& part : s.parts) {
    Line(text, part.purpose + " alone",
         EpsilonInWords(part.alone.epsilon, s.delta) + ", " + Counted(part.num_steps, "step") + ", set by " +
             std::string(ToText(part.alone.accountant)) + Caveat(s));
  }
  if (!s.samples) return;
  Line(text, "samples alone",
       Counted(s.samples->num_samples, "sample") + ": pure epsilon " + EpsilonInWords(s.samples->pure_epsilon, 0) +
           (s.parts_assume == PrivacyStatement::Assumed::kNothing ? "" : ", however they were chosen") + "; epsilon " +
           EpsilonInWords(s.samples->alone.epsilon, s.delta) + ", set by " +
           std::string(ToText(s.samples->alone.accountant)) + Caveat(s));
}

void FormalStatement(std::string& text, const PrivacyStatement& s) {
  if (const std::string reason = ExplainNoGuarantee(s); !reason.empty()) return Line(text, "statement", reason);
  Breakdown(text, s);
  if (s.is_of_one_run)
    Line(text, "epsilon of this run", s.epsilon ? EpsilonInWords(*s.epsilon, s.delta) : "not computed");
  if (s.ledger_epsilon) Line(text, "epsilon of the data set, all runs", EpsilonInWords(*s.ledger_epsilon, s.delta));
  if (s.set_by) Line(text, "the figure was set by", SetByInWords(*s.set_by));
  if (s.limit) Line(text, "limit of the data set", EpsilonInWords(s.limit->epsilon(), s.limit->delta()));
  Ground(text, s);
}

void WriteStrings(JsonWriter& json, std::string_view key, const std::vector<std::string>& values) {
  json.Key(key).BeginArray();
  for (const std::string& v : values) json.Value(std::string_view(v));
  json.EndArray();
}

void WriteEpsilon(JsonWriter& json, std::string_view key, const std::optional<double>& epsilon, bool guaranteed) {
  json.Key(key);
  guaranteed&& epsilon ? json.Value(*epsilon) : json.Null();
}

// Uses another key if the figure is no guarantee, so that nobody takes it for one.
void WriteAlone(JsonWriter& json, const StatedEpsilon& stated, const PrivacyStatement& s) {
  constexpr const char* kKeys[] = {"epsilon", "epsilon_if_stopping_was_fixed", "epsilon_had_it_been_fixed_beforehand"};
  json.Key(kKeys[static_cast<size_t>(s.parts_assume)]).Value(stated.epsilon);
  json.Key("set_by").Value(ToText(stated.accountant));
}

void WriteGround(JsonWriter& json, const LedgerFigures& f) {
  json.Key("composition").Value(BasisText(f.basis));
  if (f.basis == LedgerFigures::Basis::kPlan) {
    json.Key("plan_left").BeginArray();
    for (const Mechanism& left : f.planned_left) json.Value(left.ToText());
    json.EndArray();
  }
  if (f.used) json.Key("epsilon_of_used_part").Value(f.used->epsilon);
  json.Key("held_limit");
  if (f.held_limit) {
    json.BeginObject()
        .Key("epsilon")
        .Value(f.held_limit->epsilon())
        .Key("delta")
        .Value(f.held_limit->delta())
        .EndObject();
  } else {
    json.Null();
  }
  json.Key("limit_set_after_charges")
      .Value(f.limit_is_late)
      .Key("limit_raised_after_charges")
      .Value(f.limit_was_raised);
}

void WriteBreakdown(JsonWriter& json, const PrivacyStatement& s) {
  if (s.basis) WriteGround(json, *s.basis);
  if (s.set_by) json.Key("set_by").Value(ToText(*s.set_by));
  if (!s.parts.empty()) {
    json.Key("parts").BeginArray();
    for (const SpendingPart& part : s.parts) {
      json.BeginObject().Key("purpose").Value(part.purpose).Key("steps").Value(part.num_steps);
      WriteAlone(json, part.alone, s);
      json.EndObject();
    }
    json.EndArray();
  }
  if (!s.samples) return;
  json.Key("samples")
      .BeginObject()
      .Key("number")
      .Value(s.samples->num_samples)
      .Key("pure_epsilon")
      .Value(s.samples->pure_epsilon);
  WriteAlone(json, s.samples->alone, s);
  json.EndObject();
}

}  // namespace

std::string WithTuning(const std::string& run, const std::string& tuning) {
  return tuning.empty() ? run : run + kTuned + tuning;
}

Status CheckTuning(std::string_view what, const std::string& tuning) {
  constexpr size_t kMostBytes = 256;
  const char* fault = nullptr;
  if (tuning.find(';') != std::string::npos) fault = "has a semicolon, which stands between runs";
  if (tuning.size() > kMostBytes) fault = "has more than 256 bytes";
  if (tuning.find('\n') != std::string::npos || Printable(tuning) != tuning)
    fault = "has control characters, or is no UTF-8";
  if (fault == nullptr) return OkStatus();
  return InvalidArgument(what, " ", fault, "; allowed is a short list, such as 'learning rate, batch'");
}

std::string ParseTuning(const std::string& run) {
  const size_t at = run.find(kTuned);
  return at == std::string::npos ? "" : run.substr(at + sizeof(kTuned) - 1);
}

std::string ExplainNoGuarantee(const PrivacyStatement& s) {
  if (s.noise == NoiseKind::kReproducible) return kReproducible;
  if (s.sampling == SamplingDone::kShuffled)
    return "sampling: shuffled, no guarantee (the accountant assumes Poisson sampling)";
  return "";
}

std::string ToText(const PrivacyStatement& s) {
  std::string text = "Privacy statement\n\n1. Setting\n";
  Line(text, "setting", s.setting);
  text += "\n2. Definition\n";
  Line(text, "data set", s.dataset);
  if (!s.run.empty()) Line(text, "run", s.run);
  Lines(text, "chosen on the same data without a charge", s.uncharged_tuning, "nothing was declared");
  Line(text, "released", s.output);
  Line(text, "not covered", "models that learned from the data without a guarantee, or under another ledger");
  Line(text, "privacy unit", std::string("one ") + std::string(ToText(s.unit)));
  Line(text, "which is", UnitInWords(s.unit));
  if (s.record) Line(text, "one record is", RecordInWords(*s.record));
  if (s.charges_without_record > 0)
    Line(text, "not known",
         "what one record was for " + Counted(s.charges_without_record, "charge") + ", whose program did not say");
  if (!s.unit_chosen)
    Line(text, "the unit was chosen by", "nobody: it is the default of the program that made the ledger");
  Line(text, "adjacency", ToText(s.adjacency));
  Lines(text, "protected", s.protected_parts, "nothing");
  Lines(text, "not protected", s.unprotected_parts, "nothing was declared");
  text += "\n3. Accounting\n";
  Line(text, "accountant", s.accountant);
  if (s.mechanisms.empty()) Line(text, "mechanism", "none");
  for (const Mechanism& m : s.mechanisms) Line(text, "mechanism", m.Describe());
  Line(text, "steps", std::to_string(s.num_steps));
  Line(text, "sampling", SamplingInWords(s));
  if (s.noise == NoiseKind::kReproducible) {
    text.append("  ").append(kReproducible).append("\n");
  } else {
    Line(text, "noise", IsOfOneDevice(s) ? kOfTheServer : "secure (ChaCha20 keyed by the operating system)");
  }
  // Samples add no noise: they are exact random choices.
  if (s.sampling != SamplingDone::kNone && !IsOfOneDevice(s))
    Line(text, "noise mode", std::string(ModeText(s.noise_mode)) + " (" + ModeInWords(s.noise_mode) + ")");
  if (s.loss_slack > 0)
    Line(text, "distance of the noise sampled from the one accounted for",
         DoubleText(s.loss_slack) + " (log ratio), paid for");
  FormalStatement(text, s);
  text += "\n4. Verification\n";
  Line(text, "software", s.software);
  if (!s.created_by.empty()) Line(text, "created by", s.created_by);
  if (!s.ledger_path.empty()) Line(text, "ledger", s.ledger_path);
  if (s.num_charges) Line(text, "charges", std::to_string(*s.num_charges));
  if (!s.receipt.empty()) Line(text, "hash of the newest charge", s.receipt);
  if (s.anchors.begun > 1) Line(text, "anchor lost", "a later one began; the ledger may have been an old copy by then");
  if (s.anchors.begun > 0)
    Line(text, "anchor",
         s.anchors.compared ? "compared: the ledger has all rows that it knows"
                            : "not compared: an old copy of the ledger would not be noticed");
  for (const StatedModel& m : s.models) Line(text, "SHA-256 of " + OneLine(m.file), m.sha256);
  return text;
}

std::string ToJson(const PrivacyStatement& s) {
  const std::string reason = ExplainNoGuarantee(s);
  const bool guaranteed = reason.empty();
  JsonWriter json;
  json.BeginObject();
  json.Key("statement_version").Value(kStatementVersion);
  if (!s.created_by.empty()) json.Key("created_by").Value(s.created_by);
  json.Key("setting").Value(s.setting);
  json.Key("definition").BeginObject();
  json.Key("dataset").Value(s.dataset).Key("run").Value(s.run);
  WriteStrings(json, "uncharged_tuning", s.uncharged_tuning);
  json.Key("output").Value(s.output);
  json.Key("privacy_unit").Value(ToText(s.unit)).Key("adjacency").Value(ToText(s.adjacency));
  json.Key("privacy_unit_means").Value(UnitInWords(s.unit)).Key("privacy_unit_chosen").Value(s.unit_chosen);
  if (s.record) json.Key("record").Value(s.record->ToText()).Key("record_means").Value(RecordInWords(*s.record));
  if (s.charges_without_record > 0) json.Key("charges_without_record").Value(s.charges_without_record);
  WriteStrings(json, "protected", s.protected_parts);
  WriteStrings(json, "not_protected", s.unprotected_parts);
  json.EndObject();
  json.Key("accounting").BeginObject();
  json.Key("accountant").Value(s.accountant);
  json.Key("mechanisms").BeginArray();
  for (const Mechanism& m : s.mechanisms) json.Value(m.ToText());
  json.EndArray();
  json.Key("steps").Value(s.num_steps);
  json.Key("sampling").Value(std::string_view(SamplingText(s)));
  json.Key("noise").Value(s.noise == NoiseKind::kReproducible ? "reproducible, no guarantee"
                          : IsOfOneDevice(s)                  ? kOfTheServer
                                                              : "secure");
  json.Key("noise_mode").Value(IsOfOneDevice(s) ? "unknown" : ModeText(s.noise_mode));
  json.Key("loss_slack").Value(s.loss_slack);
  json.Key("guarantee");
  guaranteed ? json.Value("differential privacy") : json.Null();
  if (!guaranteed) json.Key("no_guarantee_because").Value(reason);
  json.Key("delta").Value(s.delta);
  WriteEpsilon(json, "epsilon", s.epsilon, guaranteed);
  WriteEpsilon(json, "ledger_epsilon", s.ledger_epsilon, guaranteed);
  if (guaranteed) WriteBreakdown(json, s);
  json.Key("limit");
  if (s.limit && guaranteed) {
    json.BeginObject().Key("epsilon").Value(s.limit->epsilon()).Key("delta").Value(s.limit->delta()).EndObject();
  } else {
    json.Null();
  }
  json.EndObject();
  json.Key("verification").BeginObject();
  json.Key("software").Value(s.software).Key("ledger").Value(s.ledger_path);
  if (s.num_charges) json.Key("charges").Value(*s.num_charges).Key("receipt").Value(s.receipt);
  if (s.anchors.begun > 0) {
    json.Key("anchor").BeginObject().Key("compared").Value(s.anchors.compared);
    json.Key("begun").Value(s.anchors.begun).EndObject();
  }
  if (!s.models.empty()) {
    json.Key("models").BeginArray();
    for (const StatedModel& m : s.models) {
      json.BeginObject().Key("file").Value(m.file).Key("sha256").Value(m.sha256).Key("receipt").Value(m.receipt);
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject().EndObject();
  return json.Take();
}

}  // namespace wisp::privacy
