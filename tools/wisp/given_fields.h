// The values that a command line gives to fields of a run (runtime/train/run/run_spec.h), in place of a recipe's.
//
//   AddField(command, arguments.given, "training.epochs", RunKind::kEvents);   // the option --epochs
//   arguments.given.Has("training.epochs")
//   WISP_RETURN_IF_ERROR(arguments.given.Apply(spec));
#ifndef WISP_TOOLS_WISP_GIVEN_FIELDS_H_
#define WISP_TOOLS_WISP_GIVEN_FIELDS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace wisp {
struct Field;
struct RunSpec;
struct TrainingOptions;
enum class RunKind : uint8_t;
}  // namespace wisp

namespace wisp::tools {

class GivenFields {
 public:
  // A field that is given again has the later text. An empty text gives nothing.
  void Give(const Field& field, std::string text);
  bool Has(std::string_view path) const { return !Text(path).empty(); }
  // Empty if the field is not given.
  std::string Text(std::string_view path) const;

  // Sets the fields, and clears what they replace: a target replaces a noise multiplier and the reverse, epochs replace
  // steps, a private method replaces sampling and loss that only ordinary training has, and a new delta clears the
  // recipe's permission for a large one. Fields of texts need spec.text.
  // kInvalidArgument names an option that runs of this kind lack, or the option, the value and what is allowed.
  Status Apply(RunSpec& spec, RunKind kind) const;

  const std::vector<std::pair<const Field*, std::string>>& values() const { return values_; }

 private:
  std::vector<std::pair<const Field*, std::string>> values_;
};

// Applies a --method of events or texts alone; an empty one changes nothing.
Status OverrideMethod(const std::string& method, TrainingOptions& options);

// Refuses a target beside a noise multiplier.
Status CheckOneGoal(const GivenFields& given);

// Adds the option of a field. Its help is the field's sentence, range and default. `note` is added to it. `given` must
// not move.
CLI::Option* AddField(CLI::App* command, GivenFields& given, const char* path, RunKind kind,
                      const std::string& note = "");

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_GIVEN_FIELDS_H_
