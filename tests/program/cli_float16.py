"""Float16 tables and weights in blocks of small integers: less memory for the same model, with its guarantee.
Everything reads them, C too."""

import re

import pytest
from program import BUILD, c_program, classify, exists, paid, public_recipe, recipe, remove, run, same, texts, write

pytestmark = pytest.mark.usefixtures("cafe")


def without_name(result):
    """Returns what was said but for the model's name."""
    return {key: value for key, value in result.json.items() if key != "model"}


def test_tables_of_float16():
    paid("o.wisp", "l.db")
    write("text.wisp", "not a model\n")
    run("wisp convert text.wisp --f16 --out small.wisp", 3, "text.wisp")
    assert not exists("small.wisp"), "a refused compress left a model behind"
    r = run("wisp convert o.wisp --f16 --out small.wisp --json")
    assert r["bytes"] < 0.85 * r["bytes_before"] and 0 < r["largest_rounding"] < 0.002
    run("wisp convert small.wisp --f16 --out smaller.wisp", 2, "small.wisp: its tables are f16 already")
    r = run("wisp inspect small.wisp")
    assert re.search(r"item_embedding +480 x [0-9]+ +f16", r.out, re.M) and re.search(
        r"block0.qkv.weight .* f32", r.out, re.M
    ), "inspect shows no element types"
    whole = run("wisp inspect o.wisp --verify --json")
    r = run("wisp inspect small.wisp --verify --json")
    w, changed = whole.json, ("file", "bytes", "hash", "description", "tensors")
    assert all(r[k] == w[k] for k in w if k not in changed)
    assert r["provenance"][-1]["epsilon"] is not None and "f16 by wisp " in r["description"]
    table = r["tensors"][0]
    assert table["type"] == "f16" and table["bytes"] == 2 * table["rows"] * table["columns"]
    assert r["tensors"][2]["type"] == "f32" and sum(t["bytes"] for t in r["tensors"]) < r["bytes"]
    # Lists and figures of a model whose noise differs in each run would depend on near ties.
    run("wisp convert base.wisp --f16 --out small-base.wisp")

    for backend in ("simd", "int8"):
        ask = f"--data log.db --user u00003 --count 3 --backend {backend} --json"
        whole = run(f"wisp recommend --model base.wisp {ask}")
        r = run(f"wisp recommend --model small-base.wisp {ask}")
        assert len(r.json) == 3
        assert all(a["name"] == b["name"] and abs(a["score"] - b["score"]) < 0.05 for a, b in zip(r.json, whole.json))
        whole = run(f"wisp evaluate --model base.wisp --data log.db --backend {backend} --json")
        r = run(f"wisp evaluate --model small-base.wisp --data log.db --backend {backend} --json")
        assert abs(r["ndcg@10"] - whole.json["ndcg@10"]) < 0.02
    small = run("wisp inspect small.wisp --memory --json")
    r = run("wisp inspect o.wisp --memory --json")
    assert small.json["inference"]["packed_weights"] < r["inference"]["packed_weights"]
    run(f"wisp train --recipe {public_recipe} --model small.wisp --data log.db --epochs 1 --batch 20 --out"
        " from-small.wisp")
    run(f"lab audit step --model small.wisp --recipe {recipe} --method phantom --noise-multiplier 1 --observations 500"
        " --reproducible-noise 3 --confidence 0.999")
    run("wisp convert small.wisp --out small.safetensors")
    run("lab bench --what score --model small.wisp --repeats 1 --json")
    # These floats in the order of the products give the same scores, without a copy of them.
    r = run("wisp convert o.wisp --panels --out panels.wisp --json")
    assert r["weights"] == "f32 panels" and r["largest_rounding"] == 0
    run("wisp convert panels.wisp --panels --out again.wisp", 2, "panels.wisp: its weights are f32 panels already")
    run("wisp convert small.wisp --panels --out again.wisp",
        2, "small.wisp: its tables are f16; allowed for --panels is a model that is f32")
    run("wisp convert o.wisp --panels --int8 --out again.wisp", 2, "--int8 and --panels are both given, allowed is one")
    whole = run("wisp evaluate --model o.wisp --data log.db --json")
    r = run("wisp evaluate --model panels.wisp --data log.db --json")
    assert without_name(r) == without_name(whole), "panels change what an evaluation says"
    panels = run("wisp inspect panels.wisp --memory --json")
    r = run("wisp inspect o.wisp --memory --json")
    assert panels.json["inference"]["packed_weights"] < r["inference"]["packed_weights"] / 4
    run("wisp convert panels.wisp --int8 --out from-panels.wisp")
    run("wisp convert o.wisp --int8 --out from-floats.wisp")
    for model in ("from-panels", "from-floats"):
        run(f"wisp convert {model}.wisp --out {model}.safetensors")
    assert same("from-panels.safetensors", "from-floats.safetensors")
    # Blocks of small integers: even fewer bytes, and similar scores.
    for bits in ("int8", "int4"):
        r = run(f"wisp convert o.wisp --{bits} --out {bits}.wisp --json")
        assert r["weights"] == bits and r["bytes"] < 0.6 * r["bytes_before"] and 0 < r["largest_rounding"] < 0.2
        run(
            f"wisp convert {bits}.wisp --{bits} --out smaller.wisp", 2, f"{bits}.wisp: its weights are {bits} already"
        )
        run(f"wisp convert {bits}.wisp --f16 --out smaller.wisp", 2, f"{bits}.wisp: its tables are {bits} already")
        r = run(f"wisp inspect {bits}.wisp --verify --json")
        assert r["provenance"][-1]["epsilon"] is not None and "integers" in r["description"]
        assert {t["name"]: t["type"] for t in r["tensors"]}["block0.qkv.weight"] == bits
        run(f"wisp convert base.wisp --{bits} --out {bits}-base.wisp")
        for backend in ("simd", "int8"):
            whole = run(f"wisp evaluate --model base.wisp --data log.db --backend {backend} --json")
            r = run(f"wisp evaluate --model {bits}-base.wisp --data log.db --backend {backend} --json")
            assert abs(r["ndcg@10"] - whole.json["ndcg@10"]) < 0.02
        r = run(f"wisp inspect {bits}.wisp --memory --json")
        assert r["inference"]["packed_weights"] < 4096
        run(f"wisp train --recipe {public_recipe} --model {bits}.wisp --data log.db --epochs 1 --batch 20 --out"
            " from.wisp")
        run(f"wisp convert {bits}.wisp --out blocks.safetensors")
    r = run("wisp convert int8.wisp --int4 --out twice.wisp",
        0, "warning: int8.wisp has weights that were rounded to int8 before")
    assert "twice.wisp" in r.out, "what was rounded twice was not written"
    r = run("wisp convert o.wisp --int4 --out smaller.wisp")
    assert "rounded to int8 before" not in r.err, "one rounding is taken for two"
    remove("smaller.wisp")
    run("wisp convert o.wisp --int8 --int4 --out smaller.wisp", 2, "allowed is one of them")
    # A classifier.
    texts()
    run(f"{classify} --mode paper --epochs 30 --reproducible-noise 3")
    run("wisp convert texts.wisp --f16 --out small-texts.wisp")
    ask = "--text 'the film is GREAT' --text 'the film is dull' --json"
    r = run(f"wisp classify --model small-texts.wisp {ask}")
    assert r[0]["class"] == "good" and r[1]["class"] == "bad"
    run("wisp evaluate --model small-texts.wisp --labelled train.txt --json")
    # In C.
    r = run(f"{BUILD}/wisp_example small-base.wisp log.db s.db s.wisp u00003 8", 0, "epsilon so far")
    assert "after" in r.out, "the C example printed"
    c_program("lent_threads")
    lent = run("./lent_threads small-base.wisp log.db lent-small.db lent.wisp")
    r = run("wisp inspect small-base.wisp --memory --json")
    assert str(r["inference"]["total"]) == lent.out.split()[0]
