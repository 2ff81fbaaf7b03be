"""wisp.fleet without Flower: the rounds of the server, with devices in this process."""

import fcntl
import json

import pytest
import wisp
from conftest import CAFE
from fleet_util import ScriptedLink, journal_of, weights_of
from wisp.fleet import PrivateFleet, _report, simulate
from wisp.fleet._link import Ask


def test_a_fleet_learns_and_tells_what_it_did(make_plan, guests, tmp_path):
    plan = make_plan(devices=60, rounds=4, epsilon=100)
    result = simulate(plan, CAFE, guests, folder=tmp_path / "films", threads=1, evaluate=guests)
    assert [line["added"] for line in result["rounds"]] == [60] * 4
    assert result["round"] == 4 and result["rounds"] == journal_of(tmp_path / "films")
    assert result["figures"]["epsilon_device"] <= 100 and result["figures"]["delta"] == 1e-5
    assert {"base", "fleet"} == set(result["quality"])
    with wisp.Recommender.open(result["model"]) as model:
        assert model.provenance[-1].privacy_unit == "device"
    statement = (tmp_path / "films" / "statement.txt").read_text()
    assert "Readers of the models: epsilon" in statement and "fleet.ledger" in statement


def test_the_report_is_one_file_for_people(make_plan, guests, tmp_path):
    plan = make_plan(devices=60, rounds=2, evaluators=0.25, evaluations=2)
    simulate(plan, CAFE, guests, folder=tmp_path / "films", threads=1)
    page = (tmp_path / "films" / "report.html").read_text()
    for part in ("The fleet films", "Readers of the models", "The device itself", "<svg", "deviation of the noise"):
        assert part in page, part
    for foreign in ("<script", "http:", "https:", "@import", "src="):
        assert foreign not in page


def test_a_server_that_restarts_takes_the_rounds_that_are_left(make_plan, guests, tmp_path):
    plan = make_plan(devices=60, rounds=4)
    run = {"plan": plan, "model": CAFE, "log": guests, "seed": 5, "threads": 1}
    simulate(**run, folder=tmp_path / "straight")
    for rounds in (1, 1, 3, None):
        simulate(**run, folder=tmp_path / "stopped", rounds=rounds)
    assert weights_of(plan, tmp_path / "straight", 5) == weights_of(plan, tmp_path / "stopped", 5)
    lines = [journal_of(tmp_path / name) for name in ("straight", "stopped")]
    for line in lines[0] + lines[1]:
        del line["seconds"], line["time"]
    assert lines[0] == lines[1] and len(lines[0]) == 4


def test_an_evaluation_is_not_repeated_after_a_restart(make_plan, guests, tmp_path):
    plan = make_plan(devices=60, rounds=2, evaluators=0.25, evaluations=2)
    for rounds in (1, 1, None):
        simulate(plan, CAFE, guests, folder=tmp_path / "films", rounds=rounds, threads=1)
    lines = journal_of(tmp_path / "films")
    assert [(line["round"], "verdict" in line) for line in lines] == [(0, False), (1, True), (1, False), (2, True)]


def test_a_line_that_a_crash_cut_off_is_left_out(make_plan, guests, tmp_path):
    plan = make_plan(devices=60, rounds=2)
    simulate(plan, CAFE, guests, folder=tmp_path / "films", rounds=1, threads=1)
    with open(tmp_path / "films" / "rounds.jsonl", "a") as file:
        file.write('{"round": 1, "ask')
    result = simulate(plan, CAFE, guests, folder=tmp_path / "films", threads=1)
    assert [line["round"] for line in result["rounds"]] == [0, 1]
    assert (tmp_path / "films" / "rounds.jsonl").read_text().splitlines()[-1].startswith('{"round": 1, "asked": 60')


def test_two_servers_cannot_work_in_one_folder(make_plan, guests, tmp_path):
    plan = make_plan(devices=60, rounds=2)
    (tmp_path / "films").mkdir()
    with open(tmp_path / "films" / "server.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(wisp.IoError, match="another server works in this folder"):
            simulate(plan, CAFE, guests, folder=tmp_path / "films")


def test_what_devices_do_wrong_is_an_absence(make_plan, tmp_path):
    plan = make_plan(devices=5, rounds=1)
    size = json.loads(plan.read_text())["num_weights"]
    zero, loud = bytes(size), bytes([127]) * size
    says = {1: [zero], 2: [zero, zero], 3: [loud], 4: [zero[:-1]], 5: []}
    link = ScriptedLink([1, 2, 3, 4, 5], lambda node, ask: says[node] if ask.answer_bytes else [])
    fleet = PrivateFleet(plan, CAFE, tmp_path / "films", seed=1, round_seconds=1)
    line = fleet.run_over(link)["rounds"][0]
    assert line["asked"] == 5 and line["added"] == 2
    assert line["absent"] == {"twice": 1, "out of bound": 2, "absent": 1}
    assert 1 <= line["seconds"] < 2  # node 5 is waited for until the deadline


def test_a_round_ends_early_only_with_all_declared_devices(make_plan, tmp_path):
    plan = make_plan(devices=3, rounds=1)
    zero = bytes(json.loads(plan.read_text())["num_weights"])
    for nodes, early, waits in (([1, 2, 3], True, False), ([1, 2], True, True), ([1, 2, 3], False, True)):
        link = ScriptedLink(nodes, lambda node, ask: [zero] if ask.answer_bytes else [])
        link.whole = False
        folder = tmp_path / f"films{len(nodes)}{early}"
        fleet = PrivateFleet(plan, CAFE, folder, seed=1, round_seconds=0.5, early=early, report=False)
        line = fleet.run_over(link)["rounds"][0]
        assert line["added"] == len(nodes) and (line["seconds"] >= 0.5) == waits


def test_a_round_waits_for_devices(make_plan, tmp_path, monkeypatch):
    plan = make_plan(devices=3, rounds=1)
    zero = bytes(json.loads(plan.read_text())["num_weights"])
    nodes, said = [7], []
    link = ScriptedLink(nodes, lambda node, ask: [zero] if ask.answer_bytes else [])
    monkeypatch.setattr("time.sleep", lambda seconds: nodes.append(7 + len(nodes)))
    fleet = PrivateFleet(plan, CAFE, tmp_path / "films", seed=1, least_online=3, report=False)
    assert fleet.run_over(link, say=said.append)["rounds"][0]["added"] == 3
    assert said[:2] == [f"round 1 waits until 3 devices are online; {online} are" for online in (1, 2)]


@pytest.mark.parametrize("verdict", ["better", "worse"])
def test_the_last_model_is_sent_unless_it_is_worse(make_plan, tmp_path, verdict):
    plan = make_plan(devices=3, rounds=1)
    zero = bytes(json.loads(plan.read_text())["num_weights"])
    (tmp_path / "films").mkdir()
    line = {"round": 1, "asked": 0, "added": 0, "absent": {}, "seconds": 0, "bytes_down": 0, "bytes_up": 0}
    told = {"verdict": verdict, "mean_gain": 0, "deviation": 1}
    (tmp_path / "films" / "rounds.jsonl").write_text(json.dumps({**line, **told}) + "\n")
    link = ScriptedLink([1, 2, 3], lambda node, ask: [zero] if ask.answer_bytes else [])
    PrivateFleet(plan, CAFE, tmp_path / "films", round_seconds=0.1).run_over(link)
    assert [ask.task for ask in link.asks] == ["train", "keep"][: 1 + (verdict == "better")]


def test_an_answer_has_exactly_five_fields_of_this_round():
    ask = Ask("{}", "ab", "train", 3, b"", b"", answer_bytes=2, seconds=1)
    good = {"plan": "ab", "task": "train", "round": 3, "nonce": bytes(16), "update": b"xy"}
    assert ask.update_of(good) == b"xy"
    for wrong in (
        {"plan": "cd"}, {"task": "evaluate"}, {"round": 2}, {"round": 3.0}, {"round": True}, {"nonce": bytes(15)},
        {"update": b"x"}, {"update": "xy"}, {"loss": 1.0},
    ):  # fmt: skip
        assert ask.update_of({**good, **wrong}) is None, wrong
    for name in good:
        assert ask.update_of({key: value for key, value in good.items() if key != name}) is None


@pytest.mark.parametrize(("value", "text"), [(1.23456, "1.24"), (3.0, "3"), (1e-5, "1e-05"), (99.91, "100")])
def test_figures_are_rounded_up(value, text):
    assert _report._up(value) == text


def test_without_flower_a_sentence_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "flwr.serverapp", None)
    with pytest.raises(wisp.Unsupported, match=r"pip install 'wisp\[fleet\]'"):
        PrivateFleet("plan.json", CAFE, tmp_path).server_app()
