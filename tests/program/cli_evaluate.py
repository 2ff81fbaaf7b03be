"""wisp evaluate: lists without training beside the model's, and a log that is divided by a day."""

import csv
import datetime
import math
from collections import Counter, defaultdict

import pytest
from program import edit, read, root, run, says, write

pytestmark = pytest.mark.usefixtures("cafe")

evaluate = "wisp evaluate --model base.wisp --data timed.csv"
DAY = "2023-12-31"
# No hold-out of its own; few steps are enough.
train = "wisp train --recipe few.json --model base.wisp --batch 10 --threads 1"


def events():
    """The log by user, each event with its time, in order."""
    by_user = defaultdict(list)
    for row in csv.DictReader(read("timed.csv").splitlines()):
        by_user[row["user"]].append((int(row["time"]), row["item"]))
    return [sorted(own, key=lambda event: event[0]) for own in by_user.values()]


def is_later(event):
    return datetime.datetime.fromtimestamp(event[0], datetime.timezone.utc).date().isoformat() > DAY


def figures(cases, scores_after):
    """Hits and NDCG of the ten best items by their scores, of equal ones the first in the model."""
    hits, ndcg = 0, 0.0
    for history, target in cases:
        scores = scores_after(history)
        place = sorted(range(len(keys)), key=lambda i: (-scores[keys[i]], i)).index(keys.index(target))
        hits, ndcg = hits + (place < 10), ndcg + (1 / math.log2(place + 2) if place < 10 else 0)
    return {"ndcg@10": pytest.approx(ndcg / len(cases)), "hit@10": pytest.approx(hits / len(cases))}


def expected(trains, cases):
    """What the baselines give, written down once more."""
    counts = Counter(item for own in trains for item in own)
    pairs = defaultdict(Counter)
    for own in trains:
        for a, b in zip(own, own[1:]):
            pairs[a][b] += 1

    def transitions(history):
        scores = {key: 0.001 * counts[key] / max(counts.values()) for key in keys}
        for share, item in zip((0.6, 0.4), reversed(history)):
            for key, count in pairs[item].items():
                scores[key] += share * math.log1p(count) / math.log1p(max(pairs[item].values()))
        return scores

    return {"popularity": figures(cases, lambda history: counts), "transitions": figures(cases, transitions)}


@pytest.fixture(scope="module", autouse=True)
def data(work_folder, cafe):
    global keys
    run("wisp synth --out timed.csv --population device --users 60 --seed 3")
    run("wisp synth --out log.txt --population device --users 60 --seed 3")
    edit(root / "models/recipes/cafe.json", "few.json", '"epochs": 40', '"epochs": 1')
    edit("few.json", "nothing.json", '"hold_out": "test"', '"hold_out": "nothing"')
    keys = [line.split("\t")[0] for line in run("wisp catalogue list --model base.wisp").out.splitlines()]
    assert run("wisp inspect base.wisp --json")["allow_seen"], "the lists below may hold seen items"


def test_lists_without_training_stand_beside_the_models():
    items = [[item for _, item in own] for own in events()]
    r = run(f"{evaluate} --baselines --json")
    assert r["baselines"] == expected([own[:-1] for own in items], [(own[:-1], own[-1]) for own in items])
    assert "baselines" in r["not_private"]
    alone = run(f"{evaluate} --json")
    assert all(alone[name] == r[name] for name in ("ndcg@10", "hit@10", "users")), "other figures with baselines"
    out = run(f"{evaluate} --baselines").out
    for name in ("popularity", "transitions"):
        assert f"{name}, without training: NDCG@10 {r['baselines'][name]['ndcg@10']:.4f}" in out
    beaten = [name for name, b in r["baselines"].items() if b["ndcg@10"] >= r["ndcg@10"]]
    assert ("no better than what needs no training" in out) == bool(beaten)
    assert says("^local only", out)


def test_a_new_model_is_no_better_than_what_needs_no_training():
    run(f"wisp new --recipe {root}/models/recipes/cafe.json --data timed.csv --catalogue public --out new.wisp")
    out = run("wisp evaluate --model new.wisp --data timed.csv --baselines").out
    assert says("^no better than what needs no training, by NDCG@10: popularity, transitions$", out)


def test_after_a_day_each_persons_next_event_is_tested():
    own = [(list(map(is_later, record)), [item for _, item in record]) for record in events()]
    first = [(later.index(True) if True in later else len(later), items) for later, items in own]
    cases = [(items[: max(n, 1)], items[max(n, 1)]) for n, items in first if max(n, 1) < len(items)]
    r = run(f"{evaluate} --trains-until {DAY} --baselines --json")
    assert 0 < len(cases) < len(own), "the day divides nobody"
    assert r["users"] == len(cases) and r["users_skipped"] == len(own) - len(cases)
    assert r["baselines"] == expected([items[:n] for n, items in first], cases)
    skipped = f"^skipped: {len(own) - len(cases)} users without an event after {DAY} that has one before it"
    assert says(skipped, run(f"{evaluate} --trains-until {DAY}").out)
    # Milliseconds are of the same day.
    rows = [row.rpartition(",") for row in read("timed.csv").splitlines()]
    write("ms.csv", "".join(f"{a}{b}{c}{'' if n == 0 else '000'}\n" for n, (a, b, c) in enumerate(rows)))
    ms = "wisp evaluate --model base.wisp --data ms.csv --times-per-second 1000"
    assert run(f"{ms} --trains-until {DAY} --baselines --json").json == r.json


def test_nothing_after_the_day_trains():
    lines = read("timed.csv").splitlines(keepends=True)
    limit = datetime.datetime.fromisoformat(f"{DAY}T23:59:59+00:00").timestamp()
    write("until.csv", "".join(lines[:1] + [row for row in lines[1:] if int(row.rpartition(",")[2]) <= limit]))
    run(f"{train} --data timed.csv --trains-until {DAY} --out a.wisp")
    run(f"wisp train --recipe nothing.json --model base.wisp --batch 10 --threads 1 --data until.csv --out b.wisp")
    a, b = run("wisp inspect a.wisp --json"), run("wisp inspect b.wisp --json")
    assert a["tensors"] == b["tensors"], "a later event trained, or an earlier one did not"
    assert a["provenance"][-1]["description"].endswith(f"events until {DAY}")
    run(f"{train} --data timed.csv --out whole.wisp")
    assert run("wisp inspect whole.wisp --json")["tensors"] != a["tensors"]


def test_what_cannot_be_divided_by_a_day_is_refused():
    no_times = "log.txt: its events have no times, so they cannot be divided by one (--trains-until); allowed are .*CSV"
    run(f"wisp evaluate --model base.wisp --data log.txt --trains-until {DAY}", 3, no_times)
    run(f"{train} --data log.txt --trains-until {DAY} --out x.wisp", 3, no_times)
    run(f"{evaluate} --trains-until soon", 2, "--trains-until is 'soon', allowed is a day")
    run(f"{train} --data timed.csv --trains-until soon --out x.wisp", 2, "--trains-until is 'soon', allowed is a day")
    run(f"{evaluate} --trains-until {DAY} --split validation", 2, "--split is 'validation', allowed with")
    run(f"{evaluate} --trains-until 2100-01-01", 3, "no user has an event after 2100-01-01 that has one before it")
    run(f"{train} --data timed.csv --trains-until 1999-01-01 --out x.wisp", 3, "no user has two events")
    for option in ("--baselines", f"--trains-until {DAY}"):
        name = option.split()[0]
        run(f"wisp evaluate --model base.wisp --texts log.txt {option}", 2, f"{name} is of --data")
        run(f"wisp evaluate --model base.wisp --labelled log.txt {option}", 2, f"{name} is not for labelled texts")
    run(f"{train} --texts log.txt --trains-until {DAY} --out x.wisp", 2, "--trains-until is of events")
    run(f"{train} --labelled log.txt --trains-until {DAY} --out x.wisp", 2, "--trains-until is not for labelled texts")
