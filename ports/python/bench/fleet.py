#!/usr/bin/env python3
"""Fleets of MovieLens-1M with a user on each device, simulated: cohorts, local steps and epsilon.

    build/fleet-python/bin/python ports/python/bench/fleet.py WISP ml-1m.txt FOLDER [NAME ...]    runs those, or all
    ports/python/bench/fleet.py --draw                        draws docs/fleet.svg from docs/results/fleet.jsonl

WISP is the program. Each fleet adds lines to docs/results/fleet.jsonl: NDCG@10 after some of its rounds. The base is
untrained. Devices train on all but the last item of their user, which tests, among all items outside the history.
The line "central" is of one place: `wisp train` by the recipe ml-1m-dp-10 without output_bias, histogram_noise and
allow_delta_of_one_record, at the same epsilon and delta.

FOLDER keeps the servers' folders, so that a fleet that was stopped goes on. Epsilon is that for readers at delta
1.65562e-4, below 1 / 6040. One seed; hours on one core.
"""
import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
LINES, FIGURE = ROOT / "docs/results/fleet.jsonl", ROOT / "docs/fleet.svg"
DELTA, DEVICES = "1.65562e-4", 6040
LOCAL = ("--method", "local", "--local-steps", "4", "--local-learning-rate", "0.5")
# Name: rounds, rounds of a device, epsilon for readers, more options, the rounds after which it is tested.
FLEETS = {
    "100": (300, 5, 9.85, (), (20, 50, 100, 200, 300)),
    "300": (200, 10, 9.85, (), (10, 20, 50, 100, 200)),
    "300-few": (100, 5, 9.85, (), (10, 20, 50, 100)),
    "300-local": (100, 5, 9.85, LOCAL, (10, 20, 50, 100)),
    "1000": (60, 10, 9.85, (), (10, 20, 50, 60)),
    "1000-epsilon-5": (60, 10, 5, (), (60,)),
    "1000-epsilon-3": (60, 10, 3, (), (60,)),
    "2000": (120, 40, 9.85, (), (10, 20, 50, 100, 120)),
}
DRAWN = {"100": "100 devices a round", "300": "300", "300-local": "300, four local steps", "1000": "1,000",
         "2000": "2,000"}


def program(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def run(wisp, log, folder, names):
    from wisp.fleet import simulate

    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    base, train = folder / "base.wisp", folder / "train.txt"
    if not base.exists():
        program(wisp, "new", "--recipe", str(ROOT / "models/recipes/ml-1m-dp-10.json"), "--data", log,
                "--catalogue", "public", "--out", str(base))
        users = {}
        for line in open(log):
            users.setdefault(line.split()[0], []).append(line)
        train.write_text("".join("".join(lines[:-1]) for lines in users.values()))
    for name in names:
        rounds, takes_part, epsilon, more, tested = FLEETS[name]
        plan, server = folder / f"{name}.json", folder / name
        figures = json.loads(program(
            wisp, "fleet", "plan", "--devices", str(DEVICES), "--rounds", str(rounds), "--takes-part", str(takes_part),
            "--readers-epsilon", str(epsilon), "--delta", DELTA, "--model", str(base), "--learning-rate", "0.012",
            "--name", name, "--out", str(plan), *more, "--json"))
        for done in tested:
            simulate(plan, base, train, folder=server, rounds=done, seed=1, threads=os.cpu_count() or 1)
            model = str(server / "model.wisp")
            quality = json.loads(program(wisp, "evaluate", "--model", model, "--data", log, "--json"))
            write({"fleet": name, "rounds": done, "of": rounds, "cohort": round(figures["cohort"]),
                   "noise_multiplier": figures["noise_multiplier"], "epsilon": epsilon,
                   "ndcg@10": quality["ndcg@10"], "hit@10": quality["hit@10"],
                   "date": datetime.date.today().isoformat()})


def write(line):
    with LINES.open("a") as lines:
        lines.write(json.dumps(line) + "\n")
    print(line, flush=True)


def draw():
    sys.path.insert(0, str(ROOT / "tools/lab/reproduce"))
    from svg_plot import draw_plot

    lines = [json.loads(line) for line in LINES.read_text().splitlines()]
    rounds = [10, 20, 50, 60, 100, 120, 200, 300]
    rows = {words: {str(line["rounds"]): (line["ndcg@10"], None, None) for line in lines
                    if line["fleet"] == name and line["rounds"] in rounds} for name, words in DRAWN.items()}
    [central] = [line for line in lines if line["fleet"] == "central"]
    rows["one place, 2,048 a step"] = {"120": (central["ndcg@10"], None, None)}
    FIGURE.write_text(draw_plot({"kind": "lines"}, "MovieLens-1M, a user on each device, epsilon 9.85 for readers",
                                "NDCG@10", "rounds", [str(r) for r in rounds], rows))


if __name__ == "__main__":
    if sys.argv[1:] == ["--draw"]:
        draw()
    elif len(sys.argv) > 3 and set(sys.argv[4:]) <= set(FLEETS):
        run(*sys.argv[1:4], sys.argv[4:] or FLEETS)
    else:
        sys.exit(__doc__)
