"""Every file of tests/golden/0.1 is read, says what the JSON beside it says, and can be used further
(tests/golden/README.md)."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from program import PROGRAMS, c_program, checksum, copy, exists, read, root, run, says, sql

ROWS = "select id, time, run, purpose, noise, mechanism, loss_slack from entries order by id"
WITH_LEDGERS = ("closed.anchor", "open.checkpoint")  # read with their ledgers
train = "wisp train --recipe recipe.json --model f32.wisp --data log.db --dataset 'golden log' --threads 1"
golden = root / "tests/golden/0.1"
FILES = sorted(
    path.name
    for path in golden.iterdir()
    if path.is_file() and path.suffix not in (".json", ".txt") and path.name not in WITH_LEDGERS
)


@pytest.fixture(scope="module", autouse=True)
def files(work_folder):
    for path in filter(Path.is_file, golden.iterdir()):
        shutil.copy(path, path.name)


def alike(was, now, where=""):
    """The same is said, except for the rounding of another processor. New keys may stand beside it."""
    assert type(was) is type(now) or {type(was), type(now)} == {int, float}, (where, was, now)
    if isinstance(was, dict):
        for key in was:
            assert key in now, (where, key)
            if key == "not_private":  # a list of names
                assert set(was[key]) <= set(now[key]), (where, key, was[key], now[key])
            elif key != "created_by":
                alike(was[key], now[key], f"{where}.{key}")
    elif isinstance(was, list):
        assert len(was) == len(now), (where, was, now)
        for i, pair in enumerate(zip(was, now)):
            alike(*pair, f"{where}[{i}]")
    elif isinstance(was, float):
        assert abs(was - now) <= 1e-5 * (1 + abs(was)), (where, was, now)
    else:
        assert was == now, (where, was, now)


def command_that_reads(file):
    if file == "adapter.wisp":
        return (
            "wisp recommend --model f32.wisp --adapter adapter.wisp --history i1,i2,i3 --count 7 --allow-seen --json"
        )
    if file.endswith(".wisp"):
        run(f"wisp inspect {file} --verify")
        return f"wisp recommend --model {file} --history i1,i2,i3 --count 7 --allow-seen --json"
    if file.endswith(".ledger"):
        anchor = "--anchor closed.anchor" if file == "closed.ledger" else ""
        return f"wisp privacy --ledger {file} {anchor} --delta 1e-3 --json"
    assert file == "log.db", f"nobody reads {file}"
    return "wisp log count log.db --json"


@pytest.mark.parametrize("file", FILES)
def test_a_file_says_what_it_said(file):
    before = checksum(file)
    alike(json.loads(read(f"{file}.json")), run(command_that_reads(file)).json)
    assert checksum(file) == before, f"{file} was changed by who only reads"


def test_no_file_is_missing():
    assert len(FILES) == 9


def test_the_answers_of_every_port_are_the_programs():
    assert run(f"{root}/tests/golden/answers {golden} {PROGRAMS['wisp']}").out == read("answers.txt")


def test_c_answers_alike():
    c_program("golden_answers")
    copy_of_files = Path("answered")
    shutil.copytree(golden, copy_of_files)
    assert says("^11 answers hold", run(f"./golden_answers {copy_of_files}").out)
    text = read("answers.txt")
    for line, wrong, said in (
        ("i5 1.72697365", "i5 1.7280", "another score"),
        ("i5 1.72697365 i3", "i5 1.72697365 i6", "another item"),
        ("log.db 120", "log.db 121", "another number of events"),
        ("u20 i5", "u20 i6", "another item"),
        ("0.72296717", "0.7230", "the budget states another epsilon"),
    ):
        assert line in text
        (copy_of_files / "answers.txt").write_text(text.replace(line, wrong, 1))
        run(f"./golden_answers {copy_of_files}", 1, said)


def test_a_kept_statement_agrees_with_its_ledger():
    r = run("wisp privacy check closed.ledger.json --ledger closed.ledger")
    assert says("^closed.ledger.json: holds", r.out)


def rows(ledger):
    with contextlib.closing(sqlite3.connect(ledger)) as database:
        return database.execute(ROWS).fetchall()


def test_the_stopped_run_resumes_from_its_checkpoint():
    # Its charges stay, and the run is not begun anew.
    past = rows("open.ledger")
    options = "--noise-multiplier 40 --epochs 2000 --checkpoint open.checkpoint --out out.wisp"
    run(f"{train} --ledger open.ledger {options}")
    now = rows("open.ledger")
    assert now[: len(past)] == past, "open.ledger lost something"
    assert len(now) >= 80, "the run was not paid for to its end"
    assert sql("open.ledger", "select count(distinct run) from entries") == 1, "the run was begun anew"
    assert not exists("open.checkpoint"), "a finished run leaves its checkpoint"
    # The next run needs the anchor and stands in the same ledger.
    run(f"{train} --ledger closed.ledger --anchor closed.anchor --noise-multiplier 8 --epochs 1 --out next.wisp")
    assert sql("closed.ledger", "select count(distinct run) from entries") == 2, "the next run is not in the ledger"


def test_a_ledger_of_another_version_is_refused_and_stays_as_it_is():
    copy(golden / "open.ledger", "other.ledger")
    sql("other.ledger", "pragma user_version = 2")
    before = checksum("other.ledger")
    said = "has version 2, this build reads version 1; a newer build wrote it"
    run("wisp privacy --ledger other.ledger --delta 1e-3", 3, said)
    assert checksum("other.ledger") == before, "a refused ledger was changed"
