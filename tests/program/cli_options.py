"""Training options that mean nothing, or lack others, are refused; and the effects of a data set's name."""

import re

import pytest
from program import ROOT, entries, exists, run, sql, train, write

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
    words = next(f["words"] for f in run("lab fields --json").json if f["path"] == "training.method")
    methods = set(words) - {"ordinary"}
    assert all(word in run("wisp inspect --help").out for word in words), "inspect --method lacks a method"
    for option in protecting:
        said = f"{option.split()[0]} is given, but the method is ordinary, which protects nothing"
        r = run(f"{train} --method ordinary {option} --out o.wisp", 2, said)
        assert methods == set(re.findall(r"[a-z]+\+?", r.err.split("a --method of")[1])) - {"or"}, r.err
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


def test_options_of_labelled_texts_and_of_other_data():
    # A run learns one of the three, and an option that the others have alone would mean nothing.
    labelled = f"wisp train --recipe {ROOT}/models/recipes/sst2-dp-fp.json --labelled t.txt --out c.wisp --ledger t.db"
    run(f"{labelled} --data log.db", 2, "--labelled and --data are both given")
    run(f"{labelled} --texts log.db", 2, "--labelled and --texts are both given")
    for option in (
        "--privacy-json p.json",
        "--re-attention",
        "--rows 3",
        "--histogram-noise 5",
        "--record line",
        "--tokenizer bytes",
        "--item-names n.tsv",
        "--table t",
        "--time-column t",
    ):
        run(f"{labelled} {option}", 2, f"{option.split()[0]} is not for labelled texts")
    for option in ("--mode paper", "--vocabulary words.txt", "--text-column a", "--label-column a"):
        run(f"{train} --out o.wisp --ledger t.db {option}", 2, f"{option.split()[0]} is for labelled texts")
    run("wisp train --labelled t.txt --out c.wisp", 2, "--recipe is required: that of a classifier names its classes")
    evaluate = "wisp evaluate --model base.wisp --labelled t.txt"
    run(f"{evaluate} --data log.db", 2, "--labelled and --data are both given")
    run(f"{evaluate} --unit day", 2, "--unit and --session-gap are of --data")
    run(f"{evaluate} --backend int8", 2, "allowed with --labelled is simd")
    run("wisp evaluate --model base.wisp --data log.db --label-column a", 2, "--label-column is for labelled texts")
    assert not exists("t.db") and not exists("c.wisp"), "a refused run left something behind"


def test_a_log_is_a_sqlite_file():
    write("log.csv", "user,item,time\nanna,tea-mint,5\n")
    said = "log.csv: the \\(log\\|copy\\) is no SQLite file, .*`wisp log import LOG --data FILE`"
    for command in ("count log.csv", "erase log.csv --user anna", "restore log.db --from log.csv"):
        run(f"wisp log {command}", 3, said)
    run("wisp log import log.csv --data log.csv", 3, "log.csv: the log is no SQLite file")
