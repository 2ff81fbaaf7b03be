"""A catalogue that changes daily: a model of two towers is made from items' public features, trained with and without a
guarantee, and recommends an item that nobody chose yet from the day on which it is added."""

import random
from pathlib import Path

from program import run, write

KINDS, ITEMS = 6, 48
ADD = "wisp catalogue add --items new.tsv --item-features new-features.tsv"
TRAIN = "wisp train --recipe recipe.json --model new.wisp --data events.csv"
PRIVATE = "--noise-multiplier 1 --epochs 10 --num-records-public 300 --delta 0.001 --ledger l.db"


def test_features_of_any_other_form_are_refused():
    # Features say the kind of an item, up to some noise. After an item comes one of the next kind.
    draw = random.Random(7)

    def numbers(kind):
        return ",".join(f"{draw.gauss(0, 0.1) + (f == kind):.4f}" for f in range(KINDS + 2))

    write("features.tsv", "".join(f"item-{i}\t{numbers(i % KINDS)}\n" for i in range(ITEMS)))
    write("new-features.tsv", "".join(f"new-{k}\t{numbers(k)}\n" for k in range(KINDS)))
    write("new.tsv", "".join(f"new-{k}\tNew of kind {k}\n" for k in range(KINDS)))
    events = (
        f"u{user},item-{draw.randrange(ITEMS // KINDS) * KINDS + (user + t) % KINDS},{t}\n"
        for user in range(300)
        for t in range(9)
    )
    write("events.csv", "user,item,time\n" + "".join(events))
    write(
        "recipe.json",
        """{"name": "kinds",
 "architecture": {"max_length": 8, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 16,
  "embedding_scale": 4},
 "initialisation": {"table_deviation": 0.1},
 "training": {"method": "ordinary", "epochs": 10, "expected_batch": 50, "seed": 1,
  "optimizer": {"learning_rate": 0.02}},
 "data": {"catalogue": "public"}}
""",
    )
    new = "wisp new --recipe recipe.json --out new.wisp --item-features"
    run(f"{new} features.tsv --num-items 3", 2, "names the items, and so does --num-items")
    for text, sentence in (
        ("a\t1,2\nb\t1\n", "line 2: has 1 features; allowed are 2"),
        ("a\t1,x\n", "line 1: not every feature is a finite number"),
        ("a\t1\na\t2\n", "line 2: item 'a' comes again"),
        ("a 1\n", "line 1: there is no key before a tab"),
        ("", "there is no item in it"),
    ):
        write("wrong.tsv", text)
        run(f"{new} wrong.tsv", 3, sentence)
    assert not Path("new.wisp").exists()
    run(f"{new} features.tsv")


def test_inspect_says_what_the_model_is():
    r = run("wisp inspect new.wisp --verify --json")
    assert r["architecture"]["item_features"] == KINDS + 2 and r["architecture"]["items"] == ITEMS
    assert [t["name"] for t in r["tensors"]][:3] == ["item_tower", "item_features", "item_embedding"]
    assert "features.tsv" in r["provenance"][0]["description"] and r["provenance"][0]["epsilon"] == 0


def found(model):
    """Counts the new items that are in the list after a history that asks for their kind."""
    count = 0
    for kind in range(KINDS):
        history = ",".join(f"item-{(kind + KINDS - back) % KINDS}" for back in (2, 1))
        r = run(f"wisp recommend --model {model} --history {history} --count 9 --json")
        count += f"new-{kind}" in [item["key"] if "key" in item else item["item"] for item in r.json]
    return count


def test_new_items_are_recommended_at_once():
    run(f"{TRAIN} --out base.wisp")
    run("wisp catalogue add --model base.wisp --items new.tsv --out base-2.wisp",
        2, "item 'new-0' has 0 features; each item of the model has 8")
    run("wisp catalogue add --model base.wisp --items new.tsv --item-features features.tsv --out base-2.wisp",
        3, "there is no line of item 'new-0'")
    r = run(f"{ADD} --model base.wisp --out base-2.wisp --json")
    assert r["items"] == ITEMS + KINDS and r["rows_from"]["features"] == KINDS
    assert run("wisp inspect base-2.wisp --json")["untrained_items"] == 0
    assert found("base-2.wisp") == KINDS
    run("wisp convert base-2.wisp --f16 --out small.wisp")
    assert found("small.wisp") == KINDS


def test_private_training_learns_from_features_too():
    run(f"{TRAIN} --method phantom {PRIVATE} --out private.wisp")
    run(f"{ADD} --model private.wisp --out private-2.wisp")
    assert found("private-2.wisp") >= KINDS - 1
    run(f"{TRAIN} --method adafest {PRIVATE} --out no.wisp",
        3, "a model with item features has a matrix in place of trained item rows")


def test_rows_that_train_learn_from_shared_features():
    alone = "wisp train --recipe recipe.json --data events.csv --epochs 1 --threads 1 --json"
    along = f"{alone} --item-features features.tsv"
    # One pass teaches a row little, and all rows of a kind together much.
    shared, own = (
        run(f"{command} --out {name}.wisp")["test"]["ndcg@10"] for name, command in (("along", along), ("alone", alone))
    )
    assert shared > own + 0.05
    assert run("wisp inspect along.wisp --json")["architecture"].get("item_features", 0) == 0
    private = PRIVATE.replace("--epochs 10", "")
    run(f"{along} --method phantom {private} --out along-private.wisp")
    run(f"{alone} --item-features new-features.tsv --out no.wisp",
        3, "new-features.tsv: there is no line of item 'item-0'")
    run(f"{TRAIN} --item-features features.tsv --out no.wisp", 3, "no two towers")
    run("wisp train --recipe recipe.json --texts new.tsv --item-features features.tsv --out no.wisp",
        2, "--item-features is of items; texts have tokens")


def test_other_commands_take_such_a_model_or_say_why_not():
    run("wisp catalogue rebase --from new.wisp --to base-2.wisp --out mine.wisp --ledger log.ledger")
    run("wisp convert base-2.wisp --out base.safetensors", 3, "has item features")
