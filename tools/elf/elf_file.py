#!/usr/bin/python3
"""Reads what a 64-bit ELF file tells the loader of Linux or Android, by pyelftools (Debian: python3-pyelftools).

    tools/elf/elf_file.py FILE...       # its facts, as JSON

A file that it cannot read is a NotElf with a sentence: one that is cut short, of another class, or without sections.
The requirements stand elsewhere: tests/elf/hold.py, ports/android/elf.py.
"""

import io
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

try:
    from elftools.elf.elffile import ELFFile
except ImportError:
    sys.exit(f"pyelftools is missing for {sys.executable} (Debian: python3-pyelftools, for /usr/bin/python3)")

MACHINES = {62: "x86-64", 183: "arm64"}
COPY = {"x86-64": 5, "arm64": 1024}  # R_X86_64_COPY, R_AARCH64_COPY
# An indirect branch may arrive at these instructions: endbr64; paciasp, which is a landing place too; and bti c.
LANDINGS = {"x86-64": (b"\xf3\x0f\x1e\xfa",), "arm64": (b"\x3f\x23\x03\xd5", b"\x5f\x24\x03\xd5")}
EXECUTE, WRITE = 1, 2
DF_TEXTREL, DF_BIND_NOW, DF_1_NOW = 4, 8, 1


class NotElf(Exception):
    pass


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


def is_elf(path):
    with open(path, "rb") as f:
        head = f.read(18)
    return head[:4] == b"\x7fELF" and head[16:18] in (b"\2\0", b"\3\0")  # not objects, which apps do not load


def segments_of(data, elf):
    for index, segment in enumerate(elf.iter_segments()):
        header = segment.header
        if header.p_offset + header.p_filesz > len(data):
            end = header.p_offset + header.p_filesz
            raise NotElf(f"it is cut short: segment {index} ends at byte {end} of {len(data)}")
        if header.p_type == "PT_LOAD" and header.p_align & (header.p_align - 1):
            raise NotElf(f"segment {index} is aligned to {header.p_align}, which is no power of two")
        yield segment


def read_dynamic(facts, segments):
    """Returns the numbers of the symbols that are copies of a library's data."""
    dynamic = next((s for s in segments if s.header.p_type == "PT_DYNAMIC"), None)
    tags = list(dynamic.iter_tags()) if dynamic else []
    if not any(tag.entry.d_tag == "DT_STRTAB" for tag in tags):
        raise NotElf("it has no dynamic section: it is linked statically")
    values = lambda kind: [tag for tag in tags if tag.entry.d_tag == kind]
    bits = lambda kind: next((tag.entry.d_val for tag in values(kind)), 0)
    facts.needed = sorted(tag.needed for tag in values("DT_NEEDED"))
    facts.soname = "".join(tag.soname for tag in values("DT_SONAME"))
    facts.search_paths = [tag.rpath for tag in values("DT_RPATH")] + [tag.runpath for tag in values("DT_RUNPATH")]
    now = values("DT_BIND_NOW") or bits("DT_FLAGS") & DF_BIND_NOW or bits("DT_FLAGS_1") & DF_1_NOW
    facts.bind_now, facts.text_relocations = bool(now), bool(values("DT_TEXTREL") or bits("DT_FLAGS") & DF_TEXTREL)
    relocations = dynamic.get_relocation_tables().get("RELA")
    entries = [entry.entry for entry in relocations.iter_relocations()] if relocations else []
    return {entry.r_info_sym for entry in entries if entry.r_info_type == COPY[facts.machine]}


def read_symbols(facts, sections, copies):
    table = next((section for section in sections if section.header.sh_type == "SHT_DYNSYM"), None)
    if table is None:
        raise NotElf("it has no section of dynamic symbols")
    for index, symbol in enumerate(table.iter_symbols()):
        if symbol.entry.st_info.bind == "STB_LOCAL" or symbol.entry.st_info.type == "STT_SECTION":
            continue
        if symbol.entry.st_shndx == "SHN_UNDEF":
            facts.imported.append(symbol.name)
        elif symbol.entry.st_other.visibility in ("STV_DEFAULT", "STV_PROTECTED") and index not in copies:
            facts.shown.append(symbol.name)
    facts.shown.sort()
    facts.imported.sort()


def read(path):
    data = Path(path).read_bytes()
    if data[:4] != b"\x7fELF":
        raise NotElf("it is no ELF file")
    if data[4:6] != b"\2\1":
        raise NotElf("it is not of 64 bits with the low byte first")
    machine = int.from_bytes(data[18:20], "little")
    if machine not in MACHINES:
        raise NotElf(f"it is for machine {machine}; known are " + ", ".join(f"{n} ({m})" for m, n in MACHINES.items()))
    try:
        return read_facts(ElfFile(machine=MACHINES[machine], size_bytes=len(data)), data)
    except NotElf:
        raise
    except Exception as error:  # pyelftools has no class for all that a damaged file makes it raise
        raise NotElf(f"it is cut short or damaged: {type(error).__name__}: {error}") from None


def read_facts(facts, data):
    elf = ELFFile(io.BytesIO(data))
    segments, sections = list(segments_of(data, elf)), list(elf.iter_sections())
    headers = [segment.header for segment in segments]
    loaded = [header for header in headers if header.p_type == "PT_LOAD"]
    stack = [header for header in headers if header.p_type == "PT_GNU_STACK"]
    interpreted = any(header.p_type == "PT_INTERP" for header in headers)
    facts.kind = "fixed" if elf.header.e_type == "ET_EXEC" else "program" if interpreted else "library"
    facts.page = min((header.p_align for header in loaded), default=0)
    facts.misplaced = any(h.p_align and (h.p_offset - h.p_vaddr) % h.p_align for h in loaded)
    facts.writable_code = any(h.p_flags & WRITE and h.p_flags & EXECUTE for h in loaded)
    # without this entry the kernel makes the stack executable
    facts.executable_stack = not stack or bool(stack[0].p_flags & EXECUTE)
    facts.relro = any(header.p_type == "PT_GNU_RELRO" for header in headers)
    facts.stripped = not any(section.header.sh_type == "SHT_SYMTAB" for section in sections)
    code = b"".join(data[h.p_offset : h.p_offset + h.p_filesz] for h in loaded if h.p_flags & EXECUTE)
    facts.landings = sum(code.count(mark) for mark in LANDINGS[facts.machine])
    read_symbols(facts, sections, read_dynamic(facts, segments))
    return facts


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for argument in sys.argv[1:]:
        try:
            print(json.dumps({"file": argument, **vars(read(argument))}, indent=1))
        except (NotElf, OSError) as error:
            sys.exit(f"{argument}: {error}")
