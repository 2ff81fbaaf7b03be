"""wisp-lab bench --what roofline: its counts are compared with figures by hand, and with the work that a device is
really asked to do, by the emulator's module if this build has it."""

import json
import os
import re

from program import ROOT, build, exists, read, root, run, saved, says, write

small = "bench --what roofline --length 6 --items 40 --inner-width 16 --threads 1 --json"


def test_counts_are_those_of_the_model():
    counted = run(f"lab {small} --batch 3")
    counted.save("counted")
    twice = run(f"lab {small} --batch 6")
    ops, ops_twice = ({o["op"]: o for o in j["training"]["ops"]} for j in (counted, twice))
    B, T, M, D, F, blocks = 3, 6, 40, 64, 16, 2
    R = B * T
    # Products of a step: queries, keys and values, the output of attention, two of the feed-forward part, with a bias
    # each. The logits are scored once: all items are one tile.
    of_block = 2 * R * (D * 3 * D + D * D + 2 * D * F) + R * (3 * D + D + F + D)
    logits = 2 * R * M * D
    assert ops["linear_forward"]["operations"] == blocks * of_block
    assert ops["score_tiles"]["operations"] == logits and "softmax_stats" not in ops
    assert ops["linear_backward_input"]["operations"] == blocks * 2 * R * (D * 3 * D + D * D + 2 * D * F) + logits
    pairs = B * T * (T + 1) // 2
    assert ops["attention_forward"]["operations"] == blocks * pairs * (4 * D + 5)
    assert ops["attention_forward"]["bytes"] == blocks * 4 * (4 * R * D + R)
    parameters = M * D + T * D + blocks * (4 * D * D + 4 * D + 2 * D * F + D + F + 4 * D) + 2 * D
    assert ops["adam"]["bytes"] in (28 * parameters, 28 * (parameters + M)), (ops["adam"]["bytes"] / 28, parameters)
    assert counted["training"]["private"] and "squares_of_rows" in ops
    # Work on records doubles with their number; work on parameters does not.
    for op, times in (("attention_backward", 2), ("squares_of_rows", 2), ("adam", 1), ("noised_sum", 1)):
        assert ops_twice[op]["operations"] == times * ops[op]["operations"], op
    # Every op takes the time of memory or of arithmetic, whichever is longer; the total is their sum.
    for device in counted["devices"]:
        total = 0
        for o in counted["training"]["ops"]:
            ms = o["roofline_ms"][device["name"]]
            memory, arithmetic = o["bytes"] / device["gb_per_s"] / 1e6, o["operations"] / device["gflops"] / 1e6
            assert max(memory, arithmetic) * 0.999999 <= ms <= (memory + arithmetic) * 1.000001, (
                o["op"],
                device["name"],
            )
            total += ms
        assert abs(total - counted["training"]["total"]["roofline_ms"][device["name"]]) < 1e-9 * total
    assert {"H100", "H200", "Orin", "Thor"} <= {d["name"] for d in counted["devices"]}
    assert "measured_ms" not in counted["training"]["total"]


def test_a_recipe_names_model():
    # A recipe names model, method, batch and length.
    r = run(f"lab bench --what roofline --recipe {ROOT}/models/recipes/ml-1m-dp-10.json --json")
    assert [r["training"][k] for k in ("records", "length", "items")] == [2048, 192, 3416]
    # The counts include the product of one history's state with the table of 3,416 items, width 32.
    assert r["inference"]["total"]["operations"] > 2 * 3416 * 32 and "score_tiles" in [
        op["op"] for op in r["inference"]["ops"]
    ]
    assert r["inference"]["total"]["operations"] < r["training"]["total"]["operations"] / 2048
    assert "Thor" in run("lab bench --what roofline --batch 2 --length 4 --items 9").out
    run(f"lab bench --what roofline --recipe {ROOT}/models/recipes/ml-1m-dp-10.json --length 193",
        2, "allowed are 1 to 192")
    run(f"lab bench --what score --recipe {ROOT}/models/recipes/ml-1m-dp-10.json",
        2, "is of --what products, roofline, train")


def test_a_device_gives_the_same_counts():
    # A device gives the same counts, and is timed as well.
    counted = saved("counted")
    module = build / "libwisp_cuda_emulator.so"
    if "WISP_CUDA:BOOL=ON" in read(build / "CMakeCache.txt") and exists(module):
        r = run(f"lab {small} --batch 3 --repeats 2 --device cuda --device-module {module}")
        timed = r.json
        for part in ("training", "inference"):
            for figure in ("calls", "operations"):
                a, b = (
                    {o["op"]: o[figure] for o in part_of["ops"] if o["op"] != "pack_weights"}
                    for part_of in (counted[part], timed[part])
                )
                assert a == b, (part, figure, a, b)
            assert all(o["measured_ms"]["median"] > 0 and o["time_over_roofline"] > 0 for o in timed[part]["ops"])
        here = timed["devices"][-1]
        assert here["name"] == "here" and here["gb_per_s"] > 0 and here["source"] == "measured copy"
        # Each product of a step, over all records that pass together and for each of them.
        tiny = f"--length 6 --items 40 --repeats 1 --json --device cuda --device-module {module}"
        r = run(f"lab bench --what products --inner-width 16 --batch 2 {tiny}")
        found = {(p["product"], p["n"], p["k"]) for p in r.json["products"]}
        kinds = ("forward", "gradient of rows", "gradient of weights", "gradient of each record's weights")
        assert found == {
            (kind, n, k) for kind in kinds for n, k in ((192, 64), (64, 64), (16, 64), (64, 16), (40, 64))
        }, found
        assert all(p["rows"] == 12 and p["records"] == 2 and p["us"]["median"] > 0 for p in r.json["products"])
        # A model brings its architecture, so that a recipe without one is counted too.
        cafe = f"--model {ROOT}/models/cafe.wisp --recipe {ROOT}/models/recipes/cafe-device.json --batch 2"
        r = run(f"lab bench --what roofline {cafe} --json")
        assert [r["training"][k] for k in ("records", "length", "items")] == [2, 40, 480] and r["training"]["private"]
        # The goals stand beside the measured figures.
        os.mkdir("goals")
        write("goals/train-2048.json", run(f"lab bench --what train --batch 2 {tiny}").out)
        # Ops at 1,000 GB/s: two that memory bounds, one that arithmetic bounds, one that is too short to count.
        ops = [
            {"bytes": b * 1e9, "operations": o * 1e9, "calls": c, "measured_ms": {"median": ms}}
            for b, o, c, ms in ((1, 0, 1, 2), (3, 1, 1, 4), (1, 90, 1, 100), (1, 0, 1000, 50))
        ]
        here = {"name": "here", "gb_per_s": 1000, "gflops": 20000}
        write("goals/roofline.json", json.dumps({"devices": [{"name": "H100"}, here], "training": {"ops": ops}}))
        write("goals/projected-cafe.json", r.out)
        write("goals/module.json", '{"bytes": 4500000, "architectures": 3}\n')
        ghost = '{"contender": "opacus ghost", "over_wisp": {"median": 8.5}}'
        write("goals/private.json", '{"contender": "wisp"}\n' + ghost + "\n")
        r = run("lab goals --figures goals")
        assert says("private over ordinary step.* missed$", r.out), "an emulator that meets a GPU's goal"
        assert says("ghost clipping.* 8.5 met$", r.out), "a goal that is met is not shown"
        assert says("module, MB .* 1.5  *1.5 met$", r.out), "a bound is not reached by its own value"
        assert says("cafe on Orin.* met .projection.$", r.out), "a projection is not labelled"
        listed = {g["work"]: g for g in run("lab goals --figures goals --json").json}
        measured = {work for work, g in listed.items() if "measured" in g}
        assert {work for work in listed if says(f"{re.escape(work)} .* not measured$", r.out)} == set(listed) - measured
        assert len(measured) == 8, measured
        assert abs(listed["memory-bound ops, share of a copy's bandwidth"]["measured"] - 4 / 6) < 1e-9


def test_goals_are_those_of_the_page():
    # kernels/cuda/README.md has the same list.
    page = re.search(r"(?s)## Goals\n(.*)", read(root / "kernels/cuda/README.md"))[1]
    rows = re.findall(r"(?m)^\| (.*) \| ([\d.]+) \|", page)
    goals = run("lab goals --figures missing --json").json
    assert rows == [(g["work"], f"{g['goal']:g}") for g in goals] and len(goals) > 10
    assert all(g["verdict"] == "not measured" for g in goals)
    run("lab goals", 2, "--figures")


def test_goals_read_what_the_script_leaves():
    script = read(root / "tests/cuda/gpu")
    steps = re.findall(r"\b(?:step|bench|compare) ([a-z][\w-]*) ", script)
    left = {f"{step}.json" for step in steps} | {"module.json"}
    wanted = set(re.findall(r'"([\w-]+\.jsonl?)"', read(root / "tools/lab/cmd_goals.cc")))
    assert len(wanted) > 10 and wanted <= left, wanted - left
