#!/usr/bin/env python3
"""Keeps the measured gains of learning on a device, which documents and `wisp plan` quote.

    tools/lab/reproduce/gains.py take [--replace] FILE...   adds cells out of lines of measure.py --json, and draws
    tools/lab/reproduce/gains.py draw                       writes what is made of docs/results/gains.jsonl
    tools/lab/reproduce/gains.py check                      says where that differs; exits 1 if it does
    tools/lab/reproduce/gains.py power WISP                 draws docs/power.svg by plans that WISP makes

A cell is one data set, number of people, epsilon and number of runs; its line has the lowest and the highest gain over
seeds, of the newest candidate and of what is served in the end. `take` makes a cell of all lines of
tools/lab/bench/deployment/measure.py that belong to it, in place of the cell that was there; --replace drops all
others. `draw` writes the tables of docs/gains.md and README.md, and runtime/personalise/measured_gains.cc.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import draw
from svg_plot import draw_plot

ROOT = Path(__file__).resolve().parents[3]
LINES, CODE = "docs/results/gains.jsonl", "runtime/personalise/measured_gains.cc"
# Options of measure.py with the name of their data, what is different on the device, and whether the base lacks items
# that people choose there.
DATA = {
    ("cafe", None, False): ("cafe", "other tastes, four of ten choices repeat", False),
    ("games", None, False): ("games", "items that the base never saw", True),
    ("games", None, True): ("games", "other people, whole histories", False),
    ("ml-1m", "Horror", False): ("ML-1M", "users who like horror most", False),
}
KEY = ("data", "differs", "people", "epsilon", "runs")
# The columns and rows of the README's table.
README = (("cafe", "other tastes, four of ten choices repeat"), ("games", "items that the base never saw"))
README_PEOPLE = (500, 2000, 20000)
# The words of a sentence for those of the tables' cells.
CARRIERS = {"counts": "counts of which item follows which", "the bias": "the weight of the output bias",
            "all weights": "training all weights"}
NOTHING = 0.02  # seeds differ by as much; kLeastGain of runtime/personalise/expected_gain.h


def fail(sentence):
    print(f"gains.py: {sentence}", file=sys.stderr)
    sys.exit(3)


def carried_by(lines):
    """What carries the gain: releases before the first step, if they alone bring half of it, or training."""
    gain = statistics.mean(line["gain_of_candidate"] for line in lines)
    if max(line["gain_of_candidate"] for line in lines) < NOTHING:
        return "nothing"
    if lines[0]["gain_of_releases"] is None or statistics.mean(line["gain_of_releases"] for line in lines) < gain / 2:
        return "all weights"
    words = (("succession_releases", "counts"), ("bias_weight_releases", "the bias"))
    return " and ".join(word for field, word in words if lines[0][field] > 0)


def cell(lines):
    first = lines[0]
    if first["plan"] or first["grow"] or first["items_kept"]:
        fail(f"{first['command']}: a cell has the plan that wisp plan chooses, everybody from the start, and all items")
    key = (first["what"], first["genre"], first["whole"])
    if key not in DATA:
        fail(f"{first['command']}: tools/lab/reproduce/gains.py has no name for {key}")
    data, differs, new_items = DATA[key]
    gains = [round(line["gain_of_candidate"], 3) for line in lines]
    served = [round(line["gain"], 3) for line in lines]
    better = [line for line in lines if line["gain"] != 0]  # else the base is served as it came
    serves = sorted({line["serves"] for line in better})
    return {"data": data, "differs": differs, "people": first["users"], "epsilon": first["epsilon"],
            "runs": first["runs"], "seeds": len(lines), "items": first["items"], "new_items": new_items,
            **{field: float(f"{first[field]:.3g}")
               for field in ("noise_to_signal", "noise_of_an_item", "succession_signal")},
            "base": round(first["base"], 4), "lowest": min(gains), "highest": max(gains),
            "served_lowest": min(served), "served_highest": max(served), "carried_by": carried_by(lines),
            "serves": " or ".join(serves) or "the base", "seeds_better": len(better),
            "better_from_run": max((line["runs_of_base"] for line in better if line["serves"] != "the base"),
                                   default=-1) + 1,
            "device": first["device"], "date": max(line["date"] for line in lines), "command": first["command"]}


def read_cells():
    cells = []
    for number, text in enumerate((ROOT / LINES).read_text(encoding="utf-8").splitlines(), 1):
        try:
            cells.append(json.loads(text))
        except ValueError as error:
            fail(f"{LINES}, line {number}: it is damaged: {error}")
    order = [name[:2] for name in DATA.values()]
    return sorted(cells, key=lambda c: (order.index((c["data"], c["differs"])), c["people"], c["epsilon"], c["runs"]))


def take(paths, replace):
    found = {}
    for path in paths:
        for text in Path(path).read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            key = tuple(line.get(field) for field in ("what", "genre", "whole", "users", "epsilon", "runs"))
            found.setdefault(key, {})[line["seed"]] = line  # the newest of a seed
    try:
        taken = [cell(list(lines.values())) for lines in found.values()]
    except KeyError as error:
        fail(f"{', '.join(paths)}: a line has no {error}; measure it again")
    keys = {tuple(made[field] for field in KEY) for made in taken}
    kept = [] if replace else [c for c in read_cells() if tuple(c[field] for field in KEY) not in keys]
    draw.replace_file(ROOT / LINES, "".join(json.dumps(c) + "\n" for c in [*kept, *taken]))
    draw.replace_file(ROOT / LINES, "".join(json.dumps(c) + "\n" for c in read_cells()))


def row_of(row):
    return draw.row_of(row).replace("|  |", "| |")


def gain(lowest, highest):
    ends = [f"{round(100 * share):+d}".replace("+0", "0") for share in (lowest, highest)]
    return " to ".join(dict.fromkeys(ends)) + " %"


def to_expect(c):
    """The gain of what is served, if that is not the base with each seed; else the newest candidate's."""
    what = "served_" * (c["seeds_better"] == c["seeds"])
    return c[what + "lowest"], c[what + "highest"]


def served(c):
    if c["seeds_better"] == 0:
        return "the base"
    own = [c["served_lowest"], c["served_highest"]]
    whose = c["serves"] + (": " + gain(*own) if own != [c["lowest"], c["highest"]] else "")
    late = f", from run {c['better_from_run']} on" if c["better_from_run"] > 1 else ""
    some = f", {c['seeds_better']} of {c['seeds']} seeds" if c["seeds_better"] < c["seeds"] else ""
    return whose + late + some


def rows_of_gains(cells):
    before = None
    for c in cells:
        name = f"{c['data']}: {c['differs']}"
        yield row_of([name if name != before else "", f"{c['people']:,}, {c['seeds']}",
                           f"{c['noise_to_signal']:.2g}, {c['noise_of_an_item']:.2g}", f"{c['base']:.4f}",
                           gain(c["lowest"], c["highest"]), c["carried_by"], served(c)])
        before = name


def rows_of_readme(cells):
    usual = {(c["data"], c["differs"], c["people"]): c for c in cells if (c["epsilon"], c["runs"]) == (4, 12)}
    for people in README_PEOPLE:
        row = [f"{people:,}"]
        for column in README:
            c = usual.get((*column, people))
            base = "; the base is served" if c and c["seeds_better"] == 0 else ""
            row += [gain(*to_expect(c)) + base, c["carried_by"]] if c else ["not measured", ""]
        yield row_of(row)


def with_rows(name, heading, rows, is_drawn):
    """The document with these rows in the first table below the heading, in place of those that are drawn."""
    lines = (ROOT / name).read_text(encoding="utf-8").split("\n")
    if heading not in lines:
        fail(f"{name} has no heading '{heading}'")
    first = next(i for i in range(lines.index(heading), len(lines)) if lines[i].startswith("| ---")) + 1
    end = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
    return "\n".join([*lines[:first], *(row for row in lines[first:end] if not is_drawn(row)), *rows, *lines[end:]])


def flag(value):
    return str(value).lower()


def carriers(text):
    for short, long in CARRIERS.items():
        text = text.replace(short, long)
    return text


def code(cells):
    out = [f"// Made of {LINES} by tools/lab/reproduce/gains.py draw.",
           '#include "runtime/personalise/measured_gains.h"', "", "namespace wisp {", "",
           "std::span<const MeasuredGain> MeasuredGains() {", "  // clang-format off",
           "  static constexpr MeasuredGain kMeasured[] = {"]
    for c in cells:
        words = ", ".join(f'.{field} = "{c[field]}"' for field in ("data", "differs"))
        numbers = [f".{field} = {c[field]}" for field in (
            "people", "runs", "epsilon", "items", "noise_to_signal", "noise_of_an_item", "succession_signal")]
        numbers, noises = numbers[:4], numbers[4:]
        lowest, highest = to_expect(c)
        out += [f"      {{{words},", f'       .carried_by = "{carriers(c["carried_by"])}", '
                f'.by_counts = {flag("counts" in c["carried_by"])}, .by_bias = {flag("the bias" in c["carried_by"])},',
                f"       {', '.join(numbers)},", f"       {', '.join(noises)},",
                f"       .lowest = {lowest}, .highest = {highest}, "
                f".new_items = {flag(c['new_items'])}, .found_better = {flag(c['seeds_better'] == c['seeds'])}}},"]
    return "\n".join([*out, "  };", "  // clang-format on", "  return kMeasured;", "}", "", "}  // namespace wisp", ""])


def drawn():
    """Yields each file that is made of the cells, and its text."""
    cells = read_cells()
    yield "docs/gains.md", with_rows("docs/gains.md", "## Twelve runs at epsilon 4",
                                     rows_of_gains([c for c in cells if (c["epsilon"], c["runs"]) == (4, 12)]),
                                     lambda row: True)
    yield "README.md", with_rows("README.md", "## People on the device, what to expect", rows_of_readme(cells),
                                 lambda row: row[2:3].isdigit())
    yield CODE, code(cells)


def check():
    differ = []
    for name, text in drawn():
        there, lines = (ROOT / name).read_text(encoding="utf-8").split("\n"), text.split("\n")
        if there != lines:
            lacks = next((line for line in lines if line not in there), "another order, or fewer lines")
            differ.append(f"{name}: tools/lab/reproduce/gains.py draw writes: {lacks[:160]}")
    print(*differ, sep="\n", end="\n" * bool(differ))
    return 1 if differ else 0


def power(wisp):
    """The chance that a plan finds gains of two sizes, by its evaluations and by the weight of the bias."""
    people, rows = (250, 500, 1000, 2000, 5000, 10000, 20000), {}
    with tempfile.TemporaryDirectory() as folder:
        def run(*words):
            made = subprocess.run([wisp, *words], cwd=folder, capture_output=True, text=True, check=False)
            return made.stdout if made.returncode == 0 else fail(made.stderr.strip())
        run("new", "--recipe", ROOT / "models/recipes/shop.json", "--num-items", "12000", "--out", "base.wisp")
        for number in people:
            plan = run("plan", "--model", "base.wisp", "--data", "log.db", "--epsilon", "4", "--num-records-public",
                       str(number), "--for", "12 days", "--every", "1 day", "--unit", "user", "--dry-run", "--json")
            for row in json.loads(plan)["power"][:2]:
                for name, chance in (("evaluations", row["after_all"]), ("weight of the bias", row["by_weight"])):
                    shown = rows.setdefault(f"{row['gain']:g} by {name}", {})
                    shown[f"{number:,}"] = (100 * chance, None, None)
    (ROOT / "docs/power.svg").write_text(
        draw_plot({"kind": "lines"}, "Chance that a gain in NDCG@10 is found at epsilon 4", "per cent", "people",
                  [f"{number:,}" for number in people], rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["take", "draw", "check", "power"])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--replace", action="store_true", help="drop the cells that the files have not")
    known = parser.parse_intermixed_args()
    if (known.what in ("take", "power")) != bool(known.files):
        fail("take needs files of measure.py --json, power needs a program, draw and check none")
    if known.what == "power":
        return power(Path(known.files[0]).resolve())
    if known.what == "check":
        sys.exit(check())
    if known.what == "take":
        take(known.files, known.replace)
    for name, text in list(drawn()):
        draw.replace_file(ROOT / name, text)


if __name__ == "__main__":
    main()
