"""An existing file is only replaced by one of its own kind, whichever command writes it, and a file of events only if
wisp generated it."""

import resource

import pytest
from program import ROOT, checksum, copy, exists, read, run, same, says, size, write

pytestmark = pytest.mark.usefixtures("cafe")


model = "a wisp model"
synth = "wisp synth --population device --users 60 --seed 3 --out"


def replaced(kind, file, command):
    """A command refuses a file of another kind, and replaces its own and an empty one. Its last word is the option."""
    write(file, "Dear Bob,\n")
    run(f"{command} {file}",
        2, f"is {file}, a file that is there and is not {kind}: it will not be replaced; name another file")
    assert read(file) == "Dear Bob,\n", f"{command} replaced a letter"
    write(file, "")
    run(f"{command} {file}")
    assert size(file), f"{command} left a file of no bytes"
    run(f"{command} {file}")


def test_each_command_that_writes():
    # Each command that writes, with its option last and the file's name after it.
    write("new.tsv", "soup-pea\tPea soup\n")
    write("gone.txt", "bagel-lentil\n")
    replaced(model, "o.wisp", "wisp catalogue add --model base.wisp --items new.tsv --out")
    replaced(model, "o.wisp", "wisp catalogue retire --model base.wisp --items gone.txt --out")
    replaced(model, "o.wisp", "wisp catalogue restore --model base.wisp --items gone.txt --out")
    replaced(model, "o.wisp", "wisp convert base.wisp --f16 --out")
    replaced("a safetensors file", "o.safetensors", "wisp convert base.wisp --out")
    replaced(model, "o.wisp", "wisp convert o.safetensors --out")
    replaced(model, "o.wisp", f"wisp new --recipe {ROOT}/models/recipes/cafe.json --num-items 480 --out")
    replaced(
        model,
        "o.wisp",
        f"wisp train --recipe {ROOT}/models/recipes/cafe.json --model base.wisp --data log.db --epochs 1 --batch 60"
        " --out",
    )
    for file in ("s.csv", "s.tsv", "s.inter", "s.txt"):
        replaced("one that `wisp synth` made", file, synth)


def foreign(sentence, file, command):
    """A command refuses a file, and leaves it as it is."""
    copy(file, "foreign")
    run(f"{command} {file}",
        2, f"is {file}, a file that is there{sentence}: it will not be replaced; name another file")
    assert same(file, "foreign"), f"{command} replaced events of others"


def test_events_of_others_are_in_tables_of_the_same_form():
    untold = ", and nothing says whose events it holds"
    write("s.csv", "user,item,time\nanna,tea-mint,5\n")
    foreign(" and is not one that `wisp synth` made", "s.csv", synth)
    write("u.csv", "user,item,time\nu00003,tea-mint,5\n")
    foreign(untold, "u.csv", synth)
    write("o.tsv", "user\titem\ttime\nanna\ttea-mint\t5\n")
    for file in ("u.csv", "o.tsv"):
        foreign(untold, file, "wisp log export log.db --out")
    write("o.csv", "")
    run("wisp log export log.db --out o.csv")
    assert read("o.csv").startswith("user,item,time\n"), "an empty file was not replaced"
    foreign(untold, "o.csv", "wisp log export log.db --out")
    write("letter.txt.items.tsv", "Dear Bob,\n")
    run(f"{synth} letter.txt",
        2, "letter.txt.items.tsv, a file that is there and is not a table of items and their names")
    assert not exists("letter.txt"), "a refused synth left a file"


plan = (
    f"--recipe {ROOT}/models/recipes/cafe-device.json --model base.wisp --data log.db --num-records-public 60 --batch"
    " 20 --epochs 1 --noise-multiplier 4 --delta 0.001"
)


def test_a_log_is_never_replaced():
    # A log is never replaced, neither by another nor by a copy.
    write("letter.db", "Dear Bob,\n")
    run(f"{synth} letter.db", 2, "letter.db, a file that is there and is not a log")
    run(f"{synth} log.db", 2, "is an SQLite database")
    run("wisp log backup log.db --out letter.db", 2, "will not be replaced by a copy of a log")
    run("wisp catalogue add --model base.wisp --items new.tsv --out log.db", 2, "is an SQLite database")
    write("other.wisp", "Dear Bob,\n")
    run("wisp catalogue rebase --from base.wisp --to base.wisp --out other.wisp --ledger log.ledger",
        2, f"other.wisp, a file that is there and is not {model}")
    assert read("letter.db") == read("other.wisp") == "Dear Bob,\n", "a letter was replaced"
    # Files that a private run writes beside its model.
    write("statement.json", "Dear Bob,\n")
    run(f"wisp train {plan} --out p.wisp --ledger p.ledger --privacy-json statement.json",
        2, "statement.json, a file that is there and is not JSON")
    assert not exists("p.wisp") and not exists("p.ledger"), "a refused run left a file"
    run("wisp plan --data log.db --model base.wisp --epsilon 4 --unit user --num-records-public 60 --for '2 days'"
        " --steps 1 --evaluation none --ledger deployment.ledger")
    replaced("a page of HTML", "o.html", "wisp report --ledger deployment.ledger --html")
    run("wisp report --ledger deployment.ledger --html base.wisp", 2, "is not a page of HTML")


def full(said, command, size_bytes=0):
    result = run(
        command,
        3,
        restore_signals=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY)),
    )
    assert says(said, result.out + result.err), result.err


def test_a_full_disk_is_called_full():
    # A full disk is called full, and existing files stay.
    copy("log.db", "full.db")
    before = checksum("full.db")
    disk = "the disk refuses to write, as one that is full does; free space and try again"
    full(f"event log 'none.db': cannot be opened to write: {disk}", "wisp log import none.db --data o.csv")
    full(f"event log 'full.db': cannot append: {disk}", "wisp log import full.db --data o.csv")
    full(f"event log 'full.db': cannot be restored: {disk}", "wisp log restore full.db --from log.db")
    full(f"event log 'full.db': cannot forget: {disk}", "wisp log erase full.db --user u00003")
    full(
        f"full.ledger' cannot be read or written: {disk}",
        "wisp plan --data log.db --model base.wisp --epsilon 4 --unit user --num-records-public 60 --for '2 days'"
        " --steps 1 --evaluation none --ledger full.ledger",
    )
    full("writing failed: ", "wisp log export log.db --out full.csv")
    assert checksum("full.db") == before, "a full disk changed the log"


def test_a_log_that_a_full_disk_refused_is_restored_once_there_is_space():
    run("wisp log backup log.db --out copy.db")
    for pages in range(6):
        log = f"lost-{pages}.db"
        full(": the disk refuses to write, as one that", f"wisp log restore {log} --from copy.db", 4096 * pages)
        run(f"wisp log restore {log} --from copy.db")
        assert run(f"wisp log count {log} --json")["events"] == run("wisp log count log.db --json")["events"]
