"""Runs the programs of docs/python.md, and the one of docs/guide.md that learns, in a folder with the shipped model;
and the cells of docs/notebook.md."""

import ast
import json

import re
import shutil
import subprocess
import sys

import pytest
from conftest import CAFE, ROOT


def programs(page):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.S | re.M)


BLOCKS = [*programs("python.md"), programs("guide.md")[-1]]


def test_the_guide_is_short():
    code = [[line for line in block.splitlines() if line.strip()] for block in BLOCKS]
    assert len(code[0]) < 6 and len(code[1]) < 30, "the first programs are longer than 5 and 29 lines"


def test_the_guide_runs(tmp_path):
    shutil.copy(CAFE, tmp_path / "cafe.wisp")
    told = []
    for block in BLOCKS:
        run = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert run.returncode == 0, run.stderr
        told.append(run.stdout)
    assert len(told) == 4
    assert told[0] == "['soup']\n"
    assert re.search(r"^for u00003: .+, .+, .+, .+, .+$", told[1], re.M) and "epsilon" in told[1]
    assert "'hit@10'" in told[2] and told[2].endswith("1.8282402230784391\n")
    assert "364 runs left" in told[3] and len(told[3].splitlines()) == 6


def shown_by(cell, space):
    """What a notebook shows below a cell: the value of its last line, if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), space)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), space)


def test_the_notebook_runs(tmp_path, monkeypatch):
    """Without a kernel of Jupyter, which a notebook's cells do not need."""
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib, which plots need, is not installed")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, ROOT / "ports" / "python" / "notebook", "made.ipynb"], check=True)
    made = json.loads((tmp_path / "made.ipynb").read_text())
    space = {}
    shown = [shown_by(cell["source"], space) for cell in made["cells"] if cell["cell_type"] == "code"]
    tables = [one._repr_html_() for one in shown if hasattr(one, "_repr_html_")]
    assert len(shown) == len(programs("notebook.md")) and len(tables) == 5
    assert all(one.startswith("<div") for one in tables)
    private = next(one for one in shown if isinstance(one, str) and one.startswith("private: epsilon"))
    assert "at delta 0.0001 for one user" in private
    assert set(space["cafe"].recommend(["dish-3", "dish-17"], 5)) <= {f"dish-{at}" for at in range(20)}
    assert 0 < space["history"].points[0].epsilon_charged < space["history"].points[-1].epsilon_stated <= 8
