// The provenance of weights that were computed from the weights of several models.
#ifndef WISP_RUNTIME_MODEL_PROVENANCE_H_
#define WISP_RUNTIME_MODEL_PROVENANCE_H_

#include <span>
#include <vector>

#include "runtime/model/model_file.h"

namespace wisp {

// The provenance of weights that depend on all of `inputs`: the entries of the first, in their order, then those of the
// others that are not listed yet. So it states a guarantee only if every input states one. An input that is empty, or
// that began with a model which no entry describes, may have learned from anything; if there are other inputs, it adds
// an entry of kUnknownDataset.
//
// The result, as a set of entries, does not depend on the order of the inputs or on repetitions.
std::vector<ProvenanceEntry> JoinProvenance(const std::vector<std::span<const ProvenanceEntry>>& inputs);

// A model whose weights are computed from the weights of several files.
//
//   const Mixture mixture(to, {&from, &mine}, "what was learned was added");
//   sum[i] = mixture.weights(0)[i] + mixture.weights(2)[i] - mixture.weights(1)[i];
//   ModelContents contents = mixture.Contents();
//   contents.weights = sum;
//
// Code that computes with weights of two models and writes the result must read them through this class, so that no
// input is missing from the provenance (tests/structure.sh). The files must outlive it.
class Mixture {
 public:
  // `main` gives everything but the weights: architecture and items. `description` goes into the new entry, which says
  // that the result began with `main`.
  Mixture(const ModelFile& main, std::span<const ModelFile* const> others, const char* description);
  Mixture(const ModelFile& main, std::initializer_list<const ModelFile*> others, const char* description)
      : Mixture(main, std::span(others.begin(), others.size()), description) {}
  Mixture(const Mixture&) = delete;
  Mixture& operator=(const Mixture&) = delete;

  // Weights as floats, laid out by ListParameters: of `main` for input 0, of others[i - 1] for input i.
  std::span<const float> weights(size_t input) const { return weights_[input]; }
  // The contents of `main`, with its weights and the provenance of all files.
  const ModelContents& Contents() const { return contents_; }

 private:
  std::vector<std::vector<float>> rooms_;
  std::vector<std::span<const float>> weights_;
  ModelContents contents_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_PROVENANCE_H_
