"""Faults of accountants, calibration, ledger, random streams, samplers and audits' statistics."""
from faults import table

PLD = "accountant_test:Pld."
ALLOCATION = "random_allocation_test:RandomAllocation."
CORRELATED = "correlated_gaussian_test:CorrelatedGaussian."
SCHEDULE = "noise_schedule_test:NoiseSchedule."
ROUNDING = "pld_rounding_test:PldRounding."
DRAWS = "decoding_accounting_test:"
LEDGER = "ledger_test:LedgerTest."
RECORD = "ledger_record_test:LedgerRecordTest."
CRAFTED = "ledger_crafted_test:LedgerTest."
ANCHOR = "ledger_anchor_test:LedgerAnchorTest."
SHARES = "ledger_shares_test:SharesOfDelta."
NO_LIMIT = SHARES + "WithoutALimitTheFigureIsThatOfThePlanAndOfWhatLeavesItTogether"
BUDGET = "ledger_budget_test:LedgerBudgetTest."
PARTS = "ledger_parts_test:LedgerPartsTest."
RANDOM = "random_test:RandomStream."
GAUSSIAN = "discrete_gaussian_test:DiscreteGaussian."
AUDIT = "audit_test:"


def pld():
    return table("runtime/privacy/accounting/kinds/gaussian.cc", [
        ("pld-directions-swapped", "Between", "const double p = remove ? with : without, q = remove ? without : with;",
         "const double p = remove ? without : with, q = remove ? with : without;",
         PLD + "EachDirectionEqualsIndependentComputation"),
        ("gaussians-cost-once", "CombinedGaussianNoise",
         "m.noise_multiplier() / std::sqrt(static_cast<double>(m.steps()))", "m.noise_multiplier()",
         PLD + "PlainGaussianEqualsAnalyticGaussian"),
        ("noise-rounded-up", "GaussianRoundedUp", "1 / UpToPower(1 / values[0], per_octave)",
         "UpToPower(values[0], per_octave)", SCHEDULE + "TooManyKinds_AreRoundedUp"),
        ("rdp-of-one-step", "GaussianRdp", "steps * std::max(0.0, LogMoment(q, s, order))",
         "std::max(0.0, LogMoment(q, s, order))",
         "accountant_test:Rdp.EpsilonAtOpacusOrdersEqualsOpacus"),
        ("sampling-under-any-adjacency", "CheckSampling", "m.adjacency() == Adjacency::kAddRemove", "true",
         "accountant_test:Accountants.PairingsWithoutProofAreRefused"),
    ]) + table("runtime/privacy/accounting/kinds/bounded_range.cc", [
        ("bounded-range-too-cheap", "BoundedRangeRdp",
         "std::min(simple, exact + kRounding * (1 + 1 / a) * (1 + std::abs(share)))", "simple / 2",
         DRAWS + "Rdp.BoundedRangeIsTheSupremumOfTheFamily"),
    ]) + table("runtime/privacy/accounting/kinds/response.cc", [
        ("response-with-less-loss", "ResponseLattice", "lambda + m}", "lambda}",
         DRAWS + "Response.PairDominatesEveryDrawAndSomeDrawReachesIt"),
        ("draws-rounded-down", "ResponseRoundedUp", "lambda = UpToPower(m.lambda(), per_octave)",
         "lambda = m.lambda() * m.lambda() / UpToPower(m.lambda(), per_octave)",
         DRAWS + "Response.ManyKindsAreRoundedUp"),
    ]) + table("runtime/privacy/accounting/kinds/random_allocation.cc", [
        ("allocation-directions-swapped", "DiscretiseAllocation", "direction == Direction::kRemove",
         "direction == Direction::kAdd", ALLOCATION + "EpochOfTwoSteps_CostsWhatItsDefinitionSays"),
        ("allocation-of-an-even-epoch", "SumTerms", "const bool odd = (t >> j) % 2 == 1;", "const bool odd = false;",
         ALLOCATION + "EpochOfManySteps_AgreesWithSamples"),
        ("allocation-splits-down", "SumPlace",
         "std::clamp(std::expm1(log - floor * step) / std::expm1(step), 0.0, 1.0)", "0.0",
         ALLOCATION + "MassAndMean_AreOne"),
        ("allocation-renyi-of-one-direction", "EpochLogMoment", "std::max({0.0, costs.moments[order], add})", "add",
         ALLOCATION + "RenyiDivergence_IsTheLargerOfBothDirections"),
        ("allocation-of-one-epoch", "AllocationRdp", "static_cast<double>(m.steps()) * log_moment", "log_moment",
         ALLOCATION + "RdpIsAnUpperBound_AndClose"),
        ("allocation-with-twice-the-noise", "RandomAllocation", "{o.noise_multiplier,", "{2 * o.noise_multiplier,",
         ALLOCATION + "EpochOfOneStep_IsAPlainGaussian"),
        ("allocation-of-replaced-records", "CheckAllocation", "m.adjacency() != Adjacency::kReplaceOne", "true",
         ALLOCATION + "ImpossibleParameters_AreRefused"),
        ("epoch-counts-as-a-step", "",
         'return static_cast<uint64_t>(m.Parameter("epoch_steps"));', "return uint64_t{1};",
         "ledger_statement_test:LedgerStatementTest.SaysHowRecordsTookPart"),
    ]) + table("runtime/privacy/accounting/kinds/correlated_gaussian.cc", [
        ("correlated-participations-apart", "CorrelatedSensitivity", "g = 1 + to_b * g;", "g = 1;",
         CORRELATED + "SensitivityIsThatOfTheWorstParticipation"),
        ("correlated-sensitivity-halved", "MakePlainGaussian", "m.noise_multiplier() / sensitivity",
         "m.noise_multiplier() / sensitivity * 2", CORRELATED + "CostsWhatOneGaussianOfTheSensitivityCosts"),
        ("correlated-runs-cost-once", "MakePlainGaussian", ".count = m.steps(),", ".count = 1,",
         CORRELATED + "CostsWhatOneGaussianOfTheSensitivityCosts"),
        ("correlated-noise-of-replaced-records", "CheckCorrelated", "m.adjacency() != Adjacency::kReplaceOne", "true",
         CORRELATED + "ImpossibleParameters_AreRefused"),
    ]) + table("runtime/privacy/noise/correlated_noise.cc", [
        ("rounding-of-correlated-noise-is-free", "CorrelatedRoundingShift", "std::sqrt(numbers)", "0.01",
         "correlated_gaussian_test:CorrelatedNoise.RoundingShift_BoundsTheNoiseThatExplainsTheSameRelease"),
        ("part-taken-back-rounded-down", "PartTakenBack::Of", "(low * numerator_ + kOne / 2)", "(low * numerator_)",
         "correlated_gaussian_test:CorrelatedNoise.PartTakenBack_IsTheNearestInteger"),
    ]) + table("runtime/privacy/accounting/pld.cc", [
        ("pld-rounds-down", "ConnectTheDots", "m.excess / spread + kSplitAllowance * m.p", "0.99 * m.excess / spread",
         PLD + "OneStepIsNeverBelowTheDefinition"),
        ("pld-tail-lost", "ConnectTheDots", "pld.infinity = pair.Between(high, kInfinity).p + 1e-22;",
         "pld.infinity = 0;",
         ROUNDING + "WhatLiesBeyondTheGridGoesToInfinity"),
        ("pld-delta-without-infinity", "ComputeDelta", "double delta = pld.infinity;", "double delta = 0;",
         ROUNDING + "InfinityIsPartOfEveryDelta"),
        ("pld-epsilon-without-infinity", "ComputeEpsilon", "!(pld.infinity <= delta)", "false",
         ROUNDING + "InfinityIsPartOfEveryDelta"),
        ("pld-regrid-loses-infinity", "Regrid", ".infinity = pld.infinity", ".infinity = 0",
         DRAWS + "Pld.NothingIsLostInTrimmingConvolvingAndRegridding"),
        ("pld-regrid-rounds-down", "Regrid", "out.mass[index + 1] += upper;", "out.mass[index] += upper;",
         DRAWS + "Pld.NothingIsLostInTrimmingConvolvingAndRegridding"),
        ("pld-trimmed-tail-lost", "TrimTails", "pld.infinity += above;", "",
         DRAWS + "Pld.NothingIsLostInTrimmingConvolvingAndRegridding"),
    ]) + table("runtime/privacy/accounting/pld_compose.cc", [
        ("small-powers-too-small", "SmallPower", "if (count % 2 == 1) power *= z;", "if (count == 1) power *= z;",
         SCHEDULE + "SubsampledGaussians_LieBetweenTheirEnds"),
        ("rounding-bound-0", "", "constexpr double kTransformConstant = 4;", "constexpr double kTransformConstant = 0;",
         ROUNDING + "OneTransformCostsItsForwardAndItsInverseError"),
        ("rounding-left-out", "ComposeByTransform",
         "std::sqrt(spectrum.forward_squares) + kTransformConstant * u * logn * std::sqrt(spectrum.squares)",
         "0 * u * logn", ROUNDING + "InfinityCoversWhatRoundingTook"),
        ("rounding-forward-left-out", "ComposeByTransform", "std::sqrt(spectrum.forward_squares)", "0.0",
         ROUNDING + "OneTransformCostsItsForwardAndItsInverseError"),
        ("rounding-inverse-left-out", "ComposeByTransform",
         "kTransformConstant * u * logn * std::sqrt(spectrum.squares)", "0 * u * logn",
         ROUNDING + "OneTransformCostsItsForwardAndItsInverseError"),
        ("rounding-of-one-factor", "TransformAll", "relative[k] += count * error", "relative[k] += error",
         ROUNDING + "APowerCostsTheErrorOfEachFactor"),
        ("composition-loses-infinity", "ComposeByTransform", "static_cast<double>(term.count) * term.pld.infinity",
         "0 * term.pld.infinity",
         ROUNDING + "InfinityIsPartOfEveryComposition"),
        ("composition-keeps-infinity-once", "ComposeByTransform", "static_cast<double>(term.count) * term.pld.infinity",
         "term.pld.infinity",
         ROUNDING + "InfinityIsPartOfEveryComposition"),
    ])


def accountants():
    return table("runtime/privacy/accounting/accountant.cc", [
        ("figure-of-another-delta-remembered", "Find", "a.delta == delta && ", "",
         PLD + "FigureAskedForAgain_IsThatOfTheQuestion"),
        ("figure-of-other-mechanisms-remembered", "Find",
         "std::equal(a.mechanisms.begin(), a.mechanisms.end(), mechanisms.begin(), mechanisms.end())",
         "a.mechanisms.size() == mechanisms.size()",
         PLD + "FigureAskedForAgain_IsThatOfTheQuestion"),
        ("quick-figure-remembered-for-a-full-one", "Find", "a.fineness == fineness && ", "",
         PLD + "FigureAskedForAgain_IsThatOfTheQuestion"),
        ("joined-gaussians-cost-half", "JoinGaussians", "(1 - 1e-12) / std::sqrt", "2 / std::sqrt",
         SCHEDULE + "PlainGaussians_CostWhatTheirSquaresAddUpTo"),
        ("better-of-two-directions", "WorstDirection",
         "std::max(remove, figure(ComposeDirection(merged, Direction::kAdd, fitting)))",
         "std::min(remove, figure(ComposeDirection(merged, Direction::kAdd, fitting)))",
         PLD + "EpsilonEqualsIndependentComputation"),
        ("steps-of-the-longer-run", "Merge", "same->steps() + m.steps()", "std::max(same->steps(), m.steps())",
         PLD + "HalvesTogetherCostTheWhole"),
        ("pure-of-one-draw", "PureEpsilon", "sum += static_cast<double>(m.steps()) * m.PureEpsilonPerStep()",
         "sum += m.PureEpsilonPerStep()", DRAWS + "Accountants.*"),
    ]) + table("runtime/privacy/accounting/rdp.cc", [
        ("rdp-conversion-too-low", "RdpEpsilonAtOrders", "total + std::log1p(-1 / a)", "total + 2 * std::log1p(-1 / a)",
         "accountant_test:Rdp.EpsilonAtOpacusOrdersEqualsOpacus"),
        ("proofs-not-asked-for", "CheckAccountable", "m.kind().check != nullptr", "false",
         "accountant_test:Accountants.PairingsWithoutProofAreRefused"),
    ]) + table("runtime/privacy/accounting/mechanism.cc", [
        ("parameter-without-limits", "Mechanism::Make", "values[i] >= p.least && values[i] <= p.most", "true",
         "mechanism_test:MechanismKinds.ValuesOutsideOfTheirLimits_AreRefused"),
    ]) + table("runtime/privacy/accounting/calibration.cc", [
        ("calibration-ends-above-its-target", "CalibrateNoise", "(middle.epsilon > target ? low : high) = middle;",
         "(middle.epsilon > 1.01 * target ? low : high) = middle;",
         "accountant_test:Calibration.NoiseIsTheSmallestThatKeepsThePromise"),
        ("calibration-of-one-mechanism", "Epsilon", "spent_.insert(spent_.end(), made.begin(), made.end());",
         "spent_.push_back(made.front());", "accountant_test:Calibration.NoiseOfAnyMechanismsKeepsThePromise"),
        ("calibration-of-the-steps-alone", "Epsilon",
         "spent_.assign(request_.composed_with.begin(), request_.composed_with.end());", "spent_.clear();",
         "accountant_test:Calibration.WhatIsSpentBesideIsPaidFor"),
        ("delta-of-a-record-taken", "CheckDelta", "delta > 1 / num_records ||", "delta > 2 / num_records ||",
         "job_test:JobTest.RefusedGoalsSpendNothing"),
        ("few-records-as-if-many", "CheckDelta", "const bool few = num_records <= kFewRecords;",
         "const bool few = false;",
         "private_recommender_test:PrivateRecommenderTest.WithFewRecordsNothingAllowsALargeDelta"),
    ])


def ledger():
    return table("runtime/privacy/ledger/ledger_impl.h", [
        ("limit-not-checked", "Charge", "if (budget.limit()) {", "if (false) {",
         LEDGER + "ARefusedChargeChangesNothingAndSaysWhy"),
        ("charges-of-others-not-read", "Charge", "WISP_RETURN_IF_ERROR(Refresh());", "",
         LEDGER + "OthersChargesAndANewLimitCountAtOnce"),
        ("charge-not-committed", "Write", "WISP_RETURN_IF_ERROR(transaction.Commit());", "",
         LEDGER + "ChargesSurviveReopening"),
        ("charge-forgets-its-slack", "Charge", ".loss_slack = charge.loss_slack", ".loss_slack = 0",
         LEDGER + "LossSlackIsPaidFor"),
        ("noise-of-two-kinds-mixed", "Charge", "WISP_RETURN_IF_ERROR(budget.CheckNoise({&charge, 1}));", "",
         LEDGER + "NoiseOfTwoKindsDoesNotMix"),
        ("a-name-forges-lines-of-a-message", "CheckDataset", "OneLine(dataset)", "Printable(dataset)",
         LEDGER + "AnotherUnitOrAdjacencyIsRefused"),
        ("filter-without-what-is-about-to-run", "Charge", "budget.AfterCharge(charge), charge.part",
         "budget, charge.part", BUDGET + "WhatIsAboutToRunIsCounted"),
        ("charge-that-says-no-record", "Charge",
         "WISP_ASSIGN_OR_RETURN(entry.record, FindStatedRecord(LedgerParts::Says::kCharge));", "",
         RECORD + "AnotherRecord_isRefusedAndBothAreNamed"),
    ]) + table("runtime/privacy/ledger/ledger_reads.cc", [
        ("run-of-others-counted", "Ledger::SpentByRun", "e.run == run", "e.run != run",
         LEDGER + "*:-LedgerTest.TheFileIsMade*"),
    ]) + table("runtime/privacy/ledger/ledger_parts.cc", [
        ("records-not-compared", "LedgerParts::FindStatedRecord", "*record_ == *asked", "true",
         RECORD + "AnotherRecord_isRefusedAndBothAreNamed"),
    ]) + table("runtime/privacy/ledger/record_spec.cc", [
        ("gap-left-out-of-the-record", "RecordSpec::ToText",
         'if (unit() == PrivacyUnit::kSession) text += " gap=" + std::to_string(events_.session_gap);', "",
         RECORD + "AnotherRecord_isRefusedAndBothAreNamed"),
        ("columns-and-table-left-out-of-the-record", "RecordSpec::ToText",
         'text += " " + std::string(n.in_text) + "=" + Escaped(name);', "{}",
         RECORD + "AnotherRecord_isRefusedAndBothAreNamed"),
    ]) + table("runtime/privacy/ledger/ledger_database.cc", [
        ("child-charges-over-its-parents-connection", "Database::CheckProcess",
         "handle_.get_deleter().origin.IsForked()", "false", "c_fork_test:CFork.Ledgers_RefuseAndClose"),
    ]) + table("runtime/privacy/accounting/privacy_filter.cc", [
        ("filter-of-the-last-order", "RenyiFilter::Fits", "size_t j = 0;", "size_t j = bound_.size() - 1;",
         "privacy_filter_test:Filter.TheWholePathMustFitOneOrder"),
        ("filter-gives-every-order-all-of-delta", "RenyiFilter::RenyiFilter",
         "delta_[j] *= budget.delta / sum * (1 - kBoundRounding);", "delta_[j] = budget.delta;",
         "privacy_filter_test:Filter.SharesOfDeltaAddUpToDelta"),
    ]) + table("runtime/privacy/ledger/ledger_budget.cc", [
        ("filter-beside-the-plan-of-all-of-delta", "LedgerBudget::Keeps", "limit.delta() - taken", "limit.delta()",
         SHARES + "ThePlanAndWhatLeavesItHaveTheLimitsDeltaTogether"),
        ("plan-takes-nothing-of-delta", "LedgerBudget::PlanDelta", "known.delta = std::min(delta, limit.delta());",
         "known.delta = 0.0;", SHARES + "ThePlanAndWhatLeavesItHaveTheLimitsDeltaTogether"),
        ("odometer-takes-the-filters-share", "LedgerBudget::AdaptiveEpsilon",
         "(1 - kFilterShare) * (held->delta() - taken)", "(held->delta() - taken)",
         SHARES + "AFigureBelowTheLimitIsPaidForBesidesTheLimit"),
        ("odometer-beside-the-limit-at-all-of-delta", "LedgerBudget::AdaptiveEpsilon",
         "delta.value() - held->delta() +", "delta.value() +", SHARES + "AFigureBelowTheLimitIsPaidForBesidesTheLimit"),
        ("odometer-beside-the-plan-at-all-of-delta", "LedgerBudget::AdaptiveEpsilon",
         "OdometerEpsilon(path_, half.value())", "OdometerEpsilon(path_, delta.value())", NO_LIMIT),
        ("plan-beside-the-odometer-at-all-of-delta", "LedgerBudget::AdaptiveEpsilon", "PlanState(half)",
         "PlanState(delta)", NO_LIMIT),
        ("filter-without-the-plans-steps", "LedgerBudget::Count", "path_.Add(e.mechanism, e.loss_slack);",
         "if (left_plan_) path_.Add(e.mechanism, e.loss_slack);",
         BUDGET + "StepsOfThePlanCountForWhatComesAfterIt"),
        ("plan-after-a-look", "LedgerBudget::Take", "if (has_entries()) return;", "",
         BUDGET + "APlanIsFixedBeforeTheFirstLook"),
        ("choice-composed-by-pld", "LedgerBudget::Keeps", "if (!left_plan_) {",
         "{ const bool keeps = *all_.Epsilon(*Delta::Create(limit.delta())) <= limit.epsilon(); return keeps; }\n  {",
         BUDGET + "StepsThatFit_AreCountedByTheFilterNotByPld"),
        ("plan-pays-for-other-parts", "LedgerBudget::FindInPlans", "active.plan.part != charge.part || ", "",
         PARTS + "PlansOfAPartAndOfAllCountTogether"),
    ]) + table("runtime/privacy/ledger/ledger_parts.cc", [
        ("what-reads-all-counts-once", "LedgerParts::ForEach", "part == RecordPart::kAll || ", "",
         PARTS + "ChargesForAllRecords_CountForEachPart"),
        ("every-charge-counts-for-each", "LedgerParts::ForEach", "part == kParts[i]", "true",
         PARTS + "TheDataSetCostsWhatItsDearestPartCosts"),
        ("split-forgets-what-was-charged", "LedgerParts::Take", "budgets_.push_back(budgets_.front());",
         "budgets_.push_back({});",
         PARTS + "ChargesForAllRecords_CountForEachPart"),
        ("cheapest-part-stated", "LedgerParts::Largest", "kLess(a.stated, b.stated)", "kLess(b.stated, a.stated)",
         PARTS + "TheDataSetCostsWhatItsDearestPartCosts"),
        ("late-for-the-dearest-part-alone", "LedgerParts::Largest", "figures.limit_is_late || f.limit_is_late",
         "figures.limit_is_late", PARTS + "ALimitAfterAPartsChargeIsLateForBoth"),
        ("records-divided-twice", "LedgerParts::Take", 'if (split_) return InvalidData("records are divided twice");',
         "",
         PARTS + "ChangesInTheFile_AreNoticed"),
        ("charge-of-a-part-that-is-none", "LedgerParts::CheckParts", "charge.part != RecordPart::kAll && !split_",
         "false",
         PARTS + "RecordsAreDividedOnceAndOnlyUnderAddRemove"),
        ("limit-of-one-part-alone", "LedgerParts::CheckLimits", "ForEach(after.budgets_, part, [&]",
         "ForEach(after.budgets_, RecordPart::kTraining, [&]",
         PARTS + "ALimitHoldsForEachPart"),
    ]) + table("runtime/privacy/ledger/record_parts.cc", [
        ("sides-without-the-salt", "GetPart", ".Text(split.salt)", "", "record_parts_test:GetPart.*"),
        ("sessions-of-a-user-together", "GetPart",
         "if (record.begins) name.Number(static_cast<uint64_t>(*record.begins));", "",
         "record_parts_test:GetPart.*"),
    ]) + table("runtime/privacy/ledger/ledger_composition.cc", [
        ("slack-not-added-up", "Composition::Add", "loss_slack_ += loss_slack;", "loss_slack_ = loss_slack;",
         "composition_test:Composition.SlackCostsEpsilonAndDelta"),
        ("slack-costs-no-epsilon", "Composition::State", "stated.epsilon + 2 * eta", "stated.epsilon",
         "composition_test:Composition.SlackCostsEpsilonAndDelta"),
        ("delta-beyond-what-is-proved", "Composition::DeltaAt",
         "std::min(epsilon, kMaxDiscretisationEpsilon)", "epsilon",
         "composition_test:Composition.DeltaAboveTheProvedEpsilonIsWhatItIsThere"),
        ("slack-costs-no-delta", "Composition::State", "* std::exp(-eta)", "",
         "composition_test:Composition.SlackCostsEpsilonAndDelta"),
        ("repeatable-noise-has-an-epsilon", "Composition::State",
         "if (has_reproducible_) return StatedEpsilon{kInfinity};", "",
         "composition_test:Composition.RepeatableNoiseHasNoEpsilon"),
    ])


def ledger_file():
    return table("runtime/privacy/ledger/ledger_chain.cc", [
        ("chain-of-each-row-alone", "ChainLink::After", "std::string(before.begin(), before.end()) + bytes_",
         "bytes_ + std::string(before.size(), ' ')",
         CRAFTED + "ARowOfACopyThatWentAnotherWayIsNoticed"),
        ("chain-without-lengths", "ChainLink::Text", "AppendWord(bytes_, text.size());", "",
         CRAFTED + "TextMovedToTheNextColumnIsNoticed"),
    ]) + table("runtime/privacy/ledger/ledger_rows.cc", [
        ("rows-not-held-to-the-chain", "Follow", "place.stored != AsText(end.chain)", "false",
         CRAFTED + "TextMovedToTheNextColumnIsNoticed"),
        ("rows-not-held-to-the-head", "ReadRowsAfter",
         "if (head.seq == rows.end.seq && head.chain == rows.end.chain) return rows;", "return rows;",
         LEDGER + "EntriesCannotBeChangedOrRemovedByOthers"),
        ("receipt-of-the-first-charge", "ReadReceipt", "ORDER BY id DESC", "ORDER BY id",
         "check_start_test:CheckStartTest.ACopyFromBeforeTheLastChargeDidNotPay"),
        ("part-outside-the-chain", "MakeLink", ".Text(ToText(e.part))", "",
         PARTS + "ChangesInTheFile_AreNoticed"),
        ("settings-outside-the-chain", "MakeLink",
         ".Text(p.settings)", "",
         PARTS + "ChangesInTheFile_AreNoticed"),
        ("share-outside-the-chain", "MakeLink", ".Real(s.evaluation_share)", "", PARTS + "ChangesInTheFile_AreNoticed"),
    ]) + table("runtime/privacy/ledger/ledger_tables.cc", [
        ("any-tables-are-a-ledgers", "CheckTables", "texts[0] == texts[1]", "!texts[1].empty()",
         CRAFTED + "AViewInPlaceOfATableIsNotRead"),
    ]) + table("runtime/privacy/ledger/ledger_database.cc", [
        ("trees-of-any-height", "Database::CheckContents", "WISP_RETURN_IF_ERROR(CheckHeights());", "",
         CRAFTED + "ATreeAsHighAsTheFileIsLongIsRefused"),
        ("work-of-opening-without-the-size", "Database::Recognise", "kOperationsBesides + kOperationsPerByte * bytes",
         "kOperationsBesides",
         CRAFTED + "ALongHonestLedgerIsOpened"),
        ("ledger-keeps-a-write-ahead-log", "CheckNoWriteAheadLog", "sqlite::HasWriteAheadLog(handle)", "false",
         "ledger_file_test:LedgerTest.AWriteAheadLogIsRefusedAndLeftAlone"),
        ("an-older-log-is-played-back", "CheckNoWriteAheadLog", "sqlite::ReadFileSize(log) == 0", "true",
         "ledger_file_test:LedgerTest.AWriteAheadLogOfAnOlderCopy_TakesNoChargeBack"),
        ("journal-takes-a-charge-back", "Database::OpenBounded", "return CheckWholeLedger(path, bytes).ok();",
         "return !CheckWholeLedger(path, bytes).ok();",
         "ledger_file_test:LedgerTest.AJournalThatWasLeftTakesNoChargeBack"),
    ]) + table("runtime/privacy/ledger/ledger_anchored.cc", [
        ("anchor-kept-without-the-lock", "WritersLock",
         "if (database.in_transaction() || !IsWritten(database))", "if (true)",
         ANCHOR + "TwoWriters_NeverTakeTheAnchorBack"),
        ("anchor-begun-by-two", "Anchored::Begin", "if (known) {", "if (false) {",
         ANCHOR + "WhoBeginsTheAnchor_TakesWhatAnotherBegan"),
        ("anchor-of-rows-that-are-not-there", "Anchored::Begin", "ReadChainAt(database, known->seq).ok()", "true",
         ANCHOR + "WhoBeginsTheAnchor_IsHeldToWhatAnotherBegan"),
        ("anchor-goes-by-number", "Anchored::Check", "if (chain == known->chain) return OkStatus();",
         "return OkStatus();", ANCHOR + "AnOldCopyPutBack_IsRefused"),
        ("anchor-of-any-ledger", "Anchored::Check", "known->ledger_id != random_id", "false",
         ANCHOR + "TheAnchorOfAnotherLedger_IsRefused"),
        ("anchor-stays-behind", "Anchored::Keep",
         "return Naming(database, anchor_->Write({random_id, position.seq, position.chain}));", "return OkStatus();",
         ANCHOR + "AnOldCopyPutBack_IsRefused"),
    ])


def random():
    return table("runtime/privacy/noise/random.cc", [
        ("stream-repeats-its-buffer", "RandomStream::Refill", "s.first_word += kBufferWords;", "",
         RANDOM + "SeekReturnsToAPosition"),
        ("child-keeps-its-parents-key", "RandomStream::Refill", "ReplaceKey(s);", "",
         RANDOM + "SecureForkedChildDrawsOtherNoise"),
        ("a-restored-snapshot-keeps-its-key", "RandomStream::Freshen", "ReplaceKey(*state_);", "",
         RANDOM + "AStreamThatIsFreshenedIsAnotherInEachCopyOfTheMemory"),
        ("key-without-entropy", "RandomStream::SecureForTesting", "source(state->key, kKeyBytes) != 0",
         "source(state->key, kKeyBytes) > 1000",
         RANDOM + "SecureWithoutEntropyIsAnErrorNotAWeakKey"),
        ("secure-stream-goes-back", "RandomStream::Seek", "if (s.secure) return", "if (false) return",
         RANDOM + "SeekOfASecureStreamIsRefused"),
        ("bernoulli-of-the-first-digit", "RandomStream::Bernoulli", "p = scaled - floor;", "return false;",
         RANDOM + "BernoulliEqualFirstDigitIsDecidedByTheRest"),
        ("purposes-share-a-stream", "RandomStream::Reproducible", "input[sizeof seed] = static_cast<uint8_t>(purpose);",
         "input[sizeof seed] = 1;",
         RANDOM + "OtherSeedOrPurposeGivesOtherBits"),
        ("sample-in-pairs", "PoissonSample", "if (random.Bernoulli(q)) out.push_back(i);",
         "if (random.Bernoulli(q)) { out.push_back(i); if (++i < n) out.push_back(i); }",
         "random_test:PoissonSample.EachIndexIndependentlyWithProbabilityQ"),
    ]) + table("runtime/privacy/noise/discrete_gaussian.cc", [
        ("one-sample-for-all", "AddSamples", "for (int64_t& s : sum) s += sampler.Next();",
         "const int64_t x = sampler.Next(); for (int64_t& s : sum) s += x;",
         GAUSSIAN + "EveryElementHasNoiseOfItsOwn"),
        ("sample-replaces-the-sum", "AddSamples", "s += sampler.Next()", "s = sampler.Next()",
         GAUSSIAN + "AddsToWhatIsThere"),
    ]) + table("runtime/privacy/noise/discrete_gaussian_sampler.h", [
        ("sampler-keeps-minus-zero", "Next", "(place.x | ~sign) == 0", "false",
         GAUSSIAN + "SmallSigmaMatchesExactProbabilities"),
        ("sampler-accepts-all", "Accept", "return AcceptByExp(v, y, bits);", "return true;",
         GAUSSIAN + "EveryHalfCellHasItsShare"),
        ("sampler-leaves-its-cell", "Next", "place.y >= sigma_ ||", "",
         GAUSSIAN + "SmallSigmaMatchesExactProbabilities"),
        ("sampler-has-one-sign", "Next", "-static_cast<int64_t>(word & 1)", "-static_cast<int64_t>(0 * (word & 1))",
         GAUSSIAN + "LargeSigmaHasItsMoments"),
    ])


def figures():
    return table("runtime/privacy/statement.cc", [
        ("every-mechanism-sampled-by-poisson", "Participation",
         "m.kind().*said", "kPoissonSubsampledGaussianKind.*said",
         "ledger_statement_test:LedgerStatementTest.SaysHowRecordsTookPart"),
        ("a-name-forges-lines", "Line", "append(OneLine(std::string(value)))", "append(value)",
         "statement_test:Statement.EachValueIsOneLineWhateverItHolds"),
        ("late-limit-kept-quiet", "LimitInWords", "if (f.limit_is_late)", "if (false)",
         "ledger_statement_test:LedgerStatementTest.ALimitBelowWhatWasSpent"),
    ]) + table("runtime/core/text.h", [
        ("marks-that-move-text-are-shown", "IsControl", ' || s.starts_with("\\xd8\\x9c")', "",
         "statement_test:JsonWriter.TextAndJsonTakeTheSameCharactersForControls"),
    ]) + table("runtime/privacy/json.cc", [
        ("controls-of-several-bytes-in-json", "JsonWriter::AppendQuoted", "IsControl(text, length) && c != '\\t'",
         "length == 1 && IsControl(text, length) && c != '\\t'",
         "statement_test:JsonWriter.ControlCharactersOfSeveralBytesAreEscaped"),
        ("epsilon-to-nearest", "EpsilonText", "if (shown >= number) return text;",
         "return text;",
         "json_test:EpsilonText.ReadBackIsNeverLessAndNearAbove"),
    ]) + table("runtime/privacy/ledger_statement.cc", [
        ("tuning-kept-quiet", "Gather", "!tuning.empty())", "tuning.empty())",
         "ledger_statement_test:LedgerStatementTest.WhatWasTunedIsThereOnce"),
        ("record-kept-quiet", "Gather", "s.record = state.record;", "",
         "ledger_statement_test:LedgerStatementTest.SaysWhatARecordIs"),
        ("writer-of-several-taken-for-protected", "DescribeRecords", "s.unit != PrivacyUnit::kUser",
         "s.unit == PrivacyUnit::kUser",
         "ledger_statement_test:LedgerStatementTest.SaysWhatARecordIs"),
        ("weights-taken-for-protected", "Add", "samples.record && samples.record->kind() == RecordSpec::kPromptText",
         "false",
         "ledger_statement_test:LedgerStatementTest.SaysWhatDrawsWereMadeFrom"),
    ])


def audits():
    return table("runtime/privacy/audit/audit.cc", [
        ("audit-refutes-within-delta", "PValue",
         "pure + 2 * static_cast<double>(o.canaries) * claim.delta * LargestMassPerGuess(o, chance)", "pure",
         AUDIT + "OneRun.RareDisclosureWithinDeltaIsNotRejected"),
        ("audit-chooses-for-nothing", "OneRunBestEpsilon", "/ static_cast<double>(guess_counts.size())", "",
         AUDIT + "OneRun.BestOfManyPaysForTheChoice"),
    ]) + table("runtime/privacy/audit/audit_step.cc", [
        ("audit-measures-what-it-chose-on", "Split", "{SortedHalf(o.with, 1), SortedHalf(o.without, 1)}",
         "{SortedHalf(o.with, 0), SortedHalf(o.without, 0)}",
         AUDIT + "OneStep.MeasuresOnObservationsThatDidNotChoose"),
        ("audit-surer-than-it-says", "CanaryEpsilon", "(1 - level.confidence) / 2", "(1 - level.confidence) * 20",
         AUDIT + "OneStep.*"),
    ]) + table("runtime/privacy/audit/audit_exact.cc", [
        ("exact-audit-of-shared-outputs", "OneSidedDelta", "q[i] == 0 ? p[i] :", "q[i] == 0 ? 0 :",
         "audit_exact_test:Exact.SupportThatDiffersCostsItsMass"),
    ])


def losses_beyond_a_grid():
    return table("runtime/privacy/accounting/pld_compose.cc", [
        ("largest-loss-is-the-smallest", "ComposeByTransform", "AtItsLargest(terms, range.high)",
         "AtItsLargest(terms, range.low)",
         "accountant_test:Pld.MoreLossesThanAGridHoldsAreBoundedByTheLargest"),
        ("grid-takes-a-gigabyte", "ComposeByTransform", "kMostPoints = 1 << 22", "kMostPoints = 1 << 26",
         "accountant_test:Pld.MoreLossesThanAGridHoldsAreBoundedByTheLargest"),
    ])


def faults():
    return losses_beyond_a_grid() + pld() + accountants() + ledger() + ledger_file() + random() + figures() + audits()
