"""Commands of the log: count, list, erase, prune, back up, restore, export and import."""

import glob

from program import ROOT, copy, exists, kept, mode, move, read, run, same, says, sql, write


def test_a_log_of_300_users():
    copy(f"{ROOT}/models/cafe.wisp", "base.wisp")
    kept("log-300.db", lambda: run("wisp synth --out log-300.db --population device --users 300 --seed 3"))
    move("log-300.db", "log.db")


def test_the_log():
    run("wisp log count none.db",
        3, "^wisp: none.db: the log cannot be opened: No such file or directory; give the SQLite file")
    assert not exists("none.db"), "counting made a log"
    r = run("wisp log count log.db --json")
    assert r["users"] == 300 and r["events"] > 5000 and r["oldest"] < r["newest"]
    user = sql("log.db", "select user from events limit 1")
    r = run(f"wisp log erase log.db --user '{user}' --json")
    assert r["erased"] > 1
    r = run("wisp log count log.db --json")
    assert r["users"] == 299
    r = run(f"wisp log erase log.db --user '{user}'")
    assert says(f"^nothing matched: log.db has no event of '{user}'", r.out), "an erasure of nobody says"
    r = run(f"wisp log erase log.db --user '{user}' --json")
    assert r["erased"] == 0


def test_a_copy_is_one_file_and_is_a_log():
    # Restoring brings the log back to its state, also a lost log.
    run("wisp log backup log.db --out copy.db")
    run("wisp log backup log.db --out copy.db", 2, "will not be replaced")
    run("wisp log restore copy.db --from copy.db", 2, "the copy and the log name the same file")
    assert glob.glob("copy.db*") == ["copy.db"]
    other = sql("log.db", "select user from events limit 1")
    run(f"wisp log erase log.db --user '{other}'")
    r = run("wisp log restore log.db --from copy.db")
    assert "Whoever was erased since is back" in r.out, "restoring says"
    run("wisp log restore lost.db --from copy.db")
    sql("other.db", "create table contacts(name)")
    sql("other.db", "insert into contacts values ('anna')")
    run("wisp log restore other.db --from copy.db", 2, "has a table 'contacts' that the copy 'copy.db' lacks")
    assert sql("other.db", "select group_concat(name) from sqlite_master") == "contacts"
    sql("shared.db", "create table events(user text, item text, time integer)")
    sql("shared.db", "create table contacts(name)")
    run("wisp log restore shared.db --from copy.db", 2, "has a table 'contacts' that the copy 'copy.db' lacks")
    for log in ("log.db", "lost.db"):
        r = run(f"wisp log count {log} --json")
        assert r["users"] == 299
    run("wisp log restore made.db --from none.db",
        3, "^wisp: none.db: the copy cannot be opened: No such file or directory; nothing was restored")
    run("wisp log export none.db --out none.csv",
        3, "^wisp: none.db: the log cannot be opened: No such file or directory; give the SQLite file")
    assert not exists("made.db"), "a restoration from nothing made a log"
    # Names come from anywhere: a listing has one line for each, without characters that a terminal acts on.
    name = "bad\nwisp: gone\u202e.db"
    copy("copy.db", name)
    r = run(f"wisp log count '{name}'")
    assert says("^bad?wisp: gone?\\.db: ", r.out), "a name reaches the terminal"
    sql(name, f"update events set user = 'a' || char(0x202e) || 'b' where user = '{other}'")
    r = run(f"wisp log list '{name}' --count 9999")
    assert says("^a?b\t", r.out), "a user's name reaches the terminal"
    r = run(f"wisp log list '{name}' --count 9999 --json")
    assert "a\\u202eb" in r.out, "JSON does not hold the user's name in escapes"
    assert not "\u202e" in r.out, "JSON holds what a terminal acts on"


def test_another_programs_log():
    # Integer users, one of them invalid, and dates.
    sql("app.db", "create table events(user integer, item text, time text)")
    events = (
        "(17, 'tea', '2026-11-27T09:30:00Z'), (17, 'milk', '2026-11-26'), (9, 'tea', '2026-11-27'), (null, 'tea',"
        " '2026-11-27')"
    )
    sql("app.db", f"insert into events values {events}")
    r = run("wisp log count app.db")
    assert says("4 events of 2 users.*training cannot read 1 of its events", r.out), "a count says"
    assert "times of 4 events are dates, and given as numbers since 1970 with 1 to the second" in r.out
    run("wisp log count app.db --times-per-second 0", 2, "--times-per-second: the log has 0 times")
    r = run("wisp log list app.db --json")
    assert [(u["user"], u["events"], u["newest"]) for u in r["users"]] == [
        ("17", 2, 1795771800),
        ("9", 1, 1795737600),
    ] and r["unreadable"] == 1
    r = run("wisp log export app.db --out app.csv")
    assert says("3 events of app.db written.*cannot read 1 of its events.*not exported", r.out), "an export says"
    assert read("app.csv").rstrip("\n") == "user,item,time\n17,milk,1795651200\n17,tea,1795771800\n9,tea,1795737600"
    run("wisp log export app.db --out app-ms.csv --times-per-second 1000")
    assert (
        read("app-ms.csv").rstrip("\n")
        == "user,item,time\n17,milk,1795651200000\n17,tea,1795771800000\n9,tea,1795737600000"
    ), "exported is"
    r = run("wisp log list app.db --times-per-second 1000 --json")
    assert [u["newest"] for u in r["users"]] == [1795771800000, 1795737600000] and r["dates"] == 4
    r = run("wisp log prune app.db --before 2026-11-27 --unit session --session-gap 60 --json")
    assert r["pruned"] == 1 and r["unreadable"] == 1
    r = run("wisp log erase app.db --user 17 --json")
    assert r["erased"] == 1
    r = run("wisp log list log.db --count 3")
    assert r.out.count(" events") == 3, "log list does not show 3 users"
    run("wisp log prune log.db --before soon --unit user", 2, "--before is 'soon'")
    run("wisp log prune log.db --before=-5 --unit user", 2, "--before is '-5', allowed is from 1970-01-01 on")
    run("wisp log prune log.db --newest-per-user 5 --unit day", 2, "--newest-per-user is given, and --unit is day")
    run("wisp log prune log.db --unit user", 2, "wisp log prune needs --before, or --newest-per-user")
    run("wisp log prune log.db --before 5 --unit session",
        2, "--unit session needs --session-gap: the seconds without an event.*such as 1800; allowed are 1 to")
    r = run("wisp log prune log.db --before 1971-01-01 --unit user")
    assert says("^nothing matched: every event of log.db is to be kept", r.out), "a pruning of nothing says"


def test_a_log_in_seconds_that_is_read_as_one_in_milliseconds_would_lose_everything():
    run("wisp log prune log.db --before 1971-01-01 --unit user --times-per-second 1000",
        2, "no time between 1990 and 2223 where a second has 1000 of them")
    copy("log.db", "other.db")
    for moment in (5, 8000000001):
        sql("other.db", f"insert into events (user, item, time) select user, item, {moment} from events limit 1")
        run("wisp log prune other.db --before 1999-01-01 --unit user", 2, f"the time of an event is {moment}")
        sql("other.db", f"delete from events where time = {moment}")
    run("wisp log prune log.db --newest-per-user 5 --unit user --json")
    r = run("wisp log count log.db --json")
    assert r["events"] == 5 * 299


def test_exported_as_text_and_imported_again():
    # Exported as text and imported again, the events are equal.
    run("wisp log export log.db --out events.csv")
    r = run("wisp log import again.db --data events.csv --json")
    assert r["imported"] == 5 * 299 and r["not_private"] == ["imported"]
    run("wisp log export again.db --out EVENTS.TSV")
    assert read("EVENTS.TSV").replace("\t", ",") == read("events.csv"), "a log that went through a file is another"
    for file in ("events.csv", "EVENTS.TSV", "again.db"):
        assert mode(file) == 0o600, f"{file} can be read by others: its mode is"


def test_dates_count_in_the_logs_unit():
    # Dates count in the log's unit, and a log with another unit than the given one is not accepted silently.
    write("dates.csv", "user,item,time\na,tea-mint,2026-11-27T09:30:00Z\n")
    run("wisp log import ms.db --data dates.csv --times-per-second 1000")
    assert sql("ms.db", "select time from events") == 1795771800000, "a date in milliseconds is"
    run("wisp log import ms.db --data dates.csv --times-per-second 0", 2, "--times-per-second: the log has 0 times")
    write("ms.csv", "user,item,time\na,tea-mint,1795771800000\n")
    run("wisp log import ms.db --data ms.csv",
        0, "ms.csv: times of 1 event look like milliseconds, and are read with 1 to the second.*(local only)")
    r = run("wisp log import ms.db --data ms.csv --times-per-second 1000")
    assert not r.err, "a log of milliseconds warns"
    run("wisp plan --data ms.db --model base.wisp --epsilon 4 --num-records-public 300 --unit user --for '2 days'"
        " --steps 1 --evaluation none --ledger ms.ledger")
    run("wisp personalise --data ms.db --model base.wisp --out ms.wisp --ledger ms.ledger",
        0, "ms.db: times of 3 events look like milliseconds, and are read with 1 to the second.*(local only)")
    write("lines.txt", '{"user": "a"}\n')
    run("wisp log import again.db --data lines.txt", 3, "is JSON; allowed is a user and an item")
    run("wisp log export log.db --out events.txt", 2, "allowed are names that end in .csv or .tsv")
    r = run("wisp log count again.db --json")
    assert r["events"] == 5 * 299
