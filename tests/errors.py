#!/usr/bin/env python3
"""Checks that the sources say every sentence of docs/errors.md, and that docs/statement.md explains its lines.

    errors.py ROOT     prints those that differ; exits 1 if there is one

A sentence stands in backticks in the first cell of a row; several are joined by "or". The parts of one between "..."
stand in one source file, in literals that may be cut.
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCES = ("runtime/*.cc", "runtime/*.h", "ports/*.cc", "ports/*.h", "ports/*.js", "ports/*.kt", "ports/*.py",
           "tools/wisp/*.cc", "tools/wisp/*.h", "tools/lab/*.cc",
           "tools/lab/*.h", "tools/convert/*.cc", "tools/convert/*.h")
CUT = re.compile(r"""(["`])\s*\+?\s*f?\1""")  # where a literal ends and goes on in the next line


def texts(root):
    names = subprocess.run(["git", "ls-files", *SOURCES], cwd=root, check=True, capture_output=True, text=True).stdout
    return {name: CUT.sub("", (root / name).read_text(encoding="utf-8")).replace('\\"', '"') for name in names.split()}


def sentences(page):
    for number, line in enumerate(page.splitlines(), 1):
        cell = re.match(r"^\| (`[^`]*`(?: or `[^`]*`)*) \|", line)
        for sentence in re.findall("`([^`]*)`", cell[1]) if cell else ():
            yield number, sentence


def statement(root):
    """Yields what the page of the ledger and the source of the statement say differently."""
    source = CUT.sub("", (root / "runtime/privacy/statement.cc").read_text(encoding="utf-8"))
    page = (root / "docs/statement.md").read_text(encoding="utf-8")
    page = page[page.index("## What a statement says"):]
    explained = set(re.findall("`([^`]+)`", page)) - {"wisp privacy --ledger FILE", "--json", "check"}
    for name in sorted(explained):
        if name not in source:
            yield f"docs/statement.md: no statement says '{name}'"
    lines = re.findall(r'\bLines?\(\s*text, "([^"]+)",', source)
    lines += [name for pair in re.findall(r'Line\(text, trains \? "([^"]+)" : "([^"]+)"', source) for name in pair]
    if len(lines) < 30:
        yield f"runtime/privacy/statement.cc: {len(lines)} lines are found; 30 and more are expected"
    for name in lines:
        if name not in explained:
            yield f"docs/statement.md does not explain the line '{name}' of a statement"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: errors.py ROOT")
    root = Path(sys.argv[1]).resolve()
    sources, count, missing = texts(root), 0, 0
    for number, sentence in sentences((root / "docs/errors.md").read_text(encoding="utf-8")):
        parts = [part for part in sentence.split("...") if re.search(r"[a-z]{2}", part)]
        count += 1
        if not any(all(part in text for part in parts) for text in sources.values()):
            missing += 1
            apart = [part for part in parts if not any(part in text for text in sources.values())]
            print(f"docs/errors.md:{number}: no source says '{sentence}'" +
                  (f"; in particular not '{apart[0]}'" if apart else ", all in one file"))
    for fault in statement(root):
        missing += 1
        print(fault)
    if count < 30:
        sys.exit(f"docs/errors.md has {count} sentences; 30 and more are expected")
    print(f"{count} sentences, {missing} faults")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
