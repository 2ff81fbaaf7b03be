#include "runtime/inference/check_start.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "runtime/privacy/json.h"

namespace wisp {
namespace {

// A label may be a path, as an app wrote it, or the name alone.
std::string_view NameOf(std::string_view label) { return label.substr(label.find_last_of('/') + 1); }

constexpr char kIfOther[] =
    "If that was other data of the same name, say so: --other-data (in the C interface: other_data)";

// Figures of one run and of all together come from different grids of the accountant.
constexpr double kSlack = 0.98;

// The ledger is asked once for each delta, for the largest epsilon stated at it.
Status CheckCharged(const std::vector<const ProvenanceEntry*>& entries, const std::string& path,
                    const privacy::Ledger& ledger) {
  std::map<double, const ProvenanceEntry*> largest;
  for (const ProvenanceEntry* entry : entries) {
    const ProvenanceEntry*& known = largest[entry->delta];
    if (known == nullptr || !(*entry->epsilon <= *known->epsilon)) known = entry;
  }
  for (const auto& [delta, entry] : largest) {
    const double stated = *entry->epsilon;
    if (stated <= 0) continue;
    double spent = 0;
    if (const auto at = privacy::Delta::Create(delta); at.ok()) {
      WISP_ASSIGN_OR_RETURN(spent, ledger.Spent(*at));
    }
    if (spent >= kSlack * stated) continue;
    return PrivacyRefused(path, ": it was trained on '", entry->dataset, "' before, for epsilon ",
                          privacy::EpsilonText(stated), " at delta ", privacy::DoubleText(delta),
                          ", and this ledger has epsilon ", privacy::EpsilonText(spent),
                          " spent at that delta: it is not the one that paid for it. ", kIfOther);
  }
  return OkStatus();
}

}  // namespace

Status CheckStart(const ModelFile& base, const std::string& path, const StartOptions& options,
                  const privacy::Ledger& ledger) {
  const auto provenance = base.provenance();
  if (provenance.empty() || provenance.front().base_model_hash != 0) {
    return PrivacyRefused(path, ": nothing says what data its weights came from: that may be '", options.dataset,
                          "', and then no epsilon of a private run would hold");
  }
  std::vector<const ProvenanceEntry*> charged;
  for (const ProvenanceEntry& entry : provenance) {
    if ((entry.dataset.empty() || entry.dataset == kUnknownDataset) && !entry.epsilon) {
      return PrivacyRefused(
          path, ": it was imported, or made by a program that did not say what data it learned from: that may be '",
          options.dataset, "', and then no epsilon of a private run would hold. wisp convert takes a name, --dataset");
    }
    if (NameOf(entry.dataset) != NameOf(options.dataset) || options.other_data) continue;
    if (!entry.epsilon) {
      return PrivacyRefused(path, ": it was trained on '", options.dataset,
                            "' before, without a guarantee: no epsilon of a private run on the same data would hold. ",
                            kIfOther);
    }
    charged.push_back(&entry);
  }
  return CheckCharged(charged, path, ledger);
}

Status CheckPaid(const ModelFile& model, const std::string& name, std::span<const std::string> public_datasets,
                 const privacy::Ledger& ledger) {
  std::vector<const ProvenanceEntry*> charged;
  const std::string paid_for = ledger.dataset();
  for (const ProvenanceEntry& entry : model.provenance()) {
    const bool is_public =
        std::find(public_datasets.begin(), public_datasets.end(), entry.dataset) != public_datasets.end();
    // A ledger without a name may be any data set's.
    const bool other = !paid_for.empty() && NameOf(entry.dataset) != NameOf(paid_for);
    if (entry.dataset.empty() || is_public || other) continue;
    if (entry.epsilon && std::isfinite(*entry.epsilon)) charged.push_back(&entry);
  }
  return CheckCharged(charged, name, ledger);
}

}  // namespace wisp
