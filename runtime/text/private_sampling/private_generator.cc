#include "runtime/text/private_sampling/private_generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/core/text.h"
#include "runtime/private_sampling/sample_law.h"
#include "runtime/privacy/statement.h"

namespace wisp {
namespace {

// Both models must use the same ids for the same tokens.
Status CheckTokenizers(const Session& session, const Session* base) {
  if (base == nullptr) return OkStatus();
  const auto ours = session.file().tokenizer(), theirs = base->file().tokenizer();
  if (std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end())) return OkStatus();
  return InvalidArgument("the base model ", base->file().name(), " has another tokenizer than ", session.file().name(),
                         ": their tokens cannot be compared");
}

Status CheckSupport(const PrivateGeneratorOptions& o) {
  if (o.base_top == 0 || o.samples.base != nullptr || o.samples.contexts > 0) return OkStatus();
  return InvalidArgument("the base's best tokens are to be sampled from, but there is no base model");
}

bool IsFinite(float score) { return score - score == 0; }

}  // namespace

PrivateGenerator::PrivateGenerator(Session& session, const text::Tokenizer& tokenizer, const PrivateGeneratorOptions& o,
                                   PrivateTexts texts, SamplingSetup setup)
    : session_(&session),
      base_(o.samples.base),
      tokenizer_(&tokenizer),
      base_top_(o.base_top),
      num_contexts_(o.samples.contexts),
      only_text_(o.only_text),
      block_(o.samples.samples_per_charge),
      mixing_floor_(o.samples.mixing_floor),
      ledger_(o.samples.ledger),
      run_(o.samples.run),
      noise_(o.samples.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure),
      texts_(std::move(texts)),
      setup_(std::move(setup)),
      scores_(session.architecture().num_items),
      base_scores_(scores_.size()),
      sums_(setup_.mode == DecodingMode::kAggregate ? tokenizer.size() : 0),
      mixing_(setup_.mode == DecodingMode::kNonUniform ? tokenizer.size() : 0) {}

Result<PrivateGenerator> PrivateGenerator::Create(Session& session, const text::Tokenizer& tokenizer,
                                                  const PrivateGeneratorOptions& asked, PrivateTexts texts) {
  const PrivateGeneratorOptions& options = asked;
  WISP_RETURN_IF_ERROR(CheckSampleBackends(session, options.samples.base));
  WISP_RETURN_IF_ERROR(CheckGenerates(session, tokenizer, {}));
  WISP_RETURN_IF_ERROR(CheckTokenizers(session, options.samples.base));
  WISP_RETURN_IF_ERROR(CheckSupport(options));
  PrivateSampleOptions samples = options.samples;
  samples.charge_for = options.base_top > 0 ? ChargeFor::kSupportLeft : ChargeFor::kWholeCatalogue;
  samples.largest_support = options.base_top;
  WISP_ASSIGN_OR_RETURN(SamplingSetup setup, SetUpSampling(session, samples, static_cast<uint32_t>(tokenizer.size())));
  return PrivateGenerator(session, tokenizer, options, std::move(texts), std::move(setup));
}

Result<std::vector<privacy::ChargeRequest>> PrivateGenerator::CheckRoom(uint32_t tokens) {
  short_block_ = only_text_;
  const uint64_t paid = setup_.sampler.samples_left_in_block();
  if (setup_.cost.kind == SampleCost::Kind::kNothing || tokens <= paid) return std::vector<privacy::ChargeRequest>();
  const auto charges = [&](uint64_t samples) -> Result<std::vector<privacy::ChargeRequest>> {
    if (samples == 0) return std::vector<privacy::ChargeRequest>();
    WISP_ASSIGN_OR_RETURN(const auto mechanism, ToMechanism(setup_.cost, samples, ledger_->adjacency()));
    return std::vector<privacy::ChargeRequest>{
        {.mechanism = mechanism, .run = run_, .purpose = "decoding", .noise = noise_}};
  };
  WISP_ASSIGN_OR_RETURN(auto all, charges(tokens - paid));
  // the limit that this text will set, if the ledger has none yet
  WISP_ASSIGN_OR_RETURN(const auto limit, setup_.promise.LimitToSet());
  const Status fits = ledger_->CheckFits(all, limit);
  if (fits.ok() && !only_text_) {
    WISP_ASSIGN_OR_RETURN(auto whole, charges((tokens - paid + block_ - 1) / block_ * block_));
    short_block_ = !ledger_->CheckFits(whole, limit).ok();
    if (!short_block_) all = std::move(whole);
  }
  if (fits.ok()) return all;
  if (fits.code() != StatusCode::kPrivacyRefused) return fits;
  WISP_ASSIGN_OR_RETURN(const uint64_t left, ledger_->StepsThatFit(tokens - paid, charges, limit));
  return PrivacyRefused("the budget has room for ", Counted(left + paid, "token"), ", and up to ", tokens,
                        tokens == 1 ? " is asked for: " : " are asked for: ", fits.message());
}

// Checks the budget for the whole text at once, so the charges can be a plan. Otherwise its later blocks would count as
// chosen after seeing earlier results. A ledger without a limit needs no plan.
Status PrivateGenerator::PlanText(std::span<const privacy::ChargeRequest> charges) {
  if (charges.empty()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const auto limit, ledger_->Limit());
  return limit ? ledger_->PlanRun(charges) : OkStatus();
}

Result<std::vector<int32_t>> PrivateGenerator::Begin(std::string_view prompt, uint32_t max_new_tokens,
                                                     size_t& max_tokens) {
  max_tokens = session_->architecture().max_length;
  if (num_contexts_ > 0) {
    contexts_.reset();
    WISP_ASSIGN_OR_RETURN(PrivateContexts contexts,
                          PrivateContexts::Create(*session_, *tokenizer_, texts_, prompt,
                                                  {.contexts = num_contexts_, .max_new_tokens = max_new_tokens}));
    contexts_.emplace(std::move(contexts));
    return contexts_->public_tokens();
  }
  if (base_ != nullptr) max_tokens = std::min<size_t>(max_tokens, base_->architecture().max_length);
  std::vector<int32_t> tokens;
  WISP_RETURN_IF_ERROR(PromptTokens(*tokenizer_, prompt, max_tokens, tokens));
  return tokens;
}

Result<Generated> PrivateGenerator::Generate(std::string_view prompt, const PrivateGenerateOptions& o,
                                             const OnText& on_text) {
  WISP_RETURN_IF_ERROR(CheckGenerates(*session_, *tokenizer_, o.stop));
  size_t max_tokens = 0;
  WISP_ASSIGN_OR_RETURN(std::vector<int32_t> begins, Begin(prompt, o.max_new_tokens, max_tokens));
  const size_t prompt_tokens = begins.size();
  const auto most = static_cast<uint32_t>(std::min<size_t>(o.max_new_tokens, max_tokens - prompt_tokens));
  WISP_ASSIGN_OR_RETURN(const auto charges, CheckRoom(most));
  WISP_RETURN_IF_ERROR(setup_.promise.Write());
  WISP_RETURN_IF_ERROR(PlanText(charges));
  const NextToken next = [&](std::span<const int32_t> tokens) {
    return Next(tokens, prompt_tokens, most - static_cast<uint32_t>(tokens.size() - prompt_tokens));
  };
  return GrowText(*tokenizer_, std::move(begins),
                  {.max_new_tokens = o.max_new_tokens, .max_tokens = max_tokens, .stop = o.stop}, next, on_text);
}

Status PrivateGenerator::ReadBase(std::span<const int32_t> tokens, size_t prompt_tokens) {
  const Session& from = base_ != nullptr ? *base_ : *session_;
  WISP_RETURN_IF_ERROR(contexts_ ? contexts_->PublicScores(tokens.subspan(prompt_tokens), base_scores_)
                                 : base_->Score(tokens, base_scores_));
  return std::all_of(base_scores_.begin(), base_scores_.end(), IsFinite) ? OkStatus() : from.NotFinite();
}

// Takes the best items, ties by id, and returns them in the order of their ids.
std::vector<int32_t> PrivateGenerator::SupportFromBase() const {
  std::vector<int32_t> support(tokenizer_->size());
  std::iota(support.begin(), support.end(), 0);
  const auto score = [&](int32_t token) { return base_scores_[static_cast<size_t>(token)]; };
  if (base_top_ == 0 || base_top_ >= support.size()) return support;
  std::nth_element(support.begin(), support.begin() + base_top_, support.end(),
                   [&](int32_t a, int32_t b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });
  support.resize(base_top_);
  std::sort(support.begin(), support.end());
  return support;
}

// Mixes (1 - floor) softmax of the base over the support with floor uniform, so no item is below floor / size.
void PrivateGenerator::MixWithBase(std::span<const int32_t> support) {
  std::vector<double> weights;
  SoftmaxWeights(base_scores_, support, {}, weights);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double least = mixing_floor_ / static_cast<double>(support.size());
  for (size_t i = 0; i < support.size(); ++i)
    mixing_[static_cast<size_t>(support[i])] = (1 - mixing_floor_) * weights[i] / total + least;
}

Result<int32_t> PrivateGenerator::Next(std::span<const int32_t> tokens, size_t prompt_tokens, uint32_t at_most) {
  const size_t n = tokenizer_->size();  // the model may have more rows than the tokenizer has tokens
  const std::span<const float> scores = std::span(scores_).first(n), base = std::span(base_scores_).first(n);
  const bool reads_base = !is_free() && (setup_.mode != DecodingMode::kUniform || base_top_ > 0);
  SampleRequest request{.at_most = short_block_ ? at_most : 0};
  std::vector<int32_t> support;
  if (reads_base) {
    WISP_RETURN_IF_ERROR(ReadBase(tokens, prompt_tokens));
    support = SupportFromBase();
    request.candidates = support;
  }
  if (contexts_) {
    WISP_RETURN_IF_ERROR(contexts_->Sum(tokens.subspan(prompt_tokens), setup_.clip, base, sums_));
    request.sums = sums_;
  } else {
    WISP_RETURN_IF_ERROR(session_->Score(tokens, scores_));
    request.scores = scores;
  }
  // Reports non-finite scores only for weights that are sampled freely. For other weights it depends on the records if
  // scores are finite, so no error may reveal it.
  if (is_free() && !std::all_of(scores_.begin(), scores_.end(), IsFinite)) return session_->NotFinite();
  if (setup_.mode == DecodingMode::kBaseAnchored) Centre(std::span(scores_).first(n), base);
  if (setup_.mode == DecodingMode::kBaseAnchored || setup_.mode == DecodingMode::kAggregate) request.base_scores = base;
  if (setup_.mode == DecodingMode::kNonUniform) {
    MixWithBase(support);
    request.mixing = mixing_;
  }
  WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> sampled, setup_.sampler.Sample(request));
  return sampled.front();
}

}  // namespace wisp
