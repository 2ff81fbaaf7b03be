"""The wheel's program: models of other programs, training fromscratch."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy
import pytest
import wisp
from conftest import CAFE, GOLDEN, ROOT

BERT = GOLDEN / "hugging_face" / "bert_classes"
RECIPE = {
    "name": "tiny",
    "architecture": {"max_length": 10, "width": 16, "num_heads": 2, "num_blocks": 1, "inner_width": 16},
    "training": {"method": "ordinary", "epochs": 1, "expected_batch": 20, "seed": 1, "optimizer": {"kind": "adam"}},
}
PRIVATE = {
    **RECIPE,
    "training": {**RECIPE["training"], "method": "phantom", "sampling": "poisson", "num_records_public": 60},
    "privacy": {"noise_multiplier": 2, "delta": 0.001, "unit": "user"},
}


def test_converts_what_the_program_converts(tmp_path, classifier):
    made = wisp.convert(BERT, tmp_path / "c.wisp", dataset="public texts")
    assert made["family"] == "bert" and made["dataset"] == "public texts"
    with wisp.TextModel.open(tmp_path / "c.wisp") as ours, wisp.TextModel.open(classifier) as theirs:
        assert numpy.array_equal(ours.embed(["word5 word7"]), theirs.embed(["word5 word7"]))
    wisp.export(tmp_path / "c.wisp", tmp_path / "folder", family="bert")
    wisp.convert(tmp_path / "folder", tmp_path / "again.wisp")
    assert (tmp_path / "folder" / "config.json").exists()


def test_the_variable_names_another_program(tmp_path):
    """WISP_PROGRAM is read when wisp is imported."""
    script = tmp_path / "mine"
    script.write_text('#!/bin/sh\necho "{\\"mine\\": \\"$1\\"}"\n')
    script.chmod(0o755)
    ask = [sys.executable, "-c", "import wisp; print(wisp.run_program('hello'))"]

    def said(program):
        run = subprocess.run(ask, env={**os.environ, "WISP_PROGRAM": str(program)}, capture_output=True, text=True)
        return run.stdout + run.stderr

    assert said(script) == "{'mine': 'hello'}\n"
    nowhere = said(tmp_path / "nowhere")
    assert "wisp.Unsupported: " in nowhere or "Unsupported" in nowhere
    assert f"there is no program {tmp_path / 'nowhere'}" in nowhere and "the variable WISP_PROGRAM" in nowhere


@pytest.mark.parametrize("weights", ["f16", "int8", "int4"])
def test_compresses(tmp_path, encoder, weights):
    made = wisp.compress(encoder, tmp_path / "small.wisp", weights)
    assert made["bytes"] == (tmp_path / "small.wisp").stat().st_size < encoder.stat().st_size
    with wisp.TextModel.open(encoder) as large, wisp.TextModel.open(tmp_path / "small.wisp") as small:
        a, b = large.embed(["word5 word7"])[0], small.embed(["word5 word7"])[0]
        assert a @ b > 0.97 * numpy.linalg.norm(a) * numpy.linalg.norm(b)


def test_lays_weights_out_in_panels(tmp_path, encoder):
    made = wisp.compress(encoder, tmp_path / "panels.wisp", "panels")
    assert made["largest_rounding"] == 0 and made["weights"] == "f32 panels"
    with wisp.TextModel.open(encoder) as before, wisp.TextModel.open(tmp_path / "panels.wisp") as after:
        assert (before.embed(["word5 word7"])[0] == after.embed(["word5 word7"])[0]).all()


def test_trains_from_nothing(tmp_path, guests):
    made = wisp.train(RECIPE, guests, tmp_path / "m.wisp", threads=1)
    assert made["steps"] > 0 and "test" in made["not_private"]
    with wisp.Recommender.open(tmp_path / "m.wisp") as model:
        assert len(model.recommend([1, 2], k=3)[0]) == 3


def test_private_training_needs_a_ledger_and_charges_it(tmp_path, guests):
    with pytest.raises(wisp.PrivacyRefused, match=r"^private training needs a ledger \(ledger\): the file"):
        wisp.train(PRIVATE, guests, tmp_path / "m.wisp", model=CAFE, other_data=True)
    assert not (tmp_path / "m.wisp").exists()
    path = tmp_path / "r.json"
    path.write_text(json.dumps(PRIVATE))
    made = wisp.train(path, guests, tmp_path / "m.wisp", model=CAFE, ledger=tmp_path / "l.db", other_data=True)
    assert made["epsilon"] == pytest.approx(wisp.budget(tmp_path / "l.db", delta=1e-3).epsilon_stated)


def test_trains_a_classifier(tmp_path, encoder):
    data = tmp_path / "train.tsv"
    data.write_text("sentence\tlabel\n" + "word5 word7\t0\nword8 word9\t1\n" * 50)
    recipe = {
        "name": "c",
        "training": {"method": "ordinary", "epochs": 2, "expected_batch": 20, "optimizer": {"kind": "adamw"}},
        "data": {"classes": ["bad", "good"], "text_column": "sentence", "label_column": "label"},
    }
    wisp.train_classifier(recipe, data, tmp_path / "c.wisp", model=encoder, trains="head")
    with wisp.TextModel.open(tmp_path / "c.wisp") as model:
        assert model.info.num_classes == 2


def test_a_decoder_learns_texts_without_a_recipe(tmp_path, decoder):
    texts = tmp_path / "t.txt"
    texts.write_text("some line\n" * 20)
    made = wisp.train(None, texts, tmp_path / "t.wisp", model=decoder, method="ordinary", epochs=1, lora=2, batch=10)
    assert made["steps"] > 0


def test_plans_without_a_ledger():
    steps = numpy.int64(1000)
    epsilon = wisp.run_program("privacy", "epsilon", sigma=numpy.float32(1), q=0.01, steps=steps, delta=1e-5)
    assert epsilon["stated"] == pytest.approx(1.828, abs=1e-3)
    assert wisp.run_program("--version", json_result=False) == f"wisp {wisp.__version__}\n"


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: wisp.convert("nowhere", "m.wisp"), wisp.IoError, "nowhere: there is no such folder or file"),
        (lambda: wisp.convert("nowhere", "m.wisp", shape="round"), wisp.InvalidArgument, "--shape"),
        (lambda: wisp.convert("a\0b", "m.wisp"), wisp.InvalidArgument, "zero byte"),
        (lambda: wisp.compress("\ud800", "n.wisp", "f16"), wisp.InvalidArgument, "halves of surrogate pairs"),
        (lambda: wisp.compress(CAFE, "", "f16"), wisp.InvalidArgument, "does not name a file to write"),
        (lambda: wisp.run_program("recommend", history="", count=3, model=CAFE), wisp.InvalidArgument, "history"),
        (lambda: wisp.convert("a", "m.wisp", dataset={}), TypeError, r"dataset is {} \(dict\)"),
        (lambda: wisp.convert("a", "m.wisp", progress=3), TypeError, "progress is 3"),
        (lambda: wisp.compress("m.wisp", "n.wisp", "int2"), wisp.InvalidArgument, "weights is 'int2'"),
        (lambda: wisp.convert("a", "m.wisp", max_length=[True]), TypeError, "max_length is True"),
        (lambda: wisp.export("m.wisp", "a.st", out="b.st"), wisp.InvalidArgument, "out is given, which"),
        (lambda: wisp.train([1], "log.db", "m.wisp"), TypeError, r"recipe is \[1\] \(list\)"),
        (lambda: wisp.train({"a": float("nan")}, "log.db", "m.wisp"), wisp.InvalidArgument, "the recipe is no JSON"),
        (lambda: wisp.train({"colour": 1}, "log.db", "m.wisp"), wisp.InvalidData, "the recipe: .*colour"),
        (lambda: wisp.run_program("privacy", help=True), wisp.InternalError, "printed no JSON, which json_result"),
        (lambda: wisp.run_program(), wisp.InvalidArgument, "no command is given"),
        (lambda: wisp.run_program("conjure"), wisp.InvalidArgument, "conjure"),
    ],
)
def test_refuses_with_the_programs_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_a_missing_file_is_the_error_that_it_is_elsewhere(tmp_path, guests):
    none, out = tmp_path / "none.wisp", tmp_path / "m.wisp"
    calls = [
        lambda: wisp.Recommender.open(none),
        lambda: wisp.evaluate(none, guests),
        lambda: wisp.evaluate(CAFE, none),
        lambda: wisp.budget(none),
        lambda: wisp.export(none, out),
        lambda: wisp.compress(none, out, "int8"),
        lambda: wisp.train(none, guests, out),
        lambda: wisp.train(RECIPE, none, out),
        lambda: wisp.train(RECIPE, guests, out, model=none),
        lambda: wisp.train(RECIPE, guests, tmp_path / "none.wisp" / "m.wisp"),
        lambda: wisp.run_program("log", "count", none),
        lambda: wisp.run_program("privacy", ledger=none),
    ]
    for call in calls:
        with pytest.raises(wisp.IoError, match="none.wisp") as raised:
            call()
        assert isinstance(raised.value, OSError)
    with pytest.raises(wisp.InvalidData, match="its first bytes are others"):
        wisp.run_program("inspect", guests)


def test_a_program_that_is_not_there(monkeypatch):
    monkeypatch.setattr("wisp._process.PROGRAM", pathlib.Path("/nowhere/wisp"))
    with pytest.raises(wisp.Unsupported, match="/nowhere/wisp"):
        wisp.run_program("privacy")


def test_progress_is_told_and_stops(tmp_path, guests):
    lines = []
    wisp.train(RECIPE, guests, tmp_path / "m.wisp", progress=lines.append, threads=1)
    assert any("loss" in line for line in lines)
    long = {**RECIPE, "training": {**RECIPE["training"], "epochs": 1e5}}
    with pytest.raises(wisp.Cancelled, match="cancelled after step"):
        wisp.train(long, guests, tmp_path / "n.wisp", progress=lambda line: "loss" not in line)
    assert not (tmp_path / "n.wisp").exists()
    with pytest.raises(ZeroDivisionError) as raised:
        wisp.train(long, guests, tmp_path / "n.wisp", progress=lambda line: 1 // ("loss" not in line))
    assert "cancelled after step" in raised.value.__notes__[0]


def test_warnings_are_logged(tmp_path, guests, caplog):
    training = {"method": "ordinary", "steps": 2, "expected_batch": 20}
    warm = {**RECIPE, "training": {**training, "optimizer": {"kind": "adam", "warmup_steps": 50}}}
    wisp.train(warm, guests, tmp_path / "m.wisp", threads=1)
    assert [r.levelname for r in caplog.records if "the run has 2 steps and a warm-up of 50" in r.message] == [
        "WARNING"
    ]


def test_progress_is_shown(tmp_path, guests, capsys):
    wisp.train(RECIPE, guests, tmp_path / "m.wisp", progress=True, threads=1)
    assert "loss" in capsys.readouterr().err


def test_ctrl_c_ends_the_program_too(tmp_path, guests):
    """Runs in a process of its own, which interrupts itself from another thread, as a notebook does."""
    code = (
        "import os, signal, sys, threading, wisp, json\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs this beside itself\n"
        "recipe, data, out, ledger, base = sys.argv[1:]\n"
        "started = threading.Event()\n"
        "threading.Thread(target=lambda: (started.wait(), os.kill(os.getpid(), signal.SIGINT)),\n"
        "                 daemon=True).start()\n"
        "wisp.train(json.loads(recipe), data, out, model=base, ledger=ledger, other_data=True,\n"
        "           progress=lambda line: started.set() if 'loss' in line else None)\n"
    )
    long = {**PRIVATE, "training": {**PRIVATE["training"], "epochs": 5000}}
    words = [json.dumps(long), guests, tmp_path / "m.wisp", tmp_path / "l.db", CAFE]
    run = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert "KeyboardInterrupt" in run.stderr and "cancelled after step" in run.stderr, run.stderr
    assert not (tmp_path / "m.wisp").exists()
    assert wisp.budget(tmp_path / "l.db", delta=1e-3).epsilon_stated > 0
    assert not is_running(tmp_path / "m.wisp")


def is_running(word: object) -> bool:
    return subprocess.run(["pgrep", "-f", str(word)], capture_output=True).returncode == 0


def test_the_program_ends_with_the_process_that_started_it(tmp_path, guests):
    code = (
        "import os, signal, sys, wisp, json\n"
        "recipe, data, out, ledger, base = sys.argv[1:]\n"
        "kill = lambda line: os.kill(os.getpid(), signal.SIGKILL) if 'loss' in line else None\n"
        "wisp.train(json.loads(recipe), data, out, model=base, ledger=ledger, other_data=True, progress=kill)\n"
    )
    long = {**PRIVATE, "training": {**PRIVATE["training"], "epochs": 1e5}}
    out = tmp_path / "killed.wisp"
    words = [json.dumps(long), guests, out, tmp_path / "l.db", CAFE]
    run = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, timeout=120)
    assert run.returncode == -signal.SIGKILL
    for _ in range(100):
        if not is_running(out):
            break
        time.sleep(0.1)
    assert not is_running(out) and not out.exists()


def test_ctrl_c_while_the_program_starts_leaves_nothing_running(tmp_path):
    mark = 500000 + os.getpid() % 400000  # also what a process is known by

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for round_ in range(40):
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0005 * round_)
            try:
                wisp.run_program("synth", out=tmp_path / "s.db", users=mark, population="device")
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt as raised:
                interrupted += 1
                assert "\n".join(getattr(raised, "__notes__", ["not begun"]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 20 and not is_running(f"users={mark}")


def test_what_ends_the_program_is_told_apart(tmp_path, guests, monkeypatch):
    script = tmp_path / "wisp"
    monkeypatch.setattr("wisp._process.PROGRAM", script)

    def says(lines: str) -> None:
        script.write_text("#!/bin/sh\n" + lines)
        script.chmod(0o755)

    says("echo 'wisp: a remark' >&2; kill -9 $$")
    with pytest.raises(wisp.InternalError, match="ended by signal 9; what was charged stays charged\nwisp: a remark"):
        wisp.run_program("train")
    says("echo 'libsqlite3.so.0: cannot open' >&2; exit 127")
    with pytest.raises(wisp.InternalError, match="ended with 127.*\nlibsqlite3.so.0: cannot open"):
        wisp.run_program("train")
    says("echo 'wisp: no room' >&2; echo 'wisp: warning: late' >&2; exit 3")
    with pytest.raises(wisp.InvalidData, match="^no room$"):
        wisp.run_program("train")
    says("printf 'a\\r\\377' ")
    assert wisp.run_program("train", json_result=False) == "a\r\ufffd"
    script.chmod(0o644)
    with pytest.raises(wisp.IoError, match="cannot be run: Permission denied"):
        wisp.run_program("train")


def test_the_command_of_the_environment():
    code = "import sys; from wisp._program import main; sys.argv = ['wisp', '--version']; main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ})
    assert run.stdout == f"wisp {wisp.__version__}\n" and run.returncode == 0, run.stderr
    scripts = (ROOT / "ports" / "python" / "pyproject.toml").read_text()
    assert 'wisp = "wisp._program:main"' in scripts
