"""Figures for people and scripts. Spent epsilon is never shown smaller, and noise never larger, than it was. Every
figure that is computed on private data is called so, each time."""

import os
import re
import shutil
from pathlib import Path

import pytest
from program import copy, read, recipe, root, run, says, write

fit = "--data log.txt --num-records-public 60 --batch 20 --epochs 10 --delta 0.001"
train = f"wisp train --recipe {recipe} --model base.wisp {fit} --noise-multiplier 3.123456789 --out m.wisp"
TEXTS = """{"name": "texts",
 "architecture": {"max_length": 8, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8, "attend": "all"},
 "training": {"epochs": 1, "expected_batch": 2, "num_records_public": 4},
 "dp_fp": {"micro_batches": 1, "paper": {"noise_multiplier": 1}},
 "privacy": {"noise_multiplier": 1, "delta": 0.00001}, "data": {"catalogue": "public", "classes": ["bad", "good"]}}
"""


@pytest.fixture(scope="module", autouse=True)
def data(work_folder):
    copy(root / "models/cafe.wisp", "base.wisp")
    run("wisp synth --out log.txt --population device --users 60 --seed 3")


def number(after, text):
    """Returns the first number after a word, as it is printed."""
    return re.search(rf"{after} ([0-9.e+-]*)", text)[1]


def at_least(shown, true):
    """The shown number, read back, is not smaller than the true one, and at most a thousandth larger."""
    return true <= float(shown) <= true * 1.001


def local_only(result, *others):
    """All figures but some are computed on the data without a charge, and are listed."""
    return set(result["not_private"]) == set(result.json) - {"not_private", *others}


@pytest.mark.parametrize("sigma, q, steps", (
    (1, 0.01, 1000), (50, 0.001, 3), (2000, 0.001, 10), ("1e5", "1e-5", 1), (0.7, 0.04, 2000), (3.3, 0.01, 777),
))  # fmt: skip
def test_epsilons_over_six_orders_of_magnitude(sigma, q, steps):
    accounted = f"wisp privacy epsilon --sigma {sigma} --q {q} --steps {steps} --delta 1e-6"
    true, shown = run(f"{accounted} --json"), run(accounted).out
    for name, key in (("PLD     ", "pld"), ("RDP     ", "rdp"), ("GDP-CLT ", "gdp_clt")):
        assert at_least(number(f"{name} epsilon", shown), true[key]), name


@pytest.mark.parametrize("target", (0.5, 3, 8))
def test_calibrated_noise_is_printed_in_full(target):
    # Reading it back gives the same noise, whose epsilon meets the target.
    found = f"wisp privacy calibrate --epsilon {target} --delta 1e-5 --q 0.04 --steps 500"
    true, shown = run(f"{found} --json"), run(found).out
    assert number("noise multiplier", shown) == repr(true["sigma"])
    assert at_least(number("epsilon", shown), true["pld"])


def test_the_pure_epsilon_of_draws():
    draws = "wisp privacy decoding --support 10000 --lambda 1e-9 --samples 3 --delta 1e-6"
    assert at_least(number("pure     epsilon", run(draws).out), run(f"{draws} --json")["pure"])


def test_the_statements_at_the_end_of_a_run_about_its_model_and_its_ledger():
    out = run(f"{train} --ledger run.ledger", 0, "train 1/30 loss").out
    assert "noise multiplier 3.123456789" in out, "the noise is not printed in full"
    epsilon = run("wisp inspect m.wisp --json")["provenance"][-1]["epsilon"]
    assert at_least(number("privacy: epsilon", out), epsilon)
    assert at_least(number("everything together: epsilon", out), epsilon)


def test_all_figures_that_are_computed_on_the_data_without_a_charge_are_listed():
    r = run(f"{train} --ledger other.ledger --json")
    figures = {
        "records",
        "records_dropped",
        "gradient_norm",
        "clipped",
        "seconds",
        "planned_bytes",
        "validation",
        "test",
    }
    assert set(r["not_private"]) == set(r.json) & figures and "planned_bytes" in r["not_private"]
    assert local_only(run("wisp evaluate --model m.wisp --data log.txt --json"))


def test_evaluation_says_whom_it_skips():
    write("more.txt", read("log.txt") + "short tea-mint\nshort bagel-lentil\nu00001 unheard-of\n")
    said = "1 event of 1 item that the model does not know left out.*(local only)"
    r = run("wisp evaluate --model m.wisp --data more.txt", 0, said)
    assert "over 60 users" in r.out and says("^skipped: 1 users with fewer than 3 events", r.out)
    assert says("^local only", r.out)
    r = run("wisp evaluate --model m.wisp --data more.txt --json")
    assert r["users"] == 60 and r["users_skipped"] == 1 and r["unknown_events"] == 1 and r["unknown_items"] == 1


def without(pattern, path):
    return "".join(line for line in read(path).splitlines(keepends=True) if not re.search(pattern, line))


def test_by_sessions_each_is_a_history_of_its_own():
    # Even one of two events is.
    items = [line.split()[1] for line in read("log.txt").splitlines()]
    with open("log.csv", "w") as log, open("sessions.csv", "w") as sessions:
        log.write("user,item,time\n"), sessions.write("user,item,time\n")
        for n in range(60):
            for k in range(3):
                for e in range(2 if n < 5 and k == 2 else 4):
                    row = f"{items[(7 * n + 31 * k + e) % len(items)]},{100000 * k + 60 * e}\n"
                    log.write(f"u{n},{row}"), sessions.write(f"u{n}s{k},{row}")
    by_sessions = "--unit session --session-gap 1800"
    evaluate = "wisp evaluate --model m.wisp --data"
    assert "over 180 sessions" in run(f"{evaluate} log.csv {by_sessions}").out
    out = run(f"{evaluate} log.csv {by_sessions} --split validation").out
    assert "over 175 sessions" in out and says("^skipped: 5 sessions with fewer than 3 events", out)
    run(f"{evaluate} log.csv --unit session", 2, "--session-gap")
    run("wisp evaluate --model m.wisp --texts log.txt --unit day", 2, "--unit.* --data\\|--unit is of --data")
    # This equals a log in which each session is somebody's whole history.
    write("whole.csv", without("^u[0-4]s2,", "sessions.csv"))
    write("longer.csv", without("^u[0-4],.*,200...$", "log.csv"))
    assert run(f"{evaluate} longer.csv {by_sessions} --json").out == run(f"{evaluate} whole.csv --json").out


def test_a_plan_says_that_sessions_are_evaluated_by_themselves():
    # It does if lists leave out items of the history.
    run("wisp convert base.wisp --out base.safetensors")
    raw = Path("base.safetensors").read_bytes()
    assert raw.count(b'"wisp.allow_seen"') == 1
    Path("strict.safetensors").write_bytes(raw.replace(b'"wisp.allow_seen"', b'"else.allow_seen"'))
    run("wisp convert strict.safetensors --out strict.wisp --dataset public")
    for base in ("base", "strict"):
        for unit in ("user", "session --session-gap 1800"):
            plan = f"wisp plan --data log.csv --model {base}.wisp --epsilon 8 --delta 1e-5 --for '2 days' --steps 2"
            advice = run(f"{plan} --num-records-public 2000 --unit {unit} --dry-run --json")["advice"]
            told = any("each session is evaluated by itself" in line for line in advice)
            assert told == (base == "strict" and unit != "user")


def test_audits():
    audit = (
        f"lab audit run --recipe {recipe} --model base.wisp --data log.txt --num-records-public 60 --batch 20"
        " --steps 2"
    )
    r = run(f"{audit} --canaries 20 --ledger audit.ledger --json")
    drops = {"mean_drop_included", "mean_drop_excluded"}
    assert set(r["not_private"]) == {"records", "guesses", "correct", "bound", "refuted"} | drops
    membership = "lab audit membership --method ordinary --model base.wisp --data log.txt --steps 2"
    assert local_only(run(f"{membership} --json"), "confidence")
    assert says("^local only", run(membership).out), "an attack on private data"
    r = run("lab audit step --model base.wisp --noise-multiplier 4 --observations 40 --json")
    assert set(r["not_private"]) == {"reach", "mu", "epsilon", "refuted"}


def test_classifiers():
    write("texts.txt", "good\tthe film is great\nbad\tthe film is dull\ngood\tgreat\nbad\tdull\n")
    write("texts.json", TEXTS)
    classify = "wisp train --recipe texts.json --labelled texts.txt --threads 1 --json"
    r = run(f"{classify} --out texts.wisp --ledger texts.ledger")
    assert r["not_private"] == ["records", "records_dropped", "seconds"]
    assert local_only(run(f"{classify} --mode paper --out paper.wisp"), "no_guarantee")
    evaluate = "wisp evaluate --model texts.wisp --labelled texts.txt"
    assert local_only(run(f"{evaluate} --json"))
    assert says("^local only", run(evaluate).out), "the accuracy on private texts"


LOG = "--data log.db --model base.wisp"
PLAN = (
    f"wisp plan {LOG} --epsilon 4 --delta 1e-4 --for '4 days' --every '1 day' --unit user --num-records-public 30"
    " --evaluation"
)
NIGHT = f"wisp personalise --early {LOG} --out m.wisp --json"
TRAIN = f"wisp train --recipe {recipe} {LOG} --num-records-public 30 --batch 10 --epochs 2 --delta 0.001 --threads 1"
NEIGHBOURS = {
    "count": ["wisp log count log.db --json"],
    "list": ["wisp log list log.db --json"],
    "erase": ["wisp log erase log.db --user u00007 --json"],
    "prune": ["wisp log prune log.db --unit user --newest-per-user 2 --json"],
    "evaluate": [f"wisp evaluate {LOG} --json"],
    "train": [f"{TRAIN} --noise-multiplier 3 --reproducible-noise 1 --ledger l.ledger --out m.wisp --json"],
    "local": [f"{PLAN} local", NIGHT],
    "none": [
        f"{PLAN} none", NIGHT,
        "wisp report --ledger log.ledger --model base.wisp --out m.wisp --data log.db --html p.html --json",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_two_logs_that_differ_in_one_user_give_outputs_whose_differences_are_marked(name):
    if not os.path.exists("whole.db"):
        run("wisp synth --out whole.db --population device --users 30 --seed 5")
    said = []
    for which in ("whole", "less"):
        folder = f"{name}.{which}"
        os.mkdir(folder)
        shutil.copy("whole.db", f"{folder}/log.db")
        os.symlink("../base.wisp", f"{folder}/base.wisp")
        if which == "less":
            run("wisp log erase log.db --user u00007", cwd=folder)
        results = [run(command, cwd=folder) for command in NEIGHBOURS[name]]
        said.append([result.json for result in results if result.out.startswith("{")])
    for whole, less in zip(*said, strict=True):
        for key in (set(whole) | set(less)) - {"not_private"}:
            if whole.get(key) != less.get(key):
                marked = all(key in j.get("not_private", []) for j in (whole, less))
                assert marked, f"{name} has an exact figure without a mark: {key}, {whole.get(key)}, {less.get(key)}"
    assert said[0], "no command printed JSON"
