"""What a library for Android must be, read from the file by readelf (Debian: binutils).

    elf.py FILE...     prints what is wrong with each as a library for Android, and exits 1 if anything is
"""

import re
import subprocess
import sys
from pathlib import Path

PAGE = 16384  # devices with pages of 16 KiB map nothing that is aligned to less
MACHINES = {"arm64-v8a": "AArch64", "x86_64": "Advanced Micro Devices X86-64"}
# Bionic's own libraries by name. glibc's carry a version: libc.so.6.
SYSTEM = {"libc.so", "libm.so", "libdl.so", "liblog.so"}
SHOWN = {"libwisp.so": re.compile(r"wisp_\w+"), "libwisp-jni.so": re.compile(r"JNI_OnLoad")}
NEEDED = {"libwisp.so": SYSTEM, "libwisp-jni.so": SYSTEM | {"libwisp.so"}}


class Elf:
    def __init__(self, path):
        self.path = Path(path)
        read = subprocess.run(
            ["readelf", "-hldW", "--dyn-syms", str(path)], capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
        )
        text = read.stdout
        machine = re.search(r"^\s*Machine:\s*(.*?)\s*$", text, re.M)
        kind = re.search(r"^\s*Type:\s*(\w+)", text, re.M)
        if read.returncode != 0 or machine is None or kind is None or kind.group(1) != "DYN":
            raise ValueError(f"'{path}' is no shared library in ELF")
        self.machine = machine.group(1)
        self.needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
        self.soname = "".join(re.findall(r"\(SONAME\).*\[(.*)\]", text))
        self.searches = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text)
        self.writes_text = "(TEXTREL)" in text
        # Type Offset VirtAddr PhysAddr FileSiz MemSiz Flags Align
        segments = re.findall(r"^\s*([A-Z_]+)((?:\s+0x[0-9a-f]+){5})\s+([RWE ]+?)\s+(0x[0-9a-f]+|\d+)$", text, re.M)
        self.segments = [
            (kind, [int(n, 16) for n in numbers.split()], flags, int(align, 0)) for kind, numbers, flags, align in segments
        ]
        symbols = [line.split() for line in text.splitlines() if re.match(r"^\s*\d+: [0-9a-f]{16}", line)]
        named = [(s[4], s[6], re.sub("@.*", "", s[7])) for s in symbols if len(s) > 7]
        self.shown = sorted(name for bind, where, name in named if where != "UND" and bind != "LOCAL")
        self.imports = sorted({name for bind, where, name in named if where == "UND"})


def wrong(elf, name, abi):
    """Sentences, none for a library that an app for Android can ship under that name."""
    if elf.machine != MACHINES[abi]:
        yield f"it is for {elf.machine}, and {abi} is {MACHINES[abi]}"
    for needed in elf.needed:
        if needed not in NEEDED[name]:
            yield f"it needs {needed}; a library for Android needs only {', '.join(sorted(NEEDED[name]))}"
    if "libc.so" not in elf.needed:
        yield "it does not need bionic's libc.so"
    if elf.soname != name:
        yield f"it calls itself '{elf.soname}', and must call itself {name}"
    loads = [segment for segment in elf.segments if segment[0] == "LOAD"]
    if not loads:
        yield "it has no segment to load"
    for _, (offset, address, *_rest), _flags, align in loads:
        if align % PAGE != 0 or align == 0:
            yield f"a segment is aligned to {align}; pages of 16 KiB need {PAGE} (-Wl,-z,max-page-size={PAGE})"
        elif (address - offset) % PAGE != 0:
            yield f"a segment at {offset:#x} is to lie at {address:#x}, which is not the same place of a page of 16 KiB"
    if not any(kind == "GNU_RELRO" for kind, *_ in elf.segments):
        yield "its tables stay writable (-Wl,-z,relro)"
    if any(kind == "GNU_STACK" and "E" in flags for kind, _, flags, _ in elf.segments):
        yield "its stack can be run (-Wl,-z,noexecstack)"
    if elf.writes_text:
        yield "its code is written to when it is loaded (-Wl,-z,text)"
    if elf.searches:
        yield f"it looks for libraries in {', '.join(elf.searches)}"
    for symbol in elf.shown:
        if not SHOWN[name].fullmatch(symbol):
            yield f"it shows the symbol {symbol}"
    if not elf.shown:
        yield "it shows no symbol"


def main(files):
    code = 0
    for file in files:
        elf = Elf(file)
        name = Path(file).name if Path(file).name in SHOWN else "libwisp.so"
        abi = next((abi for abi, machine in MACHINES.items() if machine == elf.machine), "arm64-v8a")
        for sentence in dict.fromkeys(wrong(elf, name, abi)):
            code = 1
            print(f"{file}: {sentence}")
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (ValueError, OSError) as error:
        sys.exit(f"elf.py: {error}")
