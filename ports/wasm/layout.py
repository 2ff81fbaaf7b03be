#!/usr/bin/env python3
"""Where the C interface's fields lie, for JavaScript.

    ../../tests/abi/interface.py program ../c > p.c && emcc -I ../c p.c -o p.js
    node p.js | layout.py javascript > layout.js
    ... | layout.py functions [REGEX]  # what Emscripten exports: the functions whose names match, and those of memory

The lines are those of tests/abi/interface.py, of the platform that is asked for.
"""

import json
import re
import sys

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


def layout(lines):
    constants, structs = {}, {}
    callbacks = {match[1] for line in lines if (match := re.match(r"callback typedef .*?\(\*(\w+)\)", line))}
    for line in lines:
        if match := re.match(r"constant (\w+) (-?\d+)$", line):
            constants[match[1]] = int(match[2])
        elif match := re.match(r"struct (\w+) (\d+) aligned", line):
            structs[match[1]] = {"size": int(match[2]), "fields": {}}
        elif match := re.match(r"field (\w+)\.(\w+) at (\d+), (\d+) bytes, (.*)$", line):
            structs[match[1]]["fields"][camel(match[2])] = {
                "at": int(match[3]),
                "type": type_of(match[5], int(match[4]), callbacks),
            }
    return {"constants": constants, "structs": structs}


def functions(lines, which):
    names = [re.search(r"(wisp_\w+)\(", line)[1] for line in lines if line.startswith("function ")]
    return [
        "_" + name for name in [*filter(re.compile(which).fullmatch, names), "malloc", "calloc", "free", "memalign"]
    ]


def main():
    lines = sys.stdin.read().splitlines()
    if not any(line.startswith("struct ") for line in lines):
        sys.exit("layout.py: the input has no structs; it must be what the program of tests/abi/interface.py prints")
    if sys.argv[1:2] == ["functions"]:
        print("\n".join(functions(lines, *sys.argv[2:] or [".*"])))
    elif sys.argv[1:] == ["javascript"]:
        print("// Made by ports/wasm/layout.py from the headers of ports/c.")
        print("export default " + json.dumps(layout(lines), separators=(",", ":")) + ";")
    else:
        sys.exit("usage: layout.py javascript|functions < lines")


if __name__ == "__main__":
    main()
