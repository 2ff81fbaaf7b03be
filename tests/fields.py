"""Checks that the reference of recipes and the ports say what the table of fields says.
(runtime/train/run/run_fields.cc)

  python3 tests/fields.py WISP_LAB REPOSITORY

models/README.md: type, default, range and meaning of each key. The ports: each field that the C struct
wisp_personalise_options takes is there under its name, and the defaults that headers and documentation name are those
of the table.
"""
import json
import os
import re
import subprocess
import sys

LAB, ROOT = sys.argv[1:]
FIELDS = json.loads(subprocess.run([LAB, "fields", "--json"], check=True, capture_output=True, text=True).stdout)
faults = []


def source(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def bound(value):
    """A bound as the reference writes it: 1e6, 4e9, 1048576, 0.001."""
    if value == int(value) and abs(value) < 1e5:
        return str(int(value))
    digits, exponent = f"{value:.6e}".split("e")
    digits = digits.rstrip("0").rstrip(".")
    if len(digits) > 3 or 0 <= int(exponent) < 5 or -5 < int(exponent) < 0:
        return f"{value:g}" if value < 1 else str(int(value))
    return f"{digits}e{int(exponent)}"


def plain(text):
    """The text of a cell: no link in brackets, no link, no backticks."""
    text = re.sub(r" \(\[[^\]]*\]\([^)]*\)\)", "", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").strip()


def default(field, kind):
    """The default as the reference writes it; None where nothing is to be named."""
    text = field["defaults"].get(kind, "")
    if field["type"] in ("choice", "text"):
        return text.strip('"') or None
    return re.sub(r"e([+-])0*", lambda m: "e" + m[1].strip("+"), text) if text else None


def rows():
    """Returns {(path, kind): [type, allowed, meaning]} of the reference."""
    found, here = {}, None
    for line in source("models/README.md").splitlines():
        if heading := re.match(r"### (?:`([a-z_.]+)`|(Top level))(.*)$", line):
            here = ((heading[1] + ".") if heading[1] else "", "classes" if "classifier" in heading[3] else "events")
        elif line.startswith("#"):
            here = None
        elif here and (row := re.match(r"\| `([a-z0-9_]+)` \|(.*)\|(.*)\|(.*)\|$", line)):
            found[here[0] + row[1], here[1]] = [plain(cell) for cell in row.groups()[1:]]
    return found


def check_reference():
    written = rows()
    for field in FIELDS:
        if field["type"] == "object":
            continue
        kind = "classes" if "events" not in field["defaults"] else "events"
        place = next((p for p in ((field["path"], kind), (field["path"], "events")) if p in written), None)
        if place is None:
            faults.append(f"models/README.md lacks {field['path']} ({kind})")
            continue
        kinds = [kind]
        if kind == "events" and "classes" in field["defaults"] and (field["path"], "classes") in written:
            check_row(field, "classes", written[field["path"], "classes"], False)
        elif kind == "events" and default(field, "classes") not in (None, default(field, "events")):
            kinds.append("classes")
        check_row(field, kind, written[place], len(kinds) > 1)


def check_row(field, kind, row, other):
    name = f"models/README.md, {field['path']} ({kind})"
    is_type, allowed, meaning = row
    given = default(field, kind)
    wanted = field["type"] + (", " + given if given is not None else "")
    if other:
        wanted += f" (classifier: {default(field, 'classes')})"
    if given is None or given == "0":  # what none or 0 stands for may be said in words
        if not is_type.startswith(field["type"]):
            faults.append(f"{name}: the type is '{is_type}', not '{field['type']}'")
    elif is_type != wanted:
        faults.append(f"{name}: type and default are '{is_type}', not '{wanted}'")
    if "low" in field and not allowed.startswith(f"{bound(field['low'])} to {bound(field['high'])}"):
        faults.append(f"{name}: allowed is '{allowed}', not '{bound(field['low'])} to {bound(field['high'])}'")
    if field.get("words") and field["type"] == "choice" and allowed.split(", ") != field["words"]:
        faults.append(f"{name}: allowed is '{allowed}', not '{', '.join(field['words'])}'")
    if kind == "events" or "events" not in field["defaults"]:
        if meaning != field["sentence"]:
            faults.append(f"{name}: the meaning is\n    {meaning}\n  and not\n    {field['sentence']}")


def camel(name):
    return re.sub(r"_(.)", lambda m: m[1].upper(), name)


def check_ports():
    header = source("ports/c/wisp.h")
    struct = header[header.index("typedef struct wisp_personalise_options"):header.index("} wisp_personalise_options;")]
    ports = {
        "ports/python/wisp/_training.py": (source("ports/python/wisp/_training.py"), str),
        "ports/android/src/main/kotlin/dev/wisp/Personalise.kt":
            (source("ports/android/src/main/kotlin/dev/wisp/Personalise.kt"), camel),
        "ports/wasm/source/device.d.ts": (source("ports/wasm/source/device.d.ts"), camel),
    }
    kotlin = {"session_gap": "sessionGapSeconds"}
    of_ports = [f for f in FIELDS if f["port"]]
    assert len(of_ports) > 8, of_ports
    for field in of_ports:
        name = field["port"]
        if "device" not in field["defaults"]:
            continue
        member = re.search(rf"\b{name};(.*)", struct)
        if not member:
            faults.append(f"ports/c/wisp.h: wisp_personalise_options lacks {name}, of {field['path']}")
            continue
        said, value = re.search(r"\b0: ([0-9.]+)", member[1]), field["defaults"]["device"]
        if said and float(said[1]) != float(value):
            faults.append(f"ports/c/wisp.h: {name} is said to be {said[1]} by default, which is {value}")
        for path, (text, spelt) in ports.items():
            wanted = kotlin.get(name, spelt(name)) if path.endswith(".kt") else spelt(name)
            if not re.search(rf"\b{wanted}\b\??:", text):
                faults.append(f"{path} lacks {wanted}, of {field['path']}")
    # Python names four defaults in one sentence, Swift one.
    device = {f["port"]: f["defaults"].get("device") for f in of_ports}
    named = re.search(r"([a-z_, ()0-9]+): 0: ([0-9., ]+[0-9])\.", ports["ports/python/wisp/_training.py"][0])
    names = re.sub(r" \([^)]*\)", "", named[1]).strip().split(", ")
    for name, value in zip(names, named[2].split(", ")):
        if float(value) != float(device[name]):
            faults.append(f"ports/python/wisp/_training.py: {name} is said to be {value} by default, "
                          f"which is {device[name]}")
    assert names == ["expected_batch", "epochs", "learning_rate", "clipping_norm"], names
    swift = source("ports/apple/Sources/Wisp/Personaliser.swift")
    passes = re.search(r"/// Passes over the records; 0: (\d+)\.", swift)
    if float(passes[1]) != float(device["epochs"]):
        faults.append(f"Personaliser.swift: epochs are said to be {passes[1]} by default, which is {device['epochs']}")


check_reference()
check_ports()
for fault in faults:
    print(fault, file=sys.stderr)
sys.exit(1 if faults else 0)
