"""Decoders that learn texts: from fresh weights with a tokenizer of bytes, fine-tuned with and without an adapter, by
every method. What a record is, what is left out, and refusals, which leave nothing behind and charge nothing."""

import array
import json
import random

from program import ROOT, Safetensors, copy, edit, exists, last_line, read, remove, run, same, says, size, write

RECIPE = """{"name": "tiny",
 "architecture": {"max_length": 24, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 32,
  "embedding_scale": 4},
 "training": {"method": "ordinary", "epochs": 12, "expected_batch": 30, "seed": 1,
  "optimizer": {"kind": "adam", "learning_rate": 0.01}},
 "text": {"record": "line", "tokenizer": "bytes", "hold_out_share": 0.1}}
"""
private = "--num-records-public 300 --batch 60 --delta 0.001 --noise-multiplier 0.5"
again = "--reproducible-noise 7"
# Exit code, sentence, and options. M stands for the model, T for its texts.
REFUSED = """\
2|--recipe is required|--data train.txt
2|without --recipe the method must be named|M T
2|texts fine-tune one: name it, --model|T --method phantom
2|that one is for labelled texts|M T --method dp-fp
2|--record is 'word'|M T --method phantom --record word
2|--trains is 'head', allowed are all, blocks: that one is for labelled texts|M T --method phantom --trains head
2|--max-length (in a recipe text.max_length) is 25, allowed are 1 to 24|M T --method phantom --max-length 25
2|--max-length is 0, allowed is a whole number from 1|M T --method phantom --max-length 0
2|--tokenizer does not go with --model|M T --method phantom --tokenizer bytes
2|--texts and --data are both given|M T --data train.txt --method phantom
4|number of records declared as public|M T --method phantom --epsilon 8 --other-data
"""


def tensors(path):
    """Returns the numbers of each tensor."""
    return {name: array.array("f", data) for name, (_, _, data) in Safetensors(path).tensors().items()}


def bits(model, most, options=""):
    """Measures a model, which needs fewer bits than `most` for each byte."""
    r = run(f"wisp evaluate --model {model} --texts dev.txt --threads 1 --json {options}")
    assert r["bits_per_byte"] < most and abs(r["perplexity_per_byte"] - 2 ** r["bits_per_byte"]) < 1e-9
    assert set(r["not_private"]) >= {"loss", "bytes"}
    return r


def test_from_fresh_weights():
    # Lines that a model of bytes can learn: of few words, each of which comes twice.
    random.seed(3)
    words = ["abcd", "efgh", "ijkl", "mnop", "qrst", "uvwx", "yzab", "cdef"]
    for path, count in (("train.txt", 300), ("dev.txt", 40)):
        pairs = [(random.choice(words), random.choice(words)) for _ in range(count)]
        write(path, "".join(f"{a} {a} {b} {b}\n" for a, b in pairs))
    write("r.json", RECIPE)
    # From fresh weights. Held-out texts are measured; a line ends with its end token, which a model of bytes learns.
    r = run("wisp train --recipe r.json --texts train.txt --out m.wisp --threads 1 --json")
    assert r["record"] == "line" and 250 < r["records"] < 290 and r["test"]["texts"] + r["records"] == 300
    assert r["test"]["bits_per_byte"] < 2
    # With the same recipe, --data reads the same file.
    r = run("wisp train --recipe r.json --data train.txt --out same.wisp --threads 1")
    assert same("m.wisp", "same.wisp"), "--data of a recipe of texts is another run than --texts"
    assert "one line of text" in r.out, "what a record is was not said"
    # Each line predicts 19 tokens: 18 bytes of text and its end.
    r = bits("m.wisp", 2)
    assert r["texts"] == 40 and r["tokens"] == 40 * 19 and r["bytes"] == 40 * 18
    r = bits("m.wisp", 2, "--max-length 10")
    assert r["tokens"] == 400 and r["bytes"] == 400 and r["texts_cut"] == 40
    bits("m.wisp", 4, "--record chunk:20")
    r = bits("m.wisp", 4, "--record paragraph")
    assert r["texts"] == 1 and r["tokens"] == 24
    r = run("wisp generate m.wisp --prompt abcd --temperature 0 --json")
    assert r["text"][:1] == " " and len(r["text"]) == 15 and r["ended"] == "end"
    r = run("wisp inspect m.wisp --json")
    assert "warm-up" not in r.err
    assert "one record: one line of text" in r["provenance"][-1]["description"] and r["tokenizer"]["tokens"] == 257


def test_a_warm_up_as_long_as_the_run_gives_a_warning():
    # A warm-up as long as the run gives a warning, a shorter one does not.
    edit("r.json", "warm.json", r'"kind": "adam",', r'"kind": "adam", "warmup_steps": 5,')
    run("wisp train --recipe warm.json --texts train.txt --out warm.wisp --num-records-public 300 --epochs 0.5"
        " --method phantom --ledger warm.db --noise-multiplier 1 --delta 0.001",
        0, "warning: the run has 5 steps and a warm-up of 5: the learning rate rises to its end, towards 0.01")
    r = run("wisp train --recipe warm.json --texts train.txt --out warm.wisp --epochs 1")
    assert "warm-up" not in r.err, "a warm-up of a part of the run is warned of"
    run("wisp train --recipe warm.json --texts train.txt --out warm.wisp --epochs 0.1",
        0, "the run has .* and a warm-up of 5: .*(local only)")


def test_in_a_private_run_without_a_public_number_of_records():
    # In a private run without a public number of records, nothing is counted.
    r = run("wisp train --recipe warm.json --texts train.txt --out no.wisp --epochs 0.1 --method phantom --ledger no.db"
        " --noise-multiplier 1 --delta 0.001",
        4, "needs the number of records")
    assert "warm-up" not in r.err, "the number of private records is shown"


tune = "wisp train --model m.wisp --texts train.txt --other-data --threads 1"


def test_fine_tuning_by_every_method():
    # Fine-tuning by every method, without a recipe; the method must be given.
    for method in ("phantom", "rgp"):
        run(f"{tune} --method {method} --out t.wisp --ledger {method}.db {private} {again} --json")
        bits("t.wisp", 2.5)
    run(f"{tune} --method ordinary --epochs 2 --out t.wisp")
    bits("t.wisp", 2)
    for method in ("fest", "adafest", "adafest+"):
        rows = ""
        rows = "" if method == "adafest" else "--rows 40 --histogram-noise 5"
        run(f"{tune} --method {method} {rows} --out t.wisp --ledger {method}.db {private} {again}")
        bits("t.wisp", 4)
    r = run(f"{tune} --method phantom --trains blocks --out t.wisp --ledger blocks.db {private} --privacy-json p.json"
        " --json")
    assert r["epsilon"] > 0 and r["noise_multiplier"] == 0.5 and "records" in r["not_private"] and "test" not in r.json
    text = json.dumps(json.loads(read("p.json")))
    for words in ("a record is one line of text", "whoever wrote several of the records", "interaction"):
        assert words in text, "the statement does not say what is protected"


def test_a_statement_says_what_a_record_was():
    r = run("wisp privacy --ledger blocks.db --delta 0.001")
    assert "one record is: one line of text: who wrote k of them is protected less" in r.out
    run(f"{tune} --method phantom --trains blocks --out refused.wisp --ledger blocks.db {private} --record chunk:16",
        4, "protects one line of text; asked for was one chunk of 16 bytes of text")
    # After a second run on a ledger without a limit, the output says what both cost, and that nothing limits it.
    again_at = f"{tune} --method phantom --trains blocks --out t.wisp --ledger blocks.db {private} --epochs 1"
    run(again_at, 0, "cost epsilon .* at delta 0.001 together, and its ledger blocks.db has no limit.*--budget")
    r = run(f"{again_at} --budget 1000")
    assert "has no limit" not in r.err, "a ledger with a limit has none"


def test_on_a_file_without_a_text_a_private_run_spends_all_the_same():
    # On a file without a text a private run spends all the same, and its owner is told; an ordinary run has nothing to
    # do.
    write("blank.txt", "\n  \n\n")
    write("one.txt", "\nabcd abcd\n")
    on = "wisp train --model m.wisp --other-data --threads 1 --out t.wisp"
    r = run(f"{on} --texts blank.txt --method phantom --ledger none.db {private} --epochs 1 --json",
        0, "blank.txt has no text to train on. The run continues and spends what was asked for")
    assert r["records"] == 0 and r["steps"] == 5 and r["epsilon"] > 0
    r = run(f"{on} --texts one.txt --method phantom --ledger one.db {private} --epochs 1 --json")
    assert r["records"] == 1
    assert "no text to train on" not in r.err, "a run with a text is told that it has none"
    run(f"{on} --texts blank.txt --method ordinary", 3, "blank.txt: there is no text in it")


def test_without_a_recipe():
    # Without a recipe, delta follows from the number of records.
    for case in ("300 0.001", "2000 0.00025", "10 1e-05"):
        number, delta = case.split()
        r = run(
            f"{tune} --method phantom --out t.wisp --ledger delta-{number}.db --num-records-public {number} --batch 5"
            " --epochs 0.1 --noise-multiplier 2 --json"
        )
        assert r["delta"] == float(delta)


def test_an_adapter():
    # An adapter, which resumes where it stopped; its base does not change.
    copy("m.wisp", "kept.wisp")
    r = run(f"{tune} --method phantom --lora 2 --out a.wisp --ledger a.db {private} {again}")
    assert says("wisp generate .*--model m.wisp --adapter a.wisp; wisp convert", last_line(r.out))
    assert size("a.wisp") < size("m.wisp"), "the adapter is as large as its base"
    bits("m.wisp", 2.5, "--adapter a.wisp")
    run(f"{tune} --adapter a.wisp --method phantom --out b.wisp --ledger a.db {private} {again}")
    bits("m.wisp", 2.5, "--adapter b.wisp")
    assert same("m.wisp", "kept.wisp"), "the base of an adapter changed"
    assert not same("a.wisp", "b.wisp"), "an adapter that was trained further is as it was"
    run("wisp convert m.wisp --adapter b.wisp --out merged.wisp")
    bits("merged.wisp", 2.5)


def test_with_a_base_in_blocks_of_integers():
    # With a base in blocks of integers, an adapter may change less than one step of these. Merging keeps such changes.
    for bits in ("int8", "int4"):
        run(f"wisp convert m.wisp --{bits} --out blocks.wisp")
        run("wisp train --model blocks.wisp --texts train.txt --method ordinary --lora 2 --epochs 1 --learning-rate"
            " 1e-3 --threads 1 --out small.wisp")
        run("wisp convert blocks.wisp --adapter small.wisp --out merged.wisp")
        for model in ("blocks", "merged"):
            run(f"wisp convert {model}.wisp --out {model}.safetensors")
        base, merged = tensors("blocks.safetensors"), tensors("merged.safetensors")
        changed = {name: sum(x != y for x, y in zip(base[name], merged[name])) / len(base[name]) for name in base}
        largest = max(abs(x - y) for name in base for x, y in zip(base[name], merged[name]))
        assert 0 < largest < 0.02, largest  # below half a step of 8 bits of most blocks
        assert len([share for share in changed.values() if share > 0]) >= 4, changed
        assert all(share == 0 or share > 0.99 for share in changed.values()), changed
        assert changed["item_embedding.weight"] == 0


def test_with_the_model_in_blocks_of_integers():
    # With the model in blocks of integers, whose storage does not change.
    run("wisp convert m.wisp --int4 --out m4.wisp")
    run(f"{tune.replace('m.wisp', 'm4.wisp')} --method phantom --lora 2 --out a4.wisp --ledger a4.db {private} {again}"
        " --recompute-blocks")
    bits("m4.wisp", 2.5, "--adapter a4.wisp")
    of_floats = run("wisp inspect m.wisp --memory --method phantom --records 80 --lora 2 --json")
    r = run("wisp inspect m4.wisp --memory --method phantom --records 80 --lora 2 --json")
    assert r["training"]["packed_weights"] < of_floats.json["training"]["packed_weights"] / 2


def test_a_memory_plan_with_the_options_of_training():
    # A memory plan with the options of training, compared with the run's figure.
    for how in ("--lora 2 --max-length 10", "--trains blocks", "--adapter a.wisp"):
        ledger = f"planned-{how.split()[0][2:]}.db"
        r = run(f"{tune} --method phantom {how} --epochs 0.1 --out p.wisp --ledger {ledger} {private} {again} --json")
        planned, records = r["planned_bytes"], r["records"]
        r = run(f"wisp inspect m.wisp --memory --method phantom {how} --threads 1 --records {records} --json")
        assert r["training"]["total"] == planned
    of_memory = "wisp inspect m.wisp --memory --method phantom --records 80"
    run(f"{of_memory} --trains head", 2, "--trains is 'head', allowed of a decoder are all and blocks")
    run(f"{of_memory} --max-length 25", 2, "--max-length is 25, allowed are 1 to 24")
    run(f"wisp inspect {ROOT}/models/cafe.wisp --memory --method phantom --records 80 --max-length 5",
        2, "--max-length is of texts")
    run("wisp inspect m.wisp --memory --trains blocks", 2, "need --method or --recipe")
    run(f"{tune} --method phantom --out refused.wisp --ledger refused.db {private.replace('60', '301')}",
        2, "--batch is 301, more than the 300 records; allowed are 1 to 300")
    assert not exists("refused.wisp"), "a refused batch left a model"
    remove("refused.db")


def test_chunks_of_one_text():
    # Chunks of one text, with Re-Attention; the output says what they do not protect.
    write("long.txt", read("train.txt").replace("\n", " "))
    r = run("wisp train --recipe r.json --texts long.txt --record chunk:24 --method phantom --re-attention --out c.wisp"
        f" --ledger c.db {private} --privacy-json p.json --json",
        0, "that protects no person")
    assert r["record"] == "chunk:24"
    assert "any person: whoever wrote the text is in many chunks of it" in read("p.json")


def test_a_text_that_is_not_utf_8_is_left_out_of_a_private_run_and_refused_othe():
    first = "".join(read("train.txt").splitlines(keepends=True)[:20])
    write("bad.txt", first + "bad \udcff\n" + first)
    run("wisp train --recipe r.json --texts bad.txt --out refused.wisp", 3, "bad.txt, line 21: .*UTF-8")
    run("wisp train --model m.wisp --texts bad.txt --other-data --threads 1 --method phantom --epochs 1 --out t.wisp"
        f" --ledger bad.db {private} --json",
        0, "1 text left out, the first: bad.txt, line 21")
    write("none.txt", "")
    run("wisp train --recipe r.json --texts none.txt --out refused.wisp", 3, "there is no text in it")


def test_these_are_refused_before_anything_is_charged():
    for case in REFUSED.splitlines():
        code, sentence, options = case.split("|")
        options = options.replace("M ", "--model m.wisp ").replace("T", "--texts train.txt")
        run(f"wisp train {options} --out refused.wisp --threads 1 --ledger refused.db", int(code), sentence)
    edit("r.json", "bare.json", r', "tokenizer": "bytes"', r"")
    run("wisp train --recipe bare.json --texts train.txt --out refused.wisp", 2, "fresh weights have no tokenizer")
    run(f"wisp train --recipe bare.json --texts train.txt --tokenizer {ROOT}/tests/golden/tokenizers/gpt2.json"
        " --epochs 1 --out g.wisp")
    run("wisp train --recipe bare.json --texts train.txt --tokenizer nowhere.json --out refused.wisp",
        3, "cannot be opened")
    run(f"wisp train --recipe {ROOT}/models/recipes/cafe.json --data x --record line --out refused.wisp",
        2, "is of texts: give them with --texts")
    run(f"wisp train --model {ROOT}/models/cafe.wisp --texts train.txt --method ordinary --out refused.wisp",
        2, "brings no tokenizer")
    run(f"wisp evaluate --model {ROOT}/models/cafe.wisp --texts dev.txt", 2, "brings no tokenizer")
    run("wisp evaluate --model m.wisp", 2, "--data is required, or --texts")
    run(f"wisp convert {ROOT}/tests/golden/hugging_face/bert_classes --out e.wisp")
    run("wisp train --model e.wisp --texts train.txt --method ordinary --out refused.wisp", 3)
    run("wisp new --recipe r.json --num-items 300 --out refused.wisp", 3, "it is a recipe of texts")
    run("lab audit run --recipe r.json --data train.txt --ledger refused.db", 3, "audits read events")
    edit("r.json", "short.json", r'"record": "line"', r'"record": "line", "max_length": 6')
    whole = run("wisp inspect m.wisp --memory --recipe r.json --records 300 --threads 1 --json")
    r = run("wisp inspect m.wisp --memory --recipe short.json --records 300 --threads 1 --json")
    assert r["training"]["total"] < whole.json["training"]["total"]
    assert not exists("refused.wisp") and not exists("refused.db"), "a refusal left a file behind"
