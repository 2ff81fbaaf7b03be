// Maps the tensors of a PyTorch state_dict to the parameters of an architecture, and back. The module is
// tools/lab/bench/peers/sasrec_torch.py; docs/convert.md has the table of names.
//
//   // the values that shapes tell; somebody must give the rest
//   WISP_ASSIGN_OR_RETURN(Architecture a, InferArchitecture(path, file));
//   WISP_ASSIGN_OR_RETURN(std::vector<float> weights, ReadWeights(path, file, a));
#ifndef WISP_TOOLS_CONVERT_TORCH_NAMES_H_
#define WISP_TOOLS_CONVERT_TORCH_NAMES_H_

#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "tools/convert/safetensors.h"

namespace wisp::convert {

// Returns "blocks.0.attention_norm.weight" for "block0.attention_norm.gain". `name` is that of a parameter
// (ListParameters).
std::string TorchName(const std::string& name);

// Vectors have one dimension; tables and matrices have two.
std::vector<uint64_t> TorchShape(const ParameterSpec& parameter);

// Checks that the file holds a recommender of ours at all, by the two tables that every one has. kInvalidData says what
// the file holds and what is supported.
Status CheckIsRecommender(const std::string& path, const SafeTensorsFile& file);

// Reads num_items, max_length, width, num_blocks, inner_width, the place of norms, and the tables; the rest has its
// default. Returns kInvalidData if a tensor that tells one of them is missing or has another number of dimensions, or
// if a size is beyond the limits.
Result<UniformArchitecture> InferArchitecture(const std::string& path, const SafeTensorsFile& file);

// Reads the flat buffer of ListParameters(architecture); the architecture must have passed Validate. Returns
// kInvalidData if a tensor is missing, has another shape, holds a number that is not finite (or a negative variance),
// or belongs to no parameter. Nothing is allocated before all shapes fit.
Result<std::vector<float>> ReadWeights(const std::string& path, const SafeTensorsFile& file,
                                       const Architecture& architecture);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_TORCH_NAMES_H_
