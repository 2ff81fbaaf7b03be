// The recommender as a PyTorch module names it: tensors of a state_dict to and from the parameters of an architecture.
// The module is tools/bench/peers/sasrec_torch.py, the table of names docs/convert.md.
//
//   // what shapes tell; then what only somebody can say
//   WISP_ASSIGN_OR_RETURN(Architecture a, ArchitectureOfShapes(path, file));
//   WISP_ASSIGN_OR_RETURN(std::vector<float> weights, ReadWeights(path, file, a));
#ifndef WISP_TOOLS_EXCHANGE_TORCH_NAMES_H_
#define WISP_TOOLS_EXCHANGE_TORCH_NAMES_H_

#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "tools/exchange/safetensors.h"

namespace wisp::exchange {

// "block0.attention_norm.gain" is "blocks.0.attention_norm.weight". `name`: of a parameter (ParametersOf).
std::string TorchName(const std::string& name);

// Vectors have one dimension, tables and matrices two.
std::vector<uint64_t> TorchShape(const ParameterSpec& parameter);

// That the file holds a recommender of ours at all, by its two tables that every one has. kInvalidData says what the
// file holds and what is supported.
Status CheckIsRecommender(const std::string& path, const SafeTensorsFile& file);

// num_items, max_length, width, num_blocks, inner_width, where norms stand, and which tables there are; all else is the
// default. kInvalidData: a tensor that tells one of them is missing or has another number of dimensions, or a size
// beyond the limits.
Result<UniformArchitecture> ArchitectureOfShapes(const std::string& path, const SafeTensorsFile& file);

// The flat buffer of ParametersOf(architecture), which must have passed Validate. kInvalidData: a tensor is missing,
// has another shape, holds a number that is not finite (a variance: or that is negative), or belongs to no parameter.
// Nothing is allocated before all shapes fit.
Result<std::vector<float>> ReadWeights(const std::string& path, const SafeTensorsFile& file,
                                       const Architecture& architecture);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_TORCH_NAMES_H_
