"""Faults of private decoding: laws of samples, their costs, charges, refusals, provenance."""
from faults import table

SAMPLING = "private_sampling_test:PrivateSamplingTest."
LAW = "sample_law_test:"
NEED = "decoding_need_test:DecodingNeed."
RECOMMENDER = "private_recommender_test:PrivateRecommenderTest."
REFUSED = SAMPLING + "NoGuarantee_IsRefusedWithAReason"


def sampling():
    return table("runtime/private_sampling/private_sampling.cc", [
        ("sample-though-refused", "PrivateSampler::Sample",
         "WISP_RETURN_IF_ERROR(Pay(ComputeCosts(support, request.count), request.at_most));",
         "(void)Pay(ComputeCosts(support, request.count), request.at_most);",
         SAMPLING + "RefusedChargeSamplesNoRandomNumberAndReturnsNothing"),
        ("sample-charged-for-a-smaller-support", "PrivateSampler::ComputeCosts",
         "MaxSampleCost(options_, support.size() - i)",
         "MaxSampleCost(options_, support.size() - i - 1)", SAMPLING + "EachSampleIsChargedWithTheSupportThatIsLeft"),
        ("a-restored-snapshot-repeats-its-samples", "PrivateSampler::Pay", "random_.Freshen();", "",
         "restored_snapshot_test:RestoredSnapshot.Samples_AreOthers"),
        ("sample-one-beyond-the-block", "PrivateSampler::Pay", "block_left_ = samples - 1;", "block_left_ = samples;",
         SAMPLING + "BlocksCoverSmallerSupportsAndGiveNothingBack"),
        ("sample-from-a-block-that-does-not-cover-it", "PrivateSampler::Pay", "block_left_ > 0 && Covers(block_, cost)",
         "block_left_ > 0",
         SAMPLING + "BlocksCoverSmallerSupportsAndGiveNothingBack"),
        ("sample-of-the-best-taken", "CheckWishes", "o.selection != Selection::kSample", "false", REFUSED),
        ("truncation-after-mixing-taken", "CheckWishes", "o.after_mixing != AfterMixing::kNothing", "false", REFUSED),
        ("probabilities-as-output-taken", "CheckWishes", "o.output != SampleOutput::kItems", "false", REFUSED),
        ("lambda-1-taken", "CheckMixing", "if (o.lambda == 1) return", "if (false) return", REFUSED),
        ("anchored-truncation-taken", "CheckAnchored", "o.top_k != 0 || o.nucleus != 1", "false", REFUSED),
        ("private-support-taken", "PrivateSampler::CheckRequest", "r.support_origin != SupportOrigin::kPublic", "false",
         SAMPLING + "RequestsThatCannotBeServedChargeNothing"),
        ("sampled-items-stay", "PrivateSampler::SampleDistinct", "law.Remove(index);", "",
         SAMPLING + "AllOfASupportComesOutOnceAndNothingElse"),
        ("model-alone-sampled-from", "PrivateSampler::SampleDistinct",
         "options_.mode == DecodingMode::kPlain ? 1 : options_.lambda", "1",
         SAMPLING + "OrderedPairsHaveTheLawOfSamplesWithoutReplacement"),
        ("child-samples-what-its-parent-paid-for", "PrivateSampler::Pay",
         'if (origin_.IsForked()) return ForkedError("the ledger of these samples");', "",
         "c_fork_test:CFork.PrivateRecommenders_RefuseAndClose"),
        ("excluded-items-sampled", "PrivateSampler::ChooseSupport",
         "for (int32_t id : r.excluded) in[static_cast<size_t>(id)] = 0;", "",
         SAMPLING + "AllOfASupportComesOutOnceAndNothingElse"),
    ])


def laws():
    return table("runtime/private_sampling/sample_cost.cc", [
        ("mixing-without-its-support", "ComputeEpsilon",
         "cost.lambda * static_cast<double>(cost.support) / (1 - cost.lambda)", "cost.lambda / (1 - cost.lambda)",
         LAW + "SampleCost.MixingEpsilonIsTheLargestLogRatioOfAnyTwoLaws"),
        ("anchored-at-half-its-range", "AnchoredSampleCost", "4 * clip / temperature", "2 * clip / temperature",
         LAW + "AnchoredWeights.NoTwoModelsDifferByMoreThanIsCharged"),
        ("anchored-arithmetic-for-nothing", "AnchoredSampleCost", "+ kAnchoredRangeSlack", "",
         LAW + "AnchoredWeights.TheErrorOfTheArithmeticIsPaidFor"),
        ("mixture-as-if-nothing-were-gone", "NonUniformSampleCost", "size_t j = sampled + 1; j < sorted.size()",
         "size_t j = 1; j + sampled < sorted.size()",
         LAW + "SampleCost.NonUniformAfterSamplesIsTheWorstOverAllItemsThatMayBeGone"),
        ("cover-of-a-larger-support", "Covers", "charged.support >= sample.support &&", "",
         LAW + "SampleCost.WhatCoversIsWorseAtEveryEpsilon"),
        ("cover-of-a-larger-range", "Covers", "&& charged.range >= sample.range", "",
         LAW + "SampleCost.WhatCoversIsWorseAtEveryEpsilon"),
        ("lambda-for-more-than-epsilon", "LambdaForEpsilon", "gain / (gain + static_cast<double>(support))",
         "1.001 * gain / (gain + static_cast<double>(support))",
         LAW + "SampleCost.LambdaForEpsilonSpendsItAndNoMore"),
    ]) + table("runtime/private_sampling/sample_law.cc", [
        ("anchored-clip-one-sided", "AnchoredWeights", "std::min(c, std::max(-c, difference))",
         "std::max(-c, difference)",
         LAW + "AnchoredWeights.NoTwoModelsDifferByMoreThanIsCharged"),
        ("anchored-without-a-floor", "MovedWeights", "std::max(0x1p53, 0x1p95 * w)", "std::floor(0x1p95 * w)",
         LAW + "AnchoredWeights.AreIntegersNotBelowTheFloor"),
        ("mixture-item-without-a-share", "IntegerWeights",
         "std::max(1.0, std::floor(x / largest / total * 0x1.ffffp51))",
         "std::floor(x / largest / total * 0x1.ffffp51)",
         LAW + "IntegerWeights.AreIntegersOfOneAndAboveInProportion"),
    ]) + table("runtime/private_sampling/distinct_samples.cc", [
        ("mixing-with-twice-lambda", "MixedLaw::Sample", "random.Bernoulli(lambda_)", "random.Bernoulli(2 * lambda_)",
         "distinct_samples_test:MixedLaw.HasExactlyTheLawOfTheMixture"),
        ("public-sample-of-the-gone", "MixedLaw::SamplePublic", "if (removed_[index] == 0) return index;",
         "return index;",
         "distinct_samples_test:MixedLaw.RemovedItemsAreSampledNoMore"),
        ("exact-law-forgets-nothing", "ExactLaw::Remove", "weights_[index] = 0;", "",
         "distinct_samples_test:ExactLaw.ForgetsWhatWasRemoved"),
    ]) + table("runtime/privacy/accounting/decoding_calibration.cc", [
        ("samples-above-their-target", "Keeps", "c.epsilon <= request_.target.epsilon()",
         "c.epsilon <= 1.02 * request_.target.epsilon()",
         "decoding_calibration_test:Calibration.LambdaIsTheLargestThatKeepsThePromise"),
        ("samples-of-themselves-alone", "At", "all(request_.composed_with.begin(), request_.composed_with.end())",
         "all",
         "decoding_calibration_test:Calibration.SamplesPayForWhatIsSpentBeside"),
        ("clip-of-twice-the-range", "LargestClipForRange", "range * temperature / 4", "range * temperature / 2",
         RECOMMENDER + "AnEpsilonPerSampleIsKept"),
    ])


def provenance():
    read = NEED + "IsReadFromTheProvenance"
    return table("runtime/private_sampling/decoding_need.cc", [
        ("repeatable-noise-is-a-guarantee", "ExplainEntry", "entry.noise != NoiseOrigin::kSecure", "false", read),
        ("shuffling-is-a-guarantee", "ExplainEntry", 'entry.sampling == "shuffled"', "false", read),
        ("no-mechanism-is-a-guarantee", "ExplainEntry", "entry.mechanisms.empty()", "false", read),
        ("delta-of-one-record-is-a-guarantee", "FindEntriesNeed",
         "policy.num_records_public > 0 && entry.delta >= 1 / static_cast<double>(policy.num_records_public)",
         "false", read),
        ("unknown-base-is-free", "FindEntriesNeed", "provenance.front().base_model_hash != 0", "false", read),
        ("unknown-data-is-public", "IsPublic", "entry.dataset != kUnknownDataset && ", "", read),
        ("exact-counts-are-free", "FindNeed", "file.output_bias_origin() != OutputBiasOrigin::kExactCounts", "true",
         NEED + "ExactCountsInTheOutputBiasAreCoveredByNoMechanism"),
        ("two-data-sets-from-one-ledger", "DatasetToCharge", "need.datasets.size() > 1", "need.datasets.size() > 9",
         NEED + "SamplesArePaidFromTheLedgerOfWhatTheyShow"),
    ]) + table("runtime/private_sampling/sampling_setup.cc", [
        ("base-of-private-data", "CheckBase", "need.kind != DecodingNeed::Kind::kFree", "false",
         RECOMMENDER + "NoGuarantee_IsRefusedAndNotCharged"),
        ("target-without-a-limit", "SamplePromise::LimitToSet", "if (entries.empty()) return planned;",
         "return entries.empty() ? lifetime : std::nullopt;",
         RECOMMENDER + "ATargetNeedsALimitWhereSomethingWasSpent"),
        ("samples-from-another-ledger", "SetUpCharge",
         "if (!dataset.empty()) WISP_RETURN_IF_ERROR(o.ledger->CheckDataset(dataset));", "",
         RECOMMENDER + "ALedgerOfOtherDataDoesNotPay"),
        ("samples-of-a-model-paid-elsewhere", "CheckLedgerHas",
         'WISP_RETURN_IF_ERROR(CheckPaid(session.file(), "the model", o.public_datasets, *o.ledger));', "",
         RECOMMENDER + "ALedgerThatLacksWhatModelOrBaseCostIsRefused"),
        ("samples-of-a-base-paid-elsewhere", "CheckLedgerHas", "o.base == nullptr", "true",
         RECOMMENDER + "ALedgerThatLacksWhatModelOrBaseCostIsRefused"),
        ("standing-delta-of-few-records", "CheckStandingDelta", "!few && ", "",
         RECOMMENDER + "WithFewRecordsNothingAllowsALargeDelta"),
        ("large-delta-taken", "CheckStandingDelta", "delta < 1 / records)) return OkStatus();",
         "delta < 1)) return OkStatus();", RECOMMENDER + "ALargeDeltaHasToBeAllowed"),
    ])


def texts():
    generator, sums = "private_generator_test:PrivateGeneratorTest.", "context_sum_test:ContextSum."
    law = generator + "ATokenHasTheLawThatItIsChargedFor"
    refused = generator + "NoGuarantee_IsRefusedAndNotCharged"
    bound = sums + "OneRecordMovesTheLawByNoMoreThanIsCharged"
    contexts = "private_contexts_test:PrivateContextsTest.AnyNumberOfTextsAddsWhatEachAddsAlone"
    units = "c_text_test:CText.ALedgerOfADecoderIsOfInteractionsUnlessAUnitIsGiven"
    in_c = "c_text_test:CText.GeneratesPrivatelyAndChargesTheLedger"
    return table("ports/c/wisp_decoding.cc", [
        ("private-texts-called-all-of-a-user", "OpenGivenLedger",
         "shown == SamplesShow::kRecords ? privacy::PrivacyUnit::kUser : privacy::PrivacyUnit::kInteraction",
         "privacy::PrivacyUnit::kUser", in_c, units),
        ("a-decoders-records-called-all-of-a-user", "ShownBy",
         "model.tokenizer().empty() ? SamplesShow::kRecords : SamplesShow::kTextRecords", "SamplesShow::kRecords",
         units),
        ("private-texts-in-a-ledger-of-users", "OpenGivenLedger", "MakeSampleRecord(unit.value_or(usual), of_texts)",
         "MakeSampleRecord(unit.value_or(usual), false)", in_c),
    ]) + table("runtime/private_sampling/context_sum.cc", [
        ("context-without-a-clip", "AddClipped", "std::min(kSteps, std::max(-kSteps, steps))",
         "std::min(1e15, std::max(-1e15, steps))",
         sums + "NoContextAddsMoreThanItsSteps", bound),
        ("context-clipped-on-one-side", "AddClipped", "std::max(-kSteps, steps)", "std::max(-1e15, steps)",
         sums + "NoContextAddsMoreThanItsSteps", bound),
        ("context-that-is-no-number", "AddClipped", "steps == steps ?", "true ?",
         sums + "NoContextAddsMoreThanItsSteps"),
        ("aggregate-of-fewer-contexts", "AggregateWeights", "kContextSteps * static_cast<int64_t>(options.contexts)",
         "kContextSteps * static_cast<int64_t>(options.contexts + 1) / 2", bound, law),
        ("aggregate-sum-without-bounds", "AggregateWeights",
         "std::min(most, std::max(-most, sums[static_cast<size_t>(items[i])]))",
         "sums[static_cast<size_t>(items[i])]", sums + "AreTheFormulaWithinTheErrorThatIsCharged"),
        ("aggregate-without-its-temperature", "AggregateWeights", ".temperature = options.temperature",
         ".temperature = options.temperature / 2", bound, law),
    ]) + table("runtime/private_sampling/sample_cost.cc", [
        ("aggregate-at-half-its-range", "AggregateSampleCost", "GetLogitMove(o.adjacency) * o.clip",
         "GetLogitMove(o.adjacency) / 2 * o.clip", bound),
        ("aggregate-charged-for-more-contexts", "AggregateSampleCost", "o.contexts * o.temperature",
         "(o.contexts + 1) * o.temperature", bound),
        ("aggregate-charged-for-a-higher-temperature", "AggregateSampleCost", "o.contexts * o.temperature",
         "o.contexts * (o.temperature + 1)", bound),
        ("aggregate-arithmetic-for-nothing", "AggregateSampleCost", "range + kAggregateRangeSlack", "range",
         sums + "ARecordThatIsExchangedCostsTwice"),
        ("exchanged-record-as-one-that-joins", "GetLogitMove", "? 4 : 2", "? 2 : 2",
         sums + "ARecordThatIsExchangedCostsTwice"),
        ("mixture-charged-above-its-floor", "MinMixtureProbability", "floor / static_cast<double>(support)",
         "2 * floor / static_cast<double>(support)",
         LAW + "SampleCost.AMixtureIsChargedForItsFloor"),
    ]) + table("runtime/text/private_sampling/private_contexts.cc", [
        ("context-counted-twice", "PrivateContexts::Sum", "AddClipped(read, public_scores, clip, sums);",
         "AddClipped(read, public_scores, clip, sums), AddClipped(read, public_scores, clip, sums);",
         law, generator + "OneTextMovesNoTokensLawByMoreThanIsCharged"),
        ("text-longer-than-its-room", "MakeHead", "head.resize(std::min(head.size(), room));", "",
         generator + "TextsThatAreMissingOrUnreadableChangeNoChargeAndNoLength"),
        ("unreadable-text-refused", "PrivateContexts::Create",
         "if (tokens.ok()) contexts.heads_.push_back(*std::move(tokens));",
         "if (!tokens.ok()) return tokens.status(); contexts.heads_.push_back(*std::move(tokens));",
         generator + "TextsThatAreMissingOrUnreadableChangeNoChargeAndNoLength"),
        ("contexts-behind-the-first-16-left-out", "PrivateContexts::Sum", "first += count;", "first += kTogether;",
         contexts),
        ("two-contexts-in-one-place", "PrivateContexts::ScoreFrom", "std::min(first + kTogether, kept())",
         "first + kTogether", contexts),
        ("scores-of-another-context", "PrivateContexts::Sum", "subspan(i * num_items_, sums.size())",
         "subspan(i % 2 * num_items_, sums.size())", contexts),
    ]) + table("runtime/text/private_sampling/private_generator.cc", [
        ("text-begun-without-room", "PrivateGenerator::CheckRoom",
         "if (fits.code() != StatusCode::kPrivacyRefused) return fits;", "if (!fits.ok()) return all;",
         generator + "ABudgetEndsInWordsAndNothingIsSampledThen"),
        ("text-without-a-plan", "PrivateGenerator::Generate", "WISP_RETURN_IF_ERROR(PlanText(charges));", "",
         generator + "CoveredText_IsSampledToItsEnd"),
        ("text-without-its-promise", "PrivateGenerator::Generate",
         "WISP_RETURN_IF_ERROR(setup_.promise.Write());", "", generator + "ARefusedFirstTextLeavesNoLedger"),
        ("promise-before-the-prompt-is-checked", "PrivateGenerator::Generate",
         "WISP_RETURN_IF_ERROR(CheckGenerates(*session_, *tokenizer_, o.stop));",
         "WISP_RETURN_IF_ERROR(setup_.promise.Write()); "
         "WISP_RETURN_IF_ERROR(CheckGenerates(*session_, *tokenizer_, o.stop));",
         generator + "ARefusedFirstTextLeavesNoLedger"),
        ("room-without-the-limit-to-be", "PrivateGenerator::CheckRoom", "ledger_->CheckFits(all, limit)",
         "ledger_->CheckFits(all)", generator + "ARefusedFirstTextLeavesNoLedger"),
        ("base-of-another-tokenizer", "CheckTokenizers",
         "std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end())", "true", refused),
        ("mixture-without-its-floor", "PrivateGenerator::MixWithBase", "/ total + least", "/ total", law),
        ("support-of-the-private-model", "PrivateGenerator::SupportFromBase",
         "return base_scores_[static_cast<size_t>(token)];",
         "return scores_[static_cast<size_t>(token)];", law),
    ]) + table("runtime/private_sampling/sampling_setup.cc", [
        ("private-texts-before-private-weights", "FindSamplesNeed", "need.kind != DecodingNeed::Kind::kFree", "false",
         refused),
        ("private-texts-for-nothing", "FindSamplesNeed", "if (o.contexts == 0) return need;", "return need;",
         generator + "EveryTokenIsChargedBeforeItIsShown"),
    ]) + table("runtime/private_sampling/private_sampling.cc", [
        ("token-charged-after-it-is-sampled", "PrivateSampler::Sample",
         "WISP_RETURN_IF_ERROR(Pay(ComputeCosts(support, request.count), request.at_most)); "
         "return SampleDistinct(request, std::move(support));",
         "const auto costs = ComputeCosts(support, request.count); auto sampled = SampleDistinct(request, "
         "std::move(support)); WISP_RETURN_IF_ERROR(Pay(costs, request.at_most)); return sampled;",
         SAMPLING + "RefusedChargeSamplesNoRandomNumberAndReturnsNothing"),
        ("mixture-below-what-is-charged", "PrivateSampler::CheckMixture",
         "std::nextafter(least, 0) >= options_.min_probability", "true",
         SAMPLING + "AMixtureOfARequestHasToKeepWhatIsChargedFor"),
    ])


def faults():
    return sampling() + laws() + provenance() + texts()
