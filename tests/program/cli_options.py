"""Training options that mean nothing, or lack others, are refused; and the effects of a data set's name."""

import pytest
from program import entries, exists, run, sql, train

pytestmark = pytest.mark.usefixtures("cafe")


fest = f"{train} --out o.wisp --ledger fest.db --dataset 'cafe log' --epsilon 4"


def test_options_that_would_mean_nothing_are_refused():
    # Options that would mean nothing are refused; the needs of --rows and of a selection are named.
    protecting = (
        "--epsilon 1",
        "--noise-multiplier 1",
        "--ledger x.db",
        "--budget 1",
        "--rows 4",
        "--re-attention",
        "--histogram-noise 5",
        "--privacy-json p.json",
        "--reproducible-noise 3",
    )
    for option in protecting:
        said = f"{option.split()[0]} is given, but the method is ordinary, which protects nothing"
        run(f"{train} --method ordinary {option} --out o.wisp", 2, said)
    run(f"{train} --epsilon 4 --noise-multiplier 2 --out o.wisp --ledger x.db", 2, "choose one")
    for method in ("phantom", "rgp", "adafest"):
        run(f"{train} --method {method} --rows 4 --out o.wisp --ledger x.db",
            2, f"--rows is given, but the method is {method}")
    run(f"{fest} --method fest --rows 20",
        2, "fest with a private selection needs .*--histogram-noise, or privacy.histogram_noise")
    run(f"{fest} --method adafest+", 2, "adafest+: rows .*--rows, or training.sparse.rows")
    run(f"{fest} --method fest --rows 20 --histogram-noise 0", 2, "--histogram-noise is")
    assert not exists("x.db") and not exists("fest.db"), "a refused run was charged, or made a ledger"
    run(f"{fest} --method fest --rows 20 --histogram-noise 5")
    assert sql("fest.db", "select purpose from entries limit 1") == "item popularity"


def test_a_ledger_belongs_to_one_data_set():
    # Without a name, the data set has the file's name.
    before = entries("fest.db")
    refused = "is of the data set 'cafe log', and what is to be charged is"
    run(f"{train} --epsilon 1 --out o.wisp --ledger fest.db --dataset other", 4, f"{refused} 'other'")
    run(f"{train} --epsilon 1 --out o.wisp --ledger fest.db", 4, f"{refused} 'log.db'")
    assert entries("fest.db") == before, "a run on other data was charged"
    r = run("wisp inspect o.wisp --json")
    assert r["provenance"][-1]["dataset"] == "cafe log"
    run(f"{train} --epsilon 1 --out o.wisp --ledger fest.db --dataset 'cafe log'")
    r = run("wisp inspect o.wisp --json")
    assert r["provenance"][-1]["dataset"] == "cafe log"
