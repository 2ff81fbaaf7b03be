#!/usr/bin/python3
"""Checks ELF files against a table: what they show and need, how they are protected, how large they are.

    tests/elf/hold.py [OPTION...] FILE_OR_FOLDER...    of a folder every program and library, at any depth
      --table FILE    default: tests/elf.json, which says what its words mean
      --with NAME     an option of the build that brings a library (`needs_with` of the table); more than once
      --must FILE     a file that must be among them; more than once
      --plain         a build without WISP_HARDENING: what hardening adds is not asked for

A line for each file, and one for each thing that is wrong; exit code 1 if there is any.
"""

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/elf"))
sys.dont_write_bytecode = True
import elf_file  # noqa: E402

LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
FORTIFIED = re.compile(r"__(?!stack_)\w+_chk$")


def functions_of(library):
    """Returns the functions of libwisp, libwisp-text or libwisp-runtime: those in the record of the interface, each
    in the libraries that the headers name above it."""
    record = (ROOT / "tests/abi/lp64.txt").read_text()
    recorded = set(re.findall(r"^function .*?\b(wisp_\w+)\(", record, re.MULTILINE))
    parts = {}
    for header in sorted((ROOT / "ports/c").glob("wisp*.h")):
        if header.name == "wisp_fleet_server.h":  # for the port to Python; in none of the libraries
            continue
        part = "libwisp-runtime"
        for line in header.read_text().splitlines():
            if line.startswith("/* ---- "):
                part = (
                    "libwisp"
                    if "(in libwisp alone)" in line
                    else "libwisp-text" if "(in libwisp and libwisp-text)" in line else "libwisp-runtime"
                )
            for name in re.findall(r"^WISP_API .*?\b(wisp_\w+)\(", line):
                parts[name] = part
    if set(parts) != recorded:
        sys.exit(
            "the functions of the headers are not those of tests/abi/lp64.txt (tests/abi.sh): "
            + ", ".join(sorted(set(parts) ^ recorded))
        )
    within = {
        "libwisp-runtime": ("libwisp-runtime",),
        "libwisp-text": ("libwisp-runtime", "libwisp-text"),
        "libwisp": ("libwisp-runtime", "libwisp-text", "libwisp"),
    }[library]
    return [name for name, part in parts.items() if part in within]


def expand(names, groups):
    return sorted(n for name in names for n in groups.get(name, [name]))


def differences(found, allowed, has_not, has_too):
    for name in sorted(set(allowed) - set(found)):
        yield f"{has_not} {name}"
    for name in sorted(set(found) - set(allowed)):
        yield f"{has_too} {name}"


def wrong_names(elf, entry, table, options):
    shown = [s for name in entry["shows"] for s in (functions_of(name[1:]) if name.startswith("@") else [name])]
    yield from differences(elf.shown, shown, "it does not show", "it shows, and the table does not have,")
    needs = expand(entry["needs"], table["groups"])
    for option in [elf.machine, *options]:
        needs += entry.get("needs_with", {}).get(option, [])
    needed = [name for name in elf.needed if name not in LOADERS]
    yield from differences(needed, needs, "it does not need", "it needs, and the table does not have,")
    if elf.soname != entry.get("soname", ""):
        yield f"its name for the loader is '{elf.soname}'; the table has '{entry.get('soname', '')}'"


def wrong_protection(elf, hardened):
    """Checks the requirements of a loaded file, first those of any build, then those of a hardened one."""
    if elf.kind == "fixed":
        yield "it lies at a fixed address"
    if elf.executable_stack:
        yield "it asks for a stack that can be run, or does not say that its stack cannot be"
    if elf.text_relocations:
        yield "it has relocations in its code"
    if elf.writable_code:
        yield "it has a segment that is both written and run"
    if not hardened:
        return
    if not elf.relro:
        yield "it has no part that becomes read-only after relocation (-z relro)"
    if not elf.bind_now:
        yield "it binds its symbols late (-z now)"
    if "__stack_chk_fail" not in elf.imported:
        yield "it has no guards on its stack (-fstack-protector-strong)"
    if not any(FORTIFIED.match(name) for name in elf.imported):
        yield "it has no checked copies (-D_FORTIFY_SOURCE)"
    if not elf.landings:
        yield "it does not mark where branches may go (-fcf-protection, -mbranch-protection)"


def wrong_layout(elf, entry, table):
    page = entry.get("page", table["pages"][elf.machine])
    if elf.page != page:
        yield f"its segments are aligned to {elf.page} bytes; the table has {page}"
    if elf.misplaced:
        yield "a segment lies elsewhere in its page in the file than in memory"
    if entry.get("built_only"):
        return
    if elf.search_paths:
        yield f"it looks for libraries in a folder of its own: {':'.join(elf.search_paths)}"
    if not elf.stripped:
        yield "it is not stripped"
    most = entry.get("bytes", {}).get(elf.machine)
    if most and elf.size_bytes > most:
        yield f"it has {elf.size_bytes:,} bytes; the table allows {most:,}"


def hold(path, table, options, hardened):
    """Returns the lines to print, and True if all agrees with the table."""
    matching = [e for e in table["files"] if re.fullmatch(e["name"], path.name)]
    if not matching:
        return [f"FAILED: {path}: the table does not know it; add it to tests/elf.json"], False
    entry = matching[0]
    try:
        elf = elf_file.read(path)
    except elf_file.NotElf as error:
        return [f"FAILED: {path}: {error}"], False
    wrong = [
        *wrong_names(elf, entry, table, options),
        *wrong_protection(elf, hardened),
        *wrong_layout(elf, entry, table),
    ]
    lines = [f"FAILED: {path}: {sentence}" for sentence in wrong]
    lines.append(
        f"{path.name}: {elf.machine}, {elf.size_bytes:,} bytes, pages of {elf.page}, shows {len(elf.shown)} "
        f"symbols, needs {' '.join(elf.needed)}"
    )
    return lines, not wrong


def files_of(arguments):
    for argument in map(Path, arguments):
        if not argument.is_dir():
            yield argument
            continue
        for path in sorted(argument.rglob("*")):
            if path.is_file() and not path.is_symlink() and elf_file.is_elf(path):
                yield path


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--table", default=ROOT / "tests/elf.json")
    parser.add_argument("--with", dest="options", action="append", default=[])
    parser.add_argument("--must", action="append", default=[])
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("paths", nargs="+")
    arguments = parser.parse_args()
    table = json.loads(Path(arguments.table).read_text())
    held = failed = 0
    seen = []
    for path in files_of(arguments.paths):
        seen.append(path.name)
        try:
            lines, good = hold(path, table, arguments.options, not arguments.plain)
        except OSError as error:
            lines, good = [f"FAILED: {path}: it is not read: {error.strerror}"], False
        print("\n".join(lines))
        held += good
        failed += not good
    if not seen:
        print(f"FAILED: there is no ELF file in {' '.join(map(str, arguments.paths))}")
        failed = 1
    for name in sorted(set(arguments.must) - set(seen)):
        print(f"FAILED: {name} is not in {' '.join(map(str, arguments.paths))}; this build must have it")
        failed += 1
    if any(Path(p).is_dir() for p in arguments.paths):
        for entry in table["files"]:
            if not any(re.fullmatch(entry["name"], name) for name in seen):
                print(
                    f"not read: {entry['name']} is not there" + (f"; {entry['by']} reads it" if "by" in entry else "")
                )
    print(f"{held} files held, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
