// Implements `wisp recommend`: the best items, or, with --private, items that are sampled and paid for.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>

#include "runtime/core/text.h"
#include "runtime/data/marked_keys.h"
#include "runtime/private_sampling/private_recommender.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/device.h"
#include "tools/wisp/output.h"
#include "tools/wisp/padded.h"
#include "tools/wisp/private_samples.h"
#include "tools/wisp/recipe/near_names.h"

namespace wisp::tools {
namespace {

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string NearKeys(const ModelFile& model, const std::string& key) {
  NearNames near(key);
  for (size_t i = 0; model.has_item_keys() && i < model.num_items(); ++i) near.Add(model.item_key(i));
  return near.Question();
}

// In a model without keys, an item is named by its number, as answers show it.
std::optional<size_t> FindItem(const ModelFile& model, const std::string& key) {
  if (model.has_item_keys()) return model.FindItem(key);
  size_t number = 0;
  const char* const end = key.data() + key.size();
  const auto read = std::from_chars(key.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number >= model.num_items()) return std::nullopt;
  return number;
}

// Blanks around a name do not belong to it, unless an item has them in its key.
std::optional<size_t> FindNamed(const ModelFile& model, const std::string& name) {
  const auto item = FindItem(model, name);
  return item ? item : FindItem(model, Trimmed(name));
}

// Finds the items that an option names. If the whole value is a key, it is that item; otherwise commas separate items.
Result<std::vector<int32_t>> FindItems(const ModelFile& model, const std::string& option,
                                       const std::vector<std::string>& values) {
  std::vector<int32_t> items;
  for (const std::string& value : values) {
    const std::vector<std::string> names =
        FindNamed(model, value) ? std::vector<std::string>{value} : SplitCommas(value);
    if (names.empty()) return InvalidArgument(option, " is '", value, "', which names no item");
    for (const std::string& name : names) {
      const auto item = FindNamed(model, name);
      if (!item && !model.has_item_keys())
        return InvalidArgument(option, " names item '", Trimmed(name),
                               "'; the model has no keys, allowed are numbers 0 to ", model.num_items() - 1);
      if (!item)
        return InvalidArgument(option, " names item '", Trimmed(name), "', which the model does not have",
                               data::SuggestMarkedKey(name), NearKeys(model, Trimmed(name)));
      items.push_back(static_cast<int32_t>(*item));
    }
  }
  return items;
}

constexpr char kReadWithout[] = "the history is read as if the model did not know them";
constexpr char kReadWithoutLocally[] = "the history is read as if the model did not know them (local only)";
constexpr char kNeverOffered[] = "no list holds them before a run has trained them";
constexpr char kNeverOfferedBesideAdapter[] = "no list holds them before a run without an adapter has trained them";
constexpr char kRetired[] = "no list holds them";

// Warns about those of `items` that are among `some` of the model's. `of` says whose items they are, `which` what sets
// them apart; `behind` ends the sentence.
void WarnAbout(const ModelFile& model, std::span<const int32_t> some, std::span<const int32_t> items,
               const std::string& of, const char* which, const char* behind) {
  std::set<int32_t> found;
  std::optional<int32_t> first;
  for (const int32_t item : items) {
    if (!std::binary_search(some.begin(), some.end(), item)) continue;
    if (!first) first = item;
    found.insert(item);
  }
  if (!first) return;
  const auto item = static_cast<size_t>(*first);
  Warn(of + " " + Counted(found.size(), "item") + " that " + which + ", the first '" +
       (model.has_item_keys() ? std::string(model.item_key(item)) : std::to_string(item)) + "': " + behind);
}

// Items that no run has trained have no information: they are skipped in a history and never listed.
void WarnAboutUntrained(const ModelFile& model, std::span<const int32_t> items, const std::string& of,
                        const char* behind) {
  WarnAbout(model, model.untrained(), items, of, "no run has trained yet", behind);
}

SeenItems ReadSeen(const RecommendArguments& a) {
  if (a.allow_seen) return SeenItems::kAllow;
  return a.exclude_seen ? SeenItems::kExclude : SeenItems::kAsModel;
}

// An empty answer is not an error, but it needs a reason.
void ExplainEmpty(const RecommendArguments& a, const ModelFile& model, size_t num_items) {
  if (num_items > 0) return;
  Warn(std::string("nothing is left to recommend: the ") + (a.candidates.empty() ? "catalogue" : "candidates") +
       (AllowsSeen(ReadSeen(a), model.lists())
            ? " hold no item"
            : " hold no item outside the history; --allow-seen lets items of the history come back"));
}

Result<std::vector<int32_t>> GetHistory(const RecommendArguments& a, const ModelFile& model) {
  const int given = (a.history.empty() ? 0 : 1) + (a.user.empty() ? 0 : 1) + (a.cold_start ? 1 : 0);
  if (given > 1) return InvalidArgument("of --history, --user and --cold-start one is allowed, ", given, " were given");
  if (given == 0) return InvalidArgument("--history, --user with --data, or --cold-start is needed");
  if (a.cold_start) return std::vector<int32_t>();
  if (!a.history.empty()) {
    WISP_ASSIGN_OR_RETURN(std::vector<int32_t> items, FindItems(model, "--history", a.history));
    WarnAboutUntrained(model, items, "--history names", kReadWithout);
    return items;
  }
  if (a.data.path.empty()) return InvalidArgument("--user needs --data, the log with the user's events");
  WISP_ASSIGN_OR_RETURN(const data::ReadResult data, ReadData(a.data, {}, &model));
  const data::Sequences& s = data.sequences;
  for (size_t u = 0; u < s.num_users(); ++u) {
    if (s.user_keys[u] != a.user) continue;
    WarnAboutUntrained(model, s.User(u), a.data.path + ": the user has", kReadWithoutLocally);
    return std::vector<int32_t>(s.User(u).begin(), s.User(u).end());
  }
  return InvalidArgument(
      a.data.path, ": there is no user '", a.user,
      "' with items that the model knows; a person without any gets what is popular with --cold-start");
}

Result<std::vector<int32_t>> ParseCandidates(const RecommendArguments& a, const ModelFile& model) {
  WISP_ASSIGN_OR_RETURN(std::vector<int32_t> items, FindItems(model, "--candidates", a.candidates));
  const bool has_adapter = model.architecture().adapter.has_value();
  WarnAboutUntrained(model, items, "--candidates names", has_adapter ? kNeverOfferedBesideAdapter : kNeverOffered);
  WarnAbout(model, model.retired(), items, "--candidates names", "the model has retired", kRetired);
  return items;
}

Json ItemJson(const ModelFile& model, size_t item) {
  return {{"item", model.has_item_keys() ? Json(model.item_key(item)) : Json(item)}, {"name", ShownItem(model, item)}};
}

Status RecommendBest(const RecommendArguments& a, Session& session, OutputFormat format) {
  const ModelFile& model = session.file();
  WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> history, GetHistory(a, model));
  WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> candidates, ParseCandidates(a, model));
  WISP_ASSIGN_OR_RETURN(const std::vector<Recommendation> top,
                        session.Recommend(history, {.count = a.count, .seen = ReadSeen(a), .candidates = candidates}));
  Json list = Json::array();
  for (size_t i = 0; i < top.size(); ++i) {
    const auto item = static_cast<size_t>(top[i].item);
    if (format == OutputFormat::kText)
      PrintText("%2zu. %s %8.3f\n", i + 1, Padded(OneLine(ShownItem(model, item)), 32).c_str(),
                static_cast<double>(top[i].score));
    list.push_back(ItemJson(model, item));
    list.back()["score"] = top[i].score;
  }
  if (format == OutputFormat::kJson) PrintJson(list);
  ExplainEmpty(a, model, top.size());
  return OkStatus();
}

// One `wisp recommend --private` from start to end.
class PrivateCommand {
 public:
  PrivateCommand(const RecommendArguments& arguments, Session& session)
      : a_(arguments), p_(arguments.priv), session_(session), samples_(p_, arguments.model) {}

  Status Run(OutputFormat format) {
    const ModelFile& model = session_.file();
    WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> history, GetHistory(a_, model));
    WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> candidates, ParseCandidates(a_, model));
    PrivateRecommendOptions request{.count = a_.count, .seen = ReadSeen(a_), .candidates = candidates};
    WISP_RETURN_IF_ERROR(ReadSupport(request));
    WISP_ASSIGN_OR_RETURN(const PrivateRecommenderOptions options, Options(request));
    WISP_ASSIGN_OR_RETURN(PrivateRecommender recommender, PrivateRecommender::Create(session_, options));
    samples_.WarnIfRaised();
    WISP_RETURN_IF_ERROR(samples_.Begin(recommender.setup()));
    const Result<std::vector<int32_t>> items = recommender.Recommend(history, request);
    if (!items.ok()) return samples_.InWords(items.status(), recommender.setup(), options.samples_per_charge);
    ExplainEmpty(a_, model, items->size());
    return Print(recommender, *items, format);
  }

 private:
  // Reads --support: all, base:K or model:K. The last exists only to be refused with a reason.
  Status ReadSupport(PrivateRecommendOptions& request) const {
    if (p_.support == "all") return OkStatus();
    const size_t colon = p_.support.find(':');
    const std::string from = p_.support.substr(0, colon),
                      number = colon == std::string::npos ? "" : p_.support.substr(colon + 1);
    const bool whole =
        !number.empty() && number.size() <= 9 && number.find_first_not_of("0123456789") == std::string::npos;
    if (!whole || std::stoul(number) == 0 || (from != "base" && from != "model")) {
      return InvalidArgument("--support is '", p_.support,
                             "', allowed are all and base:K, the K best of the base model");
    }
    if (from == "model") request.support_origin = SupportOrigin::kPrivateModel;
    if (from == "base") request.base_top = std::stoul(number);
    return OkStatus();
  }

  Result<PrivateRecommenderOptions> Options(const PrivateRecommendOptions& request) {
    PrivateRecommenderOptions o;
    if (!p_.mode.empty()) {
      WISP_ASSIGN_OR_RETURN(
          o.mode, Choice<DecodingMode>("--mode", p_.mode,
                                       {{"mixed", DecodingMode::kUniform}, {"anchored", DecodingMode::kBaseAnchored}}));
    }
    WISP_RETURN_IF_ERROR(samples_.Read(session_, o));
    // A short public list is cheap, so every sample is charged for the rest of it.
    const size_t listed = request.base_top > 0 ? request.base_top : request.candidates.size();
    if (listed > 0) o.charge_for = ChargeFor::kSupportLeft;
    o.largest_support = static_cast<uint32_t>(listed);
    const size_t most = std::min<size_t>(a_.count, listed > 0 ? listed : session_.architecture().num_items);
    o.samples_per_charge = p_.block > 0 ? p_.block : static_cast<uint32_t>(std::max<size_t>(1, most));
    if (!p_.planned_samples) return o;
    const bool block = p_.block > *p_.planned_samples;
    if (block || a_.count > *p_.planned_samples) {
      return InvalidArgument(
          (block ? "--block is " + std::to_string(p_.block) : "--count is " + std::to_string(a_.count)),
          ", but --planned-samples allows ", *p_.planned_samples, " samples in all");
    }
    return o;
  }

  Status Print(const PrivateRecommender& r, const std::vector<int32_t>& items, OutputFormat format) const {
    WISP_ASSIGN_OR_RETURN(const Json cost, samples_.CostJson(r.setup()));
    samples_.WarnIfUnlimited(cost);
    Json j = {{"items", Json::array()}, {"privacy", cost}};
    for (int32_t item : items) j["items"].push_back(ItemJson(session_.file(), static_cast<size_t>(item)));
    if (format == OutputFormat::kJson) {
      PrintJson(j);
      return OkStatus();
    }
    for (size_t i = 0; i < items.size(); ++i)
      PrintText("%2zu. %s\n", i + 1, OneLine(ShownItem(session_.file(), static_cast<size_t>(items[i]))).c_str());
    samples_.PrintCost(cost, "sample", stdout);
    return OkStatus();
  }

  const RecommendArguments& a_;
  const PrivateSampleArguments& p_;
  Session& session_;
  PrivateSamples samples_;
};

}  // namespace

Result<Backend> BackendNamed(const std::string& name) {
  if (name == "simd") return Backend::kSimd;
  if (name == "int8") return Backend::kInt8;
  if (name == "xnnpack") return Backend::kXnnpack;
  return InvalidArgument("--backend is '", name, "', allowed are simd, int8 and xnnpack");
}

Status Recommend(const RecommendArguments& a, OutputFormat format) {
  if (a.count == 0) return InvalidArgument("--count is 0, allowed are 1 and above");
  WISP_ASSIGN_OR_RETURN(const Backend backend, BackendNamed(a.backend));
  if (a.priv.on && backend != Backend::kSimd) return InvalidArgument("--backend is not for --private");
  // The backend is checked with and without a device, so that the answer does not depend on the build.
  if (a.device.name != "cpu" && backend != Backend::kSimd) return BackendOnDevice(a.device.name.c_str());
  if (a.priv.on && a.device.name != "cpu") return InvalidArgument("--device ", a.device.name, " is not for --private");
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::OpenWithAdapter(a.model, a.adapter, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, DeviceOrProcessor(a.device, DeviceUse::kInference));
  WISP_ASSIGN_OR_RETURN(
      const auto session,
      Session::Create(std::move(file), {.backend = backend, .num_threads = a.threads, .device = device.device}));
  return a.priv.on ? PrivateCommand(a, *session).Run(format) : RecommendBest(a, *session, format);
}

}  // namespace wisp::tools
