"""Faults of private training: clipping and its check, noise, sampling, charges, selection of rows, declared numbers, starts."""
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
DP_FP_NOISE = "release_noise_test:DpFpNoise."
CHECK = "clipping_check_test:ClippingCheck."
START = "check_start_test:CheckStartTest."
EVERY_COORDINATE = NOISE + "EveryCoordinateOfEveryMethodHasItsNoise"


def clipping():
    return table("runtime/gradients/clipping.h", [
        ("clip-flat-not-at-all", "Factor", "norm > bound_ ? bound_ / norm : 1.0", "1.0", GRADIENTS + "*Gradients.ClippedSumEqualsNaiveClippedSum*"),
        ("clip-automatic-twice", "Factor", "bound_ / (norm + kStability)", "2 * bound_ / (norm + kStability)",
         GRADIENTS + "*Gradients.ClippedSumEqualsNaiveClippedSum*"),
    ]) + table("runtime/gradients/record_gradients.h", [
        ("clip-check-left-out", "ClipAndAdd", "!(squares <= sum.MaxSumSquares())", "false", GRADIENTS + "*ExactSum.RecordAboveItsBoundIsTakenAwayExactly*"),
        ("clip-check-takes-nothing-away", "ClipAndAdd", "add(static_cast<float>(outcome.factor), -1);", "",
         GRADIENTS + "*ExactSum.RecordAboveItsBoundIsTakenAwayExactly*"),
    ]) + table("runtime/gradients/gradient_sum.cc", [
        ("clip-check-of-the-last-stretch", "GridGradientSum::Add", "sum_squares += ops_->accumulate_on_grid", "sum_squares = ops_->accumulate_on_grid",
         CHECK + "TheSquaresOfAllStretchesAreCounted"),
    ]) + table("runtime/train/step_release.cc", [
        ("clip-to-twice-the-norm", "ClipOnGrid", "grid.reduced_clipping_norm()", "2 * grid.reduced_clipping_norm()",
         GUARANTEE + "ARecordThatJoinsMovesNothingButItsOwnShare"),
        ("clip-check-at-twice-the-norm", "SumGrid", "grid.max_sum_squares()", "4 * grid.max_sum_squares()", CHECK + "TheBoundOfASumIsThatOfItsGrid"),
    ]) + table("runtime/gradients/phantom_gradients.cc", [
        ("norm-without-cross-term", "PhantomGradients::Rows", "cross_squares_ += 2 * TableCross(factor)", "cross_squares_ += 0 * TableCross(factor)",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
        ("norm-with-half-the-cross-term", "PhantomGradients::Rows", "2 * TableCross(factor)", "TableCross(factor)",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
        ("norm-without-rows", "PhantomGradients::SquaredNorm", "squares += rows.SumSquares(*ops_);", "squares += 0 * rows.SumSquares(*ops_);",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
        ("norm-without-head", "PhantomGradients::FinishRecord", "gram_squares_ += ops_->dot(", "gram_squares_ += 0 * ops_->dot(",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
        ("norm-without-matrices", "PhantomGradients::AddGram", "gram_squares_ += ops_->dot(", "gram_squares_ += 0 * ops_->dot(",
         GRADIENTS + "*Gradients.NormsOfBothFormsEqualDualNumbers*"),
    ]) + table("runtime/gradients/sparse_gradients.cc", [
        ("norm-of-sparse-without-rows", "SparseGradients::FinishRecord", "+ ops_->sum_squares(rows_.data(), slots_.size() * layout_.d())", "",
         SPARSE + "*Sparse.MaskedGradientAndNormEqualDualNumbers*"),
    ]) + table("runtime/gradients/rgp_gradients.cc", [
        ("norm-of-rgp-of-half-the-release", "RgpGradients::FinishRecord", "ops_->sum_squares(release_.data(), release_.size())",
         "ops_->sum_squares(release_.data(), release_.size() / 2)", GUARANTEE + "ARecordThatJoinsMovesNothingButItsOwnShare"),
    ])


def grid():
    exact = "exact_sum_test:ExactGrid."
    return table("runtime/privacy/exact_sum.cc", [
        ("grid-check-too-wide", "ExactGrid::max_sum_squares", "kStepsPerClippingNorm * (1 + kCheckMargin)", "kStepsPerClippingNorm * (1 + 1e-3)",
         exact + "CheckRefusesWhatIsTooLarge"),
        ("grid-noise-without-margin", "ExactGrid::sigma_in_steps", "(1 + kNoiseMargin)", "1", exact + "NoiseIsNeverLessThanTheLargestRecordAsksFor"),
        ("grid-norm-without-rounding", "ExactGrid::ExactGrid", "std::sqrt(static_cast<double>(num_coordinates))", "0.0",
         exact + "RoundingOfManySmallCoordinatesIsAllowedFor"),
        ("grid-slack-too-small", "DiscretisationLoss", "113 *", "1 *", "exact_sum_test:Discretisation.LossBoundHoldsAndIsWithinAFactorOfFour"),
        ("grid-slack-of-one-step", "DiscretisationLoss", "* static_cast<double>(d.num_steps)", "", "exact_sum_test:Discretisation.LossGrowsWithCoordinatesAndSteps"),
    ])


def noise():
    return table("runtime/train/trainer.cc", [
        ("noise-of-workers-from-the-seed", "Trainer::Create", "if (secure) {", "if (secure && i <= 1) {", NOISE + "NothingOfSecureNoiseFollowsFromTheSeed"),
        ("sampling-from-the-seed", "Trainer::Create", "if (secure) {", "if (secure && i > 0) {", NOISE + "NothingOfSecureSamplingFollowsFromTheSeed"),
        ("dropout-by-place", "Trainer::RunRecords", "is_private() ? PrivateDropoutSeed(options_.seed, step_, record) :",
         "is_private() && i > records_.size() ? PrivateDropoutSeed(options_.seed, step_, record) :", GUARANTEE + "ARecordThatJoinsMovesNothingButItsOwnShare"),
    ]) + table("runtime/train/step_release.cc", [
        ("noise-on-the-first-4000", "NoiseAndScale", "privacy::AddDiscreteGaussian(noise, sigma, sum)",
         "privacy::AddDiscreteGaussian(noise, sigma, sum.first(std::min<size_t>(sum.size(), 4000)))", EVERY_COORDINATE),
        ("noise-of-gradient-is-the-maps", "GradientNoise", ".gradient :", ".map :", NOISE + "TheMapHasItsOwnNoiseNotTheGradients"),
        ("map-slack-left-out", "StepLossSlack", "+ loss(pair.map, architecture.num_items)", "", NOISE + "TheMapsSlackIsCharged"),
    ]) + table("runtime/train/flat_release.cc", [
        ("noise-on-the-first-piece", "Update", "sigma_, scale, noise, g", "first == 0 ? sigma_ : 0, scale, noise, g", EVERY_COORDINATE),
        ("noise-halved", "FlatRelease", "grid_->sigma_in_steps(options.privacy.noise_multiplier)", "grid_->sigma_in_steps(options.privacy.noise_multiplier / 2)",
         EVERY_COORDINATE, GUARANTEE + "TheNoiseOfEveryMethodHasItsDeviation"),
    ]) + table("runtime/train/rgp_release.cc", [
        ("noise-of-rgp-on-the-first-piece", "AddNoise", "sigma_, 1.0f, noise", "first == 0 ? sigma_ : 0, 1.0f, noise", EVERY_COORDINATE),
        ("noise-of-rgp-halved", "RgpRelease", "grid_.sigma_in_steps(options.privacy.noise_multiplier)",
         "grid_.sigma_in_steps(options.privacy.noise_multiplier / 2)", EVERY_COORDINATE),
    ]) + table("runtime/train/sparse_release.cc", [
        ("noise-of-rows-is-what-is-charged", "MakeSum", "grid_->sigma_in_steps(GradientNoise(o))", "grid_->sigma_in_steps(o.privacy.noise_multiplier)",
         EVERY_COORDINATE),
        ("noise-of-map-is-the-gradients", "MapOptions", "o.sparse.map_noise_ratio).map", "o.sparse.map_noise_ratio).gradient",
         NOISE + "TheMapHasItsOwnNoiseNotTheGradients"),
        ("noises-that-cost-more-than-one", "SplitNoise", "noise_multiplier * std::sqrt(1 + ratio * ratio) / ratio", "noise_multiplier",
         SPARSE + "Sparse.NoisesOfThePairHaveTheCostOfOne"),
    ])


def charges():
    return table("runtime/train/trainer.cc", [
        ("charge-after-the-draw", "Trainer::Step", "WISP_RETURN_IF_ERROR(ChargeIfNeeded()); DrawBatch();",
         "DrawBatch(); WISP_RETURN_IF_ERROR(ChargeIfNeeded());", GUARANTEE + "NothingIsDrawnForAChargeThatIsRefused"),
        ("charge-for-one-step-too-few", "Trainer::ChargeIfNeeded", "charged_until_ = step_ + steps;", "charged_until_ = step_ + steps + 1;",
         TRAINER + "EveryStepIsChargedBeforeItIsTaken"),
        ("charge-of-more-noise", "Trainer::StepMechanism", ".noise_multiplier = options_.privacy.noise_multiplier",
         ".noise_multiplier = 1.1 * options_.privacy.noise_multiplier", TRAINER + "EveryStepIsChargedBeforeItIsTaken"),
        ("charge-without-slack", "Trainer::ChargeIfNeeded", "StepLossSlack(graph_.architecture(), options_, options_.privacy.noise_multiplier, steps)", "0",
         GUARANTEE + "TheSlackChargedIsThatOfAllReleasedNumbers"),
        ("charge-of-reproducible-noise-as-secure", "Trainer::ChargeIfNeeded",
         "options_.privacy.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure", "privacy::NoiseKind::kSecure",
         NOISE + "RepeatableNoiseIsChargedAsSuch"),
        ("shuffled-batches-taken", "ValidatePrivacy", "o.sampling != Sampling::kPoisson", "false", TRAINER + "WhatHasNoGuaranteeIsRefusedWithItsReason"),
        ("loss-over-the-batch-taken", "ValidatePrivacy", "o.loss != LossWeighting::kRecordMean", "false", TRAINER + "WhatHasNoGuaranteeIsRefusedWithItsReason"),
        ("no-clipping-taken", "ValidatePrivacy", "p.clipping == ClipKind::kNone", "false", TRAINER + "WhatHasNoGuaranteeIsRefusedWithItsReason"),
    ]) + table("runtime/train/checkpoint_parts.cc", [
        ("checkpoint-of-another-ledger", "CheckCharged", "charged >= steps", "charged + steps >= steps",
         GUARANTEE + "ACheckpointGoesOnOnlyWithTheLedgerThatPaidForIt", CLASSIFY + "CheckpointGoesOnOnlyWithTheLedgerThatPaidForIt"),
        ("checkpoint-paid-by-another-run", "CheckCharged", "entry.run == c.run_id && ", "", GUARANTEE + "ACheckpointGoesOnOnlyWithTheLedgerThatPaidForIt"),
        ("checkpoint-paid-for-another-purpose", "CheckCharged", " && entry.purpose == purpose ?", " ?",
         CLASSIFY + "CheckpointGoesOnOnlyWithTheLedgerThatPaidForIt"),
    ]) + table("runtime/train/trainer_checkpoint.cc", [
        ("checkpoint-keeps-what-is-charged", "Trainer::Restore", "charged_until_ = num_charged_ = 0;", "charged_until_ = step_ + 1;",
         TRAINER + "RestoredPrivateRunPaysAgain", INTERRUPTED + "StepsChargedAndNotTakenAreChargedAgain"),
        ("checkpoint-tells-the-number-of-records", "Trainer::Config", 'if (!is_private()) text += " records "', 'text += " records "',
         INTERRUPTED + "PrivateCheckpointDoesNotKnowHowManyRecordsThereAre"),
    ]) + table("runtime/train/dp_fp_checkpoint.cc", [
        ("classifier-keeps-what-is-charged", "DpFpTrainer::Restore", "std::fill(charged_until_.begin(), charged_until_.end(), 0);",
         "std::fill(charged_until_.begin(), charged_until_.end(), step_ + 1);", CLASSIFY + "GoesOnInsideItsOwnBudgetWithTheStepsThatFit"),
        ("classifier-forgets-its-releases", "DpFpTrainer::Save", "if (releases_) c.head_releases", "if (false) c.head_releases",
         CLASSIFY + "ResumedRunEqualsUninterruptedRunBitForBit"),
    ]) + table("runtime/train/trainer.cc", [
        ("charged-beyond-the-end", "Trainer::ChargeIfNeeded", "std::max<uint64_t>(schedule_.end, step_ + 1)", "std::max<uint64_t>(options_.num_steps, step_ + 1)",
         INTERRUPTED + "TheLearningRateOfAShortenedRunComesToItsEnd"),
    ])


def rows():
    return table("runtime/train/contribution_map.cc", [
        ("map-share-of-one-each", "ContributionMap::Count", "std::min(1 / clipping_norm_, 1 / std::sqrt(static_cast<double>(distinct_.size())))",
         "1 / clipping_norm_", SPARSE + "ContributionMap.OneRecordMovesTheMapByAtMostItsNorm"),
        ("map-noise-halved", "ContributionMap::Select", "privacy::AddDiscreteGaussian(noise, sigma_, counts_)",
         "privacy::AddDiscreteGaussian(noise, sigma_ / 2, counts_)", SPARSE + "ContributionMap.SurvivorsHaveTheDenseDistribution"),
        ("map-without-untouched-rows", "ContributionMap::Select", "SelectUntouched(noise, survivors);", "", NOISE + "TheMapHasItsOwnNoiseNotTheGradients"),
        ("map-gaps-one-too-long", "ContributionMap::SelectUntouched", "i += 1 + gaps_->Next(noise)", "i += 2 + gaps_->Next(noise)",
         SPARSE + "ContributionMap.SurvivorsHaveTheDenseDistribution"),
        ("map-chance-half-a-step-off", "ContributionMap::FalseRowChance", "- 0.5", "- 0.0", GUARANTEE + "UntouchedRowsSurviveLikeTouchedRowsWithoutACount"),
        ("map-threshold-lower", "ContributionMap::Select", "counts_[slot] >= threshold_", "counts_[slot] >= threshold_ / 2",
         SPARSE + "ContributionMap.SurvivorsHaveTheDenseDistribution"),
    ]) + table("runtime/privacy/geometric_gaps.cc", [
        ("gaps-without-their-place", "GeometricGaps::Next", "return inside + blocks * block_;", "return blocks * block_;",
         SPARSE + "GeometricGaps.HaveTheExactDistribution"),
        ("gaps-of-twice-the-chance", "GeometricGaps::AllFail", "std::exp(-rate_ * static_cast<double>(count))", "std::exp(-2 * rate_ * static_cast<double>(count))",
         SPARSE + "GeometricGaps.HaveTheExactDistribution"),
    ]) + table("runtime/train/popularity.cc", [
        ("histogram-without-noise", "PrivatePopularity", "privacy::AddDiscreteGaussian(noise, SigmaInSteps(options.noise_multiplier), histogram)",
         "privacy::AddDiscreteGaussian(noise, 0, histogram)", HISTOGRAM + "EveryItemHasTheNoiseThatIsCharged"),
        ("histogram-share-of-one-each", "AddRecord", "kSteps / std::sqrt(static_cast<double>(distinct.size()))", "kSteps", JOB + "HistogramShareOfOneRecordIsNormalised"),
        ("histogram-counts-repeats", "DistinctItems", "distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());", "",
         JOB + "HistogramShareOfOneRecordIsNormalised"),
        ("histogram-taken-though-refused", "PrivatePopularity", "WISP_RETURN_IF_ERROR(options.ledger->Charge(charge).status());",
         "(void)options.ledger->Charge(charge).status();", JOB + "HistogramIsChargedBeforeItIsTaken"),
        ("histogram-slack-left-out", "PrivatePopularity", ".loss_slack = PopularityLossSlack(options.noise_multiplier, num_items)", ".loss_slack = 0",
         HISTOGRAM + "EveryItemHasTheNoiseThatIsCharged"),
        ("histogram-of-repeatable-noise-as-secure", "PrivatePopularity", "noise.IsSecure() ? privacy::NoiseKind::kSecure : privacy::NoiseKind::kReproducible",
         "privacy::NoiseKind::kSecure", HISTOGRAM + "RepeatableNoiseIsChargedAsSuch"),
    ])


def jobs():
    return table("runtime/train/job.cc", [
        ("steps-of-the-private-number", "NumRecords", "declared ? job_.training.num_records_public : static_cast<double>(set_.records.size())",
         "declared ? static_cast<double>(set_.records.size()) : static_cast<double>(set_.records.size())",
         DECLARED + "StepsAndProbabilityOfARunAreOfTheDeclaredRecords"),
        ("noise-for-the-private-number", "PreparePrivacy", "options_.expected_batch / NumRecords()",
         "options_.expected_batch / static_cast<double>(set_.records.size())", DECLARED + "CalibrationSeesTheDeclaredRecordsOnly"),
        ("delta-for-the-private-number", "PreparePrivacy", "CheckPrivacyGoal(job_.goal, NumRecords())",
         "CheckPrivacyGoal(job_.goal, static_cast<double>(set_.records.size()))", DECLARED + "DeltaIsHeldAgainstTheDeclaredRecords"),
        ("histogram-noise-from-the-seed", "SetPopularity", "WISP_ASSIGN_OR_RETURN(noise, RandomStream::Secure());",
         "noise = RandomStream::Reproducible(job.training.seed, StreamPurpose::kNoise);", HISTOGRAM + "ARunsHistogramDoesNotFollowFromItsSeed"),
        ("noise-without-the-histograms-cost", "NoiseMultiplier", ".composed_with = overheads", ".composed_with = overheads.first(0)",
         JOB + "GoalIsMetByWhatTheLedgerChargedHistogramIncluded"),
        ("run-not-held-against-the-limit", "CheckBudget", "const Status refusal = budget.ledger.CheckFits(charges_, budget.new_limit);", "const Status refusal;",
         JOB + "RunThatDoesNotFitTheLimitSpendsNothing"),
        ("refused-for-want-of-users", "Prepare", "} else if (set_.records.empty()) {", "} if (set_.records.empty()) {", INTERRUPTED + "PrivateRunTrainsOnNobody"),
        ("cancelled-without-a-checkpoint", "AfterStep", "Save(); return Cancelled(", "return Cancelled(", INTERRUPTED + "CancelSavesTheStepReachedAndSaysWhatWasCharged"),
        ("histogram-of-another-ledger", "GoOn", 'if (IsPrivate(job_) && job_.histogram_noise > 0) {', 'if (false) {',
         INTERRUPTED + "CheckpointBeforeTheFirstStepNeedsTheLedgerThatPaidForItsHistogram"),
        ("no-room-kept-for-the-ledger", "Step", "saved_.GiveUpLedgerRoom()", "false", INTERRUPTED + "RoomKeptForTheLedgerIsGivenToIt"),
        ("delta-of-a-record-taken", "CheckPrivacyGoal", "goal.delta >= 1.0 / num_records &&", "goal.delta >= 2.0 / num_records &&", JOB + "RefusedGoalsSpendNothing"),
    ]) + table("runtime/train/trainer.cc", [
        ("charge-for-the-private-number", "Trainer::StepMechanism", "/ options_.num_records_public", "/ static_cast<double>(records_.size())",
         DECLARED + "StepsAndProbabilityOfARunAreOfTheDeclaredRecords"),
        ("draws-for-the-private-number", "Trainer::DrawBatch", "/ options_.num_records_public", "/ static_cast<double>(n)",
         DECLARED + "BatchesAreDrawnWithTheDeclaredProbability"),
    ]) + table("runtime/train/classification_job.cc", [
        ("steps-of-the-private-number-of-texts", "Prepare", "StepsOfEpochs(job.epochs, o.num_records_public, o.expected_batch)",
         "StepsOfEpochs(job.epochs, static_cast<double>(job.records.size()), o.expected_batch)",
         "declared_numbers_test:DeclaredTexts.StepsAndProbabilityOfAClassifierAreOfTheDeclaredTexts"),
    ]) + table("ports/c/wisp_training.cc", [
        ("declared-number-of-c-counted", "MakeJob", "job.training.num_records_public = o_.num_users_public;",
         "job.training.num_records_public = static_cast<uint32_t>(events.sequences.user_keys.size());", "declared.sh"),
    ])


def dp_fp():
    return table("runtime/train/dp_fp.cc", [
        ("dp-fp-noise-of-workers-from-a-seed", "DpFpTrainer::Create", "WISP_ASSIGN_OR_RETURN(RandomStream stream, RandomStream::Secure());",
         "RandomStream stream = i > 1 ? RandomStream::Reproducible(i, StreamPurpose::kNoise) : *RandomStream::Secure();",
         DP_FP_NOISE + "EveryCoordinateOfTheEncoderHasItsNoiseAndNoneFollowsFromAnything"),
        ("dp-fp-noise-on-the-first-4000", "DpFpTrainer::UpdateWeights", "options_.encoder.noise_multiplier), sum)",
         "options_.encoder.noise_multiplier), sum.first(std::min<size_t>(n, 4000)))", DP_FP_NOISE + "EveryCoordinateOfTheEncoderHasItsNoiseAndNoneFollowsFromAnything"),
        ("dp-fp-noise-of-the-head-for-the-encoder", "DpFpTrainer::UpdateWeights", "sigma_in_steps(options_.encoder.noise_multiplier)",
         "sigma_in_steps(options_.noise_multiplier)", DP_FP_NOISE + "EveryCoordinateOfTheEncoderHasItsNoiseAndNoneFollowsFromAnything"),
        ("dp-fp-charge-for-one-step-too-few", "DpFpTrainer::ChargeIfNeeded", "charged_until_[i] = step_ + steps;", "charged_until_[i] = step_ + steps + 1;",
         DP_FP + "ClippedChargesBothMechanisms"),
        ("dp-fp-head-alone-charged", "DpFpTrainer::ChargeIfNeeded", "i < mechanisms.size(); ++i", "i < 1; ++i", DP_FP + "ClippedChargesBothMechanisms"),
        ("dp-fp-draws-twice-as-large", "DpFpTrainer::DrawBatches", "micro_probability()", "2 * micro_probability()",
         DP_FP + "DrawsAreAsLargeAsTheProbabilitiesThatAreCharged"),
        ("dp-fp-encoder-draws-twice-as-large", "DpFpTrainer::DrawBatches", "static_cast<double>(options_.expected_batch) / options_.num_records_public",
         "2.0 * options_.expected_batch / options_.num_records_public", DP_FP + "DrawsAreAsLargeAsTheProbabilitiesThatAreCharged"),
        ("dp-fp-clip-to-ten-times-the-norm", "GradientOptions", "grid->reduced_clipping_norm()", "10 * grid->reduced_clipping_norm()",
         DP_FP + "EncoderStepIsBoundedByItsClippingNormAndNoisedByItsMultiplier"),
    ]) + table("runtime/train/head_releases.cc", [
        ("head-noise-on-the-first-4000", "HeadReleases::Release", "grid_.sigma_in_steps(options_.noise_multiplier), sum_.sum())",
         "grid_.sigma_in_steps(options_.noise_multiplier), sum_.sum().first(std::min<size_t>(sum_.sum().size(), 4000)))",
         DP_FP_NOISE + "EveryCoordinateOfAHeadReleaseHasItsNoise"),
        ("head-not-clipped", "HeadReleases::Add", "ClipRule::Flat(grid_.reduced_clipping_norm()).Factor(norm)", "1.0",
         "head_releases_test:HeadReleases.RecordMovesTheSumByAtMostTheClippingNormAfterRounding"),
    ])


def starts():
    return table("runtime/inference/check_start.cc", [
        ("start-paid-for-by-95-percent", "", "constexpr double kSlack = 0.98;", "constexpr double kSlack = 0.95;",
         START + "TheStatedEpsilonMayExceedWhatIsSpentByTwoPartsInAHundred"),
        ("start-of-another-spelling", "CheckStart", "NameOf(entry.dataset) != NameOf(options.dataset)", "entry.dataset != options.dataset",
         START + "WithoutAGuaranteeTheDataMustBeOther"),
        ("start-of-an-unknown-base", "CheckStart", "provenance.empty() || provenance.front().base_model_hash != 0", "provenance.empty()",
         START + "WithoutAGuaranteeTheDataMustBeOther"),
        ("start-of-imported-weights", "CheckStart", "(entry.dataset.empty() || entry.dataset == kUnknownDataset) && !entry.epsilon", "entry.dataset.empty() && !entry.epsilon",
         START + "WithoutAGuaranteeTheDataMustBeOther"),
    ])


def audits():
    audit = "audit_training_test:AuditTraining."
    return table("runtime/train/audit_step.cc", [
        ("audit-blind-to-noise", "AuditStep", "result.mu.mu > result.claimed_mu ||", "", audit + "NoiseBelowTheClaimIsCaughtByTheTradeOffAlone"),
    ])


def faults():
    return clipping() + grid() + noise() + charges() + rows() + jobs() + dp_fp() + starts() + audits()
