#!/usr/bin/env python3
"""Reads what a 64-bit ELF file tells the loader of Linux or Android, without other programs.

    tools/elf/elf_file.py FILE...       # its facts, as JSON

What it cannot read is a NotElf with a sentence: a file that is cut short, of another class, or without
sections. What a file must be is said elsewhere: tests/elf/hold.py, ports/android/elf.py.
"""

import json
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

MACHINES = {62: "x86-64", 183: "arm64"}
COPY = {"x86-64": 5, "arm64": 1024}  # R_X86_64_COPY, R_AARCH64_COPY
# An indirect branch may arrive at these instructions: endbr64; paciasp, which is a landing place too; and bti c.
LANDINGS = {"x86-64": (b"\xf3\x0f\x1e\xfa",), "arm64": (b"\x3f\x23\x03\xd5", b"\x5f\x24\x03\xd5")}
LOAD, DYNAMIC, INTERP, STACK, RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
EXECUTE, WRITE = 1, 2
SYMTAB, DYNSYM = 2, 11
NEEDED, STRTAB, RELA, RELASZ, SONAME, RPATH, TEXTREL, BIND_NOW, RUNPATH, FLAGS, FLAGS_1 = (
    1,
    5,
    7,
    8,
    14,
    15,
    22,
    24,
    29,
    30,
    0x6FFFFFFB,
)


class NotElf(Exception):
    pass


@dataclass
class Segment:
    kind: int
    flags: int
    offset: int
    address: int
    size: int  # in the file
    alignment: int


@dataclass
class ElfFile:
    machine: str = ""
    kind: str = ""  # "library", "program": independent of its place; "fixed": a program of one address
    size_bytes: int = 0
    page: int = 0  # the smallest alignment of what is loaded
    misplaced: bool = False  # a segment lies elsewhere in its page in the file than in memory
    writable_code: bool = False
    executable_stack: bool = False
    relro: bool = False
    bind_now: bool = False
    text_relocations: bool = False
    stripped: bool = False
    landings: int = 0
    soname: str = ""
    search_paths: list = field(default_factory=list)
    needed: list = field(default_factory=list)
    shown: list = field(default_factory=list)  # defined for others, except for copies of a library's data
    imported: list = field(default_factory=list)


def unpack(form, data, offset, what):
    try:
        return struct.unpack_from("<" + form, data, offset)
    except (struct.error, OverflowError):
        raise NotElf(f"it is cut short: {what} would lie at byte {offset} of {len(data)}") from None


def text(data, offset):
    end = data.find(b"\0", offset)
    if not 0 <= offset < len(data) or end < 0:
        raise NotElf(f"it has a name at byte {offset} of {len(data)}, which does not end")
    return data[offset:end].decode("utf-8", "backslashreplace")


def is_elf(path):
    with open(path, "rb") as f:
        head = f.read(18)
    return head[:4] == b"\x7fELF" and head[16:18] in (b"\2\0", b"\3\0")  # not objects, which apps do not load


def segments_of(data, offset, size, count):
    for index in range(count):
        kind, flags, at, address, _, in_file, _, alignment = unpack(
            "IIQQQQQQ", data, offset + index * size, f"segment {index}"
        )
        if at + in_file > len(data):
            raise NotElf(f"it is cut short: segment {index} ends at byte {at + in_file} of {len(data)}")
        if kind == LOAD and alignment & (alignment - 1):
            raise NotElf(f"segment {index} is aligned to {alignment}, which is no power of two")
        yield Segment(kind, flags, at, address, in_file, alignment)


def offset_of(address, segments):
    for s in segments:
        if s.kind == LOAD and s.address <= address < s.address + s.size:
            return address - s.address + s.offset
    raise NotElf(f"address {address:#x} lies in no segment")


def dynamic_of(data, segments):
    """The entries of the dynamic section: a tag and its values."""
    entries = {}
    for s in segments:
        if s.kind == DYNAMIC:
            for at in range(s.offset, s.offset + s.size, 16):
                tag, value = unpack("QQ", data, at, "the dynamic section")
                if tag == 0:
                    break
                entries.setdefault(tag, []).append(value)
    return entries


def read_dynamic(elf, data, segments):
    entries = dynamic_of(data, segments)
    if STRTAB not in entries:
        raise NotElf("it has no dynamic section: it is linked statically")
    names = offset_of(entries[STRTAB][0], segments)
    named = lambda tag: [text(data, names + value) for value in entries.get(tag, [])]
    flags = entries.get(FLAGS, [0])[0]
    elf.needed = sorted(named(NEEDED))
    elf.soname = "".join(named(SONAME))
    elf.search_paths = named(RPATH) + named(RUNPATH)
    elf.bind_now = bool(flags & 8) or BIND_NOW in entries or bool(entries.get(FLAGS_1, [0])[0] & 1)
    elf.text_relocations = bool(flags & 4) or TEXTREL in entries
    copies = set()
    if RELA in entries:
        start = offset_of(entries[RELA][0], segments)
        for at in range(start, start + entries.get(RELASZ, [0])[0], 24):
            _, info = unpack("QQ", data, at, "a relocation")
            if info & 0xFFFFFFFF == COPY[elf.machine]:
                copies.add(info >> 32)
    return names, copies


def read_symbols(elf, data, sections, names, copies):
    found = [s for s in sections if s[1] == DYNSYM]
    if not found:
        raise NotElf("it has no section of dynamic symbols")
    offset, size = found[0][4:6]
    for index in range(1, size // 24):
        name, info, other, section, _, _ = unpack("IBBHQQ", data, offset + index * 24, f"symbol {index}")
        if info >> 4 == 0 or info & 15 == 3:  # local, or a section
            continue
        if section == 0:
            elf.imported.append(text(data, names + name))
        elif other & 3 in (0, 3) and index not in copies:
            elf.shown.append(text(data, names + name))
    elf.shown.sort()
    elf.imported.sort()


def read(path):
    data = Path(path).read_bytes()
    if data[:4] != b"\x7fELF":
        raise NotElf("it is no ELF file")
    if data[4:6] != b"\2\1":
        raise NotElf("it is not of 64 bits with the low byte first")
    (
        type_,
        machine,
        _,
        entry,
        segments_at,
        sections_at,
        _,
        _,
        segment_size,
        num_segments,
        section_size,
        num_sections,
        _,
    ) = unpack("HHIQQQIHHHHHH", data, 16, "the header")
    if machine not in MACHINES:
        raise NotElf(f"it is for machine {machine}; known are " + ", ".join(f"{n} ({m})" for m, n in MACHINES.items()))
    segments = list(segments_of(data, segments_at, segment_size, num_segments))
    sections = [unpack("IIQQQQIIQQ", data, sections_at + i * section_size, f"section {i}") for i in range(num_sections)]
    loaded = [s for s in segments if s.kind == LOAD]
    stack = [s for s in segments if s.kind == STACK]
    elf = ElfFile(machine=MACHINES[machine], size_bytes=len(data))
    elf.kind = "fixed" if type_ == 2 else "program" if any(s.kind == INTERP for s in segments) else "library"
    elf.page = min((s.alignment for s in loaded), default=0)
    elf.misplaced = any(s.alignment and (s.offset - s.address) % s.alignment for s in loaded)
    elf.writable_code = any(s.flags & WRITE and s.flags & EXECUTE for s in loaded)
    # without this entry the kernel makes the stack executable
    elf.executable_stack = not stack or bool(stack[0].flags & EXECUTE)
    elf.relro = any(s.kind == RELRO for s in segments)
    elf.stripped = not any(s[1] == SYMTAB for s in sections)
    code = b"".join(data[s.offset : s.offset + s.size] for s in loaded if s.flags & EXECUTE)
    elf.landings = sum(code.count(mark) for mark in LANDINGS[elf.machine])
    names, copies = read_dynamic(elf, data, segments)
    read_symbols(elf, data, sections, names, copies)
    return elf


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for argument in sys.argv[1:]:
        try:
            print(json.dumps({"file": argument, **vars(read(argument))}, indent=1))
        except (NotElf, OSError) as error:
            sys.exit(f"{argument}: {error}")
