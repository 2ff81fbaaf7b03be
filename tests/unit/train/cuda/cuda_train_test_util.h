// Compares runs on a device with the same runs on the host.
#ifndef WISP_TESTS_UNIT_TRAIN_CUDA_CUDA_TRAIN_TEST_UTIL_H_
#define WISP_TESTS_UNIT_TRAIN_CUDA_CUDA_TRAIN_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/cuda.h"
#include "runtime/train/trainer.h"
#include "tests/unit/device/cuda/device_test_util.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::test {

class CudaTraining : public RingTraining {
 protected:
  CudaTraining() : RingTraining(20) {}

  // With plain steps a weight moves by its gradient, so the difference of the host's and the device's sums is not
  // enlarged.
  TrainingOptions Ordinary() {
    return {.num_steps = 3,
            .expected_batch = 10,
            .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1f, .momentum = 0.5f},
            .seed = 5,
            .num_threads = 2};
  }
  TrainingOptions Private() {
    TrainingOptions o = Ordinary();
    o.method = Method::kPhantom;
    o.sampling = Sampling::kPoisson;
    o.num_records_public = 20;
    o.privacy = {
        .noise_multiplier = 0.3, .clipping_norm = 0.5, .ledger = &ledger_, .run = "run", .reproducible_seed = 7};
    return o;
  }
  static TrainingOptions OnDevice(TrainingOptions o, const kernels::Device& device = TheDevice()) {
    o.device = device;
    return o;
  }

  std::unique_ptr<Trainer> Make(const TrainingOptions& o, const Architecture& a = kSmall) {
    auto trainer = Trainer::Create(a, StartWeights(a), ring_.records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }
  std::vector<float> Run(const TrainingOptions& o, const Architecture& a = kSmall) {
    auto trainer = Make(o, a);
    while (trainer->step() < trainer->end()) {
      const auto report = trainer->Step();
      EXPECT_TRUE(report.ok()) << report.status().message();
      if (!report.ok()) break;
      EXPECT_EQ(report->num_dropped, 0u);
      last_ = *report;
    }
    const auto weights = trainer->final_weights();
    return {weights.begin(), weights.end()};
  }
  void ExpectSameRun(const TrainingOptions& o, const Architecture& a = kSmall) {
    const std::vector<float> host = Run(o, a), start = StartWeights(a);
    const StepReport on_host = last_;
    const std::vector<float> device = Run(OnDevice(o), a);
    EXPECT_EQ(last_.num_records, on_host.num_records);
    EXPECT_NEAR(last_.mean_loss, on_host.mean_loss, 1e-5 * on_host.mean_loss);
    EXPECT_NEAR(last_.mean_norm, on_host.mean_norm, 1e-4 * on_host.mean_norm);
    ASSERT_EQ(device.size(), host.size());
    float moved = 0;
    for (size_t i = 0; i < host.size(); ++i) moved = std::max(moved, std::abs(host[i] - start[i]));
    EXPECT_GT(moved, 1e-3f);
    for (size_t i = 0; i < host.size(); ++i) ASSERT_NEAR(device[i], host[i], 2e-4f * moved) << i;
  }

  privacy::Ledger ledger_ = OpenLedger("ledger");
  StepReport last_;
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_TRAIN_CUDA_CUDA_TRAIN_TEST_UTIL_H_
