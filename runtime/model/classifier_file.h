// Model files of classifiers: the file of model_file.h with an encoder as its architecture, and what stands on it.
//
//   WISP_RETURN_IF_ERROR(WriteClassifier("c.wisp", {.architecture = c.architecture.encoder, .weights = w,
//       .item_keys = tokens}, c));
//   WISP_ASSIGN_OR_RETURN(ClassifierFile file, ClassifierFile::Open("c.wisp"));
//   const Classifier graph(file.description().architecture, kernels::BestOps());
//
// One format, one set of checks; neither reader takes the other's files, so that no recommender runs on half a
// classifier. Builds from before classifiers refuse such a file: its tensors "pooler.weight" and on are unknown to
// them.
#ifndef WISP_RUNTIME_MODEL_CLASSIFIER_FILE_H_
#define WISP_RUNTIME_MODEL_CLASSIFIER_FILE_H_

#include <string>
#include <vector>

#include "runtime/core/classifier_architecture.h"
#include "runtime/model/model_file.h"

namespace wisp {

// How a text becomes items of the model; the tokens are its item keys. kWhitespaceLower makes A-Z small before it
// looks.
enum class Tokenizer : uint8_t { kNone = 0, kWhitespace = 1, kWhitespaceLower = 2 };

struct ClassifierDescription {
  ClassifierArchitecture architecture;
  std::vector<std::string> class_names;    // unique, one for each class, or none
  double norm_bound = 0;                   // what the head's input is clipped to (HeadInput::norm_bound); 0: not at all
  Tokenizer tokenizer = Tokenizer::kNone;  // other than kNone: the model has item keys
  bool operator==(const ClassifierDescription&) const = default;
};

// As WriteModel. contents.architecture is the encoder's, contents.weights are those of the classifier (its flat
// layout).
Status WriteClassifier(const std::string& path, const ModelContents& contents, const ClassifierDescription& classifier);

// Lifetimes, threads and errors as ModelFile.
class ClassifierFile {
 public:
  static Result<ClassifierFile> Open(const std::string& path, Verify verify = Verify::kStructure);
  static Result<ClassifierFile> OpenMemory(const std::string& name, std::span<const std::byte> bytes,
                                           Verify verify = Verify::kStructure);

  const ClassifierDescription& description() const;
  // Weights, tokens (as item keys), provenance, hashes.
  const ModelFile& model() const { return model_; }

 private:
  explicit ClassifierFile(ModelFile model) : model_(std::move(model)) {}
  ModelFile model_;
};

// Whether the model file at `path` holds a classifier. Looks at header and metadata; errors as ModelFile::Open.
Result<bool> HoldsClassifier(const std::string& path);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_CLASSIFIER_FILE_H_
