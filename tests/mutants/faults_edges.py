"""Faults at the edges: formats and rows, runs that go on or end early, files and their locks, weights that are read,
what a caller asks for
and is told."""
from faults import table

INTERRUPTED = "interrupted_run_test:InterruptedRun."
C_RESUME = "c_resume_test:CResume."
C_PERSONALISE = "c_personalise_test:CPersonalise."
C_CLASSIFIER = "c_classifier_train_test:CClassifierTrain."
C_INTERFACE = "c_interface_test:CInterface."
HALVES = "c_text_test:CText.Float16Cache"
MODEL_WRITE = "model_write_test:ModelWrite."


def rows_of_others():
    readers, csv, labelled = "readers_test:", "readers_test:Csv.", "labelled_test:Labelled."
    return table("runtime/data/sequences.cc", [
        ("bad-row-ends-a-private-run", "SequenceBuilder::TakeRow", "!private_run_ || ", "true || ",
         readers + "AllTextReaders.PrivateRun_LeavesOutBadRowsEachForItself",
         "sqlite_reader_test:Sqlite.PrivateRun_LeavesOutBadRowsEachForItself",
         C_PERSONALISE + "BadRows_AreLeftOutAndCounted"),
        ("keys-that-are-none-are-another-form", "SequenceBuilder::CheckForm", "bad_keys_ == 0 && ", "",
         readers + "ReadText.PrivateRun_ALogInAnotherFormatIsAnError"),
        ("few-rows-are-another-form", "SequenceBuilder::CheckForm", "in_another_form >= kFewestInAnotherForm", "true",
         readers + "ReadText.PrivateRun_ALogInAnotherFormatIsAnError"),
        ("rows-of-one-user-are-another-form", "SequenceBuilder::CheckForm", "unread > read",
         "bad_rows_ > events_.size()", readers + "ReadText.PrivateRun_ALogWithMostUsersInAnotherFormIsAnError"),
        ("users-with-a-good-row-are-unread", "SequenceBuilder::CheckForm",
         "users_.Find(key) == KeyTable::kNone", "true",
         readers + "ReadText.PrivateRun_ALogWithMostUsersInAnotherFormIsAnError"),
        ("few-users-are-another-form", "SequenceBuilder::CheckForm", "unread + read >= kFewestInAnotherForm", "true",
         readers + "ReadText.PrivateRun_ALogWithMostUsersInAnotherFormIsAnError"),
        ("rows-without-an-item-end-a-session", "SequenceBuilder::AddWithoutItem",
         "private_run_ && events_.size() < kMaxEvents", "false",
         "sqlite_reader_test:Sqlite.PrivateRun_RowsWithoutAnItem_TakePartWhereSessionsAreCut"),
        ("bad-times-are-taken", "SequenceBuilder::DropTimesOutside", "std::erase_if(events_, outside);", "",
         "units_test:Units.PrivateRun_SkipsInvalidTimes"),
        ("a-log-without-a-time-in-range-is-charged", "SequenceBuilder::SplitIntoUnits",
         "WISP_RETURN_IF_ERROR(CheckForm());  // possibly no event", "// possibly no event",
         "units_test:Units.PrivateRun_ALogWithoutATimeThatIsOneIsRefused",
         readers + "ReadText.PrivateRun_ALogInAnotherFormatIsAnError"),
    ]) + table("runtime/data/session_table.cc", [
        ("an-old-log-need-not-be-written", "SessionReading::Begin",
         """!Run(database_, "REPLACE INTO wisp_readings(id) VALUES(0)") ||""", "",
         "sessions_test:RememberedLog.ALogThatCannotBeWritten_isRefusedWithAndWithoutNews"),
        ("a-view-of-a-log-is-run", "SelectEvents", """type != "table" || """, "",
         "sessions_test:RememberedLog.WhatIsRememberedOfAView_isForgotten"),
        ("tables-of-others-are-ours", "ReadTables", "return Tables::kOthers;\n  for", "return Tables::kOurs;\n  for",
         "sessions_test:RememberedLog.TablesOfThoseNamesThatAreOthers_areLeftAlone"),
        ("sessions-outlive-their-table", "ForgetWithoutEvents", "Forget(database, reading.id) &&", "true ||",
         "sessions_test:RememberedLog.ATableUnderAnotherName_isAnotherLog"),
    ]) + table("runtime/data/sqlite_reader.cc", [
        ("what-was-tried-stays-in-the-log", "ReadSqlite", "reading.has_changed() && ", "",
         "sessions_test:RememberedLog.APlannedRunWithoutNews_leavesTheLogAsItWas"),
    ]) + table("runtime/data/lines.h", [
        ("most-texts-in-another-form-pass", "HasAnotherForm", "bad > read", "false",
         labelled + "AFileWithMostTextsInAnotherFormIsRefused",
         "texts_test:Texts.AFileWithMostTextsInAnotherFormIsRefused"),
        ("few-texts-are-another-form", "HasAnotherForm", "bad >= kMinTextsOfAForm", "true",
         "texts_test:Texts.AFileWithMostTextsInAnotherFormIsRefused"),
        ("one-mark-is-dropped", "WithoutMarks", "while (", "if (",
         "texts_test:Texts.MarksOfByteOrder_areLeftOutWhereverTheyStand"),
    ]) + table("runtime/data/delimited.cc", [
        ("a-quote-takes-in-other-rows", "ReadTable", "builder.private_run()", "false",
         csv + "PrivateRun_AQuoteTakesInNobodyElse"),
    ]) + table("runtime/data/readers.cc", [
        ("a-row-decides-the-format", "FillFromFile", "format == Format::kAuto && options.private_run", "false",
         readers + "ReadSequences.PrivateRun_GoesByTheNameAlone"),
    ]) + table("runtime/data/labelled.cc", [
        ("a-quote-takes-in-other-texts", "ParseLabelled", "ReadCsv(name, text, options.drop_bad, collector)",
         "ReadCsv(name, text, false, collector)",
         labelled + "MalformedRecordsAreDroppedOneByOneAndFaultsOfTheFormatRefused"),
        ("a-text-decides-the-format", "ChooseFormat", "if (!options.drop_bad)", "if (true)",
         labelled + "APrivateRunGoesByTheNameAlone"),
        ("a-label-ends-a-private-run", "EncodeWith", "if (!options.drop_bad) return fault;", "return fault;",
         labelled + "MalformedRecordsAreDroppedOneByOneAndFaultsOfTheFormatRefused"),
    ])


def databases_of_others():
    reader, log = "sqlite_reader_test:Sqlite.", "sqlite_reader_test:EventLog."
    door, keep = "sqlite_open_test:SqliteOpen.", "event_log_keep_test:EventLogKeep."
    return table("runtime/sqlite/open.cc", [
        ("journals-may-name-others", "NamesSuperJournal", "tail == kJournalMagic", "false",
         door + "AJournalThatNamesASuperJournal_IsRefusedAndDeletesNothing"),
        ("links-beside-a-database-are-written-through", "FaultBeside", "info.st_nlink > 1", "false",
         door + "PipesAndLinksBesideAFile_AreRefusedAtOnce"),
        ("files-of-others-beside-a-database-are-taken", "FaultBeside", "info.st_uid != database.st_uid", "false",
         door + "FilesOfAnotherUser_AreRefused"),
        ("an-index-is-written-through", "FindFault", 'FaultBeside(path + "-shm")', '""',
         door + "AnIndexThatIsAnotherFile_IsNotWritten"),
        ("temporary-files-are-asked-for", "Harden", "temp_store = MEMORY", "temp_store = FILE",
         door + "NothingGoesToATemporaryFolder"),
        ("journals-of-another-state-are-played-back", "CheckJournal", "*now == *before ||", "true ||",
         "event_log_keep_test:EventLogKeep.AJournalOfAnotherState_IsNoticed"),
        ("no-locks-are-waited-for", "Lock", "errno == ENOLCK", "false",
         door + "AFileSystemWithoutLocks_IsNamedAtOnce"),
    ]) + table("ports/c/status_c.h", [
        ("any-number-is-a-lists", "CheckList", "num <= INT32_MAX", "true",
         C_INTERFACE + "ANumberThatNoListHas_IsRefused"),
        ("messages-of-many-lines", "Guarded", "OneLine(status.message())", "Printable(status.message())",
         C_INTERFACE + "Messages_AreOneLine"),
    ]) + table("runtime/privacy/ledger/ledger_anchor.cc", [
        ("anybodys-file-becomes-an-anchor", "Write", "!IsOurs(file)", "false",
         "ledger_anchor_test:LedgerAnchorTest.AFileOfOthersWithTheTemporaryName_Stays"),
    ]) + table("runtime/privacy/ledger/ledger_file.cc", [
        ("anybody-holds-charges-up", "Turn::Turn", "(opened.st_mode & (S_IRWXG | S_IRWXO)) != 0", "false",
         "ledger_file_test:LedgerTest.WhoCanOnlyReadTheFolderHoldsNoChargeUp"),
    ]) + table("runtime/data/sqlite_reader.cc", [
        ("views-are-read", "CheckIsTable", 'if (*type == "table") return OkStatus();', "return OkStatus();",
         reader + "ViewsAndVirtualTables_AreRefused"),
        ("blobs-are-keys", "AddRow", "IsKeyType(type)", "type != SQLITE_NULL",
         reader + "BadTables_AreNamed"),
    ]) + table("runtime/data/sqlite_file.cc", [
        ("triggers-run", "RestrictDatabase", "SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr",
         "SQLITE_DBCONFIG_ENABLE_TRIGGER, 1, nullptr",
         log + "ProgramsInTheFile_DoNotRunOnAppending"),
        ("a-table-without-rowids-is-refused", "PrepareInOrder",
         "sqlite3_errcode(database) != SQLITE_ERROR", "true", "date_time_test:DateTime.ALogWithoutRowids_IsKept"),
        ("work-of-reading-without-the-size", "WorkLimit::AllowForSize", "left_ += times * kOperationsPerByte",
         "left_ += 0", reader + "ManySmallRows_AreRead"),
    ]) + table("runtime/sqlite/open.cc", [
        ("journals-may-delete-files", "OpenChecked", "(flags & (kDatabase | kJournal | kWal)) == 0", "false",
         door + "ASuperJournal_IsNeitherOpenedNorMade")
    ]) + table("runtime/data/event_log_keep.cc", [
        ("said-to-be-gone-while-somebody-reads", "EventLog::EmptyWriteAheadLog",
         "sqlite3_column_int64(checkpoint.get(), 0) == 0", "true",
         keep + "WhatAReaderKeepsOnTheDisk_IsNotSaidToBeGone"),
        ("a-damaged-copy-replaces-a-log", "EventLog::Restore", '*faults != std::vector<std::string>{"ok"}', "false",
         keep + "ACopyHoldsWhatTheLogHeld"),
        ("history-upside-down", "EventLog::Events", "a.time < b.time", "a.time > b.time",
         log + "MoreColumnsThanItsOwn_AreLeftToTheirDefaults"),
        ("a-restore-loses-tables", "EventLog::Restore", "!has(*in_copy, table) && !has(*ours, table)", "false",
         keep + "ATableThatTheCopyLacks_IsNotLost"),
        ("a-restore-loses-tables-of-our-names", "EventLog::Restore", "!has(*ours, table)",
         'table.rfind("wisp_", 0) != 0', keep + "ATableThatTheCopyLacks_IsNotLost"),
    ]) + table("runtime/data/event_log.cc", [
        ("never-overwritten-later", "EventLog::Open", 'sqlite::ReadFileSize(path + "-wal") > 0', "false",
         keep + "WhatAReaderKeepsOnTheDisk_IsNotSaidToBeGone"),
        ("log-appends-to-anything", "EventLog::CheckTable", 'if (*type != "table") {', "if (false) {",
         log + "OtherThanPlainTables_AreRefused"),
        ("log-computes-columns", "EventLog::CheckTable", "if (!computed->empty()) {", "if (false) {",
         log + "OtherThanPlainTables_AreRefused"),
        ("log-of-another-kind", "EventLog::Connect", "sqlite3_column_int64(id.get(), 0) != 0", "false",
         "sqlite_reader_test:EventLog.ALedger_IsNoLog"),
        ("log-takes-any-key", "EventLog::Insert", "if (!fault.empty()) return", "if (false) return",
         log + "UnreadableEvents_AreNotAppended"),
        ("history-from-the-first-event", "EventLog::History", "events.size() - std::min(limit, events.size())",
         "limit - limit", "date_time_test:DateTime.ALogWithoutRowids_IsKept"),
    ])


def resumed_runs():
    return table("runtime/train/budget.cc", [
        ("any-refusal-ends-a-run-as-a-model", "Budget::LimitRefuses", "return fit.ok() && *fit < steps;",
         "return true;", INTERRUPTED + "ARefusalThatIsNotTheLimitsIsAnError"),
    ]) + table("runtime/train/run/job.cc", [
        ("a-charge-is-tried-twice", "Step", "&& !was_paid()", "",
         C_RESUME + "AnAnchorThatFailsOnce_EndsTheRunAndIsPaidOnce"),
        ("histogram-of-another-noise", "CheckHistogram",
         "job_.histogram_noise > 0 && e.mechanism == overheads_.front()", "true",
         INTERRUPTED + "HistogramOfAnotherNoiseIsRefused"),
        ("memory-that-ends-says-nothing", "TrainOrReport",
         "return IsPrivateJob(job_) ? AddSavedState(status, saved_, trainer_->num_charged()) : status;", "throw;",
         "out_of_memory_test:OutOfMemory.SaysWhatWasChargedAndWhereItResumes"),
        ("cancelled-and-charged-all-the-same", "CheckNotCancelled", "!job_.cancelled || !job_.cancelled()", "true",
         INTERRUPTED + "CancelledBeforeItsFirstStepItChargesNothing"),
        ("what-was-spent-is-stated-once", "Show", "trainer_->num_charged() != shown_charged_ || ", "",
         "job_test:JobTest.ProgressNamesWhatIsChargedSoFar"),
    ]) + table("runtime/model/checkpoint.cc", [
        ("a-head-alone-is-no-checkpoint", "MayBeHeld", "metadata.flat_size - p.offset == count", "false",
         "interrupted.py"),
    ]) + table("ports/c/wisp_generate.cc", [
        ("a-text-is-paid-for-and-lost", "Generate",
         'if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_generated"));', "",
         "c_text_test:CText.GeneratesPrivatelyAndChargesTheLedger"),
    ])


def figures_of_runs():
    alone = "ledger_statement_test:LedgerStatementTest.OneRunHasItsOwnChargesAndTheFigureThatItsLengthAllows"
    planned = "job_test:JobTest.PlannedRunsShareTheGoal"
    return table("runtime/privacy/ledger_statement.cc", [
        ("a-chosen-length-states-pld", "StateRun", "length == RunLength::kFixed", "true", alone,
         INTERRUPTED + "StepsChargedAndNotTakenAreChargedAgain"),
        ("a-runs-statement-has-those-of-others", "MakeRunStatement",
         "std::erase_if(state.entries, [&](const LedgerEntry& e) { return e.run != run; });", "", alone),
        ("a-runs-statement-has-the-ledgers-figure", "MakeRunStatement", "s.epsilon = alone.epsilon;", "", alone),
    ]) + table("runtime/train/checkpoint_parts.cc", [
        ("a-late-declaration-is-lost", "CheckTuning", "then == now", "true",
         INTERRUPTED + "ADeclarationThatComesLateIsRefused"),
    ]) + table("runtime/train/budget.cc", [
        ("a-run-beyond-the-plan", "Budget::CheckPlan", "if (covered) return OkStatus();", "return OkStatus();",
         planned),
        ("a-plan-after-a-look", "Budget::CheckPlan", "if (!entries.empty())", "if (false)", planned,
         "job_test:JobTest.PlannedRunsOnALedgerThatWasLookedAtAreRefused"),
        ("planned-runs-with-the-noise-of-one", "CalibrateTo", "return Repeated(of_run, terms.planned_runs);",
         "return of_run;",
         planned),
    ]) + table("tools/wisp/recipe/recipe.cc", [
        ("a-minimum-decides-over-items", "CheckPublicCatalogue", "if (count <= 1) continue;", "continue;",
         "declarations.py"),
    ])


def files():
    databases = MODEL_WRITE + "DatabasesAndWhatLiesBesideThemStay"
    file_lock = "file_lock_test:FileLock."
    return table("runtime/core/file.cc", [
        ("linked-file-for-everybody", "MakePrivate",
         "const int linked = OpenRetrying(path.c_str(), O_WRONLY | O_CREAT, 0600);",
         "const int linked = OpenRetrying(path.c_str(), O_WRONLY | O_CREAT, 0666);",
         MODEL_WRITE + "AFileBehindALinkIsTheOwnersAloneToo"),
        ("files-for-everybody", "FileReplacement::Begin", "access == FileAccess::kOwner ? 0600 : 0666", "0666",
         MODEL_WRITE + "FilesAreTheOwnersAlone"),
        ("databases-are-replaced", "FileReplacement::Begin", "if (HoldsDatabase(path))", "if (false)", databases),
        ("databases-are-removed", "RemoveFile", "if (HoldsDatabase(path))", "if (false)", databases),
        ("checkpoint-where-sqlite-keeps-charges", "CheckDistinct",
         "identity != FindIdentity(database + std::string(end))", "true",
         C_PERSONALISE + "FilesOfSqlite_AreRefusedAsOutputs"),
        ("what-lies-beside-a-database-is-replaced", "HoldsDatabase", "path.ends_with(end) &&",
         "path.empty() && path.ends_with(end) &&", databases),
        ("files-of-others-are-removed", "IsTemporary",
         "TemporaryName(path, process, number) == path + \".tmp-\" + std::string(numbers)", "true",
         MODEL_WRITE + "FilesOfOthersWithSimilarNamesStay"),
        ("abandoned-files-stay", "FileReplacement::Begin", "RemoveAbandoned(path);", "",
         MODEL_WRITE + "FilesOfOthersWithSimilarNamesStay"),
        ("files-of-living-writers-go", "RemoveIfAbandoned", "if (flock(fd, LOCK_EX | LOCK_NB) == 0)", "",
         MODEL_WRITE + "TemporaryFileOfALivingWriterStays"),
        ("a-ledger-is-taken-for-a-temporary-file", "RemoveIfAbandoned", "if (MayBeDatabase(path)) return;", "",
         databases),
    ]) + table("runtime/core/file_lock.cc", [
        ("two-hold-a-lock-whose-file-went", "FileLock::Take", "if (lock.IsThere()) return lock;", "return lock;",
         file_lock + "TheFileThatGoesIsNobodysLock"),
        ("a-child-takes-the-file-of-a-lock-away", "FileLock::~FileLock", "!origin_.IsForked() && ", "",
         file_lock + "LeavesNoFile"),
        ("a-lock-takes-the-file-of-others-away", "FileLock::~FileLock", "IsThere() && ", "",
         file_lock + "LeavesNoFile"),
        ("a-lock-takes-away-what-has-something-in-it", "FileLock::~FileLock", " && IsEmpty(fd_)", "",
         file_lock + "LeavesNoFile"),
    ]) + table("runtime/personalise/forecast.cc", [
        ("what-measured-stays-after-a-kill", "Make", "RemoveAbandoned(ledger_path);", "",
         "forecast_test:Forecast.MeasuresWithoutALog"),
        ("folders-without-a-lock-are-ours", "RemoveAbandoned", " && lstat(LockIn(path).c_str(), &info) == 0", "",
         "forecast_test:Forecast.MeasuresWithoutALog"),
    ]) + table("runtime/privacy/ledger/ledger_file.cc", [
        ("opening-drops-the-locks-of-a-writer", "OpenFile", "if (!there) {", "{",
         "ledger_file_test:LedgerTest.OpeningALedgerKeepsTheLocksOfAWriterInTheSameProcess"),
    ]) + table("runtime/privacy/ledger/ledger_database.cc", [
        ("a-rollback-makes-a-sentence", "Transaction::~Transaction", "database_->Rollback();",
         '(void)database_->Execute("ROLLBACK");',
         "allocation_test:Allocation.ARollbackThatFailsNeedsNoMemory"),
    ])


def weights_and_scores():
    damaged, no_number = C_INTERFACE + "DamagedRow_IsFoundOnOpening", C_INTERFACE + "NonFiniteScore_IsAnError"
    said = "inference_test:TopK.ScoresThatAreNotFiniteAreSaid"
    return table("runtime/model/model_file.cc", [
        ("weights-unread-on-opening", "ModelFile::Open",
         "if (verify == Verify::kFull) WISP_RETURN_IF_ERROR(impl->CheckWeights());", "", damaged),
        ("weights-of-an-adapter-unread", "ModelFile::OpenWithAdapter",
         "if (verify == Verify::kFull) WISP_RETURN_IF_ERROR(impl->CheckWeights());", "",
         "adapter_file_test:AdapterFile.Damage_IsFoundInBothFiles"),
        ("weights-of-a-base-unread", "ModelFile::Impl::CheckWeights",
         "if (base) WISP_RETURN_IF_ERROR(base->CheckWeights());", "",
         "adapter_file_test:AdapterFile.Damage_IsFoundInBothFiles"),
        ("adapter-beside-any-base", "ModelFile::Impl::Join", "model.root->base_hash() != with->view.hash", "false",
         "adapter_file_test:AdapterFile.OtherBase_IsRefused"),
        ("adapter-run-without-its-base", "CheckAccepted", "is_adapter && accept != Accept::kAdapter", "false",
         "adapter_file_test:AdapterFile.IsNoModel"),
        ("checksums-unread", "ModelFile::Impl::CheckWeights",
         "WISP_RETURN_IF_ERROR(container::CheckArrays(view, model.arrays, arrays));", "",
         "model_corruption_test:*EveryDamagedByteIsRefusedOrChangesOneWeightAndIsFound*"),
        ("scales-that-are-no-numbers", "IsFinite", "kernels::HasFiniteNumbers(tensor.panels, p.rows, p.cols)", "true",
         "block_metadata_test:BlockMetadata.ScalesThatAreNotFiniteAreFoundByFullVerificationOnly",
         "block_metadata_test:BlockMetadata.FloatsInPanelsThatAreNotFiniteAreFoundByFullVerificationOnly"),
        ("squares-of-panels", "MayBePanels", "a.re_attention == ReAttention::kOn", "false",
         "quantised_test:Quantised.OtherMatrices_AreRefusedOrStayFloat"),
        ("weights-that-are-no-numbers", "IsFinite", "metadata::AllFinite({tensor.floats, p.size()})", "true",
         "model_metadata_test:ModelMetadata.NotFiniteWeightsAreFoundByFullVerificationOnly"),
    ]) + table("kernels/reference/pack_panels.cc", [
        ("scales-beyond-halves", "PackBlock", "if (!IsFinite(scale)) return false;", "",
         "panels_test:Panels.ScalesBeyondFloat16_AreRefused"),
        ("weights-rounded-down", "PackBlock", "std::nearbyint(w[c] / step)", "std::floor(w[c] / step)",
         "panels_test:Panels.Weights_AreTheNearestAndConvertBack"),
    ]) + table("kernels/simd/gemm.cc", [
        ("panels-begin-at-their-first-row", "MultiplyPanels", "if (begin.n > 0) MultiplyPanelPart(begin);", "",
         "panels_test:Panels.FloatsAreMultipliedToTheBitAsIfTheyHadBeenPacked"),
        ("parts-of-a-panel-are-one", "MultiplyStrip", "block.first * kFloatPanelRows + part * kPanelWidth",
         "block.first * kFloatPanelRows", "panels_test:Panels.FloatsAreMultipliedToTheBitAsIfTheyHadBeenPacked"),
        ("strips-begin-within-a-panel", "MultiplyBlock", "IsDivided(p) ? kSubPanels : 1", "1",
         "panels_test:Panels.FloatsAreMultipliedToTheBitAsIfTheyHadBeenPacked"),
    ]) + table("kernels/simd/embedding.cc", [
        ("rows-of-panels-are-rounded-twice", "EmbedPanels",
         "a.table.bits != PanelBits::kThirtyTwo || a.half_positions_TD != nullptr", "true",
         "panels_test:Panels.EmbeddingEqualsItsFormulaToTheBit",
         "quantised_test:Quantised.PanelsOfFloatsGiveTheBitsOfTheFloatsAndAreNotCopied"),
    ]) + table("kernels/int8/quantise.cc", [
        ("offset-not-taken-back", "QuantiseBlocks", "row.start[block] = -IntegerOffset(weights) * sum;",
         "row.start[block] = 0;",
         "block_kernels_test:BlockKernels.EveryKernelEqualsPlainLoops"),
        ("blocks-of-no-numbers-are-zeros", "QuantiseBlocks", "std::numeric_limits<float>::quiet_NaN()", "0.0f",
         "block_kernels_test:BlockKernels.NonFiniteNumbers_GiveNansOnlyInTheirRow"),
    ]) + table("kernels/int8/blocks.cc", [
        ("later-columns-replace", "StoreSums", "a.store == kernels::Store::kAdd || !columns.is_first",
         "a.store == kernels::Store::kAdd",
         "block_kernels_test:BlockKernels.EveryKernelEqualsPlainLoops"),
    ]) + table("runtime/layers/linear.cc", [
        ("bias-of-the-first-rows", "Linear::Multiply", "bias == nullptr ? nullptr : bias + first", "bias",
         "quantised_test:Quantised.SeveralThreadsGiveTheBitsOfOne"),
    ]) + table("runtime/inference/session.cc", [
        ("no-numbers-recommended", "Session::Recommend", "if (!chosen.all_finite) return NotFinite();", "", no_number),
    ]) + table("runtime/inference/session_setup.cc", [
        ("eight-bits-of-unread-weights", "Session::Open", "options.backend == Backend::kInt8 ? Verify::kFull : verify",
         "verify", damaged),
    ]) + table("runtime/core/served_list.cc", [
        ("position-in-a-list-that-is-not-served", "ServedList::FindPosition",
         "if (!chosen.all_finite) return std::nullopt;", "", "inference_test:Evaluate.HiddenItems_CountNothing"),
        ("evaluated-with-the-history", "ServedList::FindPosition", "Choose(scores, history,", "Choose(scores, {},",
         "inference_test:SessionTest.PositionsAreThoseOfTheServedList"),
        ("evaluated-with-lists-of-all-items", "ServedList::FindPosition", "std::min(options.count, scores.size())",
         "scores.size()", "inference_test:SessionTest.PositionsAreThoseOfTheServedList"),
    ]) + table("runtime/inference/batch_recommender.cc", [
        ("no-numbers-in-a-batch", "BatchRecommender::RecommendSome",
         "if (!share.tops[r].all_finite()) all_finite_ = false;", "", no_number),
    ]) + table("runtime/private_sampling/private_recommender.cc", [
        ("no-numbers-drawn-from", "PrivateRecommender::Recommend", "return session_->NotFinite();", "{}",
         C_INTERFACE + "OverflowingScores_AreAnError"),
    ]) + table("runtime/core/served_list.h", [
        ("equal-scores-by-the-larger-id", "Better", "a.item < b.item", "a.item > b.item",
         "inference_test:Evaluate.HiddenItems_CountNothing"),
        ("history-offered-again", "TakeSeen", "for (const int32_t id : history) take(id);", "",
         "inference_test:Evaluate.HiddenItems_CountNothing"),
        ("retired-items-offered", "TakeExcluded", "for (const int32_t id : model.withheld) take(id);", "",
         "inference_test:SessionTest.PositionsAreThoseOfTheServedList"),
        ("no-numbers-unsaid", "Offer", "all_finite_ = false;", "", no_number, said),
        ("minus-infinity-passed-over", "Bar", "return std::numeric_limits<float>::quiet_NaN();",
         "return -std::numeric_limits<float>::infinity();", said),
    ])


def several_threads():
    recommenders, classifiers = "parts_test:Parts.EverySwitchOfARecommender*", "parts_test:Parts.Classifiers*"
    team = "team_test:Team."
    return table("runtime/layers/attention.cc", [
        ("keys-behind-a-part-unread", "Attention::Mix", "(mask_ == kernels::AttentionMask::kFull ? context.after : 0)",
         "0", classifiers),
    ]) + table("runtime/layers/embedding.cc", [
        ("positions-of-a-part-counted-from-its-end", "Embedding::LookUpEach", "past + rows + context.after",
         "past + rows", recommenders),
    ]) + table("runtime/layers/stack.cc", [
        ("bias-by-distance-from-the-end-of-a-part", "ComputeCost", "if (s.slope > 0 && !cost.causal) return {};", "",
         recommenders),
    ]) + table("runtime/layers/parts.cc", [
        ("a-part-works-in-the-buffers-of-another", "RowParts::GetPart", "context.helpers->buffers[index - 1]",
         "context.helpers->buffers[0]",
         "parts_test:SeveralThreads.GiveTheSameScores"),
    ]) + table("runtime/core/team.cc", [
        ("a-run-that-waits-for-nobody", "Team::RunAll", "WaitForOthers();", "", team + "EachTaskIsDoneOnceAndSeen"),
        ("idle-helpers-that-never-sleep", "Team::Help", "Sleep();", "continue;", team + "IdleOneUsesNoProcessor"),
    ])


def structs_and_enums():
    read = C_INTERFACE + "OptionStructs_AreReadAsFarAsTheyGo"
    filled = C_INTERFACE + "ResultStructs_AreFilledAsFarAsTheyGo"
    return table("ports/c/status_c.h", [
        ("sizes-within-a-field", "CheckSize", "&& size % alignof(size_t) == 0", "", read, filled),
        ("options-read-beyond-their-size", "CopyOptions", "size < known ? size : known", "known", read),
        ("later-options-passed-over", "CopyOptions", "if (static_cast<const unsigned char*>(given)[i] != 0)",
         "if (false)",
         C_INTERFACE + "OptionsThatAreNotKnown_AreRefusedUnlessZero"),
        ("results-filled-beyond-their-size", "FillResult", "size < sizeof(Filled) ? size : sizeof(Filled)",
         "sizeof(Filled)", filled,
         C_PERSONALISE + "Result_IsFilledAsFarAsItGoesAndNeverBeyond"),
    ]) + table("ports/c/wisp.cc", [
        ("an-unknown-verification-is-one", "ParseChoice", "verify < WISP_VERIFY_DEFAULT || verify > WISP_VERIFY_NEVER",
         "false",
         C_INTERFACE + "Enums_OutOfRangeAreRefused"),
        ("a-half-cache-of-2-is-none", "ParseChoice", "o.float16_cache != 0 && o.float16_cache != 1", "false",
         C_INTERFACE + "HalfCache_IsSmallerAndNearlyTheSame", HALVES),
        ("a-half-cache-of-floats", "ParseChoice", "o.float16_cache == 1 ? kernels::CacheType::kHalf",
         "false ? kernels::CacheType::kHalf", C_INTERFACE + "HalfCache_IsSmallerAndNearlyTheSame", HALVES),
    ]) + table("ports/c/wisp_text.cc", [
        ("an-encoder-with-a-half-cache", "Open", "!decodes && choice.kept != wisp::kernels::CacheType::kFloat", "false",
         HALVES),
    ]) + table("ports/c/options_c.h", [
        ("an-output-without-a-name-is-paid-for", "CheckGiven", "text == nullptr || *text == '\\0'", "text == nullptr",
         C_PERSONALISE + "EmptyPaths_AreRefusedBeforeAnythingIsCharged"),
    ]) + table("ports/c/personalise_c.cc", [
        ("a-ledger-where-sqlite-keeps-the-log", "CheckOutputs",
         'WISP_RETURN_IF_ERROR(CheckApart({"ledger_path", ledger}, {"log_path", log}));', "",
         C_PERSONALISE + "FilesOfSqlite_AreRefusedAsLedgers"),
        ("a-step-of-any-length-is-paid-for", "CheckOptions", "o.learning_rate > 1", "false",
         C_PERSONALISE + "NumbersOutsideOfWhatIsOfUse_AreNamed"),
    ]) + table("ports/c/status_c.h", [
        ("what-was-thrown-hides-a-charge", "ReportThrown", '"; what a ledger was charged before stays charged"', '""',
         C_PERSONALISE + "WhatFailsAfterACharge_SaysThatItStays"),
    ]) + table("runtime/train/run/job.cc", [
        ("a-model-that-was-not-written-hides-a-charge", "AddChargeNote", "is_paid ? AddSavedState",
         "false ? AddSavedState", C_PERSONALISE + "WhatFailsAfterACharge_SaysThatItStays"),
    ]) + table("tools/wisp/recipe/known_words.h", [
        ("an-empty-value-takes-in-the-next-option", "UnknownWord", 'word == name + "="', "false", "cli_usage.py"),
    ]) + table("runtime/sqlite/open.cc", [
        ("a-pipe-is-waited-for", "FindFault", "!S_ISREG(info.st_mode)", "false",
         "sqlite_reader_test:Sqlite.OtherThanRegularFiles_AreRefusedAtOnce"),
    ]) + table("ports/c/options_c.h", [
        ("an-unknown-unit-is-the-user", "UnitFromNumber", "case WISP_UNIT_USER:", "default: case WISP_UNIT_USER:",
         C_PERSONALISE + "Unit_IsRequired"),
        ("numbers-below-zero-are-taken", "CheckNumbers", "n.value >= 0 && ", "",
         C_PERSONALISE + "NumbersOutsideOfWhatIsOfUse_AreNamed"),
    ]) + table("ports/c/wisp_text_training.cc", [
        ("texts-of-days-are-taken", "CheckTextTraining",
         "unit == privacy::PrivacyUnit::kInteraction || unit == privacy::PrivacyUnit::kUser", "true",
         C_CLASSIFIER + "RefusesBeforeAnythingIsSpent"),
        ("bad-label-refuses-a-private-run", "Read", ".classes = choice_.classes, .drop_bad = true",
         ".classes = choice_.classes, .drop_bad = false", C_CLASSIFIER + "AFileWithoutARecordIsPaidForAllTheSame"),
        ("checkpoint-of-other-classes", "Set", "options.classes_hash = wisp::HashClasses(choice_.classes);", "",
         C_CLASSIFIER + "ACheckpointIsOfItsClasses"),
        ("blocks-train-tables", "MakeLabelledTexts", "choice.part = wisp::TrainedPart::kBlocks", "(void)choice.part",
         C_CLASSIFIER + "WhatTrainsIsAllThatChanges"),
    ]) + table("runtime/train/run/classifier_start.cc", [
        ("a-classifier-changes-its-classes", "CheckClassifierBase", "base.classifier().class_names != classes", "false",
         C_CLASSIFIER + "AClassifierKeepsItsClasses"),
    ])


def callers():
    return table("runtime/train/run/saved_run.cc", [
        ("two-runs-pay-for-one-checkpoint", "SavedRun::Claim", "begun->CheckOnlyWriter()", "OkStatus()",
         C_RESUME + "ASecondRunOnOneCheckpointOrOutput_IsRefusedAndPaysNothing"),
    ]) + table("runtime/model/model_writer.cc", [
        ("two-runs-pay-for-one-output", "ReserveModel", "file.CheckOnlyWriter()", "OkStatus()",
         C_RESUME + "ASecondRunOnOneCheckpointOrOutput_IsRefusedAndPaysNothing"),
    ]) + table("ports/c/personalise_c.cc", [
        ("failed-checkpoint-kept-quiet", "Personalise", "job.save_failure.empty() ? 0 : 1", "0",
         C_RESUME + "ACheckpointThatCannotBeWritten_IsToldInTheResult"),
        ("bad-rows-kept-quiet", "Personalise", ".bad_rows = p.read.bad_rows", ".bad_rows = 0",
         C_PERSONALISE + "BadRows_AreLeftOutAndCounted"),
    ]) + table("tools/wisp/convert_tensors.cc", [
        ("withheld-items-lost-by-convert", "ImportTensors",
         "WISP_RETURN_IF_ERROR(ReadWithheld(a, file, contents));", "", "convert.py"),
        ("untrained-items-lost-by-export", "Metadata",
         "if (!model.untrained().empty()) metadata[kUntrainedKey] = Json(model.untrained()).dump();", "", "convert.py"),
    ]) + table("runtime/model/lists_of.cc", [
        ("tested-with-untrained-items", "MakeLists", "MergeWithheld(contents.retired, contents.untrained)",
         "contents.retired", "fine_tune_test:FineTuneTest.TestFigures_AreThoseOfTheModelThatIsWritten"),
    ]) + table("runtime/train/run/records.cc", [
        ("short-sessions-not-evaluated", "CasesFromEnd", "record.size() <= from_end", "record.size() <= from_end + 1",
         "evaluate_candidate_test:EvaluationTest.EvaluationByRecords_DiffersByTheGains"),
    ]) + table("runtime/train/run/fine_tune.cc", [
        ("tested-as-if-no-item-had-learned", "FineTune::Run",
         "take_untrained(result);\n    return MakeLists(contents, withheld);",
         "return MakeLists(contents, withheld);",
         "fine_tune_test:FineTuneTest.TestFigures_AreThoseOfTheModelThatIsWritten"),
        ("no-room-kept-for-the-model", "FineTune::Run", "ReserveModel(output.path, contents)",
         "FileReplacement::Begin(output.path)",
         C_RESUME + "DiskWithoutSpaceForTheModel_RefusesBeforeTheFirstCharge"),
        ("tuning-unchecked", "FineTune::Begin", "start.tuning));\n  FineTune", '""));\n  FineTune',
         C_PERSONALISE + "UnchargedTuning_IsStated"),
        ("tuning-not-stated", "FineTune::Run", "WithTuning(start_.run, start_.tuning)",
         "WithTuning(start_.run, \"\")",
         C_PERSONALISE + "UnchargedTuning_IsStated"),
        ("base-unchecked", "OpenLedgerToTrain", "WISP_RETURN_IF_ERROR(CheckStart(*start.base,",
         "(void)(CheckStart(*start.base,",
         "fine_tune_test:FineTuneTest.ABaseThatSawTheDataIsRefused"),
        ("adapter-in-place-of-its-base", "FineTune::Run", "if (contents.architecture.adapter)", "if (false)",
         "adapter_file_test:AdapterFineTune.DoesNotReplaceItsBase"),
        ("guarantee-of-repeatable-noise", "FineTune::Provenance",
         "r.options.privacy.reproducible_seed ? NoiseOrigin::kReproducible : NoiseOrigin::kSecure",
         "NoiseOrigin::kSecure",
         "fine_tune_test:FineTuneTest.TheProvenanceSaysWhatTheLedgerSays"),
    ]) + table("runtime/private_sampling/check_paid.cc", [
        ("unnamed-ledger-pays-for-nothing", "CheckPaid", "!paid_for.empty() && ", "",
         "check_start_test:CheckStartTest.DrawsNeedALedgerThatHasWhatTheModelSpent"),
    ])


def faults():
    return (rows_of_others() + databases_of_others() + resumed_runs() + figures_of_runs() + files() +
            weights_and_scores() + several_threads() + structs_and_enums() +
            callers())
