"""Faults of the program: what must be declared before private data leaves a mark, which figures are called private."""
from faults import table


def items_of_private_data():
    return table("tools/wisp/cmd_train.cc", [
        ("items-listed-undeclared", "CheckPublicItems",
         'a.catalogue != "public" && recipe.catalogue != RunSpec::Catalogue::kPublic', "false", "declarations.py"),
        ("items-counted-undeclared", "CheckPublicItems", "return CheckPublicCatalogue(recipe);", "return OkStatus();",
         "declarations.py"),
    ]) + table("tools/wisp/training_run.cc", [
        ("items-of-a-private-log", "TrainingRun::CheckPublic", "recipe_.catalogue != RunSpec::Catalogue::kPublic",
         "false", "declarations.py"),
        ("events-that-hang-on-others", "TrainingRun::CheckPublic", "recipe_.min_item_events > 1", "false",
         "declarations.py"),
    ])


def deltas():
    return table("tools/wisp/given_fields.cc", [
        ("a-word-for-another-delta", "GivenFields::Apply", "spec.goal.allow_delta_of_one_record = false", "",
         "declarations.py"),
    ])


def figures():
    return table("tools/wisp/ledger_access.cc", [
        ("passed-limit-kept-quiet", "passes_limit", "limit && epsilon > limit->epsilon()", "false", "cli_budget.py"),
        ("every-limit-is-passed", "passes_limit", "limit && epsilon > limit->epsilon()", "limit.has_value()",
         "cli_budget.py"),
    ]) + table("tools/wisp/cmd_train_labelled.cc", [
        ("no-record-kept-quiet", "ReadData", "if (records_.empty()) WarnOfNoRecord();", "", "cli_classify.py"),
    ]) + table("tools/wisp/training_run.cc", [
        ("no-text-kept-quiet", "TrainingRun::Read", "is_private() && NumRecords() == 0", "false", "cli_train_texts.py"),
    ]) + table("tools/wisp/output.cc", [
        ("bytes-called-private", "", '"planned_bytes",', "", "figures.py"),
        ("events-that-evaluated-called-private", "", ', "evaluation_events"', "", "cli_deployment.py"),
        ("local-threshold-called-private", "", '"threshold", ', "", "cli_deployment.py"),
        ("text-that-a-terminal-acts-on", "PrintText", "Printable(text.substr(begin, tab - begin))",
         "text.substr(begin, tab - begin)", "cli_deployment.py"),
        ("json-that-a-terminal-acts-on", "JsonText", "return privacy::EscapedJson(", "return std::string(",
         "cli_deployment.py"),
    ]) + table("tools/wisp/replaced.cc", [
        ("a-letter-replaced-by-a-model", "CheckReplaces", "wanted.begins(beginning)", "true", "cli_outputs.py"),
        ("events-replaced-whose-names-are-not-beside-them", "CheckReplacesMadeUp",
         "ReadBeginning(names.path).empty() ? CheckReplacesNothing(events) : OkStatus()", "OkStatus()",
         "cli_outputs.py"),
    ]) + table("tools/wisp/deployment/cmd_log_backup.cc", [
        ("events-replaced-by-an-export", "LogExport", "WISP_RETURN_IF_ERROR(CheckReplacesNothing(out_file));", "",
         "cli_outputs.py"),
    ]) + table("tools/wisp/statement_check.cc", [
        ("a-changed-statement-holds", "CheckStated", "differ.empty()", "true", "ledgers.py"),
        ("a-statement-of-another-ledger-holds", "CheckStated", "kept.receipt != then.front().receipt", "false",
         "ledgers.py"),
        ("any-model-is-the-one", "CheckModels", "!is_named", "false", "ledgers.py"),
    ]) + table("runtime/privacy/ledger/ledger_reads.cc", [
        ("figures-of-later-charges-in-an-earlier-statement", "Ledger::StatesWith",
         "if (row.seq >= next) return OkStatus();", "", "ledgers.py"),
    ]) + table("tools/lab/cmd_reproduce.cc", [
        ("figures-of-own-data-called-private", "RunTraining", "if (!table_.is_public()) figures", "if (false) figures",
         "reproduce.py"),
    ])


def reproduced_tables():
    return table("tools/lab/reproduce/check_cell.cc", [
        ("a-cell-of-private-items", "CheckGuarantee", "r.catalogue != RunSpec::Catalogue::kPublic", "false",
         "reproduce.py"),
        ("a-cell-of-any-delta", "CheckGuarantee", "return CheckPrivacyGoal(r.goal, r.training.num_records_public);",
         "return OkStatus();", "reproduce.py"),
    ]) + table("tools/lab/cmd_reproduce.cc", [
        ("draws-of-private-data", "CheckDeclared", "decodes && !table_.is_public()", "false", "reproduce.py"),
        ("private-data-uncharged", "CheckDeclared", "table_.is_public() || !any_private || !a_.ledger.empty()", "true",
         "reproduce.py"),
        ("own-data-charged-to-nobody", "RunTraining", 'a_.ledger.empty() ? folder.File("ledger") : a_.ledger',
         'folder.File("ledger")', "reproduce.py"),
    ])


# Records of text stay apart, one text is one record, and its content decides nothing about another.
def texts():
    return table("runtime/data/sessions.cc", [
        ("late-events-join-sessions", "CutSessions", "at != read.end() && at->time == times[i]", "false",
         "sessions_test:Sessions.LateEvents_joinNoTwoSessions"),
        ("late-events-between-two-begin-another", "GetSession",
         "session = std::min(session.value_or(at->session), at->session);",
         "session = session && *session != at->session ? first : at->session;",
         "sessions_test:Sessions.OneSessionTakenAway_changesNoOther"),
    ]) + table("runtime/data/sqlite_reader.cc", [
        ("readings-not-remembered", "ReadSqlite", "WISP_RETURN_IF_ERROR(reading.Save(work));", "",
         "sessions_test:RememberedLog.LateEvent_joinsOneSessionThatWasReadBefore"),
    ]) + table("runtime/data/session_table.cc", [
        ("who-is-erased-is-remembered", "ForgetSessionsWithoutEvents", "gone += *of_one;",
         "gone += 0;", "sessions_test:RememberedLog.WhatAnAppDeletes_isForgottenAtTheNextReading"),
    ]) + table("runtime/train/run/parts.cc", [
        ("sessions-cut-anew-are-charged", "CheckSessionsAreKnown",
         "std::none_of(entries.begin(), entries.end(), reads_a_log)", "true",
         "job_test:JobTest.SessionsThatNobodyRemembers_areRefusedOnceSomethingWasCharged"),
    ]) + table("runtime/data/texts.cc", [
        ("chunks-that-overlap", "AddChunks", "own = file.substr(at, bytes)", "own = file.substr(at, bytes + 1)",
         "texts_test:Texts.ChunkTakenAway_changesNoOtherText"),
        ("chunks-that-end-in-the-next", "AddChunks", "WholeCharacters(WithoutMarks(own))",
         "file.substr(at, own.size() + (own.empty() || own.back() >= 0 ? 0 : 1))",
         "texts_test:Texts.ChunkTakenAway_changesNoOtherText"),
        ("paragraphs-that-run-on", "AddParagraphs", "last > 0 && lines.number() == last + 1", "last > 0", "texts_test"),
        ("tokens-of-a-text-that-was-dropped", "EncodeTexts",
         "      out.tokens.resize(out.begin.back());\n      if (out.num_dropped++ == 0)",
         "      if (out.num_dropped++ == 0)", "texts_test"),
        ("a-refusal-for-a-bad-text", "EncodeTexts", "if (!drop_bad) return fault;", "return fault;", "texts_test"),
    ]) + table("runtime/train/run/language.cc", [
        ("a-target-of-the-next-record", "ViewRecords", "texts.Record(i)",
         "std::span<const int32_t>(texts.Record(i).data(), texts.Record(i).size() + 1)", "language_model_test"),
    ]) + table("runtime/train/trainer.cc", [
        ("a-record-too-long-for-its-room", "Trainer::Trainable",
         "LongestRecord(graph_->architecture(), options_.cut_to)", "graph_->architecture().max_length",
         "cut_records_test"),
    ]) + table("runtime/text/texts.cc", [
        ("a-cut-record-that-is-not", "AppendRecord", "ids.resize(first + most);", "", "language_model_test"),
    ]) + table("tools/wisp/text_records.cc", [
        ("a-private-run-refuses-a-bad-text", "ReadTextRecords", "EncodeTexts(texts, tokenise, options.private_run)",
         "EncodeTexts(texts, tokenise, false)", "cli_train_texts.py"),
        ("held-out-texts-are-trained-on", "ReadTextRecords",
         "(is_held_out ? out.held_out : out.records).push_back(all[i]);", "out.records.push_back(all[i]);",
         "cli_train_texts.py"),
    ]) + table("tools/wisp/training_run.cc", [
        ("a-run-that-names-no-record", "TrainingRun::Begin", "OpenRunLedger(a_.ledger, a_.anchor, *record_,",
         "OpenRunLedger(a_.ledger, a_.anchor, privacy::RecordSpec::Any(recipe_.unit),",
         "cli_train_texts.py"),
    ]) + table("tools/wisp/cmd_convert.cc", [
        ("options-of-an-import-ignored", "ConvertModel", "if (of_import != nullptr)", "if (false)", "convert.py"),
        ("the-second-work-forgotten", "ConvertModel", "if (work != nullptr)\n      return InvalidArgument(work, \" and",
         "if (false)\n      return InvalidArgument(work, \" and",
         "convert.py"),
    ]) + table("tools/wisp/cmd_train_labelled.cc", [
        ("options-of-events-ignored-with-labelled-texts", "CheckKindOfData",
         "for (const auto& [option, given] : others) {\n      if (given)",
         "for (const auto& [option, given] : others) {\n      if (false)", "cli_options.py"),
    ]) + table("tools/wisp/convert_merge.cc", [
        ("a-merged-adapter-rounded-away", "Merge",
         "file.storage() <= WeightStorage::kHalf ? file.storage() : WeightStorage::kFloat", "file.storage()",
         "cli_train_texts.py"),
    ])


def faults():
    return items_of_private_data() + deltas() + figures() + reproduced_tables() + texts()
