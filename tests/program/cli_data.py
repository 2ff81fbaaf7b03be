"""The logs and models that the program reads, its words about others, and its recommendations from them."""

import csv
import datetime
import re
import unicodedata
from pathlib import Path

import pytest
from program import mode, public_recipe, read, run, sql, write

pytestmark = pytest.mark.usefixtures("cafe")


evaluate = "wisp evaluate --model base.wisp --data"


def test_every_format_gives_the_same_log():
    r = run("wisp synth --out same.db --population device --users 60 --seed 3 --json")
    assert r["users"] == 60 and r["items"] == 480
    for log in ("log.txt", "log.csv", "log.tsv", "log.inter"):
        run(f"wisp synth --out {log} --population device --users 60 --seed 3")
        r = run(f"wisp evaluate --model base.wisp --data {log}")
        assert not r.err, f"reading {log} warns"
        write(f"{log}.quality", "".join(sorted(r.out.splitlines(keepends=True))))
        assert read(f"{log}.quality") == read("log.txt.quality"), f"{log} is read as another log"
    assert read("log.csv").startswith("user,item,time\n")
    separator = "the header is one column, 'user;item;time'; the separator seems to be ';'; allowed are ','"
    write("semicolons.csv", read("log.csv").replace(",", ";"))
    run(f"{evaluate} semicolons.csv", 3, f"semicolons.csv, line 1: {separator}")
    times = (
        "no column 'time' or 'timestamp'; the columns are 'user', 'item'; --time-column says which it is; times are"
        " needed, as numbers such as seconds"
    )
    write("timeless.csv", "".join(line.rpartition(",")[0] + "\n" for line in read("log.csv").splitlines()))
    run(f"{evaluate} timeless.csv", 3, times)
    write("dates.csv", "user,item,time\na,tea-mint,01.05.2024\n")
    run(f"{evaluate} dates.csv",
        3, "dates.csv, line 2: the time is '01.05.2024'; allowed is a number .* or a date of ISO 8601")


def test_for_a_table_of_another_program():
    # For a table of another program, each sentence names the next missing option, until it reads as a log.
    sql("shop.db", "create table orders(who, what, at)")
    sql("shop.db", "insert into orders values('a', 'tea-mint', 1795771800)")
    run("wisp log count shop.db",
        3, "there is no table 'events' in it. Events of another table can be imported into a log of its own")
    shop = "wisp log import shop-log.db --data shop.db"
    run(shop, 3, "the tables are 'orders'; --table says which it is")
    shop += " --table orders"
    for option in ("user=who", "item=what", "time=at"):
        name, column = option.split("=")
        run(shop, 3, f"no column '{name}' or .* the columns are 'who', 'what', 'at'; --{name}-column says which it is")
        shop += f" --{name}-column {column}"
    run(shop)


def test_a_log_with_dates_for_its_times_is_the_same_log():
    with open("log.csv") as numbers, open("iso.csv", "w", newline="") as out:
        rows, dates = csv.DictReader(numbers), csv.writer(out)
        dates.writerow(["user", "item", "time"])
        for row in rows:
            when = datetime.datetime.fromtimestamp(int(float(row["time"])), datetime.timezone.utc)
            dates.writerow([row["user"], row["item"], when.isoformat()])
    r = run(f"{evaluate} iso.csv")
    assert sorted(r.out.splitlines()) == read("log.txt.quality").splitlines(), "dates are read as another log"
    assert mode("log.db") == 0o600, "a log can be read by others"
    run("wisp evaluate --model nowhere.wisp --data log.db", 3, "nowhere.wisp")
    write("text.wisp", "not a model\n")
    run("wisp inspect text.wisp", 3, "text.wisp")
    Path("cut.wisp").write_bytes(Path("base.wisp").read_bytes()[:70000])
    run("wisp inspect cut.wisp", 3, "cut.wisp")
    write("bad.txt", "1 2 3\n")
    run(f"{evaluate} bad.txt", 3, "bad.txt, line 1")
    run("wisp inspect --model base.wisp")
    r = run("wisp inspect base.wisp --verify --json")
    assert r["architecture"]["items"] == 480 and r["item_names"] and r["provenance"][0]["epsilon"] is None
    r = run(f"{evaluate} log.db --json")
    assert 0 < r["ndcg@10"] < 1 and r["hit@10"] >= r["ndcg@10"] and r["users"] == 60
    r = run(f"{evaluate} log.db --backend int8 --json")
    assert 0 < r["ndcg@10"] < 1 and r["users"] == 60
    run(f"{evaluate} log.db --backend xnnpack",
        2, "allowed are simd and int8; XNNPACK's packed weights belong to one thread each")


def cells(text):
    """Returns how many columns a terminal needs for a text."""
    wide = lambda c: 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return sum(0 if unicodedata.combining(c) else wide(c) for c in text)


recommend = "wisp recommend --model base.wisp"


def test_recommendations_have_names_and_scores():
    guest = f"{recommend} --data log.db --user u00003"
    r = run(f"{guest} --count 4 --json")
    assert len(r.json) == 4 and r[0]["score"] >= r[3]["score"] and r[0]["name"]
    r = run(f"{guest} --count 4 --backend int8 --json")
    assert len(r.json) == 4 and r[0]["score"] >= r[3]["score"] and r[0]["name"]
    run(f"{guest} --backend float", 2, "allowed are simd, int8 and xnnpack")
    run(f"{guest} --backend int8 --private", 2, "not for --private")
    run(f"{recommend} --data log.db --user u99999", 2, "u99999")


def test_items_are_named_by_their_keys():
    run(f"{recommend} --history tea-mint,bagel-sesame",
        2, "'bagel-sesame', which the model does not have; did you mean bagel-s.* or bagel-.*?")
    run(f"{recommend} --history tea-mint --candidates tea-minty", 2, "did you mean tea-mint or tea-maple?")
    run(f"{recommend} --history xyz", 2, "'xyz', which the model does not have$")
    # A value that is as a whole an item's key is that item, even with commas, and an option may be given several times.
    write("comma.tsv", "tea, hot\tTea\nŻurek\tŻurek\nsoup\tSoup\n")
    run("wisp catalogue add --model base.wisp --items comma.tsv --out comma.wisp")
    several = "wisp recommend --model comma.wisp --allow-seen --json"
    before = run(f"{several} --history 'tea, hot' --history tea-mint,bagel-lentil",
        0, "names 1 item that no run has trained yet, the first 'tea, hot'")
    r = run(f"{several} --history tea-mint --history bagel-lentil")
    assert r.out == before.out, "an option that is given twice is not what commas say"
    r = run(f"{several} --history bagel-lentil,tea-mint")
    assert r.out != before.out, "the order of an option that is given twice is lost"
    r = run(f"{several} --history tea-mint --candidates 'tea, hot' --candidates soup,bagel-lentil", 0, "names 2 items")
    assert [i["item"] for i in r.json] == ["bagel-lentil"]
    run(f"{several} --history ,", 2, "--history is ',', which names no item")


def test_letters_of_every_script_are_kept():
    # Letters of every script are kept, and columns are aligned.
    write("script.txt", read("log.txt") + "u00003 \u017burek\n")
    run(f"{evaluate} script.txt", 0, "the first is 'Żurek'")
    keys = [line.split("\t")[0] for line in run("wisp catalogue list --model base.wisp").out.splitlines()]
    names = ("\u017burek", "cafe\u0301", "Tea", "\u62b9\u8336")
    write("names.tsv", "".join(f"{key}\t{names[n % 4]} {n}\n" for n, key in enumerate(keys)))
    run(f"wisp new --recipe {public_recipe} --data log.db --catalogue public --item-names names.tsv --out named.wisp")
    r = run("wisp recommend --model named.wisp --history tea-mint --count 40")
    lines = r.out.splitlines()
    assert len(lines) == 40 and len({cells(line) for line in lines}) == 1, "columns of a list shift"
    # The help's examples work with the shipped model.
    r = run("wisp recommend --help")
    history = re.search("--history [^ ]*,[^ ]*", r.out)[0]
    run(f"{recommend} {history} --count 5")
