"""Models to and from safetensors files: bit for bit in both directions, refusals, nothing half-written, and no false
claims by a model from outside. tools/lab/bench/peers/parity.py compares scores with PyTorch, if $PYTHON has it."""

import glob
import json
import os
import struct
from pathlib import Path

import pytest
from program import BUILD, ROOT, Safetensors, copy, exists, kept, recipe, remove, root, run, same, says, try_run, write

ROUND_TRIP = """{"architecture": {"max_length": 9, "width": 12, "num_heads": 3, "num_blocks": 3, "inner_width": 7,
  "embedding_scale": 3.4641016, "attention_slope": 0.3, "norm_epsilon": 1e-7, "activation": "relu", "norm": "post",
  "output_table": "untied", "output_bias": "trained", "positions": "end", "attend": "all", "re_attention": "on"}}
"""
ARCHITECTURE = "wisp.architecture"
SCALE = '{"embedding_scale": 6}'


def with_metadata(path, new, **values):
    """Writes a copy with other values of __metadata__."""
    file = Safetensors(path)
    file.header["__metadata__"] = file.metadata | {f"wisp.{name}": value for name, value in values.items()}
    file.write(new)


def inspect(model):
    return run(f"wisp inspect {model} --verify --json").json


def recommend(model, options):
    return run(f"wisp recommend --model {model} {options}").out


@pytest.fixture(scope="module", autouse=True)
def cafe_model(work_folder):
    copy(root / "models/cafe.wisp", "cafe.wisp")


@pytest.mark.parametrize("model", ("cafe", "other"))
def test_exported_and_converted_back(model):
    # One of the two models has every switch of a recipe.
    if model == "other":
        write("other.json", ROUND_TRIP)
        run("wisp new --recipe other.json --num-items 31 --out other.wisp")
    run(f"wisp convert {model}.wisp --out {model}.safetensors")
    run(f"wisp convert {model}.safetensors --out {model}-back.wisp")
    run(f"wisp convert {model}-back.wisp --out {model}-back.safetensors")
    there, back = Safetensors(f"{model}.safetensors"), Safetensors(f"{model}-back.safetensors")
    assert there.tensors() == back.tensors() and there.metadata[ARCHITECTURE] == back.metadata[ARCHITECTURE]
    a, b = inspect(f"{model}.wisp"), inspect(f"{model}-back.wisp")
    assert all(a[key] == b[key] for key in ("architecture", "tensors", "item_keys", "item_names"))


def test_items_that_nobody_is_shown_stay_hidden():
    write("gone.txt", "tea-mint\n")
    write("new.tsv", "new-tea\tNew tea\n")
    run("wisp catalogue retire --model cafe.wisp --items gone.txt --out less.wisp")
    run("wisp catalogue add --model less.wisp --items new.tsv --out withheld.wisp")
    run("wisp convert withheld.wisp --out withheld.safetensors")
    run("wisp convert withheld.safetensors --out withheld-back.wisp")
    j = inspect("withheld-back.wisp")
    assert j["retired_items"] == 1 and j["untrained_items"] == 1 and j["allow_seen"]
    whole = "--history bagel-lentil --count 481 --json"
    back = recommend("withheld-back.wisp", whole)
    assert back == recommend("withheld.wisp", whole), "items that were withheld came back"
    assert '"tea-mint"' not in back and '"new-tea"' not in back, "an item that is withheld is shown"


DAMAGES = (
    ("retired", "[481]"),
    ("retired", "[3, 3]"),
    ("untrained", "[5, 4]"),
    ("untrained", "[-1]"),
    ("retired", "[[1]]"),
    ("untrained", "7"),
    ("retired", "["),
)


@pytest.mark.parametrize("key, value", DAMAGES)
def test_damaged_data_about_hidden_items_does_not_show_them_again(key, value):
    with_metadata("withheld.safetensors", "damaged.safetensors", **{key: value})
    allowed = "allowed is a list of items, which are 0 to 480, each once, ascending"
    run("wisp convert damaged.safetensors --out damaged.wisp",
        3, f"damaged.safetensors: __metadata__ 'wisp.{key}' is '.*'; {allowed}")
    assert not exists("damaged.wisp"), "a refused file left a model behind"


def test_at_least_one_item_must_be_left():
    with_metadata("withheld.safetensors", "damaged.safetensors", retired=json.dumps(list(range(481))))
    said = "__metadata__ 'wisp.retired' and 'wisp.untrained' hold all 481 items; at least one must be left"
    run("wisp convert damaged.safetensors --out damaged.wisp", 3, f"damaged.safetensors: {said}")
    assert not exists("damaged.wisp"), "a refused file left a model behind"


def test_scores_names_and_provenance_stay():
    ask = "--history tea-mint,bagel-lentil --count 480 --allow-seen --json"
    assert recommend("cafe-back.wisp", ask) == recommend("cafe.wisp", ask)
    provenance = Safetensors("cafe.safetensors").metadata["wisp.provenance"]
    assert "synthetic public cafe guests" in provenance and "no privacy guarantee" in provenance


def test_a_config_may_leave_out_what_shapes_tell():
    # If it says it, they must agree. A recipe is a config too.
    bare = Safetensors("cafe.safetensors")
    del bare.header["__metadata__"]
    bare.write("bare.safetensors")
    foreign = Safetensors("cafe.safetensors")
    foreign.header = {
        "model.embed_tokens.weight": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]},
        "lm_head.weight": {"dtype": "F32", "shape": [1], "data_offsets": [24, 28]},
    }
    foreign.data = bytearray(28)
    foreign.write("foreign.safetensors")
    said = "it is not a recommender of wisp's: it holds .*model.embed_tokens.weight.*"
    said += "Supported are .*item_embedding.weight .items, width.*docs/convert.md"
    run("wisp convert foreign.safetensors --out o.wisp", 3, f"foreign.safetensors: {said}")
    assert not exists("o.wisp"), "a refused convert wrote a model"
    said = "bare.safetensors: its __metadata__ has no 'wisp.architecture': --config is needed"
    run("wisp convert bare.safetensors --out o.wisp", 2, said)
    write("config.json", SCALE)
    said = "it lies beside a config.json, .*give the folder '\\.'\\. By itself it is not a recommender of wisp's"
    run("wisp convert foreign.safetensors --out o.wisp", 3, f"foreign.safetensors: {said}")
    run("wisp convert bare.safetensors --out o.wisp --config config.json")
    run("wisp convert o.wisp --out o.safetensors")
    there, back = Safetensors("cafe.safetensors"), Safetensors("o.safetensors")
    assert there.tensors() == back.tensors() and there.metadata[ARCHITECTURE] == back.metadata[ARCHITECTURE]
    j = inspect("o.wisp")
    assert not j["item_keys"] and not j["item_names"]
    run(f"wisp convert bare.safetensors --out o.wisp --config {ROOT}/models/recipes/cafe.json")
    remove("o.wisp")
    for config, said in (
        ('{"width": 31}', "config.json:.width is 31, the tensors of bare.safetensors say 32"),
        ('{"num_blocks": 1}', "num_blocks is 1, the tensors of bare.safetensors say 2"),
        ('{"norm": "post"}', "tensor 'final_norm.weight' belongs to nothing"),
        ('{"num_heads": 5}', "num_heads is 5, which does not divide width 32"),
        ('{"widht": 32}', "unknown key 'widht'"),
    ):
        write("config.json", config)
        run("wisp convert bare.safetensors --out o.wisp --config config.json", 3, said)
    with_metadata("cafe.safetensors", "no-json.safetensors", architecture="{")
    run("wisp convert no-json.safetensors --out o.wisp",
        3, "__metadata__ 'wisp.architecture' is '{', which is not JSON")


def test_a_sasrec_of_another_program():
    # It is recognised by its tensors; its items are named by their numbers, from 1.
    sasrec = f"{ROOT}/tests/golden/sasrec"
    said = "recbole.safetensors: it is a SASRec of RecBole, whose tensors do not tell the heads"
    run(f"wisp convert {sasrec}/recbole.safetensors --out r.wisp", 2, said)
    write("heads.json", '{"num_heads": 2, "norm": "post"}\n')
    run(f"wisp convert {sasrec}/recbole.safetensors --out r.wisp --config heads.json")
    said = "is of SASRec.pytorch, which attends to the padding before a history shorter than 7"
    run(f"wisp convert {sasrec}/sasrec_pytorch.safetensors --out p.wisp --config heads.json", 0, said)
    expected = json.loads((root / "tests/golden/sasrec/expected.json").read_text())
    for model, cases in (("r", "recbole"), ("p", "post")):
        for one in expected[cases][:5]:
            best = sorted(range(len(one["scores"])), key=lambda i: -one["scores"][i])[:10]
            history = ",".join(map(str, one["history"]))
            found = json.loads(recommend(f"{model}.wisp", f"--history {history} --count 10 --allow-seen --json"))
            assert [item["item"] for item in found] == [str(i + 1) for i in best], f"lists of {cases} differ"


def test_a_file_of_pytorch():
    write("m.pth", "PK\x03\x04 and the rest")
    run("wisp convert m.pth --out o.wisp", 3, "m.pth: it is a zip archive, as torch saves")


def test_items():
    for keys, said in (
        ("[1]", "allowed is a list of texts\\|is no list of texts"),
        ('["a"]', "there are 1 of them for 480 items"),
    ):
        with_metadata("bare.safetensors", "keyed.safetensors", architecture=SCALE, item_keys=keys)
        run("wisp convert keyed.safetensors --out o.wisp", 3, said)
    keys = "".join(f"{n}\n" for n in range(1, 480))
    write("keys.txt", keys)
    write("twice.txt", keys + "7\n")
    write("all.txt", keys + "480\n")
    write("names.txt", "3\tthree\n")
    convert = "wisp convert cafe.safetensors --out"
    run(f"{convert} o.wisp --item-keys keys.txt", 3, "keys.txt: there are 479 of them for 480 items")
    run(f"{convert} o.wisp --item-keys twice.txt", 2, "'7'\\|\"7\"\\| 7")
    run(f"wisp convert bare.safetensors --out o.wisp --config {ROOT}/models/recipes/cafe.json --item-names keys.txt",
        2, "--item-names needs --item-keys")
    assert not exists("o.wisp"), "a refused file left a model behind"
    run(f"{convert} keyed.wisp --item-keys all.txt --item-names names.txt")
    j = inspect("keyed.wisp")
    assert j["item_keys"] and j["item_names"]
    recommend("keyed.wisp", "--history 3 --count 3")


def test_damage_and_other_kinds_are_named_and_existing_files_stay():
    copy("cafe.wisp", "o.wisp")
    whole = Path("cafe.safetensors").read_bytes()
    Path("cut.safetensors").write_bytes(whole[:5000])
    Path("short.safetensors").write_bytes(whole[:-5])
    promised = len(Safetensors("cafe.safetensors").data)
    cut = "it is cut short, or damaged: the header promises"

    def refused(name, said):
        run(f"wisp convert {name} --out o.wisp", 3, f"{name}{said}")

    refused("cut.safetensors", f": {cut} [0-9]* bytes of itself, there are 4992")
    refused("short.safetensors", f": {cut} {promised} bytes of data, there are {promised - 5}")
    run("wisp convert cafe.wisp --out o.wisp", 2, "cafe.wisp: is a wisp model, and nothing says what to make of it")
    refused("nowhere.safetensors", "")
    file = Safetensors("cafe.safetensors")
    file.data += b"1234"
    file.write("gap.safetensors")
    refused("gap.safetensors", ": there are 4 bytes of data behind the last tensor")
    file = Safetensors("cafe.safetensors")
    file.header["final_norm.bias"]["dtype"] = "I32"
    file.write("type.safetensors")
    refused("type.safetensors", ": tensor 'final_norm.bias' has the dtype 'I32', allowed are F32, F16 and BF16")
    file = Safetensors("cafe.safetensors")
    struct.pack_into("<f", file.data, file.header["final_norm.bias"]["data_offsets"][0], float("inf"))
    file.write("nan.safetensors")
    refused("nan.safetensors", ": tensor 'final_norm.bias' holds inf at place 0, allowed are finite numbers")
    file = Safetensors("cafe.safetensors")
    file.header["final_norm.beta"] = file.header.pop("final_norm.bias")
    file.write("name.safetensors")
    refused("name.safetensors", ": there is no tensor 'final_norm.bias'")
    assert same("cafe.wisp", "o.wisp"), "a refused file changed the model that was there"
    copy("cafe.safetensors", "kept.safetensors")
    run("wisp convert cut.wisp --out kept.safetensors", 3, "cut.wisp")
    run("wisp convert cafe.wisp --out nowhere/o.safetensors", 3, "nowhere")
    run("wisp convert cafe.safetensors --out nowhere/o.wisp", 3, "nowhere")
    assert same("kept.safetensors", "cafe.safetensors"), "a refused export changed the file that was there"
    assert not glob.glob("*tmp*"), "a temporary file was left"


@pytest.mark.parametrize("kind", ("F16", "BF16"))
def test_f16_and_bf16_become_float32(kind):
    # Numbers that are exact in both come back unchanged.
    narrow, wide, data = Safetensors("other.safetensors"), Safetensors("other.safetensors"), bytearray()
    for entry in narrow.entries().values():
        begin, end = entry["data_offsets"]
        values = [0.5 if i % 3 else 2.0 for i in range((end - begin) // 4)]
        struct.pack_into(f"<{len(values)}f", wide.data, begin, *values)
        entry.update(data_offsets=[len(data), len(data) + 2 * len(values)], dtype=kind)
        data += b"".join(struct.pack("<e", x) if kind == "F16" else struct.pack("<f", x)[2:] for x in values)
    narrow.data = data
    narrow.write("narrow.safetensors")
    run("wisp convert narrow.safetensors --out narrow.wisp")
    run("wisp convert narrow.wisp --out back.safetensors")
    assert Safetensors("back.safetensors").tensors() == wide.tensors()


def test_a_model_from_outside_counts_as_neither_untrained_nor_public_nor_private():
    # Its file may say otherwise.
    provenance = inspect("cafe-back.wisp")["provenance"]
    assert [(p["epsilon"], p["dataset"]) for p in provenance] == [(None, "unknown, imported")]
    with_metadata("cafe.safetensors", "boast.safetensors", provenance="epsilon 0, public")
    said = "boast.safetensors states 'epsilon 0, public': nothing vouches for that"
    run("wisp convert boast.safetensors --out boast.wisp", 0, said)
    for model in ("boast.wisp", "cafe-back.wisp"):
        draw = f"wisp recommend --model {model} --history tea-mint --private"
        run(f"{draw} --public-dataset 'unknown, imported'", 2, "which no provenance here names")
        run(draw, 4, "states no epsilon")
    kept("log.db", lambda: run("wisp synth --out log.db --population device --users 60 --seed 3"))
    train = f"wisp train --recipe {recipe} --data log.db --num-records-public 60 --batch 20 --epochs 1 --delta 0.001"
    train += " --epsilon 4 --out t.wisp --ledger l.db --model"
    run(f"{train} cafe-back.wisp", 4, "did not say what data it learned from: that may be 'log.db'")
    run("wisp convert cafe.safetensors --out named.wisp --dataset 'cafe log'")
    run(f"{train} named.wisp --dataset 'cafe log'", 4, "trained on 'cafe log' before, without a guarantee")
    assert not exists("t.wisp") and not exists("l.db"), "a refused run left something behind"
    run("wisp convert cafe.safetensors --out shipped.wisp --dataset shipped")
    r = run(f"{train} shipped.wisp")
    assert says("of the weights it began with: .*'shipped'.* states no epsilon", r.out)
    draw = "wisp recommend --model t.wisp --history tea-mint --private"
    run(f"{draw} --public-dataset shipped")
    run(draw, 4, "states no epsilon")


def test_a_guarantee_does_not_survive_the_way_to_another_program_and_back():
    # A warning says so.
    run("wisp convert t.wisp --out t.safetensors")
    lost = "and t-back.wisp has lost the guarantee; keep the model that was exported"
    said = f"t.safetensors states '.*epsilon 3.9.* at delta 0.001.*': nothing vouches for that, {lost}"
    r = run("wisp convert t.safetensors --out t-back.wisp --json", 0, said)
    assert "epsilon 3.9" in r["lost_guarantee"]
    first = inspect("t-back.wisp")["provenance"][0]
    assert first["epsilon"] is None and "not carried over" in first["description"]
    r = run("wisp convert cafe.safetensors --out o.wisp --json")
    assert not r.err and "lost_guarantee" not in r.out, "a guarantee is missed although there was no guarantee"
    run("wisp convert t-back.wisp --out t-again.safetensors")
    assert not run("wisp convert t-again.safetensors --out o.wisp").err, "a guarantee is lost twice"


def test_pytorch_gives_the_same_scores():
    python = os.environ.get("PYTHON", "python3")
    r = try_run(f"{python} {ROOT}/tools/lab/bench/peers/parity.py cafe.wisp --wisp {BUILD}/wisp --shapes 4")
    if r.code == 77:
        pytest.skip(r.err)
    assert r.code == 0, f"scores differ from PyTorch's: {r.out}{r.err}"


def test_combinations_that_mean_nothing_are_refused():
    # Options of an import with a wisp model, two works at once, and options of a wisp model with other files.
    for option in ("--dataset x", "--item-keys keys.txt", "--config c.json", "--report r.json", "--allow-seen"):
        run(f"wisp convert cafe.wisp --out x.wisp {option}",
            2, f"{option.split()[0]} is for models of other programs, and cafe.wisp is a wisp model: allowed are")
    run("wisp convert cafe.wisp --out x.wisp --adapter a.wisp --int8", 2, "--adapter and --int8 are both given")
    run("wisp convert cafe.wisp --out x --family bert --int4", 2, "--int4 and --family are both given")
    run("wisp convert cafe.wisp --out x.safetensors --f16", 2, "--f16 writes a wisp model, and --out is x.safetensors")
    os.mkdir("folder")
    run("wisp convert cafe.wisp --out folder", 2, "--out is folder, a folder, .*: give --family")
    for option in ("--int8", "--panels", "--adapter a.wisp", "--family bert"):
        for path in ("cafe.safetensors", "folder"):
            run(f"wisp convert {path} --out x.wisp {option}",
                2, f"{option.split()[0]} changes a wisp model, which {path} is not: convert it first")
    run("wisp convert cafe.safetensors --out x.safetensors", 2, "and cafe.safetensors is no wisp model")
    assert not glob.glob("x*"), "a refused convert left something behind"
