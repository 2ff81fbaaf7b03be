#include "runtime/privacy/ledger_statement.h"

#include <algorithm>

#include "runtime/core/hex.h"
#include "runtime/privacy/accounting/mechanism_kind.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger/ledger_composition.h"

namespace wisp::privacy {
namespace {

struct Purpose {
  std::string name;
  Composition composition;
};

Composition& FindPurpose(std::vector<Purpose>& purposes, const std::string& name) {
  for (Purpose& p : purposes) {
    if (p.name == name) return p.composition;
  }
  purposes.push_back({name, {}});
  return purposes.back().composition;
}

uint64_t NumSteps(const Composition& composition) {
  uint64_t sum = 0;
  for (const Mechanism& m : composition.mechanisms()) sum += m.training_steps();
  return sum;
}

Result<SampleFigures> ComputeFigures(const Composition& samples, const Delta& delta) {
  SampleFigures figures{.num_samples = NumSteps(samples)};
  WISP_ASSIGN_OR_RETURN(figures.pure_epsilon, PureEpsilon(samples.mechanisms()));
  WISP_ASSIGN_OR_RETURN(figures.alone, samples.State(delta));
  return figures;
}

constexpr char kFilterInWords[] =
    "Renyi filter over fixed orders (Feldman and Zrnic 2021), an upper bound; parts alone as if they "
    "had been fixed beforehand, each by the accountant that it names";

// The kinds of samples that were charged, told from the run names that `wisp` and the C interface give.
struct SampleKinds {
  bool items = false, tokens = false, texts = false;  // texts: tokens from private texts in a prompt
  void Add(const LedgerEntry& samples) {
    const bool from_texts = samples.record && samples.record->kind() == RecordSpec::kPromptText;
    texts |= from_texts;
    (samples.run.starts_with("generation") ? tokens : items) |= !from_texts;
  }
  bool any() const { return items || tokens || texts; }
};

void AddOnce(std::vector<std::string>& list, const std::string& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// Adds what records of texts leave unprotected. `steps`: the texts trained something.
void DescribeRecords(PrivacyStatement& s, bool steps) {
  if (!s.record) return;
  s.protected_parts.front() += "; a record is " + s.record->InWords();
  if (!s.record->is_of_texts()) return;
  if (s.unit != PrivacyUnit::kUser) {  // else each is declared to be all that one user wrote
    AddOnce(s.unprotected_parts, s.record->is_chunk()
                                     ? "any person: whoever wrote the text is in many chunks of it"
                                     : "whoever wrote several of the records: the sum of what their records cost");
  }
  if (steps) AddOnce(s.unprotected_parts, "the tokenizer");
}

// Says what searches release, of which no run but the best is covered.
void DescribeSearches(PrivacyStatement& s) {
  bool others = false;
  std::string released;
  for (const Mechanism& m : s.mechanisms) {
    if (m.kind().released != nullptr) released = m.kind().released;
    others |= m.kind().released == nullptr;
  }
  if (released.empty()) return;
  s.output = others ? s.output + "; of searches alone: " + released : released;
  AddOnce(s.unprotected_parts, "the number of runs of a search and the time that it took, which must not be released");
}

// Says in words what is released, and which accountant the figure comes from.
void Describe(PrivacyStatement& s, const SampleKinds& samples, bool steps) {
  if (samples.any() && !steps) s.sampling = SamplingDone::kNone;
  if (samples.items) {
    AddOnce(s.unprotected_parts, "the history that is given for a recommendation");
    AddOnce(s.unprotected_parts, "the lists of candidates");
  }
  if (samples.tokens || samples.texts) {
    AddOnce(s.unprotected_parts, "the prompt");
    AddOnce(s.unprotected_parts, "when a text ends");
  }
  if (samples.texts) {
    AddOnce(s.unprotected_parts, "the words around private texts, and the declared number of contexts");
    AddOnce(s.unprotected_parts,
            "the weights that private texts were given to, and what these learned from: they must be public");
  }
  if (samples.any()) {
    AddOnce(s.unprotected_parts, "the number of samples");
    const bool tokens = samples.tokens || samples.texts;
    const std::string sampled = samples.items ? (tokens ? "the items and tokens" : "the items") : "the tokens";
    const bool weights = samples.items || samples.tokens;
    s.output = std::string(steps ? "the weights of the charged runs after every step, " : "") + sampled +
               " that were sampled, in their order, and all that is computed from them; not the scores" +
               (weights ? " or the weights" : "") + " that they were sampled with" +
               (samples.texts ? ", nor the private texts" : "");
    s.samples_from_weights = weights;
    s.samples_from_texts = samples.texts;
  }
  DescribeSearches(s);
  if (s.set_by == Accountant::kRdp)
    s.accountant = "RDP (tight conversion), an upper bound, the smallest of what the accountants prove";
  if (s.set_by == Accountant::kPure)
    s.accountant = "pure differential privacy (adding up), an upper bound, not above PLD (connect the dots) here";
}

// The statement about the entries in `state`, without the figures that depend on their order.
Result<PrivacyStatement> Gather(const Ledger& ledger, const std::string& path, const Delta& delta,
                                const LedgerState& state) {
  PrivacyStatement s;
  s.dataset = ledger.dataset();
  s.unit = ledger.unit();
  if (s.unit == PrivacyUnit::kDevice)
    s.setting = "a fleet: devices send updates to a server, which is trusted to add the noise before it shows anything";
  s.unit_chosen = ledger.unit_chosen();
  s.adjacency = ledger.adjacency();
  s.delta = delta.value();
  s.ledger_path = path;
  s.limit = state.limit;
  s.anchors = state.anchors;
  Composition all, samples;
  std::vector<Purpose> purposes;
  std::vector<std::string> runs;
  SampleKinds sampled;
  for (const LedgerEntry& entry : state.entries) {
    all.Add(entry.mechanism, entry.noise, entry.loss_slack);
    FindPurpose(purposes, entry.purpose).Add(entry.mechanism, entry.noise, entry.loss_slack);
    if (entry.mechanism.is_sample()) {
      samples.Add(entry.mechanism, entry.noise, entry.loss_slack);
      sampled.Add(entry);
    } else {
      s.charges_without_record += entry.record ? 0 : 1;
    }
    if (std::find(runs.begin(), runs.end(), entry.run) == runs.end()) runs.push_back(entry.run);
  }
  for (const std::string& run : runs) {
    s.run += (s.run.empty() ? "" : "; ") + run;
    if (const std::string tuning = ParseTuning(run); !tuning.empty()) AddOnce(s.uncharged_tuning, tuning);
  }
  s.mechanisms = all.mechanisms();
  s.num_steps = NumSteps(all);
  s.loss_slack = all.loss_slack();
  if (all.has_reproducible()) s.noise = NoiseKind::kReproducible;
  s.basis = state.figures;
  s.epsilon = s.ledger_epsilon = s.basis->stated.epsilon;
  if (s.basis->basis == LedgerFigures::Basis::kPlan) s.set_by = s.basis->stated.accountant;
  using Assumed = PrivacyStatement::Assumed;
  if (s.basis->used) s.parts_assume = Assumed::kNoEarlyStop;
  if (s.basis->basis == LedgerFigures::Basis::kAdaptive) {
    s.parts_assume = Assumed::kFixedBeforehand;
    s.accountant = kFilterInWords;
  }
  for (const Purpose& p : purposes) {
    WISP_ASSIGN_OR_RETURN(const StatedEpsilon alone, p.composition.State(delta));
    s.parts.push_back({p.name, NumSteps(p.composition), alone});
  }
  if (!samples.mechanisms().empty()) {
    WISP_ASSIGN_OR_RETURN(s.samples, ComputeFigures(samples, delta));
  }
  s.record = state.record;
  const bool steps = NumSteps(samples) < s.num_steps;
  DescribeRecords(s, steps);
  Describe(s, sampled, steps);
  return s;
}

}  // namespace

Result<RunEpsilon> StateRun(const Ledger& ledger, const std::string& run, RunLength length, const Delta& delta,
                            Fineness fineness) {
  if (length == RunLength::kFixed) {
    WISP_ASSIGN_OR_RETURN(const StatedEpsilon alone, ledger.SpentByRun(run, delta, fineness));
    return RunEpsilon{alone.epsilon, std::string(ToText(alone.accountant))};
  }
  WISP_ASSIGN_OR_RETURN(const LedgerFigures all, ledger.Stated(delta));
  const bool filtered = all.basis == LedgerFigures::Basis::kAdaptive;
  return RunEpsilon{all.stated.epsilon, filtered ? "Renyi filter" : std::string(ToText(all.stated.accountant))};
}

namespace {

Result<PrivacyStatement> MakeFullStatement(const Ledger& ledger, const std::string& path, const Delta& delta,
                                           const LedgerState& state) {
  WISP_ASSIGN_OR_RETURN(PrivacyStatement s, Gather(ledger, path, delta, state));
  s.is_of_one_run = false;
  s.num_charges = state.entries.size();
  s.receipt = ToHex(state.receipt);
  return s;
}

}  // namespace

Result<PrivacyStatement> MakeStatement(const Ledger& ledger, const std::string& path, const Delta& delta) {
  WISP_ASSIGN_OR_RETURN(const LedgerState state, ledger.StateNow(delta));
  return MakeFullStatement(ledger, path, delta, state);
}

Result<std::vector<PrivacyStatement>> StatementsWith(const Ledger& ledger, const std::string& path, const Delta& delta,
                                                     uint64_t num_charges) {
  WISP_ASSIGN_OR_RETURN(const std::vector<LedgerState> states, ledger.StatesWith(num_charges, delta));
  std::vector<PrivacyStatement> statements;
  for (const LedgerState& state : states) {
    WISP_ASSIGN_OR_RETURN(PrivacyStatement s, MakeFullStatement(ledger, path, delta, state));
    statements.push_back(std::move(s));
  }
  return statements;
}

Result<PrivacyStatement> MakeRunStatement(const Ledger& ledger, const std::string& path, const Delta& delta,
                                          const std::string& run, RunLength length) {
  WISP_ASSIGN_OR_RETURN(LedgerState state, ledger.StateNow(delta));
  std::erase_if(state.entries, [&](const LedgerEntry& e) { return e.run != run; });
  WISP_ASSIGN_OR_RETURN(PrivacyStatement s, Gather(ledger, path, delta, state));
  if (length == RunLength::kChosen || s.noise == NoiseKind::kReproducible) return s;
  WISP_ASSIGN_OR_RETURN(const StatedEpsilon alone, ledger.SpentByRun(run, delta));
  s.epsilon = alone.epsilon;
  s.set_by = alone.accountant;
  s.parts_assume = PrivacyStatement::Assumed::kNothing;  // its charges were fixed when it began, and all were taken
  s.accountant = PrivacyStatement().accountant;
  return s;
}

Result<std::string> Ledger::ExportJson(const Delta& delta) const {
  WISP_ASSIGN_OR_RETURN(const LedgerState state, StateNow(delta));
  const auto& [entries, receipt, limit, record, figures, anchors] = state;
  Composition composition;
  for (const LedgerEntry& e : entries) composition.Add(e.mechanism, e.noise, e.loss_slack);
  JsonWriter json;
  json.BeginObject();
  json.Key("dataset").Value(dataset());
  json.Key("privacy_unit").Value(ToText(unit()));
  json.Key("adjacency").Value(ToText(adjacency()));
  json.Key("record");
  record ? json.Value(record->ToText()) : json.Null();
  json.Key("limit");
  if (limit) {
    json.BeginObject().Key("epsilon").Value(limit->epsilon()).Key("delta").Value(limit->delta()).EndObject();
  } else {
    json.Null();
  }
  json.Key("delta").Value(delta.value());
  json.Key("epsilon");
  if (composition.has_reproducible()) {
    json.Null().Key("note").Value("noise: reproducible, no guarantee");
  } else {
    json.Value(figures.stated.epsilon)
        .Key("chosen_after_looking")
        .Value(figures.basis == LedgerFigures::Basis::kAdaptive);
  }
  WISP_ASSIGN_OR_RETURN(const std::vector<LedgerPlan> plans, Plans());
  json.Key("plans").BeginArray();
  for (const LedgerPlan& p : plans) {
    json.BeginObject()
        .Key("seq")
        .Value(p.seq)
        .Key("time")
        .Value(p.time_utc)
        .Key("run")
        .Value(p.run)
        .Key("purpose")
        .Value(p.purpose)
        .Key("mechanisms")
        .BeginArray();
    for (const PlannedMechanism& m : p.mechanisms) json.Value(m.mechanism.ToText());
    json.EndArray().EndObject();
  }
  json.EndArray();
  json.Key("composition").BeginArray();
  for (const Mechanism& m : composition.mechanisms()) json.Value(m.ToText());
  json.EndArray().Key("entries").BeginArray();
  for (const LedgerEntry& e : entries) {
    json.BeginObject();
    json.Key("id").Value(static_cast<uint64_t>(e.id)).Key("time").Value(e.time_utc).Key("run").Value(e.run);
    json.Key("purpose")
        .Value(e.purpose)
        .Key("noise")
        .Value(ToText(e.noise))
        .Key("mechanism")
        .Value(e.mechanism.ToText());
    json.Key("loss_slack").Value(e.loss_slack).Key("plan").Value(e.plan);
    json.Key("state").Value(e.state == LedgerEntry::State::kReleased ? "released" : "charged");
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace wisp::privacy
