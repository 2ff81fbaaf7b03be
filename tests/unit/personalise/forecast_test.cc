// The predictions of a plan: settings that follow from public numbers, an outlook, memory to the byte, a time.
#include "runtime/personalise/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "runtime/core/file_lock.h"
#include "runtime/train/run/initialise.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::forecast_test {
namespace {

class Forecast : public ::testing::Test {
 protected:
  Forecast() {
    architecture_ = UniformArchitecture{
        .num_items = 50, .max_length = 10, .width = 16, .num_heads = 1, .num_blocks = 1, .inner_width = 16};
  }
  Deployment MustPlan(const DeploymentRequest& request) {
    auto deployment = CalibrateDeployment(architecture_, SuggestDeployment(request));
    EXPECT_TRUE(deployment.ok()) << deployment.status().message();
    return *std::move(deployment);
  }

  test::TemporaryFolder folder_;
  Architecture architecture_;
};

TEST_F(Forecast, SettingsFollowFromPublicNumbers) {
  const DeploymentSettings s = SuggestDeployment({.num_records_public = 2000, .epsilon = 4, .delta = 1e-5, .runs = 12});
  EXPECT_EQ(s.expected_batch, 500u) << "a quarter";
  EXPECT_EQ(s.steps_per_run * s.runs, 120u) << "30 passes";
  EXPECT_EQ(s.evaluations, 12u) << "training waits for them";
  EXPECT_EQ(SuggestDeployment({.num_records_public = 2000, .epsilon = 4, .delta = 1e-5, .runs = 12, .trains_until = 9})
                .evaluations,
            5u)
      << "one for 400 records";
  const DeploymentSettings year =
      SuggestDeployment({.num_records_public = 2000, .epsilon = 4, .delta = 1e-5, .runs = 365});
  EXPECT_EQ(year.steps_per_run, 1u) << "every run has a step";
  const DeploymentSettings few = SuggestDeployment({.num_records_public = 20, .epsilon = 4, .delta = 1e-5, .runs = 3});
  EXPECT_EQ(few.expected_batch, 20u) << "no more than there are";
  EXPECT_EQ(few.evaluations, 3u) << "one a run";
  const DeploymentSettings many =
      SuggestDeployment({.num_records_public = 1'000'000, .epsilon = 4, .delta = 1e-7, .runs = 3});
  EXPECT_EQ(many.expected_batch, 4096u);
  const DeploymentSettings asked = SuggestDeployment({.num_records_public = 2000,
                                                      .epsilon = 4,
                                                      .delta = 1e-5,
                                                      .runs = 12,
                                                      .steps_per_run = 7,
                                                      .expected_batch = 33,
                                                      .learning_rate = 0.5,
                                                      .evaluations = 0});
  EXPECT_EQ(asked.steps_per_run, 7u);
  EXPECT_EQ(asked.expected_batch, 33u);
  EXPECT_EQ(asked.learning_rate, 0.5);
  EXPECT_EQ(asked.evaluations, 0u);
}

// The less signal the noise leaves, the smaller the steps.
TEST_F(Forecast, TheRateFollowsFromTheNoise) {
  const auto rate = [&](uint32_t records, double asked) {
    const DeploymentRequest r{
        .num_records_public = records, .epsilon = 4, .delta = 1e-6, .runs = 10, .learning_rate = asked};
    return PlanDeployment(architecture_, r)->settings.learning_rate;
  };
  EXPECT_EQ(rate(100'000, 0), 0.01) << "at most";
  EXPECT_LT(rate(300, 0), 0.008);
  EXPECT_EQ(rate(300, 0.5), 0.5);
}

TEST_F(Forecast, SaysWhereItIsHopelessAndWhatWouldHelp) {
  const DeploymentRequest good{.num_records_public = 200'000, .epsilon = 8, .delta = 1e-6, .runs = 12};
  const Deployment many = MustPlan(good);
  const Outlook clear = MakeOutlook(architecture_, many.settings);
  EXPECT_EQ(clear.kind, Outlook::Kind::kGain);
  EXPECT_TRUE(clear.advice.empty());
  EXPECT_TRUE(clear.found);
  ASSERT_EQ(clear.power.size(), 6u);
  for (const Outlook::PowerRow& row : clear.power) EXPECT_LE(row.after_first, row.after_all + 1e-9) << row.gain;

  const Deployment few = MustPlan({.num_records_public = 20, .epsilon = 0.5, .delta = 1e-4, .runs = 365});
  const Outlook hopeless = MakeOutlook(architecture_, few.settings);
  EXPECT_EQ(hopeless.kind, Outlook::Kind::kHopeless);
  EXPECT_FALSE(hopeless.found);
  EXPECT_GE(hopeless.advice.size(), 2u);
  EXPECT_NE(hopeless.advice.front().find("the base is the better model"), std::string::npos);
}

// More records and a larger epsilon leave less noise; more trained numbers have more of it.
TEST_F(Forecast, NoiseToSignalGoesTheWayItShould) {
  const DeploymentRequest request{.num_records_public = 5000, .epsilon = 4, .delta = 1e-6, .runs = 10};
  const auto of = [&](const DeploymentRequest& r) { return NoiseToSignal(architecture_, MustPlan(r).settings); };
  const double usual = of(request);
  DeploymentRequest more = request, private_one = request;
  more.num_records_public = 20000;
  private_one.epsilon = 1;
  EXPECT_LT(of(more), 0.5 * usual);
  EXPECT_GT(of(private_one), 1.5 * usual);
  const DeploymentSettings settings = MustPlan(request).settings;
  const double small = NoiseToSignal(architecture_, settings);
  architecture_.num_items *= 4;
  EXPECT_GT(NoiseToSignal(architecture_, settings), small);
}

// In a sparse catalogue there is little noise as a whole, but almost only noise for each item: the base stays the
// better model.
TEST_F(Forecast, SaysWhereItemsHaveTooFewEvents) {
  architecture_ = UniformArchitecture{
      .num_items = 23715, .max_length = 50, .width = 32, .num_heads = 4, .num_blocks = 2, .inner_width = 32};
  const auto planned = [&](uint32_t records) {
    return MustPlan({.num_records_public = records, .epsilon = 4, .delta = 1e-7, .runs = 12}).settings;
  };
  const DeploymentSettings settings = planned(9706);
  const Outlook shop = MakeOutlook(architecture_, settings, 9);
  EXPECT_LT(shop.noise_to_signal, kNoGain);
  EXPECT_GT(shop.noise_of_an_item, kNoItemGain);
  EXPECT_EQ(shop.kind, Outlook::Kind::kNewItems);
  ASSERT_FALSE(shop.advice.empty());
  EXPECT_NE(shop.advice.front().find("the base to stay what is served"), std::string::npos);
  EXPECT_EQ(MakeOutlook(architecture_, settings).typical_events, kTypicalEvents);
  EXPECT_LT(MakeOutlook(architecture_, settings, 40).noise_of_an_item, shop.noise_of_an_item) << "histories say more";
  EXPECT_EQ(MakeOutlook(architecture_, planned(400'000), 9).kind, Outlook::Kind::kGain);
  architecture_.num_items = 480;
  const auto cafe = [&](uint32_t records) { return MakeOutlook(architecture_, planned(records), 26).kind; };
  EXPECT_EQ(cafe(500), Outlook::Kind::kNewItems);
  EXPECT_EQ(cafe(2000), Outlook::Kind::kSomeGain);
  EXPECT_EQ(cafe(20000), Outlook::Kind::kGain);
}

// If people join over the year, they are fewer at first, and their steps have relatively more noise.
TEST_F(Forecast, CountsThosePeopleWhoAreThere) {
  DeploymentRequest request{.num_records_public = 5000, .epsilon = 4, .delta = 1e-6, .runs = 10, .steps_per_run = 20};
  const Outlook all = MakeOutlook(architecture_, MustPlan(request).settings);
  request.num_records_at_start = 500;
  const Outlook coming = MakeOutlook(architecture_, MustPlan(request).settings);
  EXPECT_GT(coming.noise_to_signal, 1.3 * all.noise_to_signal);
  EXPECT_GT(coming.noise_of_an_item, 1.3 * all.noise_of_an_item);
  request.steps_per_run = 1;
  const Outlook each = MakeOutlook(architecture_, MustPlan(request).settings);
  EXPECT_NE(each.advice.front().find("with fewer runs (`runs`) the steps could follow the number of records"),
            std::string::npos);
}

// The noise of 9,000,000 pairs takes some hundred times as long as one step on one record.
TEST_F(Forecast, MeasuresAReleaseOfSuccessions) {
  const Architecture many = UniformArchitecture{
      .num_items = 3000, .max_length = 4, .width = 4, .num_heads = 1, .num_blocks = 1, .inner_width = 4};
  std::vector<float> weights(FlatSize(ListParameters(many)));
  auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(many, {}, random, weights);
  Deployment deployment = MustPlan({.num_records_public = 400, .epsilon = 4, .delta = 1e-5, .runs = 1});
  deployment.settings.steps_per_run = deployment.settings.expected_batch = 1;
  deployment.settings.succession_noise = 1;
  double cpu[2];
  for (uint32_t releases : {0, 1}) {
    deployment.settings.succession_releases = releases;
    const auto time = MeasureDeployment(many, weights, deployment,
                                        {.ledger_path = folder_ / "made-up", .num_threads = 1, .seconds = 0.05});
    ASSERT_TRUE(time.ok()) << time.status().message();
    cpu[releases] = time->cpu_of_run;
  }
  EXPECT_GT(cpu[1], 4 * cpu[0]);
}

TEST_F(Forecast, MeasuresWithoutALog) {
  const Deployment deployment = MustPlan({.num_records_public = 400, .epsilon = 4, .delta = 1e-5, .runs = 12});
  std::vector<float> weights(FlatSize(ListParameters(architecture_)));
  auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(architecture_, {}, random, weights);
  const std::string path = folder_ / "made-up";
  const std::vector<std::string> ours = {path, path + ".plan", path + ".measuring", path + ".measuring.plan"};
  for (const std::string& file : ours) std::ofstream(file) << "of somebody else";
  const auto time =
      MeasureDeployment(architecture_, weights, deployment, {.ledger_path = path, .num_threads = 1, .seconds = 0.3});
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_GT(time->cpu_of_run, 0);
  EXPECT_GT(time->cpu_of_evaluation, 0);
  for (const std::string& file : ours) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  const auto files = std::distance(std::filesystem::directory_iterator(folder_ / ""), {});
  EXPECT_EQ(files, static_cast<ptrdiff_t>(ours.size())) << "what was made up is gone";
  // Files that a killed process left are deleted too. Files that another process holds, or that nobody held, stay.
  const std::string left = path + ".measuring-Left01", held = path + ".measuring-Held01",
                    other = path + ".measuring-Other1", longer = path + ".measuring-Longer1";
  for (const std::string& folder : {left, held, other, longer}) {
    std::filesystem::create_directory(folder);
    for (const char* file : {"/steps", "/plan", "/plan-journal"}) std::ofstream(folder + file) << "made up";
    if (folder != other) std::ofstream(folder + "/lock").flush();
  }
  {
    const auto lock = FileLock::Take(held + "/lock", "held");
    ASSERT_TRUE(lock.ok());
    ASSERT_TRUE(
        MeasureDeployment(architecture_, weights, deployment, {.ledger_path = path, .num_threads = 1, .seconds = 0.1})
            .ok());
    EXPECT_FALSE(std::filesystem::exists(left));
    for (const std::string& folder : {held, other, longer}) EXPECT_TRUE(std::filesystem::exists(folder + "/plan"));
  }
  EXPECT_FALSE(MeasureDeployment(architecture_, weights, deployment, {.ledger_path = folder_ / "none/x"}).ok());
}

}  // namespace
}  // namespace wisp::forecast_test
