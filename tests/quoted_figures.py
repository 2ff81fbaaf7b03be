#!/usr/bin/env python3
"""Checks that figures in more than one document are the same in all of them.

    quoted_figures.py ROOT     prints each that differs; exits 1 if there is one

A figure has one owner, where it was measured or is held: a document, tests/gates.json, the planted faults. The table
docs/measured.md is drawn from docs/results/measured.jsonl, and docs/processors.md from docs/results/processors. A
pattern reads what the owner says. Each place that quotes it has the owner's numbers in the line, or the row of a table,
that the place's words begin to describe. The numbers themselves do not stand here.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Figures of docs/results/measured.json that others quote: a document, and words of the line.
MEASURED = (
    ("utility on ML-1M", ("ml-1m.ndcg", "ml-1m.plain-10", "ml-1m.plain-8", "ml-1m.plain-5"),
     (("README.md", "NDCG@10 on MovieLens-1M"),)),
    ("lists without training on ML-1M", ("ml-1m.transitions", "ml-1m.popularity"),
     (("README.md", "without training, not private"),)),
    ("a private step over an ordinary one", ("step.batch-256",), (("README.md", "time of a private step"),)),
    ("the best ten after 200 events", ("score.best-10",), (("README.md", "the best 10 after 200 events"),)),
    ("the best ten after one more event", ("score.one-more",),
     (("README.md", "the best 10 after 200 events"), ("tools/lab/bench/peers/README.md", "| wisp (one more event"))),
    ("Opacus' hooks over a private step", ("opacus.hooks",), (("tools/lab/bench/peers/README.md", "| opacus hooks"),)),
    ("Opacus' ghost clipping over a private step", ("opacus.ghost",),
     (("tools/lab/bench/peers/README.md", "| opacus ghost"),)),
    ("ONNX Runtime over ours, a history of 200", ("onnx.history",),
     (("tools/lab/bench/peers/README.md", "| onnxruntime fast"),)),
    ("ONNX Runtime over ours, an encoder", ("onnx.encoder",),
     (("tools/lab/bench/peers/README.md", "| onnxruntime | 25"),)),
    ("perplexity of private samples", ("decoding.anchored", "decoding.mixed", "decoding.base", "decoding.model"),
     (("docs/platforms.md", "**Sampling from a mixture is noise**"),)),
    ("dlopen to the first call", ("start.runtime", "start.text", "start.everything"),
     (("docs/performance.md", "`dlopen` and the first call, everything in the page cache"),)),
    ("64-bit Arm, recommending", ("arm.runtime",), (("docs/platforms.md", "64-bit Arm, `libwisp-runtime.so`"),)),
    ("64-bit Arm, everything", ("arm.everything",),
     (("docs/platforms.md", "64-bit Arm, `libwisp.so`, with training"),)),
    ("64-bit Arm, without texts", ("arm.without-texts",),
     (("docs/platforms.md", "the same without texts, `-DWISP_TEXTS=OFF`"),)),
)

# Other figures have their owner with a pattern over its text, then those who quote it.
FIGURES = (
    ("tokens a second", "docs/performance.md", r"\| 1 \| (\d+) \| \d+ \| (\d+) \|\n\| 4 \|",
     (("docs/small-models.md", "| a smaller text model |"),)),
    ("opening floats in panels", "docs/performance.md", r"\| open \| (\d+) ms \| ([\d.]+) ms \| [\d.]+ ms \|",
     (("docs/small-models.md", "| a large model opened at once |"),)),
)


def megabytes(*names):
    return lambda gates: [f"{gates[name]['value'] / 1e6:.1f}" for name in names]


def kilobytes(name):
    return lambda gates: [f"{round(gates[name]['value'] / 1e3):,}"]


def times(base, *names):
    """Instructions over those of the base."""
    return lambda gates: [f"{gates[name]['value'] / gates[base]['value']:.2f}" for name in names]


RELEASE = "_xnnpack_hardened"
GATES = (
    *((f"NEON over AVX2, {run}", times(f"instructions_{run}", f"instructions_{run}_neon"),
       (("docs/performance.md", "NEON executes"),))
      for run in ("ordinary_step", "private_step", "recommend_after_200")),
    ("the dot product over NEON's floats",
     times("instructions_recommend_after_200_neon", "instructions_recommend_int8_after_200_neon_dot"),
     (("docs/performance.md", "NEON executes"),)),
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

    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root / "tools/lab/reproduce"))
    from measured import PAGE, Figures  # from the tree that is checked

    measured = Figures()
    for what, names, places in MEASURED:
        numbers = [re.sub(r" (?:KB|%)$", "", measured.text(name).strip("*")) for name in names]
        yield from check(what, PAGE, numbers, places, texts)
    for what, owner, pattern, places in FIGURES:
        found = re.search(pattern, texts(owner))
        if found is None:
            yield f"{owner}: {what} is not found as '{pattern}'"
            continue
        yield from check(what, owner, found.groups(), places, texts)
    gates = json.loads(texts("tests/gates.json"))
    for what, numbers, places in GATES:
        yield from check(what, "tests/gates.json", numbers(gates), places, texts)


def drawn(root, name):
    """Checks that a page is what its data give."""

    def texts(path):
        return path.read_text(encoding="utf-8").split("\n")

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.md")
        made = subprocess.run([sys.executable, "-B", root / f"tools/lab/reproduce/{name}.py", "draw", "--out", page],
                              check=False, capture_output=True, text=True)
        if made.returncode != 0:
            yield f"docs/{name}.md is not drawn: {made.stderr.strip()[-300:]}"
            return
        there, lines = texts(root / f"docs/{name}.md"), texts(page)
    for line in there:
        if line not in lines:
            yield f"docs/{name}.md: tools/lab/reproduce/{name}.py draw does not write: {line[:160]}"
    for line in lines:
        if line not in there:
            yield f"docs/{name}.md lacks what tools/lab/reproduce/{name}.py draw writes: {line[:160]}"


def gains(root):
    """Checks that the tables of gains, and the code that forecasts them, are what their data give."""
    made = subprocess.run([sys.executable, "-B", root / "tools/lab/reproduce/gains.py", "check"], check=False,
                          capture_output=True, text=True)
    if made.returncode != 0:
        yield made.stdout.strip() or f"gains.py check: {made.stderr.strip()[-300:]}"


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
    found = [*faults(root), *drawn(root, "measured"), *drawn(root, "processors"), *gains(root), *planted(root)]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(MEASURED) + len(FIGURES) + len(GATES)} figures, {len(found)} that differ")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
