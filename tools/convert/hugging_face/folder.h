// A folder in which Hugging Face keeps a model: config.json, model.safetensors or shards with an index, and the files
// that sentence-transformers puts beside them. This opens and describes the folder; tensors.h matches its tensors. Of
// the tokenizer's files it reads only the number of the separator.
//
//   WISP_ASSIGN_OR_RETURN(Folder folder, Folder::Open("all-MiniLM-L6-v2"));
//   WISP_ASSIGN_OR_RETURN(Description d, Describe(folder, {}));
#ifndef WISP_TOOLS_CONVERT_HUGGING_FACE_FOLDER_H_
#define WISP_TOOLS_CONVERT_HUGGING_FACE_FOLDER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/convert/hugging_face/config.h"
#include "tools/convert/safetensors.h"

namespace wisp::convert::hugging_face {

// The output of an encoder: the state at the first position, the mean of all states, or the first one through the
// pooler. kFolder takes what a folder of sentence-transformers says; for other folders the pooler if there is one, else
// the first position.
enum class ChosenPooling : uint8_t { kFolder, kFirst, kMean, kPooler };

// The steps of sentence-transformers after the model.
struct SentenceModules {
  Pooling pooling = Pooling::kMean;
  bool unit_length = false;
  uint32_t width = 0;  // of the pooled vector; 0: not given
};

// A tensor and the file that it lies in.
struct FoundTensor {
  const SafeTensor* tensor = nullptr;
  const std::string* file = nullptr;
};

// Movable. Tensors are valid as long as this object, or the one that it was moved to, lives.
class Folder {
 public:
  // Returns kIo if a file cannot be read; kInvalidData if a file is malformed, or a shard or a tensor of the index is
  // missing; kUnsupported for weights in another format than safetensors, and for modules other than pooling and
  // normalising.
  static Result<Folder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& config_path() const { return config_path_; }
  const std::string& config() const { return config_; }
  const std::optional<SentenceModules>& sentence_modules() const { return sentence_modules_; }
  // The tensors of all shards, by name.
  const std::map<std::string, FoundTensor, std::less<>>& tensors() const { return tensors_; }
  // The folder of the tokenizer's files: with sentence-transformers it is the model's, else the folder itself.
  std::string tokenizer_folder() const;
  // Finds the number of the token that separates sentences; empty if no file says it.
  Result<std::optional<uint32_t>> FindSeparator() const;
  // The number of tokens after which sentence-transformers cuts a text; 0: not given.
  uint32_t sentence_length() const { return sentence_length_; }
  // True if sentence-transformers makes texts lower case before anything else.
  bool lower_case() const { return lower_case_; }
  // Settings of files other than config.json that are not followed.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Shard {
    std::string name;  // within the folder
    SafeTensorsFile file;
  };
  Status OpenModules();
  Status ReadSentenceLimits();
  Status ReadPrompts();
  Status SayOthers();
  Status ReadPooling(const std::string& folder);
  Status OpenTensors();
  Status OpenShards(const std::string& index_path);
  Status AddShard(const std::string& name);
  std::string At(const std::string& file) const { return model_folder_ + "/" + file; }

  std::string path_, model_folder_, config_path_, config_;
  std::optional<SentenceModules> sentence_modules_;
  uint32_t sentence_length_ = 0;
  bool lower_case_ = false;
  std::vector<std::string> notes_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::map<std::string, FoundTensor, std::less<>> tensors_;
};

struct DescribeOptions {
  ConfigOptions config;
  ChosenPooling pooling = ChosenPooling::kFolder;
};

// Reads the config of the folder with ReadConfig, and adds its pooling and its separator. Returns kInvalidArgument for
// a pooling that the model does not have.
Result<Description> Describe(const Folder& folder, const DescribeOptions& options);

// Finds the prefix before the names inside: one of `family.prefixes`, or an empty one. Returns kInvalidData if the
// table of tokens is missing.
Result<std::string> FindPrefix(const Folder& folder, const Family& family);

}  // namespace wisp::convert::hugging_face

#endif  // WISP_TOOLS_CONVERT_HUGGING_FACE_FOLDER_H_
