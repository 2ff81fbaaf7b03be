// Reads the tensors of a Hugging Face folder into the flat buffer of an architecture: matches them by the family's
// table, checks their shapes, and copies them once. It also records the use of each tensor.
//
//   WISP_ASSIGN_OR_RETURN(const Matching matching, MatchTensors(folder, description));
//   WISP_ASSIGN_OR_RETURN(const Weights weights, ReadWeights(folder, description, matching));
//   model.weights = weights.values();
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_TENSORS_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_TENSORS_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/convert/hugging_face/folder.h"

namespace wisp::convert::hugging_face {

// One parameter and the tensors that form it, stacked in this order.
struct Match {
  ParameterSpec parameter;
  std::vector<FoundTensor> sources;
  How how = How::kAsIs;
};

struct LeftOut {
  FoundTensor tensor;
  std::string reason;
};

struct Matching {
  std::vector<Match> matches;  // in the order of ListParameters
  std::vector<LeftOut> left_out;
};

// Matches every parameter with its tensors, of the right shapes and types. Every tensor is used, or left out for a
// reason that its numbers confirm (left_out.h). Otherwise kInvalidData names the tensor.
Result<Matching> MatchTensors(const Folder& folder, const Description& description);

// The floats of a flat buffer; those between two parameters are unset.
class Weights {
 public:
  explicit Weights(size_t size) : floats_(std::make_unique_for_overwrite<float[]>(size)), size_(size) {}
  std::span<float> values() { return {floats_.get(), size_}; }
  std::span<const float> values() const { return {floats_.get(), size_}; }

 private:
  std::unique_ptr<float[]> floats_;
  size_t size_;
};

// Returns kInvalidData if a number is not finite.
Result<Weights> ReadWeights(const Folder& folder, const Description& description, const Matching& matching);

// Returns the rows of each of `count` tensors that are stacked to form the parameter; a single tensor has all of its
// rows.
std::vector<uint32_t> SplitRows(const ParameterSpec& parameter, const Architecture& architecture, size_t count);

// Sets `to` [cols, rows] to the transpose of `from` [rows, cols].
void Transpose(std::span<const float> from, size_t rows, size_t cols, std::span<float> to);

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_TENSORS_H_
