// Folders of Hugging Face as models: compares their results with transformers in double precision
// (tools/convert/goldens.py), and tests the forms in which the same weights come.
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/tools/hugging_face_test_util.h"

namespace wisp::hugging_face_test {
namespace {

namespace hf = convert::hugging_face;
using test::Compute;
using test::Convert;
using test::Converted;
using test::GoldenFolder;
using test::LargestDifference;
using test::MakeCopy;
using test::NamedTensor;
using test::ReadTensors;
using test::TemporaryFolder;
using test::WriteTensors;

constexpr double kTolerance = 1e-5;  // relative to the largest number: float against double through two blocks

void ExpectComputesAsTransformers(const std::string& family, const std::string& model) {
  const auto expected = nlohmann::json::parse(test::ReadAll(GoldenFolder(family) + "/expected.json"));
  for (const auto& one : expected["cases"]) {
    const auto ids = one["ids"].get<std::vector<int32_t>>();
    EXPECT_LT(LargestDifference(Compute(model, ids), one["expected"].get<std::vector<double>>()), kTolerance)
        << family << ", " << ids.size() << " tokens";
  }
}

class HuggingFaceFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(HuggingFaceFamily, ComputesWhatTransformersDoes) {
  const TemporaryFolder temporary;
  const Status status = Convert(GoldenFolder(GetParam()), temporary / "m.wisp");
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectComputesAsTransformers(GetParam(), temporary / "m.wisp");
}

INSTANTIATE_TEST_SUITE_P(Goldens, HuggingFaceFamily,
                         ::testing::Values("bert", "sentence", "bert_classes", "electra", "roberta", "roberta_classes",
                                           "distilbert", "distilbert_classes", "gpt2", "llama", "llama_tied", "qwen2",
                                           "qwen2_window", "mistral", "mistral_window"),
                         [](const auto& info) { return std::string(info.param); });

// Writes the same weights in the forms of other versions: every name passes `rename`, and there are other tensors
// beside them.
void ExpectFormIsKnown(const std::string& family, const std::function<std::string(const std::string&)>& rename,
                       const std::vector<NamedTensor>& beside) {
  const TemporaryFolder temporary;
  const std::string folder = MakeCopy(family, temporary), path = folder + "/model.safetensors";
  std::vector<NamedTensor> tensors = ReadTensors(path);
  for (NamedTensor& t : tensors) t.name = rename(t.name);
  tensors.insert(tensors.end(), beside.begin(), beside.end());
  WriteTensors(path, tensors);
  Converted made;
  const Status status = Convert(folder, temporary / "m.wisp", {}, &made);
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectComputesAsTransformers(family, temporary / "m.wisp");
  for (const auto& [name, shape, values] : beside) {
    const auto& left_out = made.matching.left_out;
    EXPECT_TRUE(std::any_of(
        left_out.begin(), left_out.end(),
        [&, &name = name](const hf::LeftOut& l) { return l.tensor.tensor->name == name && !l.reason.empty(); }))
        << name << " is not reported";
  }
}

// BERT in the form of the first checkpoints, with the head that it was trained with.
TEST(HuggingFace, OlderBertIsKnown) {
  const auto rename = [](std::string name) {
    if (name.ends_with("LayerNorm.weight")) name.replace(name.size() - 6, 6, "gamma");
    if (name.ends_with("LayerNorm.bias")) name.replace(name.size() - 4, 4, "beta");
    return "bert." + name;
  };
  ExpectFormIsKnown("bert", rename,
                    {{"bert.embeddings.position_ids", {1, 3}, {0, 1, 2}},
                     {"cls.predictions.bias", {2}, {1, 2}},
                     {"cls.predictions.transform.LayerNorm.gamma", {2}, {1, 2}}});
}

NamedTensor GetTensor(const std::string& family, const std::string& name) {
  for (NamedTensor& t : ReadTensors(GoldenFolder(family) + "/model.safetensors")) {
    if (t.name == name) return t;
  }
  ADD_FAILURE() << name << " is not there";
  return {};
}

// Returns the frequencies of the golden Llama's rotary positions, as older versions of transformers stored them.
NamedTensor Frequencies() {
  const auto config = nlohmann::json::parse(test::ReadAll(GoldenFolder("llama") + "/config.json"));
  const size_t width =
      config.value("head_dim", config["hidden_size"].get<size_t>() / config["num_attention_heads"].get<size_t>());
  const double base = config.contains("rope_theta") ? config["rope_theta"].get<double>()
                                                    : config["rope_parameters"]["rope_theta"].get<double>();
  NamedTensor made{"model.layers.0.self_attn.rotary_emb.inv_freq", {width / 2}, {}};
  for (size_t i = 0; i < width / 2; ++i)
    made.values.push_back(
        static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width))));
  return made;
}

TEST(HuggingFace, OlderDecodersAreKnown) {
  const auto without = [](std::string name) {
    return name.starts_with("transformer.") ? name.substr(std::string("transformer.").size()) : name;
  };
  NamedTensor output = GetTensor("gpt2", "transformer.wte.weight");
  output.name = "lm_head.weight";
  ExpectFormIsKnown("gpt2", without,
                    {{"h.0.attn.bias", {1, 1, 2, 2}, {1, 0, 1, 1}}, {"h.11.attn.masked_bias", {}, {-10000}}, output});
  const auto same = [](std::string name) { return name; };
  ExpectFormIsKnown("llama", same, {Frequencies()});
  output = GetTensor("llama_tied", "model.embed_tokens.weight");
  output.name = "lm_head.weight";
  ExpectFormIsKnown("llama_tied", same, {output});
  ExpectFormIsKnown("roberta", [](const std::string& name) { return "roberta." + name; },
                    {{"lm_head.dense.weight", {1}, {7}}, {"roberta.embeddings.position_ids", {2}, {0, 1}}});
  ExpectFormIsKnown("distilbert", [](const std::string& name) { return "distilbert." + name; },
                    {{"vocab_projector.bias", {1}, {7}}});
}

// transformers ties the output only if the file has no other one.
TEST(HuggingFace, OutputOfTheFileIsUsedWhereItIsAnother) {
  const TemporaryFolder temporary;
  for (const auto& [family, table] :
       {std::pair{"llama_tied", "model.embed_tokens.weight"}, std::pair{"gpt2", "transformer.wte.weight"}}) {
    const std::string folder = MakeCopy(family, temporary), path = folder + "/model.safetensors";
    std::vector<NamedTensor> tensors = ReadTensors(path);
    NamedTensor output = GetTensor(family, table);
    output.name = "lm_head.weight";
    for (float& value : output.values) value *= 2;
    tensors.push_back(output);
    WriteTensors(path, tensors);
    Converted made;
    const Status status = Convert(folder, temporary / "m.wisp", {}, &made);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(made.description.architecture.head.output_table, OutputTable::kUntied);
    EXPECT_TRUE(made.matching.left_out.empty());
    ASSERT_FALSE(made.description.notes.empty());
    EXPECT_NE(made.description.notes.back().find("has another 'lm_head.weight': that one is used"), std::string::npos);
    // Twice the table gives twice the scores.
    const auto expected = nlohmann::json::parse(test::ReadAll(GoldenFolder(family) + "/expected.json"));
    auto scores = expected["cases"][0]["expected"].get<std::vector<double>>();
    for (double& score : scores) score *= 2;
    EXPECT_LT(LargestDifference(Compute(temporary / "m.wisp", expected["cases"][0]["ids"].get<std::vector<int32_t>>()),
                                scores),
              kTolerance);
  }
}

// XLM-RoBERTa is RoBERTa with another vocabulary.
TEST(HuggingFace, XlmRobertaIsRoberta) {
  const TemporaryFolder temporary;
  for (const auto& [family, name] :
       {std::pair{"roberta", "XLMRobertaModel"}, std::pair{"roberta_classes", "XLMRobertaForSequenceClassification"}}) {
    const std::string folder = MakeCopy(family, temporary, {{"model_type", "xlm-roberta"}, {"architectures", {name}}});
    const Status status = Convert(folder, temporary / "m.wisp");
    ASSERT_TRUE(status.ok()) << status.message();
    ExpectComputesAsTransformers(family, temporary / "m.wisp");
  }
}

void WriteShards(const std::string& folder, const std::vector<NamedTensor>& tensors) {
  nlohmann::json map;
  for (size_t shard = 0; shard < 2; ++shard) {
    const std::string name = "model-0000" + std::to_string(shard + 1) + "-of-00002.safetensors";
    const size_t half = tensors.size() / 2;
    const std::vector<NamedTensor> part(tensors.begin() + static_cast<long>(shard * half),
                                        shard == 0 ? tensors.begin() + static_cast<long>(half) : tensors.end());
    for (const NamedTensor& t : part) map[t.name] = name;
    WriteTensors(folder + "/" + name, part);
  }
  test::WriteAll(folder + "/model.safetensors.index.json", nlohmann::json({{"weight_map", map}}).dump());
  std::filesystem::remove(folder + "/model.safetensors");
}

TEST(HuggingFace, ShardsAreReadAsOne) {
  const TemporaryFolder temporary;
  const std::string folder = MakeCopy("qwen2", temporary);
  WriteShards(folder, ReadTensors(folder + "/model.safetensors"));
  const Status status = Convert(folder, temporary / "m.wisp");
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectComputesAsTransformers("qwen2", temporary / "m.wisp");
}

// A model cut to a shorter length computes the same as the whole one on short texts.
TEST(HuggingFace, ShorterLengthDropsPositionsOnly) {
  for (const char* family : {"bert", "roberta", "gpt2", "llama"}) {
    const TemporaryFolder temporary;
    Converted made;
    const Status status = Convert(GoldenFolder(family), temporary / "m.wisp", {.config = {.max_length = 11}}, &made);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(made.description.architecture.max_length, 11u);
    const auto expected = nlohmann::json::parse(test::ReadAll(GoldenFolder(family) + "/expected.json"));
    const auto& one = expected["cases"][0];
    EXPECT_LT(LargestDifference(Compute(temporary / "m.wisp", one["ids"].get<std::vector<int32_t>>()),
                                one["expected"].get<std::vector<double>>()),
              kTolerance)
        << family;
  }
}

TEST(HuggingFace, PoolingIsWhatIsAskedFor) {
  const TemporaryFolder temporary;
  Converted made;
  const auto head = [&](const char* family, hf::ChosenPooling pooling) {
    const Status status = Convert(GoldenFolder(family), temporary / "m.wisp", {.pooling = pooling}, &made);
    EXPECT_TRUE(status.ok()) << status.message();
    return made.description.architecture.head;
  };
  EXPECT_EQ(
      head("sentence", hf::ChosenPooling::kFolder),
      (HeadSpec{
          .kind = HeadKind::kEmbedding, .pooling = Pooling::kMean, .pooler = Pooler::kNone, .unit_length = true}));
  EXPECT_EQ(head("bert", hf::ChosenPooling::kFolder), (HeadSpec{.kind = HeadKind::kEmbedding}));
  EXPECT_EQ(head("bert", hf::ChosenPooling::kMean),
            (HeadSpec{.kind = HeadKind::kEmbedding, .pooling = Pooling::kMean, .pooler = Pooler::kNone}));
  EXPECT_EQ(head("distilbert", hf::ChosenPooling::kFolder),
            (HeadSpec{.kind = HeadKind::kEmbedding, .pooler = Pooler::kNone}));
  EXPECT_FALSE(Convert(GoldenFolder("distilbert"), temporary / "m.wisp", {.pooling = hf::ChosenPooling::kPooler}).ok());
  EXPECT_FALSE(Convert(GoldenFolder("gpt2"), temporary / "m.wisp", {.pooling = hf::ChosenPooling::kMean}).ok());
}

}  // namespace
}  // namespace wisp::hugging_face_test
