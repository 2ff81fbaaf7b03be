#!/usr/bin/env python3
"""Prints the parts of the C interface that JavaScript needs: places of fields, and functions that Emscripten exports.

    ../../tests/abi/interface.py program ../c > p.c && emcc -I ../c p.c -o p.js
    node p.js | layout.py javascript SOURCE... > layout.js
    node p.js | layout.py functions SOURCE... > exported.txt

The lines are those of tests/abi/interface.py for the platform in question. Only what the sources name is kept:
everything else would be loaded with each page, and nothing could call it.
"""

import json
import re
import sys
from pathlib import Path

NUMBERS = {
    "double": "f64",
    "float": "f32",
    "uint32_t": "u32",
    "int32_t": "i32",
    "uint64_t": "u64",
    "int64_t": "i64",
    "size_t": "u32",
    "int": "i32",
}


def camel(name):
    return re.sub(r"_(.)", lambda m: m.group(1).upper(), name)


def type_of(declaration, size, callbacks):
    if "[" in declaration:
        return "bytes"
    if re.match(r"const char \*\w+$", declaration):
        return "text"
    if "*" in declaration or declaration.split()[0] in callbacks:
        return "address"
    known = NUMBERS.get(declaration.split()[0])
    if known:
        return known
    return {4: "i32"}.get(size, "bytes")  # an enum, or a struct within


def layout(lines, named):
    constants, structs = {}, {}
    callbacks = {match[1] for line in lines if (match := re.match(r"callback typedef .*?\(\*(\w+)\)", line))}
    for line in lines:
        if match := re.match(r"constant (\w+) (-?\d+)$", line):
            if match[1].startswith(named.prefixes):
                constants[match[1]] = int(match[2])
        elif match := re.match(r"struct (\w+) (\d+) aligned", line):
            structs[match[1]] = {"size": int(match[2]), "fields": {}}
        elif match := re.match(r"field (\w+)\.(\w+) at (\d+), (\d+) bytes, (.*)$", line):
            structs[match[1]]["fields"][camel(match[2])] = {
                "at": int(match[3]),
                "type": type_of(match[5], int(match[4]), callbacks),
            }
    return {"constants": constants, "structs": {name: structs[name] for name in structs if name in named.names}}


def functions(lines, named):
    known = [re.search(r"(wisp_\w+)\(", line)[1] for line in lines if line.startswith("function ")]
    return ["_" + name for name in [*filter(named.names.__contains__, known), "malloc", "calloc", "free", "memalign"]]


class Named:
    """The names in the sources: functions and structs by their names, constants by their prefixes."""

    def __init__(self, sources):
        text = "".join(Path(source).read_text() for source in sources)
        self.names = set(re.findall(r"\bwisp_\w+", text))
        self.prefixes = tuple(re.findall(r"\bWISP_\w+_(?=\")", text))

    def absent(self, lines):
        """The names that the headers lack; those of callbacks.c begin with wisp_wasm_."""
        there = set(re.findall(r"\b(?:wisp|WISP)_\w+", "\n".join(lines)))
        prefixes = [prefix for prefix in self.prefixes if not any(name.startswith(prefix) for name in there)]
        return sorted(name for name in self.names - there if not name.startswith("wisp_wasm_")) + prefixes


def main():
    lines = sys.stdin.read().splitlines()
    if not any(line.startswith("struct ") for line in lines):
        sys.exit("layout.py: the input has no structs; it must be what the program of tests/abi/interface.py prints")
    what, sources = sys.argv[1:2], sys.argv[2:]
    if what not in (["functions"], ["javascript"]) or not sources:
        sys.exit("usage: layout.py javascript|functions SOURCE... < lines")
    named = Named(sources)
    if absent := named.absent(lines):
        sys.exit(f"layout.py: the headers of ports/c have no {', '.join(absent)}")
    if what == ["functions"]:
        print("\n".join(functions(lines, named)))
    else:
        print("// Made by ports/wasm/layout.py from the headers of ports/c.")
        print("export default " + json.dumps(layout(lines, named), separators=(",", ":")) + ";")


if __name__ == "__main__":
    main()
