"""Training that would have no guarantee, or no place to write to, is refused before anything is charged."""

import os

import pytest
from program import edit, exists, public_recipe, recipe, run, small, tiny, train

pytestmark = pytest.mark.usefixtures("cafe")


def test_runs_that_would_have_no_guarantee():
    run(f"{train} --out o.wisp", 4, "ledger")
    edit(recipe, "shuffled.json", r'"sampling": "poisson"', r'"sampling": "shuffled"')
    run(f"wisp train --recipe shuffled.json {small} --out o.wisp --ledger l.db", 4, "shuffled")
    run(f"wisp train --recipe {recipe} {tiny} --delta 0.016666666666666666 --out o.wisp --ledger l.db",
        4, "not below 1 / 60")
    run(f"wisp train --recipe {recipe} {tiny} --delta 1e-9 --epsilon 0.000001 --out o.wisp --ledger l.db",
        4, "cannot be met")
    run(f"wisp train --recipe {public_recipe} --method phantom --data log.db --out o.wisp --ledger l.db", 4, "public")
    run(f"{train} --epsilon 1000 --out o.wisp --ledger l.db", 2, "1e-06 to 100")
    endless = "--model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs nan --delta 0.001"
    run(f"wisp train --recipe {recipe} {endless} --out o.wisp --ledger l.db", 2, "epochs is")
    assert not exists("o.wisp"), "a refused run left a model behind"
    assert not exists("l.db"), "a refused run was charged, or made a ledger"


def test_outputs_that_cannot_be_written_are_found_before_anything_is_charged():
    os.mkdir("folder.wisp")
    for out in ("nowhere/o.wisp", "folder.wisp", "o/"):

        run(
            f"{train} --epsilon 4 --out {out} --ledger unwritten.db",
            3 if out == "nowhere/o.wisp" else 2,
            out.rstrip("/"),
        )
    for option in ("--privacy-json", "--checkpoint"):
        run(f"{train} --epsilon 4 --out o.wisp {option} nowhere/p --ledger unwritten.db", 3, "nowhere")
    assert not exists("unwritten.db") and not exists("o.wisp")
