#!/usr/bin/env python3
"""Checks every block of code in the documents: it is compiled, run, or read, or named below with the reason why not.

check.py ROOT BUILD WORK     ROOT: the documents, and what they speak of; WORK: a folder with the shipped model
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from commands import Commands
from pages import Pages, missing
from programs import Programs

ROOT, BUILD, WORK = (Path(part).resolve() for part in sys.argv[1:4]) if len(sys.argv) == 4 else (None, None, None)
if ROOT is None:
    sys.exit("usage: check.py ROOT BUILD WORK")
sys.path.insert(0, str(ROOT / "tools/site"))
from snippets import block as block_of, blocks  # noqa: E402  from the tree that is checked

# Another test runs these whole programs; here they are only compiled or read.
RUN_ELSEWHERE = {
    ("README.md", "The main job in C"): "tests/program/readme.py",
    ("docs/guide.md", "In C"): "tests/program/readme.py",
    ("docs/python.md", "From a data frame"): "ports/python/tests/test_guide.py",
    ("docs/python.md", "A model that ships"): "ports/python/tests/test_guide.py",
    ("docs/notebook.md", None): "ports/python/tests/test_guide.py",
    ("docs/guide.md", "In Python"): "ports/python/tests/test_guide.py",
    ("docs/python.md", "Preparing models"): "ports/python/tests/test_guide.py",
    ("docs/convert.md", None): "tools/lab/bench/peers/parity.py, which needs PyTorch",
}
# Blocks without a reader: document, the beginning of the block, and what it is.
NOT_CODE = (
    ("CONTRIBUTING.md", "Refuse a private run", "a message of a commit"),
    ("docs/algorithms.md", "D_j = clip", "a formula"),
    ("docs/apple.md", "// Package.swift", "a part of a package in Swift"),
    ("docs/personalise.md", "noise * sqrt", "two formulas"),
    ("docs/program.md", "wisp synth | new", "the list of commands; tests/program/help.py holds it"),
    ("docs/papers/re-attention.md", "sum over t", "a formula"),
    ("docs/texts.md", '"data": {"classes"', "a part of a recipe, which is JSON only within it"),
)
# Languages that nothing here reads, and why.
NO_READER = {
    "kotlin": "the lines are parts of an app for Android; the sources of the port are compiled by its own test",
    "swift": "Debian 12 has no compiler of Swift; tests/apple.sh asks one where it is installed",
    "Swift": "a package's description, which tools/lab/bench/first_list hands to Swift",
}


def is_cmake(text):
    return re.match(r"(?:find_package|include|FetchContent_\w+|add_subdirectory|set)\(", text)


class Check:
    def __init__(self):
        self.commands, self.programs = Commands(ROOT, BUILD), Programs(ROOT, BUILD, WORK)
        self.faults, self.counts, self.excused, self.skipped = 0, {}, set(), []
        self.sources = {file.stem for file in ROOT.glob("tests/**/*.cc")}
        self.paths = {str(file.relative_to(ROOT)) for file in ROOT.glob("tests/**/*")}
        python = Path(os.environ.get("WISP_PYTHON", ROOT / "build/python")) / "bin/python"
        self.with_what = {"python": python if python.is_file() else None, "js": None}
        self.why_not = {"python": "there is no build/python (tools/dev python makes it)"}
        package = Path(os.environ.get("WISP_WASM", ROOT / "build/wasm")) / "package"
        self.why_not["js"] = missing(package)
        if not self.why_not["js"]:
            self.with_what["js"] = Pages(ROOT, package, block_of(ROOT / "docs/guide.md", "html"))

    def fault(self, document, line, sentence):
        self.faults += 1
        print(f"FAILED: {document}:{line}: {sentence}")

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def excuse(self, document, text):
        for entry in NOT_CODE:
            if entry[0] == document and text.startswith(entry[1]):
                self.excused.add(entry)
                return True
        return False

    def runs(self, document, block):
        """Returns the program that runs a block; None: it is only read."""
        if (document, block.heading) in RUN_ELSEWHERE or (document, None) in RUN_ELSEWHERE:
            return None
        if block.language not in self.with_what:
            return "itself"
        if not self.with_what[block.language]:
            self.skipped.append(f"not run: {document}:{block.line}: {self.why_not[block.language]}")
        return self.with_what[block.language]

    def check(self, document, block):
        text, kind = block.text, block.language
        if kind in NO_READER or self.excuse(document, text):
            return self.count("named with a reason")
        if not kind:
            kind = (
                "sh"
                if self.commands.looks_like(text)
                else "cmake" if is_cmake(text) else "python" if re.match(r"(?:with|import|from) ", text) else ""
            )
        if kind == "sh":
            found = self.commands.faults(text)
        elif kind and hasattr(self.programs, kind):
            found = getattr(self.programs, kind)(text, block.language and self.runs(document, block))
        else:
            return self.fault(
                document,
                block.line,
                f"a block of '{kind}', which no reader takes; name it in " "tests/snippets/check.py with a reason",
            )
        for sentence in found:
            self.fault(document, block.line, sentence)
        return self.count({"sh": "commands"}.get(kind, kind))

    def spans(self, document, text):
        """Yields the commands of the program within a line: `wisp train --epochs 1`."""
        prose = re.sub(r"(?ms)^```.*?^```$", lambda m: "\n" * m[0].count("\n"), text)
        for match in re.finditer(r"`(wisp(?:-lab)? (?:[^`\n]|\n(?!\n))*)`", prose):
            command = " ".join(match[1].split())
            if not re.search(r"\.\.\.|[|<>(]", command):
                self.count("commands within a line")
                for words in [command.split()]:
                    for sentence in self.commands.programs[words[0]].faults(words[1:]):
                        self.fault(document, prose[: match.start()].count("\n") + 1, f"`{command}`: {sentence}")

    def names(self, document, text):
        """Yields the tests that a line names: `ledger_test`, `tests/program/ledgers.py`."""
        for match in re.finditer(r"`(?:(\w+_test)|(tests/[\w./-]*\w))`", text):
            self.count("names of tests")
            there = self.sources if match[1] else self.paths
            if (match[1] or match[2]) not in there:
                self.fault(document, text[: match.start()].count("\n") + 1, f"there is no test {match[1] or match[2]}")

    def history(self, document, text):
        """A document describes the present. The past belongs to the changelog, and to git."""
        for match in re.finditer(r"(?<![-\w])(?:[Uu]ntil|[Ss]ince|[Uu]p to) 20\d\d-\d\d-\d\d", text):
            line = text[: match.start()].count("\n") + 1
            said = f"'{match[0]}' tells of the past; say what is, with the day of its measurement"
            self.fault(document, line, said)

    def end(self):
        for entry in NOT_CODE:
            if entry not in self.excused and (ROOT / entry[0]).is_file():
                self.fault(
                    entry[0], 1, f"no block begins with '{entry[1]}' any more: take it from tests/snippets/check.py"
                )
        print(*self.skipped, sep="\n", end="\n" if self.skipped else "")
        print(", ".join(f"{count} {what}" for what, count in sorted(self.counts.items())))
        sys.exit(f"{self.faults} faults" if self.faults else 0)


def main():
    check = Check()
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for document in listed.splitlines():
        text = (ROOT / document).read_text(encoding="utf-8")
        for block in blocks(text):
            check.check(document, block)
        check.spans(document, text)
        check.names(document, text)
        check.history(document, text)
    check.end()


if __name__ == "__main__":
    main()
