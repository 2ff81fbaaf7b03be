"""The program's private sampling of items. It is refused without a ledger or a guarantee, charged while the budget
lasts, and free for weights that carry a guarantee."""

import pytest
from program import c_program, entries, exists, label, paid, public_recipe, run, says, sql

pytestmark = pytest.mark.usefixtures("cafe")


private = "wisp recommend --model plain.wisp --history tea-mint,bagel-lentil --private"
one = f"{private} --public-dataset '{label}' --count"
sample = f"{one} 4"


def test_training_without_a_guarantee_says_so():
    # Training without a guarantee says so, and samples from the model must be paid for.
    r = run(
        f"wisp train --recipe {public_recipe} --model base.wisp --data log.db --epochs 2 --batch 20 --out plain.wisp"
        " --json"
    )
    assert set(r["not_private"]) == set(r.json) - {"not_private"}
    r = run(f"wisp train --recipe {public_recipe} --model base.wisp --data log.db --epochs 1 --batch 20 --out"
        " ordinary.wisp")
    assert says("^not private: no guarantee; local only", r.out), "a run that protects nothing does not say so"
    bare = f"{private} --count"
    run(f"{sample} --lambda 1e-3", 4, "needs a ledger")
    run(f"{sample} --ledger d.db", 2, "exactly one of --lambda (mode mixed)")
    mixed = "--ledger d.db --lambda 1e-3"
    sets = f"'{label}', 'log.db'"
    run(f"{bare} 4 {mixed}", 4, f"show the data sets {sets}, and a ledger pays for one")
    run(f"{bare} 4 {mixed} --public-dataset guests",
        2, f"--public-dataset is 'guests', which no provenance here names: its data sets are {sets}")
    run(f"{bare} 4 --public-dataset log.db --ledger d.db --base base.wisp --clip 0.5", 4, "base model must be public")
    run(f"{sample} {mixed} --support model:20", 4, "support computed from the private model")
    run("wisp recommend --model plain.wisp --history tea-mint --lambda 1e-3", 2, "private")
    target = "--ledger d.db --base base.wisp --epsilon 2 --planned-samples 8"
    run(f"{sample} {target} --delta 0.001 --num-records-public 1000", 4, "1 / 1000")
    assert not exists("d.db"), "a refused sample was charged, or made a ledger"
    r = run(f"{sample} {target} --delta 1e-6 --json")
    assert len(r["items"]) == 4 and all("score" not in i for i in r["items"]) and r["privacy"]["mode"] == "anchored"
    assert r["privacy"]["samples_charged"] == 4 and 0 < r["privacy"]["spent"] < 2
    assert r["privacy"]["limit"]["epsilon"] == 2
    r = first = run("wisp privacy --ledger d.db --delta 1e-6 --json")
    assert 0 < r["accounting"]["epsilon_of_used_part"] < r["accounting"]["epsilon"]
    assert r["accounting"]["composition"] == "plan" and r["accounting"]["parts"][0]["purpose"] == "decoding"
    assert r["accounting"]["samples"]["number"] == 4 and r["accounting"]["samples"]["pure_epsilon"] > 0
    run(f"{sample} {target} --delta 1e-6")
    r = run("wisp privacy --ledger d.db --delta 1e-6 --json")
    assert r["accounting"]["ledger_epsilon"] == first["accounting"]["ledger_epsilon"] <= 2
    run(f"{sample} {target} --delta 1e-6", 4, "nothing was charged")
    run(f"{sample} {target} --delta 1e-6 --dataset other",
        4, "--dataset is 'other', but samples from plain.wisp show the data set 'log.db'")
    paid("cafe.wisp", "cafe.db", "--dataset 'cafe log'")
    run(f"{sample} --ledger cafe.db --lambda 1e-3",
        4, "is of the data set 'cafe log', and what is to be charged is 'log.db'")
    r = run(f"{sample} {target} --delta 1e-6 --budget 0.5", 4, "the budget is to be 0.5, but epsilon")
    assert sql("d.db", "select count(*) from limits") == 1, "a budget below what is spent was written"
    assert not r.out, "a refused sample printed"
    r = run("wisp privacy --ledger d.db --delta 1e-6")
    assert says("samples alone: 8 samples: pure epsilon .* set by", r.out) and "the figure was set by" in r.out
    run(f"{sample} {target} --delta 1e-6 --budget 4", 0, "limit raised from 2 to 4")


def test_the_unused_rest_of_a_block_is_lost():
    # The unused rest of a block is lost; training and sampling add up to one figure.
    block = "--ledger o.db --epsilon-per-sample 0.01 --block 50"
    r = run(f"{one} 1 {block} --json")
    assert r["privacy"]["samples_charged"] == 50 and r["privacy"]["mode"] == "mixed"
    assert r["privacy"]["pure_epsilon_per_sample"] <= 0.0100001
    run(f"{one} 1 {block}")
    assert sql("o.db", "select group_concat(mechanism) from entries").count("steps=50") == 2
    paid("o.wisp", "l.db", "--budget 7")
    before = entries("l.db")
    free = f"wisp recommend --model o.wisp --history tea-mint --private --public-dataset '{label}'"
    r = run(f"{free} --ledger l.db")
    assert "guarantee for all data that is not declared public: sampling is free post-processing" in r.out
    assert entries("l.db") == before, "a free sample was charged"
    run(f"{sample} --ledger l.db --epsilon-per-sample 3", 4, "nothing was charged")
    r = run("wisp privacy decoding --support 10000 --lambda 1e-4 --samples 100 --delta 1e-6 --json")
    assert abs(r["pure"] - 69.3) < 0.1 and abs(r["pld"] - 1.38) < 0.01 and r["rdp"] > r["pld"] and r["set_by"] == "PLD"
    r = run("wisp privacy decoding --calibrate --epsilon 2 --samples 100 --delta 1e-6 --json")
    assert 0 < r["clip"] and 1.99 < r["pld"] <= 2
    r = run(f"{free} --public-dataset log.db")
    assert "is declared public" in r.out and not "guarantee" in r.out, "data that is all declared public"


def test_sampling_in_c():
    c_program("private_recommend")
    run(f"./private_recommend plain.wisp base.wisp p.db '{label}'")
