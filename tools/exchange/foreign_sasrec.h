// SASRec as others wrote it: state_dicts of pmixer's SASRec.pytorch and of RecBole, told by the names of their tensors.
// Item 0 of theirs stands for padding and has no row here: item i is their item i + 1. Recommenders of other kinds are
// refused by name. Our own layout: torch_names.h.
//
//   if (const auto layout = SasrecLayoutOf(file)) {
//     WISP_ASSIGN_OR_RETURN(const Architecture a, SasrecArchitecture(path, file, *layout, choices));
//     WISP_ASSIGN_OR_RETURN(const std::vector<float> weights, SasrecWeights(path, file, *layout, a));
//   }
#ifndef WISP_TOOLS_EXCHANGE_FOREIGN_SASREC_H_
#define WISP_TOOLS_EXCHANGE_FOREIGN_SASREC_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "tools/exchange/safetensors.h"

namespace wisp::exchange {

enum class SasrecLayout : uint8_t { kPmixer, kRecBole };
const char* NameOf(SasrecLayout layout);  // "SASRec.pytorch", "RecBole"

std::optional<SasrecLayout> SasrecLayoutOf(const SafeTensorsFile& file);

// kUnsupported: the names are those of a recurrent network, or of a model with rows of users.
Status RefuseOtherRecommenders(const std::string& path, const SafeTensorsFile& file);

// What no tensor tells. Where one is not given: the program's default, which only the last two have.
struct SasrecChoices {
  std::optional<uint32_t> num_heads;
  std::optional<NormPlacement> norm;  // of SASRec.pytorch; RecBole's norms stand behind
  std::optional<ActivationKind> activation;
  std::optional<float> norm_epsilon;
};

// kInvalidArgument: a choice that must be given is missing, or one is given that the program does not have.
// kInvalidData: a tensor is missing, or has another shape. kUnsupported: a version that computes otherwise.
Result<Architecture> SasrecArchitecture(const std::string& path, const SafeTensorsFile& file, SasrecLayout layout,
                                        const SasrecChoices& choices);

// The flat buffer of ParametersOf(architecture). kInvalidData: a tensor is missing, has another shape, holds a number
// that is not finite, or belongs to nothing.
Result<std::vector<float>> SasrecWeights(const std::string& path, const SafeTensorsFile& file, SasrecLayout layout,
                                         const Architecture& architecture);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_FOREIGN_SASREC_H_
