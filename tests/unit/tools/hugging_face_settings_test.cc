// Settings of a folder's JSON files: followed, known to change nothing, refused, or noted by name.
#include <gtest/gtest.h>

#include "tests/unit/tools/hugging_face_test_util.h"
#include "tools/convert/hugging_face/config.h"

namespace wisp::hugging_face_settings_test {
namespace {

namespace hf = convert::hugging_face;
using nlohmann::json;
using test::Convert;
using test::Converted;
using test::MakeCopy;
using test::ReadAll;
using test::TemporaryFolder;
using test::WriteAll;
using Notes = std::vector<std::string>;

Notes ReadNotes(const std::string& folder, const TemporaryFolder& temporary) {
  Converted made;
  const Status status = Convert(folder, temporary / "m.wisp", {}, &made);
  EXPECT_TRUE(status.ok()) << status.message();
  return made.description.notes;
}

void ExpectOneNote(const Notes& notes, const std::string& words) {
  ASSERT_EQ(notes.size(), 1u) << words << (notes.empty() ? "" : ", and the first is " + notes[0]);
  EXPECT_NE(notes[0].find(words), std::string::npos) << notes[0];
}

// Everything that transformers writes is known.
TEST(HuggingFaceSettings, KnownSettings_GetNoNote) {
  for (const char* family : {"bert", "bert_classes", "electra", "gpt2", "llama", "llama_tied", "qwen2", "qwen2_window",
                             "mistral", "mistral_window", "roberta", "roberta_classes", "distilbert_classes"}) {
    const TemporaryFolder temporary;
    EXPECT_EQ(ReadNotes(MakeCopy(family, temporary), temporary), Notes()) << family;
  }
}

TEST(HuggingFaceSettings, KeysThatNobodyKnowsAreSaid) {
  for (const char* family : {"bert", "gpt2", "llama", "distilbert"}) {
    const TemporaryFolder temporary;
    ExpectOneNote(ReadNotes(MakeCopy(family, temporary, {{"logit_softcap", 30.0}, {"another", nullptr}}), temporary),
                  "/config.json: 'logit_softcap' is '30.0', which is not known here and not followed");
  }
  const TemporaryFolder temporary;
  json rope = json::parse(ReadAll(test::GoldenFolder("llama") + "/config.json"))["rope_parameters"];
  rope["bend"] = 2;
  ExpectOneNote(ReadNotes(MakeCopy("llama", temporary, {{"rope_parameters", rope}}), temporary),
                "rope_parameters: 'bend' is '2'");
}

TEST(HuggingFaceSettings, SettingsThatChangeTheModel_AreRefused) {
  const std::pair<json, const char*> changes[] = {
      {{{"pruned_heads", {{"0", {1}}}}}, "pruned_heads is an object, supported is an empty object"},
      {{{"quantization_config", {{"bits", 4}}}}, "quantization_config is there, supported are weights in F32"},
      {{{"is_encoder_decoder", true}}, "is_encoder_decoder is 'true', supported is false"},
      {{{"rope_parameters", {{"full_attention", {{"rope_type", "linear"}}}}}},
       "full_attention is an object, supported"}};
  for (const auto& [changed, words] : changes) {
    const TemporaryFolder temporary;
    const Status status = Convert(MakeCopy("llama", temporary, changed), temporary / "m.wisp");
    ASSERT_FALSE(status.ok()) << words;
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
}

TEST(HuggingFaceSettings, ClassesAreCountedAndNamed) {
  const auto read = [](const json& changed) {
    json config = json::parse(ReadAll(test::GoldenFolder("bert_classes") + "/config.json"));
    config.erase("id2label");
    config.erase("label2id");
    config.update(changed);
    auto made = hf::ReadConfig("config.json", config.dump(), {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *made;
  };
  EXPECT_EQ(read({{"num_labels", 3}}).class_names, (Notes{"LABEL_0", "LABEL_1", "LABEL_2"}));
  EXPECT_EQ(read(json::object()).class_names.size(), 2u);
  const json ids = {{"0", "a"}, {"1", "b"}};
  ExpectOneNote(read({{"num_labels", 3}, {"id2label", ids}}).notes, "num_labels is 3, id2label has 2 classes");
  ExpectOneNote(read({{"id2label", ids}, {"label2id", {{"a", 1}, {"b", 0}}}}).notes, "label2id says otherwise");
  ExpectOneNote(read({{"id2label", {{"0", "1"}, {"1", "2"}}}}).notes,
                "class 0 is called '1': labels that are numbers are names here, not places");
  EXPECT_TRUE(read({{"id2label", {{"0", "0"}, {"1", "1"}}}}).notes.empty());
}

TEST(HuggingFaceSettings, HowTextsAreDrawnIsSaidOnce) {
  const TemporaryFolder temporary;
  const std::string folder = MakeCopy("llama", temporary, {{"temperature", 1.0}, {"max_length", 20}});
  WriteAll(folder + "/generation_config.json",
           json({{"do_sample", true}, {"temperature", 0.6}, {"top_k", 50}, {"eos_token_id", {2, 3}}}).dump());
  ExpectOneNote(ReadNotes(folder, temporary),
                "/generation_config.json: do_sample 'true', temperature '0.6': how texts are");
}

TEST(HuggingFaceSettings, FilesThatNobodyKnowsAreSaid) {
  const TemporaryFolder temporary;
  const std::string folder = MakeCopy("llama", temporary);
  WriteAll(folder + "/adapter_config.json", "{}");
  WriteAll(folder + "/trainer_state.json", "{}");
  WriteAll(folder + "/model.safetensors.index.json", "{}");
  const Notes notes = ReadNotes(folder, temporary);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("model.safetensors.index.json: it is not read"), std::string::npos) << notes[0];
  EXPECT_NE(notes[1].find("adapter_config.json: this file is not known here, and not read"), std::string::npos);
}

TEST(SentenceTransformers, PromptsAndSettingsAreSaid) {
  const TemporaryFolder temporary;
  const std::string folder = MakeCopy("sentence", temporary), prompts = folder + "/config_sentence_transformers.json";
  WriteAll(folder + "/sentence_bert_config.json", R"({"do_lower_case": true, "novel": 1})");
  ExpectOneNote(ReadNotes(folder, temporary), "/sentence_bert_config.json: 'novel' is '1', which is not known here");
  EXPECT_TRUE(hf::Folder::Open(folder)->lower_case());
  WriteAll(folder + "/sentence_bert_config.json", "{}");
  WriteAll(prompts, R"({"__version__": {}, "prompts": {"query": "query: ", "document": ""},
      "default_prompt_name": "query", "similarity_fn_name": "cosine"})");
  ExpectOneNote(ReadNotes(folder, temporary), "sentence-transformers puts 'query: ' before every text");
  WriteAll(prompts, R"({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": null})");
  ExpectOneNote(ReadNotes(folder, temporary), "its prompts are not kept; put one before a text");
  WriteAll(prompts, R"({"model_type": "SparseEncoder"})");
  EXPECT_FALSE(Convert(folder, temporary / "m.wisp").ok());
  WriteAll(prompts, "{}");
  WriteAll(folder + "/1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true, "word_embedding_dimension": 7})");
  const Status status = Convert(folder, temporary / "m.wisp");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("its module Pooling is for vectors of 7 numbers"), std::string::npos);
}

// Older folders have the model and its tokenizer in a folder of their own.
TEST(SentenceTransformers, ModelMayLieInAFolderOfItsOwn) {
  const TemporaryFolder temporary;
  const std::string folder = MakeCopy("sentence", temporary), within = folder + "/0_Transformer";
  std::filesystem::create_directory(within);
  for (const char* name : {"config.json", "model.safetensors", "vocab.txt"})
    std::filesystem::rename(folder + "/" + name, within + "/" + name);
  std::filesystem::remove(folder + "/sentence_bert_config.json");
  WriteAll(within + "/sentence_roberta_config.json", R"({"max_seq_length": 16})");
  json modules = json::parse(ReadAll(folder + "/modules.json"));
  modules[0]["path"] = "0_Transformer";
  WriteAll(folder + "/modules.json", modules.dump());
  ExpectOneNote(ReadNotes(folder, temporary), "cuts texts of this folder after 16 tokens");
  EXPECT_EQ(hf::Folder::Open(folder)->tokenizer_folder(), within);
  Converted made;
  ASSERT_TRUE(Convert(folder, temporary / "m.wisp", {}, &made).ok());
  EXPECT_EQ(made.description.architecture.token_types.separator, 3);
}

}  // namespace
}  // namespace wisp::hugging_face_settings_test
