#include "runtime/personalise/rebase.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "runtime/core/date.h"
#include "runtime/core/file.h"
#include "runtime/core/file_lock.h"
#include "runtime/model/catalogue.h"
#include "runtime/model/checkpoint.h"
#include "runtime/personalise/night_files.h"
#include "runtime/personalise/night_heal.h"

namespace wisp {
namespace {

constexpr uint32_t kNowhere = static_cast<uint32_t>(-1);

// For each item of `to` its number in `from`.
std::vector<uint32_t> ItemsIn(const ModelFile& from, const ModelFile& to) {
  std::vector<uint32_t> items(to.num_items(), kNowhere);
  for (uint32_t i = 0; i < to.num_items(); ++i) {
    if (const auto found = from.FindItem(to.item_key(i))) items[i] = *found;
  }
  return items;
}

// to + (mine - from), of each number that all three have.
class Carrying {
 public:
  Carrying(const ModelFile& from, const ModelFile& to, const ModelFile& mine)
      : from_(from.AllWeights(room_from_)), to_(to.AllWeights(room_to_)), mine_(mine.AllWeights(room_mine_)) {}

  std::vector<float> Sum(const std::vector<ParameterSpec>& old_parameters,
                         const std::vector<ParameterSpec>& new_parameters, const std::vector<uint32_t>& items) const {
    std::vector<float> sum(to_.begin(), to_.end());
    for (size_t i = 0; i < old_parameters.size(); ++i) {
      const ParameterSpec &old_p = old_parameters[i], &new_p = new_parameters[i];
      const size_t n = NumbersOfItem(old_p);
      if (n == 0) {
        Add(old_p.offset, new_p.offset, old_p.size(), sum);
        continue;
      }
      for (size_t item = 0; item < items.size(); ++item) {
        if (items[item] != kNowhere) Add(old_p.offset + items[item] * n, new_p.offset + item * n, n, sum);
      }
    }
    return sum;
  }

 private:
  void Add(size_t old_at, size_t new_at, size_t n, std::vector<float>& sum) const {
    for (size_t i = 0; i < n; ++i) sum[new_at + i] += mine_[old_at + i] - from_[old_at + i];
  }

  std::vector<float> room_from_, room_to_, room_mine_;
  std::span<const float> from_, to_, mine_;
};

// The new base's past, and the runs of the old life, which began with it as far as anybody may know.
std::vector<ProvenanceEntry> ProvenanceOf(const ModelFile& from, const ModelFile& to, const ModelFile& mine,
                                          const char* description) {
  std::vector<ProvenanceEntry> entries(to.provenance().begin(), to.provenance().end());
  entries.push_back({.description = description,
                     .mechanisms = {"weights of models that are there, from no data of its own"},
                     .epsilon = 0,
                     .noise = NoiseOrigin::kSecure,
                     .date = Today(),
                     .base_model_hash = to.content_hash()});
  const auto of_mine = mine.provenance().subspan(from.provenance().size());
  entries.insert(entries.end(), of_mine.begin(), of_mine.end());
  return entries;
}

Status WriteStart(const NightFiles& files, const RebaseOptions& o, const ModelFile& from, const ModelFile& to,
                  const ModelFile& mine, const std::vector<uint32_t>& items) {
  const std::vector<float> weights =
      Carrying(from, to, mine).Sum(ParametersOf(from.architecture()), ParametersOf(to.architecture()), items);
  std::vector<float> room;
  ModelContents contents = ContentsOf(to, room);
  contents.weights = weights;
  contents.provenance =
      ProvenanceOf(from, to, mine, "what the runs below changed in the model that this hash is of was added");
  contents.created_by = o.created_by;
  return WriteModel(files.start, contents);
}

// What the old life has: its newest model that is whole; nothing where it has none.
Result<std::optional<ModelFile>> OpenMine(const NightFiles& files, const ModelFile& from, std::string& damaged) {
  const auto note = [&](const std::string& sentence) { damaged += (damaged.empty() ? "" : "; ") + sentence; };
  WISP_ASSIGN_OR_RETURN(NightModels models, OpenWholeNightModels(files, from, note));
  // What is lost to a rebase a night can still write anew.
  if (!damaged.empty() && !models.candidate && files.HasCheckpoint() && ReadCheckpoint(files.checkpoint).ok())
    return InvalidData(damaged, ": ", files.checkpoint,
                       " is whole: live one night with the old base first, which goes on from it, then rebase");
  return models.candidate ? std::move(models.candidate) : std::move(models.start);
}

// Whether a rebase before this one got as far as its start.
bool HasBegun(const NightFiles& files, const ModelFile& to) {
  const auto start = ModelFile::Open(files.start, Verify::kFull);
  return start.ok() && BeganWith(*start, to);
}

// Whether nothing is left to do: what people are served, and what trains, is of the new base. Then a night may have
// learned more since, which stays.
bool IsDone(const NightFiles& files, const ModelFile& to) {
  const auto is_of = [&](const std::string& path) {
    const auto model = ModelFile::Open(path);
    return model.ok() && (model->content_hash() == to.content_hash() || BeganWith(*model, to));
  };
  return is_of(files.served) && (files.HasCandidate() ? is_of(files.candidate) : HasBegun(files, to));
}

// In an order in which what is left after a power cut is known for what it is: a candidate without what it began with
// would not be.
Status ForgetOld(const NightFiles& files, const RebaseOptions& o, bool keep_start) {
  WISP_RETURN_IF_ERROR(files.ForgetCandidate(keep_start));
  return CopyFile(o.to, files.served);
}

}  // namespace

bool SameButForItems(const Architecture& one, const Architecture& other) {
  Architecture same = one;
  same.num_items = other.num_items;
  return same == other;
}

Result<RebaseResult> Rebase(const RebaseOptions& o) {
  if (o.from.empty() || o.to.empty() || o.output.empty())
    return InvalidArgument("a rebase needs an old base, a new one and an output");
  const NightFiles files(o.output);
  WISP_RETURN_IF_ERROR(CheckOutput({"the output", o.output}, {{"the old base", o.from}, {"the new base", o.to}}));
  WISP_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Take(files.lock, o.output + ": another run personalises it; allowed is one at a time"));
  WISP_ASSIGN_OR_RETURN(const ModelFile from, ModelFile::Open(o.from, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const ModelFile to, ModelFile::Open(o.to, Verify::kFull));
  if (!from.has_item_keys() || !to.has_item_keys())
    return InvalidArgument("a model without item keys has no items that another could share: ",
                           from.has_item_keys() ? o.to : o.from);
  if (from.content_hash() == to.content_hash())
    return InvalidArgument(o.to, ": it is the base that there is, ", o.from, ": nothing is to be carried over");
  RebaseResult result;
  const std::vector<uint32_t> items = ItemsIn(from, to);
  for (const uint32_t item : items) result.shared_items += item != kNowhere ? 1 : 0;
  result.lost_items = from.num_items() - result.shared_items;
  result.carried = HasBegun(files, to);
  if (IsDone(files, to)) return result;
  if (result.carried) {
    WISP_RETURN_IF_ERROR(ForgetOld(files, o, /*keep_start=*/true));
    return result;
  }
  WISP_ASSIGN_OR_RETURN(const std::optional<ModelFile> mine, OpenMine(files, from, result.damaged));
  if (!mine) {
    result.why_not = result.damaged.empty() ? "nothing was learned yet" : result.damaged;
  } else if (!SameButForItems(from.architecture(), to.architecture())) {
    result.why_not = "the new base has another shape, in more than its number of items";
  } else {
    WISP_RETURN_IF_ERROR(WriteStart(files, o, from, to, *mine, items));
    result.carried = true;
  }
  WISP_RETURN_IF_ERROR(ForgetOld(files, o, result.carried));
  return result;
}

Status RebaseAdapter(const RebaseAdapterOptions& o) {
  WISP_RETURN_IF_ERROR(CheckOutput({"the output", o.output},
                                   {{"the old base", o.from}, {"the new base", o.to}, {"the adapter", o.adapter}}));
  WISP_ASSIGN_OR_RETURN(const ModelFile from, ModelFile::Open(o.from, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const ModelFile mine, ModelFile::OpenWithAdapter(o.from, o.adapter, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const ModelFile to, ModelFile::Open(o.to, Verify::kFull));
  if (!SameButForItems(from.architecture(), to.architecture()))
    return InvalidArgument(o.to, ": it has another shape than ", o.from,
                           ", in more than its number of items: the adapter cannot stand beside it; train one anew");
  const auto past = from.provenance(), of_mine_too = mine.provenance();
  if (of_mine_too.size() < past.size() || !std::equal(past.begin(), past.end(), of_mine_too.begin()))
    return InvalidArgument(o.adapter, ": its provenance does not begin with that of ", o.from,
                           ", so what was spent on it is not known");
  std::vector<float> room_to, room_mine;
  ModelContents contents = ContentsOf(to, room_to);
  contents.architecture.adapter = mine.architecture().adapter;
  const std::vector<ParameterSpec> parameters = ParametersOf(contents.architecture),
                                   of_mine = ParametersOf(mine.architecture());
  const std::span<const float> learned = mine.AllWeights(room_mine);
  std::vector<float> weights(FlatSize(parameters));
  std::copy(contents.weights.begin(), contents.weights.end(), weights.begin());
  for (size_t i = ParametersOf(to.architecture()).size(); i < parameters.size(); ++i)
    std::copy_n(learned.begin() + static_cast<std::ptrdiff_t>(of_mine[i].offset), of_mine[i].size(),
                weights.begin() + static_cast<std::ptrdiff_t>(parameters[i].offset));
  contents.weights = weights;
  contents.base_hash = to.content_hash();
  contents.provenance =
      ProvenanceOf(from, to, mine, "the adapter that the runs below made beside another base was put beside this one");
  contents.created_by = o.created_by;
  return WriteModel(o.output, contents);
}

}  // namespace wisp
