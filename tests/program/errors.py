"""docs/errors.md quotes the sources (tests/errors.py), and the program prints some of the sentences as quoted."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from program import ROOT, edit, read, recipe, root, run, try_run

pytestmark = pytest.mark.usefixtures("cafe")
train = (
    f"wisp train --recipe {recipe} --model base.wisp --data log.db --num-records-public 60 --batch 20 --epochs 1"
    " --out mine.wisp --noise-multiplier 4"
)
QUOTED = (
    "wisp recommend --model nothing.wisp --history tea-mint",
    "wisp recommend --model log.db --history tea-mint",
    "wisp recommend --model cut.wisp --history tea-mint",
    "wisp recommend --model base.wisp --history tea-nothing",
    "wisp recommend --model base.wisp --data log.db --user nobody",
    "wisp generate base.wisp --prompt x",
    "wisp personalise --data log.db --model base.wisp --out mine.wisp",
    f"{train} --delta 0.001",
    f"{train} --delta 0.5 --ledger log.ledger",
    f"{train} --delta 0.001 --ledger log.ledger --budget 0.01",
)


def test_the_page_quotes_the_sources():
    run(f"/usr/bin/python3 {ROOT}/tests/errors.py {ROOT}")


@pytest.mark.parametrize("command", QUOTED)
def test_a_sentence_is_on_the_page(command):
    # All parts of one row stand in it, in their order.
    if "cut.wisp" in command:
        Path("cut.wisp").write_bytes(Path("base.wisp").read_bytes()[:20000])
    result = try_run(command)
    assert result.code != 0, "it is not refused"
    said = " ".join(result.err.split())
    cells = re.findall(r"(?m)^\| (`[^`]*`(?: or `[^`]*`)*) \|", read(root / "docs/errors.md"))
    rows = [row for cell in cells for row in re.findall("`([^`]*)`", cell)]
    assert any(re.search(".*".join(map(re.escape, row.split("..."))), said) for row in rows), said


def test_a_row_that_no_source_says_is_noticed():
    for name in subprocess.check_output(["git", "ls-files", "-z"], cwd=root, text=True).split("\0")[:-1]:
        Path("tree", name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, Path("tree", name), follow_symlinks=False)
    run("git init -q", cwd="tree")
    run("git add -A", cwd="tree")
    page = "tree/docs/errors.md"
    edit(page, page, "(?m)^\\| `has no plan for a deployment", "| `has no plan for the day")
    r = try_run(f"/usr/bin/python3 {ROOT}/tests/errors.py tree")
    assert r.code == 1 and "no source says 'has no plan for the day" in r.out + r.err
    edit(page, page, "`has no plan for the day", "`has no plan for a deployment")
    ledger = "tree/docs/statement.md"
    edit(ledger, ledger, "`how the figure grows`", "`how the figure swells`")
    r = try_run(f"/usr/bin/python3 {ROOT}/tests/errors.py tree")
    assert r.code == 1 and "does not explain the line 'how the figure grows'" in r.out + r.err
