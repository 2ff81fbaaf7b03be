// A device's part of a round: from the weights of the round and its own records to the update that it sends.
//
//   WISP_ASSIGN_OR_RETURN(const auto update, DeviceUpdate::Create(base, plan));
//   WISP_RETURN_IF_ERROR(update->TakeWeights(wire));
//   const std::string numbers = update->Compute(records, seed);
//
// Sensitivity: whatever the records are, what Compute returns is within UpdateGrid's bound. Records that the model
// cannot use are left out, and a device without any sends zeros: a refusal would tell that they exist. The update is
// no release by itself: the server adds the noise (fleet_server.h), and FleetNode charges before it sends.
// ComputePrivately protects each record against the server too: what it rounds was released by a private run, which
// has charged the ledger of the records.
//
// For a device with one record, the gradient is the one that a central run by Phantom Clipping adds for this record,
// bit for bit (TrainingOptions with one thread).
#ifndef WISP_RUNTIME_FLEET_DEVICE_UPDATE_H_
#define WISP_RUNTIME_FLEET_DEVICE_UPDATE_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/data/sequences.h"
#include "runtime/fleet/fleet_plan.h"
#include "runtime/fleet/round_model.h"
#include "runtime/fleet/update_grid.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/gradients/record_gradients.h"
#include "runtime/layers/record.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/held_weights.h"
#include "runtime/train/record_pass.h"

namespace wisp::fleet {

// The promise to each record of a device: epsilon at delta for so many participations together.
struct RecordProtection {
  privacy::Ledger* ledger = nullptr;  // of the records
  double epsilon = 0, delta = 0;
  uint32_t num_records_public = 0, expected_batch = 0;
  uint32_t participations = 0;
};

class DeviceUpdate {
 public:
  // Errors of RoundModel::Create. `base` must outlive the result.
  static Result<std::unique_ptr<DeviceUpdate>> Create(const ModelFile& base, const FleetPlan& plan);
  DeviceUpdate(const DeviceUpdate&) = delete;
  DeviceUpdate& operator=(const DeviceUpdate&) = delete;

  // Takes the weights of the round. Errors of RoundModel::Decode.
  Status TakeWeights(std::string_view wire);
  // The update of these records, of UpdateGrid::bytes() bytes. Equal arguments give equal bits. `seed` decides the
  // rounding, which needs no secret.
  std::string Compute(std::span<const Record> records, uint64_t seed);
  // The change that a private run of the plan's local steps makes. Equal arguments give other bits: its noise is fresh.
  // kPrivacyRefused: the ledger has no room for the run. Errors of RunTrainingJob.
  Result<std::string> ComputePrivately(const data::Sequences& sequences, const RecordProtection& protection,
                                       uint64_t seed);

  const RoundModel& model() const { return model_; }
  const UpdateGrid& grid() const { return grid_; }
  // The weights of the round, from RoundModel::first_held() on.
  std::span<const float> held() { return weights_.current(); }

 private:
  DeviceUpdate(RoundModel model, const FleetPlan& plan);

  bool IsUsable(const Record& record) const;
  void AddOne(const Record& record);
  void AddMeanGradient(std::span<const Record> records);
  TrainingOptions LocalOptions() const;
  void AddLocalChange(std::span<const Record> records, uint64_t seed);
  // The difference between the weights of the round and these, which are held from first_held() on.
  void AddChange(std::span<const float> after);
  void AddClipped(std::span<const float> change);
  // The sum as it travels, rounded.
  std::string Rounded(uint64_t seed);
  template <class Outcomes>
  void Pass(std::span<const Record> records, Gradients gradients, const Outcomes& outcomes);

  FleetPlan plan_;
  RoundModel model_;
  UpdateGrid grid_;
  HeldWeights weights_;
  Buffers buffers_;
  RecordPass<Graph> pass_;
  ClipRule clip_;
  GridGradientSum sum_;  // in the layout of the trained set
  OwnedGradients gradients_;
};

}  // namespace wisp::fleet

#endif  // WISP_RUNTIME_FLEET_DEVICE_UPDATE_H_
