#!/usr/bin/env python3
"""Checks that figures in more than one document are the same in all of them.

    quoted_figures.py ROOT     prints each that differs; exits 1 if there is one

A figure has one owner, where it was measured or is held: a document, tests/gates.json, the planted faults. The table
docs/measured.md is drawn from docs/results/measured.jsonl. A pattern reads what the owner says. Each place that quotes
it has the owner's numbers in the line, or the row of a table, that the place's words begin to describe. The numbers
themselves do not stand here.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Each measured figure has its owner with a pattern over its text, then those who quote it: a document, and words of the
# line.
FIGURES = (
    ("utility on ML-1M without privacy", "docs/measured.md", r"not private, width 64.*?NDCG@10 ([\d.]+) \(",
     (("README.md", "NDCG@10 on MovieLens-1M"),)),
    ("utility on ML-1M at epsilon 10, 8, 5", "docs/measured.md",
     r"epsilon 10, 8, 5, delta 1/6040.*?NDCG@10 ([\d.]+) / [\d.]+, ([\d.]+) / [\d.]+, ([\d.]+) /",
     (("README.md", "NDCG@10 on MovieLens-1M"),)),
    ("a private step over an ordinary one", "docs/measured.md",
     r"private step over ordinary step, batch 256.*?\| ([\d.]+ to [\d.]+), ",
     (("README.md", "time of a private step"),)),
    ("the best ten after 200 events", "docs/measured.md",
     r"the best 10 after a history of 200, 1 thread.*?\| ([\d.]+), [\d.]+, [\d.]+ ms",
     (("README.md", "the best 10 after 200 events"),)),
    ("the best ten after one more event", "docs/measured.md",
     r"the best 10 after a history of 200, 1 thread.*?\| [\d.]+, ([\d.]+), [\d.]+ ms",
     (("README.md", "the best 10 after 200 events"), ("tools/bench/peers/README.md", "| wisp (one more event"))),
    ("Opacus' hooks over a private step", "docs/measured.md", r"Opacus' time over ours.*?\| [\d.]+, \*\*([\d.]+)\*\*",
     (("tools/bench/peers/README.md", "| opacus hooks"),)),
    ("Opacus' ghost clipping over a private step", "docs/measured.md", r"Opacus' time over ours.*?\| ([\d.]+), ",
     (("tools/bench/peers/README.md", "| opacus ghost"),)),
    ("ONNX Runtime over ours, a history of 200", "docs/measured.md", r"the same graph in ONNX Runtime.*?\| ([\d.]+);",
     (("tools/bench/peers/README.md", "| onnxruntime fast"),)),
    ("ONNX Runtime over ours, an encoder", "docs/measured.md", r"the same graph in ONNX Runtime.*?; ([\d.]+) times",
     (("tools/bench/peers/README.md", "| onnxruntime | 25"),)),
    ("tokens a second", "docs/performance.md", r"\| 1 \| (\d+) \| \d+ \| (\d+) \|\n\| 4 \|",
     (("docs/small-models.md", "| a smaller text model |"),)),
    ("opening floats in panels", "docs/performance.md", r"\| open \| (\d+) ms \| ([\d.]+) ms \| [\d.]+ ms \|",
     (("docs/small-models.md", "| a large model opened at once |"),)),
    ("perplexity of private samples", "docs/measured.md",
     r"perplexity of a private sample.*?\| ([\d,]+) anchored, ([\d,]+) mixed; .*?"
     r" alone ([\d,]+), the model ([\d,]+)", (("docs/platforms.md", "**Sampling from a mixture is noise**"),)),
    ("a first list from an empty folder", "docs/guide.md", r"C, recommending alone \| 14 \| ([\d.]+ to [\d.]+)",
     (("docs/measured.md", "from an empty folder to a first list"),)),
    ("a first list in Python", "docs/guide.md", r"Python, from a wheel.*?\| 4 \| ([\d.]+ to [\d.]+)",
     (("docs/measured.md", "from an empty folder to a first list"),)),
    ("a first list in JavaScript", "docs/guide.md", r"lines of HTML \| 13 \| ([\d.]+ to [\d.]+)",
     (("docs/measured.md", "from an empty folder to a first list"),)),
    ("Python over C", "docs/measured.md", r"`recommend` of Python over C.*?\| ([\d.]+) to ([\d.]+); ",
     (("docs/python.md", "`recommend` of 40 new events"),)),
    ("dlopen to the first call", "docs/performance.md",
     r"`dlopen` and the first call, everything in the page cache \| ([\d.]+) \(.*?\| ([\d.]+) \(.*?\| ([\d.]+) \(",
     (("docs/measured.md", "`dlopen` to the first call"),)),
    ("a page that recommends", "docs/wasm.md", r"\| recommending \| (\d+) KB",
     (("docs/measured.md", "a web page, compressed"),)),
    ("a page that learns", "docs/wasm.md", r"\| learning: training.*?\| (\d+) KB",
     (("docs/measured.md", "a web page, compressed"),)),
    ("a page's lists", "docs/wasm.md",
     r"(?s)in a new tab \| (\d+) ms .*?; in a tab with files.*?; (\d+) ms \|.*?after a click \| ([\d.]+) ms",
     (("docs/measured.md", "first list in a cold tab"),)),
    ("learning in a page over natively", "docs/wasm.md", r"at most 3 times SSE4: ([\d.]+) \|",
     (("docs/measured.md", "learning in the page over learning natively"),)),
    ("64-bit Arm, recommending", "docs/platforms.md", r"64-bit Arm, `libwisp-runtime.so` \| (\d+) KB",
     (("docs/measured.md", "64-bit Arm, stripped"),)),
    ("64-bit Arm, everything", "docs/platforms.md", r"64-bit Arm, `libwisp.so`.*?\| ([\d,]+) KB",
     (("docs/measured.md", "64-bit Arm, stripped"),)),
)

def megabytes(*names):
    return lambda gates: [f"{gates[name]['value'] / 1e6:.1f}" for name in names]


def kilobytes(name):
    return lambda gates: [f"{round(gates[name]['value'] / 1e3):,}"]


RELEASE = "_xnnpack_hardened"
GATES = (
    ("size of what recommends", kilobytes("size_inference_only" + RELEASE),
     (("README.md", "the stripped library that only recommends"),
      ("docs/platforms.md", "x86-64, `libwisp-runtime.so`, which only"))),
    ("size with texts", kilobytes("size_texts" + RELEASE),
     (("README.md", "the stripped library that only recommends"), ("docs/platforms.md", "x86-64, `libwisp-text.so`"))),
    ("size of everything", kilobytes("size_full" + RELEASE),
     (("docs/platforms.md", "x86-64, `libwisp.so`, with training and privacy"),)),
    ("memory of recommending", megabytes("memory_inference"), (("docs/memory.md", "planned, recommending"),)),
    ("memory of private training, one thread", megabytes("memory_private_threads_1"),
     (("README.md", "memory planned for private training"),)),
    ("memory of private training", megabytes("memory_private_threads_1", "memory_private_threads_2"),
     (("docs/memory.md", "planned, private training"),)),
    ("memory of ordinary training", megabytes("memory_ordinary_threads_1", "memory_ordinary_threads_2"),
     (("docs/memory.md", "planned, ordinary training"),)),
)


def place(text, words):
    """Returns the paragraph or row that has the words; None if they stand nowhere, or in several."""
    parts = []
    for part in re.split(r"\n\s*\n", text):
        parts += part.split("\n") if part.startswith("|") else [part]
    found = [part for part in parts if words in " ".join(part.split())]
    return " ".join(found[0].split()) if len(found) == 1 else None


def check(what, owner, numbers, places, texts):
    for document, words in places:
        line = place(texts(document), words)
        if line is None:
            yield f"{document}: '{words}' does not stand in one place, where {what} is quoted from {owner}"
            continue
        for number in numbers:
            if not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", line):
                yield f"{document}: {what} is {number} in {owner}, and not here: {line[:160]}"


def faults(root):
    def texts(name):
        return (root / name).read_text(encoding="utf-8")

    for what, owner, pattern, places in FIGURES:
        found = re.search(pattern, texts(owner))
        if found is None:
            yield f"{owner}: {what} is not found as '{pattern}'"
            continue
        yield from check(what, owner, found.groups(), places, texts)
    gates = json.loads(texts("tests/gates.json"))
    for what, numbers, places in GATES:
        yield from check(what, "tests/gates.json", numbers(gates), places, texts)


def drawn(root):
    """Checks that docs/measured.md is what its data give."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "measured.md")
        made = subprocess.run([sys.executable, "-B", root / "tools/reproduce/measured.py", "draw", "--out", page],
                              check=False, capture_output=True, text=True)
        if made.returncode != 0:
            yield f"docs/measured.md is not drawn: {made.stderr.strip()[-300:]}"
            return
        there, lines = (root / "docs/measured.md").read_text(encoding="utf-8").split("\n"), page.read_text(encoding="utf-8").split("\n")
    for line in there:
        if line not in lines:
            yield f"docs/measured.md: tools/reproduce/measured.py draw does not write: {line[:160]}"
    for line in lines:
        if line not in there:
            yield f"docs/measured.md lacks what tools/reproduce/measured.py draw writes: {line[:160]}"


def planted(root):
    """Checks that SECURITY.md names no more planted faults than there are."""
    said = re.search(r"plants more than (\d+) faults", (root / "SECURITY.md").read_text(encoding="utf-8"))
    if said is None:
        yield "SECURITY.md: it does not say 'plants more than N faults'"
        return
    listed = subprocess.run([root / "tests/mutants/run", "--list"], check=True, capture_output=True, text=True).stdout
    there = listed.count("killed by ")
    if there <= int(said[1]):
        yield f"SECURITY.md: more than {said[1]} planted faults, and there are {there}"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: quoted_figures.py ROOT")
    root = Path(sys.argv[1]).resolve()
    found = [*faults(root), *drawn(root), *planted(root)]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(FIGURES) + len(GATES)} figures, {len(found)} that differ")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
