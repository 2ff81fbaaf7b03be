"""The program's audits of steps, runs, membership and decoding."""

import json

import pytest
from program import recipe, run, says

pytestmark = pytest.mark.usefixtures("cafe")


def test_sound_mechanisms_pass():
    # Sound mechanisms pass, false claims are refuted with exit code 4.
    run("lab audit", 2)
    repeated = "--reproducible-noise 3 --confidence 0.999 --json"
    for method in ("phantom", "rgp"):
        r = run(f"lab audit step --method {method} --noise-multiplier 1 --observations 1000 {repeated}")
        assert not r["refuted"] and 0.3 < r["mu"]["bound"] < r["mu"]["claimed"] == 1
        assert r["reach"] > 0.8 and len(r["epsilon"]) == 3
    for method in ("fest", "adafest+"):
        r = run(f"lab audit step --method {method} --observations 2000 {repeated}")
        assert not r["refuted"] and r["mu"]["bound"] > 0.1 and r["reach"] > 0.5
    for method in ("phantom", "adafest"):
        run(f"lab audit step --method {method} --noise-multiplier 0", 2, "noise-multiplier is 0, allowed is above 0")
    r = run("lab audit run --method ordinary")
    assert "nothing was tested: this run trains without a guarantee" in r.out, "an audit without a claim"
    r = run("lab audit run --canaries 100 --users 50 --steps 20 --noise-multiplier 20 --json")
    assert not r["refuted"] and 0 < r["claimed"] < 2 and r["guesses"] >= 4
    r = run("lab audit run --method ordinary --claim 1", 4, "REFUTED")
    assert "REFUTED, with 95% confidence" in r.out, "a refuted run printed"
    run("lab audit run --data log.db --num-records-public 60", 4, "ledger")
    short = "--num-records-public 60 --batch 20 --steps 3"
    r = run(f"lab audit run --data log.db --ledger a.db {short} --noise-multiplier 4")
    assert says("^charged to a.db like training: 3 steps", r.out) and says("^local only", r.out)
    r = run(f"lab audit run --recipe {recipe} --data log.db --ledger b.db {short} --json")
    assert r["delta"] == 1e-4 and r["charged_to"] == "b.db" and "bound" in r["not_private"]
    r = run("wisp privacy --ledger a.db --delta 0.001 --json")
    assert any("psilon" in k or "psilon" in json.dumps(v) for k, v in r.json.items())
    assert r["statement_version"] == 1 and r["created_by"].startswith("wisp ")
    r = run("lab audit membership --method ordinary --json")
    assert r["auc"] > 0.7 and r["members"] == r["non_members"] == 200
    mixing = "--mixing 0.4,0.3,0.2,0.1"
    for mode in ("uniform", "mixed", f"non-uniform {mixing}", f"mixed {mixing}", "base-anchored", "anchored"):
        decoding = f"lab audit decoding --mode {mode}"
        r = run(f"{decoding} --samples 2 --json")
        assert not r["refuted"] and 0.8 * r["claimed"] < r["exact"] <= r["claimed"] + 1e-9
        assert r["mode"] == ("anchored" if "anchored" in mode else "mixed")
        run(f"{decoding} --claim 0.1", 4, "REFUTED")
        run(f"{decoding} --claim nan", 2, "--claim is nan, allowed is a number")
