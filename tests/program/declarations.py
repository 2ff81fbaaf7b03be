"""The program's required declarations before private data leaves a trace, and that declarations are recorded."""

import json

import pytest
from program import edit, exists, label, public_recipe, read, recipe, run, write

pytestmark = pytest.mark.usefixtures("cafe")


PLAIN = """{"name": "plain",
 "architecture": {"max_length": 20, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8},
 "training": {"method": "ordinary", "sampling": "shuffled", "epochs": 1, "expected_batch": 10, "seed": 7}}
"""
TEXTS = """{"name": "texts",
 "architecture": {"max_length": 8, "width": 8, "num_heads": 1, "num_blocks": 1, "inner_width": 8, "attend": "all"},
 "training": {"epochs": 1, "expected_batch": 50, "num_records_public": 2000}, "dp_fp": {"micro_batches": 2},
 "privacy": {"noise_multiplier": 1, "delta": 0.0005, "allow_delta_of_one_record": true,
  "uncharged_tuning": "the width"},
 "data": {"catalogue": "public", "classes": ["bad", "good"]}}
"""
fit = "--data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001"


def test_a_model_without_training_would_list_the_items_of_a_private_log():
    # A model without training would list the items of a private log: an item of a single user would stand in the file.
    run("wisp synth --out lone.txt --population device --users 60 --seed 3")
    write("lone.txt", read("lone.txt") + "u00001 item-of-one-user\n")
    write("plain.json", PLAIN)

    run("wisp new --recipe plain.json --data lone.txt --out new.wisp",
        4, "declare the list of items public (--catalogue public")
    edit("plain.json", "rare.json", r'"training"', r'"data": {"min_item_events": 2}, "training"')
    run(
        "wisp new --recipe rare.json --catalogue public --data lone.txt --out new.wisp", 4, "data.min_item_events is 2"
    )


def test_so_would_a_minimum_of_events_per_user():
    # So would a minimum of events per user: with one more event of that user, its items are in the list.
    edit("plain.json", "idle.json", r'"training"', r'"data": {"min_user_events": 2}, "training"')
    run(
        "wisp new --recipe idle.json --catalogue public --data lone.txt --out new.wisp", 4, "data.min_user_events is 2"
    )
    edit(
        "plain.json",
        "idle-dp.json",
        r'"method": "ordinary", "sampling": "shuffled"',
        r'"method": "phantom", "sampling": "poisson"',
    )
    edit(
        "idle-dp.json",
        "idle-dp.json",
        r'"training"',
        r'"data": {"catalogue": "public", "min_user_events": 2}, "training"',
    )
    run("wisp train --recipe idle-dp.json --data lone.txt --num-records-public 60 --epsilon 2 --delta 0.001 --ledger"
        " idle.ledger --out new.wisp",
        4, "data.min_user_events is 2")
    assert not exists("idle.ledger"), "a refused run left a ledger"
    assert not exists("new.wisp"), "a refused model was written"
    run("wisp new --recipe plain.json --catalogue secret --data lone.txt --out new.wisp", 2, "catalogue")
    run("wisp new --recipe plain.json --catalogue public --data lone.txt --out new.wisp")
    r = run("wisp inspect new.wisp")
    assert "the list of items is that of 'lone.txt', which was declared public" in r.out
    edit("plain.json", "public.json", r'"training"', r'"data": {"catalogue": "public"}, "training"')
    run("wisp new --recipe public.json --data lone.txt --out new.wisp")
    run("wisp new --recipe plain.json --num-items 9 --out new.wisp")


def test_in_a_model_without_keys():
    # In a model without keys, a history is given by the numbers that a list shows.
    r = run("wisp recommend --model new.wisp --history 3,8 --count 2 --json")
    assert len(r.json) == 2 and all(i["item"] in range(9) for i in r.json)
    run("wisp recommend --model new.wisp --history 9",
        2, "--history names item '9'; the model has no keys, allowed are numbers 0 to 8")
    run("wisp recommend --model new.wisp --history tea", 2, "--history names item 'tea'; the model has no keys")


def test_private_training_must_not_take_items_from_private_data_either():
    # Private training must not take items from private data either, or let one user decide if others' events stay.
    bare = f"wisp train --model base.wisp {fit} --epsilon 2 --out bare.wisp --ledger bare.ledger"
    run(f"wisp train --recipe {recipe} {fit} --epsilon 2 --out bare.wisp --ledger bare.ledger",
        4, "private training takes the catalogue from the data: declare it public")
    edit(recipe, "rare.json", r'"hold_out"', r'"min_item_events": 2, "hold_out"')
    run(f"{bare} --recipe rare.json", 4, "private training with data.min_item_events 2: one user could decide")
    assert not exists("bare.wisp") and not exists("bare.ledger"), "a refused run left a model or a ledger behind"


sample = f"wisp recommend --history tea-mint --private --count 2 --public-dataset '{label}'"


def test_sampling_needs_a_ledger_that_includes_the_charges_of_model_and_base_on():
    # Sampling needs a ledger that includes the charges of model and base on the same data.
    run(f"wisp train --recipe {recipe} --model base.wisp {fit} --epsilon 2 --out paid.wisp --ledger paid.ledger")
    run(f"wisp train --recipe {public_recipe} --model paid.wisp --data log.db --epochs 1 --batch 20 --out plain.wisp")
    run(
        f"{sample} --model paid.wisp --dataset log.db --ledger other.ledger",
        4,
        "the model: it was trained on 'log.db' before, for epsilon 2 at delta 0.001, and ledger 'other.ledger' did not"
        " pay for it",
    )
    run(f"{sample} --model plain.wisp --ledger other.ledger --lambda 0.5",
        4, "the model: it was trained on 'log.db' before")
    run(f"wisp train --recipe {public_recipe} --model base.wisp --data log.db --epochs 1 --batch 20 --out open.wisp")
    run(f"{sample} --model open.wisp --base paid.wisp --ledger other.ledger --clip 0.5",
        4, "the base model: it was trained on 'log.db' before")
    assert not exists("other.ledger"), "a refused sample left a ledger behind"
    run(f"{sample} --model open.wisp --base paid.wisp --ledger paid.ledger --clip 0.5")
    run(f"{sample} --model plain.wisp --ledger paid.ledger --lambda 0.5")
    run(f"{sample} --model paid.wisp --ledger paid.ledger")
    run(f"{sample} --model open.wisp --base base.wisp --ledger other.ledger --clip 0.5")
    run(f"{sample} --model plain.wisp --ledger other.ledger --lambda 0.5 --other-data")
    run("wisp recommend --history tea-mint --model plain.wisp --other-data", 2, "private")


def test_a_recipes_permission_for_its_own_delta_does_not_apply_to_another_delta():
    edit(recipe, "allow.json", r'(?m)"epsilon": 7.9, *$', r'"allow_delta_of_one_record": true, \g<0>')
    run("wisp train --recipe allow.json --model base.wisp --data log.db --num-records-public 50 --batch 20 --epochs 1"
        " --delta 0.02 --out bare.wisp --ledger bare.ledger",
        4, "delta is 0.02, which is not below 1 / 50 records")
    write("texts.txt", "bad\tthe film is dull\ngood\tthe film is great\n" * 100)

    write("texts.json", TEXTS)

    classify = (
        "wisp train --recipe texts.json --labelled texts.txt --out texts.wisp --ledger texts.ledger --threads 1"
    )
    run(f"{classify} --delta 0.0005", 4, "not below 1 / 2000")
    run(classify)


def test_with_one_record():
    # With one record, the output says how little that is worth.
    run("wisp train --recipe texts.json --labelled texts.txt --out one.wisp --ledger one.ledger --threads 1"
        " --num-records-public 1 --batch 1 --delta 1e-5",
        0, "there is one record, one interaction")
    # The statement says if somebody chose the unit. Nobody did here.
    r = run("wisp privacy --ledger texts.ledger --json")
    assert r["definition"]["privacy_unit_chosen"] is False


def test_choices_that_were_made_on_the_same_data_without_a_charge_stand_in_the():
    # Choices that were made on the same data without a charge stand in the statement of the run, of the ledger, and in
    # the model.
    r = run("wisp privacy --ledger texts.ledger --json")
    assert r["definition"]["uncharged_tuning"] == ["the width"]
    r = run("wisp inspect texts.wisp")
    assert "chosen on the same data without a charge: the width" in r.out, "the classifier does not say what was tuned"
    tuned = f"wisp train --recipe {recipe} --model base.wisp {fit} --epsilon 1 --out tuned.wisp --ledger tuned.ledger"
    run(f"{tuned} --uncharged-tuning 'rate; batch'", 2, "has a semicolon")
    run(f"wisp train --recipe {recipe} --model base.wisp --data log.db --method ordinary --out tuned.wisp"
        " --uncharged-tuning rate",
        2, "which protects nothing")
    assert not exists("tuned.ledger"), "a refused run was charged"
    run(f"{tuned} --privacy-json p.json")
    assert json.loads(read("p.json"))["definition"]["uncharged_tuning"] == []
    run(f"{tuned} --privacy-json p.json --uncharged-tuning 'learning rate (3 values), batch'")
    assert json.loads(read("p.json"))["definition"]["uncharged_tuning"] == ["learning rate (3 values), batch"]
    r = run("wisp privacy --ledger tuned.ledger --delta 0.001 --json")
    assert r["definition"]["privacy_unit_chosen"] is True
    run(f"{sample} --model open.wisp --ledger sampled.ledger --lambda 0.5 --uncharged-tuning lambda")
    r = run("wisp privacy --ledger sampled.ledger --json")
    assert r["definition"]["uncharged_tuning"] == ["lambda"] and r["definition"]["privacy_unit_chosen"] is False
    run(f"{sample} --model open.wisp --ledger day.ledger --lambda 0.5 --unit day")
    r = run("wisp privacy --ledger day.ledger --json")
    assert r["definition"]["privacy_unit"] == "day" and r["definition"]["privacy_unit_chosen"] is True
    r = run("wisp privacy --ledger tuned.ledger --delta 0.001")
    assert "chosen on the same data without a charge: learning rate (3 values), batch" in r.out
    r = run("wisp inspect tuned.wisp")
    assert "chosen on the same data without a charge: learning rate (3 values), batch on log.db" in r.out
