// What wisp_private_options means, for recommending and for texts alike.
#ifndef WISP_PORTS_C_DRAWS_C_H_
#define WISP_PORTS_C_DRAWS_C_H_

#include <optional>
#include <string>
#include <vector>

#include "ports/c/wisp.h"
#include "runtime/decoding/draw_setup.h"

namespace wisp::ports {

// Without base and ledger; options.public_datasets is for the caller to set, once `public_datasets` has its place.
struct ReadDraws {
  PrivateDrawOptions options;
  std::vector<std::string> public_datasets;
  wisp_model* base_model = nullptr;
};
// `run`: what the ledger calls it.
Result<ReadDraws> ReadPrivateDraws(const wisp_private_options& given, const std::string& run);

// Whose privacy draws cost: that of the model's records, which decoders have of texts, or of private texts in the
// prompt.
enum class DrawsShow { kRecords, kRecordsOfTexts, kTexts };
DrawsShow ShownBy(const ModelFile& model);

// Nothing where no ledger is named. It is of the data set that draws show; where nobody knows it, of `named`. What
// exists is opened whatever its unit where draws show records, as they cost the same for all. A new one of texts is of
// interactions unless a unit is given. Of private texts one text is what is charged for: another unit must be given,
// and must be the ledger's.
Status OpenLedgerOf(const wisp_private_options& given, const DecodingNeed& need, const std::string& named,
                    DrawsShow shown, std::optional<privacy::Ledger>& out);

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_DRAWS_C_H_
