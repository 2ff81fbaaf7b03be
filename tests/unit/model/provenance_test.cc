// Weights that are made from several models have learned from everything that any of these did.
#include "runtime/model/provenance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/model/model_test_util.h"

namespace wisp::provenance_test {
namespace {

using Past = std::vector<ProvenanceEntry>;

// Returns the entry of a run on a data set, without a guarantee unless it has an epsilon.
ProvenanceEntry Entry(const std::string& dataset, std::optional<double> epsilon = {}, uint64_t base = 0) {
  ProvenanceEntry entry{.description = "trained", .dataset = dataset, .base_model_hash = base};
  if (!epsilon) return entry;
  entry.epsilon = epsilon;
  entry.noise = NoiseOrigin::kSecure;
  entry.mechanisms = {"noise"};
  return entry;
}

// Known models, one of them with two equal runs; one without any entry; one whose base is unknown.
std::vector<Past> Pasts() {
  return {{Entry("public")},
          {Entry("public"), Entry("log", {}, 1)},
          {Entry("public"), Entry("log", 2.0, 1), Entry("other", 1.0, 2)},
          {Entry("shop", 1.0), Entry("shop", 1.0)},
          {},
          {Entry("log", 2.0, 7)}};
}

// Sorts the entries, so that their order tells nothing.
Past Sorted(Past past) {
  std::sort(past.begin(), past.end(), [](const ProvenanceEntry& a, const ProvenanceEntry& b) {
    return std::tuple(a.dataset, a.base_model_hash, a.epsilon) < std::tuple(b.dataset, b.base_model_hash, b.epsilon);
  });
  return past;
}

Past Join(const std::vector<Past>& pasts) {
  std::vector<std::span<const ProvenanceEntry>> inputs(pasts.begin(), pasts.end());
  return JoinProvenance(inputs);
}

// Returns some of the models, some of them more than once.
std::vector<Past> Some(std::mt19937& random) {
  std::vector<Past> some;
  const std::vector<Past> all = Pasts();
  for (size_t n = 2 + random() % 4; n > 0; --n) some.push_back(all[random() % all.size()]);
  return some;
}

TEST(JoinProvenance, LosesNothing) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const std::vector<Past> inputs = Some(random);
    const Past joined = Join(inputs);
    for (const Past& input : inputs) {
      for (const ProvenanceEntry& entry : input)
        ASSERT_GE(std::count(joined.begin(), joined.end(), entry), std::count(input.begin(), input.end(), entry));
      const bool known = !input.empty() && input.front().base_model_hash == 0;
      ASSERT_TRUE(known ||
                  std::any_of(joined.begin(), joined.end(),
                              [](const ProvenanceEntry& e) { return e.dataset == kUnknownDataset && !e.epsilon; }))
          << "what is unknown of one input is unknown of the result";
    }
    ASSERT_TRUE(std::equal(inputs[0].begin(), inputs[0].end(), joined.begin())) << "the first stands first";
  }
}

TEST(JoinProvenance, DoesNotDependOnOrderOrRepetition) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::vector<Past> inputs = Some(random);
    const Past joined = Sorted(Join(inputs));
    std::shuffle(inputs.begin(), inputs.end(), random);
    ASSERT_EQ(Sorted(Join(inputs)), joined);
    inputs.push_back(inputs[random() % inputs.size()]);
    ASSERT_EQ(Sorted(Join(inputs)), joined) << "one of them twice";
    inputs.pop_back();
    // Merging in two steps equals merging in one.
    const std::vector<Past> rest(inputs.begin() + 1, inputs.end());
    ASSERT_EQ(Sorted(Join({inputs[0], Join({inputs[1], Join(rest)})})), joined);
    ASSERT_EQ(Join({Join(inputs), inputs.back()}), Join(inputs));
  }
}

TEST(JoinProvenance, OneModelAlone_KeepsWhatItSays) {
  for (const Past& past : Pasts()) EXPECT_EQ(Join({past}), past);
}

TEST(MixtureTest, Contents_AreOfTheMainModelAndNameAll) {
  const test::TemporaryFolder folder;
  test::SmallModel model;
  const auto write = [&](const std::string& path, const Past& past) {
    ModelContents contents = model.contents();
    contents.provenance = past;
    EXPECT_TRUE(WriteModel(path, contents).ok());
    model.weights[0] += 1;
    return *ModelFile::Open(path);
  };
  const ModelFile to = write(folder / "to", {Entry("public")}), from = write(folder / "from", {Entry("log")}),
                  mine = write(folder / "mine", {Entry("log"), Entry("log", 1.0, from.content_hash())});
  const Mixture mixture(to, {&from, &mine}, "mixed");
  const Past& past = mixture.Contents().provenance;
  ASSERT_EQ(past.size(), 4u);
  EXPECT_EQ(past[0], Entry("public"));
  EXPECT_EQ(past[1].description, "mixed");
  EXPECT_EQ(past[1].base_model_hash, to.content_hash());
  EXPECT_EQ(past[2], Entry("log")) << "without a guarantee, and so is the mixture";
  EXPECT_EQ(past[3], mine.provenance()[1]);
  EXPECT_EQ(mixture.Contents().item_keys.size(), to.num_items());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(mixture.weights(i)[0], mixture.weights(0)[0] + static_cast<float>(i));
}

}  // namespace
}  // namespace wisp::provenance_test
