#!/usr/bin/env python3
"""Lists as lines of text what programs compiled against the C interface rely on.

    interface.py program DIR > p.c && cc -I DIR p.c -o p && ./p     # the lines of the headers in DIR
    interface.py compare RECORDED NOW  # checks that programs of the first work with the second

A line is a constant and its value; a function or a type of functions and its declaration; a struct, its size and
alignment; or a field, its offset, size and type. pycparser reads the headers (Debian: python3-pycparser), and the
compiler that compiles the program lays the structs out.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pycparser import c_ast, c_generator, c_parser

HEADERS = ("wisp.h", "wisp_embed.h", "wisp_deployment.h", "wisp_fleet.h", "wisp_text.h")
STANDARD = "typedef unsigned long size_t; " + " ".join(
    f"typedef {sign}{kind} {name}{bits}_t;"
    for sign, name in (("signed ", "int"), ("unsigned ", "uint"))
    for bits, kind in ((8, "char"), (16, "short"), (32, "int"), (64, "long long")))


def headers_of(folder):
    return [name for name in HEADERS if (Path(folder) / name).is_file()]


def parse(folder):
    """Returns the declarations of the headers; those of the C library are STANDARD, whose sizes nothing here depends
    on."""
    with tempfile.TemporaryDirectory() as work:
        for name in ("stddef.h", "stdint.h"):
            (Path(work) / name).write_text("")
        (Path(work) / "all.c").write_text("".join(f'#include "{name}"\n' for name in headers_of(folder)))
        text = subprocess.run(["cc", "-E", "-P", "-nostdinc", "-D__attribute__(x)=", "-I", work, "-I", folder,
                               f"{work}/all.c"], check=True, capture_output=True, text=True).stdout
    return c_parser.CParser().parse(STANDARD + text).ext


def is_function(type_):
    while isinstance(type_, c_ast.PtrDecl):
        type_ = type_.type
    return isinstance(type_, c_ast.FuncDecl)


def program(folder):
    spell = c_generator.CGenerator().visit
    one_line = lambda node: re.sub(r"\s+", " ", spell(node))
    out = []
    said = lambda line: out.append(f'  puts("{line}");')

    def enumerators(enum):
        for e in enum.values.enumerators if enum.values else ():
            out.append(f'  printf("constant {e.name} %lld\\n", (long long){e.name});')

    def struct(name, fields):
        out.append(f'  printf("struct {name} %zu aligned to %zu\\n", sizeof({name}), ALIGNMENT({name}));')
        for f in fields:
            out.append(f'  printf("field {name}.{f.name} at %zu, %zu bytes, {one_line(f)}\\n", '
                       f"offsetof({name}, {f.name}), sizeof((({name}*)0)->{f.name}));")

    for node in parse(folder):
        if not (getattr(node, "name", None) or "").startswith("wisp"):
            continue
        if isinstance(node, c_ast.Decl) and is_function(node.type):
            said(f"function {one_line(node)}")
        elif isinstance(node, c_ast.Typedef) and is_function(node.type):
            said(f"callback {one_line(node)}")
        elif isinstance(node, c_ast.Typedef) and isinstance(node.type.type, c_ast.Enum):
            enumerators(node.type.type)
        elif isinstance(node, c_ast.Typedef) and isinstance(node.type.type, c_ast.Struct) and node.type.type.decls:
            struct(node.name, node.type.type.decls)
        elif not isinstance(node, c_ast.Typedef):
            sys.exit(f"interface.py does not know what this is: {one_line(node)}")
    print("#include <stddef.h>\n#include <stdio.h>\n#define ALIGNMENT(t) offsetof(struct { char c; t x; }, x)")
    print("".join(f'#include "{name}"\n' for name in headers_of(folder)))
    print("int main(void) {\n" + "\n".join(out) + "\n  return 0;\n}")


def lines_of(path):
    return [line for line in Path(path).read_text().splitlines() if line and not line.startswith("#")]


def key(line):
    """Returns the subject of a line: a function's name is the last word before its arguments."""
    kind, rest = line.split(" ", 1)
    if kind in ("function", "callback"):
        return kind, re.search(r"(\w+)\)?\(", rest).group(1)
    return kind, rest.split(" ", 1)[0]


def compare(recorded_path, now_path):
    recorded, now = lines_of(recorded_path), {key(line): line for line in lines_of(now_path)}
    may_grow = {name.split(".")[0] for kind, name in now if kind == "field" and name.endswith(".size")
                and " at 0, " in now[kind, name]}
    failures = []
    for line in recorded:
        k = key(line)
        new = now.get(k)
        if new == line or (k[0] == "field" and k[1].endswith(".not_read")):  # reserved space that is used now
            continue
        if new is None:
            failures.append(f"missing: {line}")
        elif k[0] == "struct" and k[1] in may_grow:
            old_size, new_size = (int(re.search(r" (\d+) aligned", s).group(1)) for s in (line, new))
            if new_size < old_size or line.split(" aligned ")[1] != new.split(" aligned ")[1]:
                failures.append(f"changed: {line}\n     now: {new}")
        else:
            failures.append(f"changed: {line}\n     now: {new}")
    added = set(now) - {key(line) for line in recorded}
    for line in failures:
        print(line)
    print(f"{len(recorded)} recorded, {len(failures)} broken, {len(added)} added")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["program"] and len(sys.argv) == 3:
        program(sys.argv[2])
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 4:
        sys.exit(compare(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
