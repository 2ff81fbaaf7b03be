// The base with the weight of its output bias that people chose (runtime/train/bias_weight.h). It is served in place of
// the base, and candidates are evaluated against it, where the released gains show that its lists are better.
//
// The weights that are tried were fixed before anybody's events, so one release is enough evidence. The file follows
// from the base and the ledger alone, and is made again if it is lost.
#ifndef WISP_RUNTIME_PERSONALISE_WEIGHED_BASE_H_
#define WISP_RUNTIME_PERSONALISE_WEIGHED_BASE_H_

#include <optional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/personalise/deployment.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

// A weight that was found better, and the ledger's result that says so.
struct BetterWeight {
  float weight = 1;
  privacy::LedgerResult result;
};

// The newest weight that was found better for the bias of this base, unless a later release found it worse than the
// bias as it is; nullopt: none. The rule is that of candidates (evaluation_rule.h), DeploymentSettings::weight_rule.
Result<std::optional<BetterWeight>> FindBetterWeight(const privacy::Ledger& ledger, const DeploymentSettings& settings,
                                                     uint64_t base_hash);

// Opens the base with that weight at `path`, or makes it there. Equal arguments make equal bytes.
Result<ModelFile> OpenWeighedBase(const std::string& path, const ModelFile& base, const BetterWeight& better,
                                  const privacy::Ledger& ledger, const DeploymentSettings& settings);

// kInvalidArgument: another model lies at `path`. A damaged one is made again.
Status CheckWeighedBase(const std::string& path, const ModelFile& base);

// True if OpenWeighedBase made the model from this base, with any weight.
bool IsWeighedFrom(const ModelFile& model, const ModelFile& base);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_WEIGHED_BASE_H_
