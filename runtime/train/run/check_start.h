// Checks whether a private run may start from a model's weights.
#ifndef WISP_RUNTIME_TRAIN_RUN_CHECK_START_H_
#define WISP_RUNTIME_TRAIN_RUN_CHECK_START_H_

#include <string>

#include "runtime/model/model_file.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

struct StartOptions {
  std::string dataset;      // name of the data that the run trains on; of a path only the last part counts
  bool other_data = false;  // the user states that a data set of this name in the base's provenance is a different one
};

// Checks that a private run may start from the weights of `base`, read from `path`, and charge `ledger`.
//
// kPrivacyRefused if `base` learned from that data set before without a guarantee, or from data that nobody named. The
// run's own epsilon would then be stated for weights that reveal the data anyway.
//
// Also if `base` learned from that data set with a guarantee that `ledger` did not pay for (CheckCharged). The ledger's
// statement would then omit what the weights reveal.
Status CheckStart(const ModelFile& base, const std::string& path, const StartOptions& options,
                  const privacy::Ledger& ledger);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_CHECK_START_H_
