// Refusals of Hugging Face folders, each with one sentence that names the file, the value and what is supported.
#include "tools/convert/hugging_face/config.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/hugging_face_test_util.h"
#include "tools/convert/hugging_face/config_fields.h"

namespace wisp::hugging_face_config_test {
namespace {

namespace hf = convert::hugging_face;
using nlohmann::json;
using test::Convert;
using test::Converted;
using test::MakeCopy;
using test::NamedTensor;
using test::ReadTensors;
using test::TemporaryFolder;

void ExpectRefused(const Status& status, const std::string& words) {
  ASSERT_FALSE(status.ok()) << "expected: " << words;
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message() << "\nexpected: " << words;
}

struct Change {
  const char* golden;
  json changed;  // null: as if the key were not there
  const char* words;
};

void ExpectChangesRefused(const std::vector<Change>& changes) {
  for (const Change& c : changes) {
    SCOPED_TRACE(std::string(c.golden) + " " + c.changed.dump());
    const TemporaryFolder temporary;
    const Status status = Convert(MakeCopy(c.golden, temporary, c.changed), temporary / "m.wisp");
    ExpectRefused(status, c.words);
    EXPECT_NE(status.message().find("/config.json: "), std::string::npos) << status.message();
    EXPECT_FALSE(std::filesystem::exists(temporary / "m.wisp"));
  }
}

TEST(HuggingFaceConfig, UnsupportedSettings_AreRefusedByName) {
  ExpectChangesRefused({
      {"bert", {{"model_type", "mpnet"}}, "model_type is 'mpnet', supported are bert, electra, roberta, xlm-roberta"},
      {"bert", {{"model_type", nullptr}}, "model_type is missing, supported are bert"},
      {"bert",
       {{"architectures", {"BertForTokenClassification"}}},
       "architectures is 'BertForTokenClassification', supported of model_type bert is a list of one of BertModel"},
      {"bert", {{"architectures", {"BertModel", "BertModel"}}}, "architectures is a list"},
      {"bert", {{"hidden_act", "mish"}}, "hidden_act is 'mish', supported are gelu, gelu_new"},
      {"bert",
       {{"position_embedding_type", "relative_key"}},
       "position_embedding_type is 'relative_key', supported is absolute"},
      {"bert", {{"is_decoder", true}}, "is_decoder is true, supported is false"},
      {"bert", {{"add_cross_attention", true}}, "add_cross_attention is true, supported is false"},
      {"electra", {{"embedding_size", 12}}, "embedding_size is 12, supported is hidden_size, 24"},
      {"bert_classes", {{"problem_type", "regression"}}, "problem_type is 'regression'"},
      {"bert_classes", {{"id2label", {{"0", "only"}}}}, "id2label is of 1 classes, supported are 2 and more"},
      {"gpt2", {{"scale_attn_by_inverse_layer_idx", true}}, "scale_attn_by_inverse_layer_idx is true"},
      {"gpt2", {{"scale_attn_weights", false}}, "scale_attn_weights is false, supported is true"},
      {"gpt2", {{"add_cross_attention", true}}, "add_cross_attention is true"},
      {"llama", {{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}}}, "rope_type is 'llama3', supported is"},
      {"llama", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}, "type is 'linear', supported is default"},
      {"llama", {{"rope_parameters", {{"rope_type", "yarn"}}}}, "rope_type is 'yarn'"},
      {"llama", {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}, "partial_rotary_factor is another"},
      {"llama", {{"attention_bias", true}}, "attention_bias is true, supported is false"},
      {"llama", {{"mlp_bias", true}}, "mlp_bias is true, supported is false"},
      {"qwen2_window", {{"layer_types", {"full_attention"}}}, "layer_types is"},
      {"qwen2_window",
       {{"layer_types", {"full_attention", "linear_attention"}}},
       "a list of a word for each block, full_attention or sliding_attention"},
  });
}

TEST(HuggingFaceConfig, MalformedSettings_AreRefusedByName) {
  ExpectChangesRefused({
      {"bert", {{"hidden_size", "24"}}, "hidden_size is '24', allowed are 1 to 8192"},
      {"bert", {{"hidden_size", -24}}, "hidden_size is '-24', allowed are 1 to 8192"},
      {"bert", {{"hidden_size", 24.0}}, "hidden_size is '24.0', allowed are 1 to 8192"},
      {"bert", {{"hidden_size", nullptr}}, "there is no hidden_size"},
      {"bert", {{"hidden_size", 1e30}}, "hidden_size is"},
      {"bert", {{"num_hidden_layers", 18446744073709551615u}}, "num_hidden_layers is '18446744073709551615'"},
      {"bert", {{"num_attention_heads", 5}}, "num_attention_heads is 5, which does not divide hidden_size 24"},
      {"bert", {{"layer_norm_eps", 0}}, "norm_epsilon must lie between 0 and 1"},
      {"bert", {{"layer_norm_eps", "tiny"}}, "layer_norm_eps is 'tiny', allowed is a number"},
      {"bert", {{"is_decoder", 0}}, "is_decoder is '0', allowed are true and false"},
      {"roberta", {{"pad_token_id", 30}}, "max_position_embeddings is 22, allowed is more than 31"},
      {"bert_classes", {{"id2label", {"a", "b", "c"}}}, "id2label is no object"},
      {"bert_classes", {{"id2label", {{"0", "a"}, {"2", "b"}}}}, "id2label is no object"},
      {"llama", {{"rope_scaling", 2}}, "rope_scaling is '2'"},
      {"llama", {{"rope_parameters", {{"rope_theta", 0.5}}}}, "rotary_base is 0.5"},
      {"llama", {{"num_key_value_heads", 3}}, "num_kv_heads is 3"},
      {"mistral", {{"num_key_value_heads", nullptr}}, "there is no num_key_value_heads"},
  });
  for (const char* text : {"", "{", "[]", "7", "{\"model_type\": \"be\x01rt\"}", "\xff\xfe"}) {
    const auto read = hf::ReadConfig("config.json", text, {});
    EXPECT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().message().rfind("config.json: ", 0), 0u) << read.status().message();
  }
}

TEST(HuggingFaceConfig, LengthIsCutAndSaid) {
  const TemporaryFolder temporary;
  const auto read = [&](const json& changed, uint32_t max_length) {
    json config = json::parse(test::ReadAll(test::GoldenFolder("mistral") + "/config.json"));
    config.update(changed);
    return hf::ReadConfig("config.json", config.dump(), {.max_length = max_length});
  };
  const auto long_one = read({{"max_position_embeddings", 131072}}, 0);
  ASSERT_TRUE(long_one.ok()) << long_one.status().message();
  EXPECT_EQ(long_one->architecture.max_length, kMaxLength);
  ASSERT_EQ(long_one->notes.size(), 1u);
  EXPECT_NE(long_one->notes[0].find("131072"), std::string::npos);
  // A window of all positions equals no window.
  EXPECT_EQ(read({{"sliding_window", 8}}, 8)->architecture.blocks[0].attention.window, 0u);
  EXPECT_EQ(read({{"sliding_window", 8}}, 9)->architecture.blocks[0].attention.window, 8u);
  ExpectRefused(read(json::object(), 21).status(), "--max-length is 21, the model has 20 positions");
}

// Changes the tensors of a folder, and expects a refusal.
void ExpectTensorsRefused(const std::string& golden, const std::function<void(std::vector<NamedTensor>&)>& change,
                          const std::string& words) {
  const TemporaryFolder temporary;
  const std::string folder = MakeCopy(golden, temporary), path = folder + "/model.safetensors";
  std::vector<NamedTensor> tensors = ReadTensors(path);
  change(tensors);
  test::WriteTensors(path, tensors);
  ExpectRefused(Convert(folder, temporary / "m.wisp"), words);
  EXPECT_FALSE(std::filesystem::exists(temporary / "m.wisp"));
}

NamedTensor& Named(std::vector<NamedTensor>& tensors, const std::string& name) {
  for (NamedTensor& t : tensors) {
    if (t.name == name) return t;
  }
  ADD_FAILURE() << name << " is not there";
  return tensors[0];
}

TEST(HuggingFaceTensors, WrongOnesAreRefusedByName) {
  using Tensors = std::vector<NamedTensor>;
  const std::string key = "encoder.layer.1.attention.self.key.weight";
  ExpectTensorsRefused(
      "bert", [&](Tensors& t) { Named(t, key).name = "gone"; }, "there is no tensor '" + key + "'");
  ExpectTensorsRefused(
      "bert",
      [&](Tensors& t) {
        t.push_back({"extra.weight", {1}, {0}});
      },
      "tensor 'extra.weight' [1] belongs to nothing of a BertModel");
  ExpectTensorsRefused(
      "bert",
      [&](Tensors& t) {
        Named(t, key).shape = {12, 48};
      },
      "tensor '" + key + "' has the shape [12, 48], config.json needs [24, 24]");
  ExpectTensorsRefused(
      "bert", [&](Tensors& t) { Named(t, key).values[5] = std::nanf(""); },
      "tensor '" + key + "' holds nan, allowed are finite numbers");
  ExpectTensorsRefused(
      "bert", [&](Tensors& t) { Named(t, "embeddings.word_embeddings.weight").name = "words"; },
      "there is no tensor 'embeddings.word_embeddings.weight' or 'bert.embeddings.word_embeddings.weight'");
  ExpectTensorsRefused(
      "bert",
      [&](Tensors& t) {
        t.push_back({"embeddings.LayerNorm.gamma", {1}, {0}});
      },
      "tensor 'embeddings.LayerNorm.weight' is there twice");
  ExpectTensorsRefused(
      "gpt2",
      [&](Tensors& t) {
        Named(t, "transformer.h.0.mlp.c_fc.weight").shape = {96, 24};
      },
      "has the shape [96, 24], config.json needs [24, 96]");
  ExpectTensorsRefused(
      "llama", [&](Tensors& t) { Named(t, "lm_head.weight").name = "model.layers.7.mlp.up_proj.weight"; },
      "there is no tensor 'lm_head.weight'");
}

// A tensor is left out only for a reason that its numbers confirm.
TEST(HuggingFaceTensors, ReasonsToLeaveOutAreChecked) {
  const auto refused = [](const std::string& golden, NamedTensor tensor, const std::string& words) {
    ExpectTensorsRefused(
        golden, [&](std::vector<NamedTensor>& t) { t.push_back(tensor); }, words);
  };
  refused("bert", {"embeddings.position_ids", {1, 3}, {0, 1, 3}}, "position_ids' [1, 3] holds 3 at place 2, supported");
  refused("gpt2", {"transformer.h.0.attn.bias", {1, 1, 2, 2}, {1, 1, 1, 1}},
          "holds 1 at place 1, supported are the causal");
  refused("gpt2", {"transformer.h.0.attn.bias", {4}, {1, 0, 1, 1}}, "supported are the causal mask");
  refused("gpt2", {"transformer.h.0.attn.masked_bias", {}, {-5}}, "holds -5 at place 0, supported are the score");
  refused("llama", {"model.layers.0.self_attn.rotary_emb.inv_freq", {4}, {1, 2, 3, 4}}, "supported are rotary freq");
}

TEST(HuggingFaceFolder, MissingOrForeignFiles_AreNamed) {
  const TemporaryFolder temporary;
  const auto refused = [&](const std::string& golden, const std::string& words, auto change) {
    const std::string folder = MakeCopy(golden, temporary);
    change(folder);
    ExpectRefused(Convert(folder, temporary / "m.wisp"), words);
  };
  const auto remove = [](const std::string& path) { std::filesystem::remove(path); };
  refused("bert", "there is no config.json", [&](const std::string& f) { remove(f + "/config.json"); });
  refused("bert", "there is no model.safetensors", [&](const std::string& f) { remove(f + "/model.safetensors"); });
  refused("bert", "its weights are pytorch_model.bin",
          [&](const std::string& f) { std::filesystem::rename(f + "/model.safetensors", f + "/pytorch_model.bin"); });
  const auto index = [&](const json& content) {
    return [=](const std::string& f) {
      std::filesystem::rename(f + "/model.safetensors", f + "/a.safetensors");
      test::WriteAll(f + "/model.safetensors.index.json", content.dump());
    };
  };
  refused("bert", "there is no weight_map", index(json::object()));
  refused("bert", "it names the shard 'b.safetensors', which is not there",
          index({{"weight_map", {{"x", "a.safetensors"}, {"y", "b.safetensors"}}}}));
  refused("bert", "tensor 'x' is not in 'a.safetensors'", index({{"weight_map", {{"x", "a.safetensors"}}}}));
  refused("bert", "allowed is a file of this folder", index({{"weight_map", {{"x", "../a.safetensors"}}}}));
  const auto pooling = [&](const json& content) {
    return [=](const std::string& f) { test::WriteAll(f + "/1_Pooling/config.json", content.dump()); };
  };
  refused("sentence", "the pooling mode is 'max_tokens', supported are mean_tokens and cls_token",
          pooling({{"pooling_mode_max_tokens", true}}));
  refused("sentence", "the pooling mode is",
          pooling({{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}}));
  refused("sentence", "module 1 is 'sentence_transformers.models.Dense'", [](const std::string& f) {
    test::WriteAll(f + "/modules.json",
                   R"([{"type":"x.Transformer","path":""},{"type":"sentence_transformers.models.Dense"}])");
  });
  refused("sentence", "allowed is a folder within this one", [](const std::string& f) {
    test::WriteAll(f + "/modules.json",
                   R"([{"type":"x.Transformer","path":"/etc"},{"type":"x.Pooling","path":"1_Pooling"}])");
  });
}

// If no file names the token that separates two sentences, all tokens have the first type, and a note says so.
TEST(HuggingFaceFolder, UnknownSeparatorIsSaid) {
  const TemporaryFolder temporary;
  const std::string folder = MakeCopy("bert", temporary);
  Converted made;
  ASSERT_TRUE(Convert(folder, temporary / "m.wisp", {}, &made).ok());
  EXPECT_EQ(made.description.architecture.token_types.separator, 3);
  EXPECT_TRUE(made.description.notes.empty());
  std::filesystem::remove(folder + "/tokenizer.json");
  ASSERT_TRUE(Convert(folder, temporary / "m.wisp", {}, &made).ok());
  EXPECT_EQ(made.description.architecture.token_types.separator, -1);
  ASSERT_EQ(made.description.notes.size(), 1u);
  EXPECT_NE(made.description.notes[0].find("no file says which token parts two sentences"), std::string::npos);
}

}  // namespace
}  // namespace wisp::hugging_face_config_test
