#include "runtime/train/checkpoint_parts.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "runtime/core/decimal.h"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/statement.h"

namespace wisp::checkpoint_parts {
namespace {

std::string StreamName(size_t index) { return index == 0 ? "sampling" : "noise" + std::to_string(index - 1); }

RandomSource GetSource(const Streams& streams) {
  return streams[0]->IsSecure() ? RandomSource::kSecure : RandomSource::kReproducible;
}

}  // namespace

std::string Text(double value) {
  char buffer[kDecimalBytes];
  return {buffer, WriteDecimal(buffer, value)};
}

std::string Text(const OptimizerOptions& p) {
  std::string text = " optimizer " + std::to_string(static_cast<int>(p.kind));
  for (float v : {p.learning_rate, p.beta1, p.beta2, p.epsilon, p.momentum, p.weight_decay, p.final_fraction,
                  static_cast<float>(p.warmup_steps), static_cast<float>(p.decay)}) {
    text += " " + Text(v);
  }
  return text;
}

namespace {

std::string Without(std::string config, std::string_view word) {
  const size_t at = config.find(word);
  if (at == std::string::npos) return config;
  return config.erase(at, std::min(config.find(' ', at + word.size()), config.size()) - at);
}

}  // namespace

std::string WithoutThreads(std::string config) { return Without(std::move(config), " threads "); }

namespace {

// The words of a run's identity with the names that users know; those with `shown` have values worth showing.
struct Option {
  std::string_view word, name;
  bool shown;
};
constexpr Option kOptions[] = {{"sampling", "sampling", false},
                               {"loss", "loss", false},
                               {"of", "number of records", true},
                               {"in", "micro-batches", true},
                               {"clip", "clipping norm", true},
                               {"kind", "kind of clipping", false},
                               {"mode", "mode", false},
                               {"noise", "noise multiplier, which follows from epsilon, delta and steps", true},
                               {"encoder", "noise or clipping of the encoder", false},
                               {"optimizer", "optimizer or learning rate", false},
                               {"re-attention", "re-attention", false}};

bool IsWord(const std::string& text) { return !text.empty() && IsAsciiLetter(text[0]); }

std::string Described(const std::string& word, const std::string& then, const std::string& now) {
  const auto* known =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& o) { return o.word == word; });
  std::string name = known == std::end(kOptions) ? word : std::string(known->name);
  if (known != std::end(kOptions) && !known->shown) return name;
  const auto shown = [](const std::string& number) {
    double read = 0;
    (void)ReadDecimal(number.data(), number.data() + number.size(), read);
    return privacy::ShortText(read, 6);
  };
  return name + " (" + shown(then) + ", here " + shown(now) + ")";
}

// The next word between blanks; false at the end.
bool TakeWord(std::string_view& words, std::string& word) {
  words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
  word = words.substr(0, words.find(' '));
  words.remove_prefix(word.size());
  return !word.empty();
}

}  // namespace

std::string ListDifferences(const std::string& then, const std::string& now) {
  std::string_view old_words = then, new_words = now;
  std::string old_word, new_word, word, list;
  const auto add = [&list](const std::string& name) {
    if (list.find(name) == std::string::npos) list += (list.empty() ? "" : ", ") + name;
  };
  while (TakeWord(old_words, old_word) && TakeWord(new_words, new_word)) {
    if (old_word == new_word) {
      if (IsWord(old_word)) word = old_word;
      continue;
    }
    // Another method has other options, so their values are not comparable.
    if (word.empty() || word == "method" || IsWord(old_word) || IsWord(new_word))
      return list.empty() ? "another method" : list;
    add(Described(word, old_word, new_word));
  }
  return list.empty() ? "another method" : list;
}

Status CheckSize(const char* what, size_t found, size_t needed) {
  if (found == needed) return OkStatus();
  return InvalidData("checkpoint: ", what, " has ", found, " numbers, this run needs ", needed);
}

std::vector<float> Copy(const AlignedArray<float>& array) { return {array.data(), array.data() + array.size()}; }

Status CheckCharged(const privacy::Ledger& ledger, const Checkpoint& c, std::string_view purpose, uint64_t steps) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  uint64_t charged = 0;
  for (const privacy::LedgerEntry& entry : entries)
    charged += entry.run == c.run_id && entry.purpose == purpose ? entry.mechanism.training_steps() : 0;
  if (charged >= steps) return OkStatus();
  return PrivacyRefused("checkpoint: the ledger was charged for ", charged, " of the ", Counted(steps, "step"),
                        " of run '", c.run_id, "'; resume with the ledger that paid for them");
}

Status CheckPaid(const privacy::Ledger& ledger, const Checkpoint& c) {
  if (c.receipt.empty()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const bool has_paid, ledger.HasPaid(c.receipt));
  if (has_paid) return OkStatus();
  return PrivacyRefused("checkpoint: ledger '", ledger.path(), "' did not pay for what it holds, steps of run '",
                        OneLine(c.run_id), "': resume with the ledger that did, in its newest copy");
}

Status CheckTuning(const Checkpoint& c, const std::string& run) {
  const std::string then = privacy::ParseTuning(c.run_id), now = privacy::ParseTuning(run);
  if (then == now) return OkStatus();
  const auto shown = [](const std::string& tuning) { return tuning.empty() ? "nothing" : "'" + tuning + "'"; };
  return InvalidArgument("checkpoint: its run declared ", shown(then),
                         " as chosen on the same data without a charge, this one declares ", shown(now),
                         "; allowed is the same");
}

void Save(const Streams& streams, Checkpoint& c) {
  c.random = GetSource(streams);
  if (c.random == RandomSource::kSecure) return;
  for (size_t i = 0; i < streams.size(); ++i) c.streams.push_back({StreamName(i), streams[i]->position()});
}

Status Check(const Streams& streams, const Checkpoint& c) {
  if (c.random != GetSource(streams) ||
      (c.random == RandomSource::kReproducible && c.streams.size() != streams.size())) {
    return InvalidData("checkpoint: it belongs to a run with another source of randomness");
  }
  for (size_t i = 0; i < c.streams.size(); ++i) {
    if (c.streams[i].name != StreamName(i))
      return InvalidData("checkpoint: stream '", c.streams[i].name, "' where '", StreamName(i), "' should be");
  }
  return OkStatus();
}

Status Restore(const Streams& streams, const Checkpoint& c) {
  for (size_t i = 0; i < c.streams.size(); ++i) WISP_RETURN_IF_ERROR(streams[i]->Seek(c.streams[i].position));
  return OkStatus();
}

}  // namespace wisp::checkpoint_parts
