"""Interrupted or killed runs resume, within their own budget, and nobody else on the machine can read the written
files."""

import glob
import json
import os
import random
import sqlite3
import time

import pytest
from program import entries, exists, golden, mode, public_recipe, read, recipe, remove, run, running, sql, write

pytestmark = pytest.mark.usefixtures("cafe", "no_umask")
unlimited = (
    f"wisp train --recipe {recipe} --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 200"
    " --delta 0.001 --epsilon 4 --checkpoint run.ckpt --threads 1"
)
train = f"{unlimited} --budget 4"
TINY = """{"name": "tiny",
 "architecture": {"max_length": 8, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 16, "attend": "all"},
 "initialisation": {"table_deviation": 0.5},
 "training": {"epochs": 100, "expected_batch": 200, "num_records_public": 400},
 "dp_fp": {"mode": "aggregate", "micro_batches": 2},
 "privacy": {"noise_multiplier": 4, "delta": 0.001, "steps_per_charge": 10},
 "data": {"classes": ["bad", "good"], "catalogue": "public"}}
"""


@pytest.fixture(scope="module")
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def is_private(*files):
    """Others can read none of the files. ledgers.py checks ledgers and the files that SQLite keeps beside them."""
    return all(mode(file) == 0o600 for file in files)


def was_charged(ledger, times):
    try:
        return exists(ledger) and entries(ledger) >= times
    except sqlite3.Error:
        return False  # it is being made, or locked


def interrupted(signal, ledger, command):
    """Ends the command by the signal once three charges and a checkpoint are there. Returns its exit code."""
    with running(command) as process:
        for _ in range(1000):
            if exists("run.ckpt") and was_charged(ledger, 3):
                break
            time.sleep(0.02)
        assert exists("run.ckpt"), f"no checkpoint after three charges: {read('beside.err')}"
        assert is_private("run.ckpt")
        assert process.poll() is None, "the run was over before it could be interrupted"
        process.send_signal(signal)
        return process.wait()


@pytest.mark.parametrize("signal", (2, 15, 9), ids=("INT", "TERM", "KILL"))
def test_a_run(signal):
    ledger = f"{signal}.ledger"
    ended = interrupted(signal, ledger, f"{train} --out m.wisp --ledger {ledger} --json")
    if signal == 9:
        assert glob.glob("m.wisp.tmp-*"), "no room was kept for the model"
    else:
        assert ended == 130
        assert "run.ckpt resumes from step" in read("beside.err"), "it is not said from where the run resumes"
        assert not glob.glob("*.tmp-*"), "an interrupted run left something"
    assert not exists("m.wisp"), "an interrupted run left a model"
    j = run(f"{train} --out m.wisp --ledger {ledger} --privacy-json p.json --json").json
    assert j["resumed_from"] > 0 and j["steps"] <= 600 and 3.8 < j["epsilon"] <= 4, j
    assert j["steps"] == 600 or (j["steps_planned"] == 600 and "more was not allowed" in j["ended_early"]), j
    # Its statement has all charges, used or not, and names the filter as the source of the figure, because steps were
    # paid for beyond the plan.
    a = json.loads(read("p.json"))["accounting"]
    assert a["steps"] >= j["steps"] and a["loss_slack"] > 0 and a["epsilon"] == j["epsilon"], a
    assert a["accountant"].startswith("Renyi filter") == (a["composition"] == "adaptive"), a
    assert not exists("run.ckpt") and not glob.glob("*.tmp-*"), "a run that is complete left something"
    assert is_private("m.wisp", "p.json")
    remove("m.wisp", "p.json")


def test_without_a_limit_a_run_continues_beyond_its_target():
    # The output says so; an uninterrupted run has nothing to say.
    steps = "select coalesce(sum(cast(substr(mechanism, instr(mechanism, 'steps=') + 6) as integer)), 0) from entries"
    for _ in range(5):  # a kill between a save and the next charge loses nothing; then it is tried once more
        remove("no.ledger", "m.wisp")
        interrupted(9, "no.ledger", f"{unlimited} --out m.wisp --ledger no.ledger --json")
        r = run(f"{unlimited} --out m.wisp --ledger no.ledger --json")
        if sql("no.ledger", f"{steps} where purpose = 'training'") > 600:
            break
    assert "its target was 4: it was interrupted" in r.err, "five kills, and nothing is said of the target"
    assert r["resumed_from"] > 0 and r["steps"] == 600 and r["epsilon"] > 4.1
    r = run(f"{unlimited} --out m.wisp --ledger whole.ledger --json")
    assert "its target was" not in r.err
    remove("m.wisp")


def test_the_interval_of_checkpoints():
    plain = train.replace("--checkpoint run.ckpt", "--checkpoint-every 5")
    run(f"{plain} --out m.wisp --ledger x.ledger", 2, "is given without --checkpoint")
    run(f"{train} --checkpoint-every 0 --out m.wisp --ledger x.ledger", 2, "allowed are 1 step and more")
    assert "--checkpoint-every" in run("wisp train --help-all").out


def test_a_classifier():
    random.seed(5)
    labels = [random.randrange(2) for _ in range(400)]
    write("texts.txt", "".join(("bad\tthe film is dull\n", "good\tthe film is great\n")[label] for label in labels))
    write("tiny.json", TINY)
    classify = "wisp train --recipe tiny.json --labelled texts.txt --checkpoint run.ckpt --threads 1 --out c.wisp"
    classify += " --ledger texts.ledger --json"
    assert interrupted(2, "texts.ledger", classify) == 130
    r = run(classify)
    assert r["resumed_from"] > 0 and r["steps"] == 200
    assert is_private("c.wisp")


@pytest.mark.parametrize("part", ("head", "blocks"))
def test_a_part_of_an_encoder_that_stays_in_its_file(part):
    # The checkpoint of a head holds only the head.
    run(f"wisp convert {golden}/bert_classes --out encoder.wisp --dataset made-up")
    remove("run.ckpt")
    training = {"method": "phantom", "trains": part, "steps": 2000, "expected_batch": 40, "num_records_public": 400}
    privacy = {"noise_multiplier": 40, "delta": 0.001, "steps_per_charge": 10, "unit": "interaction"}
    data = {"classes": ["bad", "fair", "good"]}
    write("part.json", json.dumps({"name": "part", "training": training, "privacy": privacy, "data": data}))
    command = "wisp train --recipe part.json --model encoder.wisp --other-data --labelled texts.txt --threads 1"
    command += f" --checkpoint run.ckpt --out {part}.wisp --ledger {part}.ledger --json"
    assert interrupted(2, f"{part}.ledger", command) == 130
    r = run(command)
    assert r["resumed_from"] > 0 and r["steps"] == 2000


def test_the_files_that_other_commands_write_about_models_and_data_are_private_too():
    run("wisp convert base.wisp --out base.safetensors")
    run("wisp convert base.wisp --f16 --out small.wisp")
    run(f"wisp new --recipe {public_recipe} --num-items 10 --out new.wisp")
    assert is_private("base.safetensors", "small.wisp", "new.wisp")


def test_a_malformed_text_or_one_of_an_unknown_class_is_left_out():
    # A refusal would reveal it. So would a refusal because no text is left.
    first = "".join(read("texts.txt").splitlines(keepends=True)[:40])
    write("odd.txt", f"ugly\tthe film\n{first}no tab\n")
    odd = "wisp train --recipe tiny.json --epochs 1 --out c.wisp"
    said = "2 texts left out, the first: odd.txt, line 42: 1 field;"
    r = run(f"{odd} --labelled odd.txt --ledger odd.ledger --json", 0, said)
    assert r["records_dropped"] == 2 and "records_dropped" in r["not_private"] and r["steps"] == 2
    write("none.txt", "")
    write("words.txt", "dull\ngreat\n")
    run(f"{odd} --labelled none.txt --vocabulary words.txt --ledger none.ledger")
    assert entries("none.ledger") == 1, "a run on no texts was not charged like any other"
    run(f"{odd} --mode paper --labelled odd.txt", 3, "odd.txt, line 42: 1 field;")
