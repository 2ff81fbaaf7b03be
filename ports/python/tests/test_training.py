"""Private fine-tuning: what is learned and charged, stopping, refusals, and reports."""

import io
import json
import math
import random
import re
import signal
import subprocess
import sys

import pytest
import wisp
from conftest import CAFE, ticks_during
from wisp._progress import Line


def test_personalises_and_charges(files):
    steps = []
    report = wisp.personalise(**files, progress=steps.append, budget_epsilon=2)
    assert 0 < report.epsilon <= 0.5 and report.num_steps == len(steps) > 0 and report.noise_multiplier > 0
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert report.num_records <= 60 < report.num_events
    with wisp.Recommender.open(files["output"]) as model:
        assert model.provenance[-1].epsilon == pytest.approx(report.epsilon, rel=1e-3)
        assert model.recommend([1, 2])[0].tolist()
    budget = wisp.budget(files["ledger"])
    assert budget.epsilon_limit == 2 and 0 < budget.epsilon_stated <= 2 and not budget.has_plan


def test_the_statement_is_the_programs(files, program):
    wisp.personalise(**files)
    told = program("privacy", "--ledger", files["ledger"], "--delta", "1e-3")
    text = wisp.privacy_statement(files["ledger"], 1e-3)
    assert text.strip() == told.strip() and "epsilon" in text
    assert isinstance(wisp.privacy_statement_json(files["ledger"], 1e-3), dict)
    assert json.loads(program("privacy", "--ledger", files["ledger"], "--delta", "1e-3", "--json")) == (
        wisp.privacy_statement_json(files["ledger"], 1e-3)
    )


def test_states_what_all_runs_cost_together(files, program, caplog):
    first = wisp.personalise(**files)
    assert f"ledger {files['ledger']} was not there and was made" in caplog.text
    caplog.clear()
    assert first.epsilon_together == first.epsilon and first.delta_together == 1e-3
    second = wisp.personalise(**files)
    assert not caplog.records
    assert second.epsilon_together == wisp.budget(files["ledger"], delta=1e-3).epsilon_stated > second.epsilon
    told = program("privacy", "--ledger", files["ledger"], "--delta", "1e-3", "--json")
    assert json.loads(told)["accounting"]["ledger_epsilon"] == second.epsilon_together
    limited = wisp.personalise(**{**files, "delta": 1e-4}, budget_epsilon=9)
    assert limited.delta_together == 1e-4 and limited.epsilon_together > second.epsilon_together


def test_what_all_runs_cost_may_be_out_of_reach(files, caplog, monkeypatch):
    def locked(options: dict) -> None:
        raise RuntimeError("the key store is locked")

    monkeypatch.setattr("wisp._core.budget", locked)
    report = wisp.personalise(**files)
    assert (
        report.epsilon_together is report.delta_together is None and report.num_steps > 0 and files["output"].exists()
    )
    assert "could not be read: the key store is locked" in caplog.text


def test_a_spent_budget_refuses(files):
    wisp.personalise(**files, budget_epsilon=0.6)
    spent = wisp.budget(files["ledger"]).epsilon_stated
    with pytest.raises(wisp.PrivacyRefused, match="0.6"):
        wisp.personalise(**files)
    assert wisp.budget(files["ledger"]).epsilon_stated == spent


def test_a_callback_stops_the_run_and_the_ledger_remembers(files):
    with pytest.raises(wisp.Cancelled) as stopped:
        wisp.personalise(**files, progress=lambda step: False)
    assert "spent" in str(stopped.value) or "charged" in str(stopped.value)
    assert not files["output"].exists()
    assert wisp.budget(files["ledger"], delta=1e-3).epsilon_stated > 0


def test_what_a_callback_raises_is_raised(files):
    with pytest.raises(ZeroDivisionError) as stopped:
        wisp.personalise(**files, progress=lambda step: 1 / 0)
    assert any(note.startswith("wisp: ") for note in stopped.value.__notes__)
    assert not files["output"].exists()


def test_a_run_that_stopped_goes_on(files, tmp_path):
    kept = {"checkpoint": tmp_path / "run.checkpoint", "checkpoint_every": 1}
    with pytest.raises(wisp.Cancelled):
        wisp.personalise(**files, **kept, progress=lambda step: step.step < 2)
    report = wisp.personalise(**files, **kept)
    assert report.resumed_from == 2 and files["output"].exists() and not kept["checkpoint"].exists()


def test_ctrl_c_stops_the_run(files):
    """Runs in a process of its own, which interrupts itself from another thread."""
    code = (
        "import os, signal, sys, threading, wisp, json\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs this beside itself\n"
        "files = json.loads(sys.argv[1])\n"
        "started = threading.Event()\n"
        "def interrupt():\n"
        "    started.wait()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt).start()\n"
        "wisp.personalise(**files, epochs=100000, progress=lambda step: started.set())\n"
    )
    given = {key: str(value) if hasattr(value, "parts") else value for key, value in files.items() if key != "epochs"}
    run = subprocess.run([sys.executable, "-c", code, json.dumps(given)], capture_output=True, text=True, timeout=120)
    assert "KeyboardInterrupt" in run.stderr and "wisp: " in run.stderr, run.stderr
    assert run.returncode == -signal.SIGINT
    assert not files["output"].exists()
    assert wisp.budget(files["ledger"], delta=1e-3).epsilon_stated > 0


INTERRUPTED = """
import json, os, pathlib, signal, sys, threading, time, wisp
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs this beside itself
files, wait = json.loads(sys.argv[1]), sys.argv[2]
sent = []
def interrupt():
    if wait == "charged":
        while not os.path.exists(files["ledger"]):  # it is made for the plan, just before the first charge
            time.sleep(0.01)
        time.sleep(1)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.2 if wait == "charged" else float(wait), interrupt).start()
try:
    wisp.personalise(**files)
except KeyboardInterrupt as stopped:
    print(json.dumps([time.monotonic() - sent[0], *stopped.__notes__]))
"""


def interrupted(files, wait):
    """Runs in a process of its own. Returns the seconds until Ctrl-C was answered, and the notes."""
    given = {key: str(value) if hasattr(value, "parts") else value for key, value in files.items()}
    command = [sys.executable, "-c", INTERRUPTED, json.dumps(given), str(wait)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="session")
def long_step(tmp_path_factory):
    """A model and a log whose step takes seconds: all records of 1,500 users."""
    folder = tmp_path_factory.mktemp("long")
    chance = random.Random(1)
    rows = [(user, chance.randrange(3000), time) for user in range(1500) for time in range(120)]
    frame = dict(zip(("user", "item", "time"), zip(*rows)))
    wisp.fit(frame, epochs=0.01, max_length=120, width=64, output=folder / "m.wisp", dataset="public")
    with wisp.Log.open(folder / "log.db") as log:
        log.append_frame(frame)
    public = {"num_records_public": 1500, "expected_batch": 1400, "epsilon": 3, "delta": 1e-4, "unit": "user"}
    return {"model": folder / "m.wisp", "log": folder / "log.db", "num_threads": 1, "dataset": "mine", **public}


def test_ctrl_c_is_answered_in_a_long_step(long_step, tmp_path):
    files = {**long_step, "output": tmp_path / "o", "ledger": tmp_path / "l", "checkpoint": tmp_path / "c"}
    seconds, sentence, note = interrupted(files, "charged")
    # On a fast machine the step may end within the time that it is waited for.
    ended = r"(in step 1 of 22, which took long and is lost|after step 1 of 22)"
    assert re.search(f"was cancelled {ended}; 1 step was charged", sentence)
    assert seconds < 5
    budget = wisp.budget(files["ledger"], delta=1e-4)
    assert budget.epsilon_charged < budget.epsilon_stated / 2
    stated, charged = (f"{math.ceil(100 * one) / 100:.2f}" for one in (budget.epsilon_stated, budget.epsilon_charged))
    assert f"the ledger states epsilon {stated}, that of the whole plan" in note and f"epsilon {charged}, if" in note
    used = wisp.privacy_statement_json(files["ledger"], 1e-4)["accounting"]["epsilon_of_used_part"]
    assert used == budget.epsilon_charged
    assert not files["output"].exists() and "resumes from step" in sentence and files["checkpoint"].exists()


def test_ctrl_c_before_the_first_charge_costs_nothing(long_step, tmp_path):
    files = {**long_step, "output": tmp_path / "o", "ledger": tmp_path / "l"}
    seconds, sentence = interrupted(files, 0.01)
    assert "was cancelled before its first step; nothing was charged" in sentence
    assert seconds < 5 and not files["ledger"].exists()


def test_other_threads_run_while_it_trains(files):
    # A call that kept the interpreter would allow one tick or none. On a busy machine there are few.
    assert ticks_during(lambda: wisp.personalise(**files)) > 3


def test_trains_an_adapter(files):
    report = wisp.personalise(**files, adapter_rank=2)
    assert report.num_steps > 0 and files["output"].stat().st_size < CAFE.stat().st_size
    with wisp.Recommender.open(CAFE, adapter=files["output"]) as model:
        assert model.recommend([1])[0].tolist()


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"epsilon": float("nan")}, wisp.InvalidArgument, "epsilon"),
        ({"epsilon": 0}, wisp.InvalidArgument, "epsilon"),
        ({"epsilon": True}, TypeError, "epsilon is True"),
        ({"output": ""}, wisp.InvalidArgument, "output and ledger are required, and none is empty"),
        ({"ledger": ""}, wisp.InvalidArgument, "output and ledger are required, and none is empty"),
        ({"model": "a\0b"}, wisp.InvalidArgument, "model is 'a.x00b' .*allowed is a path without NUL"),
        ({"dataset": "\ud800"}, wisp.InvalidArgument, "halves of surrogate pairs"),
        ({"epsilon": "3"}, TypeError, r"personalise: epsilon is '3' \(str\); allowed is a number"),
        ({"delta": 1}, wisp.Error, "delta"),
        ({"num_records_public": 0}, wisp.InvalidArgument, "num_records_public"),
        ({"num_records_public": -5}, wisp.InvalidArgument, "num_records_public is -5 .*allowed are 0 to 4294967295"),
        ({"num_records_public": 60.0}, TypeError, "num_records_public is 60.0"),
        ({"unit": "week"}, wisp.InvalidArgument, "unit is 'week'"),
        ({"unit": 1}, TypeError, "unit is 1"),
        ({"unit": "interaction"}, wisp.Error, "event"),
        ({"epochs": float("inf")}, wisp.InvalidArgument, "epochs"),
        ({"learning_rate": -1}, wisp.InvalidArgument, "learning_rate"),
        ({"num_threads": 5000}, wisp.InvalidArgument, "1024"),
        ({"model": "none.wisp"}, wisp.IoError, "none.wisp"),
        ({"log": "no folder/none.db"}, wisp.Error, "none.db"),
        ({"progress": 5}, TypeError, "progress is 5; allowed are True, False and a function"),
        ({"anchor": 5}, TypeError, r"anchor is 5 \(int\); allowed is an object with read"),
        ({"other_data": 1}, TypeError, "other_data is 1 .*allowed are True and False"),
        ({"dataset": "a\0b"}, wisp.InvalidArgument, "NUL"),
        ({"epsilons": 3}, TypeError, "epsilons"),
    ],
)
def test_wrong_options_are_sentences_and_cost_nothing(files, changed, error, sentence):
    with pytest.raises(error, match=sentence):
        wisp.personalise(**{**files, **changed})
    assert not files["ledger"].exists() and not files["output"].exists()


class Kept:
    """An anchor in memory."""

    def __init__(self, begin: bool = False) -> None:
        self.data, self.begin, self.broken = b"", begin, False

    def read(self) -> bytes:
        if self.broken:
            raise RuntimeError("the key store is locked")
        return self.data

    def write(self, data: bytes) -> None:
        self.data = data


def test_an_anchor_notices_an_old_ledger(files, tmp_path):
    kept = Kept()
    wisp.personalise(**files, anchor=kept)
    assert 0 < len(kept.data) <= 64
    old = files["ledger"].read_bytes()
    wisp.personalise(**files, anchor=kept)
    for beside in files["ledger"].parent.glob("log.ledger-*"):
        beside.unlink()
    files["ledger"].write_bytes(old)
    with pytest.raises(wisp.PrivacyRefused):
        wisp.personalise(**files, anchor=kept)
    with pytest.raises(wisp.PrivacyRefused):
        wisp.privacy_statement(files["ledger"], 1e-3, anchor=kept)


def test_what_an_anchor_raises_is_raised(files):
    kept = Kept()
    kept.broken = True
    with pytest.raises(RuntimeError, match="the key store is locked"):
        wisp.personalise(**files, anchor=kept)

    class Long(Kept):
        def read(self):
            return bytes(65)

    with pytest.raises(wisp.InvalidData, match="65 bytes; allowed are 64"):
        wisp.personalise(**files, anchor=Long())


def test_texts_are_learned(decoder, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("\n".join(f"note {i}: the tea is cold" for i in range(30)))
    given = {
        "model": decoder, "log": notes, "output": tmp_path / "out.wisp", "ledger": tmp_path / "notes.ledger",
        "delta": 0.001, "num_records_public": 30, "unit": "interaction", "epsilon": 0.5, "expected_batch": 10,
        "epochs": 1, "num_threads": 1,
    }  # fmt: skip
    report = wisp.train_texts(**given, record="line", dataset="notes")
    assert report.num_events == 30 and report.num_steps > 0
    with wisp.TextModel.open(given["output"]) as model:
        assert model.generate("note", max_new_tokens=3).num_tokens <= 3
    with pytest.raises(wisp.InvalidArgument, match="record is 'page'"):
        wisp.train_texts(**given, record="page")
    with pytest.raises(
        TypeError, match="^train_texts has no argument 'epoch'; allowed are model, .*; did you mean epochs"
    ):
        wisp.train_texts(**given, record="line", epoch=3)


def test_memory_is_planned(files):
    memory = wisp.plan_training_memory(CAFE, 2000)
    assert memory.total_bytes > memory.weight_bytes > 0
    with pytest.raises(wisp.IoError, match="none.wisp"):
        wisp.plan_training_memory("none.wisp", 2000)


def test_a_line_shows_progress_and_rounds_epsilon_up():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    line = Line(stream)
    line(wisp.Step(1, 3, 2.0, math.nan))
    line(wisp.Step(2, 3, 2.0, 1.0))  # too soon
    line(wisp.Step(3, 3, 2.0, 0.7301))
    first = f"[######{' ' * 14}] step 1 of 3"
    assert stream.getvalue() == f"\r{first}\r{'step 3 of 3, epsilon so far 0.74':{len(first)}}\n"
    file = io.StringIO()
    line = Line(file)
    for step in (1, 2, 3):
        line(wisp.Step(step, 3, 2.0, 0.5))
    line.end()
    assert file.getvalue() == "step 3 of 3, epsilon so far 0.50\n"


def test_a_run_goes_on_where_nobody_can_read_its_progress():
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    for stream in (Closed(), None):
        line = Line(stream)
        line._stream = stream  # None: there is no standard error
        line(wisp.Step(3, 3, 2.0, 0.5))
        line.end()


def test_progress_true_writes_a_line(files, capsys):
    report = wisp.personalise(**files, progress=True)
    assert f"step {report.num_steps} of {report.num_steps}" in capsys.readouterr().err


def test_a_missing_ledger_is_a_sentence(tmp_path):
    for ask in (
        lambda: wisp.budget(tmp_path / "none.ledger"),
        lambda: wisp.privacy_statement(tmp_path / "none.ledger", 1e-5),
        lambda: wisp.privacy_statement_json(tmp_path / "none.ledger", 1e-5),
    ):
        with pytest.raises(wisp.Error, match="none.ledger"):
            ask()


def test_a_run_on_nothing_is_warned_of(files, tmp_path, caplog):
    with wisp.Log.open(tmp_path / "other.db") as log:
        log.append_all((f"u{user}", f"SKU-{item}", 1795000000 + item) for user in range(60) for item in range(3))
    assert wisp.evaluate(CAFE, tmp_path / "other.db").num_users == 0
    report = wisp.personalise(**{**files, "log": tmp_path / "other.db"})
    assert report.num_records == 0 and "had nothing to train on" in caplog.text


def test_python_may_end_while_a_daemon_learns(files):
    options = {name: value if isinstance(value, int | float) else str(value) for name, value in files.items()}
    source = f"""
import threading
import wisp
first = threading.Event()
options = dict({options!r}, epochs=200, progress=lambda step: first.set())
threading.Thread(target=wisp.personalise, kwargs=options, daemon=True).start()
assert first.wait(60)
"""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
        assert ended.returncode == 0 and "terminate" not in ended.stderr, ended.stderr
