"""The program on models whose blocks have gates, RMS norm, rotary positions and fewer heads of keys: from a recipe to a
resumed private run, an adapter, a safetensors file and scores."""

import json

import pytest
from program import public_recipe, read, root, run, write

pytestmark = pytest.mark.usefixtures("cafe")


def recipe_with(path, architecture):
    """Writes the private recipe with another architecture."""
    changed = json.loads(read(root / "models/recipes/cafe-device.json"))
    changed["architecture"] = {"max_length": 20, "width": 16, "num_heads": 4, "num_blocks": 2, "inner_width": 12}
    changed["architecture"] |= architecture
    changed["data"]["catalogue"] = "public"
    write(path, json.dumps(changed))


LLAMA = {
    "num_kv_heads": 2,
    "rotary_width": 4,
    "norm_kind": "rms",
    "activation": "silu",
    "gated": True,
    "biases": False,
    "position_table": "none",
}


def test_llamas_architecture_and_esasrecs_block():
    # Llama's architecture and eSASRec's block, both as recipes for the data of the other tests.

    recipe_with("llama.json", LLAMA)
    recipe_with("ligr.json", {"activation": "silu", "gated": True, "residual": "gated"})
    for kind in ("llama", "ligr"):
        short = (
            f"--recipe {kind}.json --data log.db --num-records-public 60 --batch 20 --delta 0.001 --noise-multiplier 4"
        )
        run(f"wisp train {short} --epochs 2 --out {kind}.wisp --ledger {kind}.db")
        run(f"wisp inspect --model {kind}.wisp --verify")
        run(f"wisp recommend --model {kind}.wisp --history tea-mint,bagel-lentil --count 5")
        run(f"wisp privacy --ledger {kind}.db")
    for model, text in (
        ("llama", '"rotary_width": 4'),
        ("llama", '"norm_kind": "rms"'),
        ("ligr", '"residual": "gated"'),
    ):
        assert text in run(f"wisp inspect --model {model}.wisp --json").out


def test_blocks_that_differ_in_each_newer_switch():
    # Blocks that differ in each newer switch, in an order in which the first has more than the second.
    uneven = {
        "rotary_width": 4,
        "rotary_interleaved": True,
        "norm_kind": "rms",
        "gated": True,
        "biases": False,
        "num_kv_heads": 1,
        "residual": "gated",
    }
    recipe_with("mixed.json", {"temperature": 0.2, "blocks": [uneven, {}]})
    run("wisp new --recipe mixed.json --data log.db --catalogue public --out mixed.wisp")


def test_exported_to_other_programs_and_converted_back():
    # Exported to other programs and converted back, the scores are the same.
    for kind in ("llama", "ligr", "mixed"):
        run(f"wisp convert --in {kind}.wisp --out {kind}.safetensors")
        run(f"wisp convert --in {kind}.safetensors --out back.wisp --dataset 'cafe guests'")
        before = run(f"wisp recommend --model {kind}.wisp --history tea-mint,bagel-lentil --count 5 --json")
        r = run("wisp recommend --model back.wisp --history tea-mint,bagel-lentil --count 5 --json")
        assert r.out == before.out, f"{kind} scores otherwise after safetensors"


def test_keys_at_their_defaults_beside_a_model_without_such_a_key():
    # Keys at their defaults beside a model without such a key, and keys that nothing reads.
    write("defaults.json", '{"architecture": {"gated": false, "temperature": 0, "biases": true}}\n')
    run(f"wisp train --recipe {public_recipe} --model base.wisp --data log.db --epochs 1 --batch 20 --out o.wisp")
    changed = json.loads(read(root / "models/recipes/cafe.json"))
    changed["architecture"].update(gated=False, temperature=0, biases=True, norm_kind="rms")
    write("defaults.json", json.dumps(changed))
    run("wisp train --recipe defaults.json --model base.wisp --data log.db --epochs 1 --batch 20 --out o.wisp",
        0, 'norm_kind as by default for "rms"')
    write("base.json", '{"architecture": {"rotary_base": 500}}\n')
    run("wisp train --recipe base.json --data log.db --out o.wisp",
        3, "rotary_base and rotary_interleaved need a rotary_width")
