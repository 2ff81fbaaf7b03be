// The C interface of texts (wisp_text.h), beside c_interface_fuzz.cc: encoders, classifiers and decoders of a few
// random weights with tokenizers of the golden files, texts of any bytes, private generators, and refusals of training.
#include "ports/c/wisp_text.h"

#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/fuzz/c_call.h"
#include "tools/convert/tokenizer_json.h"

namespace {

using wisp::fuzz::Choose;
using wisp::fuzz::Filled;
using wisp::fuzz::Input;
using wisp::fuzz::Require;
using wisp::fuzz::Resize;
using wisp::fuzz::Sized;

class Machine : wisp::fuzz::Caller {
 public:
  explicit Machine(const wisp::test::TemporaryFolder& folder) : folder_(folder) {
    wisp::fuzz::RemoveAll(folder_, {"a.ledger", "out.wisp"});
  }
  ~Machine() {
    wisp_private_generator_close(generator_);
    for (wisp_text_model* model : models_) wisp_text_close(model);
  }

  void Call(Input& input) {
    switch (input.Byte() % 9) {
      case 0:
        return Open(input);
      case 1:
        return Close(models_[input.Byte() % models_.size()]);
      case 2:
        return Tell(input);
      case 3:
        return Tokenize(input);
      case 4:
        return Understand(input);
      case 5:
        return Generate(input);
      case 6:
        return OpenGenerator(input);
      case 7:
        return GeneratePrivately(input);
      case 8:
        return Train(input);
    }
  }

 private:
  wisp_text_model* Model(Input& input) { return models_[input.Byte() % models_.size()]; }
  const char* Path(Input& input) {
    static const std::string paths[] = {folder_ / "decoder.wisp", folder_ / "decoder.wisp", folder_ / "encoder.wisp",
                                        folder_ / "classes.wisp", folder_ / "private.wisp", folder_ / "base.wisp",
                                        folder_ / "texts.txt",    folder_ / "nothing.wisp", ""};
    const size_t choice = input.Byte() % (std::size(paths) + 1);
    return choice == std::size(paths) ? nullptr : paths[choice].c_str();
  }
  // Returns a few words, or any bytes; a C text ends at its first zero.
  static std::string Text(Input& input) {
    static const char* const texts[] = {"",         "a good film", "word5 word7 the", "\xc3\xa4\xe2\x82\xac",
                                        "\xff\xfe", "the the"};
    const uint8_t choice = input.Byte();
    if (choice < 96) return texts[choice % std::size(texts)];
    return std::string(input.Piece(choice % 64));
  }
  void Close(wisp_text_model*& model) {
    if (model != nullptr && (model == sampled_from_ || model == base_)) {
      wisp_private_generator_close(generator_);
      generator_ = nullptr;
    }
    wisp_text_close(model);
    model = nullptr;
  }

  void Open(Input& input) {
    Sized<wisp_open_options> how;
    Choose(how.options.backend, 2, input);
    Choose(how.options.verify, 3, input);
    const uint8_t choice = input.Byte();
    how.options.verified = choice & 1 ? &verified_ : nullptr;
    how.options.num_threads = choice & 2 ? 1 : input.Byte() % 3;
    how.options.float16_cache = choice & 4 ? 0 : input.Byte() % 3;
    how.options.max_bytes = choice & 8 ? 0 : input.Byte() % 2;
    Resize(how, input);
    wisp_text_model*& model = models_[input.Byte() % models_.size()];
    Close(model);
    Held(wisp_text_open(Path(input), choice & 16 ? &how.options : nullptr, &model, &error_));
  }
  void Tell(Input& input) {
    const wisp_text_model* model = Model(input);
    Filled<wisp_text_info> info(input);
    Held(wisp_text_info_read(model, info.get(), &error_));
    for (const uint32_t index : {uint32_t{0}, input.Number<uint32_t>()})
      Require(wisp_text_class_name(model, index) != nullptr, "a text, or \"\"");
    Require(wisp_text_class_name(nullptr, 0) != nullptr, "a text, or \"\"");
  }
  void Tokenize(Input& input) {
    wisp_text_model* model = Model(input);
    const std::string text = Text(input);
    std::vector<int32_t> tokens(input.Byte() % 64);
    size_t count = tokens.size();
    const wisp_code code = Held(wisp_text_tokenize(model, input.Byte() == 255 ? nullptr : text.c_str(),
                                                   tokens.empty() ? nullptr : tokens.data(), &count, &error_));
    if (code != WISP_OK) return;
    Require(count <= tokens.size(), "no more than there is room for");
    for (size_t i = 0; i < count; ++i) Require(tokens[i] >= 0, "a token");
  }
  void Understand(Input& input) {
    wisp_text_model* model = Model(input);
    const std::string text = Text(input);
    std::vector<float> numbers(input.Byte() < 128 ? kWidth : input.Byte() % 40);
    if (Held(wisp_text_embed(model, text.c_str(), numbers.data(), numbers.size(), &error_)) == WISP_OK) {
      for (const float x : numbers) Require(std::isfinite(x), "a vector is finite");
    }
    numbers.resize(input.Byte() < 128 ? 2 : input.Byte() % 5);
    if (Held(wisp_text_classify(model, text.c_str(), numbers.data(), numbers.size(), &error_)) == WISP_OK) {
      for (const float x : numbers) Require(x >= 0 && x <= 1, "a probability");
    }
  }

  // Returns options of generating; the texts in `stop` live in `texts`.
  Sized<wisp_generate_options> Options(Input& input, std::vector<std::string>& texts, std::vector<const char*>& stop) {
    Sized<wisp_generate_options> o;
    const uint8_t choice = input.Byte();
    o.options.max_new_tokens = 1 + input.Byte() % 12;
    o.options.top_k = choice & 1 ? input.Number<uint32_t>() : 0;
    o.options.temperature = choice & 2 ? input.Number<double>() : 0;
    o.options.top_p = choice & 4 ? input.Number<double>() : 0;
    o.options.min_p = choice & 8 ? input.Number<double>() : 0;
    o.options.repetition_penalty = choice & 16 ? input.Number<double>() : 0;
    o.options.seed = input.Byte();
    o.options.greedy = choice & 32 ? input.Byte() % 4 : 0;
    if (choice & 64) {
      texts.assign(1 + input.Byte() % 2, Text(input));
      for (const std::string& text : texts) stop.push_back(text.c_str());
      if (input.Byte() > 240) stop[0] = nullptr;
      o.options.stop = stop.data();
      o.options.num_stop = stop.size();
    }
    if (choice & 128) o.options.num_stop += input.Byte() > 200;
    if (o.options.num_stop > stop.size()) o.options.stop = nullptr;
    Resize(o, input);
    return o;
  }
  void Generate(Input& input) {
    wisp_text_model* model = Model(input);
    std::vector<std::string> texts;
    std::vector<const char*> stop;
    const Sized<wisp_generate_options> o = Options(input, texts, stop);
    left_ = input.Byte() % 16;
    if (input.Byte() % 2 == 0) {
      const std::string prompt = Text(input);
      const auto on_text = [](void* data, const char* text, size_t bytes) -> int32_t {
        Require(bytes == 0 || text != nullptr, "a text");
        return static_cast<Machine*>(data)->left_-- > 0;
      };
      Filled<wisp_generated> generated(input);
      Held(wisp_text_generate(model, prompt.c_str(), &o.options, on_text, this, generated.get(), &error_));
      return;
    }
    std::vector<std::string> prompts(input.Byte() % 4);
    std::vector<const char*> pointers;
    for (std::string& prompt : prompts) pointers.push_back((prompt = Text(input)).c_str());
    if (!pointers.empty() && input.Byte() > 240) pointers[0] = nullptr;
    std::vector<wisp_generated> generated(prompts.size(), wisp_generated(WISP_INIT(wisp_generated)));
    if (!generated.empty() && input.Byte() > 220) generated[0].size = input.Number<uint16_t>() % 16;
    const auto on_text = [](void* data, size_t, const char*, size_t) -> int32_t {
      return static_cast<Machine*>(data)->left_-- > 0;
    };
    const uint32_t at_once = input.Byte() < 230 ? input.Byte() % 4 : input.Number<uint32_t>();
    Held(wisp_text_generate_batch(model, pointers.data(), pointers.size(), &o.options, at_once, on_text, this,
                                  input.Byte() % 2 ? generated.data() : nullptr, &error_));
  }

  void OpenGenerator(Input& input) {
    wisp_private_generator_close(generator_);
    generator_ = nullptr;
    Sized<wisp_private_options> samples;
    static const std::string ledger = folder_ / "a.ledger";
    static const char* const names[] = {"public", "texts"};
    const uint8_t choice = input.Byte(), cost = input.Byte();
    samples.options.ledger_path = choice & 1 ? nullptr : ledger.c_str();
    Choose(samples.options.decoding, 2, input);
    if (choice & 2) samples.options.public_datasets = names, samples.options.num_public_datasets = 1 + cost % 2;
    // Targets make the accountant work for seconds, so they are rare.
    if (cost & 1) samples.options.lambda = input.Number<double>();
    if (cost & 2) samples.options.clip = input.Number<double>();
    if (cost & 4) samples.options.epsilon_per_sample = cost & 8 ? 0.1 : input.Number<double>();
    if (cost == 255) samples.options.epsilon = 1, samples.options.planned_samples = 5;
    samples.options.delta = cost & 16 ? 1e-6 : input.Number<double>();
    samples.options.num_records_public = cost & 32 ? 100 : input.Number<uint32_t>();
    samples.options.samples_per_charge = input.Byte();
    samples.options.temperature = cost & 64 ? 0 : input.Number<double>();
    Resize(samples, input);
    Sized<wisp_private_text_options> o;
    o.options.samples = choice & 4 ? nullptr : &samples.options;
    sampled_from_ = Model(input);
    base_ = choice & 8 ? Model(input) : nullptr;
    o.options.base_model = base_;
    o.options.mix_with_base = choice & 16 ? input.Byte() % 3 : 0;
    o.options.base_top = choice & 32 ? input.Number<uint32_t>() : 0;
    o.options.mixing_floor = choice & 64 ? input.Number<double>() : 0;
    std::vector<std::string> texts(input.Byte() % 4);
    std::vector<const char*> pointers;
    for (std::string& text : texts) pointers.push_back((text = Text(input)).c_str());
    if (!pointers.empty() && input.Byte() > 240) pointers[0] = nullptr;
    o.options.private_texts = pointers.empty() ? nullptr : pointers.data();
    o.options.num_private_texts = pointers.size();
    o.options.contexts = choice & 128 ? input.Number<uint32_t>() : static_cast<uint32_t>(pointers.size());
    const std::string beside = Text(input);
    if (input.Byte() & 1) o.options.context_before = o.options.public_text = beside.c_str();
    o.options.dataset = input.Byte() & 1 ? "texts" : nullptr;
    Resize(o, input);
    Held(wisp_private_generator_open(sampled_from_, input.Byte() == 255 ? nullptr : &o.options, &generator_, &error_));
  }
  void GeneratePrivately(Input& input) {
    (void)wisp_private_generator_is_free(generator_);
    std::vector<std::string> texts;
    std::vector<const char*> stop;
    Sized<wisp_generate_options> o = Options(input, texts, stop);
    o.options.max_new_tokens %= 4;
    const std::string prompt = Text(input);
    Filled<wisp_generated> generated(input);
    const uint8_t given = input.Byte();
    Held(wisp_private_generate(generator_, given == 255 ? nullptr : prompt.c_str(), given & 1 ? &o.options : nullptr,
                               nullptr, nullptr, generated.get(), &error_));
  }
  // Training never completes here; c_interface_fuzz.cc covers that.
  void Train(Input& input) {
    Sized<wisp_personalise_options> o;
    static const std::string texts = folder_ / "texts.txt", output = folder_ / "out.wisp",
                             ledger = folder_ / "a.ledger";
    const uint8_t choice = input.Byte();
    o.options.model_path = Path(input);
    o.options.log_path = choice & 1 ? Path(input) : texts.c_str();
    o.options.output_path = output.c_str();
    o.options.ledger_path = choice & 2 ? Path(input) : ledger.c_str();
    o.options.epsilon = choice & 4 ? input.Number<double>() : 1;
    o.options.delta = choice & 8 ? input.Number<double>() : 1e-6;
    Choose(o.options.unit, 4, input);
    o.options.num_records_public = choice & 16 ? input.Number<uint32_t>() : 10;
    o.options.session_gap = choice & 32 ? input.Byte() : 0;
    o.options.adapter_rank = choice & 64 ? input.Number<uint32_t>() : 0;
    o.options.clipping_norm = -1;
    Resize(o, input);
    Sized<wisp_text_records> records;
    Choose(records.options.record, 3, input);
    records.options.chunk_bytes = choice & 128 ? input.Number<uint32_t>() : 0;
    records.options.max_length = input.Byte();
    Resize(records, input);
    Filled<wisp_personalise_result> result(input);
    Require(Held(wisp_text_train(&o.options, input.Byte() == 255 ? nullptr : &records.options, result.get(),
                                 &error_)) != WISP_OK,
            "a negative clipping norm is refused");
    Sized<wisp_labelled_texts> labelled;
    static const char* const classes[] = {"a", "b", nullptr};
    labelled.options.classes = choice & 128 ? nullptr : classes;
    labelled.options.num_classes = input.Byte() % 4;
    Choose(labelled.options.format, 3, input);
    Choose(labelled.options.trains, 3, input);
    labelled.options.max_length = input.Byte();
    labelled.options.text_column = choice & 1 ? texts.c_str() : nullptr;
    Resize(labelled, input);
    Require(Held(wisp_classifier_train(&o.options, input.Byte() == 255 ? nullptr : &labelled.options, result.get(),
                                       &error_)) != WISP_OK,
            "a negative clipping norm is refused");
  }

  static constexpr size_t kWidth = 8;  // the width in WriteTextModels
  const wisp::test::TemporaryFolder& folder_;
  std::array<wisp_text_model*, 3> models_{};
  wisp_text_model *sampled_from_ = nullptr, *base_ = nullptr;
  wisp_private_generator* generator_ = nullptr;
  wisp_verified verified_ = {};
  int left_ = 0;
};

std::vector<std::byte> Tokenizer(const char* name) {
  std::ifstream file(std::string(WISP_SOURCE_DIR) + "/tests/golden/tokenizers/" + name + ".json", std::ios::binary);
  const std::string json(std::istreambuf_iterator<char>(file), {});
  const auto image = wisp::convert::TokenizerImage({.name = name, .tokenizer_json = json});
  Require(image.ok(), image.status().message().c_str());
  return *image;
}

void Write(const std::string& path, wisp::Architecture a, const char* tokenizer, const char* dataset) {
  std::vector<float> weights(wisp::FlatSize(wisp::ListParameters(a)));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
  wisp::ModelContents contents{.architecture = a,
                               .weights = weights,
                               .tokenizer = Tokenizer(tokenizer),
                               .provenance = {{.description = "converted", .dataset = dataset, .date = "2026-11-20"}}};
  if (a.head.kind == wisp::HeadKind::kClasses)
    contents.classifier = wisp::ClassifierDescription{.class_names = {"bad", "good"}};
  const wisp::Status status = wisp::WriteModel(path, contents);
  Require(status.ok(), status.message().c_str());
}

// Writes a decoder of public data and one without a guarantee, an encoder, a classifier, and a file of texts.
void WriteTextModels(const wisp::test::TemporaryFolder& folder) {
  const wisp::UniformArchitecture decoder{
      .num_items = 460, .max_length = 24, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 6};
  Write(folder / "decoder.wisp", decoder, "gpt2", "public");
  Write(folder / "private.wisp", decoder, "gpt2", "texts");
  wisp::Architecture encoder = wisp::UniformArchitecture{.num_items = 300,
                                                         .max_length = 12,
                                                         .width = 8,
                                                         .num_heads = 2,
                                                         .num_blocks = 1,
                                                         .inner_width = 6,
                                                         .norm = wisp::NormPlacement::kPost,
                                                         .attend = wisp::Attend::kAll};
  encoder.token_types = {.count = 2, .separator = 3};
  encoder.embedding_norm_epsilon = 1e-5f;
  encoder.head = {.kind = wisp::HeadKind::kEmbedding,
                  .pooling = wisp::Pooling::kMean,
                  .pooler = wisp::Pooler::kNone,
                  .unit_length = true};
  Write(folder / "encoder.wisp", encoder, "bert", "public");
  encoder.head = {.kind = wisp::HeadKind::kClasses,
                  .num_classes = 2,
                  .pooling = wisp::Pooling::kMean,
                  .pooler = wisp::Pooler::kNone};
  Write(folder / "classes.wisp", encoder, "bert", "public");
  wisp::fuzz::WriteFile(folder / "texts.txt", "a good film\nword5 word7\n\nthe end\n");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const wisp::test::TemporaryFolder folder;
  static const bool written = (WriteTextModels(folder), wisp::fuzz::WriteModels(folder), true);
  (void)written;
  return wisp::fuzz::CallAll<Machine>(folder, data, size);
}
