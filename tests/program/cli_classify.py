"""The program's classifiers of texts: refusals of training, its results in the three modes, and audits."""

import re

import pytest
from program import classify, copy, edit, exists, read, run, says, sql, texts, write

pytestmark = pytest.mark.usefixtures("cafe")


begin = "wisp train --recipe"
texts_out = "--out texts.wisp --ledger texts.db"


def first_lines(path, number):
    return "".join(read(path).splitlines(keepends=True)[:number])


def test_a_tiny_task_of_two_words_for_each_class():
    # A tiny task of two words for each class, in the three modes.
    texts()
    run(classify, 4, "ledger")
    edit("tiny.json", "private-words.json", r'"catalogue": "public", ', r"")
    run(f"{begin} private-words.json --labelled train.txt {texts_out}", 4, "vocabulary")
    edit("tiny.json", "unknown-key.json", r'"micro_batches"', r'"micro_batchez"')
    run(f"{begin} unknown-key.json --labelled train.txt {texts_out}", 3, "micro_batchez")
    for guarantee in ("--ledger texts.db", "--epsilon 4", "--budget 4", "--delta 0.001", "--planned-runs 2"):
        run(f"{classify} --mode paper {guarantee}", 4, "no differential privacy guarantee")
    edit("tiny.json", "paper-goal.json", r'"mode": "aggregate"', r'"mode": "paper"')
    run(f"{begin} paper-goal.json --labelled train.txt --out texts.wisp", 4, "mode paper with a goal")
    write("bad-label.txt", "good\ta\nugly\tb\n")
    run(f"{begin} tiny.json --mode paper --labelled bad-label.txt --out texts.wisp", 3, "bad-label.txt, line 2")
    swapped = [line.split("\t") for line in read("train.txt").splitlines()]
    write("swapped.txt", "".join(f"{text}\t{name}\n" for name, text in swapped))
    run(f"{begin} tiny.json --mode paper --labelled swapped.txt --out texts.wisp",
        3, "look swapped.*the label comes first")
    for epochs in ("nan", "-1"):
        run(f"{classify} --ledger epochs.db --epochs={epochs}", 2, "epochs is")
    run(f"{begin} tiny.json --labelled train.txt --out nowhere/t.wisp --ledger texts.db", 3, "nowhere")
    run(f"{classify} --epsilon 4 --noise-multiplier 1 --ledger texts.db", 2, "choose one")
    assert not exists("texts.wisp") and not exists("texts.db"), "a refused classifier left something behind"


def test_none_of_the_texts_becomes_a_record():
    # None of the texts becomes a record, because most have another form, which is refused. With few such texts a
    # private run spends all the same, and the owner is told; one valid text is enough.
    edit("train.txt", "unread.txt", "(?m)^(?=.)", "un")
    run(f"{begin} tiny.json --labelled unread.txt --out none.wisp --ledger none.db --threads 1",
        3, "400 of its 400 texts cannot be read, so nothing can be learned from it (local only)")
    assert not exists("none.db"), "texts in another form were charged"
    write("unknown.txt", first_lines("unread.txt", 60))
    write("one.txt", read("unknown.txt") + "good\tthe film is great\n")
    none = (
        "wisp: warning: no line of .* became a record, .* The run continues and spends what was asked for.*(local only)"
    )
    r = run(f"{begin} tiny.json --labelled unknown.txt --out none.wisp --ledger none.db --threads 1 --json", 0, none)
    assert says("of unknown.txt became a record.*one of data.classes of tiny.json", r.err), "whose lines they are"
    assert r["records"] == 0 and r["records_dropped"] == 60 and r["steps"] == 12 and r["epsilon"] > 0
    assert sql("none.db", "select count(*) > 0 from entries") == 1, "a run without a record was not charged"
    r = run(f"{begin} tiny.json --labelled one.txt --out one.wisp --ledger one.db --threads 1 --json")
    assert r["records"] == 1
    assert "became a record" not in r.err, "a run with a record is warned of"


def test_the_number_of_texts_is_private():
    # A warning on this device says that it is far from the declared one.
    other = "(--num-records-public) (local only)"
    write("more.txt", read("train.txt") + "good\tthe film is great\n")
    run(f"{begin} tiny.json --labelled more.txt --num-records-public 200 --out other.wisp --ledger other-number.db"
        " --threads 1",
        0, f"401 texts were read, 200 are declared {other}")
    write("few.txt", first_lines("train.txt", 199))
    r = run(f"{begin} tiny.json --labelled few.txt --out other.wisp --ledger few.db --threads 1 --json",
        0, f"199 texts were read, 400 are declared {other}")
    assert "declared" not in r.out, "a number of texts is shown as if it were public"
    write("half.txt", first_lines("train.txt", 200))
    r = run(f"{begin} tiny.json --labelled half.txt --out other.wisp --ledger half.db --threads 1")
    assert "are declared" not in r.err, "half of the declared number is told of"


def test_in_every_command_the_files_ending_says_if_there_is_a_header():
    # A private run does not refuse a file that passed a check.
    copy("train.txt", "bare.tsv")
    header = (
        "bare.tsv, line 1: the header does not name one column label and one column sentence or text; --label-column"
        " and --text-column say which they are"
    )
    run(f"{begin} tiny.json --labelled bare.tsv --out other.wisp --ledger bare.db", 3, header)
    run(f"{begin} tiny.json --labelled bare.tsv --out other.wisp --method ordinary", 3, header)
    run("wisp evaluate --model one.wisp --labelled bare.tsv", 3, header)
    run("wisp evaluate --model one.wisp --labelled bare.tsv --split validation", 2, "--split is not for labelled texts")
    run(f"{begin} tiny.json --labelled bare.tsv --out other.wisp --method ordinary --delta 1e-6",
        4, "--delta does not go with the method ordinary")
    run("wisp evaluate --model one.wisp --labelled bare.tsv --format lines")
    write("columns.csv", "verdict,review\n" + read("train.txt").replace("\t", ","))
    columns = "--labelled columns.csv --text-column review --label-column verdict"
    run(f"{begin} tiny.json {columns} --out columns.wisp --ledger columns.db")
    r = run(f"{classify} --ledger texts.db --json")
    assert r["mode"] == "aggregate" and r["epsilon"] > 0 and r["steps"] == 12 and "no_guarantee" not in r.json
    assert r["not_private"] == ["records", "records_dropped", "seconds"]
    r = run("wisp privacy --ledger texts.db --delta 0.001")
    assert "24 steps" in r.out and "one interaction" in r.out, "the ledger's statement does not name the releases"
    r = run("wisp inspect texts.wisp --verify --json")
    assert r["classifier"]["class_names"] == ["bad", "good"] and r["classifier"]["norm_bound"] == 1
    assert r["provenance"][0]["epsilon"] > 0 and r["architecture"]["items"] == 9
    r = run("wisp evaluate --model texts.wisp --labelled test.txt --json")
    assert r["records"] > 100 and 0 <= r["accuracy"] <= 1 and r["unknown_tokens"] == 0
    run("wisp recommend --model texts.wisp --history film", 3, "is a classifier")
    run("wisp classify --model base.wisp --text film", 3, "is no classifier")
    r = run(f"{classify} --mode clipped --model texts.wisp --ledger texts.db --json")
    assert r["mode"] == "clipped" and r["encoder_noise_multiplier"] == 1 and r["epsilon"] > 0
    r = run("wisp inspect texts.wisp --json")
    assert len(r["provenance"]) == 2 and len(r["provenance"][1]["mechanisms"]) == 2


def test_a_warning_says_that_a_prior_decides_a_head():
    # A warning says that a prior decides a head, from released values. A head that texts decide gives no warning.
    edit("tiny.json", "prior.json", r'"micro_batches": 2', r'"micro_batches": 2, "class_prior": [0.3, 0.7]')
    write("alike.txt", "".join(("bad" if n % 10 < 3 else "good") + "\tthe film is\n" for n in range(1, 401)))
    again = "--threads 1 --reproducible-noise 7 --out prior.wisp --labelled"
    run(f"{begin} prior.json {again} alike.txt --ledger prior.db",
        0, "the head names 'good' even at the mean of every other class.*effective_dimensions, here 1,")
    edit("tiny.json", "sure.json", r'"micro_batches": 2', r'"micro_batches": 2, "effective_dimensions": 16')
    r = run(f"{begin} sure.json {again} train.txt --ledger sure.db")
    assert "the head names" not in r.err, "a head that tells classes apart is warned of"


def test_two_planned_runs_share_their_epsilon():
    # Two planned runs share their epsilon; there is no third.
    planned = f"{classify} --ledger planned.db --epsilon 4 --budget 4 --planned-runs 2 --json"
    for _ in ("first", "second"):
        run(planned)
    r = run("wisp privacy --ledger planned.db --delta 0.001")
    assert re.search(r"epsilon 4( |$|,)|epsilon.*: (3\.9|4\.0000)", r.out, re.M)
    run(planned, 4)
    before = sql("texts.db", "select count(*) from limits")
    run(f"{classify} --ledger texts.db --budget 50 --delta 0.0025", 4, "1 / 400")
    assert sql("texts.db", "select count(*) from limits") == before, "a refused run set a limit"
    r = run(f"{classify} --mode paper --json")
    assert "guarantee" in r["no_guarantee"] and "epsilon" not in r.json and "delta" not in r.json
    r = run(f"{classify} --mode paper --epochs 30 --reproducible-noise 3")
    assert "epsilon" not in r.out.lower(), "mode paper speaks of an epsilon"
    r = run("wisp inspect texts.wisp --json")
    assert r["provenance"][0]["epsilon"] is None and r["provenance"][0]["mechanisms"] == []
    assert "no differential" in r["provenance"][0]["description"]
    r = run("wisp evaluate --model texts.wisp --labelled test.txt --json")
    assert r["accuracy"] > 0.9


def test_the_steps_that_are_really_taken_refute_the_papers_claim_for_a_step():
    # The steps that are really taken refute the paper's claim for a step; the default mode withstands.
    audit = "lab audit step --recipe tiny.json"
    r = run(f"{audit} --method paper --noise-multiplier 20 --observations 300 --json", 4, "REFUTED")
    assert r["refuted"] and r["epsilon"][0]["claimed"] < 0.3 < r["epsilon"][0]["bound_by_rows"]
    assert "no_guarantee" in r.json
    r = run(f"{audit} --observations 40")
    assert says("^not refuted", r.out) and "all of the records a step" in r.out, "a sound step of DP-FP"
    r = run(f"{audit} --observations 4")
    assert "bounds of 0 say that this attack saw nothing" in r.out, "bounds of 0 are not explained"
    run(f"{audit} --method phantom", 2, "aggregate, clipped and paper")


def test_there_is_no_epsilon_for_a_head_on_an_encoder_that_already_learned_from():
    again = f"{begin} tiny.json --labelled train.txt"
    encoder = "--model texts.wisp --out again.wisp"
    run(f"{again} {encoder} --ledger texts.db", 4, "without a guarantee")
    run(f"{again} --dataset other {encoder} --ledger texts.db", 4, "is of the data set 'train.txt'")
    r = run(f"{again} --dataset other {encoder} --ledger other.db")
    assert says("of this run alone; of the weights it began with: .*states no epsilon", r.out)
    ask = "--text 'the film is GREAT' --text 'the film is dull' --json"
    r = run(f"wisp classify --model texts.wisp {ask}")
    assert r[0]["class"] == "good" and r[1]["class"] == "bad" and r[0]["probability"] > 0.5
