// SASRec in the form of other programs: state_dicts of pmixer's SASRec.pytorch and of RecBole, recognised by the names
// of their tensors. Their item 0 is padding and has no row here: item i is their item i + 1. Recommenders of other
// kinds are refused by name. torch_names.h has our own layout.
//
//   if (const auto layout = FindSasrecLayout(file)) {
//     WISP_ASSIGN_OR_RETURN(const Architecture a, SasrecArchitecture(path, file, *layout, choices));
//     WISP_ASSIGN_OR_RETURN(const std::vector<float> weights, SasrecWeights(path, file, *layout, a));
//   }
#ifndef WISP_TOOLS_CONVERT_FOREIGN_SASREC_H_
#define WISP_TOOLS_CONVERT_FOREIGN_SASREC_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "tools/convert/safetensors.h"

namespace wisp::convert {

enum class SasrecLayout : uint8_t { kPmixer, kRecBole };
const char* GetName(SasrecLayout layout);  // "SASRec.pytorch", "RecBole"

std::optional<SasrecLayout> FindSasrecLayout(const SafeTensorsFile& file);

// Returns kUnsupported if the names are those of a recurrent network, or of a model with rows of users.
Status RefuseOtherRecommenders(const std::string& path, const SafeTensorsFile& file);

// Settings that no tensor tells. If one is not given, the program's default holds; only the last two have a default.
struct SasrecChoices {
  std::optional<uint32_t> num_heads;
  std::optional<NormPlacement> norm;  // for SASRec.pytorch; RecBole's norms always follow the sublayers
  std::optional<ActivationKind> activation;
  std::optional<float> norm_epsilon;
};

// Returns kInvalidArgument if a required choice is missing, or if one is given that the program does not have. Returns
// kInvalidData if a tensor is missing or has another shape, and kUnsupported for a version that computes something
// else.
Result<Architecture> SasrecArchitecture(const std::string& path, const SafeTensorsFile& file, SasrecLayout layout,
                                        const SasrecChoices& choices);

// Returns the flat buffer of ListParameters(architecture). Returns kInvalidData if a tensor is missing, has another
// shape, holds a number that is not finite, or belongs to no parameter.
Result<std::vector<float>> SasrecWeights(const std::string& path, const SafeTensorsFile& file, SasrecLayout layout,
                                         const Architecture& architecture);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_FOREIGN_SASREC_H_
