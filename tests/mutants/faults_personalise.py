"""Faults of a deployment: evaluation."""
from faults import table

EVALUATION = "evaluate_candidate_test:EvaluationTest."
RULE = "evaluation_rule_test:EvaluationRule."


def evaluation():
    return table("runtime/personalise/evaluate_candidate.cc", [
        ("evaluated-without-noise", "EvaluateCandidate",
         "privacy::AddDiscreteGaussian(noise, NoiseInSteps(o.noise_multiplier), sums);", "",
         EVALUATION + "TheNoiseIsWhatIsCharged"),
        ("evaluated-with-half-the-noise", "NoiseInSteps", "noise_multiplier * EvaluationNorm()",
         "noise_multiplier * EvaluationNorm() / 2",
         EVALUATION + "TheNoiseIsWhatIsCharged"),
        ("evaluated-gain-not-clipped", "OnGrid", "std::clamp(ratio, -1.0, 1.0)", "ratio",
         EVALUATION + "ARecordAddsNoMoreThanItsBound"),
        ("evaluated-square-without-a-bound", "EvaluationNorm", "* RecordNorm()", "",
         EVALUATION + "ARecordAddsNoMoreThanItsBound"),
        ("evaluated-by-all-records", "EvaluationRecords",
         "SelectSequences(privacy::RecordPart::kEvaluation, *split, held_out)",
         "held_out", EVALUATION + "RecordsThatTrainDoNotCount"),
        ("evaluation-charged-to-all", "EvaluationCharge", "privacy::RecordPart::kEvaluation",
         "privacy::RecordPart::kAll",
         EVALUATION + "IsPaidForByTheEvaluationRecords"),
        ("evaluated-though-refused", "EvaluateCandidate",
         "WISP_ASSIGN_OR_RETURN(const privacy::ChargeId id, o.ledger->Charge(charge));",
         "const Result<privacy::ChargeId> paid = o.ledger->Charge(charge); const privacy::ChargeId id = paid.ok() ? "
         "*paid : 1;",
         EVALUATION + "IsPaidForByTheEvaluationRecords"),
        ("evaluation-without-slack", "EvaluationCharge", ".num_coordinates = 2", ".num_coordinates = 0",
         EVALUATION + "IsPaidForByTheEvaluationRecords"),
        ("evaluated-with-keys-of-another-record", "Value", "!fresh &&", "",
         EVALUATION + "GainsAreThoseOfTheNewestEvents"),
        ("evaluated-gain-clipped-on-one-side", "OnGrid", "std::clamp(ratio, -1.0, 1.0)", "std::clamp(ratio, 0.0, 1.0)",
         "deployments_test:Deployments.BetterIsWrongNoMoreOftenThanStated"),
        ("evaluated-by-what-it-learned-from", "ChooseTargets", "o.after->IsBefore(times[t])", "true",
         EVALUATION + "OnlyEventsAfterTheMomentEvaluate"),
        ("no-number-evaluates", "OnGrid", "if (!std::isfinite(ratio)) return {};", "",
         EVALUATION + "ARecordAddsNoMoreThanItsBound"),
    ]) + table("runtime/personalise/evaluation_rule.cc", [
        ("runs-taken-for-independent", "Decide", "weights * (squares + z * std::sqrt(square_noise))",
         "squares + z * std::sqrt(square_noise)",
         RULE + "IsWrongNoMoreOftenThanStated"),
        ("records-taken-for-certain", "Decide", "std::sqrt(noise + spread)", "std::sqrt(noise)",
         RULE + "IsWrongNoMoreOftenThanStated"),
        ("noise-taken-for-none", "Decide", "std::sqrt(noise + spread)", "std::sqrt(spread)",
         RULE + "FindsWhatIsThereAsOftenAsItsPowerSays"),
        ("clearly-less-good-candidate-served", "Serve",
         "if (j.gains < before.gains - kClearly * std::hypot(j.gain_noise(), before.gain_noise())) continue;", "",
         RULE + "ServesTheNewestThatWasFoundBetter"),
        ("line-that-was-given-up-evaluates-the-next", "Serve", "line = t + 1;", "",
         RULE + "ServesTheNewestThatWasFoundBetter"),
        ("looks-counted-once", "Z", "/ (2.0 * rule.num_evaluations)", "/ 2.0", RULE + "EveryLookHasItsShareOfTheError"),
    ])


DEPLOYMENT = "deployment_test:DeploymentTest."
MAKE = "make_plan_test:MakePlanTest."


def lifetime():
    return table("runtime/personalise/deployment.cc", [
        ("deployment-planned-as-one-run", "MakeTrainingOptions", "o.num_steps = s.num_steps();",
         "o.num_steps = s.steps_per_run;",
         DEPLOYMENT + "CostsWhatWasAskedForAndNoMoreAtItsEnd"),
        ("deployment-trains-on-those-that-evaluate", "MakeTrainingOptions", "o.privacy.part = s.training_part();", "",
         DEPLOYMENT + "CostsWhatWasAskedForAndNoMoreAtItsEnd"),
        ("probability-of-all-records", "MakeTrainingOptions", "s.num_training_public()", "s.num_records_public",
         DEPLOYMENT + "CostsWhatWasAskedForAndNoMoreAtItsEnd"),
        ("one-evaluation-for-all-of-them", "EvaluationNoise", "CalibrateReleases(goal, s.evaluations,",
         "CalibrateReleases(goal, 1,", DEPLOYMENT + "CostsWhatWasAskedForAndNoMoreAtItsEnd"),
        ("plan-of-a-deployment-after-a-look", "WriteDeployment", "if (!entries.empty())", "if (false)",
         DEPLOYMENT + "AfterAChargeThereIsNoPlanAndNothingOfOne"),
        ("steps-follow-the-calendar", "ShareSteps", "if (s.num_records_at_start == 0 || left.steps == 0) return;",
         "return;", DEPLOYMENT + "RunsTakeMoreStepsWhereMorePeopleAreThere"),
        ("plan-of-other-evaluates-stays", "WriteDeployment", "DropOtherPlans(plans, deployment, run, setup);", "",
         DEPLOYMENT + "APlanIsMadeAnewWithOtherEvaluatesBeforeItsFirstCharge"),
        ("reserved-taken-for-free", "ComputeLeft", "ledger.SpentAfter(reserved, delta)", "ledger.SpentAfter({}, delta)",
         DEPLOYMENT + "WhatIsBesideThePlanIsLeftWhenAllOfItIsUsed"),
        ("training-catches-up-with-its-evaluates", "TrainsUntil",
         "if (std::floor(due + 1e-9) > before) until = newest;",
         "until = newest;", DEPLOYMENT + "TrainsUntilTheNewestEvaluationBecameDue"),
        ("limit-of-the-app-raised", "WriteDeployment", "if (LimitFollowsPlan(there, earlier)) ", "",
         DEPLOYMENT + "ALimitThatIsThereHolds"),
    ]) + table("runtime/personalise/make_plan.cc", [
        ("another-plan-taken-for-the-same", "DescribeDifferences", 'd.Compare("epsilon", there.epsilon, r.epsilon);',
         "",
         MAKE + "AnotherPlanIsRefusedAndEachDifferenceIsNamed"),
        ("plan-replaced-without-a-word", "FindPlan", "if (is_charged || !wanted.replaces)", "if (is_charged)",
         MAKE + "AnotherPlanIsRefusedAndEachDifferenceIsNamed"),
        ("new-ledger-beside-what-was-trained", "FindPlan",
         "WISP_RETURN_IF_ERROR(CheckNothingTrained(ledger.path(), wanted.output));", "",
         MAKE + "BesideWhatRunsTrainedNoPlanBeginsAnew"),
        ("plan-written-over-one-of-meanwhile", "MakePlan",
         "WriteDeployment(ledger, *deployment, wanted.run, newest_row)",
         "WriteDeployment(ledger, *deployment, wanted.run)", MAKE + "TwoCallsAtOnce_WriteOnePlan"),
        ("second-of-two-plans-is-an-error", "MakePlan", "if (now == newest_row) return written;", "return written;",
         MAKE + "TwoCallsAtOnce_WriteOnePlan"),
    ]) + table("runtime/privacy/ledger/ledger_impl.h", [
        ("terms-that-follow-from-an-older-ledger", "CheckNewest", "newest_row == position.seq", "true",
         MAKE + "WhatWasWrittenMeanwhile_IsNotReplaced",
         "plan_change_test:PlanChangeTest.AChangeDoesNotFollowFromWhatWasChargedMeanwhile"),
    ])


NIGHT = "planned_run_test:PlannedRunTest."


def run_planned():
    return table("runtime/personalise/planned_run.cc", [
        ("trained-on-what-evaluates", "Train", "data::EventsUntil(data_->sequences, until_)", "data_->sequences",
         NIGHT + "WhatComesLaterDoesNotTrain"),
        ("evaluated-by-all-times", "MakeEvaluationOptions", ".after = until_,", "",
         NIGHT + "ATrendOfTheTimeItLearnedFromIsNoGain"),
        ("run-reads-other-columns", "MakeRunRecord", "read.source = o.source;", "",
         NIGHT + "FilesOfAnotherDeployment_AreRefused"),
        ("failed-run-leaves-the-base", "OpenFiles", "files_.HasAny() ?", "true ?",
         NIGHT + "AFirstPlannedRunThatCannotReadLeavesNoModel"),
        ("failed-run-serves-nothing", "OpenFiles", "files_.HasAny() ?", "false ?",
         NIGHT + "AFirstPlannedRunThatCannotReadLeavesNoModel"),
        ("served-unevaluated", "Choose", "if (settings().evaluations == 0)", "if (true)",
         NIGHT + "ServesTheBaseUntilACandidateIsFoundBetter"),
        ("evaluated-every-run", "EvaluationIsDue",
         "steps * (s.evaluations - s.evaluations_before) / s.num_steps() > evaluations &&",
         "",
         NIGHT + "ServesTheBaseUntilACandidateIsFoundBetter"),
        ("new-base-evaluated-by-next-to-nothing", "EvaluationIsDue", "&& s.trains_until > 0) return true;",
         ") return true;",
         "rebase_test:RebaseTest.WithoutAFixedDay_ANewBaseIsEvaluatedWhenAEvaluationIsDue"),
        ("verdict-forgotten", "Run", "WISP_RETURN_IF_ERROR(ActOnEvaluations());", "",
         NIGHT + "AVerdictThatWasNotActedUponIsNotLost"),
        ("worse-candidate-served", "ActOnEvaluations", "if (served.newest_is_worse) return Serve(base_);", "",
         NIGHT + "AWorseCandidateIsNotServedAndTrainsOn"),
        ("local-choice-unsaid", "Tuning", "s.evaluates_locally != 0 ? kLocalChoice",
         "s.evaluates_locally > 1 ? kLocalChoice",
         NIGHT + "EvaluatedLocallyItPaysForTrainingAloneAndSaysSo"),
        ("candidate-lost-with-its-checkpoint", "Train", "models_.candidate && !files_.HasCheckpoint()", "false",
         NIGHT + "ACheckpointThatIsGoneCostsTheOptimizerAlone"),
        ("another-deployment-overwritten", "OpenFiles", "WISP_RETURN_IF_ERROR(CheckServed());", "",
         NIGHT + "FilesOfAnotherDeployment_AreRefused"),
        ("a-run-on-another-data-set", "RunPlanned",
         "if (!o.dataset.empty()) WISP_RETURN_IF_ERROR(ledger.CheckDataset(o.dataset));", "",
         NIGHT + "ServesTheBaseUntilACandidateIsFoundBetter"),
        ("two-runs-at-once", "RunPlanned",
         "WISP_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take(PlanFiles(o.output).lock, held));", "(void)held;",
         NIGHT + "FilesOfAnotherDeployment_AreRefused"),
    ]) + table("runtime/personalise/plan_files.cc", [
        ("candidate-of-another-base", "BeganWith", "of_model[of_base.size()].base_model_hash == base.content_hash()",
         "true",
         NIGHT + "FilesOfAnotherDeployment_AreRefused"),
    ])


LINE = "lineage_test:LineageTest."
DAMAGE = "plan_damage_test:*"  # completed by the rest of a name


def line():
    return table("runtime/personalise/lineage.cc", [
        ("evidence-of-a-deleted-model", "ReadEvaluations", "evaluation.line == line", "true",
         LINE + "AModelThatWasDeletedLeavesNoEvidence"),
        ("evidence-of-a-deleted-model-of-earlier-versions", "ReadEvaluations", "seq > line", "true",
         LINE + "EvaluationsThatNameNoLineCountForTheLineOfTheirTime"),
    ]) + table("runtime/privacy/ledger/ledger_rows.cc", [
        ("line-of-the-newest-charge", "ReadFirstCharge", "ORDER BY id LIMIT 1", "ORDER BY id DESC LIMIT 1",
         LINE + "Lineage_ContinuesWithItsCandidate"),
    ]) + table("runtime/personalise/planned_run.cc", [
        ("evaluated-without-its-line", "Choose",
         "WISP_ASSIGN_OR_RETURN(options.line, FindLineage(ledger_, *models_.candidate, base_));", "",
         LINE + "AModelThatWasDeletedLeavesNoEvidence"),
        ("two-lines-of-one-name", "NewRun", "std::any_of(entries.begin(), entries.end(), is_there)", "false",
         LINE + "RunsOfOneNameAreLinesOfTheirOwn"),
        ("worse-model-of-an-ended-line-served", "ActOnEvaluations", "WISP_RETURN_IF_ERROR(ReplaceWorseModel());", "",
         LINE + "EndedLineage_IsNotServedIfItsLastVerdictWasWorse"),
        ("mistyped-output-trained", "RunPlanned", "if (o.anew == PlannedRunOptions::Anew::kRefused)", "if (false)",
         LINE + "BeginsNoOtherModelWhereThatIsRefused"),
    ])


def damage():
    return table("runtime/personalise/heal_plan.cc", [
        ("damaged-checkpoint-ends-a-deployment", "HealPlanModels", "WISP_RETURN_IF_ERROR(files.ForgetCheckpoint());",
         "",
         DAMAGE + "ACheckpointIsLeft*"),
        ("damaged-candidate-ends-a-deployment", "HealPlanModels",
         "WISP_RETURN_IF_ERROR(files.ForgetCandidateAlone());", "",
         DAMAGE + "NothingIsLeftToTrain*"),
        ("checkpoint-outlives-its-start", "HealStart", "WISP_RETURN_IF_ERROR(files.ForgetCheckpoint());", "",
         DAMAGE + "AStartIsLeft*"),
        ("disk-error-taken-for-damage", "IsDamage", "status.code() == StatusCode::kInvalidData", "!status.ok()",
         DAMAGE + "AnErrorOfTheDisk*"),
        ("damaged-weights-served", "CheckServedModel", "Verify::kFull", "Verify::kStructure",
         DAMAGE + "InPlaceOfAServed*"),
        ("another-kind-replaced", "CheckServedModel", "Accept::kAnyFile", "Accept::kRecommender",
         DAMAGE + "AWholeModelOfAnotherKind*"),
        ("somebodys-file-replaced", "HealServed", "!(files.HasAny() || HasModelPrefix(files.served))", "false",
         DAMAGE + "OtherFiles*"),
    ])


REBASE = "rebase_test:RebaseTest."


def rebase():
    return table("runtime/personalise/rebase.cc", [
        ("carried-by-number", "CarriedOver", "old_p.offset + items[item] * n", "old_p.offset + item * n",
         REBASE + "CarriesWhatWasLearnedOverAndServesItOnceItIsFoundBetter"),
        ("carried-unevaluated", "ForgetOld", "return CopyFile(o.to, files.served);",
         "return CopyFile(keep_start ? files.start : o.to, files.served);",
         REBASE + "CarriesWhatWasLearnedOverAndServesItOnceItIsFoundBetter"),
        ("adapter-of-another-shape", "RebaseAdapter", "!why.empty()", "false",
         REBASE + "PutsAnAdapterBesideTheNewBase"),
        ("variances-carried-by-number", "CarriedOver", "const size_t n = CountItemNumbers(old_p);",
         "const size_t n = old_p.role == ParameterRole::kItemVariance ? 0 : CountItemNumbers(old_p);",
         REBASE + "CarriesVariancesOfItemsByTheirKeys"),
        ("rebase-never-ends", "HasBegun", "start.ok() && ContinuesFrom(to, from, *start)", "false",
         REBASE + "EndsWhatAPowerCutLeft"),
        ("rebase-takes-what-came-after", "Rebase", "if (IsDone(files, from, to))", "if (false)",
         REBASE + "DoneAgainItTakesNothingAway"),
        ("rebase-to-an-ancestor-does-nothing", "ContinuesFrom",
         "if (model.content_hash() == from.content_hash() || !BeganWith(model, to)) return false;",
         "if (BeganWith(model, to)) return true;", REBASE + "AnAncestorIsServedAndTrainsOn"),
        ("rebase-forgets-the-old-base", "WriteStart",
         "ModelContents contents = mixture.Contents();",
         "ModelContents contents = mixture.Contents(); std::erase_if(contents.provenance, [&](const auto& e) { return "
         "std::ranges::count(from.provenance(), e) > 0 && std::ranges::count(to.provenance(), e) == 0; });",
         REBASE + "WhatTheOldBaseLearnedFrom_IsNamedInTheResult"),
    ]) + table("runtime/model/provenance.cc", [
        ("mixture-forgets-an-input", "Mixture::Mixture", "pasts.push_back(others[i]->provenance());", "",
         "provenance_test:MixtureTest.Contents_AreOfTheMainModelAndNameAll"),
        ("join-forgets-the-first", "JoinProvenance", "for (const Entries& input : inputs) AddMissing(input, joined);",
         "for (size_t i = 1; i < inputs.size(); ++i) AddMissing(inputs[i], joined);",
         "provenance_test:JoinProvenance.LosesNothing"),
        ("unknown-input-passes-for-known", "JoinProvenance", "inputs.size() > 1 &&", "false &&",
         "provenance_test:JoinProvenance.LosesNothing"),
        ("equal-runs-counted-once", "AddMissing", "of_input > std::count(joined.begin(), joined.end(), input[i])",
         "of_input > 0 && std::count(joined.begin(), joined.end(), input[i]) == 0",
         "provenance_test:JoinProvenance.LosesNothing"),
    ]) + table("runtime/model/model_file.cc", [
        ("adapter-hides-its-bases-past", "ModelFile::Impl::Join",
         "model.provenance = JoinProvenance({with->model.provenance, model.provenance});", "",
         "adapter_file_test:AdapterFile.ProvenanceOfTheBase_IsKeptWhateverTheAdapterSays"),
    ]) + table("runtime/personalise/lineage.cc", [
        ("line-of-the-old-bases-ledger", "FindLineage", "if (line > 0) return line;",
         "return line > 0 ? Result<uint64_t>(line) : FindLineage(ledger, entry.receipt, model.name());",
         REBASE + "WhatTheOldBaseLearnedFrom_IsNamedInTheResult"),
    ]) + table("runtime/personalise/planned_run.cc", [
        ("new-base-waits-for-its-evaluation", "EvaluationIsDue",
         "if (!knows_base && !results.empty() && s.trains_until > 0) return true;", "",
         REBASE + "CarriesWhatWasLearnedOverAndServesItOnceItIsFoundBetter"),
    ])


KEEP = "event_log_keep_test:EventLogKeep."


def log():
    return table("runtime/data/session_table.cc", [
        ("session-goes-with-its-oldest-event", "DeleteSessionsBefore", "HAVING max(time) < ?3",
         "HAVING min(time) < ?3", KEEP + "ASessionThatALaterEventMayJoinStays"),
        ("session-cut-in-two", "DeleteSessionsBefore", "reading = ?2 AND (user, session) IN",
         "reading = ?2 AND time < ?3 OR (user, session) IN", KEEP + "UnitsAreForgottenWhole"),
        ("pruning-forgets-what-was-read", "SessionReading::Load", "memory_.Add(GetText(select.get(), 0),",
         "SessionMemory().Add(GetText(select.get(), 0),",
         "sessions_test:RememberedLog.PruningForgetsSessionsAsTheyWereRead"),
        ("pruning-remembers-nothing", "SessionReading::Save", "sqlite3_step(insert.get()) != SQLITE_DONE", "false",
         "sessions_test:RememberedLog.PruningIsAReading"),
    ]) + table("runtime/data/event_log_keep.cc", [
        ("erased-and-in-the-journal", "EventLog::Erase", "WISP_RETURN_IF_ERROR(Shrink());", "",
         KEEP + "WhoIsErasedLeavesNoByte"),
        ("open-session-forgotten", "EventLog::DeleteSessions", "*o.before - o.units.session_gap * second", "*o.before",
         KEEP + "ASessionThatALaterEventMayJoinStays"),
        ("day-cut-in-two", "EventLog::DeleteEvents", "*o.before - *o.before % (second * kSecondsPerDay)", "*o.before",
         KEEP + "UnitsAreForgottenWhole"),
        ("another-spelling-is-erased", "EventLog::Erase", "CAST(user AS TEXT) = ? COLLATE BINARY",
         "CAST(user AS TEXT) = ?", KEEP + "IntegersAreKeysInEveryCall"),
        ("integers-are-nobody", "EventLog::Users", "wisp_key(user) > ?1", "user > ?1",
         KEEP + "IntegersAreKeysInEveryCall"),
        ("dates-as-their-year", "EventLog::Events", "SELECT wisp_key(item), wisp_time(time, ?3)",
         "SELECT wisp_key(item), time", "date_time_test:DateTime.ALogOfDates_IsKept"),
        ("sessions-counted", "Check", "if (o.newest_per_user > 0)", "if (false)",
         KEEP + "RefusesWhatWouldCoupleRecords"),
    ]) + table("runtime/data/event_log.cc", [
        ("file-never-shrinks", "", "PRAGMA auto_vacuum=INCREMENTAL; ", "", KEEP + "TheFileStaysBounded"),
        ("count-makes-a-table", "EventLog::OpenExisting", "if (!type) return log.Error",
         'WISP_RETURN_IF_ERROR(log.Execute(kSchema, "")); if (!type) return log.Error',
         KEEP + "CountingLeavesFilesAsTheyAre"),
    ]) + table("runtime/data/sqlite_file.h", [
        ("half-of-many-appended", "~SqliteTransaction", 'Run("ROLLBACK")', 'Run("COMMIT")',
         KEEP + "ManyEventsAreAppendedAtOnceOrNone"),
    ])


CHANGE = "plan_change_test:PlanChangeTest."


def change():
    return table("runtime/personalise/plan_change.cc", [
        ("changed-step-taken-for-the-same", "IsSameStep", "a.expected_batch == b.expected_batch &&", "",
         CHANGE + "AnotherStepCostsNoiseAndGoesThroughTheFilter"),
        ("changed-plan-with-too-much-noise", "FindNoise", "s.training_noise = *found;",
         "s.training_noise = 2 * *found;", CHANGE + "AsksForNoMoreNoiseThanTheFilterDoes"),
        ("more-runs-than-steps", "Spread", "left == 0 || (!chosen && s.steps_per_run > left / s.runs)",
         "left == 0", CHANGE + "RefusesWhatCannotBe"),
        ("more-steps-suggested-than-left", "SuggestSteps", "std::llround(passes), 1, left",
         "std::llround(passes), 1, UINT64_MAX",
         CHANGE + "SuggestsNoMoreStepsThanWereLeft"),
        ("evaluations-start-anew", "ChangeDeployment", "s.steps_in_all = 0;", "s.steps_in_all = 1;",
         CHANGE + "AnotherStepCostsNoiseAndGoesThroughTheFilter"),
    ]) + table("runtime/personalise/deployment.cc", [
        ("plan-without-room-for-new-items", "Grown", "uint64_t{kCatalogueGrowth} * a.num_items",
         "uint64_t{a.num_items}",
         DEPLOYMENT + "CoversEachStepOfACatalogueThatGrows"),
        ("no-delta-kept-for-a-change", "", "kDeltaShare = 0.95", "kDeltaShare = 1",
         "plan_change_test:CostOfAChange.*"),
        ("newest-plan-pays-for-all", "PayingPlan", "paying = &*plan;", "if (!paying) paying = &*plan;",
         CHANGE + "OtherTimes_CostNothingAndTrainingContinues"),
    ]) + table("runtime/privacy/ledger/ledger.cc", [
        ("changed-plan-beyond-the-limit", "Ledger::ChangePlan",
         'WISP_RETURN_IF_ERROR(impl_->budget.CheckLimits("the changed plan", impl_->budget.After(charges), part));', "",
         CHANGE + "AsksForNoMoreNoiseThanTheFilterDoes"),
    ]) + table("runtime/personalise/planned_run.cc", [
        ("checkpoint-of-another-plan-gone-on-from", "DiscardOtherPlan", "same ? OkStatus()", "true ? OkStatus()",
         CHANGE + "AnotherStepCostsNoiseAndGoesThroughTheFilter"),
        ("half-written-files-stay", "Run", "files_.RemoveAbandoned();", "",
         NIGHT + "TakesAwayWhatKilledRunsLeftAlsoWhenNothingIsLeftToTrain"),
    ]) + table("runtime/personalise/run_figures.cc", [
        ("figures-of-runs-without-end", "AddRunFigures", "runs.size() > kMostRunFigures", "false",
         NIGHT + "KeepsWhatItsRunsSawForTheDevicesOwnReport"),
    ])


OFFER = "offer_test:OfferTest."
SHRINK = "shrink_rows_test:"


ADDED = "added_items_test:WithANeighbourAndWithout/AddedItems."
UNTRAINED = "untrained_items_test:UntrainedItems."


def added():
    return table("runtime/model/catalogue.cc", [
        ("added-item-offered-at-once", "AddItems",
         "grown.contents.untrained.push_back(static_cast<int32_t>(grown.contents.item_keys.size()) - 1);", "",
         UNTRAINED + "AddedOnes_AreUntrained"),
    ]) + table("runtime/model/lists_of.cc", [
        ("untrained-item-in-lists", "MergeWithheld", "untrained.begin(), untrained.end(),",
         "untrained.begin(), untrained.begin(),",
         ADDED + "ListsAreThoseOfTheBase/0"),
    ]) + table("runtime/model/history_window.h", [
        ("untrained-item-in-histories", "HistoryWindow", "if (untrained.empty()) return end;", "return end;",
         ADDED + "ListsAreThoseOfTheBase/0"),
    ]) + table("runtime/layers/model_view.cc", [
        ("cold-start-asked-of-untrained-items", "ModelView::ScoreColdStart", "num_items() - lists.untrained.size()",
         "num_items()", ADDED + "ListsAreThoseOfTheBase/1"),
    ]) + table("runtime/inference/batch_recommender.cc", [
        ("batch-reads-untrained-items-alone", "BatchRecommender::Recommend",
         "session_.file().untrained().empty() ? OkStatus()", "true ? OkStatus()",
         ADDED + "ListsOfManyAreThoseOfOne/1"),
    ]) + table("runtime/train/run/evaluate.cc", [
        ("untrained-items-evaluated-in-histories", "EvaluateSome", "HistoryWindow(c.history, lists.untrained,",
         "HistoryWindow(c.history, {},", ADDED + "EvaluationIsThatOfTheBase/1"),
        ("counts-forgotten-in-evaluation", "EvaluateSome", "graph.ScoreColdStart(context, lists,",
         "graph.ScoreColdStart(context, {.untrained = lists.untrained},",
         ADDED + "EvaluationAndEvaluationAreOfTheListsThatAreServed/1"),
        ("untrained-items-evaluated-in-lists", "EvaluateModel", "workers, model.lists()",
         "workers, ModelLists{.withheld = model.retired(), .untrained = model.untrained()}",
         ADDED + "EvaluationIsThatOfTheBase/1"),
        ("evaluated-by-another-rule-than-the-model-s", "EvaluateModel", "workers, model.lists()",
         "workers, ModelLists{.withheld = model.lists().withheld, .untrained = model.untrained()}",
         "inference_test:SessionTest.PositionsAreThoseOfTheServedList"),
    ]) + table("runtime/personalise/evaluate_candidate.cc", [
        ("history-of-untrained-items-evaluated-by-them", "Value",
         "if (known.empty()) return Ndcg(list_.FindPosition(target, GetColdStartScores(), history));",
         "if (known.empty()) return 0;", ADDED + "EvaluationAndEvaluationAreOfTheListsThatAreServed/1"),
        ("base-evaluated-with-its-untrained-items", "Gains", "o.lists_of_base", "o.lists_of_candidate",
         ADDED + "EvaluationRanksEachModelAsItIsServed/1"),
        ("candidate-evaluated-by-another-rule-than-the-model-s", "Reader",
         "list_(graph.architecture().num_items, lists)",
         "list_(graph.architecture().num_items, {.withheld = lists.withheld, .untrained = lists.untrained})",
         "evaluate_candidate_test:EvaluationTest.GainsAreThoseOfTheNewestEvents"),
    ]) + table("runtime/personalise/planned_run.cc", [
        ("run-evaluates-by-another-rule-than-the-model-s", "MakeEvaluationOptions", ".lists_of_base = base_.lists(),",
         ".lists_of_base = {.withheld = base_.retired()},",
         "planned_run_test:PlannedRunTest.EvaluatesByTheListsThatTheModelsSay"),
        ("run-with-a-base-of-other-lists", "RunPlanned",
         "WISP_RETURN_IF_ERROR(CheckPlanBase(settings, *base, ledger));", "",
         "planned_run_test:PlannedRunTest.BaseOfOtherLists_IsRefusedBeforeACharge"),
    ]) + table("runtime/train/run/untrained_items.cc", [
        ("item-learned-in-one-step", "HasPassedOnce",
         "static_cast<double>(result.num_steps) * o.expected_batch >= records", "records > 0",
         UNTRAINED + "LessThanOnePass_TeachesNoItem"),
        ("item-learned-though-its-row-stayed", "HasMoved", "return !std::equal(", "return true || !std::equal(",
         UNTRAINED + "RowThatStayed_HasNotLearned"),
    ]) + table("runtime/personalise/related_bases.cc", [
        ("carried-to-an-unrelated-base", "ExplainUnrelated",
         "if (numbers >= kFewestNumbers && likeness >= least) return \"\";", "return \"\";",
         REBASE + "UnrelatedBase_BeginsAnew"),
        ("few-items-compared", "ExplainUnrelated", "numbers < kLeastNumbers", "false",
         REBASE + "FewSharedItems_BeginAnewUnlessTheProvenanceNamesTheOldBase"),
        ("few-items-taken-for-related", "ExplainUnrelated", "Names(to, from) || Names(from, to)", "true",
         REBASE + "FewSharedItems_BeginAnewUnlessTheProvenanceNamesTheOldBase"),
    ]) + table("runtime/personalise/rebase.cc", [
        ("items-learn-by-a-rebase", "WriteStart", "contents.untrained = StillUntrained(from, to, mine, items);",
         "contents.untrained.clear();", REBASE + "CarriesWhatWasLearnedOverAndServesItOnceItIsFoundBetter"),
    ])


def offer():
    return table("runtime/inference/session_setup.cc", [
        ("retired-item-recommended", "", "num_items, file_.lists())", "num_items, ModelLists{})",
         OFFER + "RetiredItemsAreNeverRecommendedAndStandInHistories"),
    ]) + table("runtime/inference/batch_recommender.cc", [
        ("retired-item-recommended-to-many", "",
         "TakeExcluded(options, session_.file().lists(),",
         "TakeExcluded(options, {},", OFFER + "RetiredItemsAreNeverRecommendedAndStandInHistories"),
    ]) + table("runtime/private_sampling/private_recommender.cc", [
        ("retired-item-drawn", "", "session_->file().lists(),\n", "{},\n",
         OFFER + "RetiredItemsAreNeverDrawn"),
    ]) + table("runtime/layers/model_view.cc", [
        ("cold-start-gets-untrained-counts", "ModelView::ScoreColdStart", "lists.bias_is_popularity && bias", "false",
         OFFER + "NoHistory_FollowsTheCounts"),
        ("cold-start-gets-the-last-answer", "ModelView::ScoreColdStart", "mean[i] += weight", "mean[i] = weight",
         OFFER + "NoHistory_GivesItemsThatAreLikelyAfterAnyItem"),
        ("catalogue-asked-whole", "ModelView::ScoreColdStart", "std::min(known, kMostAsked)", "known",
         OFFER + "NoHistory_AsksSomeOfManyItems"),
    ]) + table("runtime/inference/session_cold_start.cc", [
        ("cold-start-told-of-weights-for-free", "Session::FindPopular", "popular_ = std::move(popular);",
         "for (const float s : popular) { if (s - s != 0) return NotFinite(); } popular_ = std::move(popular);",
         "private_recommender_test:PrivateRecommenderTest.NoHistory_SamplesAreChargedForAnyScores"),
    ]) + table("runtime/inference/session_setup.cc", [
        ("cold-start-in-no-plan", "Session::CountMemory", ".cold_start = (a.num_items + 2 * a.width) * sizeof(float)",
         ".cold_start = 0",
         "memory_test:Memory.SessionHoldsWhatIsPlanned"),
    ]) + table("runtime/train/run/shrink_rows.cc", [
        ("row-overshoots-its-start", "ShrinkRow", "std::max(0.0, 1 - noise / moved)", "1 - noise / moved",
         SHRINK + "ShrinkRows.KeepsOfARowWhatIsBeyondNoise"),
        ("rows-shrunk-as-one-number", "ShrinkRows", "p.cols * variance_of_noise", "variance_of_noise",
         SHRINK + "ShrinkRows.KeepsOfARowWhatIsBeyondNoise"),
    ]) + table("runtime/train/run/job.cc", [
        ("paused-run-is-not-shrunk", "TakeWeights", "if (job_.shrink_rows)",
         "if (job_.shrink_rows && !result_.paused)",
         SHRINK + "ShrunkRun.PausesAndResumesFromWhatWasLearned"),
    ])


EMBED = "c_embed_test:"


def embed():
    return table("ports/c/wisp.cc", [
        ("opened-above-its-ceiling", "Finish", "choice.max_bytes > 0 && bytes > choice.max_bytes", "false",
         EMBED + "CEmbedTest.HoldsOpeningToACeiling"),
    ]) + table("kernels/host_memory.cc", [
        ("app-without-memory", "FromApp", "if (memory == nullptr) throw std::bad_alloc();", "",
         EMBED + "CEmbedTest.AnAllocatorWithoutMemoryIsAnErrorWheneverItEnds"),
        ("memory-not-given-back", "Release", "app.release(app.data, memory, bytes);", "(void)app; (void)bytes;",
         EMBED + "CEmbedTest.TakesLargeBuffersFromTheApp"),
    ]) + table("runtime/core/file.cc", [
        ("asset-beyond-its-file", "MappedFile::Map", "offset > whole || length > whole - offset",
         "offset + length > whole",
         EMBED + "CEmbedTest.OpensModelsInTheMiddleOfAFile"),
        ("asset-from-the-start-of-its-page", "MappedFile::Map", "skipped_ = static_cast<size_t>(skipped);", "",
         EMBED + "CEmbedTest.OpensModelsInTheMiddleOfAFile"),
    ]) + table("runtime/model/model_file.cc", [
        ("asset-not-on-its-alignment", "ModelFile::OpenDescriptor", "% ArenaPlan::kAlignment != 0", "% 1 != 0",
         EMBED + "CEmbedTest.OpensModelsInTheMiddleOfAFile"),
    ]) + table("runtime/personalise/planned_run.cc", [
        ("run-takes-its-ledger-away", "RunPlanned",
         "WISP_RETURN_IF_ERROR(PlanFiles(o.output).CheckDistinct(others));", "",
         "c_deployment_test:CDeploymentTest.NoFileBesideTheOutputIsTheLedgerTheLogOrTheBase"),
        ("run-hides-what-it-trained", "WithTraining", "if (result_.steps == 0) return status;", "return status;",
         "c_deployment_test:CDeploymentTest.APlannedRunThatFailsBehindItsTrainingSaysWhatStays"),
        ("run-above-its-ceiling", "CheckMemory", "if (bytes <= o_.max_bytes) return OkStatus();",
         "return OkStatus();",
         EMBED + "CPlannedRunTest.ACeilingRefusesAPlannedRunBeforeAnythingIsCharged"),
    ])


def faults():
    return (evaluation() + lifetime() + run_planned() + line() + damage() + rebase() + log() + change() + added() +
            offer() + embed())
