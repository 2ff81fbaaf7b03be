"""The plan of a fleet: its figures, the files that it writes, and what it refuses."""

import hashlib
import json

import pytest
from program import exists, read, run, says, write

pytestmark = pytest.mark.usefixtures("cafe")

plan = "wisp fleet plan --devices 100000 --rounds 100 --epsilon 3"
bound = f"{plan} --model base.wisp"
files = "--out plan.json --policy policy.json --server https://fleet.example.org:9092"


def test_a_forecast_writes_nothing():
    r = run(plan)
    assert says("331,520 that train, by --weights", r.out) and says("written   nothing", r.out)
    assert says("epsilon 3 at delta 1e-06 for every device, whoever looks", r.out)
    assert says("a clear gain by its noise", r.out) and "advice" not in r.out
    assert not exists("plan.json")


# The noise of plain Gaussians at delta 1e-5, and noise to signal, worked out before there was a program.
@pytest.mark.parametrize("takes_part, epsilon, noise", [
    (1, 1, 3.73), (1, 3, 1.39), (1, 10, 0.50), (3, 1, 6.46), (3, 3, 2.41), (3, 10, 0.87)])
def test_noise_is_that_of_so_many_gaussians(takes_part, epsilon, noise):
    fleet = "wisp fleet plan --devices 99999 --rounds 90 --delta 1e-5"
    r = run(f"{fleet} --takes-part {takes_part} --epsilon {epsilon} --json")
    assert abs(r["noise_multiplier"] - noise) < 0.0051
    assert epsilon * 0.999 < r["epsilon_of_a_device"] <= epsilon and r["epsilon_for_readers"] < 0.6 * epsilon


def test_figures_follow_from_the_plan():
    r = run(f"{plan} --json")
    assert r["cohort"] == 1000 and r["delta"] == 1e-6 and r["advice"] == []
    assert abs(r["noise_to_signal"] - r["noise_multiplier"] * 331520**0.5 / 1000 / 10) < 1e-9
    assert (r["bytes_down"], r["bytes_up"], r["bytes_of_a_device"]) == (663040, 331520, 994560)
    assert abs(r["server_bytes"] - 1e5 * 994560) < 1 and abs(r["days"] - 100 / 24) < 1e-9
    assert "evaluations" not in r.json and "plan" not in r.json
    r = run(f"{plan} --evaluators 0.1 --evaluations 10 --json")
    assert r["cohort"] == 900 and r["cohort_of_evaluation"] == 1000
    assert r["evaluation_noise"] == r["noise_multiplier"] / 1000
    assert r["epsilon_for_readers"] < r["epsilon_for_readers_of_evaluations"] <= r["epsilon_of_a_device"]


def test_a_poor_plan_says_what_would_do():
    few = "wisp fleet plan --rounds 100 --epsilon 3 --delta 1e-5"
    r = run(f"{few} --devices 6040 --json")
    assert r["outlook"] == "no gain" and len(r["advice"]) == 2
    better = run(f"{few} --devices 6040 --takes-part {r['takes_part_for_a_clear_gain']} --json")
    assert better["outlook"] == "a clear gain"
    more = run(f"{few} --devices {r['devices_for_a_clear_gain'] + 100} --json")
    assert more["outlook"] == "a clear gain"
    assert says("no --takes-part would", run(f"{few} --devices 1000").out)
    assert says("more than --round-seconds", run(f"{plan} --round-seconds 60").out)


def test_files_are_the_plan_and_its_tightest_policy():
    r = run(f"{bound} {files} --name films --evaluators 0.1 --evaluations 4 --json")
    tensors = run("wisp inspect base.wisp --json")["tensors"]
    assert r["num_weights"] == sum(t["rows"] * t["columns"] for t in tensors)
    assert r["plan"] == hashlib.sha256(read("plan.json").encode()).hexdigest()
    written, policy = json.loads(read("plan.json")), json.loads(read("policy.json"))
    assert written["name"] == "films" and written["num_weights"] == r["num_weights"]
    assert int(written["base_hash"], 16) > 0
    assert written["noise_multiplier"] == policy["noise_multiplier"] == r["noise_multiplier"]
    assert policy["server"] == "https://fleet.example.org:9092" and policy["cohort"] == r["cohort"]
    assert policy["takes_part"] == 1 and policy["methods"] == "gradient" and policy["evaluates"] is True
    assert policy["most_bytes_up"] == r["bytes_up"] and "operator_key" not in policy
    run(f"{bound} --out plan.json --name films --part blocks")
    assert json.loads(read("plan.json"))["num_weights"] < r["num_weights"]


records = "--method local --local-steps 4 --local-learning-rate 0.5 --records-epsilon 4 --num-records-public 50"


def test_a_policy_promises_records_an_epsilon():
    r = run(f"{bound} {files} {records} --records-delta 1e-5 --batch 10")
    assert says("records   epsilon 4 at delta 1e-05 for each record on a device, against everybody", r.out)
    policy = json.loads(read("policy.json"))
    assert (policy["records_epsilon"], policy["records_delta"]) == (4, 1e-5)
    assert (policy["records_public"], policy["records_batch"], policy["evaluates"]) == (50, 10, False)
    assert "records" not in read("plan.json")
    for options, said in {
        f"{records} --records-delta 1e-5": "--records-epsilon is given, and --batch is not",
        f"{records} --records-delta 1e-5 --batch 51": "records_batch is 51, allowed is 1 to records_public, 50",
        f"{records} --records-delta 1e-5 --batch 10 --evaluators 0.1 --evaluations 4": "and evaluates false",
        "--records-epsilon 4 --records-delta 1e-5 --num-records-public 50 --batch 10": "methods local alone",
    }.items():
        run(f"{bound} {files} {options}", 2, said)
    many = records.replace("50", "5000")
    run(f"{bound} {files} {many} --records-delta 0.0009 --batch 10", 4, "--policy: records_delta")


def test_what_makes_no_plan_is_refused():
    write("notes.txt", "mine\n")
    for options, said in {
        "--takes-part 3": "takes_part is 3, and must divide the 100 rounds",
        "--delta 1e-5": "not below 1 / 100000",
        "--bits 12": "bits is 12, allowed is 8, 16 or 32",
        "--method local": "local_steps is 0",
        "--evaluators 0.1": "evaluators is 0.1 and evaluations is 0, allowed are both above 0 or both 0",
        "--evaluators 0.7 --evaluations 4": "evaluators is 0.7, allowed is 0 to 0.5",
        "--name 'a b'": "letters, digits",
        "--out plan2.json": "--out is given, and --model is not",
        "--model base.wisp --policy p.json": "--policy is given, and --",
        "--model base.wisp --weights 7": "--weights too; allowed is one of the two",
        "--model base.wisp --out notes.txt": "is not JSON",
        "--model base.wisp --out p2.json --policy p2.json --server https://a.org": "name the same file",
    }.items():
        run(f"{plan} {options}", 4 if "delta" in options else 2, said)
    for server in ("http://fleet.example.org", "fleet.example.org", "http://localhost.example.org"):
        run(f"{bound} --out p2.json --policy p3.json --server {server}", 2, "--server is .*allowed is https")
    run("wisp fleet plan --devices 100000 --rounds 100 --epsilon 200", 2, "epsilon is 200, allowed is")
    assert not any(map(exists, ("plan2.json", "p2.json", "p3.json"))) and read("notes.txt") == "mine\n"
    run(f"{bound} --out p2.json --policy p3.json --server http://localhost:9092")
    assert exists("p2.json") and exists("p3.json")
