// The C interface's private generating: sampling tokens and charging the ledger for them.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ports/c/sampling_c.h"
#include "ports/c/options_c.h"
#include "ports/c/status_c.h"
#include "ports/c/text_c.h"
#include "runtime/text/private_sampling/private_generator.h"

struct wisp_private_generator {
  std::optional<wisp::privacy::Ledger> ledger;
  std::vector<std::string> texts;
  std::string generated;
  std::optional<wisp::PrivateGenerator> generator;
};

namespace {

using wisp::InvalidArgument;
using wisp::OkStatus;
using wisp::PrivacyRefused;
using wisp::Result;
using wisp::Session;
using wisp::Status;
using wisp::ports::Guarded;

Status CheckTexts(const wisp_private_text_options& o) {
  WISP_RETURN_IF_ERROR(wisp::ports::CheckNumbers("wisp_private_text_options", {{"mixing_floor", o.mixing_floor}}));
  if (o.private_texts == nullptr && o.num_private_texts > 0)
    return InvalidArgument("wisp_private_text_options: private_texts is NULL but their number is not 0");
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_private_text_options", o.private_texts, o.num_private_texts));
  if (o.contexts == 0 && o.num_private_texts > 0)
    return InvalidArgument("wisp_private_text_options: private texts need `contexts`, the public number of them");
  for (size_t i = 0; i < o.num_private_texts; ++i) {
    if (o.private_texts[i] == nullptr)
      return InvalidArgument("wisp_private_text_options: private_texts[", i, "] is NULL");
  }
  return OkStatus();
}

// Reads the options that only decoders have.
Result<wisp::PrivateGeneratorOptions> GeneratorOptions(const wisp_private_text_options& o,
                                                       const wisp::PrivateSampleOptions& samples) {
  wisp::PrivateGeneratorOptions options{.samples = samples, .base_top = o.base_top};
  options.samples.contexts = o.contexts;
  if (o.mixing_floor > 0) options.samples.mixing_floor = o.mixing_floor;
  if (o.mix_with_base == 0) return options;
  if (samples.mode == wisp::DecodingMode::kBaseAnchored)
    return InvalidArgument("wisp_private_text_options: mix_with_base is of the decoding mixed");
  options.samples.mode = wisp::DecodingMode::kNonUniform;
  return options;
}

Status Open(wisp_text_model* model, const wisp_private_text_options* given, wisp_private_generator** out) {
  constexpr char kCalled[] = "wisp_private_generator_open";
  if (model == nullptr || given == nullptr || out == nullptr)
    return InvalidArgument(kCalled, ": model, options and generator must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_private_text_options"));
  WISP_RETURN_IF_ERROR(CheckTexts(o));
  WISP_ASSIGN_OR_RETURN(Session* const session, wisp::ports::GetDecoder(*model, kCalled));
  const wisp_private_options none = WISP_INIT(wisp_private_options);
  const wisp_private_options& samples = o.samples == nullptr ? none : *o.samples;
  WISP_ASSIGN_OR_RETURN(wisp::ports::ReadSamples read, wisp::ports::ReadPrivateSamples(samples, "generation"));
  if (read.base_model != nullptr)
    return InvalidArgument(kCalled, ": the base of a decoder is base_model of these options, not that of `samples`");
  WISP_ASSIGN_OR_RETURN(wisp::PrivateGeneratorOptions options, GeneratorOptions(o, read.options));
  options.samples.public_datasets = read.public_datasets;
  if (o.base_model != nullptr) {
    WISP_ASSIGN_OR_RETURN(options.samples.base, wisp::ports::GetDecoder(*o.base_model, kCalled));
  }
  WISP_RETURN_IF_ERROR(wisp::CheckSampleBackends(*session, options.samples.base));
  // Samples from damaged weights must not be paid for, so weights are verified here even if opening skipped that.
  WISP_RETURN_IF_ERROR(session->file().VerifyWeights());
  if (options.samples.base != nullptr) WISP_RETURN_IF_ERROR(options.samples.base->file().VerifyWeights());
  auto made = std::make_unique<wisp_private_generator>();
  wisp::DecodingNeed need = wisp::FindNeed(session->file(), wisp::MakePolicy(options.samples));
  if (o.contexts > 0) need.datasets.clear();
  const auto shown = o.contexts > 0 ? wisp::ports::SamplesShow::kTexts : wisp::ports::ShownBy(session->file());
  WISP_RETURN_IF_ERROR(
      wisp::ports::OpenGivenLedger(samples, need, o.dataset == nullptr ? "" : o.dataset, shown, made->ledger));
  options.samples.ledger = made->ledger ? &*made->ledger : nullptr;
  made->texts.assign(o.private_texts, o.private_texts + o.num_private_texts);
  wisp::PrivateTexts texts{.texts = made->texts};
  if (o.context_before != nullptr) texts.before = o.context_before;
  if (o.context_after != nullptr) texts.after = o.context_after;
  if (o.public_text != nullptr) texts.public_text = o.public_text;
  WISP_ASSIGN_OR_RETURN(wisp::PrivateGenerator generator,
                        wisp::PrivateGenerator::Create(*session, wisp::ports::FindTokenizer(*model), options, texts));
  made->generator.emplace(std::move(generator));
  *out = made.release();
  return OkStatus();
}

// Refuses options of plain generation that change a token's distribution.
Status CheckPlain(const wisp::SamplingOptions& o) {
  if (o.temperature == 0)
    return PrivacyRefused("wisp_private_generate: greedy is arg-max, and the guarantee is that of random samples");
  if (o.temperature != 1 || o.top_k != 0 || o.top_p != 1)
    return PrivacyRefused("wisp_private_generate: temperature, top_k and top_p are fixed when the generator is opened");
  if (o.min_p != 0 || o.repetition_penalty != 1 || o.seed != 0)
    return PrivacyRefused(
        "wisp_private_generate: no law here is charged for min_p and repetition_penalty, and a seed "
        "leaves no guarantee");
  return OkStatus();
}

Status Generate(wisp_private_generator* generator, const char* prompt, const wisp_generate_options* given,
                wisp_on_text on_text, void* user_data, wisp_generated* out) {
  if (generator == nullptr || prompt == nullptr)
    return InvalidArgument("wisp_private_generate: generator and prompt must not be NULL");
  WISP_ASSIGN_OR_RETURN(wisp::GenerateOptions o, wisp::ports::MakeGenerateOptions(given));
  WISP_RETURN_IF_ERROR(CheckPlain(o.sampling));
  // Checked before anything is charged: a text that is paid for must reach the caller.
  if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_generated"));
  WISP_ASSIGN_OR_RETURN(wisp::Generated made,
                        generator->generator->Generate(prompt,
                                                       {.max_new_tokens = o.max_new_tokens, .stop = std::move(o.stop)},
                                                       wisp::ports::ShowTo(on_text, user_data)));
  return wisp::ports::FillGenerated(std::move(made), generator->generated, out);
}

}  // namespace

extern "C" {

wisp_code wisp_private_generator_open(wisp_text_model* model, const wisp_private_text_options* options,
                                      wisp_private_generator** generator, wisp_error* error) {
  return Guarded(error, [&] { return Open(model, options, generator); });
}

void wisp_private_generator_close(wisp_private_generator* generator) { delete generator; }

int32_t wisp_private_generator_is_free(const wisp_private_generator* generator) {
  return generator != nullptr && generator->generator->is_free() ? 1 : 0;
}

wisp_code wisp_private_generate(wisp_private_generator* generator, const char* prompt,
                                const wisp_generate_options* options, wisp_on_text on_text, void* user_data,
                                wisp_generated* generated, wisp_error* error) {
  return Guarded(error, [&] { return Generate(generator, prompt, options, on_text, user_data, generated); });
}

}  // extern "C"
