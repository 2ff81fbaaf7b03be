// The part of `wisp-lab audit step` that attacks classifiers.
#ifndef WISP_TOOLS_LAB_AUDIT_CLASSIFIER_H_
#define WISP_TOOLS_LAB_AUDIT_CLASSIFIER_H_

#include <string>

#include "tools/lab/commands.h"

namespace wisp::tools {

// Returns true if the recipe is one of a classifier, and false for an empty path.
Result<bool> IsClassifyRecipe(const std::string& path);

// Returns kPrivacyRefused if the claim was refuted.
Status AuditClassifierStep(const AuditArguments& arguments, OutputFormat format);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_AUDIT_CLASSIFIER_H_
