"""Folders of Hugging Face: converted with a report, embedded, exported, and converted again to the same file. Refusals
are one sentence and leave nothing behind. hugging_face_test checks the models' results."""

import glob
import json
import os
import shutil
from pathlib import Path

from program import ROOT, Safetensors, copy, copy_folder, exists, golden, move, read, run, same, says, try_run, write

PAIRS = """sentence:bert bert:bert bert_classes:bert roberta_classes:roberta distilbert:distilbert
distilbert_classes:distilbert gpt2:gpt2 llama:llama mistral_window:llama qwen2:qwen2 qwen2_window:qwen2"""


def fresh(family):
    """Copies the golden folder of a family to ./m."""
    shutil.rmtree("m", ignore_errors=True)
    copy_folder(golden / family, "m")


def config(folder, **changes):
    """Changes the config.json of a folder."""
    write(f"{folder}/config.json", json.dumps(json.loads(read(f"{folder}/config.json")) | changes))


def test_a_sentence_encoder():
    # A sentence encoder: its report, its embedding, its notes.
    r = run(f"wisp convert {golden}/sentence/ --out s.wisp --report r.json --dataset golden",
        0, "sentence-transformers cuts texts of this folder after 16 tokens; --max-length 16")
    assert says("BertModel, 60 tokens, .* data set 'golden'", r.out), "the summary is"
    assert "left out: 'pooler.dense.bias' and 1 more: the pooling of this model does not pass it" in r.out
    report = json.loads(read("r.json"))
    assert len(report["tensors"]) == 37 and len(report["left_out"]) == 2
    assert report["model_class"] == "BertModel" and report["family"] == "bert"
    assert all(
        set(t) == {"file", "name", "shape", "type", "parameter", "parameter_shape", "done", "xxh3"}
        and len(t["xxh3"]) == 16
        for t in report["tensors"]
    )
    assert [t["done"] for t in report["tensors"] if t["parameter"] == "block1.qkv.weight"] == [
        "stacked, %d of 3" % i for i in (1, 2, 3)
    ]
    architecture = report["architecture"]
    assert architecture["pooling"] == "mean" and architecture["token_separator"] == 3 and report["notes"]
    r = run("wisp inspect s.wisp --verify --json")
    assert r["provenance"][0]["description"].startswith("imported from sentence, not trained by wisp")
    assert r["provenance"][0]["dataset"] == "golden"
    r = run("wisp embed s.wisp --ids 2,9,3 --ids 2,8,3,7,3 --json")
    assert r["width"] == 24 and len(r["embeddings"]) == 2 and abs(sum(x * x for x in r["embeddings"][0]) - 1) < 1e-5
    r = run("wisp embed s.wisp --ids 2,9,3")
    assert len(r.out.split()) == 24
    run("wisp embed s.wisp --ids 2,x", 2, "'x' is no token; allowed are whole numbers from 0")
    run("wisp embed s.wisp --ids 2,,3", 2, "'' is no token")
    run("wisp embed s.wisp --ids 60", 2, "names token 60; the model has tokens 0 to 59")


def test_the_output_names_the_tokens_that_end_texts_and_the_file_that_says_so():
    # The output names the tokens that end texts and the file that says so; the model keeps them.
    fresh("bert")
    for path in glob.glob("m/*token*.json"):
        os.remove(path)
    copy(golden / "bert_classes/vocab.txt", "m/vocab.txt")
    write("m/generation_config.json", '{"eos_token_id": [3, 7], "temperature": 0.5}\n')
    r = run("wisp convert m --out e.wisp",
        0, "m/generation_config.json: temperature '0.5': how texts are drawn is not taken over")
    assert says("^token: end is 7, .* (generation_config.json)$", r.out), "the ends are not printed"
    r = run("wisp convert m --out e.wisp --json")
    assert [t["id"] for t in r["special_tokens"] if t["meaning"] == "end"] == [3, 7] and r["notes"]
    r = run("wisp inspect e.wisp --json")
    assert r["tokenizer"]["eos"]["id"] == 3 and [t["id"] for t in r["tokenizer"]["other_ends"]] == [7]


def test_exported_and_converted_again():
    # Exported and converted again, the second model file equals the first, except for its origin.
    for pair in PAIRS.split():
        folder, _, family = pair.partition(":")
        shutil.rmtree("there", ignore_errors=True)
        os.mkdir("there")
        run(f"wisp convert {golden}/{folder} --out a.wisp --no-tokenizer --json")
        r = run(f"wisp convert a.wisp --family {family} --out there/m --json")
        assert r["family"] == family and r["tensors"] > 10
        for path in [*(golden / folder).glob("*.txt"), *(golden / folder).glob("*token*.json")]:
            shutil.copy(path, "there/m")
        run("wisp convert there/m --out b.wisp --no-tokenizer")
        a, b = run("wisp inspect a.wisp --json"), run("wisp inspect b.wisp --json")
        assert a["architecture"] == b["architecture"] and a["tensors"] == b["tensors"]
        run(f"wisp convert a.wisp --family {family} --out alone.safetensors")
        assert same("alone.safetensors", "there/m/model.safetensors")
    run("wisp convert a.wisp --family mpnet --out x",
        2, "--family is 'mpnet', allowed are bert, roberta, distilbert, gpt2, llama, qwen2")
    run("wisp convert s.wisp --family gpt2 --out x", 3, "models have no such head")
    run(f"wisp convert {ROOT}/models/cafe.wisp --family gpt2 --out x",
        3, "not one of GPT2LMHeadModel, whose models differ in embedding_scale; wisp inspect")
    run(f"wisp convert {ROOT}/models/cafe.wisp --family llama --out x",
        3, "whose models differ in .*position_table, .*feed_forward of block 0; wisp inspect")
    assert not exists("x"), "a refused export made a folder"


def test_if_one_file_of_an_existing_folder_cannot_be_replaced():
    # If one file of an existing folder cannot be replaced, none is.
    os.makedirs("kept/config.json")
    write("kept/model.safetensors", "length: {old\n")
    run("wisp convert s.wisp --family bert --out kept", 2, "kept/config.json")
    assert read("kept/model.safetensors") == "length: {old\n" and len(os.listdir("kept")) == 2


def test_first_calls():
    os.mkdir("mistyped")
    write("mistyped/config.json", "Dear Bob,\n")
    run("wisp convert s.wisp --family bert --out mistyped",
        2, "mistyped/config.json, a file that is there and is not JSON")
    assert read("mistyped/config.json") == "Dear Bob,\n" and len(os.listdir("mistyped")) == 1, "a letter was replaced"


def test_a_refusal_is_a_sentence_and_leaves_no_model():
    # A refusal is a sentence and leaves no model. Masks of other types are ignored.
    copy("s.wisp", "kept.wisp")
    fresh("gpt2")
    file = Safetensors("m/model.safetensors")
    for name, kind, size in (("transformer.h.0.attn.bias", "BOOL", 4), ("transformer.h.1.attn.bias", "U8", 4)):
        begin = len(file.data)
        file.header[name] = {"dtype": kind, "shape": [1, 1, 2, 2], "data_offsets": [begin, begin + size]}
        file.data += bytes([1, 0, 1, 1])
    file.write("m/model.safetensors")
    r = run("wisp convert m --out g.wisp")
    assert "left out: 'transformer.h.0.attn.bias' and 1 more: the causal mask" in r.out, "masks are not reported"
    config("m", model_type="gpt_neo")
    run("wisp convert m --out kept.wisp",
        3, "m/config.json: model_type is 'gpt_neo', supported are bert, .*, gpt2, llama, mistral, qwen2")
    fresh("llama")
    config("m", rope_scaling={"rope_type": "llama3"})
    run("wisp convert m --out kept.wisp", 3, "rope_type is 'llama3', supported is default")
    fresh("mistral")
    config("m", sliding_window=8)
    run("wisp convert m --out w.wisp")
    run("wisp convert m --out w.wisp --max-length 8")
    run("wisp convert m --out kept.wisp --max-length 21", 2, "--max-length is 21, the model has 20 positions")
    fresh("bert")
    write("m/config.json", '{"model_type": "be\x1b[2Jrt"}')
    r = run("wisp convert m --out kept.wisp", 3, "m/config.json: it is not JSON")
    assert "\x1b" not in r.err, "an escape sequence reached the terminal"
    fresh("bert")
    Path("m/model.safetensors").write_bytes((golden / "bert/model.safetensors").read_bytes()[:20000])
    run("wisp convert m --out kept.wisp", 3, "m/model.safetensors: it is cut short, or damaged")


def test_for_weights_that_torch_saved():
    # For weights that torch saved, the error says what to do, and the script for it says what it lacks if torch is
    # missing.
    script = f"{ROOT}/tools/convert/to_safetensors.py"
    fresh("bert")
    move("m/model.safetensors", "m/pytorch_model.bin")
    run("wisp convert m --out kept.wisp", 3, "supported is safetensors: tools/convert/to_safetensors.py")
    run(f"python3 {script} nothing", 1, "nothing: there is no such file or folder")
    if try_run("python3 -c 'import torch'").code == 0:
        run(f"python3 {script} m", 1, "torch cannot read it")
        run("python3 -c \"import torch; torch.save({'model': {'a.b': torch.ones(2, 3).T}}, 'w.pt')\"")
        r = run(f"python3 {script} w.pt")
        assert "w.safetensors: 1 tensors of 1 file" in r.out, "the script says"
        run(f"python3 {script} w.pt", 1, "w.safetensors: it is there already")
    else:
        run(f"python3 {script} m", 1, "the Python package torch is missing")
    assert not exists("m/model.safetensors"), "the script wrote weights that it could not read"
    os.mkdir("empty")
    run("wisp convert empty --out kept.wisp",
        3, "empty: there is no config.json; a folder has config.json and model.safetensors")
    fresh("bert")
    run("wisp convert m --out kept.wisp --item-keys keys.txt",
        2, "--item-keys is of safetensors files of our recommender, m is a folder")
    run("wisp convert m --out kept.wisp --pooling max", 2, "--pooling")
    run("wisp convert m --out kept.wisp --report kept.wisp", 2, "--report")
    run("wisp convert m/model.safetensors --out kept.wisp --max-length 3",
        2, "--report, --max-length and --pooling are for folders of Hugging Face")
    run("wisp convert m --out nowhere/o.wisp", 3, "nowhere")
    run("wisp embed w.wisp --ids 1", 3, "is a recommender or a decoder, an encoder of texts or a classifier is needed")
    assert same("s.wisp", "kept.wisp"), "a refused folder changed the model that was there"
    assert not glob.glob("*tmp*"), "a temporary file was left"
