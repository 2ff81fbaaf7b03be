"""Checks that models/README.md explains every key of a recipe that the program reads, and nothing else.

  python3 tests/recipe_keys.py WISP models/README.md

The keys are what the program itself says: it answers an unknown key in a section with those that it knows there. In
the file each section is a heading of its path in backticks ("### `training.optimizer`", with " of a classifier" behind
it where wisp train --labelled reads another one). Each of its keys is a row of a table that begins with the key in
backticks.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

WISP, README = sys.argv[1:]
UNKNOWN = "no such key"
KINDS = {"": "--data", " of a classifier": "--labelled"}  # the option that gives the data of each kind


def answer(data, path, value):
    """Returns the program's error for a recipe with `value` at `path`."""
    recipe = value
    for key in reversed(path):
        recipe = {key: recipe}
    if data == "--labelled" and path[:1] != ["dp_fp"]:
        recipe["dp_fp"] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "r.json")
        with open(file, "w") as out:
            json.dump(recipe, out)
        out = os.path.join(folder, "o")
        run = subprocess.run([WISP, "train", "--recipe", file, data, "none", "--out", out],
                             capture_output=True, text=True)
    return run.stderr


def sections(data, path=()):
    """Returns {path: its keys} for the section, or list of sections, at `path` and for those within; empty if it is
    neither."""
    known = r"has the unknown key '%s', allowed are ([^;\n]*)" % UNKNOWN
    said = (re.search(known, answer(data, list(path), {UNKNOWN: 1}))
            or re.search(known, answer(data, list(path), [{UNKNOWN: 1}])))
    if not said:
        return {}
    found = {".".join(path): set(said[1].split(", "))}
    for key in said[1].split(", "):
        found.update(sections(data, (*path, key)))
    return found


def explained():
    """Returns {(path, kind): keys} of the file."""
    found, here = {}, None
    with open(README) as file:
        for line in file:
            heading = re.match(r"### (?:`([a-z_.]+)`|(Top level))(.*)$", line)
            if heading:
                here = found.setdefault((heading[1] or "", heading[3]), set())
            elif line.startswith("#"):
                here = None
            elif here is not None and (row := re.match(r"\| `([a-z0-9_]+)` \|", line)):
                here.add(row[1])
    return found


written = explained()
faults, used = [], set()
for kind, data in KINDS.items():
    known = sections(data)
    assert len(known) > 5, known
    for path, keys in known.items():
        place = (path, kind) if (path, kind) in written else (path, "")
        used.add(place)
        there = written.get(place, set())
        name = f"'{path or 'top level'}'{place[1]}"
        faults += [f"{name} lacks the key {key}" for key in sorted(keys - there)]
        faults += [f"{name} explains {key}, which wisp train {data} does not know"
                   for key in sorted(there - keys)]
faults += [f"'{path}'{kind} is no section" for path, kind in written.keys() - used]
for fault in faults:
    print(f"{README}: {fault}", file=sys.stderr)
sys.exit(1 if faults else 0)
