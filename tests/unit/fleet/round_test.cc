// A round of a fleet, without a network: what devices compute, what the server adds up and releases, and that both
// together are the central run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "runtime/fleet/device_update.h"
#include "runtime/fleet/fleet_budget.h"
#include "runtime/fleet/server/fleet_server.h"
#include "runtime/fleet/update_grid.h"
#include "runtime/train/trainer.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::fleet {
namespace {

constexpr size_t kDevices = 60;

class Round : public wisp::test::RingTraining {
 protected:
  Round() : RingTraining(kDevices) {
    std::vector<std::string> keys;
    for (uint32_t i = 0; i < kSmall.num_items; ++i) keys.push_back("item " + std::to_string(i));
    const Status written = WriteModel(
        folder_ / "base.wisp", {.architecture = kSmall, .weights = start_, .item_keys = keys, .created_by = "test"});
    EXPECT_TRUE(written.ok()) << written.message();
    base_.emplace(*ModelFile::Open(folder_ / "base.wisp"));
  }

  // Every device takes part in every round.
  FleetPlan Plan(uint32_t rounds = 3) const {
    FleetPlan plan{.name = "ring",
                   .base_hash = base_->content_hash(),
                   .devices = kDevices,
                   .rounds = rounds,
                   .takes_part = rounds,
                   .bits = 32,
                   .weight_bits = 32,
                   .epsilon = 100,
                   .optimizer = {.learning_rate = 0.05f}};
    plan.num_weights = *RoundModel::CountWeights(*base_, plan);
    const Result<FleetPlan> made = MakePlan(plan);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *made : plan;
  }
  std::unique_ptr<FleetServer> Server(const FleetPlan& plan, std::optional<uint64_t> seed = 7) {
    auto server = FleetServer::Open(
        {.plan = plan, .base = &*base_, .folder = std::string(folder_.path()), .reproducible_seed = seed});
    EXPECT_TRUE(server.ok()) << server.status().message();
    return std::move(*server);
  }
  std::unique_ptr<DeviceUpdate> Device(const FleetPlan& plan) {
    auto device = DeviceUpdate::Create(*base_, plan);
    EXPECT_TRUE(device.ok()) << device.status().message();
    return std::move(*device);
  }

  std::optional<ModelFile> base_;
};

template <class Integer>
std::vector<Integer> Read(const std::string& update) {
  std::vector<Integer> numbers(update.size() / sizeof(Integer));
  std::memcpy(numbers.data(), update.data(), update.size());
  return numbers;
}

std::vector<float> ReadWeights(const FleetServer& server) {
  std::vector<float> weights(server.weights().size() / sizeof(float));
  std::memcpy(weights.data(), server.weights().data(), server.weights().size());
  return weights;
}

TEST_F(Round, OfAllDevices_IsAStepOfTheCentralRun) {
  const FleetPlan plan = Plan();
  privacy::Ledger ledger = OpenLedger("central.ledger");
  auto central = Trainer::Create(
      kSmall, start_, ring_.records,
      {.method = Method::kPhantom,
       .sampling = Sampling::kPoisson,
       .num_steps = plan.rounds,
       .expected_batch = kDevices,
       .num_records_public = kDevices,
       .optimizer = plan.optimizer,
       .num_threads = 1,
       .privacy = {
           .noise_multiplier = plan.noise_multiplier, .ledger = &ledger, .run = "central", .reproducible_seed = 7}});
  ASSERT_TRUE(central.ok()) << central.status().message();
  const auto server = Server(plan);
  const auto device = Device(plan);
  while (!server->done()) {
    ASSERT_TRUE(server->BeginRound().ok());
    ASSERT_TRUE(device->TakeWeights(server->weights()).ok());
    for (size_t i = 0; i < kDevices; ++i) {
      ASSERT_TRUE(server->Asks(i));
      ASSERT_EQ(server->Add(i, device->Compute({&ring_.records[i], 1}, i)), Added::kAdded);
    }
    ASSERT_TRUE(server->EndRound().ok());
    ASSERT_TRUE((*central)->Step().ok());
    const std::vector<float> fleet = ReadWeights(*server);
    std::vector<float> trained(fleet.size());
    server->model().ForEachTrained([&](const ParameterSpec& p, size_t at, size_t, size_t travels) {
      std::copy_n((*central)->weights().data() + at, p.size(), trained.data() + travels);
    });
    ASSERT_EQ(fleet, trained) << "after round " << server->round();
  }
}

TEST_F(Round, RoundedUpdates_HaveTheRightMean) {
  FleetPlan plan = Plan();
  const auto exact = Device(plan);
  const std::vector<int32_t> fine = Read<int32_t>(exact->Compute({&ring_.records[3], 1}, 1));
  plan.bits = 8;
  const auto device = Device(plan);
  const double scale = 0x1p30 / static_cast<double>(plan.steps_per_clip());
  constexpr int kRepeats = 400;
  std::vector<double> sum(fine.size());
  for (int i = 0; i < kRepeats; ++i) {
    const std::string update = device->Compute({&ring_.records[3], 1}, static_cast<uint64_t>(i));
    ASSERT_EQ(update.size(), plan.num_weights);
    const std::vector<int8_t> rounded = Read<int8_t>(update);
    int64_t squares = 0;
    for (size_t k = 0; k < fine.size(); ++k) {
      sum[k] += rounded[k];
      squares += int64_t{rounded[k]} * rounded[k];
    }
    ASSERT_LE(squares, static_cast<int64_t>(plan.steps_per_clip() * plan.steps_per_clip()));
  }
  // The device clips to a smaller norm, so that rounding does not lift it above the bound.
  const double shrunk = device->grid().clip_bound() / exact->grid().clip_bound();
  for (size_t k = 0; k < fine.size(); ++k) {
    const double expected = shrunk * fine[k] / scale;
    if (std::abs(expected) > 120) continue;  // is cut
    EXPECT_NEAR(sum[k] / kRepeats, expected, 6 * 0.5 / std::sqrt(kRepeats)) << k;
  }
}

TEST_F(Round, AddsNothingBeyondTheBoundOrTwice) {
  FleetPlan plan = Plan();
  plan.bits = 8;
  const auto server = Server(plan);
  const std::string zeros(plan.num_weights, '\0');
  EXPECT_EQ(server->Add(1, zeros), Added::kNotAsked) << "no round was begun";
  ASSERT_TRUE(server->BeginRound().ok());
  EXPECT_EQ(server->Add(1, zeros.substr(1)), Added::kOutOfBound);
  EXPECT_EQ(server->Add(1, zeros + '\0'), Added::kOutOfBound);
  std::string longer = zeros;
  const uint64_t k = plan.steps_per_clip();
  // So many coordinates of 100 are just longer than the bound.
  for (size_t i = 0; i <= k * k / 10000; ++i) longer[i] = 100;
  EXPECT_EQ(server->Add(1, longer), Added::kOutOfBound);
  longer[0] = 0;
  EXPECT_EQ(server->Add(1, longer), Added::kAdded);
  EXPECT_EQ(server->Add(1, zeros), Added::kTwice);
  EXPECT_EQ(server->Add(2, zeros), Added::kAdded);
}

TEST_F(Round, EachDeviceIsAskedOnceInABlock) {
  FleetPlan plan = Plan(12);
  plan.takes_part = 3;
  plan = *MakePlan(plan);
  const auto server = Server(plan, std::nullopt);
  for (uint32_t block = 0; block < 3; ++block) {
    std::multiset<uint64_t> asked;
    size_t most = 0;
    for (int round = 0; round < 4; ++round) {
      ASSERT_TRUE(server->BeginRound().ok());
      size_t now = 0;
      for (uint64_t node = 0; node < 1000; ++node) {
        if (!server->Asks(node)) continue;
        asked.insert(node);
        ++now;
      }
      most = std::max(most, now);
      ASSERT_TRUE(server->EndRound().ok());
    }
    EXPECT_EQ(asked.size(), 1000u);
    EXPECT_EQ(std::set(asked.begin(), asked.end()).size(), 1000u);
    EXPECT_LT(most, 350u);  // 250 expected, 14 of deviation
  }
}

TEST_F(Round, WithoutUsableRecords_SendsZeros) {
  const FleetPlan plan = Plan();
  const auto device = Device(plan);
  const std::string zeros(plan.bytes_of_update(), '\0');
  const int32_t unknown[] = {1, 1000};
  const Record bad{std::span(unknown).first(1), std::span(unknown).last(1)};
  EXPECT_EQ(device->Compute({}, 1), zeros);
  EXPECT_EQ(device->Compute({&bad, 1}, 1), zeros);
  EXPECT_NE(device->Compute({&ring_.records[0], 1}, 1), zeros);
}

TEST_F(Round, ManyRecords_AddTheirMeanAndNoMoreThanTheBound) {
  for (const uint32_t bits : {8u, 16u, 32u}) {
    for (const FleetPlan::Method method : {FleetPlan::Method::kGradient, FleetPlan::Method::kLocal}) {
      FleetPlan plan = Plan();
      plan.bits = bits;
      plan.method = method;
      plan.local_steps = method == FleetPlan::Method::kLocal ? 5 : 0;
      plan.local_learning_rate = method == FleetPlan::Method::kLocal ? 0.5 : 0;
      const auto device = Device(plan);
      const std::string one = device->Compute({&ring_.records[0], 1}, 1), all = device->Compute(ring_.records, 1);
      EXPECT_TRUE(device->grid().Within(one)) << bits;
      EXPECT_TRUE(device->grid().Within(all)) << bits;
      EXPECT_NE(one, all);
      EXPECT_NE(all, std::string(plan.bytes_of_update(), '\0'));
    }
  }
}

TEST_F(Round, BlocksAndAdaptersTrainAlone) {
  for (const FleetPlan::Part part : {FleetPlan::Part::kBlocks, FleetPlan::Part::kAdapter}) {
    const wisp::test::TemporaryFolder folder;
    FleetPlan plan = Plan();
    plan.part = part;
    plan.adapter_rank = part == FleetPlan::Part::kAdapter ? 2 : 0;
    plan.bits = 8;
    plan.num_weights = *RoundModel::CountWeights(*base_, plan);
    EXPECT_LT(plan.num_weights, Plan().num_weights);
    auto server = FleetServer::Open(
        {.plan = plan, .base = &*base_, .folder = std::string(folder.path()), .reproducible_seed = 7});
    ASSERT_TRUE(server.ok()) << server.status().message();
    const auto device = Device(plan);
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE((*server)->BeginRound().ok());
      ASSERT_TRUE(device->TakeWeights((*server)->weights()).ok());
      for (size_t i = 0; i < kDevices; ++i)
        ASSERT_EQ((*server)->Add(i, device->Compute({&ring_.records[i], 1}, i)), Added::kAdded);
      ASSERT_TRUE((*server)->EndRound().ok());
    }
    ASSERT_TRUE((*server)->WriteModel(folder / "fleet.wisp").ok());
    const auto model = part == FleetPlan::Part::kAdapter
                           ? ModelFile::OpenWithAdapter(folder_ / "base.wisp", folder / "fleet.wisp")
                           : ModelFile::Open(folder / "fleet.wisp");
    ASSERT_TRUE(model.ok()) << model.status().message();
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const ParameterSpec& p = model->parameters()[i];
      if (p.shape == ParameterShape::kTable) {
        EXPECT_TRUE(std::equal(model->Tensor(i), model->Tensor(i) + p.size(), base_->Tensor(i))) << p.name;
      }
    }
    // A server that resumes has the same weights.
    auto again = FleetServer::Open(
        {.plan = plan, .base = &*base_, .folder = std::string(folder.path()), .reproducible_seed = 7});
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ((*again)->weights(), (*server)->weights());
  }
}

TEST_F(Round, ResumesAfterEachRoundWithTheSameBits) {
  const FleetPlan plan = Plan();
  const auto device = Device(plan);
  const auto run_round = [&](FleetServer& server) {
    ASSERT_TRUE(server.BeginRound().ok());
    ASSERT_TRUE(device->TakeWeights(server.weights()).ok());
    for (size_t i = 0; i < kDevices; ++i)
      ASSERT_EQ(server.Add(i, device->Compute({&ring_.records[i], 1}, i)), Added::kAdded);
    ASSERT_TRUE(server.EndRound().ok());
  };
  std::string at_once;
  {
    const wisp::test::TemporaryFolder other;
    auto server =
        FleetServer::Open({.plan = plan, .base = &*base_, .folder = std::string(other.path()), .reproducible_seed = 7});
    ASSERT_TRUE(server.ok());
    for (int i = 0; i < 3; ++i) run_round(**server);
    at_once = (*server)->weights();
  }
  for (uint32_t i = 0; i < 3; ++i) {
    const auto server = Server(plan);
    ASSERT_EQ(server->round(), i);
    ASSERT_TRUE(server->BeginRound().ok());  // a process that dies here has released nothing
    const auto again = Server(plan);
    run_round(*again);
  }
  const auto server = Server(plan);
  EXPECT_TRUE(server->done());
  EXPECT_EQ(server->weights(), at_once);
  EXPECT_EQ(server->BeginRound().code(), StatusCode::kInvalidArgument);
}

TEST_F(Round, EvaluationIsDrawnOnce) {
  FleetPlan plan = Plan(2);
  plan.takes_part = 1;
  plan.evaluators = 0.5;
  plan.evaluations = 2;
  plan = *MakePlan(plan);
  for (int round = 0; round < 2; ++round) {
    const auto server = Server(plan);
    EXPECT_FALSE(server->evaluation_due()) << round;
    ASSERT_TRUE(server->BeginRound().ok());
    ASSERT_TRUE(server->EndRound().ok());
    ASSERT_TRUE(server->evaluation_due());
    const auto again = Server(plan);  // a restart before the evaluation
    ASSERT_TRUE(again->evaluation_due());
    ASSERT_TRUE(again->BeginEvaluation().ok());
    size_t evaluators = 0;
    for (uint64_t node = 0; node < 100; ++node) {
      if (!again->Asks(node)) continue;
      ++evaluators;
      EXPECT_EQ(again->AddGain(node, std::string(8, '\xff')), Added::kAdded);  // -1 and -1
      EXPECT_EQ(again->AddGain(node, std::string(8, '\0')), Added::kTwice);
    }
    EXPECT_GT(evaluators, 5u);
    EXPECT_EQ(again->AddGain(1000000, std::string(8, '\x7f')), Added::kNotAsked);
    const auto found = again->EndEvaluation();
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->round, static_cast<uint32_t>(round + 1));
    EXPECT_FALSE(again->evaluation_due());
    EXPECT_FALSE(again->EndEvaluation().ok());
  }
}

TEST_F(Round, AnotherPlanIsRefusedInTheSameFolder) {
  FleetPlan plan = Plan();
  {
    const auto server = Server(plan);
    ASSERT_TRUE(server->BeginRound().ok());
    ASSERT_TRUE(server->EndRound().ok());
  }
  plan.optimizer.learning_rate *= 2;
  const auto other =
      FleetServer::Open({.plan = plan, .base = &*base_, .folder = std::string(folder_.path()), .reproducible_seed = 7});
  EXPECT_FALSE(other.ok());
}

TEST_F(Round, TheModelSaysWhatItCost) {
  const FleetPlan plan = Plan();
  const auto server = Server(plan, std::nullopt);
  ASSERT_TRUE(server->BeginRound().ok());
  ASSERT_TRUE(server->EndRound().ok());
  ASSERT_TRUE(server->WriteModel(folder_ / "fleet.wisp").ok());
  const ModelFile model = *ModelFile::Open(folder_ / "fleet.wisp");
  ASSERT_EQ(model.provenance().size(), 1u);
  EXPECT_EQ(model.provenance()[0].privacy_unit, "device");
  ASSERT_TRUE(model.provenance()[0].epsilon);
  EXPECT_LE(*model.provenance()[0].epsilon, plan.epsilon);
  EXPECT_GT(*model.provenance()[0].epsilon, 0.5 * plan.epsilon);
}

}  // namespace
}  // namespace wisp::fleet
