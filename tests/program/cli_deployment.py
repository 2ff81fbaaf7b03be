"""Deployments: a plan is made once and before the first look, training sessions follow it and stop at its end."""

import concurrent.futures
import contextlib
import glob
import html.parser
import os
import re
import sqlite3
from pathlib import Path

from program import (
    ROOT,
    checksum,
    copy,
    exists,
    kept,
    last_line,
    mode,
    move,
    read,
    remove,
    run,
    same,
    says,
    size,
    sql,
    try_run,
    write,
)

plan = "wisp plan --data log.db --model base.wisp --epsilon 4 --num-records-public 300 --unit user --typical-events 26"


class Page(html.parser.HTMLParser):
    """Checks that every tag is closed."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def test_a_log_of_300_users():
    copy(f"{ROOT}/models/cafe.wisp", "base.wisp")
    kept("log-300.db", lambda: run("wisp synth --out log-300.db --population device --users 300 --seed 3"))
    move("log-300.db", "log.db")


def test_wishes_that_are_missing_or_out_of_range():
    run(plan,
        2, "wisp plan needs --epsilon, --unit (what one record is, .*), --num-records-public and --for; missing is"
           " --for;")
    run("wisp plan --data log.db --model base.wisp --unit user --for '1 year'",
        2, "missing is --epsilon, --num-records-public;")
    # Errors name the option and what is allowed.
    run("wisp plan --data log.db --model base.wisp --epsilon 4 --num-records-public 300 --for '1 year'",
        2, "missing is --unit;")
    r = run(
        "wisp plan --data log.db --model base.wisp", 2, "missing is --epsilon, --unit, --num-records-public, --for;"
    )
    for wrong in (
        "--batch 5000|--batch is 5000, allowed are 1 to --num-records-public, 300",
        "--learning-rate 2|--learning-rate is 2, allowed is above 0, up to 1",
        "--evaluations 0|--evaluations is 0, allowed are 1 and more",
        "--steps 0|--steps is 0, allowed are 1",
        "--steps 999999999|--steps: a plan has 365 runs of 999999999 steps",
        "--epsilon 1000|--epsilon: epsilon is 1000",
        "--delta 0.5|--delta: delta is 0.5",
        "--session-gap 5|--session-gap: the session gap is 5 seconds",
        "--times-per-second 0|--times-per-second: the log has 0 times",
        "--evaluation none --evaluations 3|--evaluations is given, and with --evaluation none",
    ):
        option, said = wrong.split("|")
        r = try_run(f"{plan.replace('--epsilon 4', '') if '--epsilon' in option else plan} --for '1 year' {option}")
        assert r.code != 0, f"{option} is taken"
        assert says(said, r.err), f"{option} is refused with: {r.err}"
    assert not exists("log.ledger"), "a refused plan left a ledger"
    run(f"{plan} --for 'a while'", 2, "--for is 'a while', allowed is a number and second, minute")
    run(f"{plan} --for '1 hour'", 2, "has 0 times --every 1 day")
    run(f"wisp train --recipe {ROOT}/models/recipes/cafe-device.json --model base.wisp --data log.db --out t.wisp"
        " --ledger t.ledger --num-records-public 300 --epochs 1 --batch 50 --epsilon 1 --delta 1e-4")
    run("wisp plan --left --data log.db --model base.wisp --ledger t.ledger",
        4, "has no plan for a deployment, and was charged: a plan would promise nothing any more")
    run(f"{plan} --for '1 year' --ledger t.ledger",
        4, "has charges: a plan for a deployment is made before the first of them")
    r = run(f"{plan} --for '6 months' --every '1 month' --dry-run")
    assert "written   nothing: --dry-run" in r.out, "a dry run does not say so"
    many = plan.replace("300", "2000")
    r = run(f"{many} --for '6 months' --every '1 month' --dry-run")
    check_labels(r.out)
    assert says("^brings    [a-z ]*: up to about .* of NDCG@10 by .*, as measured with [0-9,]* people.*docs/gains.md.$",
                r.out), "the gain to expect is not said"
    assert says("^ *people  *epsilon 1  *epsilon 2  *epsilon 4  *epsilon 8$", r.out)
    assert says("^ *8,000 .*%.*$", r.out), "four times the people have no gain"
    r = run(f"{many} --for '6 months' --every '1 month' --dry-run --json")
    assert [(at["people"], at["epsilon"]) for at in r["gains"]][4:8] == [(2000, 1), (2000, 2), (2000, 4), (2000, 8)]
    assert "as measured with" in r["expected"]
    r = run(f"{plan.replace('300', '3000000')} --for '6 months' --every '1 month' --dry-run --json")
    assert r["expected"].startswith("nothing like it was measured") and "lowest" not in r["gains"][6]
    assert not exists("log.ledger"), "a dry run left a ledger"
    copy("t.ledger", "none.ledger")
    run("wisp personalise --data log.db --model base.wisp --out mine.wisp --ledger none.ledger",
        4, "has no plan for a deployment")
    run("wisp personalise --data log.db --model base.wisp --out mine.wisp",
        3, "ledger 'log.ledger' is not there; where no deployment was planned yet, make the plan first .`wisp plan`")


def check_labels(out):
    """Each line begins with a label or blanks of ten characters, so that the columns line up."""
    for line in out.splitlines():
        assert line[9] == " " and (line[0] == " " or line[10] != " ") or line.startswith("local only"), line


def test_an_equal_plan_is_found_again():
    r = run(f"{plan} --for '6 months' --every '1 month' --steps 4 --evaluations 2 --json")
    assert r["runs"] == 6 and r["steps_per_run"] == 4 and r["num_records_public"] == 300
    assert r["evaluations"] == 2
    assert r["outlook"] in ("some gain", "hopeless", "new items only") and r["noise_of_an_item"] > 0
    assert len(r["power"]) == 6 and "gains" not in r.json and r["epsilon_of_one_run"] < 4
    assert 0 < r["cpu_seconds_of_run"] and 0 < r["cpu_seconds_of_evaluation"] and r["bytes"] > 100000
    assert "made_before" not in r.json
    # An equal plan is found again; another one is refused unless --replace is given.
    r = run(f"{plan} --for '6 months' --every '1 month' --evaluations 2")
    assert "written   nothing: the ledger has had this plan since" in r.out, "a plan that was there is not said to be"
    run(f"{plan} --for '1 year' --every '1 month'", 4, "the number of runs is 6, asked for is 12")
    r = run(f"{plan} --for '1 year' --every '1 month' --steps 4 --evaluations 2 --replace")
    assert says("^written   log.ledger, the ledger of this plan$", r.out), "a plan does not say where it was written"
    assert says("^plan      log.ledger: 12 runs of 4 steps", r.out), "a plan does not count in runs"
    assert "larger batch (--batch)" in r.out, "advice does not name its option"
    check_labels(r.out)
    run(f"{plan} --for '6 months' --every '1 month' --steps 4 --evaluations 2 --replace")
    copy("log.ledger", "planned.ledger")
    assert not glob.glob("log.ledger.measuring*"), "what was measured left files"


def at_once(first, second):
    """Makes two plans at once. Returns what both calls say, and their exit codes."""
    two = (
        f"{plan.replace('--epsilon 4 ', '').replace(' --typical-events 26', '')} --for '6 months' --every '1 month'"
        " --steps 4 --evaluations 2"
    )
    with concurrent.futures.ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda options: try_run(f"{two} {options}"), (first, second)))
    return "".join(r.out + r.err for r in both), sorted(r.code for r in both)


def test_two_calls_at_once():
    # Two calls at once, by two names of one ledger, make one plan, and change no other file.
    write("two.ledger", "")
    os.symlink("two.ledger", "two.link")
    for file in ("two.ledger.measuring", "two.link.measuring", "two.ledger.measuring.plan"):
        write(file, "mine\n")
    told, codes = at_once("--epsilon 4 --ledger two.ledger", "--epsilon 4 --ledger two.link")
    assert codes == [0, 0], told
    assert told.count("written   nothing: the ledger has had this plan since") == 1
    remove("two.ledger")
    told, codes = at_once("--epsilon 4 --ledger two.ledger", "--epsilon 8 --ledger two.ledger")
    assert codes == [0, 4], told
    assert "has another plan than was asked for: epsilon" in told
    assert [read(file) for file in sorted(glob.glob("two.*.measuring*"))] == [
        "mine\n"
    ] * 3, "measuring took a file that was not its own"
    run("wisp personalise --data log.db --model base.wisp --out base.wisp", 2, "--out and --model name the same file")


def test_runs_follow_the_plan():
    for planned_run in (1, 2, 3, 4, 5, 6):
        r = run("wisp personalise --early --data log.db --model base.wisp --out mine.wisp --json")
        assert r["steps"] == 4 and r["steps_of_model"] == 4 * planned_run and r["runs_left"] == 6 - planned_run
        assert r["evaluated"] == (planned_run % 3 == 0)
        assert "records" in r["not_private"] and "verdict" not in r["not_private"]
        # The log has no event since the plan was made: only the owner is told that an evaluation used no records.
        assert ("evaluation_events" in r.json) == r["evaluated"] == (
            "evaluation_events" in r["not_private"]
        ) and r.json.get("evaluation_events", 0) == 0


def test_a_run_waits_for_half_of_the_time_between_runs():
    # A loop must not use up in an hour what was planned for a year.
    run(f"{plan} --for '4 days' --every '1 day' --steps 2 --evaluation none --ledger waits.ledger")
    once = "wisp personalise --data log.db --model base.wisp --out waits.wisp --ledger waits.ledger"
    run(once)
    before = checksum("waits.wisp", "waits.ledger")
    run(once, 8, "its plan trains every 24 hours, and less than half of that has passed since.*--early lets it run")
    assert checksum("waits.wisp", "waits.ledger") == before
    # A damaged model is healed, and training does not wait if its last run was cut short or the plan's times change.
    remove("waits.wisp")
    run(once, 8, "nothing was charged")
    assert same("waits.wisp", "base.wisp")
    assert run(f"{once} --early --json")["steps"] == 2
    run("wisp plan --data log.db --model base.wisp --ledger waits.ledger --change --for '2 seconds' --every '1 second'")
    assert run(f"{once} --json")["steps"] == 2


def test_the_output_says_what_was_evaluated_and_why_it_is_served():
    run(f"{plan} --for '2 months' --every '1 month' --steps 2 --evaluations 1 --ledger told.ledger")
    told = "wisp personalise --early --data log.db --model base.wisp --out told.wisp --ledger told.ledger"
    run(told)
    r = run(told)
    check_labels(r.out)
    assert says("^evaluated the candidates so far, together: neither better nor worse than the base: evidence", r.out)
    assert says("^serves    told.wisp: the base$", r.out)


def test_many_records_of_few_items_release_successions():
    many = f"{plan.replace('300', '2000')} --ledger many.ledger"
    r = run(f"{many} --for '2 months' --every '1 month' --steps 2 --evaluation none")
    assert says("^counts    which item follows which, once, with noise [0-9.]*$", r.out), "a release is not said"
    check_labels(r.out)
    run("wisp personalise --early --data log.db --ledger many.ledger --model base.wisp --out many.wisp")
    assert run("wisp inspect many.wisp --json")["successions"] > 0
    r = run("wisp plan --left --data log.db --ledger many.ledger --model base.wisp --json")
    assert r["succession_releases_left"] == 0 and r["steps_left"] == 2
    run("wisp convert many.wisp --out many.safetensors", 3, "many.wisp: has successions of items")


def test_a_mistyped_name_trains_nothing():
    # A mistyped name trains nothing, and leaves nothing.
    run("wisp personalise --early --data log.db --model base.wisp --out mien.wisp",
        2, "mien.wisp: it is not there, or not of this deployment, though 24 steps were trained under the plan")
    assert not glob.glob("mien.wisp*"), "a refused run left a file"
    write("empty.wisp", "")
    Path("other.wisp").write_bytes(Path("base.wisp").read_bytes()[:5000])
    for name in ("empty", "other"):
        run(f"wisp personalise --early --data log.db --model base.wisp --out {name}.wisp",
            2, f"{name}.wisp: it is not there, or not of this deployment")
    assert not size("empty.wisp") and size("other.wisp") == 5000 and not exists("empty.wisp.candidate")
    run("wisp personalise --early --data log.db --model base.wisp --out mien.wisp --start-over")
    assert same("mien.wisp", "base.wisp"), "a model that starts over is not the base"
    r = run("wisp personalise --early --data log.db --model base.wisp --out mine.wisp")
    assert "the plan has no step left" in r.out, "a plan that is used up is not said to be"
    copy("log.db", "others.db")
    run("wisp personalise --early --data others.db --ledger log.ledger --model base.wisp --out mine.wisp",
        4, "ledger 'log.ledger' is of the data set 'log.db'.*'others.db'")
    r = run("wisp plan --left --data log.db --model base.wisp")
    assert "of 6 runs 0 are left" in r.out, "what is left is not counted in runs"
    r = run("wisp plan --left --data log.db --model base.wisp --json")
    assert r["runs_left"] == 0 and r["evaluations_left"] == 0 and r["epsilon"] == 4
    r = run("wisp privacy --ledger log.ledger --json")
    assert 3.9 < r["accounting"]["ledger_epsilon"] <= 4
    run(f"{plan} --for '1 year'", 4, "has charges: a plan for a deployment is made before the first of them")


def test_the_report_is_one_page_without_script_or_network():
    # The report is one page without script or network, and marks what is local.
    r = run("wisp report --ledger log.ledger --html report.html --json")
    assert not r["local_only"]
    assert "What it cost" in read("report.html") and "What the evaluations found" in read("report.html")
    assert "Local only" not in read("report.html"), "a report of a ledger alone says that it is local"
    assert not re.search(r"https?:|<script|@import|url\(", read("report.html"), re.M)
    page = Page()
    page.feed(read("report.html"))
    assert not page.open, page.open
    assert "did to each layer" not in read("report.html"), "a report of a ledger alone speaks of models"
    run("wisp report --ledger log.ledger --html report.html --model base.wisp", 2)
    r = run("wisp report --ledger log.ledger --html report.html --model base.wisp --out mine.wisp --json")
    assert not r["local_only"]
    assert "block 2, attention" in read("report.html"), "the report says nothing of a layer"
    assert "Local only" not in read("report.html"), "a report of released models says that it is local"
    r = run(
        "wisp report --ledger log.ledger --html report.html --data log.db --model base.wisp --out mine.wisp --json"
    )
    assert "gradients that were clipped" in read("report.html"), "the report lacks what the runs saw"
    assert r["local_only"]
    assert "Local only: counted on the data without noise" in read("report.html")
    assert "a gain here is another one than those of the evaluations" in read("report.html")
    run("wisp report --ledger log.ledger --html base.wisp",
        2, "base.wisp, a file that is there and is not a page of HTML")
    run("wisp report --ledger log.ledger --html log.ledger", 2, "--html and --ledger name the same file")
    run("wisp report --ledger t.ledger --html none.html", 4, "has no plan for a deployment, and was charged")
    assert not exists("none.html"), "a refused report left a file"


def test_if_most_users_of_a_log_have_another_form_than_the_read_one():
    # If most users of a log have another form than the read one, the session ends before anything is charged, and
    # leaves no model.
    with open("german.tsv", "w") as out, contextlib.closing(sqlite3.connect("log.db")) as log:
        print("user", "item", "time", sep="\t", file=out)
        for moment in ("strftime('%d.%m.%Y', time, 'unixepoch') FROM events", "time FROM events LIMIT 40"):
            for row in log.execute(f"SELECT user, item, {moment}"):
                print(*row, sep="\t", file=out)
    copy("planned.ledger", "german.ledger")
    german = "wisp personalise --early --model base.wisp --out german.wisp --ledger german.ledger --dataset log.db"
    run(f"{german} --data german.tsv",
        3, "users cannot be read, so nothing can be learned from it (local only). The first: german.tsv, line 2: the"
           " time is")
    assert sql("german.ledger", "select count(*) from entries") == 0 and not exists("german.wisp")


def test_a_number_that_is_0_is_not_called_missing():
    given = "wisp plan --data log.db --model base.wisp --unit user --for '2 days' --steps 1 --ledger zero.ledger"
    run(f"{given} --epsilon 0 --num-records-public 60", 2, "--epsilon: epsilon is 0, allowed is 1e-06 to 100")
    run(f"{given} --epsilon 4 --num-records-public 0", 2, "--num-records-public is 0, allowed are 1 to 4294967295")
    run(f"{given} --num-records-public 60", 2, "missing is --epsilon;")
    run("wisp privacy decoding --epsilon 0 --clip 1 --delta 1e-6", 2, "epsilon is 0, allowed is 1e-06 to 100")
    run("wisp privacy decoding --calibrate --samples 3 --delta 1e-6", 2, "--calibrate needs --epsilon")


def test_what_a_plan_does_not_follow_is_said():
    given = "wisp plan --model base.wisp --unit user --for '12 days' --steps 1 --epsilon 4 --num-records-public 600"
    r = run(f"{given} --data log.db --evaluations 50 --dry-run --ledger said.ledger")
    assert "50 evaluations were asked for; a run evaluates at most once, so there are 12" in r.out
    assert "no file" not in r.err
    r = run(f"{given} --data misspelt.db --ledger said.ledger")
    assert "there is no file 'misspelt.db' yet: the plan is for the log that will have this name" in r.err
    r = run("wisp privacy decoding --epsilon 101 --clip 1 --delta 1e-6", 2, "allowed is 1e-06 to 100")
    run("wisp privacy decoding --epsilon 0 --clip 1 --delta 1e-6", 2, "allowed is 1e-06 to 100$")


def test_each_number_of_evaluations_is_shown_once():
    given = "wisp plan --data log.db --model base.wisp --unit user --for '12 days' --steps 1 --dry-run --epsilon 4"
    for evaluations, columns in ((1, "1"), (2, "1 2"), (12, "1 6 12")):
        r = run(f"{given} --num-records-public 600 --evaluations {evaluations} --ledger shown.ledger")
        head = next(line for line in r.out.splitlines() if "choices in the lists are found" in line)
        assert head.split("found")[1].replace("after", "").split() == columns.split(), head
        rows = [line for line in r.out.splitlines() if "in NDCG@10)" in line]
        assert rows and all(len(line) == len(head) for line in rows), r.out


def test_a_report_counts_what_a_release_of_successions_costs():
    given = "--data log.db --model base.wisp --ledger counts.ledger"
    r = run(f"wisp plan {given} --epsilon 4 --unit user --num-records-public 600 --for '4 days' --steps 2"
            " --evaluation none --json")
    assert r["succession_releases"] == 1 and 0 < r["succession_share"] < 1
    run(f"wisp personalise --early {given} --out counts.wisp")
    run("wisp report --ledger counts.ledger --html counts.html")
    assert says('<th>training steps</th><td class="n">8</td><td class="n">2</td>', read("counts.html"))
    lines = dict(re.findall(r'<polyline class="(\w+)" points="([^"]*) "', read("counts.html")))
    height = {name: [float(point.split(",")[1]) for point in points.split()] for name, points in lines.items()}
    assert abs(height["planned"][-1] - height["limit"][0]) < 1, "all steps and the release cost what the plan promises"
    assert height["done"][1] < (height["done"][0] + height["limit"][0]) / 2, "the release comes before the steps"


def test_names_come_from_anywhere():
    r = run(f"{plan} --for '2 days' --steps 1 --evaluation none --ledger odd\u202e.ledger")
    assert says("^plan      odd?\\.ledger: ", r.out), "a ledger's name reaches the terminal"


def test_a_plan_is_changed():
    # Other times are free, another batch costs noise, and nothing else can be changed.
    deployment = "--data log.db --model base.wisp --ledger changed.ledger"
    copy("planned.ledger", "changed.ledger")
    change = f"wisp plan {deployment} --change --for '2 months' --every '1 week'"
    run(change, 4, "has no charges yet")
    r = run(f"wisp personalise --early {deployment} --out changed.wisp")
    assert says("^serves    changed.wisp: the base$", r.out), "a first run says"
    assert says("^left      5 of 6 runs", r.out), "a run does not count in runs"
    run(f"{change} --epsilon 8", 2, "--change is given, and --epsilon too; allowed is one of the two")
    run(f"{change} --batch 301", 2, "--batch is 301, allowed are 1 to --num-records-public, 300")
    run(f"{change} --learning-rate 0", 2, "--learning-rate is 0, allowed is above 0, up to 1")
    run(f"wisp plan {deployment} --change", 2, "--change needs --for")
    r = run(f"{change} --json")
    assert r["free"] and r["runs"] == 7 and r["steps_per_run"] == 3 and r["until_now"]["steps_left"] == 20
    assert r["from_now_on"]["steps_left"] == 20
    r = run(f"wisp personalise --early {deployment} --out changed.wisp --json")
    assert r["steps"] == 3 and r["steps_of_model"] == 7
    r = run(f"{change} --batch 100 --dry-run --json")
    assert not r["free"] and r["from_now_on"]["training_noise"] > 0
    r = run(f"{change} --batch 100")
    assert "the noise is the least with which all of it fits" in r.out, "a plan that costs noise does not say so"
    r = run(f"wisp personalise --early {deployment} --out changed.wisp --json")
    assert r["steps"] > 0 and r["steps_of_model"] == r["steps"]
    run("wisp report --ledger changed.ledger --html changed.html")
    assert "the plan was changed" in read("changed.html"), "a report does not say that the plan was changed"
    assert "What it cost" not in read("changed.html"), "a report draws what only some of the steps cost"
    r = run("wisp privacy --ledger changed.ledger --json")
    assert r["accounting"]["ledger_epsilon"] <= 4


def test_the_output_says_that_evaluation_is_local():
    # The newest plan counts, whatever the kind of evaluation.
    for evaluation in ("private", "none"):
        run(f"{plan} --for '2 days' --evaluation {evaluation} --ledger local.ledger --replace")
    r = run(f"{plan} --for '2 days' --evaluation local --ledger local.ledger --replace")
    assert "without noise and without a charge" in r.out, "what local evaluation leaks is not said"
    check_labels(r.out)
    r = run("wisp personalise --early --data log.db --model base.wisp --out local.wisp --ledger local.ledger --json")
    assert r["evaluated"] and {"verdict", "evidence", "threshold", "serves", "changed", "records", "seconds"} <= set(
        r["not_private"]
    )
    assert "evaluations_left" not in r.json
    r = run("wisp personalise --early --data log.db --model base.wisp --out local.wisp --ledger local.ledger")
    check_labels(r.out)
    assert says(
        "on no event: the log has none later than what the candidate learned from, so it cannot$",
        r.out,
    ), "an evaluation without events is not said to be one"
    assert says("^evaluated the newest candidate: neither better nor worse than the base: evidence", r.out)
    r = run("wisp plan --left --data log.db --model base.wisp --ledger local.ledger")
    assert "evaluations" not in r.out, "evaluations are counted, though each run evaluates"
    r = run("wisp privacy --ledger local.ledger")
    assert "chosen on the same data without a charge: which model is served and trains on" in r.out


def test_a_new_base_has_more_items():
    # The device's own learning moves to it.
    write("new.tsv", "soup-pea\tPea soup\nradio\tRadio\nbagel-new\tNew bagel\tbagel-lentil\n")
    r = run("wisp catalogue add --model base.wisp --items new.tsv --out base-2.wisp --json")
    assert r["added"] == 3 and r["rows_from"] == {"neighbour": 1, "words": 1, "mean": 1}
    # Served lists do not change before the new items are trained.
    for history in ("bagel-lentil,tea-mint", "tea-mint"):
        new = history.replace(",", ",bagel-new,radio,")
        before = run(f"wisp recommend --model base.wisp --history {history} --count 20 --json")
        r = run(f"wisp recommend --model base-2.wisp --history {new} --count 20 --json")
        assert [i["item"] for i in before.json] == [
            i["item"] for i in r.json
        ], f"new items change what follows {history}"


def test_events_are_not_taken_for_new_items():
    for name, line in (("csv", "user,item,time"), ("tsv", "user_id\titem_id\ttimestamp\trating")):
        write(f"events.{name}", f"{line}\nu1,tea-new,1700000000\n")
        run(f"wisp catalogue add --model base.wisp --items events.{name} --out x.wisp",
            3, "its first line is 'user.*, so it holds events; allowed are lines of key<TAB>name")
    assert not exists("x.wisp")
    # Names and keys may have commas.
    write("commas.tsv", "tea,item,time\nuser,tea,5\tTea, with milk\n")
    run("wisp catalogue add --model base.wisp --items commas.tsv --out commas.wisp")
    # Each command names the file that it is given.
    run("wisp catalogue add --model base.wisp --items nowhere --out x.wisp",
        3, "nowhere: the new items cannot be opened: No such file or directory")
    run("wisp catalogue retire --model base.wisp --items nowhere --out x.wisp",
        3, "nowhere: the keys of the items to retire cannot be opened: No such file or directory")
    write("nothing.txt", "\n")
    run("wisp catalogue restore --model base.wisp --items nothing.txt --out x.wisp",
        3, "there is no item in it; allowed are lines of one key")


def test_an_item_that_no_run_has_trained_is_ignored():
    # An item that no run has trained is ignored, and a warning says so once.
    recommend = "wisp recommend --model base-2.wisp"
    untrained = (
        "--history names 2 items that no run has trained yet, the first 'radio': the history is read as if the model"
        " did not know them"
    )
    r = run(f"{recommend} --history tea-mint,radio,radio --history bagel-new", 0, untrained)
    assert len(r.err.splitlines()) == 1, "untrained items are said more than once"
    run(f"{recommend} --history tea-mint --candidates radio,bagel-lentil",
        0, "--candidates names 1 item that no run has trained yet, the first 'radio': no list holds them")
    r = run(f"{recommend} --history tea-mint")
    assert not r.err, "a history of trained items warns"
    run("wisp catalogue add --model base-2.wisp --items new.tsv --out base-3.wisp", 2, "is there already")


def test_one_word_written_with_a_combined_letter_and_with_two_characters_is_two():
    # Whoever adds the second gets a warning.
    write("marked.tsv", "cafe\u0301\tCafe\n")
    run("wisp catalogue add --model base.wisp --items marked.tsv --out marked.wisp",
        0, "marked.tsv: 1 key with accents as characters of their own")
    run("wisp recommend --model marked.wisp --history tea-mint,cafe\u0301")
    run("wisp recommend --model base.wisp --history tea-mint,cafe\u0301",
        2, "the same letters written as one character are another key")
    write("marked.csv", "user,item,time\nbea,cafe\u0301,5\nbea,cafe\u0301,6\n")
    run("wisp log import marked.db --data marked.csv", 0, "marked.csv: 1 key with accents as characters of their own")
    r = run("wisp catalogue list --model base-2.wisp")
    assert last_line(r.out) == "bagel-new\tNew bagel\tuntrained"
    run(f"{plan} --for '6 months' --every '1 month' --steps 1 --evaluation none --ledger next.ledger")
    run("wisp personalise --early --data log.db --model base.wisp --out next.wisp --ledger next.ledger")
    run("wisp personalise --early --data log.db --model base-2.wisp --out next.wisp --ledger next.ledger",
        2, "it is neither base-2.wisp nor was it personalised from it: carry it over with .wisp catalogue rebase.")
    run("wisp catalogue rebase --from base.wisp --to base-2.wisp --out next.wisp", 2, "--ledger is missing")
    r = run("wisp catalogue rebase --from base.wisp --to base-2.wisp --out next.wisp --ledger next.ledger --json")
    assert r["carried"] and r["lost_items"] == 0
    assert same("next.wisp", "base-2.wisp"), "another model than the new base is served, and it was not evaluated"
    run("wisp personalise --early --data log.db --model base-2.wisp --out next.wisp --ledger next.ledger --json")


def test_a_user_without_history_gets_popular_items():
    # A user without history gets popular items, unless these are retired.
    run("wisp recommend --model base-2.wisp --cold-start --history radio", 2, "one is allowed, 2 were given")
    r = run("wisp recommend --model base-2.wisp --cold-start --json")
    first = r[0]["item"]
    write("gone.txt", f"{first}\n")
    r = run("wisp catalogue retire --model base-2.wisp --items gone.txt --out base-4.wisp --json")
    assert r["retired"] == 1 and r["items"] == 483
    run(f"wisp recommend --model base-4.wisp --history tea-mint --candidates {first},bagel-lentil",
        0, f"--candidates names 1 item that the model has retired, the first '{first}': no list holds them")
    r = run("wisp recommend --model base-4.wisp --cold-start --count 483 --json")
    assert len(r.json) == 479 and first not in [i["item"] for i in r.json]
    r = run("wisp catalogue list --model base-4.wisp --json")
    assert [i["key"] for i in r["items"] if i["retired"]] == [first]
    r = run("wisp catalogue restore --model base-4.wisp --items gone.txt --out base-5.wisp --json")
    assert r["retired"] == 0
    write("none.txt", "no-such-item\n")
    run("wisp catalogue retire --model base-2.wisp --items none.txt --out x.wisp",
        2, "there is no item 'no-such-item' in it")
    assert not exists("x.wisp"), "a refused retirement left a file"
    r = run("wisp catalogue rebase --from base-2.wisp --to base-4.wisp --out next.wisp --ledger next.ledger --json")
    assert r["carried"] and r["lost_items"] == 0
    run("wisp personalise --early --data log.db --model base-4.wisp --out next.wisp --ledger next.ledger")
    r = run("wisp catalogue list --model next.wisp.start --json")
    assert [i["key"] for i in r["items"] if i["retired"]] == [first]


def test_the_provenance_of_the_old_base_moves_along():
    # The provenance of the old base moves along, also back to the base that it was trained from.
    write(
        "plain.json",
        '{"name": "plain", "training": {"method": "ordinary", "sampling": "shuffled", "epochs": 1, "expected_batch":'
        " 50}}",
    )
    run("wisp train --recipe plain.json --model base.wisp --data log.db --out known.wisp")
    run(f"{plan} --for '2 months' --every '1 month' --steps 2 --evaluation none --ledger known.ledger")
    run("wisp personalise --early --data log.db --model known.wisp --out moved.wisp --ledger known.ledger --other-data")
    r = run("wisp catalogue rebase --from known.wisp --to base.wisp --out moved.wisp --ledger known.ledger")
    assert "serves the new base; what was learned is carried over" in r.out, "a rebase to an ancestor says"
    assert same("moved.wisp", "base.wisp"), "a rebase to an ancestor does not serve it"
    run(f"wisp train --recipe {ROOT}/models/recipes/cafe-device.json --model moved.wisp.start --data log.db --out"
        " t.wisp --ledger moved.ledger --num-records-public 300 --epochs 1 --batch 50 --epsilon 1 --delta 1e-4",
        4, "was trained on 'log.db' before, without a guarantee")
    dataset = run("wisp inspect base.wisp --json")["provenance"][0]["dataset"]
    run(f"wisp recommend --model moved.wisp.start --history tea-mint --private --public-dataset '{dataset}'",
        4, "run 3 of the provenance, on the data set .log.db., states no epsilon")


def test_what_was_learned_is_given_up_only_if_asked_for():
    run(f"{plan} --for '1 month' --every '1 month' --steps 2 --evaluation none --ledger short.ledger")
    run("wisp personalise --early --data log.db --model base.wisp --out short.wisp --ledger short.ledger")
    rebase = "wisp catalogue rebase --from base.wisp --to base-2.wisp --out short.wisp --ledger short.ledger"
    copy("short.wisp", "kept.wisp")
    run(rebase, 2, "what was learned would be lost: the plan of short.ledger has no step left.*--start-over")
    assert same("short.wisp", "kept.wisp") and exists("short.wisp.candidate"), "a refused rebase took a file away"
    run(f"{rebase} --start-over")
    assert same("short.wisp", "base-2.wisp")


def test_what_was_written_is_read_by_its_owner_alone():
    for file in ("report.html", "mine.wisp", "log.ledger"):
        assert mode(file) == 0o600, f"{file} can be read by others: its mode is"
