"""Runs that repeat. Reproducible noise has no guarantee, is named so, and has ledgers of its own. A run that is stopped
and resumed gives the same model as without a stop."""

import pytest
from program import exists, paid, public_recipe, run, running, same, train, wait_for

pytestmark = pytest.mark.usefixtures("cafe")


def test_reproducible_noise_has_no_guarantee():
    r = paid("o.wisp", "l.db")
    run(f"{train} --epsilon 4 --reproducible-noise 1 --out o2.wisp --ledger l.db", 4, "reproducible")
    r = run(f"{train} --reproducible-noise 1 --out r.wisp --ledger r.db --privacy-json r.json --json")
    assert r["epsilon"] is None
    r = run(f"{train} --reproducible-noise 1 --out r.wisp --ledger r.db")
    figures = "loss, records, records_dropped, gradient_norm, clipped, seconds, planned_bytes, test"
    assert f"local only, not private, for this device's owner: {figures}" in r.out
    r = run("wisp privacy --ledger r.db")
    assert "no guarantee" in r.out, "reproducible noise must be called what it is"
    run(f"{train} --epsilon 4 --out o2.wisp --ledger r.db", 4, "use a ledger of its own for experiments")
    assert not exists("o2.wisp"), "a refused run left a model behind"


def test_a_run_that_is_stopped_and_resumed_gives_the_same_model():
    # A run that is stopped and resumed gives the same model, bit for bit.
    resume = f"train --recipe {public_recipe} --data log.db --epochs 60 --batch 20 --threads 2"
    run(f"wisp {resume} --out whole.wisp")
    with running(f"wisp {resume} --out part.wisp --checkpoint run.ckpt"):
        wait_for("run.ckpt", 4)

    run(f"wisp {resume} --out part.wisp --checkpoint run.ckpt")
    assert same("whole.wisp", "part.wisp"), "a resumed run gives another model"
