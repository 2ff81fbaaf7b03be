// What a private run writes into the provenance of the model it made.
#ifndef WISP_TOOLS_WISP_GUARANTEE_H_
#define WISP_TOOLS_WISP_GUARANTEE_H_

#include <optional>
#include <span>
#include <string>

#include "runtime/model/model_file.h"
#include "runtime/privacy/ledger.h"

namespace wisp::tools {

struct Guarantee {
  std::span<const privacy::Mechanism> mechanisms;
  std::optional<double> epsilon;  // none: reproducible noise
  std::string accountant;         // of the epsilon
  double delta;
  privacy::PrivacyUnit unit;
  bool reproducible_noise;
};

inline void SetGuarantee(const Guarantee& g, ProvenanceEntry& entry) {
  for (const privacy::Mechanism& m : g.mechanisms) entry.mechanisms.push_back(m.Describe());
  entry.epsilon = g.epsilon;
  entry.delta = g.delta;
  entry.accountant = g.accountant;
  entry.privacy_unit = privacy::ToText(g.unit);
  entry.adjacency = "add_remove";
  entry.noise = g.reproducible_noise ? NoiseOrigin::kReproducible : NoiseOrigin::kSecure;
}

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_GUARANTEE_H_
