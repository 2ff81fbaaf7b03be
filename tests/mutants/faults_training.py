"""Faults of private training: clipping and its check, noise, sampling, charges, selection of rows, declared numbers,
starts."""
from faults import table

NOISE = "release_noise_test:ReleaseNoise."
GUARANTEE = "step_guarantee_test:StepGuarantee."
TRAINER = "trainer_test:TrainerTest."
DECLARED = "declared_numbers_test:DeclaredNumbers."
GRADIENTS = "gradients_test:"
SPARSE = "sparse_test:"
JOB = "job_test:JobTest."
CLASSIFY = "classification_job_test:ClassificationJobTest."
INTERRUPTED = "interrupted_run_test:InterruptedRun."
HISTOGRAM = "release_noise_test:HistogramNoise."
DP_FP = "dp_fp_test:DpFpTest."
HEAD_PASS = "head_pass_test:HeadPass.MicroBatchesAndStepsAreDrawnIndependently"
DP_FP_NOISE = "release_noise_test:DpFpNoise."
INTEGERS = "integer_gradients_test:IntegerGradients."
CHECK = "clipping_check_test:ClippingCheck."
START = "check_start_test:CheckStartTest."
EVERY_COORDINATE = NOISE + "EveryCoordinateOfEveryMethodHasItsNoise"

ALLOCATED = "sampling_and_noise_test:SamplingAndNoise."
PARTS = "record_parts_test:RecordPartsTest.ReadsAndChargesItsPartAlone"

def clipping():
    return table("runtime/gradients/clipping.h", [
        ("clip-flat-not-at-all", "Factor", "norm > bound_ ? bound_ / norm : 1.0", "1.0",
         GRADIENTS + "*Gradients.ClippedSumEqualsNaiveClippedSum*"),
        ("clip-automatic-twice", "Factor", "bound_ / (norm + kStability)", "2 * bound_ / (norm + kStability)",
         GRADIENTS + "*Gradients.ClippedSumEqualsNaiveClippedSum*"),
    ]) + table("runtime/gradients/record_gradients.h", [
        ("clip-check-left-out", "ClipAndAdd", "!(squares <= sum.MaxSumSquares())", "false",
         GRADIENTS + "*ExactSum.RecordAboveItsBoundIsTakenAwayExactly*"),
        ("clip-check-takes-nothing-away", "ClipAndAdd", "add(static_cast<float>(outcome.factor), -1);", "",
         GRADIENTS + "*ExactSum.RecordAboveItsBoundIsTakenAwayExactly*"),
    ]) + table("runtime/gradients/gradient_sum.cc", [
        ("clip-check-of-the-last-stretch", "GridGradientSum::Add", "sum_squares += device_.ops->accumulate_on_grid",
         "sum_squares = device_.ops->accumulate_on_grid",
         CHECK + "TheSquaresOfAllStretchesAreCounted"),
    ]) + table("runtime/train/step_sum.cc", [
        ("clip-to-twice-the-norm", "StepSum::clip", "grid_->reduced_clipping_norm()",
         "2 * grid_->reduced_clipping_norm()", GUARANTEE + "ARecordThatJoinsMovesNothingButItsOwnShare"),
        ("clip-check-at-twice-the-norm", "StepSum::StepSum", "grid_->max_sum_squares()", "4 * grid_->max_sum_squares()",
         CHECK + "TheBoundOfASumIsThatOfItsGrid"),
    ]) + table("runtime/methods/phantom/phantom_gradients.cc", [
        ("norm-without-cross-term", "PhantomGradients::Rows", "cross_squares_ += 2 * TableCross(factor)",
         "cross_squares_ += 0 * TableCross(factor)",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
        ("norm-with-half-the-cross-term", "PhantomGradients::Rows", "2 * TableCross(factor)", "TableCross(factor)",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
        ("norm-without-rows", "PhantomGradients::SquaredNorm", "squares += rows.SumSquares(*ops_);",
         "squares += 0 * rows.SumSquares(*ops_);",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
        ("norm-without-head", "PhantomGradients::FinishRecord", "gram_squares_ += ops_->dot(",
         "gram_squares_ += 0 * ops_->dot(",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
        ("norm-without-matrices", "PhantomGradients::AddGram", "gram_squares_ += ops_->dot(",
         "gram_squares_ += 0 * ops_->dot(",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
    ]) + table("runtime/methods/phantom/integer_gradients.cc", [
        ("integers-check-left-out", "IntegerGradients::Bound", "if (squares <= most)", "if (true)",
         INTEGERS + "ARecordAboveItsBoundIsDroppedEntirely"),
        ("integers-check-of-products-alone", "IntegerGradients::Bound",
         "products + AddRest(b, static_cast<float>(factor), 1)",
         "products + 0 * AddRest(b, static_cast<float>(factor), 1)", INTEGERS + "TheBoundIsOfTheIntegersThatWereAdded"),
        ("integers-check-of-the-last-weight", "IntegerGradients::Quantise", "squares += ops_->integer_outer_squares(",
         "squares = ops_->integer_outer_squares(",
         INTEGERS + "TheBoundIsOfTheIntegersThatWereAdded"),
        ("integers-dropped-but-added", "IntegerGradients::Bound", "Quantise(b, 0);", "",
         INTEGERS + "ARecordAboveItsBoundIsDroppedEntirely"),
        ("integers-dropped-but-for-rows", "IntegerGradients::Bound", "AddRest(b, static_cast<float>(factor), -1);", "",
         INTEGERS + "ARecordAboveItsBoundIsDroppedEntirely"),
        ("integers-clip-to-twice-the-norm", "IntegerGradients::Bound", "double factor = outcome.factor;",
         "double factor = 2 * outcome.factor;",
         INTEGERS + "ARecordAddsTheSumOfItsClippedGradient"),
        ("integers-scale-shared-by-a-pass", "IntegerGradients::Quantise",
         "p.dy_squares_R[begin + r], p.x_squares_R[begin + r]", "p.dy_squares_R[r], p.x_squares_R[r]",
         INTEGERS + "ARecordAddsTheSameInAnyCompany"),
        ("integers-seed-shared-by-a-pass", "IntegerGradients::Quantise", "options_B_[b].dropout_seed",
         "options_B_[0].dropout_seed",
         INTEGERS + "ARecordAddsTheSameInAnyCompany"),
        ("integers-cut-at-16-bits", "ComputeScales", "static_cast<float>(std::sqrt(ratio))",
         "static_cast<float>(1.4 * std::sqrt(ratio))",
         "integer_gradients_test:IntegerGradients.ARowThatIsOneNumberIsNotCut"),
        ("integers-used-twice", "IntegerGradients::Outer", "seen_[f.parameter] > 0 || p.shape", "p.shape",
         INTEGERS + "AWeightThatIsUsedTwiceIsRefused"),
        ("integers-norm-without-rows", "IntegerGradients::SquaredNorm", "squares += row_gradient_.SumSquares(*ops_);",
         "squares += 0 * row_gradient_.SumSquares(*ops_);",
         INTEGERS + "ARecordAddsTheSumOfItsClippedGradient"),
        ("integers-beyond-16-bits-taken", "IntegerGradients::Quantise",
         "if (!fits) return std::numeric_limits<double>::infinity();", "",
         INTEGERS + "RowsThatCancelAddNoMoreThanTheBound"),
    ]) + table("kernels/simd/outer_tile.cc", [
        ("integers-beyond-32-bits", "FindRunEnd", "if (room < 0) break;", "",
         "integers_test:Integers.SumsAreExactAlsoBeyond32Bits"),
    ]) + table("runtime/methods/sparse/sparse_gradients.cc", [
        ("norm-of-sparse-without-rows", "SparseGradients::FinishRecord",
         "+ ops_->sum_squares(rows_.data(), slots_.size() * layout_.d())", "",
         SPARSE + "*Sparse.MaskedGradientAndNormEqualDualNumbers*"),
    ]) + table("runtime/methods/rgp/rgp_gradients.cc", [
        ("norm-of-rgp-of-half-the-release", "RgpGradients::FinishRecord",
         "ops_->sum_squares(release_.data(), release_.size())",
         "ops_->sum_squares(release_.data(), release_.size() / 2)",
         GUARANTEE + "ARecordThatJoinsMovesNothingButItsOwnShare"),
    ])


def grid():
    exact = "exact_sum_test:ExactGrid."
    return table("runtime/privacy/noise/exact_sum.cc", [
        ("noise-without-the-rounding-of-correlated-noise", "ExactGrid::sigma_in_steps",
         "(1 + kNoiseMargin) + more_shift", "(1 + kNoiseMargin)",
         "correlated_gaussian_test:CorrelatedNoise.NoiseOfTheGrid_CoversTheShift"),
        ("grid-check-too-wide", "ExactGrid::max_sum_squares", "kStepsPerClippingNorm * (1 + kCheckMargin)",
         "kStepsPerClippingNorm * (1 + 1e-3)",
         exact + "CheckRefusesWhatIsTooLarge"),
        ("grid-noise-without-margin", "ExactGrid::sigma_in_steps", "(1 + kNoiseMargin)", "1",
         exact + "NoiseIsNeverLessThanTheLargestRecordAsksFor"),
        ("grid-norm-without-rounding", "ExactGrid::ExactGrid", "std::sqrt(static_cast<double>(num_coordinates))", "0.0",
         exact + "RoundingOfManySmallCoordinatesIsAllowedFor"),
        ("grid-slack-too-small", "DiscretisationLoss", "113 *", "1 *",
         "exact_sum_test:Discretisation.LossBoundHoldsAndIsWithinAFactorOfFour"),
        ("grid-slack-of-one-step", "DiscretisationLoss", "* static_cast<double>(d.num_steps)", "",
         "exact_sum_test:Discretisation.LossGrowsWithCoordinatesAndSteps"),
    ])


def noise():
    return table("runtime/train/trainer.cc", [
        ("noise-of-workers-from-the-seed", "MakeStreams", "if (secure) {", "if (secure && i <= 1) {",
         NOISE + "NothingOfSecureNoiseFollowsFromTheSeed"),
        ("sampling-from-the-seed", "MakeStreams", "if (secure) {", "if (secure && i > 0) {",
         NOISE + "NothingOfSecureSamplingFollowsFromTheSeed"),
    ]) + table("runtime/train/gradient_step.cc", [
        ("dropout-by-place", "GradientStep::AddRecord", "IsPrivate(o) ? PrivateDropoutSeed",
         "IsPrivate(o) && i > context_->records.size() ? PrivateDropoutSeed",
         GUARANTEE + "ARecordThatJoinsMovesNothingButItsOwnShare"),
    ]) + table("runtime/train/step_sum.cc", [
        ("noise-on-the-first-4000", "StepSum::Take", "noise_->Add(step_, *grid_, first, sum, noise);",
         "noise_->Add(step_, *grid_, first, sum.first(std::min<size_t>(n, 4000)), noise);", EVERY_COORDINATE,
         DP_FP_NOISE + "EveryCoordinateOfTheEncoder_HasIndependentNoise"),
        ("noise-on-the-first-piece", "StepSum::Take", "noise_->Add(", "if (first == 0) noise_->Add(", EVERY_COORDINATE),
        ("noise-of-the-sum-halved", "StepSum::StepSum",
         "GetNoise(o, GradientNoise(o))", "GetNoise(o, GradientNoise(o) / 2)",
         EVERY_COORDINATE, GUARANTEE + "TheNoiseOfEveryMethodHasItsDeviation",
         "cuda_trainer_test:*Private*", "cuda_methods_test:*StepsAre*"),
        ("noise-of-rows-is-what-is-charged", "StepSum::StepSum", "GetNoise(o, GradientNoise(o))",
         "GetNoise(o, o.privacy.noise_multiplier)", EVERY_COORDINATE),
    ]) + table("runtime/privacy/noise/noise_process.cc", [
        ("noise-halved", "NoiseOptions::GetSigma", "grid.sigma_in_steps(GetMultiplier(step),",
         "grid.sigma_in_steps(GetMultiplier(step) / 2,", EVERY_COORDINATE,
         GUARANTEE + "TheNoiseOfEveryMethodHasItsDeviation"),
    ]) + table("runtime/train/privacy_plan.cc", [
        ("steps-of-a-part-charged-to-all", "PrivacyPlan::Charges", ".part = record_part_", "", PARTS),
        ("noise-of-gradient-is-the-maps", "GradientNoise", ".gradient", ".map",
         NOISE + "TheMapHasItsOwnNoiseNotTheGradients"),
        ("map-slack-left-out", "MakeGradientPart",
         "part.noises.push_back({norm, {.multiplier = pair.map}, coordinates, a.num_items});",
         "",
         NOISE + "TheMapsSlackIsCharged"),
        ("charge-of-more-noise", "PrivacyPlan::Charges", "Mechanisms(part, steps, noise_factor)",
         "Mechanisms(part, steps, 1.1 * noise_factor)",
         TRAINER + "EveryStepIsChargedBeforeItIsTaken"),
        ("charge-without-slack", "PrivacyPlan::Charges", "LossSlack(part, steps, noise_factor)", "0",
         GUARANTEE + "TheSlackChargedIsThatOfAllReleasedNumbers"),
        ("charge-of-reproducible-noise-as-secure", "PrivacyPlan::Create",
         "o.privacy.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure",
         "privacy::NoiseKind::kSecure",
         NOISE + "RepeatableNoiseIsChargedAsSuch"),
    ]) + table("runtime/methods/rgp/rgp_method.cc", [
        ("projections-of-the-first-worker-alone", "AddNoise", "ForEachPiece(worker,",
         "if (worker == 0) ForEachPiece(0,", EVERY_COORDINATE),
    ]) + table("runtime/methods/sparse/step_rows.cc", [
        ("noise-of-map-is-the-gradients", "MapOptions", "o.sparse.map_noise_ratio).map",
         "o.sparse.map_noise_ratio).gradient",
         NOISE + "TheMapHasItsOwnNoiseNotTheGradients"),
    ]) + table("runtime/train/privacy_plan.cc", [
        ("noises-that-cost-more-than-one", "SplitNoise", "noise_multiplier * std::sqrt(1 + ratio * ratio) / ratio",
         "noise_multiplier",
         SPARSE + "Sparse.NoisesOfThePairHaveTheCostOfOne"),
    ])


def charges():
    return table("runtime/train/trainer.cc", [
        ("charge-after-the-draw", "Trainer::Step", "if (charges_)", "Draw(); if (charges_)",
         GUARANTEE + "NothingIsDrawnForAChargeThatIsRefused"),
    ]) + table("runtime/train/step_charges.cc", [
        ("charge-for-one-step-too-few", "StepCharges::Pay", "charged_until_[i] = step + steps;",
         "charged_until_[i] = step + steps + 1;",
         TRAINER + "EveryStepIsChargedBeforeItIsTaken"),
    ]) + table("runtime/train/check_options.cc", [
        ("shuffled-batches-taken", "CheckPrivate", "o.sampling == Sampling::kShuffled &&", "false &&",
         TRAINER + "NoGuarantee_IsRefusedWithItsReason"),
        ("loss-over-the-batch-taken", "CheckPrivate", "o.loss != LossWeighting::kRecordMean", "false",
         TRAINER + "NoGuarantee_IsRefusedWithItsReason"),
        ("no-clipping-taken", "CheckPrivateGradients", "p.clipping == ClipKind::kNone", "false",
         TRAINER + "NoGuarantee_IsRefusedWithItsReason"),
    ]) + table("runtime/train/checkpoint_parts.cc", [
        ("checkpoint-of-another-ledger", "CheckCharged", "charged >= steps", "charged + steps >= steps",
         GUARANTEE + "Checkpoint_ResumesOnlyWithTheLedgerThatPaid",
         CLASSIFY + "Checkpoint_ResumesOnlyWithTheLedgerThatPaid"),
        ("checkpoint-paid-by-a-copy", "CheckPaid", "if (has_paid) return OkStatus();", "return OkStatus();",
         GUARANTEE + "Checkpoint_DoesNotResumeWithACopyThatDidNotPay"),
        ("checkpoint-paid-by-another-run", "CheckCharged", "entry.run == c.run_id && ", "",
         GUARANTEE + "Checkpoint_ResumesOnlyWithTheLedgerThatPaid"),
        ("checkpoint-paid-for-another-purpose", "CheckCharged", " && entry.purpose == purpose ?", " ?",
         CLASSIFY + "Checkpoint_ResumesOnlyWithTheLedgerThatPaid"),
    ]) + table("runtime/train/step_charges.cc", [
        ("checkpoint-keeps-what-is-charged", "StepCharges::Restore",
         "std::fill(charged_until_.begin(), charged_until_.end(), 0);",
         "std::fill(charged_until_.begin(), charged_until_.end(), c.step + 1);",
         TRAINER + "RestoredPrivateRunPaysAgain",
         INTERRUPTED + "StepsChargedAndNotTakenAreChargedAgain",
         CLASSIFY + "ResumesWithinItsBudgetWithTheStepsThatFit"),
        ("resumed-run-charged-as-another", "StepCharges::Restore", "plan_.SetRun(c.run_id);", "",
         INTERRUPTED + "StepsChargedAndNotTakenAreChargedAgain"),
        ("checkpoint-of-the-first-part-alone", "StepCharges::Check",
         "for (const PrivacyPlan::Part& part : plan_.parts())",
         "for (const PrivacyPlan::Part& part : std::span(plan_.parts()).first(1))",
         CLASSIFY + "Checkpoint_ResumesOnlyWithTheLedgerThatPaid"),
    ]) + table("runtime/methods/dp_fp/dp_fp_method.h", [
        ("classifier-forgets-its-releases", "Restore", "(void)pass_.Restore(checkpoint.head_releases);",
         "(void)checkpoint;", CLASSIFY + "ResumedRunEqualsUninterruptedRunBitForBit"),
    ]) + table("runtime/train/options.cc", [
        ("checkpoint-tells-the-number-of-records", "RunIdentity", 'if (!IsPrivate(o)) id.Named("records"',
         'id.Named("records"',
         INTERRUPTED + "PrivateCheckpointDoesNotKnowHowManyRecordsThereAre"),
    ]) + table("runtime/train/trainer.cc", [
        ("charged-beyond-the-end", "Trainer::Step", "std::min(schedule_.end, pause_)",
         "std::min(options_.num_steps, pause_)",
         INTERRUPTED + "TheLearningRateOfAShortenedRunComesToItsEnd"),
        ("a-restored-snapshot-repeats-its-noise", "Trainer::Draw", "worker.noise.Freshen();", "(void)worker;",
         "restored_snapshot_test:RestoredSnapshot.Steps_HaveOtherNoise"),
        ("a-restored-snapshot-repeats-its-batches", "Trainer::Draw", "sampling_.Freshen();", "",
         "restored_snapshot_test:RestoredSnapshot.Steps_HaveOtherBatches"),
        ("charged-beyond-a-pause", "Trainer::Step", "std::min(schedule_.end, pause_)", "schedule_.end",
         "paused_run_test:PausedRun.PaysForTheStepsOfEachCallAlone"),
    ])


def rows():
    released = ("Popularity popularity{LogShares(histogram, options.noise_multiplier), "
                "Frequencies(histogram, options), {}};")
    add_noise = "privacy::AddDiscreteGaussian(noise, SigmaInSteps(options.noise_multiplier), histogram);"
    follows = HISTOGRAM + "AllThatIsReleasedFollowsFromTheNoisedHistogram"
    return table("runtime/methods/sparse/contribution_map.cc", [
        ("map-share-of-one-each", "ContributionMap::Count",
         "std::min(1 / clipping_norm_, 1 / std::sqrt(static_cast<double>(distinct_.size())))",
         "1 / clipping_norm_", SPARSE + "ContributionMap.OneRecordMovesTheMapByAtMostItsNorm"),
        ("map-noise-halved", "ContributionMap::Select", "privacy::AddDiscreteGaussian(noise, sigma_, counts_)",
         "privacy::AddDiscreteGaussian(noise, sigma_ / 2, counts_)",
         SPARSE + "ContributionMap.SurvivorsHaveTheDenseDistribution"),
        ("map-without-untouched-rows", "ContributionMap::Select", "SelectUntouched(noise, survivors);", "",
         NOISE + "TheMapHasItsOwnNoiseNotTheGradients"),
        ("map-gaps-one-too-long", "ContributionMap::SelectUntouched", "i += 1 + gaps_->Next(noise)",
         "i += 2 + gaps_->Next(noise)",
         SPARSE + "ContributionMap.SurvivorsHaveTheDenseDistribution"),
        ("map-chance-half-a-step-off", "ContributionMap::FalseRowChance", "- 0.5", "- 0.0",
         GUARANTEE + "UntouchedRowsSurviveLikeTouchedRowsWithoutACount"),
        ("map-threshold-lower", "ContributionMap::Select", "counts_[slot] >= threshold_",
         "counts_[slot] >= threshold_ / 2",
         SPARSE + "ContributionMap.SurvivorsHaveTheDenseDistribution"),
    ]) + table("runtime/privacy/noise/geometric_gaps.cc", [
        ("gaps-without-their-place", "GeometricGaps::Next", "return inside + blocks * block_;",
         "return blocks * block_;",
         SPARSE + "GeometricGaps.HaveTheExactDistribution"),
        ("gaps-of-twice-the-chance", "GeometricGaps::AllFail", "std::exp(-rate_ * static_cast<double>(count))",
         "std::exp(-2 * rate_ * static_cast<double>(count))",
         SPARSE + "GeometricGaps.HaveTheExactDistribution"),
    ]) + table("runtime/train/popularity.cc", [
        ("histogram-without-noise", "PrivatePopularity",
         "privacy::AddDiscreteGaussian(noise, SigmaInSteps(options.noise_multiplier), histogram)",
         "privacy::AddDiscreteGaussian(noise, 0, histogram)", HISTOGRAM + "EveryItemHasTheNoiseThatIsCharged"),
        ("frequencies-of-exact-counts", "PrivatePopularity", add_noise + released,
         "std::vector<float> exact = Frequencies(histogram, options);" + add_noise +
         "Popularity popularity{LogShares(histogram, options.noise_multiplier), std::move(exact), {}};", follows),
        ("bias-of-exact-counts", "PrivatePopularity", add_noise + released,
         "std::vector<float> exact = LogShares(histogram, options.noise_multiplier);" + add_noise +
         "Popularity popularity{std::move(exact), Frequencies(histogram, options), {}};", follows),
        ("histogram-share-of-one-each", "AddRecord", "kSteps / std::sqrt(static_cast<double>(distinct.size()))",
         "kSteps", JOB + "HistogramShareOfOneRecordIsNormalised"),
        ("histogram-counts-repeats", "DistinctItems",
         "distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());", "",
         JOB + "HistogramShareOfOneRecordIsNormalised"),
        ("histogram-taken-though-refused", "PrivatePopularity",
         "WISP_RETURN_IF_ERROR(options.ledger->Charge(charge).status());",
         "(void)options.ledger->Charge(charge).status();", JOB + "HistogramIsChargedBeforeItIsTaken"),
        ("histogram-slack-left-out", "PopularityCharge", ".num_coordinates = num_items", ".num_coordinates = 0",
         HISTOGRAM + "EveryItemHasTheNoiseThatIsCharged"),
        ("histogram-of-repeatable-noise-as-secure", "PrivatePopularity",
         "noise.IsSecure() ? privacy::NoiseKind::kSecure : privacy::NoiseKind::kReproducible",
         "privacy::NoiseKind::kSecure", HISTOGRAM + "RepeatableNoiseIsChargedAsSuch"),
    ])


def jobs():
    return table("tools/lab/cmd_audit.cc", [
        ("a-second-formula-of-the-probability", "PrintStep", "BatchProbability(o.training)",
         "static_cast<double>(o.training.expected_batch) / o.training.num_records_public", "structure.sh"),
    ]) + table("runtime/train/run/job.cc", [
        ("figure-that-stays-from-the-quick-grid", "Show",
         "at_end ? privacy::Fineness::kFull : privacy::Fineness::kQuick", "privacy::Fineness::kQuick",
         "job_test:JobTest.ProgressNamesWhatIsChargedSoFar"),
        ("a-part-trains-on-all", "TakePart", "sequences_ = SelectSequences(p.part, *split, *job_.sequences);",
         "sequences_ = *job_.sequences;", PARTS),
        ("steps-of-the-private-number", "NumRecords",
         "declared ? job_.training.num_records_public : static_cast<double>(set_.records.size())",
         "declared ? static_cast<double>(set_.records.size()) : static_cast<double>(set_.records.size())",
         DECLARED + "StepsAndProbabilityOfARunAreOfTheDeclaredRecords",
         "declared_numbers_test:DeclaredTexts.StepsAndProbabilityOfAClassifierAreOfTheDeclaredTexts"),
        ("noise-for-the-private-number", "PreparePrivacy",
         "Budget::Calibrate(job_.architecture, job_.goal, Terms(job_), options_)",
         "[&] { TrainingOptions o = options_; o.num_records_public = static_cast<uint32_t>(set_.records.size()); "
         "const Status s = Budget::Calibrate(job_.architecture, job_.goal, Terms(job_), o); "
         "options_.privacy.noise_multiplier = "
         "o.privacy.noise_multiplier; "
         "return s; }()", DECLARED + "CalibrationSeesTheDeclaredRecordsOnly"),
        ("delta-for-the-private-number", "PreparePrivacy", "CheckPrivacyGoal(job_.goal, NumRecords())",
         "CheckPrivacyGoal(job_.goal, static_cast<double>(set_.records.size()))",
         DECLARED + "DeltaIsHeldAgainstTheDeclaredRecords"),
        ("refused-for-want-of-users", "Prepare", "} else if (set_.records.empty() && job_.sequences != nullptr) {",
         "} if (set_.records.empty() && job_.sequences != nullptr) {", INTERRUPTED + "PrivateRunTrainsOnNobody"),
        ("cancelled-without-a-checkpoint", "AfterStep", "Save(); return Cancelled(", "return Cancelled(",
         INTERRUPTED + "CancelSavesTheStepReachedAndSaysWhatWasCharged"),
        ("histogram-of-another-ledger", "Resume", 'if (IsPrivateJob(job_) && job_.histogram_noise > 0) {',
         'if (false) {',
         INTERRUPTED + "CheckpointBeforeTheFirstStepNeedsTheLedgerThatPaidForItsHistogram"),
        ("no-room-kept-for-the-ledger", "Step", "saved_.GiveUpLedgerRoom()", "false",
         INTERRUPTED + "SpaceReservedForTheLedger_IsGivenToIt"),
    ]) + table("runtime/train/run/job_popularity.cc", [
        ("histogram-of-a-part-charged-to-all", "SetPopularity", ".part = p.part,", "", PARTS),
        ("histogram-noise-from-the-seed", "SetPopularity", "WISP_ASSIGN_OR_RETURN(noise, RandomStream::Secure());",
         "noise = RandomStream::Reproducible(job.training.seed, StreamPurpose::kNoise);",
         HISTOGRAM + "ARunsHistogramDoesNotFollowFromItsSeed"),
    ]) + table("runtime/train/budget.cc", [
        ("run-not-held-against-the-limit", "Budget::Check",
         "const Status refusal = options_.privacy.ledger->CheckFits(to_come_, terms_.new_limit);",
         "const Status refusal;", JOB + "RunThatDoesNotFitTheLimitSpendsNothing"),
        ("noise-without-the-histograms-cost", "CalibrateTo", "ChargesBefore(a, o, terms.histogram_noise)",
         "ChargesBefore(a, o, 0)", JOB + "GoalIsMetByWhatTheLedgerChargedHistogramIncluded"),
        ("noise-without-the-heads-cost", "CalibrateTo", "beside.insert(beside.end(), spent.begin(), spent.end());", "",
         CLASSIFY + "BothMechanismsOfClippedComposeToTheGoal"),
    ]) + table("runtime/train/trainer.cc", [
        ("charge-for-the-private-number", "Trainer::Create", "WISP_ASSIGN_OR_RETURN(PrivacyPlan plan,",
         "options.num_records_public = static_cast<uint32_t>(records.size()); WISP_ASSIGN_OR_RETURN(PrivacyPlan plan,",
         DECLARED + "StepsAndProbabilityOfARunAreOfTheDeclaredRecords"),
    ]) + table("runtime/train/sampler.cc", [
        ("one-allocation-for-all-epochs", "Draw", "(done == 0 || !once_)", "done == 0",
         ALLOCATED + "Allocation_TakesEachRecordOnceInEachEpoch"),
        ("an-epoch-goes-on-in-another-process", "Restore", "first_.reset();", "",
         ALLOCATED + "Allocation_TakesEachRecordOnceInEachEpoch"),
    ]) + table("runtime/privacy/noise/noise_process.cc", [
        ("noise-is-not-taken-back", "Add", "sum[i] -= taken_back_.Of(scratch.before[i]);", ";",
         ALLOCATED + "CorrelatedNoise_IsTakenBackInTheNextStep"),
        ("noise-of-a-step-is-that-of-the-last", "Begin",
         "now_ = noise.NextKey();", "now_ = before_ ? *before_ : noise.NextKey();",
         ALLOCATED + "CorrelatedNoise_IsTakenBackInTheNextStep"),
    ]) + table("runtime/train/privacy_plan.cc", [
        ("epochs-charged-as-they-are-cut", "PrivacyPlan::StepsPerCharge",
         "steps = RoundedUp(steps, part.law.epoch_steps);", ";",
         ALLOCATED + "Allocation_PaysForWholeEpochsBeforeTheirFirstStep"),
        ("correlated-noise-charged-step-by-step", "PrivacyPlan::StepsPerCharge", "steps = std::max(steps, left);", ";",
         ALLOCATED + "CorrelatedNoise_PaysForTheWholeRunAtOnce"),
        ("a-schedule-charged-with-its-first-noise", "PrivacyPlan::Mechanisms",
         "part.noise.multiplier * ratio * noise_factor", "part.noise.multiplier * noise_factor",
         ALLOCATED + "Schedule_FollowsTheLearningRate"),
    ]) + table("runtime/train/sampler.cc", [
        ("draws-for-the-private-number", "MakeSampler", "MakeLaw(o).probability, num_records",
         "static_cast<double>(o.expected_batch) / static_cast<double>(num_records), num_records",
         DECLARED + "BatchesAreDrawnWithTheDeclaredProbability"),
    ]) + table("ports/c/personalise_c.cc", [
        ("declared-number-of-c-counted", "Run", "what_.Read(o_, base, job));",
         "what_.Read(o_, base, job)); "
         "job.training.num_records_public = static_cast<uint32_t>(job.sequences->user_keys.size());", "declared.py"),
    ])


def dp_fp():
    return table("runtime/train/trainer.cc", [
        ("noise-of-workers-from-a-seed", "MakeStreams",
         "WISP_ASSIGN_OR_RETURN(RandomStream stream, RandomStream::Secure());",
         "RandomStream stream = i > 1 ? RandomStream::Reproducible(i, StreamPurpose::kNoise) "
         ": *RandomStream::Secure();",
         DP_FP_NOISE + "EveryCoordinateOfTheEncoder_HasIndependentNoise"),
        ("dp-fp-encoder-takes-the-heads-draw", "Trainer::Draw", "part->Draw(sampling_);",
         "{ auto again = RandomStream::Reproducible(step(), StreamPurpose::kSampling); part->Draw(again); }",
         DP_FP + "TheEncodersDrawDoesNotFollowFromTheHeads"),
        ("one-batch-for-all-steps", "Trainer::Draw", "part->Draw(sampling_);",
         "if (step() == 0) part->Draw(sampling_);", TRAINER + "EveryStepDrawsABatchOfItsOwn"),
    ]) + table("runtime/train/step_charges.cc", [
        ("dp-fp-charge-for-one-step-too-few", "StepCharges::Pay", "charged_until_[i] = step + steps;",
         "charged_until_[i] = step + steps + 1;",
         DP_FP + "ClippedChargesBothMechanisms"),
        ("dp-fp-head-alone-charged", "StepCharges::Pay", "i < plan_.parts().size(); ++i", "i < 1; ++i",
         DP_FP + "ClippedChargesBothMechanisms"),
    ]) + table("runtime/train/sampler.cc", [
        ("dp-fp-encoder-draws-twice-as-large", "MakeSampler", "MakeLaw(o).probability, num_records",
         "2 * MakeLaw(o).probability, num_records",
         DP_FP + "DrawsAreAsLargeAsTheProbabilitiesThatAreCharged"),
    ]) + table("runtime/train/step_sum.cc", [
        ("dp-fp-noise-of-the-head-for-the-encoder", "StepSum::StepSum", "GetNoise(o, GradientNoise(o))",
         "GetNoise(o, o.dp_fp.noise_multiplier > 0 ? o.dp_fp.noise_multiplier : GradientNoise(o))",
         DP_FP_NOISE + "EveryCoordinateOfTheEncoder_HasIndependentNoise"),
        ("dp-fp-clip-to-ten-times-the-norm", "StepSum::clip", "grid_->reduced_clipping_norm()",
         "10 * grid_->reduced_clipping_norm()",
         DP_FP + "EncoderStepIsBoundedByItsClippingNormAndNoisedByItsMultiplier"),
    ]) + table("runtime/methods/dp_fp/dp_fp_method.cc", [
        ("head-charged-for-one-release", "HeadPart", ".releases = o.dp_fp.micro_batches,", "",
         DP_FP + "EveryStepIsChargedForAllItsMicroBatches"),
        ("head-released-without-slack", "HeadPart",
         ".noises = {{o.dp_fp.clipping_norm, {.multiplier = o.dp_fp.noise_multiplier}, coordinates, coordinates}}",
         ".noises = {}",
         DP_FP + "TheGridsSlackIsThatOfAllReleases"),
    ]) + table("runtime/methods/dp_fp/head_pass.cc", [
        ("dp-fp-draws-twice-as-large", "HeadPass::Draw", "PoissonSample(sampling, probability_",
         "PoissonSample(sampling, 2 * probability_", DP_FP + "DrawsAreAsLargeAsTheProbabilitiesThatAreCharged"),
        ("dp-fp-one-sample-for-all-micro-batches", "HeadPass::Draw", "privacy::PoissonSample(sampling,",
         "if (m == 0) privacy::PoissonSample(sampling,", HEAD_PASS),
        ("dp-fp-one-sample-for-all-steps", "HeadPass::Draw", "draws_.clear();",
         "if (!draws_.empty()) return releases_.Clear();",
         HEAD_PASS),
    ]) + table("runtime/methods/dp_fp/head_releases.cc", [
        ("head-noise-on-the-first-4000", "HeadReleases::Release",
         "grid_.sigma_in_steps(options_.noise_multiplier), sum_.sum())",
         "grid_.sigma_in_steps(options_.noise_multiplier), "
         "sum_.sum().first(std::min<size_t>(sum_.sum().size(), 4000)))",
         DP_FP_NOISE + "EveryCoordinateOfAHeadReleaseHasItsNoise"),
        ("head-not-clipped", "HeadReleases::Add", "ClipRule::Flat(grid_.reduced_clipping_norm()).Factor(norm)", "1.0",
         "head_releases_test:HeadReleases.RecordMovesTheSumByAtMostTheClippingNormAfterRounding"),
    ])


def records_together():
    """Records that pass at once: no record changes anything of another."""
    same = "batch_shapes_test:BatchShapes."
    recommenders, classifiers = same + "RecommendersOfEveryKindTrainTheSame", same + "ClassifiersTrainTheSame"
    return table("runtime/gradients/factor_batch.cc", [
        ("outputs-of-the-first-record", "RecordSlice::Outer", "own.dy_RN += begin * factor.lddy;", "", recommenders),
        ("inputs-of-the-first-record", "RecordSlice::Outer", "own.x_RK += begin * factor.ldx;", "", recommenders),
        ("items-of-the-first-record", "RecordSlice::Rows", "own.ids_R += begin;", "", recommenders),
        ("biases-of-the-first-record", "RecordSlice::Vector", "own.g_BN += b_ * factor.n;", "", recommenders),
        ("rows-of-all-records", "RecordSlice::Outer", "own.records = {.rows = factor.records.size(b_)};",
         "own.records = {.rows = factor.records.rows - begin};", recommenders),
    ]) + table("runtime/layers/dropout.cc", [
        ("masks-of-attention-of-the-first-record", "Dropout::Draw", "context.options_B + b",
         "context.options_B + 0 * b", recommenders),
    ]) + table("kernels/reference/rows.h", [
        ("masks-of-the-first-record", "DrawKeep", "MakeOptions(a.options_B, b).dropout_seed",
         "MakeOptions(a.options_B, 0).dropout_seed", recommenders),
    ]) + table("runtime/layers/attention.cc", [
        ("padding-of-the-first-record", "Attention::Describe", "context.first_valid_of(scope.b)",
         "context.first_valid_of(0)", recommenders),
    ]) + table("kernels/reference/heads.h", [
        ("weight-of-the-first-record", "SoftmaxStart", "MakeOptions(a.options_B, b).target_weight",
         "MakeOptions(a.options_B, 0).target_weight", recommenders),
    ]) + table("runtime/methods/dp_fp/dp_fp_method.cc", [
        ("noise-of-the-first-record", "PaperNoise::Draw", "values_.data() + b * steps_.size()",
         "values_.data() + 0 * b", classifiers),
    ]) + table("runtime/methods/dp_fp/head_pass.cc", [
        ("representation-of-the-first-record", "HeadPass::AddWaiting",
         "waiting.h.data() + b * graph_->architecture().width", "waiting.h.data()", classifiers),
    ]) + table("runtime/methods/rgp/rgp_gradients.cc", [
        ("inputs-of-a-block-computed-later", "RgpGradients::EndKept", "if (head_open_) FinishHead();", "",
         recommenders),
    ]) + table("runtime/layers/stack.cc", [
        ("blocks-not-computed-again", "Stack::Backward", "ComputeAgain(context, b);", ";", recommenders),
    ]) + table("runtime/layers/dequantised.cc", [
        ("tiles-of-the-first-rows", "FloatRows", "weights.source.panels(parameter), first, n",
         "weights.source.panels(parameter), 0, n", "base_in_file_test:BaseInFile.TrainsAsBesideTheSameWeightsInMemory"),
    ]) + table("runtime/layers/classifier.cc", [
        ("gradient-at-the-first-record", "Classifier::PoolBackward", ".to_R = context.begin_on_device_B",
         ".to_R = nullptr", classifiers),
    ])


def starts():
    return table("runtime/privacy/ledger/earlier_claims.cc", [
        ("start-paid-by-nobody-known", "CheckCharged", "if (claim.receipt.empty())", "if (false)",
         START + "AGuaranteeMustHaveBeenPaidFromThisLedger"),
        ("start-paid-by-any-ledger", "CheckCharged", "if (has_paid) continue;", "continue;",
         START + "AGuaranteeMustHaveBeenPaidFromThisLedger"),
    ]) + table("runtime/train/run/check_start.cc", [
        ("start-of-another-spelling", "CheckStart",
         "privacy::DatasetName(entry.dataset) != privacy::DatasetName(options.dataset)",
         "entry.dataset != options.dataset",
         START + "WithoutAGuaranteeTheDataMustBeOther"),
        ("start-of-an-unknown-base", "CheckStart", "provenance.empty() || provenance.front().base_model_hash != 0",
         "provenance.empty()",
         START + "WithoutAGuaranteeTheDataMustBeOther"),
        ("start-of-imported-weights", "CheckStart",
         "(entry.dataset.empty() || entry.dataset == kUnknownDataset) && !entry.epsilon",
         "entry.dataset.empty() && !entry.epsilon",
         START + "WithoutAGuaranteeTheDataMustBeOther"),
    ])


def audits():
    audit = "audit_training_test:AuditTraining."
    return table("runtime/train/audit/audit_step.cc", [
        ("audit-blind-to-noise", "AuditStep", "result.mu.mu > result.claimed_mu ||", "",
         audit + "NoiseBelowTheClaimIsCaughtByTheTradeOffAlone"),
    ])


def faults():
    return (clipping() + grid() + noise() + charges() + rows() + jobs() + dp_fp() + records_together() + starts() +
            audits())
