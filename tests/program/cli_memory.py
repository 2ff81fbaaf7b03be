"""Memory is known before a run: the plan equals the run's figure, and the C interface says the same."""

import json
import re

import pytest
from program import c_program, classify, edit, read, root, run, small, texts, train, write

pytestmark = pytest.mark.usefixtures("cafe")


held = f"{train} --reproducible-noise 1 --threads 2 --out held.wisp"
memory = "wisp inspect held.wisp --memory"


def recipe_with(name, training, **sections):
    """Writes NAME.json: the recipe with other keys of its training, and other sections."""
    changed = json.loads(read(root / "models/recipes/cafe-device.json"))
    changed["training"] |= training
    write(f"{name}.json", json.dumps(changed | sections))


def test_the_runs_figure():
    # The run's figure, and the parts of the total.
    r = run(f"{held} --ledger held.db --json")
    planned, records = r["planned_bytes"], r["records"]
    r = run(f"{memory} --method phantom --threads 2 --records {records} --json")
    said = (
        "total",
        "file_mapped",
        "threads",
        "method",
        "backend",
        "records",
        "another_thread",
        "for_a_cold_start",
        "noise_multiplier",
    )
    assert r["training"]["total"] == planned
    assert all(p["total"] == sum(v for k, v in p.items() if k not in said) for p in r.json.values())


def test_for_every_method_the_plan_equals_the_runs_figure_before_the_first_step():
    recipe_with("method", {"rgp": {"rank": 3}})
    records = run(f"{held} --ledger methods.db --json")["records"]
    for figures in (
        "rgp --rank 3",
        "fest --rows 90",
        "adafest --noise-multiplier 1 --batch 32",
        "adafest+ --noise-multiplier 1 --batch 32 --rows 90",
    ):
        method = figures.split()[0]
        rows = "--rows 90 --histogram-noise 5" if "rows" in figures else ""
        r = run(f"wisp train --recipe method.json {small} --method {method} {rows} --reproducible-noise 1 --threads 2"
            f" --out held.wisp --ledger held-{method}.db --json")
        planned = r["planned_bytes"]
        figures = f"--method {figures} --threads 2 --records {records}"
        r = run(f"{memory} {figures} --json")
        assert r["training"]["total"] == planned
        assert ("growth_at_most" in r["training"]) == method.startswith("adafest")
        r = run(f"{memory} --recipe method.json {figures}")
        assert "gradient_sums" in r.out, f"inspect --memory --method {method} printed"
    assert "records_at_most" in r.out and "1e-12" in r.out, "inspect --memory does not say what its bound holds for"
    r = run(memory)
    assert "activations" in r.out and "not copied" in r.out, "inspect --memory printed"
    run("wisp inspect held.wisp --method phantom", 2, "memory")
    run(f"{memory} --method rgp --rank 1000", 2, "rank is 1000, allowed are 1 to")
    recipe_with("full", {"rgp": {p: "full" for p in ("item_tables", "positions", "matrices", "vectors")}})
    run(f"{memory} --recipe full.json --method rgp --rank 4294967295", 2, "rank is 4294967295, allowed are 1 to 8192")
    run(f"{memory} --method phantom --rank 2", 2, "the method is not rgp")
    run(f"{memory} --method phantom --batch 32", 2, "^wisp: --batch is given")
    run(f"{memory} --method rgp --noise-multiplier 1", 2, "^wisp: --noise-multiplier is given")
    run(
        f"{memory} --method adafest --noise-multiplier 1 --batch 61 --records 60", 2, "--batch is 61, more than the 60"
    )
    for figure in (
        "--rank 3",
        "--rows 9",
        "--batch 32",
        "--noise-multiplier 1",
        "--records 60",
        "--num-records-public 60",
    ):
        run(f"{memory} {figure}", 2, "need --method or --recipe")
    run(f"{memory} --method fest", 2, "need --rows")
    run(f"{memory} --method adafest --rows 9",
        2, "the method is adafest: allowed is --method fest or adafest+, which train a fixed set of rows")
    run(f"{memory} --method adafest --records 60", 2, "need --noise-multiplier")
    run(f"{memory} --method adafest --noise-multiplier 1", 2, "need --records")


known = f"{memory} --recipe known.json --method adafest --noise-multiplier 1 --json"


def test_values_out_of_range_are_named():
    # Values out of range are named, whatever the method and the recipe are.
    for figure in (
        "--batch 0",
        "--records 0",
        "--num-records-public 0",
        "--noise-multiplier 0",
        "--noise-multiplier=-1",
    ):
        option, value = figure.replace("=", " ").split()
        run(f"{memory} --recipe method.json --method adafest {figure}", 2, f"^wisp: {option} is {value}, allowed are")
    # Without an option, the number of records, and the public one, come from the recipe.
    recipe_with("known", {"rgp": {"rank": 3}, "num_records_public": 6040, "expected_batch": 600})
    r = run(known)
    assert r["training"]["records"] == r["training"]["num_records_public"] == 6040
    assert 600 < r["training"]["records_at_most"] < 1200
    r = run(f"{known} --records 600 --num-records-public 600")
    assert r["training"]["num_records_public"] == r["training"]["records_at_most"] == 600
    r = run(f"{known} --num-records-public 3000")
    assert r["training"]["records"] == r["training"]["num_records_public"] == 3000
    run(f"{known} --num-records-public 599", 2, "--batch is 600, more than the 599 records")


def test_so_does_the_noise():
    # So does the noise, if the recipe has an epsilon: it is the noise that a run would find.
    plan = {"method": "adafest", "num_records_public": 6040, "expected_batch": 600, "steps": 60}
    recipe_with("costs", plan, privacy={"epsilon": 2, "delta": 1e-5, "unit": "user"})
    r = run("wisp privacy calibrate --epsilon 2 --delta 1e-5 --q 0.0993377 --steps 60 --json")
    noise = r["sigma"]
    r = run(f"{memory} --recipe costs.json --json")
    assert 0 <= r["training"]["noise_multiplier"] - noise < 0.001
    r = run(f"{memory} --recipe costs.json --noise-multiplier 2 --json")
    assert r["training"]["noise_multiplier"] == 2
    edit("costs.json", "published.json", r"1e-05", r"0.5")
    run(f"{memory} --recipe published.json", 4, "delta is 0.5, which is not below 1 / 6040")
    run(f"{memory} --method phantom --num-records-public 60", 2, "^wisp: --num-records-public is given, but")
    r = run(f"{memory} --recipe known.json --method phantom --threads 2 --json")
    assert r["training"]["records"] == 6040 and r["training"]["lists"] == 6040 * 12


def test_a_classifier():
    texts()
    run(f"{classify} --ledger texts.db")
    of_texts = "wisp inspect texts.wisp --memory"
    of_recipe = f"{of_texts} --recipe tiny.json"
    r = run(f"{of_recipe} --records 400 --threads 1 --json")
    assert r["training"]["mode"] == "aggregate" and r["training"]["total"] > r["training"]["activations"] > 0
    assert 200 < r["training"]["records_at_most"] < 400
    r = run(f"{of_recipe} --records 400")
    assert "exact while" in r.out, "inspect --memory of a classifier does not say what it holds for"
    run(f"{of_recipe} --method phantom", 2, "is a classifier")
    run(f"{of_recipe} --backend int8", 2, "is a classifier.* --backend")
    for option in ("--records 400", "--method phantom", "--batch 3"):
        run(f"{of_texts} {option}", 2, "is a classifier or an encoder, .*give --recipe")
    r = run(f"{of_texts} --json")
    assert r.json.keys() == {"inference"}
    assert r["inference"]["total"] == r["inference"]["activations"] + r["inference"]["packed_weights"]
    assert r["inference"]["another_thread"] > 0 and r["inference"]["packed_weights"] > 0
    r = run(of_texts)
    assert "not copied" in r.out, "inspect --memory of a classifier printed"
    r = run(f"{of_recipe} --threads 1 --json")
    assert r["training"]["records"] == r["training"]["num_records_public"] == 400
    assert 200 < r["training"]["records_at_most"] < 400
    r = run(f"{of_recipe} --num-records-public 800 --records 400 --json")
    assert r["training"]["num_records_public"] == 800 and 100 < r["training"]["records_at_most"] < 200
    run(f"{of_recipe} --num-records-public 199", 2, "--batch is 200, more than the 199 records")
    edit("tiny.json", "uncounted.json", r'"num_records_public": 400, *', r"")
    run(f"{of_texts} --recipe uncounted.json", 2, "which needs --records")


def test_in_c_an_app_lends_its_threads():
    c_program("lent_threads")
    lent = run("./lent_threads base.wisp log.db lent.db lent.wisp")
    r = run("wisp inspect base.wisp --memory --method phantom --threads 3 --records 60 --json")
    assert [str(r["inference"]["total"]), str(r["training"]["total"])] == lent.out.split()
    # C copies keys and names: one string each, and an error for one that does not fit.
    parts = ("activations", "packed_weights", "scores", "names")
    assert r["inference"]["names"] >= 2 * 480 * 24
    assert r["inference"]["total"] == sum(r["inference"][p] for p in parts)
    r = run("wisp inspect base.wisp --memory")
    assert re.search(r"^  names +[0-9]{5}", r.out, re.M) and "which the C interface copies" in r.out
