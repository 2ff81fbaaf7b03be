// wisp recommend: the best items, or, with --private, items drawn and paid for.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/decoding/draw_cost.h"
#include "runtime/decoding/private_recommender.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/statement.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/device.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/recipe/near_names.h"

namespace wisp::tools {
namespace {

using Json = nlohmann::ordered_json;

// Below these, draws tell little of the model: it is said.
constexpr double kWeakLambda = 0.5, kWeakClip = 0.5;

void Warn(const std::string& sentence) { std::fprintf(stderr, "wisp: %s\n", sentence.c_str()); }

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string NearKeys(const ModelFile& model, const std::string& key) {
  NearNames near(key);
  for (size_t i = 0; model.has_item_keys() && i < model.num_items(); ++i) near.Add(model.item_key(i));
  return near.Question();
}

// Blanks around a name are no part of it, unless an item is called so.
Result<std::vector<int32_t>> FindItems(const ModelFile& model, const std::string& option, const std::string& keys) {
  std::vector<int32_t> items;
  for (const std::string& key : SplitCommas(keys)) {
    auto item = model.FindItem(key);
    if (!item) item = model.FindItem(Trimmed(key));
    if (!item)
      return InvalidArgument(option, " names item '", Trimmed(key), "', which the model does not have",
                             NearKeys(model, Trimmed(key)));
    items.push_back(static_cast<int32_t>(*item));
  }
  if (items.empty() && !keys.empty()) return InvalidArgument(option, " is '", keys, "', which names no item");
  return items;
}

// An empty answer is no error, but nobody should have to guess why.
void SayWhyEmpty(const RecommendArguments& a, size_t num_items) {
  if (num_items > 0) return;
  Warn(std::string("nothing is left to recommend: the ") + (a.candidates.empty() ? "catalogue" : "candidates") +
       (a.allow_seen ? " hold no item"
                     : " hold no item outside the history; --allow-seen lets items of the history come back"));
}

Result<std::vector<int32_t>> HistoryOf(const RecommendArguments& a, const ModelFile& model) {
  const int given = (a.history.empty() ? 0 : 1) + (a.user.empty() ? 0 : 1) + (a.newcomer ? 1 : 0);
  if (given > 1) return InvalidArgument("of --history, --user and --newcomer one is allowed, ", given, " were given");
  if (given == 0) return InvalidArgument("--history, --user with --data, or --newcomer is needed");
  if (a.newcomer) return std::vector<int32_t>();
  if (!a.history.empty()) return FindItems(model, "--history", a.history);
  if (a.data.path.empty()) return InvalidArgument("--user needs --data, the log with the user's events");
  WISP_ASSIGN_OR_RETURN(const data::ReadResult data, ReadData(a.data, {}, &model));
  const data::Sequences& s = data.sequences;
  for (size_t u = 0; u < s.num_users(); ++u) {
    if (s.user_keys[u] == a.user) return std::vector<int32_t>(s.User(u).begin(), s.User(u).end());
  }
  return InvalidArgument(
      a.data.path, ": there is no user '", a.user,
      "' with items that the model knows; a person without any gets what is popular with --newcomer");
}

Json ItemJson(const ModelFile& model, size_t item) {
  return {{"item", model.has_item_keys() ? Json(model.item_key(item)) : Json(item)}, {"name", ShownItem(model, item)}};
}

Status RecommendBest(const RecommendArguments& a, Session& session, OutputFormat format) {
  const ModelFile& model = session.file();
  WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> history, HistoryOf(a, model));
  WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> candidates, FindItems(model, "--candidates", a.candidates));
  WISP_ASSIGN_OR_RETURN(const std::vector<Recommendation> top,
                        session.Recommend(history, {.count = a.count,
                                                    .seen = a.allow_seen ? SeenItems::kAllow : SeenItems::kExclude,
                                                    .candidates = candidates}));
  Json list = Json::array();
  for (size_t i = 0; i < top.size(); ++i) {
    const auto item = static_cast<size_t>(top[i].item);
    if (format == OutputFormat::kText)
      std::printf("%2zu. %-32s %8.3f\n", i + 1, ShownItem(model, item).c_str(), static_cast<double>(top[i].score));
    list.push_back(ItemJson(model, item));
    list.back()["score"] = top[i].score;
  }
  if (format == OutputFormat::kJson) std::printf("%s\n", list.dump(2).c_str());
  SayWhyEmpty(a, top.size());
  return OkStatus();
}

template <class T>
Result<T> Choice(const char* option, const std::string& text,
                 std::initializer_list<std::pair<const char*, T>> choices) {
  std::string allowed;
  for (const auto& [name, value] : choices) {
    if (text == name) return value;
    allowed += std::string(allowed.empty() ? "" : ", ") + name;
  }
  return InvalidArgument(option, " is '", text, "', allowed are ", allowed);
}

// One `wisp recommend --private` from start to end.
class PrivateCommand {
 public:
  PrivateCommand(const RecommendArguments& arguments, Session& session)
      : a_(arguments), p_(arguments.priv), session_(session) {}

  Status Run(OutputFormat format) {
    const ModelFile& model = session_.file();
    WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> history, HistoryOf(a_, model));
    WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> candidates, FindItems(model, "--candidates", a_.candidates));
    PrivateRecommendOptions request{
        .count = a_.count, .seen = a_.allow_seen ? SeenItems::kAllow : SeenItems::kExclude, .candidates = candidates};
    WISP_RETURN_IF_ERROR(ReadSupport(request));
    WISP_ASSIGN_OR_RETURN(const PrivateRecommenderOptions options, Options(request));
    const DecodingNeed need = NeedOf(model, PolicyOf(options));
    if (need.kind == DecodingNeed::Kind::kCharge) WISP_RETURN_IF_ERROR(CheckStrength(options));
    std::optional<privacy::EpsilonDelta> before;
    if (ledger_) {
      WISP_ASSIGN_OR_RETURN(before, ledger_->Limit());
    }
    WISP_ASSIGN_OR_RETURN(PrivateRecommender recommender, PrivateRecommender::Create(session_, options));
    if (ledger_) SayIfRaised(*ledger_, before);
    if (before && p_.lifetime && !recommender.is_free()) WISP_RETURN_IF_ERROR(WarnOfLifetime(recommender, options));
    const Result<std::vector<int32_t>> items = recommender.Recommend(history, request);
    if (!items.ok()) return InWords(items.status(), recommender, options);
    SayWhyEmpty(a_, items->size());
    return Print(recommender, *items, format);
  }

 private:
  // Options that do not go together where draws are charged, in the words of the options.
  Status CheckStrength(const PrivateRecommenderOptions& o) const {
    if (p_.ledger.empty()) return OkStatus();  // refused by the runtime, which says why one is needed
    const bool anchored = o.mode.value_or(o.base != nullptr ? DecodingMode::kBaseAnchored : DecodingMode::kUniform) ==
                          DecodingMode::kBaseAnchored;
    if (anchored && p_.base.empty())
      return InvalidArgument("--mode anchored needs --base, the public model as it was shipped");
    if (p_.clip && !anchored)
      return InvalidArgument(
          "--clip is of the mode anchored, which needs --base; the mode here is mixed, which has --lambda");
    if (p_.lambda && anchored)
      return InvalidArgument(
          "--lambda is of the mode mixed; with --base the mode is anchored, which has --clip, unless --mode is mixed");
    if (anchored && (p_.top_k != 0 || p_.top_p != 1)) {
      return PrivacyRefused(
          "--top-k and --top-p are of the mode mixed: truncation by private scores voids the mode anchored; --support "
          "base:K is allowed");
    }
    if (p_.lambda.has_value() + p_.clip.has_value() + p_.epsilon_per_draw.has_value() + p_.lifetime.has_value() == 1)
      return OkStatus();
    return InvalidArgument(
        "draws from this model are charged: exactly one of --lambda (mode mixed), --clip (mode anchored), "
        "--epsilon-per-draw, or "
        "--epsilon with --delta and --lifetime is needed");
  }

  // How many more draws the ledger has room for; at most `most`.
  Result<uint64_t> DrawsLeft(const privacy::Mechanism& draw, uint64_t most) const {
    return ledger_->StepsThatFit(most, [&](uint64_t draws) -> Result<std::vector<privacy::ChargeRequest>> {
      WISP_ASSIGN_OR_RETURN(privacy::Mechanism mechanism, draw.WithSteps(draws));
      return std::vector<privacy::ChargeRequest>{{.mechanism = mechanism, .run = "lifetime"}};
    });
  }

  // One draw, at its dearest.
  Result<privacy::Mechanism> DrawOf(const PrivateRecommender& r, const PrivateRecommenderOptions& o) const {
    const uint64_t support = o.largest_support > 0 ? o.largest_support : session_.architecture().num_items;
    const DrawCost cost = r.mode() == DecodingMode::kUniform ? UniformDrawCost(support, r.lambda())
                                                             : AnchoredDrawCost(r.clip(), o.temperature, support);
    return ToMechanism(cost, 1, ledger_->adjacency());
  }

  // A target is of the draws alone; the ledger's limit, which was there before, is of everything.
  Status WarnOfLifetime(const PrivateRecommender& r, const PrivateRecommenderOptions& o) const {
    WISP_ASSIGN_OR_RETURN(const auto limit, ledger_->Limit());
    WISP_ASSIGN_OR_RETURN(const privacy::Mechanism draw, DrawOf(r, o));
    WISP_ASSIGN_OR_RETURN(const privacy::Mechanism lifetime, draw.WithSteps(*p_.lifetime));
    WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerPlan> plans, ledger_->Plans());
    for (const privacy::LedgerPlan& plan : plans) {
      for (const privacy::PlannedMechanism& m : plan.mechanisms) {
        if (m.mechanism == lifetime) return OkStatus();  // begun before: that some of it is used is no news
      }
    }
    const std::vector<privacy::ChargeRequest> charges = {{.mechanism = lifetime, .run = "lifetime"}};
    if (ledger_->CheckFits(charges).ok()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const uint64_t left, DrawsLeft(draw, *p_.lifetime));
    Warn("warning: of the --lifetime of " + std::to_string(*p_.lifetime) + " draws the ledger's limit, epsilon " +
         privacy::DoubleText(limit->epsilon()) + " at delta " + privacy::DoubleText(limit->delta()) +
         " over everything, leaves room for " + std::to_string(left));
    return OkStatus();
  }

  // A refusal of the ledger, for people. Any other error stays as it is.
  Status InWords(const Status& refused, const PrivateRecommender& r, const PrivateRecommenderOptions& o) const {
    const bool of_ledger = refused.code() == StatusCode::kPrivacyRefused &&
                           refused.message().find("nothing was charged") != std::string::npos;
    if (!of_ledger || !ledger_) return refused;
    WISP_ASSIGN_OR_RETURN(const auto limit, ledger_->Limit());
    if (!limit) return refused;
    WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(limit->delta()));
    WISP_ASSIGN_OR_RETURN(const double spent, ledger_->Spent(delta));
    WISP_ASSIGN_OR_RETURN(const privacy::Mechanism draw, DrawOf(r, o));
    WISP_ASSIGN_OR_RETURN(const uint64_t left, DrawsLeft(draw, o.draws_per_charge));
    return PrivacyRefused("the budget does not allow ", o.draws_per_charge, " draws: one costs epsilon ",
                          privacy::EpsilonText(r.epsilon_per_draw()), " at delta 0, spent on this data is epsilon ",
                          privacy::EpsilonText(spent), ", the limit is epsilon ", privacy::DoubleText(limit->epsilon()),
                          " at delta ", privacy::DoubleText(limit->delta()), "; ",
                          (left == 0 ? "no more draw" : std::to_string(left) + " more would"),
                          (left == 0 ? " fits" : " fit"), ": nothing was charged");
  }

  // --support all, base:K or model:K; the last exists to be refused.
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

  Result<DrawGoal> Goal() const {
    DrawGoal goal{.lambda = p_.lambda, .clip = p_.clip, .epsilon_per_draw = p_.epsilon_per_draw};
    if (p_.lifetime && *p_.lifetime == 0)
      return InvalidArgument("--lifetime is 0, allowed are 1 and above: the number of draws over all queries");
    if (p_.epsilon.has_value() != p_.lifetime.has_value() || (p_.epsilon && !p_.delta)) {
      return InvalidArgument("a target for all draws is --epsilon, --delta and --lifetime together");
    }
    if (!p_.epsilon) return goal;
    WISP_RETURN_IF_ERROR(privacy::CheckTarget(*p_.epsilon));
    WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(*p_.epsilon, *p_.delta));
    goal.lifetime = DrawGoal::Lifetime{target, *p_.lifetime};
    return goal;
  }

  // What exists is opened whatever its unit: these costs are the same for all. The data set is the one that draws would
  // show.
  Status OpenLedger(const DecodingNeed& need) {
    if (p_.ledger.empty()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const auto unit, privacy::PrivacyUnitFromText(p_.unit.value_or("user")));
    std::string dataset;
    if (need.kind == DecodingNeed::Kind::kCharge) {
      WISP_ASSIGN_OR_RETURN(dataset, DatasetToCharge(need));
    }
    if (!dataset.empty() && !p_.dataset.empty() && p_.dataset != dataset) {
      return PrivacyRefused("--dataset is '", p_.dataset, "', but draws from ", a_.model, " show the data set '",
                            dataset, "': its ledger pays for them");
    }
    if (dataset.empty()) dataset = p_.dataset;
    WISP_RETURN_IF_ERROR(CheckDatasetName(dataset));
    WISP_ASSIGN_OR_RETURN(const auto anchor, AnchorOf(p_.anchor, p_.ledger));
    WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::Open(p_.ledger, {.dataset = dataset,
                                                                                    .unit = unit,
                                                                                    .unit_chosen = p_.unit.has_value(),
                                                                                    .any_unit = true,
                                                                                    .anchor = anchor,
                                                                                    .begin_anchor = p_.anchor.begin}));
    WISP_RETURN_IF_ERROR(ledger.CheckDataset(dataset));
    ledger_.emplace(std::move(ledger));
    return OkStatus();
  }

  Result<PrivateRecommenderOptions> Options(const PrivateRecommendOptions& request) {
    PrivateRecommenderOptions o{.temperature = p_.temperature,
                                .top_k = p_.top_k,
                                .nucleus = p_.top_p,
                                .public_datasets = p_.public_datasets,
                                .num_records_public = p_.num_records_public.value_or(0),
                                .allow_large_delta = p_.allow_large_delta == "yes",
                                .other_data = p_.other_data};
    WISP_RETURN_IF_ERROR(privacy::CheckTuning("--uncharged-tuning", p_.uncharged_tuning));
    o.run = privacy::WithTuning(o.run, p_.uncharged_tuning);
    WISP_ASSIGN_OR_RETURN(
        o.selection,
        Choice<Selection>("--select", p_.select, {{"sample", Selection::kSample}, {"best", Selection::kArgMax}}));
    WISP_ASSIGN_OR_RETURN(o.after_mixing, Choice<AfterMixing>("--after-mixing", p_.after_mixing,
                                                              {{"nothing", AfterMixing::kNothing},
                                                               {"top-k", AfterMixing::kTopK},
                                                               {"top-p", AfterMixing::kNucleus},
                                                               {"temperature", AfterMixing::kTemperature}}));
    if (!p_.mode.empty()) {
      WISP_ASSIGN_OR_RETURN(
          o.mode, Choice<DecodingMode>("--mode", p_.mode,
                                       {{"mixed", DecodingMode::kUniform}, {"anchored", DecodingMode::kBaseAnchored}}));
    }
    WISP_ASSIGN_OR_RETURN(o.goal, Goal());
    if (!p_.base.empty()) {
      WISP_ASSIGN_OR_RETURN(base_, Session::Open(p_.base, Backend::kSimd, Verify::kFull));
      o.base = base_.get();
    }
    if (p_.budget && !p_.delta) return InvalidArgument("--budget needs --delta");
    WISP_ASSIGN_OR_RETURN(o.new_limit, NewLimit(p_.budget, p_.delta.value_or(0)));
    WISP_RETURN_IF_ERROR(CheckLabels(p_.public_datasets, {&session_.file(), base_ ? &base_->file() : nullptr}));
    WISP_RETURN_IF_ERROR(OpenLedger(NeedOf(session_.file(), PolicyOf(o))));
    if (ledger_ && o.new_limit) WISP_RETURN_IF_ERROR(ledger_->CheckLimit(*o.new_limit));
    o.ledger = ledger_ ? &*ledger_ : nullptr;
    // A short public list is cheap: then every draw is charged for what is left of it.
    const size_t listed = request.base_top > 0 ? request.base_top : request.candidates.size();
    if (listed > 0) o.charge_for = ChargeFor::kSupportLeft;
    o.largest_support = static_cast<uint32_t>(listed);
    const size_t most = std::min<size_t>(a_.count, listed > 0 ? listed : session_.architecture().num_items);
    o.draws_per_charge = p_.block > 0 ? p_.block : static_cast<uint32_t>(std::max<size_t>(1, most));
    if (!p_.lifetime) return o;
    const bool block = p_.block > *p_.lifetime;
    if (block || a_.count > *p_.lifetime) {
      return InvalidArgument(
          (block ? "--block is " + std::to_string(p_.block) : "--count is " + std::to_string(a_.count)),
          ", but --lifetime allows ", *p_.lifetime, " draws in all");
    }
    return o;
  }

  // Public numbers only: parameters, charges, what the ledger says.
  Result<Json> CostJson(const PrivateRecommender& r) const {
    Json j = {{"free", r.is_free()}, {"because", r.reason()}};
    if (r.is_free()) return j;
    const bool mixed = r.mode() == DecodingMode::kUniform;
    j["mode"] = mixed ? "mixed" : "anchored";
    j[mixed ? "lambda" : "clip"] = mixed ? r.lambda() : r.clip();
    if (mixed) j["random_share"] = 1 - r.lambda();
    j["temperature"] = p_.temperature;
    j["pure_epsilon_per_draw"] = r.epsilon_per_draw();
    j["draws_charged"] = r.draws_charged();
    WISP_ASSIGN_OR_RETURN(const auto limit, ledger_->Limit());
    j["limit"] = limit ? Json({{"epsilon", limit->epsilon()}, {"delta", limit->delta()}}) : Json();
    if (!limit) return j;
    WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(limit->delta()));
    WISP_ASSIGN_OR_RETURN(const double spent, ledger_->Spent(delta));
    j["spent"] = spent;
    return j;
  }

  void PrintCost(const Json& cost) const {
    if (cost["free"]) {
      std::printf("%s\n", cost["because"].get<std::string>().c_str());
      return;
    }
    const char* strength = cost.contains("lambda") ? "lambda" : "clip";
    std::printf("drawn privately, %s, %s %s: %llu draws charged to %s, epsilon %s each at delta 0\n",
                cost["mode"].get<std::string>().c_str(), strength,
                privacy::EpsilonText(cost[strength].get<double>()).c_str(),
                static_cast<unsigned long long>(cost["draws_charged"]), p_.ledger.c_str(),
                privacy::EpsilonText(cost["pure_epsilon_per_draw"].get<double>()).c_str());
    if (cost.contains("random_share"))
      std::printf("%s %% of the draws are random: the same for every model\n",
                  privacy::ShortText(100 * cost["random_share"].get<double>()).c_str());
    if (!cost["limit"].is_null()) {
      std::printf("spent on this data, everything together: epsilon %s of %s at delta %s\n",
                  privacy::EpsilonText(cost["spent"].get<double>(), 6).c_str(),
                  privacy::DoubleText(cost["limit"]["epsilon"].get<double>()).c_str(),
                  privacy::DoubleText(cost["limit"]["delta"].get<double>()).c_str());
    }
  }

  // What a person who reads the items would not guess.
  void WarnOf(const PrivateRecommender& r, const Json& cost) const {
    if (r.is_free()) return;
    if (r.mode() == DecodingMode::kUniform && r.lambda() < kWeakLambda) {
      Warn("warning: lambda is " + privacy::ShortText(r.lambda()) + ", so " +
           privacy::ShortText(100 * (1 - r.lambda())) + " % of the draws are random, whatever the model says; with " +
           "--base, the public model as it was shipped (mode anchored), draws say more at the same cost");
    }
    if (r.mode() == DecodingMode::kBaseAnchored && r.clip() < kWeakClip) {
      Warn("warning: the clip is " + privacy::ShortText(r.clip()) + ", below " + privacy::ShortText(kWeakClip) +
           ": draws follow the base model almost entirely");
    }
    if (cost["limit"].is_null())
      Warn("warning: the ledger " + p_.ledger +
           " was charged and has no limit: nothing ends the draws; --budget sets one");
  }

  Status Print(const PrivateRecommender& r, const std::vector<int32_t>& items, OutputFormat format) const {
    WISP_ASSIGN_OR_RETURN(const Json cost, CostJson(r));
    WarnOf(r, cost);
    Json j = {{"items", Json::array()}, {"privacy", cost}};
    for (int32_t item : items) j["items"].push_back(ItemJson(session_.file(), static_cast<size_t>(item)));
    if (format == OutputFormat::kJson) {
      std::printf("%s\n", j.dump(2).c_str());
      return OkStatus();
    }
    for (size_t i = 0; i < items.size(); ++i)
      std::printf("%2zu. %s\n", i + 1, ShownItem(session_.file(), static_cast<size_t>(items[i])).c_str());
    PrintCost(cost);
    return OkStatus();
  }

  const RecommendArguments& a_;
  const PrivateRecommendArguments& p_;
  Session& session_;
  std::unique_ptr<Session> base_;
  std::optional<privacy::Ledger> ledger_;
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
  // With a device and without one: an answer does not depend on where it is asked for.
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
