// SASRec of other programs: compares lists with their equations in double precision (tools/convert/sasrec_goldens.py),
// and tests refusals.
#include "tools/convert/foreign_sasrec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/from_sources.h"
#include "tests/unit/tools/hugging_face_test_util.h"

namespace wisp::foreign_sasrec_test {
namespace {

using convert::SafeTensorsFile;
using convert::SasrecChoices;
using convert::SasrecLayout;
using nlohmann::json;
using test::NamedTensor;
using test::TemporaryFolder;

std::string Golden(const std::string& file) { return test::FromSources("tests/golden/sasrec/" + file); }

Status MakeModel(const std::string& path, const SasrecChoices& choices, const std::string& out) {
  WISP_ASSIGN_OR_RETURN(const SafeTensorsFile file, SafeTensorsFile::Open(path));
  const auto layout = convert::FindSasrecLayout(file);
  if (!layout) return InvalidData(path, ": the layout is not known");
  ModelContents contents;
  WISP_ASSIGN_OR_RETURN(contents.architecture, convert::SasrecArchitecture("m", file, *layout, choices));
  WISP_ASSIGN_OR_RETURN(const auto weights, convert::SasrecWeights("m", file, *layout, contents.architecture));
  contents.weights = weights;
  contents.created_by = "test";
  return WriteModel(out, contents);
}

// Returns the best items first.
template <class T>
std::vector<size_t> Best(const std::vector<T>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(10);
  return order;
}

void ExpectListsAreEqual(const std::string& tensors, const std::string& cases, std::optional<NormPlacement> norm) {
  const TemporaryFolder temporary;
  const json expected = json::parse(test::ReadAll(Golden("expected.json")));
  const Status status = MakeModel(Golden(tensors), {.num_heads = expected["num_heads"].get<uint32_t>(), .norm = norm},
                                  temporary / "m.wisp");
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(expected[cases].size(), 20u);
  for (const json& one : expected[cases]) {
    auto history = one["history"].get<std::vector<int32_t>>();
    for (int32_t& item : history) --item;  // their items begin after padding
    const auto scores = one["scores"].get<std::vector<double>>();
    const std::vector<float> found = test::Compute(temporary / "m.wisp", history);
    EXPECT_LT(test::LargestDifference(found, scores), 1e-5);
    EXPECT_EQ(Best(found), Best(scores));
  }
}

TEST(ForeignSasrec, ListsAreThoseOfTheirEquations) {
  ExpectListsAreEqual("sasrec_pytorch.safetensors", "post", NormPlacement::kPost);
  ExpectListsAreEqual("sasrec_pytorch.safetensors", "pre", NormPlacement::kPre);
  ExpectListsAreEqual("recbole.safetensors", "recbole", std::nullopt);
}

void ExpectRefused(const Status& status, const std::string& words) {
  ASSERT_FALSE(status.ok()) << "expected: " << words;
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

// The place of the newest event: their histories are padded in front, or at the end.
TEST(ForeignSasrec, PositionsAreCountedAsTheyDo) {
  for (const auto& [golden, positions] : {std::pair{"sasrec_pytorch.safetensors", PositionAlignment::kEnd},
                                          std::pair{"recbole.safetensors", PositionAlignment::kStart}}) {
    const auto file = SafeTensorsFile::Open(Golden(golden));
    ASSERT_TRUE(file.ok());
    const auto a = convert::SasrecArchitecture("m", *file, *convert::FindSasrecLayout(*file),
                                               {.num_heads = 2, .norm = NormPlacement::kPost});
    ASSERT_TRUE(a.ok()) << a.status().message();
    EXPECT_EQ(a->positions, positions);
    EXPECT_EQ(a->max_length, 7u);
    EXPECT_EQ(a->num_items, 40u);
  }
}

TEST(ForeignSasrec, ChoicesThatNoTensorTells_AreRequired) {
  const TemporaryFolder temporary;
  const std::string out = temporary / "m.wisp";
  ExpectRefused(MakeModel(Golden("sasrec_pytorch.safetensors"), {.num_heads = 2}, out),
                "\"norm\": \"post\"} as args.txt");
  ExpectRefused(MakeModel(Golden("recbole.safetensors"), {}, out), "{\"num_heads\": 2} for n_heads: 2");
  ExpectRefused(MakeModel(Golden("recbole.safetensors"), {.num_heads = 2, .norm = NormPlacement::kPre}, out),
                "allowed is post");
  ExpectRefused(MakeModel(Golden("recbole.safetensors"), {.num_heads = 5}, out),
                "num_heads 5, which does not divide the width 12");
}

TEST(ForeignSasrec, OtherTensorsAreRefusedByName) {
  const auto refused = [](const std::string& golden, auto change, const std::string& words) {
    const TemporaryFolder temporary;
    std::vector<NamedTensor> tensors = test::ReadTensors(Golden(golden));
    change(tensors);
    test::WriteTensors(temporary / "t.safetensors", tensors);
    ExpectRefused(
        MakeModel(temporary / "t.safetensors", {.num_heads = 2, .norm = NormPlacement::kPost}, temporary / "m.wisp"),
        words);
  };
  const auto named = [](std::vector<NamedTensor>& tensors, const std::string& name) -> NamedTensor& {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.name == name; });
  };
  const std::string pytorch = "sasrec_pytorch.safetensors", recbole = "recbole.safetensors";
  refused(
      pytorch, [&](auto& t) { named(t, "pos_emb.weight").values[3] = 1; },
      "the first row of 'pos_emb.weight', which stands for padding, is not zero");
  refused(
      pytorch, [&](auto& t) { named(t, "forward_layers.1.conv2.bias").name = "gone"; },
      "there is no tensor 'forward_layers.1.conv2.bias'");
  refused(
      recbole,
      [&](auto& t) {
        t.push_back({"output_bias", {1}, {0}});
      },
      "tensor 'output_bias' [1] belongs to nothing of a SASRec of RecBole");
  refused(
      recbole, [&](auto& t) { named(t, "LayerNorm.bias").values[0] = std::nanf(""); },
      "tensor 'LayerNorm.bias' holds nan");
  refused(
      recbole,
      [&](auto& t) {
        named(t, "trm_encoder.layer.1.feed_forward.dense_1.weight").shape = {12, 20};
      },
      "dense_1.weight' has the shape [12, 20], the other tensors need [20, 12]");
}

TEST(ForeignRecommenders, OtherKindsAreRefusedByName) {
  const TemporaryFolder temporary;
  for (const auto& [name, words] : {std::pair{"gru_layers.weight_ih_l0", "is of a recurrent network (GRU4Rec)"},
                                    std::pair{"item_tower.0.weight", "is of a model of two towers"},
                                    std::pair{"user_embedding.weight", "is of a model with a row for each user"}}) {
    test::WriteTensors(temporary / "t.safetensors",
                       {{"item_embedding.weight", {2, 2}, {1, 2, 3, 4}}, {name, {1}, {0}}});
    const auto file = SafeTensorsFile::Open(temporary / "t.safetensors");
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(convert::FindSasrecLayout(*file).has_value());
    ExpectRefused(convert::RefuseOtherRecommenders("m", *file), words);
  }
  test::WriteTensors(temporary / "t.safetensors", {{"item_embedding.weight", {1}, {0}}});
  EXPECT_TRUE(convert::RefuseOtherRecommenders("m", *SafeTensorsFile::Open(temporary / "t.safetensors")).ok());
}

TEST(ForeignRecommenders, FilesOfTorch_AreNamed) {
  const TemporaryFolder temporary;
  test::WriteAll(temporary / "m.pth", "PK\x03\x04 and more of a zip archive");
  ExpectRefused(SafeTensorsFile::Open(temporary / "m.pth").status(),
                "m.pth: it is a zip archive, as torch saves (.pt, .pth, .bin), supported is safetensors: "
                "tools/convert/to_safetensors.py");
  test::WriteAll(temporary / "old.bin", "\x80\x02\x8a\x0al\xfc\x9c and more");
  ExpectRefused(SafeTensorsFile::Open(temporary / "old.bin").status(), "old.bin: it is a pickle");
}

}  // namespace
}  // namespace wisp::foreign_sasrec_test
