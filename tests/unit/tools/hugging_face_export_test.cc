// Models exported to the names of Hugging Face: every used tensor comes back with the same bytes, and the written
// folder reads as the same model.
#include "tools/convert/hugging_face/export.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/hugging_face_test_util.h"

namespace wisp::hugging_face_export_test {
namespace {

namespace hf = convert::hugging_face;
using test::Convert;
using test::Converted;
using test::GoldenFolder;
using test::NamedTensor;
using test::ReadTensors;
using test::TemporaryFolder;

// Writes what `wisp convert --family` would.
Status Export(const std::string& model_path, const hf::Family& family, const std::string& folder) {
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(model_path, Verify::kFull, Accept::kAny));
  const std::vector<std::string> names =
      model.is_classifier() ? model.classifier().class_names : std::vector<std::string>();
  WISP_ASSIGN_OR_RETURN(const hf::TextFiles texts, hf::ExportTexts("m", family, model.architecture(), names));
  std::vector<float> room;
  WISP_ASSIGN_OR_RETURN(const hf::ExportedTensors out,
                        hf::ExportTensors("m", family, model.architecture(), model.AllWeights(room)));
  std::filesystem::create_directories(folder + "/1_Pooling");
  for (const auto& [name, text] : texts) test::WriteAll(folder + "/" + name, text);
  return convert::WriteSafeTensors(folder + "/model.safetensors", out.tensors, {});
}

struct Case {
  const char* golden;
  const hf::Family& (*family)();
};

class HuggingFaceExport : public ::testing::TestWithParam<Case> {};

TEST_P(HuggingFaceExport, GivesBackWhatWasConverted) {
  const TemporaryFolder temporary;
  Converted made;
  ASSERT_TRUE(Convert(GoldenFolder(GetParam().golden), temporary / "m.wisp", {}, &made).ok());
  const Status status = Export(temporary / "m.wisp", GetParam().family(), temporary / "out");
  ASSERT_TRUE(status.ok()) << status.message();
  std::map<std::string, NamedTensor> original, exported;
  for (NamedTensor& t : ReadTensors(GoldenFolder(GetParam().golden) + "/model.safetensors")) original[t.name] = t;
  for (const hf::LeftOut& left_out : made.matching.left_out) original.erase(left_out.tensor.tensor->name);
  for (NamedTensor& t : ReadTensors(temporary / "out/model.safetensors")) exported[t.name] = t;
  ASSERT_EQ(exported.size(), original.size());
  for (auto& [name, t] : original) {
    ASSERT_TRUE(exported.contains(name)) << name;
    EXPECT_EQ(exported[name].shape, t.shape) << name;
    // Rows that stand for no position were dropped, and are zeros now.
    if (name.ends_with("position_embeddings.weight"))
      std::fill_n(t.values.begin(), made.description.first_position * made.description.architecture.width, 0.0f);
    EXPECT_EQ(exported[name].values, t.values) << name;
  }
}

TEST_P(HuggingFaceExport, ReadsAsTheSameModel) {
  const TemporaryFolder temporary;
  Converted first, second;
  ASSERT_TRUE(Convert(GoldenFolder(GetParam().golden), temporary / "m.wisp", {}, &first).ok());
  ASSERT_TRUE(Export(temporary / "m.wisp", GetParam().family(), temporary / "out").ok());
  const Status status = Convert(temporary / "out", temporary / "n.wisp", {}, &second);
  ASSERT_TRUE(status.ok()) << status.message();
  // The separator belongs to the tokenizer, which is not exported.
  first.description.architecture.token_types.separator = -1;
  EXPECT_EQ(second.description.architecture, first.description.architecture);
  EXPECT_EQ(second.description.class_names, first.description.class_names);
}

INSTANTIATE_TEST_SUITE_P(Families, HuggingFaceExport,
                         ::testing::Values(Case{"bert", hf::BertFamily}, Case{"sentence", hf::BertFamily},
                                           Case{"bert_classes", hf::BertFamily}, Case{"electra", hf::BertFamily},
                                           Case{"roberta", hf::RobertaFamily},
                                           Case{"roberta_classes", hf::RobertaFamily},
                                           Case{"distilbert", hf::DistilBertFamily}, Case{"gpt2", hf::Gpt2Family},
                                           Case{"llama", hf::LlamaFamily}, Case{"llama_tied", hf::LlamaFamily},
                                           Case{"qwen2", hf::Qwen2Family}, Case{"mistral", hf::LlamaFamily},
                                           Case{"mistral_window", hf::LlamaFamily},
                                           Case{"qwen2_window", hf::Qwen2Family},
                                           Case{"distilbert_classes", hf::DistilBertFamily}),
                         [](const auto& info) { return std::string(info.param.golden); });

// A part that the family cannot express is refused before anything is written, never left out.
TEST(HuggingFaceExport, SettingsThatAFamilyLacks_AreRefused) {
  const TemporaryFolder temporary;
  Converted made;
  ASSERT_TRUE(Convert(GoldenFolder("llama"), temporary / "m.wisp", {}, &made).ok());
  const auto refused = [](const hf::Family& family, const Architecture& a) {
    const auto texts = hf::ExportTexts("m.wisp", family, a, {});
    EXPECT_FALSE(texts.ok());
    EXPECT_EQ(texts.status().message().rfind("m.wisp: ", 0), 0u) << texts.status().message();
    return !texts.ok();
  };
  const Architecture llama = made.description.architecture;
  ASSERT_TRUE(hf::ExportTexts("m.wisp", hf::LlamaFamily(), llama, {}).ok());
  for (const hf::Family* family :
       {&hf::BertFamily(), &hf::RobertaFamily(), &hf::DistilBertFamily(), &hf::Gpt2Family(), &hf::Qwen2Family()})
    EXPECT_TRUE(refused(*family, llama)) << family->name;
  const auto changed = [&](auto change) {
    Architecture a = llama;
    change(a);
    EXPECT_TRUE(Validate(a).ok()) << Validate(a).message();
    return refused(hf::LlamaFamily(), a);
  };
  EXPECT_TRUE(changed([](Architecture& a) { a.embedding_scale = 2; }));
  EXPECT_TRUE(changed([](Architecture& a) { a.head.output_bias = OutputBias::kTrained; }));
  EXPECT_TRUE(changed([](Architecture& a) { a.blocks[1].norm = NormPlacement::kPost; }));
  EXPECT_TRUE(changed([](Architecture& a) { a.blocks[1].feed_forward.inner_width = 8; }));
  EXPECT_TRUE(changed([](Architecture& a) { a.blocks[0].attention.rotary.width = 4; }));
  EXPECT_TRUE(changed([](Architecture& a) { a.blocks.clear(); }));
}

TEST(HuggingFaceExport, ActivationWithoutAName_IsRefused) {
  const TemporaryFolder temporary;
  Converted made;
  ASSERT_TRUE(Convert(GoldenFolder("llama"), temporary / "m.wisp", {}, &made).ok());
  Architecture a = made.description.architecture;
  a.blocks[0].feed_forward.activation = static_cast<ActivationKind>(200);
  const Status status = hf::ExportTexts("m.wisp", hf::LlamaFamily(), a, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(),
            "m.wisp: its activation (number 200 in schema/common.fbs) has no name in Hugging Face, allowed are gelu, "
            "gelu_new, gelu_pytorch_tanh, silu, relu");
}

}  // namespace
}  // namespace wisp::hugging_face_export_test
