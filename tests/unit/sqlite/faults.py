"""Faults of this folder's subject, for tests/mutants/run: name, function, expression, fault, tests that fail."""
from faults import table

FAULTS = [
    *table("runtime/sqlite/open.cc", [
        ("journals-may-name-others", "NamesSuperJournal", "tail == kJournalMagic", "false",
         "sqlite_open_test:SqliteOpen.AJournalThatNamesASuperJournal_IsRefusedAndDeletesNothing"),
        ("links-beside-a-database-are-written-through", "FaultBeside", "info.num_names > 1", "false",
         "sqlite_open_test:SqliteOpen.PipesAndLinksBesideAFile_AreRefusedAtOnce"),
        ("files-of-others-beside-a-database-are-taken", "FaultBeside", "info.owner != database.owner", "false",
         "sqlite_open_test:SqliteOpen.FilesOfAnotherUser_AreRefused"),
        ("an-index-is-written-through", "FindFault", 'FaultBeside(path + "-shm")', '""',
         "sqlite_open_test:SqliteOpen.AnIndexThatIsAnotherFile_IsNotWritten"),
        ("temporary-files-are-asked-for", "Harden", "temp_store = MEMORY", "temp_store = FILE",
         "sqlite_open_test:SqliteOpen.NothingGoesToATemporaryFolder"),
        ("journals-of-another-state-are-played-back", "CheckJournal", "*now == *before ||", "true ||",
         "event_log_keep_test:EventLogKeep.AJournalOfAnotherState_IsNoticed"),
        ("no-locks-are-waited-for", "Lock", "errno == ENOLCK", "false",
         "sqlite_open_test:SqliteOpen.AFileSystemWithoutLocks_IsNamedAtOnce"),
        ("journals-may-delete-files", "OpenChecked", "(flags & (kDatabase | kJournal | kWal)) == 0", "false",
         "sqlite_open_test:SqliteOpen.ASuperJournal_IsNeitherOpenedNorMade"),
        ("a-pipe-is-waited-for", "FindFault", "info.type != platform::FileType::kRegular", "false",
         "sqlite_reader_test:Sqlite.OtherThanRegularFiles_AreRefusedAtOnce"),
    ]),
]
