#include "runtime/model/classifier_file.h"

#include "runtime/core/file.h"
#include "runtime/model/model_metadata.h"

namespace wisp {

Result<ClassifierFile> ClassifierFile::Open(const std::string& path, Verify verify) {
  WISP_ASSIGN_OR_RETURN(ModelFile model, ModelFile::OpenAs(ModelFile::Kind::kClassifier, path, verify));
  return ClassifierFile(std::move(model));
}

Result<ClassifierFile> ClassifierFile::OpenMemory(const std::string& name, std::span<const std::byte> bytes,
                                                  Verify verify) {
  WISP_ASSIGN_OR_RETURN(ModelFile model, ModelFile::OpenMemoryAs(ModelFile::Kind::kClassifier, name, bytes, verify));
  return ClassifierFile(std::move(model));
}

const ClassifierDescription& ClassifierFile::description() const { return *model_.metadata().classifier; }

Result<bool> HoldsClassifier(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  WISP_ASSIGN_OR_RETURN(const container::View view, container::Parse(path, file.bytes(), metadata::kModelFormat));
  WISP_ASSIGN_OR_RETURN(const metadata::ModelMetadata model, metadata::ReadModelMetadata(path, view.metadata));
  return model.classifier.has_value();
}

}  // namespace wisp
