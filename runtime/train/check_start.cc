#include "runtime/train/check_start.h"

#include <cstdio>

namespace wisp {
namespace {

// A label may be a path (wisp_personalise takes the log's) or the name alone.
std::string_view NameOf(std::string_view label) { return label.substr(label.find_last_of('/') + 1); }

// Figures of one run and of all together come from different grids of the accountant.
constexpr double kSlack = 0.98;

std::string ShortText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

Status CheckCharged(const ProvenanceEntry& entry, const std::string& path, const privacy::Ledger& ledger) {
  const double stated = *entry.epsilon;
  if (stated <= 0) return OkStatus();
  double spent = 0;
  if (const auto delta = privacy::Delta::Create(entry.delta); delta.ok()) {
    WISP_ASSIGN_OR_RETURN(spent, ledger.Spent(*delta));
  }
  if (spent >= kSlack * stated) return OkStatus();
  return PrivacyRefused(path + ": it was trained on '" + entry.dataset + "' before, for epsilon " + ShortText(stated) + " at delta " + ShortText(entry.delta) +
                        ", and this ledger has epsilon " + ShortText(spent) + " spent at that delta: it is not the one that paid for it. " +
                        "Give the ledger that did, or, if that was other data, name this one with --dataset (in the C interface: dataset)");
}

}  // namespace

Status CheckStart(const ModelFile& base, const std::string& path, const std::string& dataset, const privacy::Ledger& ledger) {
  for (const ProvenanceEntry& entry : base.provenance()) {
    if (entry.dataset == kUnknownDataset && !entry.epsilon) {
      return PrivacyRefused(path + ": it was imported, and nobody said what data it learned from: that may be '" + dataset + "', and then no epsilon of a private " +
                            "run would hold. Convert it again with --dataset, the name of what it learned from (wisp convert)");
    }
    if (NameOf(entry.dataset) != NameOf(dataset)) continue;
    if (entry.epsilon) {
      WISP_RETURN_IF_ERROR(CheckCharged(entry, path, ledger));
      continue;
    }
    return PrivacyRefused(path + ": it was trained on '" + dataset + "' before, without a guarantee: no epsilon of a private run on the same data would hold. " +
                          "If that was other data, name this one with --dataset (in the C interface: dataset)");
  }
  return OkStatus();
}

}  // namespace wisp
