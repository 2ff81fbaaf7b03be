#include "runtime/train/run/classifier_start.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "runtime/core/hash.h"
#include "runtime/core/text.h"
#include "runtime/data/sequences.h"

namespace wisp {
namespace {

std::string Listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + OneLine(name) + "'";
  return list.empty() ? "numbers" : list;
}

}  // namespace

Status CheckClassNames(const std::string& where, std::span<const std::string> classes) {
  if (classes.size() < 2 || classes.size() > kMaxClasses)
    return InvalidData(where, ": ", classes.size(), " classes, allowed are 2 to ", kMaxClasses);
  std::set<std::string_view> names;
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::string fault = data::KeyFault(classes[i]);
    if (!fault.empty()) return InvalidData(where, ": class ", i, " ", fault);
    if (!names.insert(classes[i]).second) return InvalidData(where, ": two classes are called ", classes[i]);
  }
  return OkStatus();
}

uint64_t HashClasses(std::span<const std::string> classes) {
  std::string all;
  for (const std::string& name : classes) all += name + '\n';  // a name cannot contain a line end
  return std::max<uint64_t>(1, Hash64(std::as_bytes(std::span(all))));
}

Status CheckClassifierBase(const ModelFile& base, const std::vector<std::string>& classes, bool with_adapter) {
  if (base.architecture().head.kind == HeadKind::kNextItem && base.architecture().attend == Attend::kCausal)
    return Unsupported(base.name(), ": it is a recommender or decoder; texts are classified by an encoder");
  if (!base.is_classifier()) return OkStatus();
  if (base.classifier().class_names != classes)
    return InvalidData(base.name(), ": its classes are ", Listed(base.classifier().class_names),
                       ", those to learn are ", Listed(classes),
                       "; a classifier keeps its classes, an encoder takes any");
  if (!with_adapter || base.classifier().norm_bound == 0) return OkStatus();
  return Unsupported(base.name(),
                     ": it was trained by DP-FP, whose head reads clipped representations, and no adapter trains so; "
                     "begin with its encoder");
}

Result<Architecture> ClassifierOver(const ModelFile& base, uint32_t num_classes,
                                    const std::optional<AdapterSpec>& new_adapter) {
  Architecture a = WithClasses(base.architecture(), num_classes);
  if (new_adapter && !a.adapter) {
    a.adapter = new_adapter;
    a.adapter->has_head = !base.is_classifier();
  }
  WISP_RETURN_IF_ERROR(Validate(a));
  return a;
}

ModelContents ClassifierContents(const ModelFile& base, const Architecture& architecture,
                                 const std::vector<std::string>& classes) {
  ModelContents contents{.architecture = architecture};
  contents.classifier = {.class_names = classes};
  if (architecture.adapter && !architecture.adapter->has_head) contents.classifier = base.classifier();
  contents.tokenizer = {base.tokenizer().begin(), base.tokenizer().end()};
  return contents;
}

}  // namespace wisp
