"""Keys and values of a recipe that the program refuses, and that each of its keys is explained."""

import pytest
from program import BUILD, ROOT, edit, exists, public_recipe, recipe, run, write

pytestmark = pytest.mark.usefixtures("cafe")


based = "--model base.wisp --data log.db --out o.wisp --ledger l.db"


def test_keys_that_are_unknown_or_in_the_wrong_place():
    edit(recipe, "unknown.json", r'"epochs"', r'"epochz"')
    run(f"wisp train --recipe unknown.json {based}", 3, "epochz")
    misplaced = "--recipe misplaced.json --data log.db --out o.wisp"
    write("misplaced.json", '{"training": {"epsilon": 3}}')
    run(
        f"wisp train {misplaced}",
        3,
        "training has the unknown key 'epsilon', allowed are method, .*; 'epsilon' belongs in 'training.optimizer' or"
        " 'privacy'$",
    )
    write("misplaced.json", '{"privacy": {"delta": 1e-6, "num_records_public": 3}}')
    run(f"wisp train {misplaced}", 3, "'num_records_public' belongs in 'training'$")
    write("misplaced.json", '{"dp_fp": {"classes": ["a", "b"]}}')
    run(f"wisp train {misplaced.replace('--data', '--labelled')}", 3, "'classes' belongs in 'data'$")
    write("misplaced.json", '{"data": {"name": "x", "catalog": "public"}}')
    run(f"wisp train {misplaced}",
        3, "data has the unknown key 'catalog', allowed are min_user_events, .*, hold_out, allow_seen$")
    write("misplaced.json", '{"data": {"name": "x"}}')
    run(f"wisp train {misplaced}", 3, "'name' belongs in the top level$")
    run(f"python3 {ROOT}/tests/recipe_keys.py {BUILD}/wisp {ROOT}/models/README.md")
    run(f"python3 {ROOT}/tests/fields.py {BUILD}/wisp-lab {ROOT}")


def test_a_text_is_one_record():
    # A text is one record, and belongs to no session or day.
    edit(f"{ROOT}/models/recipes/sst2-minilm-head.json", "days.json", r'"unit": "interaction"', r'"unit": "day"')
    run(f"wisp train --recipe days.json --labelled log.db --model {ROOT}/models/cafe.wisp --out o.wisp",
        3, 'privacy.unit is "day", allowed are user, interaction')
    edit(f"{ROOT}/models/recipes/tinyshakespeare.json", "days.json", r'"unit": "interaction"', r'"unit": "day"')
    run("wisp train --recipe days.json --data log.db --out o.wisp",
        3, "privacy.unit is day, allowed are interaction and user")
    edit(recipe, "type.json", r'"expected_batch": [0-9]*', r'"expected_batch": "many"')
    run(f"wisp train --recipe type.json {based}", 3, "expected_batch")


def allows(model):
    return run(f"wisp inspect --model {model}.wisp --json")["allow_seen"]


def test_whoever_makes_a_model_says_once_if_its_lists_may_hold_items_of_the_his():
    # The file says it, and so do models that are made from it.
    shape = '"architecture": {"max_length": 8, "width": 8}'
    write("silent.json", f"{{{shape}}}\n")
    write("allowing.json", f'{{{shape}, "data": {{"allow_seen": true}}}}\n')
    write("refusing.json", '{"training": {"epochs": 1, "expected_batch": 20}, "data": {"allow_seen": false}}\n')
    write("short.json", '{"training": {"epochs": 1, "expected_batch": 20}}\n')
    run("wisp new --recipe silent.json --num-items 9 --out silent.wisp")
    run("wisp new --recipe allowing.json --num-items 9 --out allowing.wisp")
    for name in ("short", "refusing"):
        r = run(f"wisp train --recipe {name}.json --model base.wisp --data log.db --out {name}.wisp")
    assert "count as misses" in r.err, "training for lists without repeats does not say that people repeat"
    for name in ("silent", "allowing", "base"):
        run(f"wisp convert {name}.wisp --out {name}.safetensors")
        run(f"wisp convert {name}.safetensors --out {name}-back.wisp")
    run("wisp convert silent.safetensors --out chosen.wisp --allow-seen")
    write("gone.txt", "tea-mint\n")
    run("wisp convert base.wisp --f16 --out half.wisp")
    run("wisp catalogue retire --model base.wisp --items gone.txt --out fewer.wisp")
    for model in ("base", "allowing", "short", "base-back", "allowing-back", "chosen", "half", "fewer"):
        assert allows(model) is True
    for model in ("silent", "refusing", "silent-back"):
        assert allows(model) is False


def test_evaluation_uses_the_shown_lists():
    # Evaluation uses the shown lists, and asks only the model.
    for model in ("short", "refusing"):

        r = run(f"wisp recommend --model {model}.wisp --history tea-mint --count 480 --json")
        assert len(r.json) == (480 if model == "short" else 479)
    r = run("wisp recommend --model short.wisp --history tea-mint --count 480 --exclude-seen --json")
    assert len(r.json) == 479
    run("wisp recommend --model short.wisp --history tea-mint --exclude-seen --allow-seen", 2, "exclude")
    run("wisp evaluate --model base.wisp --data log.db --allow-seen", 2, "allow-seen")
    r = run("wisp evaluate --model short.wisp --data log.db --json")
    assert r["hit@10"] > 0.2
    assert not r.err, "a model that lets items come back is told that people repeat"


def block(said, architecture):
    write("block.json", f'{{"architecture": {{{architecture}}}}}')
    run("wisp train --recipe block.json --data log.db --out o.wisp", 3, said)


def test_architectures_that_a_block_cannot_have():
    block("rotary_width is 3, allowed are even", '"width": 8, "rotary_width": 3')
    block("num_kv_heads is 3, which does not divide num_heads 4", '"width": 8, "num_heads": 4, "num_kv_heads": 3')
    block('norm_kind is "batch", allowed are layer, rms', '"norm_kind": "batch"')
    block('activation is "swish", allowed are relu, gelu, gelu_tanh, silu', '"activation": "swish"')
    block("gated is 1, allowed are true and false", '"gated": 1')
    block("no variance is known for gated residuals", '"residual": "gated", "re_attention": "on"')


def test_an_epsilon_that_protects_nothing():
    edit(recipe, "absurd.json", r'"epsilon": [0-9.]*', r'"epsilon": 1000')
    run(f"wisp train --recipe absurd.json {based}", 3, "1e-06 to 100")
    run("wisp privacy calibrate --epsilon 1000 --delta 1e-5 --q 0.04 --steps 2000", 2, "1e-06 to 100")


def test_recipes_of_another_kind():
    classifier = f"{ROOT}/models/recipes/sst2-dp-fp.json"
    run(f"wisp train --recipe {classifier} --data log.db --out o.wisp", 3, "is the recipe of a classifier")
    run(
        f"wisp train --recipe {public_recipe} --labelled log.db --out o.wisp", 3, "is the recipe of a recommender"
    )
    write("no-json.json", '{"name": nothing}\n')
    r = run("wisp train --recipe no-json.json --data log.db --out o.wisp",
        3, "no-json.json: not JSON: parse error at line 1")
    assert "json.exception" not in r.err, "the library's name is in an error"
    assert not exists("o.wisp") and not exists("l.db"), "a recipe that was refused left a model or a ledger behind"
