// The start of a classifier of texts: a base, which is an encoder or a classifier, and a head of classes over it.
//
//   WISP_RETURN_IF_ERROR(CheckClassNames("recipe.json", classes));
//   WISP_RETURN_IF_ERROR(CheckClassifierBase(base, classes, /*with_adapter=*/false));
//   WISP_ASSIGN_OR_RETURN(const Architecture architecture, ClassifierOver(base, 2, {}));
//   ModelContents contents = ClassifierContents(base, architecture, classes);   // the model to write
#ifndef WISP_RUNTIME_TRAIN_RUN_CLASSIFIER_START_H_
#define WISP_RUNTIME_TRAIN_RUN_CLASSIFIER_START_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/model_file.h"

namespace wisp {

// kInvalidData names `where` and the class: fewer than two or more than kMaxClasses, a duplicate name, or a name that a
// model file cannot hold.
Status CheckClassNames(const std::string& where, std::span<const std::string> classes);

// A hash of the names in their order, never 0: TrainingOptions::classes_hash.
uint64_t HashClasses(std::span<const std::string> classes);

// Checks that `base` can learn texts of these classes; refusals name its file. kInvalidData: it has other classes.
// kUnsupported: a recommender or a decoder, or, with a new adapter, a head that DP-FP made.
Status CheckClassifierBase(const ModelFile& base, const std::vector<std::string>& classes, bool with_adapter);

// The base with a head of so many classes, and with its own adapter or, if given, a new one beside it. Its parameters
// begin with the base's. kInvalidArgument as in Validate.
Result<Architecture> ClassifierOver(const ModelFile& base, uint32_t num_classes,
                                    const std::optional<AdapterSpec>& new_adapter);

// The contents of the classifier's file: its classes and the base's tokenizer. The caller adds weights, provenance,
// description and, if texts are words, item keys and ClassifierDescription::tokenizer. For an adapter without a head
// the classifier's description is the base's.
ModelContents ClassifierContents(const ModelFile& base, const Architecture& architecture,
                                 const std::vector<std::string>& classes);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_CLASSIFIER_START_H_
