"""The program's texts: a folder of Hugging Face becomes an encoder that embeds, every method makes a classifier of it,
and a decoder continues a prompt. Refusals leave nothing behind and charge nothing."""

import random
import re
from pathlib import Path

from program import (
    ROOT,
    copy,
    copy_folder,
    edit,
    exists,
    golden,
    last_line,
    run,
    same,
    saved,
    says,
    size,
    small_decoder,
    small_encoder,
    write,
)

RECIPE = """{"name": "tiny",
 "training": {"method": "phantom", "epochs": 8, "expected_batch": 100, "num_records_public": 400,
  "optimizer": {"kind": "adamw", "learning_rate": 0.01}},
 "privacy": {"noise_multiplier": 0.6, "delta": 0.0005, "steps_per_charge": 50, "unit": "interaction"},
 "data": {"classes": ["bad", "good"]}}
"""

classify = "wisp train --recipe r.json --model e.wisp --labelled train.tsv --threads 1"
again = "--reproducible-noise 7"


def test_random_weights_of_a_tiny_bert():
    # Random weights of a tiny BERT, whose vocabulary is word5 to word59; and a task that its words decide.
    small_encoder("encoder")
    run("wisp convert encoder --out e.wisp --pooling mean --dataset 'public texts'")
    random.seed(5)
    words = [["word7", "word8"], ["word30", "word31"]]
    with open("train.tsv", "w") as out:
        print("sentence\tlabel", file=out)
        for _ in range(400):
            label = random.randrange(2)
            print(f"word5 {random.choice(words[label])} word6 word9\t{label}", file=out)
    write("r.json", RECIPE)


def test_texts_and_ids_give_the_same_result():
    r = texts = run("wisp embed e.wisp --text 'Word7 word8' --json")
    r.save("texts")
    r = run("wisp embed e.wisp --ids 2,7,8,3 --json")
    assert r.out == texts.out, "a text and its ids have other embeddings"
    run("wisp embed e.wisp", 2, "exactly one of --text, --input and --ids is needed")
    write("lines.txt", "Word7 word8\n\nword9 word9 word9\n")
    write("bad-line.txt", "good\n\udcff\n")
    write("blank.txt", "\n \n")
    run("wisp embed e.wisp --input blank.txt", 2, "blank.txt: it has no text")
    run("wisp embed e.wisp --input bad-line.txt",
        3, "bad-line.txt, line 2: .*byte 0 of the text (value 255) is not UTF-8")
    r = run("wisp embed e.wisp --input lines.txt --json")
    assert r["embeddings"][0] == texts.json["embeddings"][0] and len(r["embeddings"]) == 2
    assert r["lines"] == [1, 3]
    r = run("wisp embed e.wisp --text 'Word7 word8 word9 word9' --max-length 4 --json")
    assert r.out == texts.out, "a text that is cut is not the one that is left of it"
    run("wisp embed e.wisp --text a --max-length 2", 2, "--max-length is 2, allowed are 3 to 20")
    run("wisp embed e.wisp --ids 2,7,3 --max-length 5", 2, "allowed is one of the two")
    run("wisp embed e.wisp --text a\udcff", 3, "UTF-8")
    run("wisp privacy decoding --samples many", 2, "see wisp privacy decoding --help")
    run("wisp convert encoder --out bare.wisp --no-tokenizer")
    run("wisp embed bare.wisp --text a", 3, "brings no tokenizer")
    run("wisp recommend --model e.wisp --history a", 3, "is an encoder of texts, a recommender or a decoder is needed")


def accuracy(model, options=""):
    return run(f"wisp evaluate --model {model} --labelled train.tsv --json {options}")["accuracy"]


def test_every_method_trains_exactly_the_requested_part():
    for how in ("phantom all", "phantom blocks", "phantom head", "rgp all", "ordinary blocks"):
        method, trains = how.split()
        ledger = f"--ledger {method}-{trains}.db {again}"
        if method == "ordinary":
            ledger = ""
        r = run(f"{classify} --method {method} --trains {trains} --out c.wisp {ledger} --json")
        assert r["method"] == method and "mode" not in r.json
        least = 0.5 if trains == "head" else 0.9  # means of random vectors do not tell the words
        assert accuracy("c.wisp") >= least
        if trains != "all":
            tables = [{k: v for k, v in hashes(m).items() if k.endswith("_embedding")} for m in ("e.wisp", "c.wisp")]
            assert len(tables[0]) == 3 and tables[0] == tables[1], f"{how} trained a table"
    run("wisp classify --model c.wisp --input bad-line.txt",
        3, "bad-line.txt, line 2: .*byte 0 of the text (value 255) is not UTF-8")
    r = run("wisp classify --model c.wisp --input lines.txt --json")
    assert [text["line"] for text in r.json] == [1, 3]
    r = run("wisp classify --model c.wisp --text 'word5 word31 word6' --json")
    assert r[0]["class"] == "good" and r[0]["probability"] > 0.5
    uncut = r[0]["probability"]
    r = run("wisp classify --model c.wisp --text 'word5 word31 word6 word9' --max-length 5 --json")
    assert r[0]["probability"] == uncut
    run("wisp classify --model c.wisp --text a --max-length 99", 2, "--max-length is 99, allowed are 3 to 20")


def test_the_last_blocks_train_alone():
    # The rows that enter them are kept, or computed in each step: the same bits.
    last = f"{classify} --trains blocks --last-blocks 1 {again}"
    run(f"{last} --out last.wisp --ledger last.db")
    own, changed = hashes("e.wisp"), hashes("last.wisp")
    moved = {name.split(".")[0] for name in own if own[name] != changed[name]}
    assert len(moved) == 1 and moved.pop() == max(name.split(".")[0] for name in own if name.startswith("block"))
    edit("r.json", "unkept.json", '"training": {', '"training": {"cache_at_most": 0, ')
    run(f"{last.replace('r.json', 'unkept.json')} --out unkept.wisp --ledger unkept.db")
    assert hashes("unkept.wisp") == changed, "what is kept decides what is trained"
    edit("r.json", "last.json", '"training": {', '"training": {"trains": "blocks", "last_blocks": 1, ')
    kept, all_blocks = (run(f"wisp inspect e.wisp --memory --recipe {r} --threads 1 --json")["training"]
                        for r in ("last.json", "r.json"))
    assert kept["states"] > 0 and all_blocks["states"] == 0 and kept["optimizer_state"] < all_blocks["optimizer_state"]
    run(f"{classify} --last-blocks 1 --out refused.wisp --ledger refused.db", 2, "trains must be blocks")
    run(f"{last.replace('blocks 1', 'blocks 50')} --out refused.wisp --ledger refused.db", 2, "allowed are 0 .all. to")


def test_a_classifier_states_its_guarantee_and_tokenizer():
    r = run(f"{classify} --trains blocks --out p.wisp --ledger p.db --json")
    assert r["epsilon"] > 0 and r["noise_multiplier"] == 0.6
    r = run("wisp inspect p.wisp --json")
    assert r["provenance"][-1]["epsilon"] > 0
    assert r["tokenizer"]["tokens"] == 60 and r["tokenizer"]["sep"] == {"id": 3, "text": "[SEP]"}
    assert r["tokenizer"]["bytes"] > 60
    r = run("wisp inspect bare.wisp --json")
    assert "tokenizer" not in r.json


def test_an_adapter_with_a_head_of_its_own_for_the_encoder():
    # An adapter with a head of its own for the encoder, and both merged.
    texts = saved("texts")
    r = run(f"{classify} --lora 2 --epochs 20 --learning-rate 0.03 {again} --out a.wisp --ledger a.db")
    assert says("wisp classify .*--model e.wisp --adapter a.wisp; wisp convert", last_line(r.out))
    r = run("wisp embed e.wisp --adapter a.wisp --ids 2,7,8,3 --json")
    assert r.out != texts.out, "an adapter changed no vector"
    assert size("a.wisp") < size("e.wisp"), "the adapter is as large as its base"
    assert accuracy("e.wisp", "--adapter a.wisp") >= 0.9
    run("wisp convert e.wisp --adapter a.wisp --out merged.wisp")


def hashes(model):
    return {t["name"]: t["hash"] for t in run(f"wisp inspect {model} --json")["tensors"]}


def test_with_the_encoder_stored_in_blocks_of_integers():
    # With the encoder stored in blocks of integers, and with recomputed blocks of the model.
    run("wisp convert e.wisp --int8 --out e8.wisp")
    run(f"{classify.replace('e.wisp', 'e8.wisp')} --lora 2 --epochs 20 --learning-rate 0.03 {again} --out a8.wisp"
        " --ledger a8.db")
    assert accuracy("e8.wisp", "--adapter a8.wisp") >= 0.9
    run("wisp evaluate --model e.wisp --adapter a8.wisp --labelled train.tsv",
        3, "a8.wisp: it belongs to another base")
    run(f"{classify.replace('e.wisp', 'e8.wisp')} --lora 2 --epochs 20 --learning-rate 0.03 {again} --recompute-blocks"
        " --out r8.wisp --ledger r8.db")
    assert hashes("a8.wisp") == hashes("r8.wisp"), "blocks that are computed again changed what was trained"
    assert accuracy("merged.wisp") >= 0.9


def test_it_resumes_where_it_stopped():
    # It resumes where it stopped, without steps unchanged; the base's weights do not change.
    copy("a.wisp", "first.wisp")
    run(
        f"{classify} --adapter a.wisp --other-data --epochs 5 --learning-rate 1e-12 {again} --out b.wisp --ledger a.db"
    )
    assert accuracy("e.wisp", "--adapter b.wisp") >= 0.9
    run(f"{classify} --adapter a.wisp --other-data --epochs 5 {again} --out b.wisp --ledger a.db")
    assert not same("a.wisp", "b.wisp"), "an adapter that was trained further is as it was"
    assert same("a.wisp", "first.wisp"), "an adapter changed that another one was made of"
    r = run("wisp inspect b.wisp --json")
    assert len(r["provenance"]) == 3 and all(p["epsilon"] is None for p in r["provenance"][1:])
    run("wisp train --recipe r.json --adapter a.wisp --labelled train.tsv --out refused.wisp --ledger refused.db",
        2, "without --model")
    run(f"{classify} --adapter a.wisp --lora 2 --out refused.wisp --ledger refused.db", 2, "leave one of the two out")
    run(f"{classify} --adapter a.wisp --out refused.wisp --ledger refused.db",
        4, "a.wisp: it was trained on 'train.tsv' before, without a guarantee")
    run("wisp evaluate --model a.wisp --labelled train.tsv", 3, "adapter")
    run("wisp evaluate --model e.wisp --labelled train.tsv", 3, "is no classifier")


def test_the_sound_modes_of_dp_fp_on_the_same_encoder():
    r = run(f"{classify} --method dp-fp --epochs 2 --out d.wisp --ledger d.db --json")
    assert r["method"] == "dp-fp" and r["mode"] == "aggregate"


def test_the_planned_memory():
    # An adapter takes less than everything. A checkpoint for texts cut to another length is not resumed.
    r = whole = run("wisp inspect e.wisp --memory --recipe r.json --threads 1 --json")
    edit("r.json", "adapter.json", r'"training"', r'"adapter": {"rank": 2}, "training"')
    r = run("wisp inspect e.wisp --memory --recipe adapter.json --threads 1 --json")
    assert r["training"]["total"] < whole.json["training"]["total"] and r["training"]["mode"] == "phantom"
    adapter_json = r
    r = run("wisp inspect e.wisp --memory --recipe r.json --lora 2 --threads 1 --json")
    assert {**r["training"], "recipe": "adapter.json"} == adapter_json.json["training"]
    r = run("wisp inspect e.wisp --memory --recipe r.json --lora 2 --recompute-blocks --threads 1 --json")
    assert r["training"]["activations"] < adapter_json.json["training"]["activations"]
    run("wisp inspect e.wisp --memory --recipe r.json --lora 2 --trains head",
        2, "beside a model an adapter trains, no head alone")
    r = run("wisp inspect e.wisp --memory --recipe r.json --adapter a.wisp --threads 1 --json")
    assert {**r["training"], "recipe": "adapter.json"} == adapter_json.json["training"]
    assert "records_at_most" not in r["training"]
    r = run("wisp inspect e.wisp --memory --recipe r.json")
    assert "exact, however many records a step samples" in r.out, "a plan of phantom clipping depends on the sample"
    for less in ("--trains head", "--max-length 5"):
        r = run(f"wisp inspect e.wisp --memory --recipe r.json {less} --threads 1 --json")
        assert r["training"]["total"] < whole.json["training"]["total"]
        run(f"wisp inspect e.wisp --memory {less}", 2, "give --recipe")
    planned = "wisp inspect e.wisp --memory --recipe r.json"
    run(f"{planned} --trains tables", 2, "--trains is 'tables', allowed are all, blocks and head")
    run(f"{planned} --max-length 2", 2, "--max-length is 2, allowed are 3 to 20")
    run(f"{planned} --adapter a.wisp --lora 2", 2, "leave one of the two out")
    run("wisp train --recipe r.json --model d.wisp --labelled train.tsv --lora 2 --other-data --out refused.wisp"
        " --ledger refused.db",
        3, "trained by DP-FP")


def test_these_are_refused_before_anything_is_charged():
    for length in (0, 1, 2, 99):
        said = "is a whole number from 1" if length == 0 else "are 3 to 20"
        run(f"{classify} --max-length {length} --out refused.wisp --ledger refused.db",
            2, f"--max-length is {length}, allowed {said}")
        run(f"wisp evaluate --model c.wisp --labelled train.tsv --max-length {length}",
            2, f"--max-length is {length}, allowed are 3 to 20")
    for refused in (
        "2:--method is 'adam', allowed are dp-fp, phantom, rgp, ordinary:--method adam",
        "2:--trains is 'tables':--trains tables",
        "2:--trains is .head., and dp-fp says by --mode what trains:--method dp-fp --trains head",
        "2:an adapter trains, no head alone:--lora 2 --trains head",
        "2:--mode is of dp-fp:--mode clipped",
        "4:does not go with the method ordinary:--method ordinary",
        "3:adapter.rank is 900:--lora 900",
    ):
        code, sentence, options = refused.split(":")
        run(f"{classify} {options} --out refused.wisp --ledger refused.db", int(code), sentence)
    run("wisp train --recipe r.json --lora 2 --labelled train.tsv --vocabulary encoder/vocab.txt --out"
        " refused.wisp --ledger refused.db",
        2, "start from one (--model)")
    assert not exists("refused.wisp") and not exists("refused.db"), "a refusal left a file behind"


generate = "wisp generate g.wisp --prompt Once --max-tokens 8 --json"


def test_a_decoder():
    # Equal seeds give equal texts; a prompt that does not fit is refused.
    copy_folder(golden / "gpt2", "bare_decoder")
    run("wisp convert bare_decoder --out g.wisp --dataset 'public texts'")
    run("wisp generate g.wisp --prompt a", 2, "brings no tokenizer")
    small_decoder("decoder")
    run("wisp convert decoder --out g.wisp --dataset 'public texts'")
    r = run(f"{generate} --seed 3")
    assert r["ended"] in ("max_new_tokens", "end", "context") and r["prompt_tokens"] >= 1 and len(r["tokens"]) <= 8
    first = r
    r = run(f"{generate} --seed 3")
    assert r["text"] == first["text"], "the same seed gave another text"
    # Several prompts: each gets the text that it gets alone with its own seed.
    write("prompts.txt", "Once\r\n\nthe tea\n  \nand so")
    together = "wisp generate g.wisp --prompts prompts.txt --max-tokens 8 --seed 3"
    texts = run(f"{together} --at-once 2 --threads 2 --json")
    assert texts["texts"][0]["text"] == first["text"] and len(texts["texts"]) == 3
    r = run("wisp generate g.wisp --prompt 'and so' --max-tokens 8 --seed 5 --json")
    assert r["text"] == texts["texts"][2]["text"]
    r = run(together, 0, "after 3 prompts")
    assert len(re.findall("(?m)^--- [123] of 3 ---$", r.out)) == 3, "nothing stands between the texts"
    assert says("^the tea", r.out), "a prompt is not shown before its text"
    run("wisp generate g.wisp", 2, "there is no prompt")
    run(f"{together} --prompt Once", 2)
    run("wisp generate g.wisp --prompt Once --at-once 2", 2)
    run(f"{together} --private", 2, "--prompts is not for --private")
    run("wisp generate g.wisp --prompts gone.txt", 3, "cannot read gone.txt")
    write("blank.txt", "\n \n")
    run("wisp generate g.wisp --prompts blank.txt", 2, "blank.txt: it has no prompt")
    write("long.txt", "Once\n" + "x" * 200)
    run("wisp generate g.wisp --prompts long.txt", 2, "long.txt: prompt 2: the prompt has")


def test_a_damaged_weight():
    # Plain generation only checks weights on request; private generation always does.
    data = bytearray(Path("g.wisp").read_bytes())
    data[len(data.rstrip(b"\0")) - 2] ^= 1  # of the last tensor
    Path("damaged.wisp").write_bytes(data)
    run("wisp generate damaged.wisp --prompt Once --max-tokens 2")
    run("wisp generate damaged.wisp --prompt Once --max-tokens 2 --verify", 3, "damaged")
    run("wisp generate --private --model damaged.wisp --prompt Once --max-tokens 2", 3, "damaged")
    r = run(f"{generate} --seed 3 --verify")
    assert 0 < r["open_seconds"] < 60 and 0 < r["seconds"]
    run(f"{generate} --temperature=-1", 2, "temperature is -1")
    run(f"{generate} --top-p 2", 2, "top_p is 2")


def test_a_refused_request_prints_nothing_of_the_prompt():
    for bad in ("--temperature=-1", "--top-p=2", "--stop="):
        r = run(f"wisp generate g.wisp --prompt Once {bad}", 2)
        assert not r.out, f"generate {bad} printed"
    r = run("wisp generate g.wisp --prompt Once --max-tokens 1", 0, "1 token after .*ended by: --max-tokens")
    assert says("^Once", r.out), "the text does not begin with its prompt"
    copy_folder("decoder", "broken")
    write("broken/tokenizer.json", "{\n")
    run("wisp convert broken --out broken.wisp", 3, "broken/tokenizer.json")
    run(f"wisp generate g.wisp --prompt {'x' * 200}", 2, "positions, and one at least is needed")
    run("wisp generate e.wisp --prompt a",
        3, "e.wisp: is an encoder of texts, and generate needs a decoder; wisp embed reads it")
    run("wisp generate c.wisp --prompt a",
        3, "is a classifier, and generate needs a decoder; wisp classify reads it")
    run(f"wisp generate {ROOT}/models/cafe.wisp --prompt a",
        3, "is a recommender, and generate needs a decoder; wisp recommend reads it")
    run("wisp convert e.wisp --out e.safetensors",
        2, "e.wisp: is an encoder of texts, .*give --family, allowed are bert, roberta, distilbert")
    run("wisp convert c.wisp --out e.safetensors", 2, "c.wisp: is a classifier, .*give --family, allowed are bert")
    assert not exists("e.safetensors"), "a refused export left a file"
