"""The program's adapters: trained with a model that does not change, used with it, merged into it."""

import glob
import json
import signal

from program import ROOT, checksum, copy, exists, run, running, size, sql, wait_for, write


def recipe(path, members):
    """Writes a recipe with an adapter and what else is given."""
    write(path, json.dumps({"name": "small", "adapter": {"rank": 4, "alpha": 8}} | members))


def test_recipes():
    run("wisp synth --out log.db --population device --users 80 --seed 3")
    copy(f"{ROOT}/models/cafe.wisp", "base.wisp")
    ordinary = {"method": "ordinary", "sampling": "shuffled", "epochs": 2, "expected_batch": 20}
    recipe("ordinary.json", {"training": ordinary})
    private = {"method": "phantom", "sampling": "poisson", "steps": 6, "expected_batch": 20, "num_records_public": 80}
    privacy = {"noise_multiplier": 1, "delta": 0.001, "unit": "user"}
    recipe("private.json", {"training": private, "privacy": privacy})


def test_trains_with_a_model():
    # Trains with a model, which does not change.
    before = checksum("base.wisp")
    run("wisp train --recipe ordinary.json --data log.db --out a.wisp",
        2, "has an adapter, which trains beside the weights of a model")
    run("wisp train --recipe ordinary.json --model base.wisp --data log.db --out base.wisp",
        2, "the file of the adapter and its base name the same file")
    run("wisp train --recipe ordinary.json --model base.wisp --data log.db --out a.wisp")
    run("wisp train --recipe private.json --model base.wisp --data log.db --out b.wisp --ledger log.ledger")
    assert checksum("base.wisp") == before, "training an adapter changed its base"
    assert size("a.wisp") < size("base.wisp") / 3
    assert not glob.glob("*.tmp*"), "something is left"


def test_the_file_says_that_it_is_an_adapter():
    # The file says that it is an adapter, and of which base.
    r = run("wisp inspect a.wisp --json")
    assert r["architecture"]["adapter"] == {
        "rank": 4,
        "alpha": 8,
        "matrices": ["qkv", "attention_out", "feed_forward_in", "feed_forward_out"],
    }
    assert len(r["tensors"]) == 16 and all("adapter" in t["name"] for t in r["tensors"]) and not r["item_keys"]
    base_hash = r["base_hash"]
    r = run("wisp inspect base.wisp --json")
    assert r["hash"] == base_hash
    r = run("wisp inspect b.wisp --json")
    assert r["provenance"][-1]["epsilon"] > 0 and r["provenance"][-1]["privacy_unit"] == "user"
    run("wisp evaluate --model a.wisp --data log.db", 3, "is an adapter, which is used together with its base")
    run("wisp train --recipe ordinary.json --model a.wisp --data log.db --out c.wisp", 3, "a.wisp: is an adapter")


def test_the_adapter_is_used_with_its_base():
    # The adapter is used with its base, and merged into it.
    alone = run("wisp evaluate --model base.wisp --data log.db --json").out
    beside = run("wisp evaluate --model base.wisp --adapter a.wisp --data log.db --json").out
    assert alone != beside, "the adapter changes nothing"
    run("wisp convert base.wisp --adapter a.wisp --out merged.wisp")
    assert run("wisp evaluate --model merged.wisp --data log.db --json").out == beside
    r = run("wisp inspect merged.wisp --json")
    assert "adapter" not in r["architecture"] and len(r["provenance"]) == 2 and "base_hash" not in r.json
    user = sql("log.db", "SELECT user FROM events LIMIT 1")
    run(f"wisp recommend --model base.wisp --adapter a.wisp --data log.db --user '{user}' --json")
    run(f"wisp recommend --model merged.wisp --adapter a.wisp --data log.db --user '{user}'",
        3, "it belongs to another base than merged.wisp")
    run("wisp convert base.wisp --adapter merged.wisp --out x.wisp", 3, "is a whole model, an adapter is needed")


def test_the_adapter_is_trained_further():
    # The adapter is trained further, with the planned memory.
    r = run("wisp train --recipe ordinary.json --model base.wisp --adapter a.wisp --data log.db --out c.wisp --json")
    planned = r["planned_bytes"]
    r = run("wisp inspect c.wisp --json")
    assert len(r["provenance"]) == 3
    write("other.json", '{"adapter": {"rank": 2}}')
    run("wisp train --recipe other.json --model base.wisp --adapter a.wisp --data log.db --out d.wisp",
        2, "is another adapter than the one of the recipe")
    run("wisp train --recipe ordinary.json --adapter a.wisp --data log.db --out d.wisp",
        2, "adapter is given without --model")
    r = run("wisp inspect base.wisp --memory --recipe ordinary.json --records 80 --json")
    assert r["training"]["total"] == planned
    write("other.json", '{"adapter": {"matrices": ["qkv", "head"]}}')
    run("wisp train --recipe other.json --model base.wisp --data log.db --out d.wisp",
        3, "matrices has 'head', allowed are qkv, attention_out, feed_forward_in and feed_forward_out")


def test_the_run_is_interrupted_and_resumed():
    write(
        "long.json",
        '{"name": "long", "adapter": {"rank": 4}, "training": {"method": "ordinary", "sampling": "shuffled", "steps":'
        ' 400, "expected_batch": 20}}',
    )
    with running(
        "wisp train --recipe long.json --model base.wisp --data log.db --out e.wisp --checkpoint e.checkpoint"
        " --checkpoint-every 5"
    ) as process:
        wait_for("e.checkpoint", 2)
        process.send_signal(signal.SIGINT)
        process.wait()
    if exists("e.checkpoint"):
        assert size("e.checkpoint") < size("base.wisp"), "the checkpoint holds more than the adapter"
        run("wisp train --recipe long.json --model merged.wisp --data log.db --out e.wisp --checkpoint e.checkpoint",
            3, "began with another model")
        run("wisp train --recipe long.json --model base.wisp --data log.db --out e.wisp --checkpoint e.checkpoint")
    else:
        assert exists("e.wisp"), "neither a checkpoint nor a model"


def audit(words):
    return run(f"lab audit {words} --recipe private.json")


def test_audits_train_only_the_adapter():
    # Audits train only the adapter, with a base; made-up data may use fresh weights.
    r = run("wisp inspect b.wisp --json")
    coordinates = sum(t["rows"] * t["columns"] for t in r["tensors"])
    r = audit("step --model base.wisp --observations 100 --json")
    assert r["refuted"] is False and r["coordinates"] == coordinates and 0.5 < r["reach"] < 1.001
    assert "not refuted" in audit("step --observations 100").out
    assert "not refuted" in audit("run --model base.wisp --canaries 100 --users 50 --steps 10").out
    assert "an attack, not a bound" in audit("membership --model base.wisp --users 50 --steps 10").out


def test_on_data():
    # On data, audits are charged to its ledger, and only if a run could begin.
    run("lab audit run --recipe private.json --model base.wisp --data log.db", 4, "needs --ledger")
    run("lab audit run --recipe private.json --data log.db --ledger audit.ledger", 2, "start from one")
    assert not exists("audit.ledger"), "an audit that was refused made a ledger"
    r = audit("run --model base.wisp --data log.db --ledger audit.ledger --canaries 100 --steps 10 --json")
    assert r["charged_to"] == "audit.ledger"
    r = run("wisp privacy --ledger audit.ledger --delta 1e-3 --json")
    assert r["accounting"]["steps"] == 10
