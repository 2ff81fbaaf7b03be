#include "runtime/privacy/statement.h"

#include <cmath>

#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

constexpr char kReproducible[] = "noise: reproducible, no guarantee";

std::string_view ToText(SamplingDone sampling) {
  switch (sampling) {
    case SamplingDone::kPoisson: return "poisson";
    case SamplingDone::kFullBatch: return "full batch";
    case SamplingDone::kShuffled: return "shuffled";
  }
  return "unknown";
}

std::string_view ToText(NoiseMode mode) { return mode == NoiseMode::kExact ? "exact" : "fast"; }

const char* ModeInWords(NoiseMode mode) {
  return mode == NoiseMode::kExact ? "integers on a grid, discrete Gaussian: no leak through rounding"
                                   : "floating point on a power-of-two grid, its error accounted for";
}

std::string SamplingInWords(const PrivacyStatement& s) {
  switch (s.sampling) {
    case SamplingDone::kPoisson:
      return "every record entered every step independently (Poisson), as the accountant assumes";
    case SamplingDone::kFullBatch:
      return "every record took part in every step; no amplification by sampling is claimed";
    case SamplingDone::kShuffled: return "records were shuffled into fixed batches, which no accountant here covers";
  }
  return "";
}

// One "name: value" line.
void Line(std::string& text, std::string_view name, std::string_view value) {
  text.append("  ").append(name).append(": ").append(value).append("\n");
}

void Lines(std::string& text, std::string_view name, const std::vector<std::string>& values, std::string_view none) {
  if (values.empty()) return Line(text, name, none);
  for (const std::string& v : values) Line(text, name, v);
}

// "2.4971 (delta 1e-06)", rounded up in the last place shown: what is printed is never less than what was computed.
std::string EpsilonInWords(double epsilon, double delta) {
  if (!std::isfinite(epsilon)) return "infinite: nothing can be bounded at delta " + DoubleText(delta);
  return DoubleText(std::ceil(epsilon * 1e4) / 1e4) + " (delta " + DoubleText(delta) + ")";
}

void FormalStatement(std::string& text, const PrivacyStatement& s) {
  if (const std::string reason = WhyNoGuarantee(s); !reason.empty()) return Line(text, "statement", reason);
  Line(text, "epsilon of this run", s.epsilon ? EpsilonInWords(*s.epsilon, s.delta) : "not computed");
  if (s.ledger_epsilon) Line(text, "epsilon of the data set, all runs", EpsilonInWords(*s.ledger_epsilon, s.delta));
  if (s.limit) Line(text, "limit of the data set", EpsilonInWords(s.limit->epsilon(), s.limit->delta()));
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

}  // namespace

std::string WhyNoGuarantee(const PrivacyStatement& s) {
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
  Line(text, "privacy unit", std::string("one ") + std::string(ToText(s.unit)));
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
    Line(text, "noise", "secure (ChaCha20 keyed by the operating system)");
  }
  Line(text, "noise mode", std::string(ToText(s.noise_mode)) + " (" + ModeInWords(s.noise_mode) + ")");
  if (s.loss_slack > 0)
    Line(text, "distance of the noise drawn from the one accounted for",
         DoubleText(s.loss_slack) + " (log ratio), paid for");
  FormalStatement(text, s);
  text += "\n4. Verification\n";
  Line(text, "software", s.software);
  if (!s.ledger_path.empty()) Line(text, "ledger", s.ledger_path);
  return text;
}

std::string ToJson(const PrivacyStatement& s) {
  const std::string reason = WhyNoGuarantee(s);
  const bool guaranteed = reason.empty();
  JsonWriter json;
  json.BeginObject();
  json.Key("setting").Value(s.setting);
  json.Key("definition").BeginObject();
  json.Key("dataset").Value(s.dataset).Key("run").Value(s.run);
  WriteStrings(json, "uncharged_tuning", s.uncharged_tuning);
  json.Key("output").Value(s.output);
  json.Key("privacy_unit").Value(ToText(s.unit)).Key("adjacency").Value(ToText(s.adjacency));
  WriteStrings(json, "protected", s.protected_parts);
  WriteStrings(json, "not_protected", s.unprotected_parts);
  json.EndObject();
  json.Key("accounting").BeginObject();
  json.Key("accountant").Value(s.accountant);
  json.Key("mechanisms").BeginArray();
  for (const Mechanism& m : s.mechanisms) json.Value(m.ToText());
  json.EndArray();
  json.Key("steps").Value(s.num_steps);
  json.Key("sampling").Value(ToText(s.sampling));
  json.Key("noise").Value(s.noise == NoiseKind::kReproducible ? "reproducible, no guarantee" : "secure");
  json.Key("noise_mode").Value(ToText(s.noise_mode));
  json.Key("loss_slack").Value(s.loss_slack);
  json.Key("guarantee");
  guaranteed ? json.Value("differential privacy") : json.Null();
  if (!guaranteed) json.Key("no_guarantee_because").Value(reason);
  json.Key("delta").Value(s.delta);
  WriteEpsilon(json, "epsilon", s.epsilon, guaranteed);
  WriteEpsilon(json, "ledger_epsilon", s.ledger_epsilon, guaranteed);
  json.Key("limit");
  if (s.limit && guaranteed) {
    json.BeginObject().Key("epsilon").Value(s.limit->epsilon()).Key("delta").Value(s.limit->delta()).EndObject();
  } else {
    json.Null();
  }
  json.EndObject();
  json.Key("verification").BeginObject();
  json.Key("software").Value(s.software).Key("ledger").Value(s.ledger_path);
  json.EndObject().EndObject();
  return json.Take();
}

}  // namespace wisp::privacy
