"""Situations of an app on a device: damaged models, sessions and days as records, the log of one person."""

from pathlib import Path

import pytest
from program import BUILD, ROOT, edit, exists, recipe, run, says

train = "wisp train --model base.wisp --public-dataset shipped --batch 20 --epochs 1 --delta 0.0001 --json"
refused = "--num-records-public 300 --out o.wisp --ledger o.ledger"
damaged = "damaged.wisp: tensor .* is damaged"


@pytest.fixture(scope="module", autouse=True)
def files(work_folder):
    run("wisp synth --out public.txt --population public --users 200 --seed 1")
    run("wisp synth --out log.db --population device --users 60 --seed 3")
    run("wisp synth --out log.txt --population device --users 60 --seed 3")
    run(f"wisp train --recipe {ROOT}/models/recipes/cafe.json --epochs 1 --data public.txt --dataset shipped --out"
        " base.wisp")
    weights = bytearray(Path("base.wisp").read_bytes())
    weights[-4096:-4064] = b"\xff" * 32  # the last bytes of the file are weights
    Path("damaged.wisp").write_bytes(weights)


def unit(name, keys):
    """Writes a recipe for these keys of privacy in the place of the unit."""
    edit(recipe, f"{name}.json", '"unit": "user"', keys)


@pytest.mark.parametrize(
    "command",
    (
        "recommend --model damaged.wisp --data log.db --user u00003",
        "recommend --model damaged.wisp --data log.db --user u00003 --backend int8",
        (
            "recommend --model base.wisp --base damaged.wisp --data log.db --user u00003 --private --public-dataset"
            " shipped"
        ),
        "evaluate --model damaged.wisp --data log.db",
        "inspect damaged.wisp --verify",
        (
            f"train --recipe {recipe} --model damaged.wisp --data log.db --num-records-public 60 --out o.wisp --ledger"
            " l.db"
        ),
    ),
)
def test_every_command_that_shows_a_models_output_finds_a_damaged_weight(command):
    run(f"wisp {command}", 3, damaged)


def test_a_whole_model():
    run("wisp inspect base.wisp --verify")
    run("wisp recommend --model base.wisp --data log.db --user u00003 --candidates ,", 2, "names no item")


def test_the_unit_of_the_recipe_is_the_unit_of_the_records():
    # The log's events lie up to two days apart.
    unit("user", '"unit": "user"')
    unit("session", '"unit": "session", "session_gap": 86400')
    unit("day", '"unit": "day"')
    records = {}
    for name in ("user", "session", "day"):
        r = run(f"{train} --data log.db --recipe {name}.json --num-records-public 300 --out {name}.wisp"
            f" --ledger {name}.ledger --dataset log")
        records[name] = r["records"]
        statement = run(f"wisp privacy --ledger {name}.ledger --delta 1e-4").out
        assert says(f"privacy unit: one {name}$", statement), f"the statement does not say the unit {name}"
        assert run(f"wisp inspect {name}.wisp --json")["provenance"][-1]["privacy_unit"].split(",")[0] == name
    assert "one day of a user, not the user" in statement, "the statement does not say what one day protects"
    # A user has several sessions of two events or more; a day of two events is rare.
    assert records["user"] == 60 < records["session"] and 0 < records["day"] != records["session"], records


def test_units_that_cannot_be():
    unit("bare", '"unit": "session"')
    run(f"{train} --data log.db --recipe bare.json {refused}", 2, "session gap is 0 seconds")
    unit("gap", '"unit": "day", "session_gap": 60')
    run(f"{train} --data log.db --recipe gap.json {refused}", 2, "only the unit session has one")
    unit("interaction", '"unit": "interaction"')
    run(f"{train} --data log.db --recipe interaction.json {refused}", 4, "one event alone teaches nothing")
    run(f"{train} --data log.txt --recipe session.json {refused}", 2, "log.txt: sessions must stay what they were")
    user = f"{refused.replace('o.ledger', 'user.ledger')} --dataset log"
    run(f"{train} --data log.db --recipe session.json {user}", 4, "protects one user")


def test_records_of_another_size_do_not_add_up_to_one_figure_with_earlier_ones():
    # Their unit may have the same name.
    session = f"{refused.replace('o.ledger', 'session.ledger')} --dataset log"
    unit("short", '"unit": "session", "session_gap": 10')
    said = "of more than 86400 seconds.*; asked for was .*of more than 10 seconds.*: costs of different records"
    run(f"{train} --data log.db --recipe short.json {session}", 4, said)
    unit("millis", '"unit": "session", "session_gap": 86400, "times_per_second": 1000')
    said = "count 1 to the second; asked for was .* count 1000 to the second"
    run(f"{train} --data log.db --recipe millis.json {session}", 4, said)
    assert not exists("o.wisp") and not exists("o.ledger"), "a refused run left something behind"


def test_one_person():
    # A delta that protects nothing is refused, and the output says what one record means.
    one = "wisp train --recipe user.json --model base.wisp --data log.db --public-dataset shipped --batch 1 --epochs 1"
    run(f"{one} --delta 0.1 --num-records-public 1 --out o.wisp --ledger o.ledger", 4, "at most 1e-05")
    said = "there is one record, one user: .*docs/privacy.md"
    run(f"{one} --delta 1e-5 --num-records-public 1 --out one.wisp --ledger one.ledger", 0, said)


def test_the_example_is_c99():
    run(f"cc -std=c99 -pedantic -Wall -Wextra -Werror -I{BUILD}/include {ROOT}/ports/c/example.c -o example -L{BUILD}"
        f" -lwisp -Wl,-rpath,{BUILD}")
