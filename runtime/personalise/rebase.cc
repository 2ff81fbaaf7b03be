#include "runtime/personalise/rebase.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/core/file.h"
#include "runtime/core/file_lock.h"
#include "runtime/core/platform.h"
#include "runtime/model/catalogue.h"
#include "runtime/model/checkpoint.h"
#include "runtime/model/provenance.h"
#include "runtime/personalise/deployment.h"
#include "runtime/personalise/plan_files.h"
#include "runtime/personalise/heal_plan.h"
#include "runtime/personalise/related_bases.h"

namespace wisp {
namespace {

// Inputs of the mixture; the new base is its main model.
constexpr size_t kTo = 0, kFrom = 1, kMine = 2;

// Computes to + (mine - from) for each number that all three models have.
std::vector<float> CarriedOver(const Mixture& mixture, const Architecture& old_architecture,
                               const Architecture& new_architecture, const std::vector<uint32_t>& items) {
  const std::vector<ParameterSpec> old_parameters = ListParameters(old_architecture),
                                   new_parameters = ListParameters(new_architecture);
  const std::span<const float> to = mixture.weights(kTo), from = mixture.weights(kFrom), mine = mixture.weights(kMine);
  std::vector<float> sum(to.begin(), to.end());
  const auto add = [&](size_t old_at, size_t new_at, size_t n) {
    for (size_t i = 0; i < n; ++i) sum[new_at + i] += mine[old_at + i] - from[old_at + i];
  };
  for (size_t i = 0; i < old_parameters.size(); ++i) {
    const ParameterSpec &old_p = old_parameters[i], &new_p = new_parameters[i];
    const size_t n = CountItemNumbers(old_p);
    if (n == 0) {
      add(old_p.offset, new_p.offset, old_p.size());
      continue;
    }
    for (size_t item = 0; item < items.size(); ++item) {
      if (items[item] != kNoItem) add(old_p.offset + items[item] * n, new_p.offset + item * n, n);
    }
  }
  // The tower has moved, so the rows of items that only the new base has move too.
  if (new_architecture.item_features > 0) RowsFromFeatures(new_architecture, 0, sum);
  return sum;
}

// An untrained item of the new base counts as trained if it was untrained in the old base, too, and has learned there.
std::vector<int32_t> StillUntrained(const ModelFile& from, const ModelFile& to, const ModelFile& mine,
                                    const std::vector<uint32_t>& items) {
  const auto is_in = [](std::span<const int32_t> untrained, uint32_t item) {
    return std::binary_search(untrained.begin(), untrained.end(), static_cast<int32_t>(item));
  };
  std::vector<int32_t> untrained(to.untrained().begin(), to.untrained().end());
  std::erase_if(untrained, [&](int32_t item) {
    const uint32_t old = items[static_cast<size_t>(item)];
    return old != kNoItem && is_in(from.untrained(), old) && !is_in(mine.untrained(), old);
  });
  return untrained;
}

bool AreEqual(std::span<const Succession> a, std::span<const Succession> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// The successions of the model in the items of the new base.
std::vector<Succession> CarriedSuccessions(const ModelFile& mine, const std::vector<uint32_t>& items) {
  std::vector<int32_t> new_item(mine.num_items(), -1);
  for (size_t item = 0; item < items.size(); ++item) {
    if (items[item] != kNoItem) new_item[items[item]] = static_cast<int32_t>(item);
  }
  std::vector<Succession> carried;
  for (const Succession& s : mine.lists().successions) {
    const int32_t from = new_item[static_cast<size_t>(s.from)], to = new_item[static_cast<size_t>(s.to)];
    if (from >= 0 && to >= 0) carried.push_back({from, to, s.score});
  }
  std::sort(carried.begin(), carried.end(),
            [](const Succession& a, const Succession& b) { return a.from != b.from ? a.from < b.from : a.to < b.to; });
  return carried;
}

Status WriteStart(const PlanFiles& files, const RebaseOptions& o, const ModelFile& from, const ModelFile& to,
                  const ModelFile& mine, const std::vector<uint32_t>& items) {
  const Mixture mixture(to, {&from, &mine}, "what the runs below changed in the model that this hash is of was added");
  const std::vector<float> weights = CarriedOver(mixture, from.architecture(), to.architecture(), items);
  ModelContents contents = mixture.Contents();
  contents.weights = weights;
  contents.untrained = StillUntrained(from, to, mine, items);
  // A run that released none left those of its base, which the new base replaces.
  if (!AreEqual(mine.lists().successions, from.lists().successions))
    contents.successions = CarriedSuccessions(mine, items);
  contents.created_by = o.created_by;
  return WriteModel(files.start, contents);
}

// The newest undamaged model trained on the old base; nullopt if nothing was trained.
Result<std::optional<ModelFile>> OpenMine(const PlanFiles& files, const ModelFile& from, std::string& damaged) {
  const auto note = [&](const std::string& sentence) { damaged += (damaged.empty() ? "" : "; ") + sentence; };
  WISP_ASSIGN_OR_RETURN(PlanModels models, OpenWholePlanModels(files, from, note));
  // A run could still rewrite what a rebase would lose.
  if (!damaged.empty() && !models.candidate && files.HasCheckpoint() && ReadCheckpoint(files.checkpoint).ok())
    return InvalidData(damaged, ": ", files.checkpoint,
                       " is undamaged: first let one run with the old base resume from it, then rebase");
  return models.candidate ? std::move(models.candidate) : std::move(models.start);
}

// True if `model` is `to`, or learned from it. If one of the two bases was trained from the other, a model that began
// with the later one also began with the earlier one: then the later one counts.
bool ContinuesFrom(const ModelFile& to, const ModelFile& from, const ModelFile& model) {
  if (model.content_hash() == to.content_hash()) return true;
  if (model.content_hash() == from.content_hash() || !BeganWith(model, to)) return false;
  return !BeganWith(model, from) || from.provenance().size() < to.provenance().size();
}

// True if an earlier rebase got as far as writing its start.
bool HasBegun(const PlanFiles& files, const ModelFile& from, const ModelFile& to) {
  const auto start = ModelFile::Open(files.start, Verify::kFull);
  return start.ok() && ContinuesFrom(to, from, *start);
}

// True if nothing is left to do: the served model and what trains belong to the new base. A run may have learned more
// since, which stays.
bool IsDone(const PlanFiles& files, const ModelFile& from, const ModelFile& to) {
  const auto is_of = [&](const std::string& path) {
    const auto model = ModelFile::Open(path);
    return model.ok() && ContinuesFrom(to, from, *model);
  };
  if (!is_of(files.served)) return false;
  if (files.HasCandidate()) return is_of(files.candidate);
  return files.HasStart() ? HasBegun(files, from, to) : !files.HasCheckpoint();
}

// True if people are served a model that learned. A damaged one is served to nobody.
Result<bool> ServesLearned(const PlanFiles& files, const ModelFile& from, const ModelFile& to) {
  if (!platform::IsThere(files.served) || IsServedDamaged(files)) return false;
  WISP_ASSIGN_OR_RETURN(const ModelFile served, ModelFile::Open(files.served));
  if (served.content_hash() == from.content_hash() || served.content_hash() == to.content_hash()) return false;
  if (BeganWith(served, from) || BeganWith(served, to)) return true;
  return InvalidArgument(files.served, ": it is neither ", from.name(),
                         " nor was it personalised from it: name another output");
}

// A reason why the plan would never serve what is carried over to `to`; empty: it may.
Result<std::string> ExplainNeverServed(const std::string& path, const ModelFile& to) {
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger, privacy::Ledger::OpenExisting(path));
  WISP_ASSIGN_OR_RETURN(const DeploymentSettings settings, RequireSettings(ledger));
  WISP_ASSIGN_OR_RETURN(const DeploymentLeft left, ComputeLeft(ledger, settings));
  WISP_ASSIGN_OR_RETURN(const uint64_t steps,
                        StepsThatPlanCovers(ledger, settings, left, to.architecture(), left.steps_of_next));
  // A model is evaluated and served after it has trained.
  if (steps == 0) return "the plan of " + path + " has no step left for it";
  const bool counts_evaluations = settings.evaluations > 0 && settings.evaluates_locally == 0;
  return counts_evaluations && left.evaluations == 0 ? "the plan of " + path + " has no evaluation left" : "";
}

// Refuses to take away for good what was learned. While a candidate or start exists, the answer does not depend on
// which model is served, which an evaluation without noise may have decided.
Status CheckNothingIsLost(const PlanFiles& files, const RebaseOptions& o, const ModelFile& from, const ModelFile& to,
                          bool has_learned, const RebaseResult& result) {
  WISP_ASSIGN_OR_RETURN(const bool serves_learned, ServesLearned(files, from, to));
  if (o.start_over || (!has_learned && !serves_learned)) return OkStatus();
  const std::string why =
      has_learned ? result.why_not : "neither a candidate nor a start that could be carried over is left";
  if (why.empty()) return OkStatus();
  return InvalidArgument(files.served, ": what was learned would be lost: ", why, "; keep ", o.from,
                         " as the base, or set `start_over` to serve ", o.to, " and give up what was learned");
}

// Deletes in an order that a power cut cannot make ambiguous: a candidate without its start could not be recognised.
Status ForgetOld(const PlanFiles& files, const RebaseOptions& o, bool keep_start) {
  WISP_RETURN_IF_ERROR(files.ForgetCandidate(keep_start));
  WISP_RETURN_IF_ERROR(files.ForgetWeighed());
  return CopyFile(o.to, files.served);
}

}  // namespace

Result<RebaseResult> Rebase(const RebaseOptions& o) {
  if (o.from.empty() || o.to.empty() || o.output.empty() || o.ledger.empty())
    return InvalidArgument("a rebase needs an old base, a new one, an output and the plan's ledger");
  const PlanFiles files(o.output);
  const NamedFile read[] = {{"the old base", o.from}, {"the new base", o.to}, {"the ledger", o.ledger}};
  WISP_RETURN_IF_ERROR(files.CheckDistinct(read));
  WISP_RETURN_IF_ERROR(CheckWritable(o.output));
  WISP_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Take(files.lock, o.output + ": another run personalises it; allowed is one at a time"));
  WISP_ASSIGN_OR_RETURN(const ModelFile from, ModelFile::Open(o.from, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const ModelFile to, ModelFile::Open(o.to, Verify::kFull));
  if (!from.has_item_keys() || !to.has_item_keys())
    return InvalidArgument("a model without item keys has no items that another could share: ",
                           from.has_item_keys() ? o.to : o.from);
  if (from.content_hash() == to.content_hash())
    return InvalidArgument(o.to, ": it is the present base, ", o.from, ": nothing is to be carried over");
  RebaseResult result;
  const std::vector<uint32_t> items = ItemsIn(from, to);
  for (const uint32_t item : items) result.shared_items += item != kNoItem ? 1 : 0;
  result.lost_items = from.num_items() - result.shared_items;
  result.carried = HasBegun(files, from, to);
  if (IsDone(files, from, to)) {
    if (!result.carried) result.why_not = "training has moved to the new base already";
    return result;
  }
  if (result.carried) {
    WISP_RETURN_IF_ERROR(ForgetOld(files, o, /*keep_start=*/true));
    return result;
  }
  WISP_ASSIGN_OR_RETURN(const std::optional<ModelFile> mine, OpenMine(files, from, result.damaged));
  if (!mine) {
    result.why_not = result.damaged.empty() ? "nothing was learned yet" : result.damaged;
  } else {
    result.why_not = ExplainUnrelated(from, to, items);
    if (result.why_not.empty()) {
      WISP_ASSIGN_OR_RETURN(result.why_not, ExplainNeverServed(o.ledger, to));
    }
    result.carried = result.why_not.empty();
  }
  WISP_RETURN_IF_ERROR(CheckNothingIsLost(files, o, from, to, mine.has_value(), result));
  if (result.carried) WISP_RETURN_IF_ERROR(WriteStart(files, o, from, to, *mine, items));
  WISP_RETURN_IF_ERROR(ForgetOld(files, o, result.carried));
  return result;
}

Status RebaseAdapter(const RebaseAdapterOptions& o) {
  WISP_RETURN_IF_ERROR(CheckOutput({"the output", o.output},
                                   {{"the old base", o.from}, {"the new base", o.to}, {"the adapter", o.adapter}}));
  WISP_ASSIGN_OR_RETURN(const ModelFile from, ModelFile::Open(o.from, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const ModelFile mine, ModelFile::OpenWithAdapter(o.from, o.adapter, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const ModelFile to, ModelFile::Open(o.to, Verify::kFull));
  if (const std::string why = ExplainUnrelated(from, to, ItemsIn(from, to)); !why.empty())
    return InvalidArgument(o.to, ": ", why, ": the adapter cannot stand beside it; train a new one");
  const Mixture mixture(to, {&from, &mine},
                        "the adapter that the runs below made beside another base was put beside this one");
  ModelContents contents = mixture.Contents();
  contents.architecture.adapter = mine.architecture().adapter;
  const std::vector<ParameterSpec> parameters = ListParameters(contents.architecture),
                                   of_mine = ListParameters(mine.architecture());
  std::vector<float> weights(FlatSize(parameters));
  std::copy(contents.weights.begin(), contents.weights.end(), weights.begin());
  for (size_t i = ListParameters(to.architecture()).size(); i < parameters.size(); ++i) {
    const std::span<const float> learned = mixture.weights(kMine).subspan(of_mine[i].offset, of_mine[i].size());
    std::copy(learned.begin(), learned.end(), weights.begin() + static_cast<std::ptrdiff_t>(parameters[i].offset));
  }
  contents.weights = weights;
  contents.base_hash = to.content_hash();
  contents.created_by = o.created_by;
  return WriteModel(o.output, contents);
}

}  // namespace wisp
