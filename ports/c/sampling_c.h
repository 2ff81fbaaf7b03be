// Reads wisp_private_options, for recommending and for texts alike.
#ifndef WISP_PORTS_C_SAMPLING_C_H_
#define WISP_PORTS_C_SAMPLING_C_H_

#include <optional>
#include <string>
#include <vector>

#include "ports/c/wisp.h"
#include "runtime/private_sampling/sampling_setup.h"

namespace wisp::ports {

// Base model and ledger are not set here. The caller also sets options.public_datasets, once `public_datasets` has its
// final address.
struct ReadSamples {
  PrivateSampleOptions options;
  std::vector<std::string> public_datasets;
  wisp_model* base_model = nullptr;
};
// `run` is the name of the samples in the ledger.
Result<ReadSamples> ReadPrivateSamples(const wisp_private_options& given, const std::string& run);

// The records whose privacy the samples cost. kRecords: those that a recommender learned from. kTextRecords: those
// that a decoder learned from. kTexts: private texts in the prompt.
enum class SamplesShow { kRecords, kTextRecords, kTexts };
SamplesShow ShownBy(const ModelFile& model);

// Opens or creates the ledger at given.ledger_path; leaves `out` empty if no path is given. The ledger belongs to the
// data set that the samples reveal, or to `named` if that data set is unknown.
//
// An existing ledger may have any unit if samples reveal a model's records, because they cost the same for all units. A
// new one of texts has the unit interaction unless a unit is given. For private texts (kTexts) the charge is for one
// text: another unit must be given, and must be the ledger's.
Status OpenGivenLedger(const wisp_private_options& given, const DecodingNeed& need, const std::string& named,
                       SamplesShow shown, std::optional<privacy::Ledger>& out);

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_SAMPLING_C_H_
