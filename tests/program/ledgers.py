"""No command replaces its inputs or a ledger, a ledger pays only for its own data set, and a refusal changes
nothing."""

import errno
import json
import os
import signal

import pytest
from program import (
    ROOT,
    checksum,
    copy,
    edit,
    entries,
    exists,
    label,
    limits,
    move,
    public_recipe,
    read,
    recipe,
    remove,
    run,
    running,
    says,
    sql,
    wait_for,
    write,
)

pytestmark = pytest.mark.usefixtures("cafe")


fit = f"wisp train --recipe {recipe} --model base.wisp --batch 20 --epochs 1 --delta 0.001"
tune = f"{fit} --num-records-public 60"
again = (
    f"wisp train --recipe {recipe} --model o.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1 --delta"
    " 0.001"
)


def statement(change):
    """Returns the kept statement with a change."""
    j = json.loads(read("kept.json"))
    change(j)
    return json.dumps(j)


def change_part(accounting, factor):
    """Multiplies the epsilon of the first part."""
    part = accounting["parts"][0]
    name = next(key for key in part if key.startswith("epsilon"))
    part[name] *= factor


# Forgeries of a statement, in its verification, accounting or definition or in itself, and the refusal of each.
FORGERIES = (
    (lambda v, a, d, j: v.update(charges=0, receipt=""), "says otherwise of .*accounting.ledger_epsilon"),
    (
        lambda v, a, d, j: (v.update(charges=0, receipt="", models=[]), a.update(ledger_epsilon=0.001, epsilon=0.001)),
        "says otherwise of .*accounting.ledger_epsilon",
    ),
    (lambda v, a, d, j: v.update(charges=0), "does not have the charge that the statement ends with as its charge 0"),
    (lambda v, a, d, j: v.update(charges=1), "does not have the charge that the statement ends with as its charge 1"),
    (
        lambda v, a, d, j: a.update(ledger_epsilon=a["ledger_epsilon"] * (1 - 1e-5)),
        "says otherwise of accounting.ledger_epsilon$",
    ),
    (lambda v, a, d, j: d.update(privacy_unit="session"), "says otherwise of definition.privacy_unit$"),
    (lambda v, a, d, j: d.update(record="x"), "says otherwise of definition.record$"),
    (lambda v, a, d, j: d.update(dataset="x"), "says otherwise of definition.dataset$"),
    (lambda v, a, d, j: a.update(delta=1e-9), "says otherwise of .*accounting"),
    (lambda v, a, d, j: a.update(limit={"epsilon": 1, "delta": 1e-6}), "says otherwise of accounting.limit"),
    # A limit is not computed.
    (
        lambda v, a, d, j: a["limit"].update(epsilon=a["limit"]["epsilon"] * (1 - 1e-9)),
        "says otherwise of accounting.limit.epsilon$",
    ),
    (lambda v, a, d, j: a["mechanisms"].reverse() or a["mechanisms"].pop(), "says otherwise of accounting.mechanisms$"),
    (lambda v, a, d, j: change_part(a, 1 - 1e-5), "says otherwise of accounting.parts.0.epsilon"),
    (lambda v, a, d, j: j.update(audited=True), "says otherwise of audited$"),
)


def test_files_that_would_be_lost():
    copy("log.db", "other.db")
    # Links and other spellings of a path are the same file; so is a ledger that does not exist
    # yet.
    run(f"{tune} --data log.db --epsilon 2 --out o.wisp --ledger l.db")
    os.symlink("l.db", "link.db")
    os.link("log.db", "hard.db")
    before = checksum("log.db", "l.db", "base.wisp")
    run(f"{tune} --data log.db --epsilon 1 --out ./log.db --ledger l.db",
        2, "--out and --data name the same file, ./log.db")
    run(f"{tune} --data log.db --epsilon 1 --out hard.db --ledger l.db", 2, "--out and --data name the same file")
    run(f"{tune} --data log.db --epsilon 1 --out link.db --ledger l.db", 2, "--out and --ledger name the same file")
    run(f"{tune} --data log.db --epsilon 1 --out new.db --ledger {os.getcwd()}/new.db",
        2, "--out and --ledger name the same file")
    run(f"{tune} --data log.db --epsilon 1 --out p.wisp --privacy-json p.wisp --ledger l.db",
        2, "--out and --privacy-json name the same file")
    run(f"{tune} --data log.db --epsilon 1 --out p.wisp --privacy-json base.wisp --ledger l.db",
        2, "--privacy-json and --model name the same file")
    run(f"{tune} --data log.db --epsilon 1 --out p.wisp --checkpoint log.db --ledger l.db",
        2, "--checkpoint and --data name the same file")
    run(f"{tune} --data log.db --epsilon 1 --out l.db --ledger m.db",
        2, "l.db: is an SQLite database, a log or a ledger, or may be one, and will not be replaced")
    for file in ("l.db", "link.db", "log.db"):
        run(f"wisp synth --out {file} --users 20", 2, "will not be replaced")
    run("wisp convert base.wisp --f16 --out ./base.wisp", 2, "--out and the model name the same file")
    run("wisp convert base.wisp --f16 --out l.db", 2, "will not be replaced")
    run("wisp convert base.wisp --out base.safetensors")
    run("wisp convert base.safetensors --item-keys o.wisp --out o.wisp", 2, "--out and --item-keys name the same file")
    run(f"wisp new --recipe {public_recipe} --data log.db --out log.db", 2, "--out and --data name the same file")
    write("texts.txt", "good\ta film\nbad\ta bore\n")
    edit(
        f"{ROOT}/models/recipes/sst2-dp-fp.json", "texts.json", r'"classes": \[[^]]*\]', r'"classes": ["good", "bad"]'
    )
    run("wisp train --recipe texts.json --labelled texts.txt --out texts.txt --ledger t.db",
        2, "--out and --labelled name the same file")
    run("wisp train --recipe texts.json --labelled texts.txt --out l.db --ledger l.db",
        2, "--out and --ledger name the same file")
    assert checksum("log.db", "l.db", "base.wisp") == before, "a refused command changed a file"
    for file in ("new.db", "p.wisp", "m.db", "t.db"):
        assert not exists(file), f"a refused command left {file} behind"


def test_the_files_that_sqlite_keeps_beside_a_database():
    # The files that SQLite keeps beside a database, an unreadable file, a link to a future ledger, a ledger with a
    # temporary file's name.
    write("l.db-wal", "")
    run("wisp convert base.wisp --f16 --out l.db-wal", 2, "will not be replaced")
    remove("l.db-wal")
    if os.getuid() != 0:
        os.chmod("l.db", 0)
        run("wisp convert base.wisp --f16 --out l.db", 2, "will not be replaced")
        os.chmod("l.db", 0o600)
    os.symlink("target.wisp", "dangling.db")
    run(f"{tune} --data log.db --epsilon 1 --out target.wisp --ledger dangling.db",
        2, "--out and --ledger name the same file")
    run(f"{tune} --data log.db --epsilon 1 --out p.wisp --ledger file:l.db", 3, "taken as they are, not as URIs")
    copy("l.db", "z.wisp.tmp-1")
    run("wisp convert base.wisp --f16 --out z.wisp")
    assert exists("z.wisp.tmp-1"), "a ledger was taken for a temporary file"
    run(f"{tune} --data log.db --epsilon 1 --out p.wisp --ledger name.db --dataset bad\udcff", 2, "is not text")
    assert not exists("p.wisp") and not exists("name.db"), "a refused command left something behind"
    write("deep.json", '{"training":' + "[" * 100000 + "]" * 100000 + "}")
    run("wisp train --recipe deep.json --data log.db --out p.wisp", 3, "objects lie deeper than 32")


def test_a_model_may_be_replaced_by_the_one_that_is_trained_from_it():
    copy("base.wisp", "own.wisp")
    run(f"wisp train --recipe {recipe} --model own.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1"
        " --delta 0.001 --epsilon 0.5 --out own.wisp --ledger l.db")


def test_weights_that_one_ledger_paid_for_are_not_trained_further_on_another():
    # Weights that one ledger paid for are not trained further on another, which knows nothing of it.
    run(f"{again} --epsilon 1 --out a.wisp --ledger fresh.db",
        4, "trained on 'log.db' before, for epsilon 2 at delta 0.001, and ledger 'fresh.db' did not pay for it")
    assert not exists("fresh.db") and not exists("a.wisp"), "a refused run left something behind"
    run(f"wisp train --recipe {recipe} --model base.wisp --data other.db --dataset log.db --num-records-public 60"
        " --batch 20 --epochs 1 --delta 0.001 --epsilon 3 --out a.wisp --ledger less.db")
    # A ledger with as much spent on the same data does not serve either, nor does a copy of the right one from before
    # the run.
    run(f"{again} --epsilon 1 --out a.wisp --ledger less.db",
        4, "for epsilon 2.* and ledger 'less.db' did not pay for it")
    copy("l.db", "before.db")
    run(f"{again} --epsilon 0.2 --out later.wisp --ledger l.db")
    run(f"{again.replace('o.wisp', 'later.wisp')} --epsilon 0.2 --out a.wisp --ledger before.db",
        4, "and ledger 'before.db' did not pay for it")
    run(f"{again} --epsilon 0.5 --out a.wisp --ledger l.db")
    run(f"{again} --epsilon 0.5 --out a.wisp --ledger fresh.db --dataset 'another log'")
    run(f"{again} --epsilon 0.5 --out a.wisp --ledger less.db --other-data")


def test_a_run_does_not_resume_from_a_checkpoint_under_the_name_of_another_base():
    going = (
        "--data log.db --epsilon 1 --ledger check.db --dataset 'a third log' --checkpoint c.ck --epochs 30 --batch 20"
        " --num-records-public 60 --delta 0.001"
    )
    with running(f"wisp train --recipe {recipe} --model base.wisp {going} --out a.wisp") as process:
        assert wait_for("c.ck"), "no checkpoint was written"
        process.send_signal(signal.SIGINT)
        process.wait()
    assert exists("c.ck"), "no checkpoint was left"
    run(f"wisp train --recipe {recipe} --model own.wisp {going} --budget 60 --out a.wisp",
        3, "it belongs to a run that began with another model")
    assert limits("check.db") == 0, "a run that was refused at its checkpoint set a limit"
    run(f"wisp train --recipe {recipe} --model base.wisp {going} --budget 60 --out a.wisp")
    assert limits("check.db") == 1 and not exists("c.ck"), "a run that was gone on with set no limit"


def test_a_ledger_pays_only_for_its_own_data_set():
    charged = entries("l.db")
    run(f"{tune} --data other.db --epsilon 0.5 --out b.wisp --ledger l.db",
        4, "is of the data set 'log.db', and what is to be charged is 'other.db'")
    run(f"lab audit run --recipe {recipe} --model base.wisp --data other.db --num-records-public 60 --canaries 20"
        " --steps 1 --ledger l.db",
        4, "is of the data set 'log.db', and what is to be charged is 'other.db'")
    assert entries("l.db") == charged, "data of another name was charged to the ledger"
    run(f"{tune} --data other.db --dataset log.db --epsilon 0.5 --out b.wisp --ledger l.db")


def test_a_refused_run_sets_no_limit():
    # A refused run sets no limit; a run that fits does, and a raised limit is mentioned.
    run(f"{fit} --num-records-public 2000 --data log.db --epsilon 1 --budget 50 --out c.wisp --ledger l.db",
        4, "not below 1 / 2000")
    run(f"{tune} --data log.db --epsilon 4.5 --budget 5 --out c.wisp --ledger l.db", 4, "the limit is 5, spent")
    run(f"{tune} --data nowhere.db --dataset log.db --epsilon 1 --budget 50 --out c.wisp --ledger l.db", 3, "nowhere")
    run(f"{tune} --data log.db --epsilon 1 --budget -3 --out c.wisp --ledger l.db",
        2, "--budget is -3, allowed is an epsilon above 0")
    assert limits("l.db") == 0 and not exists("c.wisp"), "a refused run changed the limit"
    run(f"{tune} --data log.db --epsilon 0.5 --budget 9 --out c.wisp --ledger l.db")
    assert limits("l.db") == 1, "--budget sets no limit"
    run("wisp privacy --ledger gone.db --delta 1e-3", 3, "ledger 'gone.db' is not there")


def test_the_output_about_a_run_names_what_it_began_with():
    # The output about a run names what it began with, unless that is declared public, and an architecture that is not
    # used.
    r = run(f"{tune} --data log.db --epsilon 0.2 --out d.wisp --ledger l.db")
    assert "of this run alone; of the weights it began with" in r.out
    run(f"{tune} --data log.db --epsilon 0.2 --out d.wisp --ledger l.db --public-dataset guests",
        2, "--public-dataset is 'guests', which no provenance here names")
    r = run(f"{tune} --data log.db --epsilon 0.2 --out d.wisp --ledger l.db --public-dataset '{label}'")
    assert "of this run alone" not in r.out, "a base from public data is spoken of"
    edit(recipe, "wide.json", r'"name"', r'"architecture": {"width": 16}, "name"')
    r = run(
        "wisp train --recipe wide.json --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1"
        " --delta 0.001 --epsilon 0.2 --out d.wisp --ledger l.db",
        0, "what is trained is --model, which has other settings than the recipe's architecture: width 32 for 16$")
    # After a run the output says the total of all, and the ledger's limit.
    total = "spent on this data, everything together: epsilon [0-9.]* of 9 at delta 0.001"
    assert says(total, r.out), "a run does not say what is spent in all"


def test_the_output_says_what_the_weights_carry_from_data_of_another_name():
    r = run(
        f"{again} --epsilon 0.2 --out e.wisp --ledger other.ledger --dataset 'a fourth log' --public-dataset '{label}'"
    )
    assert says(
        "the weights it began with carry epsilon .* on 'log.db' besides: where both are data of the same people, add"
        " the two",
        r.out,
    ), "what the weights carry is not said"
    # A key that stands twice, and a delta without the recipe's permission.
    edit(recipe, "twice.json", r'"epsilon": 7.9', r'"epsilon": 7.9, "epsilon": 79')
    run("wisp train --recipe twice.json --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1"
        " --delta 0.001 --out f.wisp --ledger l.db",
        3, "the key 'epsilon' is there twice")
    edit(recipe, "allow.json", r'"epsilon": 7.9', r'"epsilon": 7.9, "allow_delta_of_one_record": true')
    run("wisp train --recipe allow.json --model base.wisp --data log.db --num-records-public 50 --batch 20 --epochs 1"
        " --delta 0.02 --out f.wisp --ledger l.db",
        4, "not below 1 / 50")
    run(f"{tune} --data log.db --threads 99999 --out f.wisp --ledger l.db", 2, "threads")
    assert not exists("f.wisp"), "a refused run left a model behind"


def test_the_run_that_made_a_model_and_a_later_evaluation_test_it_on_the_same_u():
    # The run that made a model and a later evaluation test it on the same users: those with three events or more.
    first_three = "select user, item, row_number() over (partition by user order by time) as n from events"
    pairs = sql("log.db", f"select group_concat(user || ' ' || item, char(10)) from ({first_three}) where n <= 3")
    write("short.txt", pairs + "\n")
    r = run(f"wisp train --recipe {public_recipe} --model base.wisp --data short.txt --epochs 1 --batch 20 --out"
        " short.wisp --json")
    trained = r["test"]
    r = run("wisp evaluate --model short.wisp --data short.txt --json")
    assert (r["users"], r["ndcg@10"]) == (trained["users"], trained["ndcg@10"]) and r["users"] == 60
    run("wisp evaluate --model short.wisp --data short.txt --split validation",
        3, "no user has enough events to be tested: 4 of items that the model knows")


def test_the_ledgers_anchor_notices_an_old_copy_that_was_put_back():
    # The ledger's anchor notices an old copy that was put back, in every command that takes one.
    watched = "--ledger kept.db --anchor kept.anchor"
    anchored = f"{tune} --data log.db --dataset 'a fourth log' --epsilon 0.5 --out a.wisp"
    run(f"{anchored} --ledger kept.db --anchor ./kept.db", 2, "--anchor and --ledger name the same file")
    run(f"{anchored} --ledger kept.db --anchor a.wisp", 2, "--out and --anchor name the same file")
    run(f"{anchored} {watched}")
    copy("kept.db", "old.db")
    run(f"{anchored} {watched}")
    copy("kept.db", "new.db")
    copy("old.db", "kept.db")
    before = checksum("kept.db", "kept.anchor")
    run(f"{anchored} {watched}", 4, "is an old copy")
    run(f"wisp privacy {watched}", 4, "is an old copy")
    run(f"lab audit run --recipe {recipe} --data log.db --dataset 'a fourth log' {watched} --batch 20 --epochs 1"
        " --epsilon 0.5",
        4, "is an old copy")
    assert checksum("kept.db", "kept.anchor") == before, "a refused command changed the ledger or its anchor"
    move("kept.db", "away.db")
    run(f"{anchored} {watched}", 4, "is not there, and its anchor knows")
    copy("new.db", "kept.db")
    run(f"wisp privacy {watched}")
    copy("l.db", "begun.db")
    run("wisp privacy --ledger begun.db --anchor l.anchor", 4, "say once that the anchor begins now")
    run("wisp privacy --ledger begun.db --anchor l.anchor --begin-anchor")
    run("wisp privacy --ledger begun.db --anchor l.anchor")
    remove("new.db")


def test_a_model_without_a_guarantee_is_in_no_claim_about_its_data():
    # All names are the default, which is the log's.
    ordinary = f"wisp train --recipe {public_recipe} --data log.db --epochs 1 --batch 20"
    r = run(f"{ordinary} --model base.wisp --out open.wisp")
    assert "ledger states nothing" not in r.out
    run(f"{tune.replace('base.wisp', 'open.wisp')} --data log.db --epsilon 1 --out s.wisp --ledger log.ledger",
        4, "open.wisp: it was trained on 'log.db' before, without a guarantee")
    plan = "--epsilon 4 --num-records-public 60 --unit user --for '1 month' --steps 2 --evaluation none"
    run(f"wisp plan --data log.db --model open.wisp {plan}", 4, "trained on 'log.db' before, without a guarantee")
    assert not exists("log.ledger"), "a refused run made a ledger"
    run(f"{tune} --data log.db --epsilon 1 --out s.wisp --ledger log.ledger")
    r = run("wisp privacy --ledger log.ledger --delta 1e-3 --model s.wisp")
    assert says("not covered: models that learned from the data without a guarantee", r.out)
    # A model that a statement names is one that its figures are about.
    said = "open.wisp: learned from 'log.db', the data set of the ledger, without a charge to it: no figure covers"
    run("wisp privacy --ledger log.ledger --delta 1e-3 --model open.wisp", 4, said + ".*--other-data")
    r = run(f"{ordinary} --model s.wisp --out mixed.wisp")
    assert "not covered: the ledger log.ledger states nothing about this model" in r.out
    run("wisp privacy --ledger log.ledger --delta 1e-3 --model mixed.wisp", 4, "without a charge to it")
    r = run("wisp privacy --ledger log.ledger --delta 1e-3 --model open.wisp --other-data --json")
    assert r["verification"]["models"][0]["receipt"] == ""
    remove("log.ledger", "s.wisp", "open.wisp", "mixed.wisp")


def test_a_ledger_with_an_anchor_is_not_charged_without_it():
    # Who forgets it would not notice an old copy. Reading says that it was not compared.
    anchored = f"{tune} --data log.db --dataset 'a fourth log' --epsilon 0.5 --out a.wisp --ledger kept.db"
    before = checksum("kept.db")
    run(anchored, 4, "has an anchor .kept.anchor., which was not given .--anchor.*.--begin-anchor.: the statement")
    assert says("anchor: not compared: an old copy of the ledger", run("wisp privacy --ledger kept.db").out)
    assert checksum("kept.db") == before, "a command without the anchor changed the ledger"
    statement = run("wisp privacy --ledger kept.db --anchor kept.anchor --json")
    assert statement["verification"]["anchor"]["compared"] and statement["verification"]["anchor"]["begun"] == 1
    write("kept.json", statement.out)
    assert says("anchor was not compared", run("wisp privacy check kept.json --ledger kept.db").out)
    # It is lost: another one begins, which the statement shows from then on.
    remove("kept.anchor")
    run(f"{anchored} --anchor kept.anchor", 4, "say once that the anchor begins now")
    run(f"{anchored} --anchor another.anchor --begin-anchor")
    said = run("wisp privacy --ledger kept.db --anchor another.anchor").out
    assert says("anchor lost: a later one began", said) and says("anchor: compared: the ledger has all rows", said)
    run("wisp privacy check kept.json --ledger kept.db")


sample = (
    f"wisp recommend --model plain.wisp --history tea-mint --private --base base.wisp --public-dataset '{label}'"
    " --count 2"
)


def test_the_ledgers_limit():
    # The ledger's limit, which was set before, does not cover the planned number.
    run(f"wisp train --recipe {public_recipe} --model base.wisp --data log.db --epochs 1 --batch 20 --out plain.wisp")
    run(f"{sample} --ledger huge.db --clip 0.5 --budget 0.1 --delta 0.999",
        4, "the new limit's delta is 0.999, which is not below 1 / 10000 records.* assumed where nobody declares")
    run(f"{sample} --ledger huge.db --epsilon 8 --planned-samples 20 --delta 0.9", 4, "the target's delta is 0.9")
    assert not exists("huge.db"), "a delta that protects nothing was written down"
    run(f"{sample} --ledger samples.db --clip 0.5 --budget 20 --delta 1e-6")
    copy("samples.db", "old-samples.db")
    run(f"{sample} --ledger samples.db --anchor samples.anchor --begin-anchor --clip 0.5")
    copy("old-samples.db", "samples.db")
    run(f"{sample} --ledger samples.db --anchor samples.anchor --clip 0.5", 4, "is an old copy")


def test_a_second_query_under_the_same_plan_continues_the_plan():
    planned = f"{sample} --ledger plan.db --epsilon 2 --delta 1e-6 --planned-samples 5"
    r = run(planned)
    assert "planned" not in r.err, "the first samples of a plan speak of it"
    r = run(planned)
    assert "planned" not in r.err, "the second query of a plan warns"
    run(
        f"{sample} --ledger samples.db --epsilon 19 --delta 1e-6 --planned-samples 40",
        0,
        "of 40 planned samples the ledger's limit, epsilon 20 at delta 1e-06 over everything, leaves room "
        "for [1-9]",
    )


def test_a_kept_statement_is_checked_later():
    # A kept statement is checked later, against the ledger and against models.
    r = run("wisp privacy --ledger l.db --delta 1e-6 --model o.wisp --json")
    write("kept.json", r.out)
    assert r["verification"]["models"][0]["sha256"] == checksum("o.wisp")
    check = "wisp privacy check kept.json"
    r = run(f"{check} --ledger l.db --model o.wisp")
    assert says("^kept.json: holds; every figure was computed again, 1 model named in it$", r.out), "a check says"
    run(f"{check} --ledger l.db --model base.wisp", 4, "names no model of SHA-256")
    run(f"{check} --ledger samples.db", 4, "is an old copy, or another one")
    write("other.json", statement(lambda j: j["verification"].update(receipt="0" * 64)))
    run("wisp privacy check other.json --ledger l.db", 4, "the ledger does not have the charge")
    write(
        "less.json", statement(lambda j: j["accounting"].update(ledger_epsilon=j["accounting"]["ledger_epsilon"] / 2))
    )
    run("wisp privacy check less.json --ledger l.db", 4, "says otherwise of accounting.ledger_epsilon")
    write("empty.json", '{"statement_version": 1}\n')
    run("wisp privacy check empty.json --ledger l.db", 3, "it does not name the newest charge")
    copy("l.db", "before.db")
    run(f"{tune} --data log.db --epsilon 2 --budget 60 --out more.wisp --ledger l.db")
    r = run(f"{check} --ledger l.db")
    assert says("^charged since: [0-9]* charge", r.out), "a check of a ledger that went on says"


def test_later_charges_excuse_nothing():
    # Later charges excuse nothing: the statement is that of the ledger with as many charges, in every word.
    later = run("wisp privacy --ledger l.db --delta 1e-6 --json")
    write("later.json", later.out)
    for forgery, sentence in FORGERIES + (
        (
            lambda v, a, d, j: v.update(receipt=later["verification"]["receipt"]),
            "does not have the charge that the statement ends with as its charge ",
        ),
    ):
        write("forged.json", statement(lambda j: forgery(j["verification"], j["accounting"], j["definition"], j)))
        run("wisp privacy check forged.json --ledger l.db", 4, sentence)
    named = {"created_by": "another program"}
    write("forged.json", statement(lambda j: (j.update(named), j["verification"].update(ledger="as/it/was/called"))))
    run("wisp privacy check forged.json --ledger l.db")
    # Another C library's figures differ in their last digits.
    write("elsewhere.json", statement(lambda j: (change_part(j["accounting"], 1 + 1e-9), j["accounting"].update(
        ledger_epsilon=j["accounting"]["ledger_epsilon"] * (1 + 1e-9)))))
    run("wisp privacy check elsewhere.json --ledger l.db")
    run("wisp privacy check later.json --ledger before.db", 4, "is an old copy, or another one")


def test_a_file_system_without_locks_is_named_at_once():
    # A file system without locks is named at once. Here each request for one is answered as such a file system does.
    run(f"cc -O1 -shared -fPIC {ROOT}/tests/no_locks.c -o no_locks.so -ldl")
    for number in (errno.ENOLCK, errno.EOPNOTSUPP):
        without = f"LD_PRELOAD={os.getcwd()}/no_locks.so LOCKS_FAIL_WITH={number}"
        run(f"{without} wisp log count log.db", 3, "its file system cannot lock files")
        run(f"{without} wisp log erase log.db --user nobody", 3, "its file system cannot lock files")
        run(f"{without} wisp privacy --ledger samples.db --delta 1e-6", 3, "its file system cannot lock files")
        run(f"{without} {sample} --ledger samples.db --clip 0.5", 3, "its file system cannot lock files")
