#!/usr/bin/env python3
"""Draws docs/processors.md from the files of docs/results/processors, one for each machine.

    tools/lab/reproduce/processors.py add NAME FILE    keeps what `wisp-lab bench --all --json` printed, and draws
    tools/lab/reproduce/processors.py add --replace .. the same for a machine that is there
    tools/lab/reproduce/processors.py draw [--out F]   writes docs/processors.md
"""
import argparse
import json
import math
import re
import sys
from pathlib import Path

import draw

ROOT = Path(__file__).resolve().parents[3]
FOLDER, MARKDOWN = "docs/results/processors", "docs/processors.md"
COMMAND = "wisp-lab bench --all --json"

HEAD = f"""# Processors

What each processor reaches, as `{COMMAND}` measured it in less than five minutes, while nothing else ran. A
goal that is missed is set in bold. To add a machine:

    tools/dev build wisp-lab
    build/release/{COMMAND} > machine.json
    tools/lab/reproduce/processors.py add "Its name" machine.json

`WISP_TARGETS=AVX2` before the command measures the kernels of an older processor on a newer one. `AVX2+VNNI` and
`SSE4` measure those of others."""

FOOT = """Shares are those of the time that the least work takes at the measured peak of multiply-adds, which is that of
the same kernels. The goals are 75 % for a history, 80 % for a text and 65 % for training. With int8 it is 1.3 times the
speed of floats for a history and 1.6 for a text. A private step may take 1.10 times an ordinary one.

A history has 200 events of 3,416 items, width 64, 2 blocks. A text has 128 tokens, and its encoder 6 blocks of width
384. A decoder has 34 million weights, which a token reads; a cache may be faster than the memory that is measured. A
training step has 64 records. Noise is timed for each number. A calibration is that of 1,000 steps at delta 1e-5, with
epsilon 1 and one third of the records, and with epsilon 10 and a twentieth."""


class Missing(Exception):
    pass


def fail(sentence):
    print(f"processors.py: {sentence}", file=sys.stderr)
    sys.exit(3)


def at(machine, path):
    """A figure, or the median of one with a spread."""
    value = machine
    for key in path.split("/"):
        if not isinstance(value, dict) or key not in value:
            raise Missing(path)
        value = value[key]
    return value["median"] if isinstance(value, dict) else value


def measured_ops(machine):
    """All entries but the first, which describes the machine."""
    if len(machine.get("each_op", [])) < 2:
        raise Missing("each_op")
    return machine["each_op"][1:]


def op(machine, name, shape):
    for one in measured_ops(machine):
        if one["op"] == name and one["shape"].startswith(shape):
            return one["percent_of_roofline"]["median"]
    raise Missing(name)


def products(machine):
    return [one["percent_of_roofline"]["median"] for one in measured_ops(machine) if one["op"].startswith("linear")]


def number(value):
    """Three digits, but none behind the point of larger numbers."""
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{min(max(digits, 0), 4)}f}"


def bold(text, met):
    return text if met else f"**{text}**"


def share(percent, least):
    return bold(f"{percent:.0f} %", percent >= least)


def milliseconds_and_share(ms, percent, least):
    return lambda machine: f"{number(at(machine, ms))} ms, {share(at(machine, percent), least)}"


def over_floats(part, goal):
    def times(machine):
        name = "top_10_ms" if part == "scoring" else "ms"
        ratio = at(machine, f"{part}/{name}") / at(machine, f"{part}/{name}_int8")
        return bold(f"{ratio:.2f}", ratio >= goal)

    return times


def private_over_ordinary(machine):
    ratio = at(machine, "training/private_over_ordinary")
    return bold(f"{ratio:.2f}", ratio <= 1.10)


def decoder(form):
    return lambda machine: (f"{number(at(machine, f'decoders/{form}/token_ms'))} ms, "
                            f"{at(machine, f'decoders/{form}/percent_of_read'):.0f} %")


def calibrations(machine):
    return ", ".join(number(at(machine, f"privacy/calibration_epsilon_{epsilon}_ms")) for epsilon in (1, 10))


def plain(path, unit=""):
    return lambda machine: f"{number(at(machine, path))}{unit}"


# A table is (title, columns); a column is (title, function of a machine).
TABLES = (
    ("Machines", (
        ("processor", lambda m: f"{m['machine']['processor']}; {m['machine']['processors']} threads"),
        ("kernels", lambda m: f"{m['machine']['kernels']}, {m['machine']['kernels_int8']}"),
        ("GFLOP/s of a thread", plain("machine/fma_peak_gflops")),
        ("GB/s of memory; read", lambda m: f"{number(at(m, 'machine/memory_gb_per_s'))}; "
                                           f"{number(at(m, 'machine/read_gb_per_s'))}"),
        ("load before", plain("machine/load_before")),
        ("date", lambda m: m["machine"]["date"]),
    )),
    ("Recommending, one thread", (
        ("after a history, share of the peak",
         milliseconds_and_share("scoring/top_10_ms", "scoring/percent_of_peak", 75)),
        ("int8 over floats", over_floats("scoring", 1.3)),
        ("one more event", plain("scoring/appended_event_top_10_ms", " ms")),
        ("open, check, first list", plain("scoring/open_and_top_10_ms", " ms")),
        ("sampled privately over best", plain("sampling/mixed/sampled_over_top_10")),
    )),
    ("Texts", (
        ("encoder, one thread", milliseconds_and_share("encoder/ms", "encoder/percent_of_peak", 80)),
        ("int8 over floats", over_floats("encoder", 1.6)),
        ("all threads over one", plain("encoder/several_threads/over_one_thread")),
        ("a token, share of reading: f32", decoder("f32")),
        ("int8", decoder("int8")),
        ("int4", decoder("int4")),
        ("open int8", plain("decoders/int8/open_ms", " ms")),
    )),
    ("Training and privacy, one thread", (
        ("step, share of the peak", lambda m: share(at(m, "training/ordinary_percent_of_peak"), 65)),
        ("private over ordinary", private_over_ordinary),
        ("products", lambda m: f"{min(products(m)):.0f} to {max(products(m)):.0f} %"),
        ("attention: forward, backward", lambda m: f"{op(m, 'attention_forward', '200 x 64'):.0f}, "
                                                   f"{op(m, 'attention_backward', '200 x 64'):.0f} %"),
        ("calibrations, ms", calibrations),
        ("noise, ns", plain("privacy/noise_ns")),
    )),
)


def cell(column, machine):
    try:
        return column[1](machine)
    except Missing:
        return ""


def read_machine(path, name):
    """A machine whose row can be drawn."""
    try:
        machine = json.loads(path.read_text(encoding="utf-8"))
        [column[1](machine) for column in TABLES[0][1]]
        [cell(column, machine) for _, columns in TABLES for column in columns]
        return machine
    except (OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, Missing) as error:
        fail(f"{name}: it is not what `{COMMAND}` prints: {error!r}")


def read_machines():
    machines = []
    for path in sorted((ROOT / FOLDER).glob("*.json")):
        machine = read_machine(path, f"{FOLDER}/{path.name}")
        if not isinstance(machine.get("name"), str):
            fail(f"{FOLDER}/{path.name}: it has no 'name', which `processors.py add` writes")
        machines.append((machine["name"], machine))
    return sorted(machines, key=lambda machine: -machine[1]["machine"]["fma_peak_gflops"])


def markdown():
    machines, out = read_machines(), [HEAD, ""]
    for title, columns in TABLES:
        out += [f"## {title}", "", draw.row_of(["", *(column[0] for column in columns)])]
        out += [draw.row_of(["---"] * (len(columns) + 1))]
        out += [draw.row_of([name, *(cell(column, machine) for column in columns)]) for name, machine in machines]
        out += [""]
    return "\n".join([*out, FOOT, ""])


def add(name, path, replaces):
    machine = read_machine(Path(path), path)
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not words:
        fail(f"the name is {name!r}, allowed is one with a letter from a to z or a digit, for the file")
    file = ROOT / FOLDER / f"{words}.json"
    if file.exists() and not replaces:
        there = read_machine(file, f"{FOLDER}/{file.name}").get("name")
        fail(f"{FOLDER}/{file.name}: it has the machine {there!r}; allowed are another name, and --replace")
    file.parent.mkdir(exist_ok=True)
    draw.replace_file(str(file), json.dumps({"name": name} | machine | {"name": name}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    adds = commands.add_parser("add")
    adds.add_argument("name")
    adds.add_argument("file")
    adds.add_argument("--replace", action="store_true")
    for command in (adds, commands.add_parser("draw")):
        command.add_argument("--out", default=str(ROOT / MARKDOWN))
    known = parser.parse_args()
    if known.command == "add":
        add(known.name, known.file, known.replace)
    draw.replace_file(known.out, markdown())
    print(f"{known.out} has {len(read_machines())} rows")


if __name__ == "__main__":
    main()
