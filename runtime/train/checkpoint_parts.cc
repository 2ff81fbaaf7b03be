#include "runtime/train/checkpoint_parts.h"

#include <cctype>
#include <charconv>
#include <sstream>

#include "runtime/privacy/statement.h"

namespace wisp::checkpoint_parts {
namespace {

std::string StreamName(size_t index) { return index == 0 ? "sampling" : "noise" + std::to_string(index - 1); }

RandomSource SourceOf(const Streams& streams) {
  return streams[0]->IsSecure() ? RandomSource::kSecure : RandomSource::kReproducible;
}

}  // namespace

std::string Text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

std::string Text(const OptimizerOptions& p) {
  std::string text = " optimizer " + std::to_string(static_cast<int>(p.kind));
  for (float v : {p.learning_rate, p.beta1, p.beta2, p.epsilon, p.momentum, p.weight_decay, p.final_fraction,
                  static_cast<float>(p.warmup_steps), static_cast<float>(p.decay)}) {
    text += " " + Text(v);
  }
  return text;
}

std::string WithoutRecords(std::string config) {
  constexpr std::string_view kWord = " records ";
  const size_t at = config.find(kWord);
  if (at == std::string::npos) return config;
  return config.erase(at, std::min(config.find(' ', at + kWord.size()), config.size()) - at);
}

std::string WhatDiffers(const std::string& then, const std::string& now) {
  std::istringstream old_words(then), new_words(now);
  std::string old_word, new_word, name, list;
  std::string listed;  // the last name in the list: one with several values stands there once
  while (true) {
    const bool more_old = static_cast<bool>(old_words >> old_word), more_new = static_cast<bool>(new_words >> new_word);
    if (!more_old && !more_new) return list;
    const bool is_name = more_old && more_new && old_word == new_word && std::isalpha(old_word[0]);
    if (is_name) name = old_word;
    if (!more_old || !more_new || (old_word != new_word && (std::isalpha(old_word[0]) || std::isalpha(new_word[0]))))
      return list + (list.empty() ? "" : ", ") + "what belongs to another method";
    if (old_word == new_word || listed == name) continue;
    list += (list.empty() ? "" : ", ") + name + " (" + old_word + ", here " + new_word + ")";
    listed = name;
  }
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
    charged += entry.run == c.run_id && entry.purpose == purpose ? entry.mechanism.steps() : 0;
  if (charged >= steps) return OkStatus();
  return PrivacyRefused("checkpoint: the ledger was charged for ", charged, " of the ", steps, " steps of run '",
                        c.run_id, "'; go on with the ledger that paid for them");
}

Status CheckTuning(const Checkpoint& c, const std::string& run) {
  const std::string then = privacy::TuningOf(c.run_id), now = privacy::TuningOf(run);
  if (then == now) return OkStatus();
  const auto shown = [](const std::string& tuning) { return tuning.empty() ? "nothing" : "'" + tuning + "'"; };
  return InvalidArgument("checkpoint: its run declared ", shown(then),
                         " as chosen on the same data without a charge, this one declares ", shown(now),
                         "; allowed is the same");
}

void Save(const Streams& streams, Checkpoint& c) {
  c.random = SourceOf(streams);
  if (c.random == RandomSource::kSecure) return;
  for (size_t i = 0; i < streams.size(); ++i) c.streams.push_back({StreamName(i), streams[i]->position()});
}

Status Check(const Streams& streams, const Checkpoint& c) {
  if (c.random != SourceOf(streams) ||
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
