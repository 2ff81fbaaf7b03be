"""The program's private run, with its output and charges, and a ledger's limit that holds, rises and falls."""

import json

import pytest
from program import copy, exists, limits, paid, read, run, says, sql, train

pytestmark = pytest.mark.usefixtures("cafe")


def test_a_private_run():
    # A private run, then a budget that is spent.
    r = run(f"{train} --epsilon 4 --budget 5 --out o.wisp --ledger l.db --privacy-json p.json --json")
    assert abs(r["epsilon"] - 4) < 0.01 and r["steps"] == 3
    local_only = {
        "records",
        "records_dropped",
        "gradient_norm",
        "clipped",
        "seconds",
        "planned_bytes",
        "validation",
        "test",
    }
    assert set(r["not_private"]) == set(r.json) & local_only and "test" in r["not_private"]
    assert 0 < r["gradient_norm"] and 0 <= r["clipped"] <= 1 and {"gradient_norm", "clipped"} <= set(r["not_private"])
    assert any("psilon" in k or "psilon" in json.dumps(v) for k, v in json.loads(read("p.json")).items())
    r = run(f"{train} --epsilon 4 --out o2.wisp --ledger l.db", 4, "nothing was charged")
    assert not exists("o2.wisp"), "a run stopped by its budget left a model behind"
    assert says("this run would bring the data set to epsilon .* at delta 0.001, the limit is 5, spent 3.9", r.err)
    assert sql("l.db", "select count(distinct run) from entries") == 1, "a run that does not fit was charged in part"
    run(f"{train} --epsilon 4 --budget 3 --out o2.wisp --ledger l.db",
        4, "the budget is to be 3, but epsilon 3.9.* is spent")
    assert limits("l.db") == 1, "a budget below what is spent was written"
    run(f"{train} --epsilon 0.5 --budget 8 --out o2.wisp --ledger l.db", 0, "limit raised from 5 to 8")
    r = run(f"{train} --epsilon 0.1 --budget 7 --out o2.wisp --ledger l.db")
    assert "raised" not in r.err, "a limit that is lowered is called raised"
    r = run("wisp privacy --ledger l.db --delta 0.001")
    assert "epsilon" in r.out, "the statement states no epsilon"


def test_a_first_limit_after_a_charge_is_enforced():
    # A first limit after a charge is enforced, but promises nothing. The spent epsilon may exceed it, and the output
    # says so.
    late = "(the limit was set after a charge: it is enforced, and promises nothing)"
    t = paid("o.wisp", "late.db", "--json")["everything_together"]
    assert t["limit"] is None and t["limit_is_passed"] is False
    t = paid("o.wisp", "late.db", "--budget 0.9 --json")["everything_together"]
    assert t["limit"] == 0.9 < t["epsilon"] and t["limit_is_passed"] is True
    copy("late.db", "higher.db")
    r = paid("o.wisp", "late.db", "--budget 1")
    assert f" of 1 at delta 0.001 {late}" in r.out, "a limit that is passed is no news"
    run(f"{train} --noise-multiplier 1 --out o2.wisp --ledger late.db", 4, "nothing was charged")
    r = run("wisp privacy --ledger late.db --delta 0.001")
    assert "the limit: was set after a charge" in r.out, "the statement says of the limit"
    r = paid("o.wisp", "higher.db", "--budget 4")
    assert "everything together: epsilon 1.41" in r.out, "what is spent together is not said"
    assert late not in r.out, "a limit that is not passed is called so"
    t = paid("o.wisp", "higher.db", "--budget 5 --json")["everything_together"]
    assert t["limit"] == 5 > t["epsilon"] and t["limit_is_passed"] is False
