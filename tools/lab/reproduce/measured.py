#!/usr/bin/env python3
"""Draws docs/measured.md from its figures, and writes figures down where they are measured.

    tools/lab/reproduce/measured.py draw                         writes docs/measured.md
    tools/lab/reproduce/measured.py list [FIGURE...]             each figure, its newest values, and how they are read
    tools/lab/reproduce/measured.py record FIGURE... -- COMMAND  runs the command and takes the figures from its JSON
    tools/lab/reproduce/measured.py note FIGURE=VALUE... -- COMMAND  writes down values that the command said in words

docs/results/measured.json has the page: sections with rows, and for each figure its digits, unit and bound. Values come
from docs/results/measured.jsonl (a line for each), from tests/gates.json, or from another table of docs/results. Lines
of the newest day and device count; several of them are a range. A figure beyond its bound is set in bold.
"""
import argparse
import datetime
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import draw

ROOT = Path(__file__).resolve().parents[3]
PAGE, LINES, MARKDOWN = "docs/results/measured.json", "docs/results/measured.jsonl", "docs/measured.md"
COLUMNS = ("what", "measured", "goal", "date", "command")


def fail(sentence):
    print(f"measured.py: {sentence}", file=sys.stderr)
    sys.exit(3)


def read_lines(page):
    lines = []
    for number, text in enumerate((ROOT / LINES).read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            values = line["figure"], float(line["value"]), line["date"], line["device"], line["command"]
        except (ValueError, KeyError, TypeError) as error:
            fail(f"{LINES}, line {number}: it is damaged: {error!r}")
        if values[0] not in page["figures"]:
            fail(f"{LINES}, line {number}: {PAGE} has no figure '{values[0]}'")
        lines.append(line)
    return lines


class Figures:
    def __init__(self):
        self.page = json.loads((ROOT / PAGE).read_text(encoding="utf-8"))
        self.lines = read_lines(self.page)
        self.gates = json.loads((ROOT / "tests/gates.json").read_text(encoding="utf-8"))

    def of_gate(self, names):
        """The value of a gate, or the ratio of two."""
        values = [self.gates[name]["value"] for name in names]
        return [values[0] / values[1] if len(values) == 2 else values[0]], self.gates[names[0]]["date"], ""

    def of_table(self, name, row, column, field):
        table = draw.read_table(name)
        cells = draw.lines_by_cell(table, draw.read_lines(str(ROOT / f"docs/results/{name}.jsonl"), table))
        lines = cells[(row, column)]
        mean = draw.summary(lines, field)
        if mean is None:
            fail(f"docs/results/{name}.jsonl: {row}/{column} has no {field}")
        return [mean[0]], max(line["date"] for line in lines), lines[-1]["device"]

    def values(self, name):
        """Returns (values, date, device) of a figure, newest only."""
        figure = self.page["figures"].get(name) or fail(f"{PAGE}: there is no figure '{name}'")
        if "gate" in figure:
            return self.of_gate(figure["gate"])
        if "table" in figure:
            return self.of_table(*figure["table"])
        own = [line for line in self.lines if line["figure"] == name] or fail(f"{LINES}: '{name}' was not measured")
        date, device = max((line["date"], line["device"]) for line in own)
        return [line["value"] for line in own if (line["date"], line["device"]) == (date, device)], date, device

    def text(self, name):
        figure, (values, _, _) = self.page["figures"][name], self.values(name)
        ends = [value * figure.get("scale", 1) for value in (min(values), max(values))]
        shown = [f"{value:,.{figure.get('digits', 0)}f}" for value in ends]
        text = " to ".join(dict.fromkeys(shown)) + figure.get("unit", "")
        bound = figure.get("bound")
        if bound is None:
            return text
        worst = ends[1] if bound[0] == "<" else ends[0]
        holds = worst <= float(bound[2:]) if bound[0] == "<" else worst >= float(bound[2:])
        return text if holds else f"**{text}**"

    def named(self, row):
        return re.findall(r"\{([\w.-]+)\}", row["measured"])

    def row(self, row):
        dates = sorted({self.values(name)[1] for name in self.named(row)})
        measured = re.sub(r"\{([\w.-]+)\}", lambda match: self.text(match[1]), row["measured"])
        return draw.row_of([row["what"], measured, row.get("goal", ""), ", ".join(dates), row["command"]])

    def devices(self, section):
        found = {}
        for row in section["rows"]:
            for name in self.named(row):
                _, date, device = self.values(name)
                if device:
                    found.setdefault(device, set()).add(date)
        return "; ".join(f"{device} ({', '.join(sorted(dates))})" for device, dates in sorted(found.items()))

    def markdown(self):
        out = [f"# {self.page['title']}", "", *wrapped(self.page["head"])]
        for section in self.page["sections"]:
            out += [f"## {section['title']}", "", draw.row_of(COLUMNS), draw.row_of(["---"] * len(COLUMNS))]
            out += [self.row(row) for row in section["rows"]]
            out += ["", *wrapped([f"On: {self.devices(section)}.", *section["notes"]])]
        return "\n".join(out).rstrip("\n") + "\n"


def wrapped(paragraphs):
    return [line for paragraph in paragraphs for line in textwrap.wrap(
        paragraph, 120, break_long_words=False, break_on_hyphens=False) + [""]]


def device():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return f"{model[1] if model else 'unnamed processor'}, {len(os.sched_getaffinity(0))} cores"


def write_down(values, command):
    today, where = datetime.date.today().isoformat(), device()
    with open(ROOT / LINES, "a", encoding="utf-8") as file:
        for name, value in values:
            line = {"figure": name, "value": value, "date": today, "device": where, "command": command}
            print(json.dumps(line), file=file)
            print(f"{name}: {value:g}")


def record(figures, names, command):
    """The figures' values out of the JSON that the command prints, by the path of each."""
    for name in names:
        if "json" not in figures.page["figures"].get(name, {}):
            fail(f"{PAGE}: '{name}' says no path in the command's JSON (\"json\"); use note")
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    if said.returncode != 0:
        fail(f"{shlex.join(command)}: it exits {said.returncode}: {said.stderr.strip()[-300:]}")
    values = []
    for name in names:
        value = json.loads(said.stdout)
        for key in figures.page["figures"][name]["json"]:
            value = value[key]
        values.append((name, float(value)))
    write_down(values, shlex.join(command))


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    command = arguments[split + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["draw", "list", "record", "note"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", default=str(ROOT / MARKDOWN))
    known = parser.parse_args(arguments[:split])
    figures = Figures()
    if known.what == "draw":
        draw.replace_file(known.out, figures.markdown())
    elif known.what == "list":
        for name in known.names or figures.page["figures"]:
            values, date, where = figures.values(name)
            path = figures.page["figures"][name].get("json", "")
            print(name, values, date, where or "tests/gates.json", path, sep="\t")
    elif not command or not known.names:
        fail("record and note need figures, and the command behind '--'")
    elif known.what == "record":
        record(figures, known.names, command)
    else:
        values = [name.partition("=") for name in known.names]
        for name, _, _ in values:
            if name not in figures.page["figures"]:
                fail(f"{PAGE}: there is no figure '{name}'")
        write_down([(name, float(value)) for name, _, value in values], shlex.join(command))


if __name__ == "__main__":
    main()
