"""Opens the files of tests/golden/0.1 and answers what answers.txt says (tests/golden/README.md)."""

import shutil
from pathlib import Path

import pytest

import wisp

GOLDEN = Path(__file__).resolve().parents[3] / "tests/golden/0.1"
LINES = (GOLDEN / "answers.txt").read_text().splitlines()


def near(told, seen):
    """Numbers may differ by the rounding of another processor."""
    return abs(float(told) - seen) <= 1e-5 * (1 + abs(float(told)))


def recommend(model, history, *told, adapter=None):
    with wisp.Recommender.open(model, adapter=adapter) as opened:
        items, scores = opened.recommend(history.split(","), k=7, allow_seen=True)
        assert opened.keys(items) == list(told[::2])
    assert all(near(number, score) for number, score in zip(told[1::2], scores, strict=True))


def adapter(model, trained, history, *told):
    recommend(model, history, *told, adapter=trained)


def history(log, model, user, *told):
    with wisp.Log.open(log) as opened, wisp.Recommender.open(model) as of:
        assert of.keys(opened.history(of, user)) == list(told)


def events(log, told):
    with wisp.Log.open(log) as opened:
        assert opened.count().events == int(told)


def epsilon(ledger, delta, told):
    stated = wisp.privacy_statement_json(ledger, float(delta))
    assert near(told, stated["accounting"]["epsilon"])
    assert near(told, wisp.budget(ledger, delta=float(delta)).epsilon_stated)


VERBS = {answer.__name__: answer for answer in (recommend, adapter, history, events, epsilon)}


@pytest.mark.parametrize("line", LINES)
def test_files_that_every_port_opens_are_answered_alike(line, tmp_path, monkeypatch):
    for path in filter(Path.is_file, GOLDEN.iterdir()):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    verb, *words = line.split()
    VERBS[verb](*words)


def test_there_are_lines():
    assert len(LINES) == 11
