"""The main task without the program: an app has a log in SQLite and calls the library.

A build without wings runs these tests too.
"""

import shutil
import sqlite3

from program import BUILD, ROOT, root, run

FLAVOURS = "vanilla raspberry pumpkin plum pecan pear peach maple honey hazelnut fig date coconut cinnamon".split()


def write_log(path, users=40, events=12):
    """Guests who order one yoghurt after the other, each from a flavour of their own."""
    log = sqlite3.connect(path)
    log.execute("CREATE TABLE events(user TEXT NOT NULL, item TEXT NOT NULL, time INTEGER NOT NULL)")
    rows = [(f"u{u}", f"yoghurt-{FLAVOURS[(3 * u + t) % len(FLAVOURS)]}", 100 * t)
            for u in range(users) for t in range(events)]
    log.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
    log.commit()
    log.close()


def test_the_example_personalises_and_states_what_it_cost():
    shutil.copyfile(root / "models/cafe.wisp", "base.wisp")
    write_log("log.db")
    r = run(f"{BUILD}/wisp_example base.wisp log.db c.db c.wisp u3 8", 0, "epsilon so far")
    before, _, after = r.out.partition("after")
    after, statement, _ = after.partition("Privacy statement")
    assert before.startswith("before") and before.count("\n") == after.count("\n") == 6, r.out
    assert statement, r.out


def test_a_second_run_is_refused_before_it_exceeds_the_budget():
    run(f"{BUILD}/wisp_example base.wisp log.db c.db d.wisp u3 8", 4, "the limit is 8, spent 7.99")


def test_the_example_is_c():
    run(f"cc -std=c11 -Wall -Wextra -Werror -pedantic -I{BUILD}/include -fsyntax-only {ROOT}/ports/c/example.c")
