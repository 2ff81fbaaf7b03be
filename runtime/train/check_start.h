// Whether a private run may begin with a model's weights.
#ifndef WISP_RUNTIME_TRAIN_CHECK_START_H_
#define WISP_RUNTIME_TRAIN_CHECK_START_H_

#include <string>

#include "runtime/model/model_file.h"

namespace wisp {

// kPrivacyRefused where `base`, read from `path`, learned from the data set of this name (of a path its last part counts) before and without a guarantee, or was
// imported from data that nobody named (kUnknownDataset): what a private run says of its own epsilon would then be said of
// weights that show the data anyway.
Status CheckStart(const ModelFile& base, const std::string& path, const std::string& dataset);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_CHECK_START_H_
