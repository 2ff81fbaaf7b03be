// Decides from a model's provenance if sampling from it must be paid for.
#include "runtime/private_sampling/decoding_need.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::decoding_need_test {
namespace {

using privacy::EpsilonDelta;

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

TEST(DecodingNeed, IsReadFromTheProvenance) {
  const ProvenanceEntry good{.mechanisms = {"Gaussian"},
                             .epsilon = 2,
                             .delta = 1e-6,
                             .privacy_unit = "user",
                             .adjacency = "add_remove",
                             .noise = NoiseOrigin::kSecure,
                             .dataset = "history"};
  const ProvenanceEntry shipped{.description = "trained offline", .dataset = "movies"};
  const auto kind = [](std::vector<ProvenanceEntry> entries, const DecodingPolicy& policy = {}) {
    return FindNeed(entries, policy).kind;
  };
  const auto with = [&](const std::function<void(ProvenanceEntry&)>& change) {
    ProvenanceEntry e = good;
    change(e);
    return e;
  };
  constexpr auto kFree = DecodingNeed::Kind::kFree, kCharge = DecodingNeed::Kind::kCharge;
  const std::vector<std::string> labels = {"movies", ""};
  EXPECT_EQ(kind({}), kCharge);
  EXPECT_EQ(kind({good}), kFree);
  EXPECT_EQ(kind({good, good}), kFree);
  EXPECT_EQ(kind({shipped, good}), kCharge);
  EXPECT_EQ(kind({shipped, good}, {.public_datasets = labels}), kFree);
  EXPECT_EQ(kind({shipped}, {.public_datasets = labels}), kFree);
  // an empty label is not a public label
  EXPECT_EQ(kind({good, ProvenanceEntry{}}, {.public_datasets = labels}), kCharge);
  // Imported weights of unknown data are not public, whatever an app declares. Weights of named data are, if that data
  // is declared public.
  const std::vector<std::string> unknown = {kUnknownDataset, "movies"};
  EXPECT_EQ(kind({ProvenanceEntry{.dataset = kUnknownDataset}}, {.public_datasets = unknown}), kCharge);
  EXPECT_EQ(kind({ProvenanceEntry{.dataset = "movies"}}, {.public_datasets = unknown}), kFree);
  EXPECT_EQ(kind({with([](auto& e) { e.epsilon.reset(); })}), kCharge);
  EXPECT_EQ(kind({with([](auto& e) { e.epsilon = kInf; })}), kCharge);
  EXPECT_EQ(kind({with([](auto& e) { e.epsilon = kNan; })}), kCharge);
  EXPECT_EQ(kind({with([](auto& e) { e.noise = NoiseOrigin::kReproducible; })}), kCharge);
  EXPECT_EQ(kind({with([](auto& e) { e.mechanisms.clear(); })}), kCharge);
  EXPECT_EQ(kind({with([](auto& e) { e.sampling = "shuffled"; })}), kCharge);
  // The model was fine-tuned from one without an entry: a guarantee of the fine-tuning does not cover that model's
  // data.
  const ProvenanceEntry fine_tuned = with([](auto& e) { e.base_model_hash = 42; });
  EXPECT_EQ(kind({fine_tuned}), kCharge);
  EXPECT_EQ(kind({good, fine_tuned}), kFree);
  EXPECT_EQ(kind({with([](auto& e) { e.dataset = "movies", e.base_model_hash = 42; })}, {.public_datasets = labels}),
            kCharge);
  // This delta allows publishing a whole record.
  EXPECT_EQ(kind({good}, {.num_records_public = 999'999}), kFree);
  EXPECT_EQ(kind({good}, {.num_records_public = 1'000'000}), kCharge);
  EXPECT_EQ(
      kind({with([](auto& e) { e.dataset = "movies"; })}, {.public_datasets = labels, .num_records_public = 1'000'000}),
      kFree);
  const EpsilonDelta three = *EpsilonDelta::Create(3, 1e-5), five = *EpsilonDelta::Create(5, 1e-5),
                     tiny_delta = *EpsilonDelta::Create(5, 1e-7);
  EXPECT_EQ(kind({good}, {.wanted = three}), kFree);
  EXPECT_EQ(kind({good, good}, {.wanted = three}), kCharge);
  EXPECT_EQ(kind({good, good}, {.wanted = five}), kFree);
  EXPECT_EQ(kind({good}, {.wanted = tiny_delta}), kCharge);
  EXPECT_EQ(kind({good, with([](auto& e) { e.privacy_unit = "day"; })}, {.wanted = five}), kCharge);
  // The reason why sampling is free. It does not speak of a guarantee if the data was only declared public.
  const auto reason = [](std::vector<ProvenanceEntry> entries, const DecodingPolicy& policy = {}) {
    return FindNeed(entries, policy).reason;
  };
  const std::vector<std::string> both = {"movies", "history"};
  EXPECT_EQ(reason({good, good}), "the weights carry a guarantee: sampling is free post-processing");
  EXPECT_EQ(reason({shipped, good}, {.public_datasets = labels}),
            "the weights carry a guarantee for all data that is not declared public: sampling is free post-processing");
  EXPECT_EQ(reason({shipped, good}, {.public_datasets = both}),
            "every data set the weights came from is declared public");
  EXPECT_EQ(reason({good, shipped}),
            "run 2 of the provenance, on the data set 'movies', states no epsilon, and its data set is not declared "
            "public (`public_datasets` 'movies')");
  EXPECT_EQ(reason({with([](auto& e) { e.dataset = "", e.epsilon.reset(); })}),
            "run 1 of the provenance, on data that nobody named, states no epsilon, and data without a name cannot be "
            "declared public");
}

TEST(DecodingNeed, SamplesArePaidFromTheLedgerOfWhatTheyShow) {
  const ProvenanceEntry good{
      .mechanisms = {"Gaussian"}, .epsilon = 2, .delta = 1e-6, .noise = NoiseOrigin::kSecure, .dataset = "history"};
  const ProvenanceEntry movies{.dataset = "movies"}, letters{.dataset = "letters"}, unknown{.dataset = kUnknownDataset};
  ProvenanceEntry tuned = good;
  tuned.base_model_hash = 42;
  const std::vector<std::string> labels = {"movies"};
  using Names = std::vector<std::string>;
  const auto shown = [](std::vector<ProvenanceEntry> entries, const DecodingPolicy& policy = {}) {
    return FindNeed(entries, policy).datasets;
  };
  EXPECT_EQ(shown({good}), Names{});
  EXPECT_EQ(shown({}), Names{""});
  EXPECT_EQ(shown({movies, good, letters, movies}), (Names{"movies", "letters"}));
  EXPECT_EQ(shown({movies, good, letters}, {.public_datasets = labels}), Names{"letters"});
  EXPECT_EQ(shown({unknown, letters}), (Names{"", "letters"}));
  EXPECT_EQ(shown({tuned}), Names{""});
  // These guarantees are weaker than the policy asks: a delta that allows publishing a record, and figures that add up
  // to more.
  EXPECT_EQ(shown({good}, {.num_records_public = 1'000'000}), Names{"history"});
  EXPECT_EQ(shown({good, letters, good}, {.wanted = *EpsilonDelta::Create(3, 1e-5)}), Names{"letters"});
  EXPECT_EQ(shown({good, good}, {.wanted = *EpsilonDelta::Create(3, 1e-5)}), Names{"history"});
  const auto pays = [](Names names) { return DatasetToCharge({.datasets = std::move(names)}); };
  EXPECT_EQ(*pays({"letters"}), "letters");
  EXPECT_FALSE(pays({"", "letters"}).ok()) << "nobody would count what is shown of the unnamed data";
  EXPECT_EQ(*pays({""}), "");
  const auto two = pays({"letters", "movies"});
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(two.status().message().find("'letters', 'movies'"), std::string::npos) << two.status().message();
}

TEST(DecodingNeed, ExactCountsInTheOutputBiasAreCoveredByNoMechanism) {
  const std::vector<std::string> labels = {"movies"};
  const test::TemporaryFolder folder;
  const test::SmallModel model;
  DecodingNeed need;
  const auto kind = [&](OutputBiasOrigin origin, const char* dataset, const char* later = nullptr) {
    ModelContents contents = model.contents();
    contents.output_bias_origin = origin;
    contents.provenance = {
        {.mechanisms = {"Gaussian"}, .epsilon = 2, .delta = 1e-6, .noise = NoiseOrigin::kSecure, .dataset = dataset}};
    if (later != nullptr)
      contents.provenance.push_back(contents.provenance.front()), contents.provenance.back().dataset = later;
    const std::string path = folder / "m.wisp";
    EXPECT_TRUE(WriteModel(path, contents).ok());
    auto file = ModelFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status().message();
    need = FindNeed(*file, {.public_datasets = labels});
    return need.kind;
  };
  EXPECT_EQ(kind(OutputBiasOrigin::kExactCounts, "movies"), DecodingNeed::Kind::kFree);
  EXPECT_EQ(kind(OutputBiasOrigin::kExactCounts, "history"), DecodingNeed::Kind::kCharge);
  EXPECT_EQ(need.datasets, std::vector<std::string>{"history"});
  EXPECT_EQ(kind(OutputBiasOrigin::kExactCounts, "movies", "history"), DecodingNeed::Kind::kFree)
      << "counts of public data, then private runs";
  EXPECT_EQ(kind(OutputBiasOrigin::kExactCounts, "history", "letters"), DecodingNeed::Kind::kCharge);
  EXPECT_EQ(need.datasets, std::vector<std::string>{"history"}) << "not the data of the guarantee";
  EXPECT_EQ(kind(OutputBiasOrigin::kPrivateCounts, "history"), DecodingNeed::Kind::kFree);
  EXPECT_EQ(kind(OutputBiasOrigin::kPublicCounts, "history"), DecodingNeed::Kind::kFree);
}

}  // namespace
}  // namespace wisp::decoding_need_test
