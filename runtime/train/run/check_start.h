// Whether a private run may begin with a model's weights.
#ifndef WISP_RUNTIME_TRAIN_RUN_CHECK_START_H_
#define WISP_RUNTIME_TRAIN_RUN_CHECK_START_H_

#include <string>

#include "runtime/model/model_file.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

struct StartOptions {
  std::string dataset;      // what the run trains on, by name; of a name that is a path the last part counts
  bool other_data = false;  // the user's word that a data set of the same name in the base's provenance is another one
};

// That a private run may begin with the weights of `base`, read from `path`, and charge `ledger`. kPrivacyRefused where
// `base` learned from that data set before and without a guarantee, or from data that nobody named: what the run says
// of its own epsilon would then be said of weights that show the data anyway.
//
// Also where `base` learned from that data set with a guarantee, and `ledger` did not pay for it (CheckCharged): what
// the ledger states would leave out what the weights show.
Status CheckStart(const ModelFile& base, const std::string& path, const StartOptions& options,
                  const privacy::Ledger& ledger);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_CHECK_START_H_
