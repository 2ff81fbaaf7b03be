#include "runtime/train/check_start.h"

namespace wisp {
namespace {

// A label may be a path (wisp_personalise takes the log's) or the name alone.
std::string_view NameOf(std::string_view label) { return label.substr(label.find_last_of('/') + 1); }

}  // namespace

Status CheckStart(const ModelFile& base, const std::string& path, const std::string& dataset) {
  for (const ProvenanceEntry& entry : base.provenance()) {
    if (entry.dataset == kUnknownDataset && !entry.epsilon) {
      return PrivacyRefused(path + ": it was imported, and nobody said what data it learned from: that may be '" + dataset + "', and then no epsilon of a private " +
                            "run would hold. Convert it again with --dataset, the name of what it learned from (wisp convert)");
    }
    if (NameOf(entry.dataset) != NameOf(dataset) || entry.epsilon) continue;
    return PrivacyRefused(path + ": it was trained on '" + dataset + "' before, without a guarantee: no epsilon of a private run on the same data would hold. " +
                          "If that was other data, name this one with --dataset (in the C interface: give the log another file name)");
  }
  return OkStatus();
}

}  // namespace wisp
