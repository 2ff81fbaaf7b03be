"""Every shipped recipe runs: a few steps of each on generated data. docs/ has its quality on its own data."""

import random

import pytest
from program import ROOT, edit, golden, root, run, write

pytestmark = pytest.mark.usefixtures("cafe")
recipes = f"{ROOT}/models/recipes"
few = "--epochs 0.2 --threads 1 --dataset made-up"
noise = "--delta 0.001 --noise-multiplier 2"
private = f"--num-records-public 150 --batch 30 {noise}"
of_texts = f"--threads 1 --num-records-public 400 {noise}"
# Recipe, data, and options.
EVENTS = (
    ("cafe", "log.db", "--batch 20"),
    ("ml-1m", "events.txt", "--batch 30"),
    ("ml-1m-wide", "events.txt", "--batch 30"),
    ("large-catalogue", "events.txt", "--batch 30"),
    ("shop", "events.txt", "--batch 30"),
    ("ml-1m-dp-10", "events.txt", f"{private} --ledger ml-1m-dp-10.ledger"),
    ("ml-1m-dp-5", "events.txt", f"{private} --ledger ml-1m-dp-5.ledger"),
    ("games-dp", "events.txt", f"{private} --ledger games-dp.ledger"),
    ("large-catalogue-dp", "events.txt", f"{private} --model large-catalogue.wisp --other-data --ledger large.ledger"),
    ("cafe-device", "log.db", f"{private} --model base.wisp --ledger cafe-device.ledger"),
    ("fine-tune-dp", "log.db", f"{private} --model base.wisp --ledger fine-tune-dp.ledger"),
)
# Classifiers on an encoder that has the shape of a golden one, whose words the texts do not have.
ENCODERS = (
    ("sst2-minilm", "--epochs 0.2 --batch 40"),
    ("sst2-minilm-lora", "--epochs 0.2 --batch 40 --lora 2"),
    ("sst2-minilm-rgp", "--epochs 0.2 --batch 40"),
    ("sst2-minilm-head", "--epochs 2 --batch 400"),
)
TEXTS = ("sst2-dp-fp", "tinyshakespeare")


@pytest.fixture(scope="module", autouse=True)
def data(cafe):
    random.seed(5)
    with open("events.txt", "w") as out:  # more items than the most negatives of any recipe
        for user in range(150):
            out.writelines(f"{user} {(20 * user + item) % 3000}\n" for item in range(20 + random.randrange(30)))
    kinds = (("dull", "negative"), ("great", "positive"))
    texts = [(kinds[i % 2][0], random.choice(("long", "short")), kinds[i % 2][1]) for i in range(400)]
    write("texts.tsv", "sentence\tlabel\n" + "".join(f"the film is {a} and {b}\t{label}\n" for a, b, label in texts))
    edit("texts.tsv", "classes.tsv", "negative", "bad")
    edit("classes.tsv", "classes.tsv", "positive", "good")
    run(f"wisp convert {golden}/bert_classes --out encoder.wisp --dataset made-up")


@pytest.mark.parametrize("name, file, options", EVENTS)
def test_events(name, file, options):
    run(f"wisp train --recipe {recipes}/{name}.json --data {file} --out {name}.wisp {few} {options}")


@pytest.mark.parametrize("name, options", ENCODERS)
def test_an_encoder(name, options):
    edit(f"{recipes}/{name}.json", f"{name}.json", '"negative", "positive"', '"bad", "fair", "good"')
    run(f"wisp train --recipe {name}.json --model encoder.wisp --other-data --labelled classes.tsv --out"
        f" {name}.wisp --ledger {name}.ledger {of_texts} {options}")


def test_texts():
    run(f"wisp train --recipe {recipes}/sst2-dp-fp.json --labelled texts.tsv --out texts.wisp --epochs 0.2"
        f" --batch 40 --ledger texts.ledger {of_texts}")
    run(f"wisp train --recipe {recipes}/tinyshakespeare.json --data texts.tsv --record line --out bytes.wisp {few}"
        f" --batch 40 --num-records-public 400 {noise} --ledger bytes.ledger")


def test_no_recipe_is_missing():
    here = {path.stem for path in (root / "models/recipes").glob("*.json")}
    assert {case[0] for case in EVENTS + ENCODERS} | set(TEXTS) == here
