#include "tools/wisp/private_samples.h"

#include "runtime/core/text.h"
#include "runtime/private_sampling/sample_cost.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/statement.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

// Below these values, samples depend little on the model, so a warning says so.
constexpr double kWeakLambda = 0.5, kWeakClip = 0.5;

bool Mixes(DecodingMode mode) { return mode == DecodingMode::kUniform || mode == DecodingMode::kNonUniform; }

const char* GetName(DecodingMode mode) {
  switch (mode) {
    case DecodingMode::kUniform:
      return "mixed";
    case DecodingMode::kNonUniform:
      return "mixed-with-base";
    case DecodingMode::kBaseAnchored:
      return "anchored";
    case DecodingMode::kAggregate:
      return "aggregate";
    case DecodingMode::kPlain:
      break;
  }
  return "free";
}

}  // namespace

// Checks the options that each mode needs.
Status PrivateSamples::CheckMode(DecodingMode mode, bool of_texts) const {
  if (of_texts && !p_.base.empty())
    return InvalidArgument(
        "--base does not go with --private-texts: there the mode is aggregate, and the public context is the base");
  if (of_texts != (mode == DecodingMode::kAggregate))
    return InvalidArgument("--mode is ", GetName(mode), of_texts ? ", but with" : ", which needs",
                           " --private-texts and --contexts", of_texts ? " the mode is aggregate" : "");
  if (mode == DecodingMode::kBaseAnchored && p_.base.empty())
    return InvalidArgument("--mode anchored needs --base, the public model as it was shipped");
  return OkStatus();
}

// Checks options that exclude each other if samples are charged, in the words of the options.
Status PrivateSamples::CheckStrength(const PrivateSampleOptions& o) const {
  if (p_.ledger.empty()) return OkStatus();  // the runtime refuses it, and says why a ledger is needed
  const DecodingMode unless_said = o.contexts > 0      ? DecodingMode::kAggregate
                                   : o.base != nullptr ? DecodingMode::kBaseAnchored
                                                       : DecodingMode::kUniform;
  const DecodingMode mode = o.mode.value_or(unless_said);
  const bool clips = mode == DecodingMode::kBaseAnchored || mode == DecodingMode::kAggregate;
  WISP_RETURN_IF_ERROR(CheckMode(mode, o.contexts > 0));
  if (p_.clip && !clips)
    return InvalidArgument("--clip is of the mode anchored, which needs --base; the mode here is ", GetName(mode),
                           ", which has --lambda");
  if (p_.lambda && clips)
    return InvalidArgument("--lambda is of the mode mixed; the mode here is ", GetName(mode), ", which has --clip",
                           mode == DecodingMode::kBaseAnchored ? ", as --base is given, unless --mode is mixed" : "");
  if (clips && (p_.top_k != 0 || p_.top_p != 1)) {
    return PrivacyRefused("--top-k and --top-p are of the mode mixed: truncation by private scores voids the mode ",
                          GetName(mode), "; --support base:K is allowed");
  }
  if (p_.lambda.has_value() + p_.clip.has_value() + p_.epsilon_per_sample.has_value() +
          p_.planned_samples.has_value() ==
      1)
    return OkStatus();
  const bool only_limits = p_.budget && !p_.lambda && !p_.clip && !p_.epsilon_per_sample && !p_.planned_samples;
  return InvalidArgument("samples from this model are charged: exactly one of ", clips ? "--clip" : "--lambda",
                         " (mode ", GetName(mode),
                         "), --epsilon-per-sample and --epsilon (for --planned-samples together, at --delta) ",
                         "is needed", only_limits ? "; --budget limits the ledger alone" : "");
}

Result<uint64_t> PrivateSamples::SamplesLeft(const SamplingSetup& setup, uint64_t most) const {
  WISP_ASSIGN_OR_RETURN(const auto limit, setup.promise.LimitToSet());
  return ledger_->StepsThatFit(
      most,
      [&](uint64_t samples) -> Result<std::vector<privacy::ChargeRequest>> {
        WISP_ASSIGN_OR_RETURN(privacy::Mechanism mechanism, ToMechanism(setup.cost, samples, ledger_->adjacency()));
        return std::vector<privacy::ChargeRequest>{{.mechanism = mechanism, .run = "planned_samples"}};
      },
      limit);
}

Result<uint64_t> PrivateSamples::CountCharged(const privacy::Mechanism& planned) const {
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger_->Entries());
  uint64_t charged = 0;
  for (const privacy::LedgerEntry& entry : entries)
    if (entry.mechanism.DiffersInStepsOnly(planned)) charged += entry.mechanism.steps();
  return charged;
}

Result<uint64_t> PrivateSamples::ComputeLeft(const privacy::Mechanism& planned) const {
  WISP_ASSIGN_OR_RETURN(const uint64_t charged, CountCharged(planned));
  if (charged >= planned.steps()) return 0;
  return ledger_->StepsThatFit(
      planned.steps() - charged, [&](uint64_t samples) -> Result<std::vector<privacy::ChargeRequest>> {
        if (samples == 0) return std::vector<privacy::ChargeRequest>();
        WISP_ASSIGN_OR_RETURN(const privacy::Mechanism some, planned.WithSteps(samples));
        return std::vector<privacy::ChargeRequest>{{.mechanism = some, .run = "planned_samples"}};
      });
}

// A target covers the samples alone; the ledger's existing limit covers everything.
Status PrivateSamples::WarnOfPlan(const SamplingSetup& setup) const {
  WISP_ASSIGN_OR_RETURN(const auto limit, ledger_->Limit());
  WISP_ASSIGN_OR_RETURN(const privacy::Mechanism planned_samples,
                        ToMechanism(setup.cost, *p_.planned_samples, ledger_->adjacency()));
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerPlan> plans, ledger_->Plans());
  for (const privacy::LedgerPlan& plan : plans) {
    for (const privacy::PlannedMechanism& m : plan.mechanisms) {
      if (m.mechanism == planned_samples) return OkStatus();  // begun before, so it is known that a part is used
    }
  }
  const std::vector<privacy::ChargeRequest> charges = {{.mechanism = planned_samples, .run = "planned_samples"}};
  WISP_ASSIGN_OR_RETURN(const auto new_limit, setup.promise.LimitToSet());
  if (ledger_->CheckFits(charges, new_limit).ok()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const uint64_t left, SamplesLeft(setup, *p_.planned_samples));
  const auto held = new_limit ? new_limit : limit;
  Warn("warning: of " + std::to_string(*p_.planned_samples) + " planned samples the ledger's limit, epsilon " +
       privacy::DoubleText(held->epsilon()) + " at delta " + privacy::DoubleText(held->delta()) +
       " over everything, leaves room for " + std::to_string(left));
  return OkStatus();
}

// Warns if the ledger was begun with a plan of samples at another cost: the rest of that plan stays unused.
Status PrivateSamples::WarnOfOtherPlan(const SamplingSetup& setup) const {
  WISP_ASSIGN_OR_RETURN(const privacy::Mechanism one, ToMechanism(setup.cost, 1, ledger_->adjacency()));
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerPlan> plans, ledger_->Plans());
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger_->Entries());
  if (plans.empty() || entries.empty() || plans.back().mechanisms.size() != 1) return OkStatus();
  const privacy::Mechanism planned = plans.back().mechanisms.front().mechanism;
  if (!planned.is_sample() || planned.DiffersInStepsOnly(one)) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const uint64_t left, ComputeLeft(planned));
  if (left == 0) return OkStatus();
  const std::string planned_samples = std::to_string(planned.steps());
  Warn("warning: the ledger " + p_.ledger + " was begun with a plan of " + Counted(planned.steps(), "sample") +
       ", of " + "which " + std::to_string(left) + (left == 1 ? " is" : " are") +
       " left; new samples have another cost, so they count beside it, as chosen after looking. To sample the rest, "
       "give "
       "the options of that plan (--planned-samples " +
       planned_samples + " with the same --epsilon, or the same --max-tokens)");
  return OkStatus();
}

// A target without a planned number becomes the limit of a new ledger, together with the text that it is for.
Status PrivateSamples::WarnOfOneText(const SamplingSetup& setup) const {
  if (!p_.planned_of_one) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const auto limit, setup.promise.LimitToSet());
  if (!limit || limit->epsilon() > *p_.epsilon) return OkStatus();
  Warn("warning: without --planned-samples this text may spend the whole limit of the ledger " + p_.ledger +
       ", epsilon " + privacy::DoubleText(limit->epsilon()) + " at delta " + privacy::DoubleText(limit->delta()) +
       ", and no later text will be paid for; to generate again begin a ledger with --planned-samples N, the number of "
       "tokens "
       "of all texts together");
  return OkStatus();
}

Status PrivateSamples::Begin(const SamplingSetup& setup) {
  WarnIfWeak(setup);
  if (setup.cost.kind == SampleCost::Kind::kNothing) return OkStatus();
  if (!before_) return WarnOfOneText(setup);
  return p_.planned_samples && !p_.planned_of_one ? WarnOfPlan(setup) : WarnOfOtherPlan(setup);
}

void PrivateSamples::WarnIfRaised() const {
  if (ledger_) tools::WarnIfRaised(*ledger_, before_);
}

Status PrivateSamples::InWords(const Status& refused, const SamplingSetup& setup, uint64_t samples) const {
  const bool of_ledger = refused.code() == StatusCode::kPrivacyRefused &&
                         refused.message().find("nothing was charged") != std::string::npos;
  if (!of_ledger || !ledger_) return refused;
  WISP_ASSIGN_OR_RETURN(const auto limit, ledger_->Limit());
  if (!limit) return refused;
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(limit->delta()));
  WISP_ASSIGN_OR_RETURN(const double spent, ledger_->Spent(delta));
  WISP_ASSIGN_OR_RETURN(const uint64_t left, SamplesLeft(setup, samples));
  return PrivacyRefused("the budget does not allow ", samples, " samples: one costs epsilon ",
                        privacy::EpsilonText(ComputeEpsilon(setup.cost)), " at delta 0, spent on this data is epsilon ",
                        privacy::EpsilonText(spent), ", the limit is epsilon ", privacy::DoubleText(limit->epsilon()),
                        " at delta ", privacy::DoubleText(limit->delta()), "; ",
                        (left == 0 ? "no more sample" : std::to_string(left) + " more would"),
                        (left == 0 ? " fits" : " fit"), ": nothing was charged");
}

Status PrivateSamples::PlanInWords(const Status& refused, const SamplingSetup& setup, const char* thing) const {
  const bool is_charged = ledger_ && setup.cost.kind != SampleCost::Kind::kNothing;
  const bool has_plan = is_charged && p_.planned_samples && !p_.planned_of_one;
  if (!has_plan || refused.code() != StatusCode::kPrivacyRefused) return refused;
  WISP_ASSIGN_OR_RETURN(const auto planned_samples, ToMechanism(setup.cost, *p_.planned_samples, ledger_->adjacency()));
  WISP_ASSIGN_OR_RETURN(const uint64_t charged, CountCharged(planned_samples));
  WISP_ASSIGN_OR_RETURN(const uint64_t left, SamplesLeft(setup, 1));
  if (charged < *p_.planned_samples || left > 0) return refused;
  return PrivacyRefused("all ", *p_.planned_samples, " planned ", thing, "s are used up and charged to ", p_.ledger,
                        ": nothing more was charged");
}

Result<SampleGoal> PrivateSamples::Goal() const {
  SampleGoal goal{.lambda = p_.lambda, .clip = p_.clip, .epsilon_per_sample = p_.epsilon_per_sample};
  if (p_.planned_samples && *p_.planned_samples == 0)
    return InvalidArgument("--planned-samples is 0, allowed are 1 and above: the number of samples over all queries");
  if (p_.epsilon.has_value() != p_.planned_samples.has_value() || (p_.epsilon && !p_.delta)) {
    return InvalidArgument("a target for all samples is --epsilon, --delta and --planned-samples together, and ",
                           !p_.epsilon           ? "--epsilon"
                           : !p_.planned_samples ? "--planned-samples"
                                                 : "--delta",
                           " is not given");
  }
  if (!p_.epsilon) return goal;
  WISP_RETURN_IF_ERROR(privacy::CheckTarget(*p_.epsilon));
  WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(*p_.epsilon, *p_.delta));
  goal.planned = SampleGoal::Planned{target, *p_.planned_samples};
  return goal;
}

// The ledger belongs to the data set that samples would reveal. If the model's records are protected, an existing
// ledger is opened with any unit, since samples cost the same for all units. If private texts are in the prompt, one
// text is charged for: another unit must be named, and must be the ledger's.
Status PrivateSamples::OpenLedger(const DecodingNeed& need, bool of_texts, bool is_decoder) {
  if (p_.ledger.empty()) return OkStatus();
  // Decoders learn lines, paragraphs or chunks, whoever wrote them.
  const char* usual = of_texts || is_decoder ? "interaction" : "user";
  WISP_ASSIGN_OR_RETURN(const auto unit, privacy::PrivacyUnitFromText(p_.unit.value_or(usual)));
  std::string dataset;
  if (need.kind == DecodingNeed::Kind::kCharge) {
    WISP_ASSIGN_OR_RETURN(dataset, DatasetToCharge(need));
  }
  if (!dataset.empty() && !p_.dataset.empty() && p_.dataset != dataset) {
    return PrivacyRefused("--dataset is '", p_.dataset, "', but samples from ", model_, " show the data set '", dataset,
                          "': its ledger pays for them");
  }
  if (dataset.empty()) dataset = p_.dataset;
  WISP_RETURN_IF_ERROR(CheckDatasetName(dataset));
  WISP_ASSIGN_OR_RETURN(const auto anchor, OpenAnchor(p_.anchor, p_.ledger));
  const privacy::RecordSpec record = MakeSampleRecord(unit, of_texts);
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                        privacy::Ledger::Open(p_.ledger, {.dataset = dataset,
                                                          .record = record,
                                                          .unit_chosen = of_texts || p_.unit.has_value(),
                                                          .anchor = anchor,
                                                          .begin_anchor = p_.anchor.begin}));
  WISP_RETURN_IF_ERROR(ledger.CheckDataset(dataset));
  ledger_.emplace(std::move(ledger));
  return OkStatus();
}

Status PrivateSamples::Read(const Session& session, PrivateSampleOptions& o) {
  o.temperature = p_.temperature;
  o.top_k = p_.top_k;
  o.nucleus = p_.top_p;
  o.public_datasets = p_.public_datasets;
  o.num_records_public = p_.num_records_public.value_or(0);
  o.allow_large_delta = p_.allow_large_delta == "yes";
  o.other_data = p_.other_data;
  WISP_RETURN_IF_ERROR(privacy::CheckTuning("--uncharged-tuning", p_.uncharged_tuning));
  o.run = privacy::WithTuning(o.run, p_.uncharged_tuning);
  WISP_ASSIGN_OR_RETURN(o.goal, Goal());
  if (!p_.base.empty()) {
    WISP_ASSIGN_OR_RETURN(base_, Session::Open(p_.base, Backend::kSimd, Verify::kFull));
    o.base = base_.get();
  }
  if (p_.budget && !p_.delta) return InvalidArgument("--budget needs --delta");
  WISP_ASSIGN_OR_RETURN(o.new_limit, NewLimit(p_.budget, p_.delta.value_or(0)));
  WISP_RETURN_IF_ERROR(CheckLabels(p_.public_datasets, {&session.file(), base_ ? &base_->file() : nullptr}));
  DecodingNeed need = FindNeed(session.file(), MakePolicy(o));
  if (o.contexts > 0) need = {.reason = "private texts are in the prompt"};  // the ledger protects the texts
  WISP_RETURN_IF_ERROR(OpenLedger(need, o.contexts > 0, !session.file().tokenizer().empty()));
  if (ledger_ && o.new_limit) WISP_RETURN_IF_ERROR(ledger_->CheckLimit(*o.new_limit));
  o.ledger = ledger_ ? &*ledger_ : nullptr;
  if (need.kind == DecodingNeed::Kind::kCharge) WISP_RETURN_IF_ERROR(CheckStrength(o));
  if (ledger_) {
    WISP_ASSIGN_OR_RETURN(before_, ledger_->Limit());
  }
  return OkStatus();
}

Result<Json> PrivateSamples::CostJson(const SamplingSetup& setup) const {
  const bool free = setup.mode == DecodingMode::kPlain;
  Json j = {{"free", free}, {"because", setup.reason}};
  if (free) return j;
  const bool mixed = Mixes(setup.mode);
  j["mode"] = GetName(setup.mode);
  j[mixed ? "lambda" : "clip"] = mixed ? setup.lambda : setup.clip;
  if (mixed) j["random_share"] = 1 - setup.lambda;
  j["temperature"] = p_.temperature;
  j["pure_epsilon_per_sample"] = ComputeEpsilon(setup.cost);
  j["samples_charged"] = setup.sampler.samples_charged();
  WISP_ASSIGN_OR_RETURN(const auto limit, ledger_->Limit());
  j["limit"] = limit ? Json({{"epsilon", limit->epsilon()}, {"delta", limit->delta()}}) : Json();
  if (!limit) return j;
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(limit->delta()));
  WISP_ASSIGN_OR_RETURN(const double spent, ledger_->Spent(delta));
  j["spent"] = spent;
  if (!p_.planned_samples || p_.planned_of_one) return j;
  j["planned_samples"] = *p_.planned_samples;
  WISP_ASSIGN_OR_RETURN(const auto planned_samples, ToMechanism(setup.cost, *p_.planned_samples, ledger_->adjacency()));
  WISP_ASSIGN_OR_RETURN(j["planned_left"], ComputeLeft(planned_samples));
  return j;
}

void PrivateSamples::PrintCost(const Json& cost, const char* thing, std::FILE* to) const {
  if (cost["free"]) {
    std::fprintf(to, "%s\n", cost["because"].get<std::string>().c_str());
    return;
  }
  const char* strength = cost.contains("lambda") ? "lambda" : "clip";
  std::fprintf(to, "sampled privately, %s, %s %s: %s charged to %s, epsilon %s each at delta 0\n",
               cost["mode"].get<std::string>().c_str(), strength,
               privacy::EpsilonText(cost[strength].get<double>()).c_str(),
               Counted(cost["samples_charged"].get<uint64_t>(), thing).c_str(), p_.ledger.c_str(),
               privacy::EpsilonText(cost["pure_epsilon_per_sample"].get<double>()).c_str());
  if (cost.contains("random_share"))
    std::fprintf(to, "%s %% of the %ss are random: the same for every model\n",
                 privacy::ShortText(100 * cost["random_share"].get<double>()).c_str(), thing);
  if (!cost["limit"].is_null()) {
    std::fprintf(to, "spent on this data, everything together: epsilon %s of %s at delta %s\n",
                 privacy::EpsilonText(cost["spent"].get<double>(), 6).c_str(),
                 privacy::DoubleText(cost["limit"]["epsilon"].get<double>()).c_str(),
                 privacy::DoubleText(cost["limit"]["delta"].get<double>()).c_str());
  }
  if (cost.contains("planned_samples"))
    std::fprintf(to, "of %s planned, %llu %s left\n", Counted(cost["planned_samples"].get<uint64_t>(), thing).c_str(),
                 static_cast<unsigned long long>(cost["planned_left"]), cost["planned_left"] == 1 ? "is" : "are");
}

void PrivateSamples::WarnIfWeak(const SamplingSetup& setup) {
  if (setup.mode == DecodingMode::kPlain) return;
  if (Mixes(setup.mode) && setup.lambda < kWeakLambda) {
    Warn("warning: lambda is " + privacy::ShortText(setup.lambda) + ", so " +
         privacy::ShortText(100 * (1 - setup.lambda)) + " % of the samples are random, whatever the model says; with " +
         "--base, the public model as it was shipped (mode anchored), samples say more at the same cost");
  }
  if (!Mixes(setup.mode) && setup.clip < kWeakClip) {
    Warn("warning: the clip is " + privacy::ShortText(setup.clip) + ", below " + privacy::ShortText(kWeakClip) +
         ": samples follow the " + (setup.mode == DecodingMode::kAggregate ? "public context" : "base model") +
         " almost entirely");
  }
}

void PrivateSamples::WarnIfUnlimited(const Json& cost) const {
  if (!cost["free"] && cost["limit"].is_null())
    Warn("warning: the ledger " + p_.ledger +
         " was charged and has no limit: nothing ends the samples; --budget sets one");
}

}  // namespace wisp::tools
