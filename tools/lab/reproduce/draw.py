#!/usr/bin/env python3
"""Draws results of `wisp-lab reproduce`: a table in Markdown and a plot in SVG, with Python's standard library alone.

    tools/lab/reproduce/draw.py --table phantom-table-2 --results docs/results/phantom-table-2.jsonl \\
        --markdown docs/papers/phantom-table-2.md --svg docs/papers/phantom-table-2.svg

A cell's value is the mean over its lines and their standard deviation (n - 1). All lines of a cell with its newest
recipe count, repeated seeds too; lines of older recipes, or of another model, are left out, by name, on standard error.
Any numeric field of the lines can be a metric or the plot's field: lines of `wisp-lab bench` need only table, row,
column, date, device and command beside it.
"""
import argparse
import json
import math
import os
import re
import shlex
import statistics
import sys

from svg_plot import draw_plot


def fail(sentence):
    print(f"draw.py: {sentence}", file=sys.stderr)
    sys.exit(3)


def read_table(name):
    path = name
    if not name.endswith(".json"):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "models", "reproduce",
        name + ".json")
    try:
        with open(path, encoding="utf-8") as file:
            table = json.load(file)
    except (OSError, ValueError) as error:
        fail(f"{name}: the table cannot be read: {error}")
    for key in ("name", "title", "reference", "data", "metrics", "cells"):
        if key not in table:
            fail(f"{name}: the table has no \"{key}\", which the drawing needs")
    return table


def read_lines(path, table):
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    cells = {(c["row"], c["column"]) for c in table["cells"]}
    lines = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        where = f"{path}, line {number}"
        if not line.endswith("\n"):
            fail(f"{where}: the last line is cut off; remove it and run its cell again")
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            fail(f"{where}: it is damaged, allowed is a JSON object on one line")
        if entry.get("table") != table["name"]:
            fail(f"{where}: it belongs to another table than {table['name']}")
        if (entry.get("row"), entry.get("column")) not in cells:
            fail(f"{where}: {table['name']} has no cell {entry.get('row')}/{entry.get('column')}")
        lines.append(entry)
    return lines


def made_with(line):
    return [line.get(field) for field in ("recipe", "model", "base")]


def lines_by_cell(table, lines):
    """Returns the lines of each cell, in the table's order. If a cell has lines of several recipes or models, only
    the newest count."""
    groups = {}
    for cell in table["cells"]:
        name = (cell["row"], cell["column"])
        own = [line for line in lines if (line["row"], line["column"]) == name]
        current = [line for line in own if made_with(line) == made_with(own[-1])] if own else []
        if len(current) < len(own):
            print(f"draw.py: {name[0]}/{name[1]}: {len(own) - len(current)} lines of an older recipe or model are left "
            f"out", file=sys.stderr)
        groups[name] = current
    return groups


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def summary(lines, field):
    """(mean, standard deviation or None, n) of a field, or None without a value."""
    values = [line[field] for line in lines if is_number(line.get(field))]
    if not values:
        return None
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values)


def spread_text(mean, deviation, scale, digits):
    text = f"{mean * scale:.{digits}f}"
    return text if deviation is None else f"{text} ± {deviation * scale:.{digits}f}"


def unique(values):
    return list(dict.fromkeys(values))


def escaped(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def row_of(cells):
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"


def baselines(table):
    return {(c["row"], c["column"]) for c in table["cells"] if c.get("kind") == "baseline"}


def number_of_runs(table, groups):
    """Returns the number of runs behind each cell that has a figure, if it is equal for all of them; else None. A
    baseline trains nothing: it has no runs."""
    found = {own[2] for name, lines in groups.items() if name not in baselines(table)
             for m in table["metrics"] if (own := summary(lines, m["field"]))}
    return found.pop() if len(found) == 1 else None


def metric_table(table, groups, metric, runs):
    rows, columns = unique(c["row"] for c in table["cells"]), unique(c["column"] for c in table["cells"])
    definitions = {(c["row"], c["column"]): c for c in table["cells"]}
    scale, digits, field = metric.get("scale", 1), metric.get("digits", 3), metric["field"]
    column_title = table.get("column_title", "")
    out = [f"## {metric['title']}", "", row_of([table.get("row_title",
    "")] + [f"{column_title} {c}".strip() for c in columns]),
           "| --- |" + " --- |" * len(columns)]
    for row in rows:
        own = [c for c in table["cells"] if c["row"] == row]
        if all(groups[(row, c["column"])] for c in own) and not any(
            summary(groups[(row, c["column"])], field) or field in c.get("published", {}) for c in own):
            continue  # this row has other figures, all of them measured
        cells = []
        for column in columns:
            definition = definitions.get((row, column))
            if definition is None:
                cells.append("")
                continue
            ours = summary(groups[(row, column)], field)
            text = "not run" if ours is None else spread_text(ours[0], ours[1], scale, digits)
            if ours is not None and runs is None and definition.get("kind") != "baseline":
                text += f" (n {ours[2]})"
            published = definition.get("published", {}).get(field)
            if published is not None:
                deviation = definition.get("published_deviation", {}).get(field)
                text += f"; published {spread_text(published, deviation, scale, digits)}"
            cells.append(text)
        out.append(row_of([row] + cells))
    return out + [""]


def shown(field, value):
    if isinstance(value, bool) or value is None:
        return ""
    if field in ("epsilon", "delta"):  # upper bounds are rounded up
        digits = 3 - math.floor(math.log10(value)) if 0 < value < 1 else 3
        return f"{math.ceil(value * 10**digits) / 10**digits:.10g}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


CONDITIONS = {"epsilon": "epsilon, accounted", "delta": "delta", "noise_multiplier": "noise multiplier",
              "samples": "samples", "steps": "steps", "threads": "threads", "ops": "instruction set"}


def conditions(table, groups):
    """Returns the values that all runs, or all runs of a column, have in common; the rest stands in the lines of the
    results."""
    common, by_column = [], []
    columns = unique(c["column"] for c in table["cells"])
    for field, title in CONDITIONS.items():
        found = {column: unique(shown(field, line[field]) for (_, own), lines in groups.items() if own == column
                                for line in lines if line.get(field) is not None) for column in columns}
        values = unique(value for own in found.values() for value in own)
        if len(values) == 1:
            common.append(f"{title} {values[0]}")
        elif values and all(len(own) < 2 for own in found.values()):
            by_column.append(row_of([title] + ["".join(found[column]) for column in columns]))
    out = [f"The same in every run that states it: {', '.join(common)}.", ""] if common else []
    if by_column:
        column_title = table.get("column_title", "")
        out += [row_of([""] + [f"{column_title} {c}".strip() for c in columns]), "| --- |" + " --- |" * len(columns),
                *by_column, ""]
    return out


def command_of_all(line, results):
    """The command of a line, for all cells and seeds of the table, as the program of today has it."""
    command = re.sub(r"^wisp reproduce", "wisp-lab reproduce", line.get("command", "not noted"))
    command = re.sub(r" --cell ('([^']|'\\'')*'|\S+)+", "", command)
    return re.sub(r" --out \S+", lambda _: f" --out {results} --skip-done", re.sub(r" --seed \d+", "", command))


def markdown(table, groups, arguments):
    lines = [line for group in groups.values() for line in group]
    folder = os.path.dirname(os.path.abspath(arguments.markdown))
    relative = lambda path: os.path.relpath(os.path.abspath(path), folder)
    runs = number_of_runs(table, groups)
    out = [f"# {table['title']}", ""]
    out += [note + "\n" for note in table.get("notes", [])[:1]]
    out += [f"After {table['reference']}. Data: {table['data']['label']}. "
            + ("Each cell is one run." if runs == 1 else f"A cell is the mean over its {runs or 'n'} runs ± their "
               "standard deviation."), ""]
    if arguments.svg:
        out += [f"![{table['title']}]({relative(arguments.svg)})", ""]
    for metric in table["metrics"]:
        out += metric_table(table, groups, metric, runs)
    out += ["## Conditions", ""]
    out += [f"- {note}" for note in table.get("notes", [])[1:]] + [""] * (len(table.get("notes", [])) > 1)
    out += conditions(table, groups)
    if lines:
        devices, dates = (unique(line.get(field, "not noted") for line in lines) for field in ("device", "date"))
        said = f"Device: {escaped('; '.join(devices))}. Dates: {', '.join(sorted(dates))}."
        seconds = [line["seconds"] for line in lines if is_number(line.get("seconds"))]
        out += [said + (f" Wall time of all runs: {sum(seconds) / 60:.1f} minutes." if seconds else "")]
    results = f"[{os.path.basename(arguments.results)}]({relative(arguments.results)})"
    out += ["", f"Each run has a line in {results}. Run and drawn by:", "", "```",
            *unique(command_of_all(line, arguments.results) for line in lines),
            "tools/lab/reproduce/draw.py " + shlex.join(arguments.shown), "```"]
    return "\n".join(out) + "\n"


def plot_series(table, groups):
    """Returns the data of the plot, scaled: columns, and per row {column: (mean, deviation, published)}."""
    field = table["plot"]["field"]
    metric = next((m for m in table["metrics"] if m["field"] == field), {"title": field})
    scale = metric.get("scale", 1)
    series = {}
    for cell in table["cells"]:
        ours = summary(groups[(cell["row"], cell["column"])], field)
        published = cell.get("published", {}).get(field)
        series.setdefault(cell["row"], {})[cell["column"]] = (
            None if ours is None else ours[0] * scale, None if ours is None or ours[1] is None else ours[1] * scale,
            None if published is None else published * scale)
    return metric["title"], unique(c["column"] for c in table["cells"]), series


def replace_file(path, text):
    temporary = f"{path}.tmp-{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True, help="a table of models/reproduce, or a path that ends in .json")
    parser.add_argument("--results", required=True, help="the lines that wisp-lab reproduce has written")
    parser.add_argument("--markdown", required=True, help="file to write")
    parser.add_argument("--svg", help="file to write")
    arguments = parser.parse_args()
    arguments.shown = [part for name in ("table", "results", "markdown", "svg") if getattr(arguments, name)
                       for part in (f"--{name}", getattr(arguments, name))]
    table = read_table(arguments.table)
    groups = lines_by_cell(table, read_lines(arguments.results, table))
    if arguments.svg and not isinstance(table.get("plot"), dict):
        print(f"draw.py: {table['name']}: the table has no \"plot\", so none is drawn: it says what, as in "
              '{"kind": "bars", "field": "ndcg@10"}', file=sys.stderr)
        arguments.svg = None
    if arguments.svg:
        title, columns, series = plot_series(table, groups)
        replace_file(arguments.svg, draw_plot(table["plot"], table["title"], title, table.get("column_title", ""),
        columns, series))
    replace_file(arguments.markdown, markdown(table, groups, arguments))


if __name__ == "__main__":
    main()
