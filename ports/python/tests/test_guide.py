"""Runs the programs of docs/python.md, and the one of docs/guide.md that learns, in a folder with the shipped model."""

import re
import shutil
import subprocess
import sys

from conftest import CAFE, ROOT


def programs(page):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.S | re.M)


BLOCKS = [*programs("python.md"), programs("guide.md")[-1]]


def test_the_guide_is_short():
    code = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(code) < 30, f"the guide's program has {len(code)} lines"


def test_the_guide_runs(tmp_path):
    shutil.copy(CAFE, tmp_path / "cafe.wisp")
    told = []
    for block in BLOCKS:
        run = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert run.returncode == 0, run.stderr
        told.append(run.stdout)
    assert len(told) == 3
    assert re.search(r"^for u00003: .+, .+, .+, .+, .+$", told[0], re.M) and "epsilon" in told[0]
    assert "'hit@10'" in told[1] and told[1].endswith("1.8282402230784391\n")
    assert "364 runs left" in told[2] and len(told[2].splitlines()) == 6
