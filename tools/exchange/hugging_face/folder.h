// A folder as Hugging Face keeps a model: config.json, model.safetensors or shards with an index, and what
// sentence-transformers puts beside them. Opened and described; its tensors are matched in tensors.h. The tokenizer's
// files are read for one thing only, the number of the separator.
//
//   WISP_ASSIGN_OR_RETURN(Folder folder, Folder::Open("all-MiniLM-L6-v2"));
//   WISP_ASSIGN_OR_RETURN(Description d, Describe(folder, {}));
#ifndef WISP_TOOLS_EXCHANGE_HUGGING_FACE_FOLDER_H_
#define WISP_TOOLS_EXCHANGE_HUGGING_FACE_FOLDER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exchange/hugging_face/config.h"
#include "tools/exchange/safetensors.h"

namespace wisp::exchange::hugging_face {

// What an encoder gives: the state at the first position, the mean of all, or the first one through the pooler.
// kFolder: as the folder of sentence-transformers says; of another the pooler where there is one, else the first.
enum class ChosenPooling : uint8_t { kFolder, kFirst, kMean, kPooler };

// What sentence-transformers does behind the model.
struct SentenceModules {
  Pooling pooling = Pooling::kMean;
  bool unit_length = false;
  uint32_t width = 0;  // of what is pooled; 0: nothing is said
};

// A tensor and the file that it lies in.
struct FoundTensor {
  const SafeTensor* tensor = nullptr;
  const std::string* file = nullptr;
};

// Movable; tensors are valid as long as it, or what it was moved to, lives.
class Folder {
 public:
  // kIo: a file cannot be read. kInvalidData: a file is malformed, a shard or a tensor that the index names is missing.
  // kUnsupported: weights that are no safetensors, modules other than pooling and normalising.
  static Result<Folder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& config_path() const { return config_path_; }
  const std::string& config() const { return config_; }
  const std::optional<SentenceModules>& sentence_modules() const { return sentence_modules_; }
  // By name, over all shards.
  const std::map<std::string, FoundTensor, std::less<>>& tensors() const { return tensors_; }
  // Where the tokenizer's files lie: of sentence-transformers with the model, or in the folder itself.
  std::string tokenizer_folder() const;
  // The number of the token that parts sentences; none where no file says it.
  Result<std::optional<uint32_t>> FindSeparator() const;
  // Tokens after which sentence-transformers cuts a text; 0: nothing is said.
  uint32_t sentence_length() const { return sentence_length_; }
  // Whether sentence-transformers makes texts lower case before anything else.
  bool lower_case() const { return lower_case_; }
  // What files other than config.json say and is not followed.
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

// ReadConfig of the folder, with its pooling and its separator. kInvalidArgument: a pooling that the model does not
// have.
Result<Description> Describe(const Folder& folder, const DescribeOptions& options);

// The prefix before the names inside: of `family.prefixes`, or none. kInvalidData: the table of tokens is not there.
Result<std::string> FindPrefix(const Folder& folder, const Family& family);

}  // namespace wisp::exchange::hugging_face

#endif  // WISP_TOOLS_EXCHANGE_HUGGING_FACE_FOLDER_H_
