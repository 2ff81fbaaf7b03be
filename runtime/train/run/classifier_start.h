// What a classifier of texts begins with: a base, which is an encoder or a classifier, and a head of classes over it.
//
//   WISP_RETURN_IF_ERROR(CheckClassNames("recipe.json", classes));
//   WISP_RETURN_IF_ERROR(CheckClassifierBase(base, classes, /*with_adapter=*/false));
//   WISP_ASSIGN_OR_RETURN(const Architecture architecture, ClassifierOver(base, 2, {}));
//   ModelContents contents = ClassifierContents(base, architecture, classes);   // of what is written
#ifndef WISP_RUNTIME_TRAIN_RUN_CLASSIFIER_START_H_
#define WISP_RUNTIME_TRAIN_RUN_CLASSIFIER_START_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/model_file.h"

namespace wisp {

// kInvalidData names `where` and the class: fewer than two or more than kMaxClasses, a name twice, or one that no file
// of a model can hold.
Status CheckClassNames(const std::string& where, std::span<const std::string> classes);

// Of names in their order, never 0: TrainingOptions::classes_hash.
uint64_t HashOfClasses(std::span<const std::string> classes);

// Whether texts of these classes can be learned from `base`; its file names refusals. kInvalidData: it has other
// classes. kUnsupported: a recommender or a decoder, or, beside a new adapter, a head that DP-FP made.
Status CheckClassifierBase(const ModelFile& base, const std::vector<std::string>& classes, bool with_adapter);

// The base with a head of so many classes, and with its own adapter or, where one is given, with a new one beside it.
// Its parameters begin with the base's. kInvalidArgument as Validate.
Result<Architecture> ClassifierOver(const ModelFile& base, uint32_t num_classes,
                                    const std::optional<AdapterSpec>& new_adapter);

// What is written of a classifier with this architecture: its classes and the base's tokenizer. Weights, provenance,
// description and, where texts are words, item keys and ClassifierDescription::tokenizer are for the caller to add. An
// adapter that has no head describes the base.
ModelContents ClassifierContents(const ModelFile& base, const Architecture& architecture,
                                 const std::vector<std::string>& classes);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_CLASSIFIER_START_H_
