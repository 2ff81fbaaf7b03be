"""Faults of this folder's subject, for tests/mutants/run: name, function, expression, fault, tests that fail."""
from faults import table

FAULTS = [
    *table("runtime/privacy/statement.cc", [
        ("every-mechanism-sampled-by-poisson", "Participation", "m.kind().*said",
         "kPoissonSubsampledGaussianKind.*said", "ledger_statement_test:LedgerStatementTest.SaysHowRecordsTookPart"),
        ("a-name-forges-lines", "Line", "append(OneLine(std::string(value)))", "append(value)",
         "statement_test:Statement.EachValueIsOneLineWhateverItHolds"),
        ("late-limit-kept-quiet", "LimitInWords", "if (f.limit_is_late)", "if (false)",
         "ledger_statement_test:LedgerStatementTest.ALimitBelowWhatWasSpent"),
    ]),
    *table("runtime/privacy/json.cc", [
        ("controls-of-several-bytes-in-json", "JsonWriter::AppendQuoted", "IsControl(text, length) && c != '\\t'",
         "length == 1 && IsControl(text, length) && c != '\\t'",
         "statement_test:JsonWriter.ControlCharactersOfSeveralBytesAreEscaped"),
        ("epsilon-to-nearest", "EpsilonText", "if (shown >= number) return text;", "return text;",
         "json_test:EpsilonText.ReadBackIsNeverLessAndNearAbove"),
    ]),
    *table("runtime/privacy/ledger_statement.cc", [
        ("tuning-kept-quiet", "Gather", "!tuning.empty())", "tuning.empty())",
         "ledger_statement_test:LedgerStatementTest.WhatWasTunedIsThereOnce"),
        ("record-kept-quiet", "Gather", "s.record = state.record;", "",
         "ledger_statement_test:LedgerStatementTest.SaysWhatARecordIs"),
        ("writer-of-several-taken-for-protected", "DescribeRecords", "s.unit != PrivacyUnit::kUser",
         "s.unit == PrivacyUnit::kUser", "ledger_statement_test:LedgerStatementTest.SaysWhatARecordIs"),
        ("weights-taken-for-protected", "Add", "samples.record && samples.record->kind() == RecordSpec::kPromptText",
         "false", "ledger_statement_test:LedgerStatementTest.SaysWhatSamplesWereMadeFrom"),
        ("a-search-covers-every-run", "DescribeSearches",
         's.output = others ? s.output + "; of searches alone: " + released : released;', "",
         "ledger_statement_test:LedgerStatementTest.SaysWhatASearchReleases"),
        ("a-chosen-length-states-pld", "StateRun", "length == RunLength::kFixed", "true",
         "ledger_statement_test:LedgerStatementTest.OneRunHasItsOwnChargesAndTheFigureThatItsLengthAllows",
         "interrupted_run_test:InterruptedRun.StepsChargedAndNotTakenAreChargedAgain"),
        ("a-runs-statement-has-those-of-others", "MakeRunStatement",
         "std::erase_if(state.entries, [&](const LedgerEntry& e) { return e.run != run; });", "",
         "ledger_statement_test:LedgerStatementTest.OneRunHasItsOwnChargesAndTheFigureThatItsLengthAllows"),
        ("a-runs-statement-has-the-ledgers-figure", "MakeRunStatement", "s.epsilon = alone.epsilon;", "",
         "ledger_statement_test:LedgerStatementTest.OneRunHasItsOwnChargesAndTheFigureThatItsLengthAllows"),
    ]),
]
