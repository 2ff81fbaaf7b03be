"""The steps and the sampling probability of private runs are those of the declared number of users or texts, in the
program and through the C interface. The log has 60 users."""

import contextlib
import re
import sqlite3

import pytest
from program import c_program, edit, recipe, root, run, write

pytestmark = pytest.mark.usefixtures("cafe")


def charged(ledger):
    """Returns how many steps were charged, and with which sampling probabilities."""
    with contextlib.closing(sqlite3.connect(ledger)) as database:
        mechanisms = [row[0] for row in database.execute("select mechanism from entries")]
    steps = sum(int(re.search(r"steps=(\d+)", m)[1]) for m in mechanisms)
    return steps, {float(re.search(r"sampling_probability=(\S+)", m)[1]) for m in mechanisms}


@pytest.mark.parametrize("declared", (30, 180))
def test_users(declared):
    steps = (declared + 19) // 20  # one epoch of batches of 20
    run(f"wisp train --recipe {recipe} --model base.wisp --data log.db --batch 20 --epochs 1 --noise-multiplier 3"
        f" --delta 1e-4 --num-records-public {declared} --out o.wisp --ledger p{declared}.db")
    assert charged(f"p{declared}.db") == (steps, {20 / declared}), "wisp train"
    c_program("declared")
    r = run(f"./declared base.wisp log.db c{declared}.db c{declared}.wisp {declared}")
    assert r.out == f"{steps}\n", "wisp_personalise takes other steps"
    assert charged(f"c{declared}.db") == (steps, {20 / declared}), "wisp_personalise"


@pytest.mark.parametrize("declared", (40, 400))
def test_texts(declared):
    write("texts.txt", "good\ta fine film\nbad\ta dull bore\n" * 40)
    edit(root / "models/recipes/sst2-dp-fp.json", "texts.json", r'"classes": \[[^]]*\]', '"classes": ["good", "bad"]')
    edit("texts.json", "texts.json", '"micro_batches": 32', '"micro_batches": 2')
    run("wisp train --recipe texts.json --labelled texts.txt --batch 20 --epochs 1 --noise-multiplier 3 --delta"
        f" 1e-4 --num-records-public {declared} --out t.wisp --ledger t{declared}.db")
    assert charged(f"t{declared}.db") == (declared // 20 * 2, {20 / declared / 2})
