// Checks the options for Trainer::Check.
#include "runtime/train/check_options.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/check_records.h"
#include "runtime/train/method_table.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/trainer.h"

namespace wisp {

Status CheckMethod(const Architecture& a, const TrainingOptions& o) {
  const MethodEntry& method = GetEntry(o);
  return HasGradients(o) && method.check != nullptr ? method.check(a, o) : OkStatus();
}

Status ValidateDevice(const TrainingOptions& o) {
  const kernels::OpTable* ops = o.device.ops;
  if (ops == kernels::Int8Ops() || ops == kernels::XnnpackOps())
    return Unsupported("the ops ", ops->name, " are for inference only: training runs on the default ones");
  if (o.device.memory.is_host()) return OkStatus();
  if (ops->record_weight_gradients == nullptr) {
    return Unsupported("the arithmetic of ", ops->name, " is for inference only: a device trains in float32 or tf32");
  }
  if (o.privacy.norm_form == NormForm::kGram || o.privacy.norm_form == NormForm::kIntegers) {
    return Unsupported("on a device (", ops->name, ") records' gradients are formed: norms by Gram matrices are not ",
                       "offered there, norm_form must be automatic or formed");
  }
  return OkStatus();
}

Status ValidateNegatives(const Architecture& a, const TrainingOptions& o) {
  if (o.num_negatives == 0) return OkStatus();
  if (a.head.kind != HeadKind::kNextItem) return Unsupported("a sampled softmax is for a next-item head");
  if (a.adapter)
    return Unsupported("a sampled softmax trains rows of the item table, an adapter leaves them as they are");
  if (o.num_negatives < 2 || o.num_negatives > a.num_items / 2) {
    return InvalidArgument("num_negatives is ", o.num_negatives, ", allowed are 0 (full softmax) and 2 to half of the ",
                           a.num_items, " items");
  }
  if (o.method == Method::kRgp) return Unsupported("rgp with a sampled softmax is not offered: set num_negatives to 0");
  if (a.head.temperature > 0)
    return Unsupported("a sampled softmax of cosines (temperature) is not offered: set num_negatives to 0");
  if (a.head.output_table != OutputTable::kTied || a.head.output_bias == OutputBias::kTrained) {
    return Unsupported("a sampled softmax needs a tied table and no trained output bias");
  }
  return OkStatus();
}

Status ValidateTowers(const Architecture& a, const TrainingOptions& o) {
  if (a.item_features == 0 || a.adapter) return OkStatus();
  const std::string is = "a model with item features has a matrix in place of trained item rows: ";
  if (IsSparse(o.method))
    return Unsupported(is, ListMethods(IsSparse), " choose among rows; allowed are the other methods");
  if (o.num_negatives > 0) return Unsupported(is, "a sampled softmax is not offered, num_negatives must be 0");
  if (!o.device.memory.is_host()) return Unsupported(is, "it is trained on the processor");
  return OkStatus();
}

Status ValidateFeatures(const Architecture& a, const TrainingOptions& o) {
  const ItemFeatureOptions& f = o.item_features;
  if (f.values.empty()) return OkStatus();
  const std::string are = "item features that rows move along are ";
  if (a.head.kind != HeadKind::kNextItem || a.item_features > 0 || a.adapter)
    return Unsupported(are, "of models whose item rows train: no two towers, adapter or classes");
  if (o.method != Method::kOrdinary && o.method != Method::kPhantom)
    return Unsupported(are, "of the methods ordinary and phantom, the method is ", GetName(o.method));
  if (o.optimizer.kind == OptimizerKind::kSgd) return Unsupported(are, "of adam and adamw, the optimizer is sgd");
  if (o.trained_part != TrainedPart::kAll || !o.base.empty())
    return Unsupported(are, "of runs that train all weights, trains must be all");
  if (o.num_negatives > 0) return Unsupported(are, "of the full softmax, num_negatives must be 0");
  if (o.ema_decay > 0) return Unsupported(are, "of weights that are not averaged, ema_decay must be 0");
  if (a.re_attention == ReAttention::kOn)
    return Unsupported(are, "not offered with Re-Attention, which follows the noise of each row's own steps");
  if (!o.device.memory.is_host()) return Unsupported(are, "for the processor, not for a device");
  if (!(f.rate >= 0 && f.rate <= 100)) return InvalidArgument("feature_rate is ", f.rate, ", allowed are 0 to 100");
  if (f.count == 0 || f.count > kMaxItemFeatures || f.values.size() != size_t{a.num_items} * f.count)
    return InvalidArgument("there are ", f.values.size(), " numbers of item features, allowed are ", a.num_items,
                           " items times their count, 1 to ", kMaxItemFeatures);
  if (std::all_of(f.values.begin(), f.values.end(), [](float x) { return std::isfinite(x); })) return OkStatus();
  return InvalidArgument("item features have a number that is not finite, allowed are finite numbers");
}

Status ValidateBatch(const TrainingOptions& o, uint64_t num_records) {
  if (o.expected_batch == 0) return InvalidArgument("`expected_batch` is 0, allowed are 1 and above");
  const uint64_t n = o.num_records_public != 0 ? o.num_records_public : num_records;
  if (o.expected_batch <= n) return OkStatus();
  return InvalidArgument("`expected_batch` is ", o.expected_batch, ", more than the ", n, " records; allowed are 1 to ",
                         n);
}

namespace {

Status ValidateLastBlocks(const Architecture& a, const TrainingOptions& o) {
  const std::string are = "runs that train the last blocks alone (last_blocks) are ";
  if (a.head.kind != HeadKind::kClasses || a.re_attention == ReAttention::kOn)
    return Unsupported(are, "of classifiers of texts, without Re-Attention");
  if (o.trained_part != TrainedPart::kBlocks) return InvalidArgument(are, "of blocks, trains must be blocks");
  if (!o.device.memory.is_host()) return Unsupported(are, "for the processor, not for a device");
  if (o.last_blocks > a.blocks.size())
    return InvalidArgument("last_blocks is ", o.last_blocks, ", the model has ", a.blocks.size(),
                           " blocks; allowed are 0 (all) to ", a.blocks.size());
  return OkStatus();
}

}  // namespace

Status ValidateTrains(const Architecture& a, const TrainingOptions& o) {
  if (o.last_blocks > 0) WISP_RETURN_IF_ERROR(ValidateLastBlocks(a, o));
  if (o.trained_part == TrainedPart::kAll) return OkStatus();
  if (IsSparse(o.method)) return InvalidArgument(ListMethods(IsSparse), " train rows of a table: trains must be all");
  if (o.method == Method::kDpFp) return InvalidArgument("dp-fp says itself what trains (its mode): trains must be all");
  if (o.num_negatives > 0) return InvalidArgument("a sampled softmax trains a table: trains must be all");
  if (o.trained_part == TrainedPart::kHead && a.head.kind != HeadKind::kClasses)
    return InvalidArgument("trains is head, and the model has no head of classes; allowed are all and blocks");
  if (a.adapter && o.trained_part != TrainedPart::kBlocks)
    return InvalidArgument("beside a model an adapter trains, no head alone; trains must be all or blocks");
  return OkStatus();
}

Status ValidateBase(const Architecture& a, const TrainingOptions& o) {
  if (o.base.empty()) return OkStatus();
  if (const size_t most = NumReadable(a, o); o.base.size() > most)
    return InvalidArgument("the base that is read where it is stored has ", o.base.size(), " parameters, allowed are ",
                           most, ", those that stand before all that this run trains");
  return OkStatus();
}

Status ValidateRecompute(const Architecture& a, const TrainingOptions& o) {
  if (!o.recompute_blocks) return OkStatus();
  const std::string is = "blocks that are computed again (recompute_blocks) ";
  if (!o.device.memory.is_host()) return Unsupported(is, "are of training on the processor");
  if (a.re_attention == ReAttention::kOn)
    return Unsupported(is, "are not offered with Re-Attention, whose variances pass through all blocks");
  if (IsPrivate(o) && (o.privacy.norm_form == NormForm::kGram || o.privacy.norm_form == NormForm::kIntegers))
    return Unsupported(is,
                       "do not go with norm_form gram or integers, which need what all blocks computed; allowed are "
                       "automatic and formed");
  return OkStatus();
}

Status ValidateAverage(const TrainingOptions& o) {
  if (o.ema_decay >= 0 && o.ema_decay < 1) return OkStatus();
  return InvalidArgument("ema_decay is ", o.ema_decay, ", allowed is 0 <= decay < 1");
}

namespace {

// Checks that the plan has a cost for this sampling with this noise, and that all that reads the noise can.
Status CheckNoise(const TrainingOptions& o) {
  const PrivateTraining& p = o.privacy;
  if (!(p.noise_lambda >= 0 && p.noise_lambda < 1))
    return InvalidArgument("noise_lambda is ", p.noise_lambda, ", allowed is 0 <= lambda < 1");
  const bool by_epoch = o.sampling == Sampling::kAllocation || o.sampling == Sampling::kCyclic;
  if (by_epoch && o.method != Method::kPhantom && o.method != Method::kRgp && o.method != Method::kFest)
    return Unsupported("sampling allocation and cyclic are for phantom, rgp and fest; set sampling to poisson");
  if (p.noise_lambda > 0 && (o.sampling != Sampling::kCyclic || o.method != Method::kPhantom || o.num_negatives > 0))
    return Unsupported(
        "correlated noise (noise_lambda above 0) is for phantom training with cyclic sampling and the "
        "full softmax");
  if (p.noise_schedule != NoiseSchedule::kConstant && (by_epoch || o.method == Method::kDpFp || IsAdaptive(o.method)))
    return Unsupported(
        "noise that follows the learning rate (noise_schedule) is for phantom, rgp and fest with poisson "
        "sampling; allowed is constant");
  return OkStatus();
}

// Checks the requirements of every private run, whatever it releases.
Status CheckPrivate(const TrainingOptions& o) {
  const PrivateTraining& p = o.privacy;
  if (p.ledger == nullptr) {
    return PrivacyRefused("private training needs a ledger: without one the budget spent would be forgotten");
  }
  if (o.sampling == Sampling::kShuffled && o.method != Method::kDpFp) {
    return PrivacyRefused(
        "private training with shuffled batches: the guarantee is computed for other sampling; set sampling to "
        "poisson, allocation or cyclic");
  }
  WISP_RETURN_IF_ERROR(CheckNoise(o));
  if (o.loss != LossWeighting::kRecordMean) {
    return PrivacyRefused(
        "private training weights positions by record (loss record_mean): a divisor that depends on the batch would "
        "leak");
  }
  if (o.num_records_public == 0) {
    return PrivacyRefused(
        "private training needs the number of records declared as public (num_records_public): the sampling "
        "probability is a public constant and must not be derived from the data");
  }
  return p.steps_per_charge > 0 ? OkStatus() : InvalidArgument("steps_per_charge is 0, allowed are 1 and above");
}

Status CheckPrivateGradients(const Architecture& a, const TrainingOptions& o) {
  const PrivateTraining& p = o.privacy;
  if (!(p.noise_multiplier > 0) || !std::isfinite(p.noise_multiplier)) {
    return PrivacyRefused("private training with noise multiplier ", p.noise_multiplier,
                          ": it must be a positive number");
  }
  if (o.privacy.norm_form == NormForm::kIntegers && !CanMultiplyIntegers(a, o)) {
    return Unsupported(
        "norm_form integers is of phantom and dp-fp, for a head of classes, or where no table and no bias of the "
        "outputs "
        "trains; this run may have automatic, formed or gram");
  }
  if (o.privacy.norm_form == NormForm::kGram && a.head.temperature > 0)
    return Unsupported(
        "norms by Gram matrices are not offered with a cosine head (temperature): norm_form must be "
        "automatic or formed");
  WISP_RETURN_IF_ERROR(CheckMethod(a, o));
  WISP_RETURN_IF_ERROR(privacy::ExactGrid::Validate(
      {.clipping_norm = p.clipping_norm, .num_coordinates = NumReleased(a, o), .noise_multiplier = GradientNoise(o)}));
  const bool constant = p.noise_schedule == NoiseSchedule::kConstant && p.noise_lambda == 0;
  if (!constant && a.re_attention == ReAttention::kOn)
    return Unsupported(
        "Re-Attention reads how much noise each step had: noise_schedule must be constant, noise_lambda 0");
  if (p.clipping == ClipKind::kNone)
    return PrivacyRefused("private training without clipping has no bounded sensitivity");
  return OkStatus();
}

}  // namespace

Status Trainer::Check(const Architecture& a, std::span<const float> weights, std::span<const Record> records,
                      const TrainingOptions& o) {
  WISP_RETURN_IF_ERROR(Validate(a));
  WISP_RETURN_IF_ERROR(CheckBuilt(a, o));
  if (HasGradients(o)) WISP_RETURN_IF_ERROR(Validate(o.optimizer));
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  WISP_RETURN_IF_ERROR(ValidateBase(a, o));
  WISP_RETURN_IF_ERROR(ValidateRecompute(a, o));
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  if (const size_t held = FlatSize(parameters) - FirstHeld(parameters, o); weights.size() != held)
    return InvalidArgument("weights have ", weights.size(), " numbers, the architecture ", held);
  WISP_RETURN_IF_ERROR(CheckHead(a, o));
  if (IsPrivate(o)) WISP_RETURN_IF_ERROR(CheckPrivate(o));
  if (IsPaper(o) && records.empty()) return InvalidData("there is no record to train on");
  WISP_RETURN_IF_ERROR(ValidateBatch(o, records.size()));
  for (float rate : {o.dropout.embedding, o.dropout.attention, o.dropout.residual}) {
    if (!(rate >= 0 && rate < 1)) return InvalidArgument("a dropout rate is ", rate, ", allowed is 0 <= rate < 1");
  }
  WISP_RETURN_IF_ERROR(ValidateAverage(o));
  WISP_RETURN_IF_ERROR(ValidateTrains(a, o));
  WISP_RETURN_IF_ERROR(ValidateDevice(o));
  WISP_RETURN_IF_ERROR(ValidateNegatives(a, o));
  WISP_RETURN_IF_ERROR(ValidateTowers(a, o));
  WISP_RETURN_IF_ERROR(ValidateFeatures(a, o));
  WISP_RETURN_IF_ERROR(CheckUpdateObserver(a, o));
  if (!IsPrivate(o)) return CheckRecords(a, records, LongestRecord(a, o.cut_to));
  if (HasGradients(o)) WISP_RETURN_IF_ERROR(CheckPrivateGradients(a, o));
  return PrivacyPlan::Create(a, o).status();
}

}  // namespace wisp
