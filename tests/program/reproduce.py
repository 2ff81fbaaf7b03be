"""wisp-lab reproduce and tools/lab/reproduce/draw.py: a tiny table on synthetic data, run, resumed, damaged, drawn."""

import json
import math
import os
import signal
import statistics
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from program import ROOT, copy, edit, entries, exists, read, remove, root, run, running, same, says, write

BASE = """{"name": "tiny",
 "architecture": {"max_length": 20, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8},
 "training": {"method": "phantom", "sampling": "poisson", "epochs": 1, "expected_batch": 20, "num_records_public": 60,
  "seed": 7},
 "privacy": {"noise_multiplier": 1.2, "delta": 0.001}, "data": {"hold_out": "test", "catalogue": "public"}}
"""
TINY = """{"name": "tiny", "title": "Tiny <table>", "reference": "nobody, table 0", "row_title": "method",
 "column_title": "epsilon", "data": {"label": "synthetic", "users": 60, "public": true}, "base": "base.json",
 "metrics": [{"field": "ndcg@10", "title": "NDCG@10 (%)", "scale": 100, "digits": 2},
             {"field": "step_ms", "title": "Step (ms)"}],
 "plot": {"kind": "bars", "field": "ndcg@10"}, "notes": ["The answer.", "A note."],
 "cells": [{"row": "private", "column": "4", "seeds": [1, 2], "published": {"ndcg@10": 0.05},
            "published_deviation": {"ndcg@10": 0.01}},
           {"row": "not private", "column": "none",
            "overrides": {"training": {"method": "ordinary", "sampling": "shuffled"}}, "seeds": [1, 2]},
           {"row": "private", "column": "speed", "kind": "bench",
            "bench": {"what": "clipping", "method": "phantom", "items": 50, "batch": 8, "length": 10, "repeats": 2}}]}
"""
PLAIN = """{"name": "plain",
 "architecture": {"max_length": 20, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8},
 "training": {"method": "ordinary", "sampling": "shuffled", "epochs": 1, "expected_batch": 10, "seed": 7},
 "data": {"hold_out": "test"}}
"""
tiny = "lab reproduce tiny.json --data log.txt --out r.jsonl --threads 1"
drawn = f"{ROOT}/tools/lab/reproduce/draw.py --markdown t.md --svg t.svg --table"


def lines(path="r.jsonl"):
    return [json.loads(line) for line in read(path).splitlines()]


@pytest.fixture(scope="module", autouse=True)
def data(work_folder):
    os.mkdir("tmp")
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = f"{work_folder}/tmp"
    run("wisp synth --out log.txt --population device --users 60 --seed 3")
    write("base.json", BASE)
    write("tiny.json", TINY)
    write("plain.json", PLAIN)
    yield
    os.environ.pop("TMPDIR")
    if before is not None:
        os.environ["TMPDIR"] = before


@pytest.mark.parametrize("name", sorted(path.stem for path in (root / "models/reproduce").glob("*.json")))
def test_a_shipped_table(name):
    # Every cell's recipe is read and checked.
    cells = run(f"lab reproduce {name} --list --json", cwd=root).json
    assert all(cell["seeds"] for cell in cells if cell["kind"] == "train"), "a cell without seeds"
    assert len({cell["recipe"] for cell in cells}) == len(cells), "two cells with one recipe"


def test_words_that_are_refused_before_anything_is_run():
    run(f"{tiny} --cell private/5", 2, "private/4, not private/none, private/speed")
    run("lab reproduce no-such-table --list", 2, "no-such-table")
    run(f"{tiny} --seed 9", 2, "seed 9")
    run("lab reproduce tiny.json --data log.txt", 2, "--out")
    run("lab reproduce tiny.json --out r.jsonl", 2, "--data")
    said = "tables are looked for in ./models/reproduce, which is not here.*path"
    run("lab reproduce phantom-table-2 --list", 2, said)
    os.mkdir("a-folder")
    assert not run("lab reproduce tiny.json --data log.txt --out log.txt/r.jsonl", 3, "log.txt").out
    assert not run("lab reproduce tiny.json --data log.txt --out a-folder", 2, "a-folder").out
    assert not exists("r.jsonl"), "a refused run wrote results"


@pytest.mark.parametrize("old, new, said", (
    ('"method": "ordinary"', '"methd": "ordinary"', r"cells\[1\].*methd"),
    ('"overrides"', '"override"', "'override'"),
    ('"column": "speed", "kind": "bench"', '"column": "4", "kind": "bench"', "twice"),
    ('"kind": "bench"', '"kind": "bench", "seeds": [1]', "'seeds'"),
    ('"bench": {', '"decode": {', r"cells\[2\].bench is missing"),
    ('"method": "phantom"', '"method": "dense"', "ordinary, phantom and ghost"),
))  # fmt: skip
def test_a_table_that_cannot_be(old, new, said):
    edit("tiny.json", "wrong.json", old, new)
    run("lab reproduce wrong.json --list", 3, said)


def test_the_number_of_users():
    edit("tiny.json", "users.json", '"users": 60', '"users": 61')
    run("lab reproduce users.json --data log.txt --out r.jsonl", 3, "60 users.*61")
    assert not exists("r.jsonl"), "a refused run wrote results"


def test_a_cell_that_could_not_train_is_named_before_the_first_cell_is_run():
    late = "lab reproduce late.json --data log.txt --out r.jsonl"
    overrides = '"overrides": {"training": {"method": "ordinary", "sampling": "shuffled"}}'
    edit("tiny.json", "late.json", overrides, '"overrides": {"privacy": {"delta": 0.5}}')
    assert not run(late, 4, "tiny, cell not private/none: delta is 0.5").out
    edit("tiny.json", "late.json", '"method": "ordinary", "sampling": "shuffled"', '"sampling": "shuffled"')
    run(late, 4, "cell not private/none: .*shuffled")
    lacks = "data.min_item_events is 2, allowed is 1 where the list of items"
    for old, new, said in (
        (', "catalogue": "public"', "", 'needs "catalogue": "public" under data'),
        ('"num_records_public": 60,', "", "needs training.num_records_public"),
        ('"hold_out"', '"min_item_events": 2, "hold_out"', lacks),
    ):
        edit("base.json", "lacking-base.json", old, new)
        edit("tiny.json", "lacking.json", '"base.json"', '"lacking-base.json"')
        r = run("lab reproduce lacking.json --data log.txt --out r.jsonl", 4, f"tiny, cell private/4: .*{said}")
        assert not r.out, "a cell that lacks a declaration is found after a run"
    assert not exists("r.jsonl"), "a refused run wrote results"


def test_data_that_the_table_does_not_declare_public_is_charged_as_wisp_train_charges_it():
    # Data whose size the table does not say is charged too. The named ledger pays.
    own = "lab reproduce own.json --data log.txt --out own.jsonl"
    for declared in (', "public": true', '"users": 60, '):
        edit("tiny.json", "own.json", declared, "")
        run(own, 4, "its data is not declared public: --ledger is needed")
        assert not exists("own.jsonl"), "a run that was refused wrote results"
    r = run(f"{own} --cell private/4 --seed 1 --ledger own.ledger")
    assert entries("own.ledger") > 0, "a private run on own data was not charged"
    assert "local only" in r.out, "figures of own data are not called local"
    local = lines("own.jsonl")[0]["not_private"]
    assert "ndcg@10" in local and "planned_bytes" in local and "epsilon" not in local
    run(f"{own} --cell 'not private/none' --seed 1")
    run("lab reproduce tiny.json --data log.txt --out r.jsonl --ledger own.ledger", 2, "runs on it are not charged")


def test_one_cell_then_the_missing_ones_then_nothing():
    r = run(f"{tiny} --cell private/4 --seed 2 --json")
    assert [json.loads(line)["seed"] for line in r.out.splitlines()] == [2]
    assert len(lines()) == 1
    run(f"{tiny} --skip-done")
    j = lines()
    cells = [("private", 2), ("private", 1), ("not private", 1), ("not private", 2), ("private", None)]
    assert [(line["row"], line.get("seed")) for line in j] == cells
    for line in j[:2]:
        assert 2.07 < line["epsilon"] < 2.08 and line["delta"] == 0.001 and line["noise_multiplier"] == 1.2
        assert line["seconds"] > 0 and line["planned_bytes"] > line["record_state_bytes"] > 0
        assert "cores" in line["device"]
    assert not any("epsilon" in line for line in j[2:])
    for line in j[:4]:
        assert line["steps"] == 3 and line["threads"] == 1 and line["users"] == 60
        assert 0 <= line["ndcg@10"] <= line["hit@10"] <= 1
    assert j[2]["ndcg@10"] != j[3]["ndcg@10"] and j[2]["recipe"] == j[3]["recipe"]
    assert j[0]["recipe"] == j[1]["recipe"] != j[2]["recipe"] and len(j[0]["recipe"]) == 16
    command = "wisp-lab reproduce tiny --data log.txt --out r.jsonl --cell 'not private/none' --seed 1 --threads 1"
    assert j[2]["command"] == command
    run(f"{tiny} --skip-done", 0, "nothing is left")
    assert len(lines()) == 5
    r = run("lab reproduce tiny.json --list --out r.jsonl")
    assert says("private/4 .*2 of 2 done", r.out), "--list does not count"
    run(f"{tiny} --cell private/4 --seed 1")
    assert len(lines()) == 6, "a run again without --skip-done"
    assert not os.listdir("tmp"), "temporary ledgers are left behind"


def test_with_another_recipe_the_old_lines_no_longer_count():
    edit("base.json", "base.json", "1\\.2", "1.3")
    r = run("lab reproduce tiny.json --list --out r.jsonl")
    assert says("private/4 .*0 of 2 done", r.out), "results of another recipe count as done"
    write("base.json", BASE)


def test_a_stopped_run_leaves_nothing():
    edit("base.json", "long-base.json", '"epochs": 1', '"epochs": 1000000')
    edit("tiny.json", "long.json", '"base.json"', '"long-base.json"')
    edit("long.json", "long.json", '"tiny"', '"long"')
    command = "lab reproduce long.json --data log.txt --out long.jsonl --cell 'not private/none'"
    with running(command) as process:
        for _ in range(200):
            if os.listdir("tmp"):
                break
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130, read("beside.err")
    assert not exists("long.jsonl") and not os.listdir("tmp"), "a cancelled run left something"


def test_programs_that_append_at_once_all_succeed():
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: run(f"{tiny} --cell 'not private/none' --seed 1"), range(12)))
    j = lines()
    assert len(j) == 18
    assert len({line["ndcg@10"] for line in j if line["row"] == "not private" and line["seed"] == 1}) == 1


def test_measured_cells():
    # Those that differ only in the method are measured together; they need no data.
    clipping = {"what": "clipping", "items": 50, "batch": 8, "length": 10, "repeats": 2}
    sparse = {"what": "sparse", "items": 600, "batch": 8, "repeats": 4}
    cells = [
        {"row": method, "column": "8", "kind": "bench", "bench": clipping | {"method": method}}
        for method in ("ordinary", "phantom", "ghost")
    ] + [
        {"row": row, "column": "600", "kind": "bench", "bench": sparse | {"method": method}}
        for row, method in (("sparse", "adafest"), ("dense", "dense"))
    ]
    table = {"name": "measured", "title": "Measured", "reference": "nobody", "data": {"label": "none"}, "cells": cells}
    table["metrics"] = [{"field": "step_seconds", "title": "Step"}]
    table["plot"] = {"kind": "lines", "field": "step_seconds", "log": True}
    write("measured.json", json.dumps(table))
    edit("measured.json", "few.json", '"items": 600', '"items": 50')
    run("lab reproduce few.json --list", 3, "512 items or more")
    measured = "lab reproduce measured.json --out m.jsonl --threads 2"
    run(f"{measured} --seed 1", 2, "--seed is of cells that train")
    assert not exists("m.jsonl"), "a refused measurement wrote results"
    run(measured)
    j = lines("m.jsonl")
    together = [line["together"] for line in j]
    assert len(j) == 5 and len(set(together[:3])) == len(set(together[3:])) == 1 and together[0] != together[3]
    for line in j[:3]:
        assert abs(line["records_per_second"] * line["step_seconds"] - 8) < 1e-6
        assert line["batch"] == 8 and line["items"] == 50
    assert j[2]["memory_bytes"] == j[1]["memory_bytes"] + 8 * 50 * 50 * 4
    assert j[2]["memory_bytes_one_record_per_thread"] == j[1]["memory_bytes"] + 2 * 50 * 50 * 4
    assert j[2]["step_seconds"] > j[1]["step_seconds"] and j[2]["gram_records_measured"] == 8
    assert j[2]["gram_sample_multiplied_by"] == 2 and j[3]["steps_measured"] == 4 and j[4]["steps_measured"] == 3
    assert abs(j[3]["dense_over_adafest"] * j[3]["step_seconds"] / j[4]["step_seconds"] - 1) < 1e-9
    assert j[0]["command"] == "wisp-lab reproduce measured --out m.jsonl --cell ordinary/8 --threads 2"
    assert len({line["recipe"] for line in j}) == 5
    run(f"{measured} --skip-done", 0, "nothing is left")
    run(f"{measured} --cell ghost/8")
    j = lines("m.jsonl")
    assert len(j) == 6 and j[5]["row"] == "ghost" and j[5]["together"] != j[2]["together"]
    run(f"{ROOT}/tools/lab/reproduce/draw.py --table measured.json --results m.jsonl --markdown m.md --svg m.svg")


def test_lists_without_training():
    # They are those of `wisp evaluate --baselines`, and cells that train and have three runs are not counted with them.
    table = json.loads(TINY)
    row = lambda name: {"row": name, "column": "infinite", "kind": "baseline", "baseline": name}
    table |= {"name": "plain", "cells": [row("popularity"), row("transitions"), table["cells"][0]]}
    write("plain-table.json", json.dumps(table))
    plain = "lab reproduce plain-table.json --threads 1 --out plain.jsonl --data log.txt"
    for old, new, said in (
        ('"baseline": "popularity"', '"baseline": "popular"', 'allowed are "popularity" and "transitions"'),
        ('"baseline": "popularity"', '"seeds": [1], "baseline": "popularity"', "'seeds'"),
    ):
        edit("plain-table.json", "wrong.json", old, new)
        run("lab reproduce wrong.json --list", 3, said)
    edit("plain-table.json", "users.json", '"users": 60', '"users": 61')
    run("lab reproduce users.json --data log.txt --out r-users.jsonl --cell popularity/infinite",
        3, "has 60 users and .* items, the table wants 61")
    run("lab reproduce plain-table.json --out plain.jsonl --cell popularity/infinite", 2, "--data is needed")
    assert not exists("plain.jsonl") and not exists("r-users.jsonl"), "a refused run wrote results"
    run(plain)
    run("wisp new --recipe plain.json --catalogue public --data log.txt --out fresh.wisp")
    baselines = run("wisp evaluate --model fresh.wisp --data log.txt --baselines --json")["baselines"]
    for line in lines("plain.jsonl")[:2]:
        assert {name: line[name] for name in ("ndcg@10", "hit@10")} == baselines[line["row"]] and line["users"] == 60
    run(f"{plain} --skip-done", 0, "nothing is left")
    run(f"{drawn} plain-table.json --results plain.jsonl")
    popular = f"| popularity | {100 * baselines['popularity']['ndcg@10']:.2f} |"
    assert popular in read("t.md") and "A cell is the mean over its 2 runs" in read("t.md")
    # On data that nobody declared public they are local.
    edit("plain-table.json", "own-table.json", ', "public": true', "")
    run("lab reproduce own-table.json --out own-plain.jsonl --data log.txt --cell popularity/infinite")
    assert "ndcg@10" in lines("own-plain.jsonl")[0]["not_private"]


def decode_table():
    uniform = {"mode": "uniform", "composition": "pure", "samples": 100}
    cells = (
        ("uniform", "0", uniform | {"epsilon": 1e-6}),
        ("uniform", "all", uniform | {"epsilon": 5000}),
        ("model", "all", {"mode": "plain"}),
        ("uniform base 9", "0", uniform | {"epsilon": 1e-6, "support": "base:9"}),
        ("base", "all", {"mode": "base"}),
        ("anchored", "0", {"mode": "anchored", "composition": "pure", "epsilon": 1e-4, "samples": 100}),
        ("anchored", "4", {"mode": "anchored", "composition": "pld", "epsilon": 4, "delta": 1e-6, "samples": 100}),
    )
    table = {"name": "decode", "title": "Decode", "reference": "nobody", "data": {"label": "synthetic"}}
    table["metrics"] = [{"field": "perplexity", "title": "Perplexity"}]
    table["plot"] = {"kind": "lines", "field": "perplexity"}
    table["cells"] = [{"row": row, "column": column, "kind": "decode", "decode": d} for row, column, d in cells]
    return table


def test_the_perplexity_of_private_sampling():
    public, private = [], []
    for line in read("log.txt").splitlines(keepends=True):
        (public if int(line.split()[0][1:]) % 3 == 0 else private).append(line)
    write("public.txt", "".join(public))
    write("private.txt", "".join(private))
    run("wisp new --recipe plain.json --catalogue public --data log.txt --out new.wisp")
    run("wisp train --recipe plain.json --model new.wisp --data public.txt --dataset shipped --out shipped.wisp")
    run("wisp train --recipe plain.json --model shipped.wisp --data private.txt --dataset own --out own.wisp")
    run("wisp train --recipe base.json --model new.wisp --data log.txt --out safe.wisp --ledger safe.ledger")
    run("wisp new --recipe plain.json --catalogue public --data public.txt --out few.wisp")
    decode = "lab reproduce decode.json --data private.txt --out d.jsonl"
    anchors = "--model own.wisp --base shipped.wisp --public-dataset shipped"
    table = decode_table()
    write("decode.json", json.dumps(table))
    said = "whose perplexity no ledger pays for, and its data is not declared public"
    run(f"{decode} {anchors}", 4, said)
    users = {}
    for line in private:
        user, item = line.split()[:2]
        users.setdefault(user, []).append(item)
    table["data"] |= {"public": True, "users": len(users)}
    write("decode.json", json.dumps(table))
    decode += " --threads 2"
    run(decode, 2, "--model is needed")
    run("lab reproduce decode.json --model own.wisp --out d.jsonl", 2, "--data is needed")
    run(f"{decode} --model own.wisp", 2, "--base is needed.*not public")
    run(f"{decode} --model own.wisp --base shipped.wisp", 4, "base model must be public.*'shipped'")
    run(f"{decode} --model safe.wisp --base new.wisp", 2, "samples from it are free")
    public_base = "--model shipped.wisp --public-dataset shipped --base shipped.wisp"
    run(f"{decode} {public_base}", 2, "samples from it are free")
    run(f"{decode} --model own.wisp --base few.wisp --cell base/all", 2, "other items")
    for old, new, said in (
        ('"support": "base:9"', '"support": "model:9"', "all and base:K"),
        ('"delta": 1e-06, ', "", "pld needs a delta"),
        ('"mode": "plain"', '"mode": "plain", "samples": 3', "without a target"),
    ):
        edit("decode.json", "wrong.json", old, new)
        run("lab reproduce wrong.json --list", 3, said)
    assert not exists("d.jsonl"), "refused samples wrote results"
    run(f"{decode} {anchors}")
    items = len({line.split()[1] for line in read("log.txt").splitlines()})
    new = [u for u in users.values() if u[-1] not in u[:-1]]
    left = math.exp(sum(math.log(items - len(set(u[:-1]))) for u in new) / len(new))
    j = {f"{line['row']}/{line['column']}": line for line in lines("d.jsonl")}
    value = {name: line["perplexity"] for name, line in j.items()}
    assert len(j) == 7 and abs(value["uniform/0"] / left - 1) < 1e-5, left
    assert abs(j["uniform/0"]["covered"] - len(new) / len(users)) < 1e-12 and j["uniform/0"]["users"] == len(users)
    assert abs(value["uniform/all"] / value["model/all"] - 1) < 1e-6 and value["model/all"] != value["base/all"]
    assert abs(value["uniform base 9/0"] - 9) < 1e-6 and 0 < j["uniform base 9/0"]["covered"] < 0.5
    assert abs(value["anchored/0"] / value["base/all"] - 1) < 1e-5
    anchored = j["anchored/4"]
    assert 3.99 < anchored["epsilon"] <= 4 and anchored["delta"] == 1e-6 and anchored["clip"] > 0
    assert "base" in anchored and "base" not in j["uniform/0"] and len({line["together"] for line in j.values()}) == 1
    run(f"{decode} {anchors} --skip-done", 0, "nothing is left")
    r = run("lab reproduce decode.json --list --model shipped.wisp --out d.jsonl")
    assert says("model/all .*0 of 1 done", r.out), "figures of another model count as done"
    run(f"{ROOT}/tools/lab/reproduce/draw.py --table decode.json --results d.jsonl --markdown d.md --svg d.svg")


def ndcg_of(row):
    return [line["ndcg@10"] * 100 for line in lines("drawn.jsonl") if line["row"] == row and "ndcg@10" in line]


def test_the_drawn_table():
    speed = {"table": "tiny", "row": "private", "column": "speed", "step_ms": 12.5, "device": "a device"}
    speed |= {"date": "2026-01-01", "command": "wisp-lab bench"}
    write("drawn.jsonl", read("r.jsonl") + json.dumps(speed) + "\n")
    run(f"{drawn} tiny.json --results drawn.jsonl")
    cell = lambda v: f"{statistics.mean(v):.2f} ± {statistics.stdev(v):.2f} (n {len(v)})"
    private, ordinary, text = ndcg_of("private"), ndcg_of("not private"), read("t.md")
    assert len(private) == 3 and len(ordinary) == 14
    assert "| method | epsilon 4 | epsilon none | epsilon speed |" in text
    assert f"| private | {cell(private)}; published 5.00 ± 1.00 |  | not run |" in text, cell(private)
    assert f"| not private |  | {cell(ordinary)} |  |" in text, cell(ordinary)
    assert "epsilon, accounted 2.071, delta 0.001," in text  # 2.0702: a bound is rounded up
    assert text.startswith("# Tiny <table>\n\nThe answer.\n") and "(drawn.jsonl)" in text
    assert "--cell" not in text and "--out drawn.jsonl --skip-done" in text
    assert "| 12.500 (n 1) |" in text, "a bench figure is not drawn, or has a deviation"
    for words in ("nobody, table 0", "- A note", "(t.svg)", "; a device. Dates: ", "Wall time"):
        assert words in text, f"t.md does not say '{words}'"
    assert says("^wisp-lab bench$", text)


def test_the_drawn_bars():
    tree = ElementTree.parse("t.svg")
    kind = lambda tag: [e for e in tree.iter() if e.tag.endswith("}" + tag)]
    texts = {e.text for e in kind("text")}
    assert {"Tiny <table>", "NDCG@10 (%)", "epsilon", "4", "none", "private", "not private", "published", "0"} <= texts
    bars = [e for e in kind("rect") if float(e.get("height")) != 12]
    assert len(bars) == 2 and sum(e.get("class") == "error" for e in kind("path")) == 2
    # A bar is as high as its mean: both are compared with the axis' first ticks.
    ticks = sorted((float(e.get("y")) - 4, float(e.text)) for e in kind("text") if e.get("text-anchor") == "end")
    (y1, v1), (y0, v0) = ticks[0], ticks[-1]
    heights = [(float(bar.get("height")) / (y0 - y1)) * (v1 - v0) for bar in bars]
    assert v0 == 0 and abs(heights[1] - statistics.mean(ndcg_of("not private"))) < 0.02 * v1, heights
    assert "prefers-color-scheme: dark" in read("t.svg")


def test_tables_that_are_drawn_otherwise_or_not():
    edit("tiny.json", "log.json", '"kind": "bars"', '"kind": "lines", "log": true')
    run(f"{drawn} log.json --results drawn.jsonl")
    assert any(e.tag.endswith("circle") for e in ElementTree.parse("t.svg").iter()), "lines are not drawn"
    edit("tiny.json", "plotless.json", ' "plot": {"kind": "bars", "field": "ndcg@10"},', "")
    remove("t.svg")
    run(f"{drawn} plotless.json --results drawn.jsonl", 0, 'has no "plot"')
    assert not exists("t.svg") and "t.svg" not in "\n".join(read("t.md").splitlines()[:20])
    edit("tiny.json", "metricless.json", '"metrics"', '"metric"')
    run(f"{drawn} metricless.json --results drawn.jsonl", 3, 'has no "metrics"')
    older = lines()[0] | {"recipe": "older"}
    write("mixed.jsonl", json.dumps(older) + "\n" + read("r.jsonl"))
    run(f"{drawn} tiny.json --results mixed.jsonl", 0, "1 lines of an older recipe or model")


def test_damage_is_named_by_its_line_and_nothing_is_appended_to_it():
    edit("r.jsonl", "other.jsonl", '"table":"tiny"', '"table":"tinier"')
    damaged = read("r.jsonl").splitlines(keepends=True)
    damaged[1] = damaged[1].removesuffix("}\n") + "\n"
    write("damaged.jsonl", "".join(damaged))
    for path, said in (
        ("other.jsonl", "line 1: it belongs to another table"),
        ("damaged.jsonl", "damaged.jsonl, line 2: it is damaged"),
    ):
        run(f"lab reproduce tiny.json --list --out {path}", 3, said)
        run(f"{drawn} tiny.json --results {path}", 3, said)
    Path("torn.jsonl").write_bytes(Path("r.jsonl").read_bytes()[:-1])
    copy("torn.jsonl", "before")
    said = "torn.jsonl, line 18: the last line is cut off"
    run("lab reproduce tiny.json --data log.txt --out torn.jsonl", 3, said)
    run(f"{drawn} tiny.json --results torn.jsonl", 3, said)
    assert same("torn.jsonl", "before"), "a damaged file was changed"
