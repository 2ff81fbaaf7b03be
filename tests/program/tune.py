"""A search among values of a recipe: private and charged once, or free on public data."""

import glob
import os
import signal
import time

import pytest
from program import entries, exists, public_recipe, read, recipe, run, running, saved, write

pytestmark = pytest.mark.usefixtures("cafe")
# By chance 2e-9 of these searches make no run at all.
tune = (
    f"wisp tune --recipe {recipe} --model base.wisp --data log.db --num-records-public 60 --delta 0.001 --epochs 1"
    " --expected-runs 20 --threads 1 --values expected_batch=20"
)
rates = "--values optimizer.learning_rate=0.003,0.01"


def test_refused_before_anything_is_charged():
    to = "--out best.wisp --ledger log.ledger --epsilon 6"
    for wrong, code, sentence in (
        ("", 2, "--values is required"),
        ("--values learning=1", 2, "--values is 'learning=1', allowed is a key of a recipe"),
        ("--values optimizer.learning_rate", 2, "allowed is a key of a recipe"),
        ("--values optimizer.learning_rate=", 2, "--values names no value of training.optimizer.learning_rate"),
        ("--values privacy.epsilon=1,2", 2, "--values names privacy.epsilon, allowed are"),
        ("--values num_records_public=10", 2, "--values names training.num_records_public, allowed are"),
        ("--values optimizer.learning_rate=a", 2, "--learning-rate is a, allowed is"),
        ("--values optimizer.beta1=2", 2, "training.optimizer.beta1 is 2, allowed is"),
        (f"{rates} {rates}", 2, "--values names training.optimizer.learning_rate twice"),
        (f"{rates} --expected-runs 3", 2, "expected number of runs is 3, allowed are 4 to 10000"),
        (f"{rates} --method ordinary", 2, "the method is ordinary, which protects nothing"),
        (f"{rates} --values sparse.rows=5 --method fest", 3, "a search with a popularity histogram is not offered"),
        (f"{rates} --public", 2, "--ledger is of a private search"),
    ):
        base = tune.replace(" --values expected_batch=20", "").replace(" --expected-runs 20", "")
        run(f"{base} {to} {wrong}", code, sentence)
    write("sessions.json", read(recipe.strip("'")).replace('"unit": "user"', '"unit": "session", "session_gap": 1800'))
    run(f"{tune} {rates} {to}".replace(recipe, "sessions.json"), 3, "a search of sessions is not offered")
    run(f"{tune} {rates} --out best.wisp --epsilon 6", 4, "private training needs a ledger")
    assert not exists("log.ledger") and not exists("best.wisp")


def test_a_search_is_charged_once():
    r = run(f"{tune} {rates} --out best.wisp --out-recipe best.json --ledger log.ledger --epsilon 6 --budget 8 --json")
    assert r["epsilon"] <= 6 and r["epsilon"] > 5.9
    assert r["candidates"] == 2 and r["expected_runs"] == 20 and r["not_private"] == []
    assert set(r["values"]) == {"training.expected_batch", "training.optimizer.learning_rate"}
    assert "runs" not in r.json and "seconds" not in r.json
    assert entries("log.ledger") == 1
    rate = r["values"]["training.optimizer.learning_rate"]
    assert rate in (0.003, 0.01) and f'"learning_rate": {rate}' in read("best.json")
    r.save("search")


def test_the_statement_says_what_was_searched():
    statement = run("wisp privacy --ledger log.ledger --model best.wisp --json")
    assert statement["accounting"]["epsilon"] == pytest.approx(saved("search")["epsilon"])
    text = run("wisp privacy --ledger log.ledger").out
    for words in ("released: the weights of the best run of each search", "private search", "expected runs 20",
                  "not protected: the number of runs of a search", "search alone: "):
        assert words in text
    assert "1 search" in run("wisp inspect best.wisp").out
    # The ledger that paid for it knows the model.
    run("wisp privacy --ledger log.ledger --model best.wisp --json").save("statement")
    run("wisp privacy check statement.saved --ledger log.ledger --model best.wisp")


def test_only_the_best_run_is_left(tmp_path):
    before = set(os.listdir())
    run(f"TMPDIR={tmp_path} {tune} {rates} --out again.wisp --ledger again.ledger --epsilon 6")
    assert set(os.listdir()) - before == {"again.wisp", "again.ledger"}
    assert not os.listdir(tmp_path)


def test_a_search_beyond_the_budget_reads_nothing():
    # The data are no log: who reads them says so.
    write("unreadable.db", "SQLite format 3\0 and then nothing")
    again = f"{tune} {rates} --out second.wisp --ledger log.ledger --epsilon 6 --dataset log.db"
    run(again.replace("--data log.db", "--data unreadable.db"), 4, "the limit is 8")
    assert entries("log.ledger") == 1 and not exists("second.wisp")
    # A search that could be paid is charged before it reads.
    other = again.replace("--data log.db", "--data unreadable.db").replace("log.ledger", "other.ledger")
    run(other, 3, "unreadable.db")
    assert entries("other.ledger") == 1


@pytest.mark.parametrize("by", (signal.SIGINT, signal.SIGKILL), ids=("INT", "KILL"))
def test_ended_in_the_middle_the_charge_stays(by, tmp_path):
    ledger = f"{by}.ledger"
    command = f"TMPDIR={tmp_path} {tune} {rates} --out ended.wisp --ledger {ledger} --epsilon 6".replace(
        "--epochs 1", "--epochs 2000")
    with running(command) as process:
        for _ in range(1000):
            if glob.glob(f"{tmp_path}/*/run-0"):
                break
            time.sleep(0.02)
        assert process.poll() is None, "the search was over before it could be ended"
        process.send_signal(by)
        ended = process.wait()
    if by == signal.SIGINT:
        assert ended == 130
        assert "the search was cancelled: nothing is written, and its charge stays" in read("beside.err")
    assert entries(ledger) == 1 and not exists("ended.wisp")
    run(f"{tune} {rates} --out ended.wisp --ledger {ledger} --epsilon 6 --budget 9", 4, "the limit is 9")


def test_public_data_choose_the_sane_rate():
    run("wisp synth --out public.csv --population public --users 300 --seed 3")
    public = f"wisp tune --recipe {public_recipe} --data public.csv --public --threads 1"
    r = run(f"{public} --values optimizer.learning_rate=30,0.01 --values epochs=3 --out-recipe public.json --json")
    assert r["best"] == {"training.optimizer.learning_rate": 0.01, "training.epochs": 3}
    assert [c["values"]["training.optimizer.learning_rate"] for c in r["candidates"]] == [30, 0.01]
    assert r["candidates"][1]["ndcg@10"] > r["candidates"][0]["ndcg@10"]
    assert "best" in r["not_private"]
    run("wisp train --recipe public.json --data public.csv --out public.wisp --threads 1 --json").save("trained")
    assert saved("trained")["test"]["ndcg@10"] == pytest.approx(r["candidates"][1]["ndcg@10"])
    text = run(f"{public} --values optimizer.learning_rate=30,0.01 --values epochs=3")
    assert "learning_rate 0.01, training.epochs 3   (best)" in text.out


def test_a_private_recipe_on_public_data_needs_no_ledger():
    before = set(os.listdir())
    r = run(f"wisp tune --public --recipe {recipe} --model base.wisp --data log.db --num-records-public 60"
            f" --delta 0.001 --epochs 1 --values expected_batch=20 {rates} --threads 1 --json")
    assert len(r["candidates"]) == 2 and set(os.listdir()) == before
