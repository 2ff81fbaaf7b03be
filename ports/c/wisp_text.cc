// Texts over the C interface: encoders, classifiers, decoders.
#include "ports/c/wisp_text.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "ports/c/model_c.h"
#include "ports/c/text_c.h"
#include "runtime/text/classifier_session.h"
#include "runtime/text/generate_batch.h"
#include "runtime/text/texts.h"

struct wisp_text_model {
  wisp::ModelFile file;  // the file of an encoder or a classifier; a decoder's is in its session
  std::unique_ptr<wisp::ClassifierSession> represents;  // null for a decoder
  std::unique_ptr<wisp::Session> decodes;               // null unless the model is a decoder
  std::unique_ptr<wisp::text::Tokenizer> tokenizer;
  wisp::text::Scratch scratch;
  std::vector<int32_t> tokens;
  std::string generated;
  std::vector<std::string> generated_together;
  size_t num_threads = 1;  // the number that the model was opened with
  wisp::Executor executor = {};

  const wisp::ModelFile& model() const { return decodes ? decodes->file() : file; }
  const wisp::Architecture& architecture() const { return model().architecture(); }
  bool is_classifier() const { return model().is_classifier(); }
};

namespace {

using wisp::Accept;
using wisp::ClassifierSession;
using wisp::InvalidArgument;
using wisp::ModelFile;
using wisp::OkStatus;
using wisp::Result;
using wisp::Session;
using wisp::Status;
using wisp::Unsupported;
using wisp::ports::Guarded;
using wisp::ports::MakeOptions;
using wisp::ports::OpenChoice;

Result<OpenChoice> ChoiceForTexts(const wisp_open_options* given) {
  WISP_ASSIGN_OR_RETURN(const auto o, MakeOptions(given, "wisp_open_options"));
  if (o.device != nullptr || o.allocator != nullptr || o.max_bytes != 0)
    return Unsupported("wisp_text_open: device, allocator and max_bytes are of wisp_model_open_with; leave them at 0");
  return wisp::ports::ParseChoice(given);
}

// Creates an encoder, a classifier or a decoder, as the file's contents say.
Status Open(const char* path, const wisp_open_options* given, wisp_text_model** out) {
  if (path == nullptr || out == nullptr) return InvalidArgument("wisp_text_open: path and model must not be NULL");
  WISP_ASSIGN_OR_RETURN(OpenChoice choice, ChoiceForTexts(given));
  WISP_ASSIGN_OR_RETURN(ModelFile file, wisp::ports::OpenFile(path, choice, Accept::kAny));
  const bool decodes = file.architecture().head.kind == wisp::HeadKind::kNextItem;
  if (!decodes && choice.backend != wisp::Backend::kSimd)
    return Unsupported("wisp_text_open: an encoder or a classifier has the backend WISP_BACKEND_SIMD alone");
  if (!decodes && choice.kept != wisp::kernels::CacheType::kFloat)
    return Unsupported("wisp_text_open: an encoder or a classifier keeps no keys and values: leave float16_cache at 0");
  auto model = std::make_unique<wisp_text_model>(wisp_text_model{.file = std::move(file)});
  if (decodes) {
    model->num_threads = choice.num_threads;
    model->executor = choice.executor;
    WISP_ASSIGN_OR_RETURN(model->decodes, Session::Create(std::move(model->file), choice.session()));
  } else {
    const double bound = model->file.is_classifier() ? model->file.classifier().norm_bound : 0;
    WISP_ASSIGN_OR_RETURN(
        model->represents,
        ClassifierSession::Create(
            model->file.architecture(), model->file.tensors(),
            {.num_threads = choice.num_threads, .executor = choice.executor, .norm_bound = bound, .name = path}));
  }
  WISP_ASSIGN_OR_RETURN(wisp::text::Tokenizer tokenizer, wisp::FindTokenizer(model->model()));
  model->tokenizer = std::make_unique<wisp::text::Tokenizer>(std::move(tokenizer));
  *out = model.release();
  return OkStatus();
}

Status Info(const wisp_text_model* model, wisp_text_info* out) {
  if (model == nullptr || out == nullptr)
    return InvalidArgument("wisp_text_info_read: model and info must not be NULL");
  const wisp::Architecture& a = model->architecture();
  const wisp_text_info info{.size = sizeof(wisp_text_info),
                            .width = model->represents ? a.width : 0,
                            .num_classes = model->is_classifier() ? a.head.num_classes : 0,
                            .max_length = a.max_length,
                            .num_tokens = static_cast<uint32_t>(model->tokenizer->size()),
                            .is_decoder = model->decodes ? 1 : 0,
                            .bytes = model->represents ? model->represents->bytes() : model->decodes->planned_bytes()};
  return wisp::ports::FillResult(info, out, "wisp_text_info");
}

// Writes the text's tokens to model->tokens.
Status Tokenize(wisp_text_model& model, const char* text) {
  model.tokens.clear();
  WISP_RETURN_IF_ERROR(
      model.tokenizer->EncodeWithin(text, model.architecture().max_length, {.scratch = &model.scratch}, model.tokens)
          .status());
  return OkStatus();
}

Status TokenizeTo(wisp_text_model* model, const char* text, int32_t* tokens, size_t* count) {
  if (model == nullptr || text == nullptr || count == nullptr || (tokens == nullptr && *count > 0))
    return InvalidArgument("wisp_text_tokenize: model, text, tokens and count must not be NULL");
  WISP_RETURN_IF_ERROR(Tokenize(*model, text));
  const size_t room = *count;
  *count = model->tokens.size();
  if (*count > room) return InvalidArgument("wisp_text_tokenize: room for ", room, " tokens, the text has ", *count);
  std::copy(model->tokens.begin(), model->tokens.end(), tokens);
  return OkStatus();
}

Status CheckRepresents(const wisp_text_model& model, const char* called) {
  if (model.represents) return OkStatus();
  return InvalidArgument(called, ": ", model.model().name(), " is a decoder, which continues texts");
}

Status Embed(wisp_text_model* model, const char* text, float* vector, size_t width) {
  if (model == nullptr || text == nullptr || vector == nullptr)
    return InvalidArgument("wisp_text_embed: model, text and vector must not be NULL");
  WISP_RETURN_IF_ERROR(CheckRepresents(*model, "wisp_text_embed"));
  WISP_RETURN_IF_ERROR(Tokenize(*model, text));
  return model->represents->Represent(model->tokens, {vector, width});
}

Status Classify(wisp_text_model* model, const char* text, float* probabilities, size_t num_classes) {
  if (model == nullptr || text == nullptr || probabilities == nullptr)
    return InvalidArgument("wisp_text_classify: model, text and probabilities must not be NULL");
  WISP_RETURN_IF_ERROR(CheckRepresents(*model, "wisp_text_classify"));
  if (!model->is_classifier())
    return InvalidArgument("wisp_text_classify: ", model->model().name(), " has no classes: it is an encoder");
  WISP_RETURN_IF_ERROR(Tokenize(*model, text));
  WISP_RETURN_IF_ERROR(model->represents->Logits(model->tokens, {probabilities, num_classes}));
  const float largest = *std::max_element(probabilities, probabilities + num_classes);
  double sum = 0;
  for (size_t i = 0; i < num_classes; ++i) sum += std::exp(static_cast<double>(probabilities[i] - largest));
  for (size_t i = 0; i < num_classes; ++i)
    probabilities[i] = static_cast<float>(std::exp(static_cast<double>(probabilities[i] - largest)) / sum);
  return OkStatus();
}

wisp_ended ToEnded(wisp::Ended ended) {
  switch (ended) {
    case wisp::Ended::kLength:
      return WISP_ENDED_LENGTH;
    case wisp::Ended::kEndToken:
      return WISP_ENDED_TOKEN;
    case wisp::Ended::kStopText:
      return WISP_ENDED_STOP;
    case wisp::Ended::kContextFull:
      return WISP_ENDED_CONTEXT;
    case wisp::Ended::kCaller:
      return WISP_ENDED_CALLER;
  }
  return WISP_ENDED_LENGTH;
}

}  // namespace

namespace wisp::ports {

Result<Session*> GetDecoder(wisp_text_model& model, const char* called) {
  if (model.decodes) return model.decodes.get();
  return InvalidArgument(called, ": ", model.model().name(), " is no decoder: it reads texts");
}

const text::Tokenizer& FindTokenizer(const wisp_text_model& model) { return *model.tokenizer; }

Result<GenerateOptions> MakeGenerateOptions(const wisp_generate_options* given) {
  WISP_ASSIGN_OR_RETURN(const auto o, MakeOptions(given, "wisp_generate_options"));
  if (o.stop == nullptr && o.num_stop > 0)
    return InvalidArgument("wisp_generate_options: stop is NULL but num_stop is ", o.num_stop);
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_generate_options", o.stop, o.num_stop));
  const auto or_one = [](double number) { return number == 0 ? 1 : number; };
  GenerateOptions options{.sampling = {.temperature = o.greedy != 0 ? 0 : or_one(o.temperature),
                                       .top_k = o.top_k,
                                       .top_p = or_one(o.top_p),
                                       .min_p = o.min_p,
                                       .repetition_penalty = or_one(o.repetition_penalty),
                                       .seed = o.seed}};
  if (o.max_new_tokens > 0) options.max_new_tokens = o.max_new_tokens;
  for (size_t i = 0; i < o.num_stop; ++i) {
    if (o.stop[i] == nullptr) return InvalidArgument("wisp_generate_options: stop[", i, "] is NULL");
    options.stop.emplace_back(o.stop[i]);
  }
  return options;
}

Status FillGenerated(Generated&& made, std::string& text, wisp_generated* out) {
  text = std::move(made.text);
  if (out == nullptr) return OkStatus();
  const wisp_generated generated{.size = sizeof(wisp_generated),
                                 .text = text.c_str(),
                                 .text_bytes = text.size(),
                                 .num_tokens = static_cast<uint32_t>(made.tokens.size()),
                                 .prompt_tokens = static_cast<uint32_t>(made.prompt_tokens),
                                 .ended = ToEnded(made.ended)};
  return FillResult(generated, out, "wisp_generated");
}

OnText ShowTo(wisp_on_text on_text, void* user_data) {
  if (on_text == nullptr) return {};
  return [=](std::string_view more) { return on_text(user_data, more.data(), more.size()) != 0; };
}

}  // namespace wisp::ports

namespace {

Status Generate(wisp_text_model* model, const char* prompt, const wisp_generate_options* given, wisp_on_text on_text,
                void* user_data, wisp_generated* out) {
  if (model == nullptr || prompt == nullptr)
    return InvalidArgument("wisp_text_generate: model and prompt must not be NULL");
  WISP_ASSIGN_OR_RETURN(Session* const session, wisp::ports::GetDecoder(*model, "wisp_text_generate"));
  WISP_ASSIGN_OR_RETURN(const wisp::GenerateOptions options, wisp::ports::MakeGenerateOptions(given));
  if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_generated"));
  WISP_ASSIGN_OR_RETURN(wisp::Generated made, wisp::Generate(*session, *model->tokenizer, prompt, options,
                                                             wisp::ports::ShowTo(on_text, user_data)));
  return wisp::ports::FillGenerated(std::move(made), model->generated, out);
}

// Fills the caller's array. Its structs may be shorter or longer than this version's, so the first one's size is the
// stride.
Status FillAll(std::vector<wisp::Generated>&& made, std::vector<std::string>& texts, wisp_generated* generated) {
  texts.resize(made.size());
  if (made.empty()) return OkStatus();
  const size_t stride = generated == nullptr ? 0 : generated->size;
  for (size_t i = 0; i < made.size(); ++i) {
    auto* out = generated == nullptr
                    ? nullptr
                    : reinterpret_cast<wisp_generated*>(reinterpret_cast<unsigned char*>(generated) + i * stride);
    WISP_RETURN_IF_ERROR(wisp::ports::FillGenerated(std::move(made[i]), texts[i], out));
  }
  return OkStatus();
}

Result<std::vector<std::string>> GetPrompts(const char* const* prompts, size_t num_prompts) {
  if (prompts == nullptr && num_prompts > 0)
    return InvalidArgument("wisp_text_generate_batch: prompts is NULL but their number is not 0");
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_text_generate_batch", prompts, num_prompts));
  std::vector<std::string> all;
  for (size_t i = 0; i < num_prompts; ++i) {
    if (prompts[i] == nullptr) return InvalidArgument("wisp_text_generate_batch: prompts[", i, "] is NULL");
    all.emplace_back(prompts[i]);
  }
  return all;
}

// Checks the structs' sizes before anything is generated: a text that was generated must be returned.
Status CheckSizes(const wisp_generated* generated, size_t count) {
  for (size_t i = 0; generated != nullptr && i < count; ++i) {
    size_t size = 0;
    std::memcpy(&size, reinterpret_cast<const unsigned char*>(generated) + i * generated->size, sizeof(size));
    WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(size, "wisp_generated"));
    if (size != generated->size)
      return InvalidArgument("wisp_generated: the size of the first is ", generated->size, ", that of number ", i,
                             " is ", size);
  }
  return OkStatus();
}

Status GenerateTogether(wisp_text_model* model, std::span<const std::string> prompts,
                        const wisp_generate_options* given, uint32_t at_once, const wisp::OnBatchText& on_text,
                        wisp_generated* out) {
  WISP_ASSIGN_OR_RETURN(const Session* const session, wisp::ports::GetDecoder(*model, "wisp_text_generate_batch"));
  WISP_ASSIGN_OR_RETURN(const wisp::GenerateOptions options, wisp::ports::MakeGenerateOptions(given));
  WISP_RETURN_IF_ERROR(CheckSizes(out, prompts.size()));
  WISP_ASSIGN_OR_RETURN(auto made, wisp::GenerateBatch(*session, *model->tokenizer, prompts, options,
                                                       {.at_once = at_once == 0 ? 16 : at_once,
                                                        .num_threads = model->num_threads,
                                                        .executor = model->executor},
                                                       on_text));
  return FillAll(std::move(made), model->generated_together, out);
}

}  // namespace

extern "C" {

wisp_code wisp_text_open(const char* path, const wisp_open_options* options, wisp_text_model** model,
                         wisp_error* error) {
  return Guarded(error, [&] { return Open(path, options, model); });
}

void wisp_text_close(wisp_text_model* model) { delete model; }

wisp_code wisp_text_info_read(const wisp_text_model* model, wisp_text_info* info, wisp_error* error) {
  return Guarded(error, [&] { return Info(model, info); });
}

const char* wisp_text_class_name(const wisp_text_model* model, uint32_t index) {
  if (model == nullptr || !model->is_classifier()) return "";
  const std::vector<std::string>& names = model->model().classifier().class_names;
  return index < names.size() ? names[index].c_str() : "";
}

wisp_code wisp_text_tokenize(wisp_text_model* model, const char* text, int32_t* tokens, size_t* count,
                             wisp_error* error) {
  return Guarded(error, [&] { return TokenizeTo(model, text, tokens, count); });
}

wisp_code wisp_text_embed(wisp_text_model* model, const char* text, float* vector, size_t width, wisp_error* error) {
  return Guarded(error, [&] { return Embed(model, text, vector, width); });
}

wisp_code wisp_text_classify(wisp_text_model* model, const char* text, float* probabilities, size_t num_classes,
                             wisp_error* error) {
  return Guarded(error, [&] { return Classify(model, text, probabilities, num_classes); });
}

wisp_code wisp_text_generate(wisp_text_model* model, const char* prompt, const wisp_generate_options* options,
                             wisp_on_text on_text, void* user_data, wisp_generated* generated, wisp_error* error) {
  return Guarded(error, [&] { return Generate(model, prompt, options, on_text, user_data, generated); });
}

wisp_code wisp_text_generate_batch(wisp_text_model* model, const char* const* prompts, size_t num_prompts,
                                   const wisp_generate_options* options, uint32_t at_once, wisp_on_batch_text on_text,
                                   void* user_data, wisp_generated* generated, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    if (model == nullptr) return InvalidArgument("wisp_text_generate_batch: model must not be NULL");
    WISP_ASSIGN_OR_RETURN(const std::vector<std::string> all, GetPrompts(prompts, num_prompts));
    wisp::OnBatchText show;
    if (on_text != nullptr) {
      show = [=](size_t prompt, std::string_view more) {
        return on_text(user_data, prompt, more.data(), more.size()) != 0;
      };
    }
    return GenerateTogether(model, all, options, at_once, show, generated);
  });
}

}  // extern "C"
