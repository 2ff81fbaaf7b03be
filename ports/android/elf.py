"""Checks libraries for Android; tools/elf reads the files.

    elf.py FILE...     prints what is wrong with each as a library for Android, and exits 1 if anything is
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/elf"))
sys.dont_write_bytecode = True
import elf_file  # noqa: E402

PAGE = 16384  # devices with pages of 16 KiB map nothing that is aligned to less
MACHINES = {"arm64-v8a": "arm64", "x86_64": "x86-64"}
# Names of Bionic's own libraries. glibc's have a version: libc.so.6.
SYSTEM = {"libc.so", "libm.so", "libdl.so", "liblog.so"}
SHOWN = {"libwisp.so": re.compile(r"wisp_\w+"), "libwisp-jni.so": re.compile(r"JNI_OnLoad")}
NEEDED = {"libwisp.so": SYSTEM, "libwisp-jni.so": SYSTEM | {"libwisp.so"}}


def read(path):
    """The facts of a library; a ValueError with a sentence for a file that is not a library."""
    try:
        elf = elf_file.read(path)
    except elf_file.NotElf as error:
        raise ValueError(f"'{path}' is no shared library in ELF: {error}") from None
    if elf.kind != "library":
        raise ValueError(f"'{path}' is no shared library in ELF: it is a program")
    return elf


def wrong(elf, name, abi):
    """Yields a sentence for each reason why an app for Android cannot ship the library under that name."""
    if elf.machine != MACHINES[abi]:
        yield f"it is for {elf.machine}, and {abi} is {MACHINES[abi]}"
    for needed in elf.needed:
        if needed not in NEEDED[name]:
            yield f"it needs {needed}; a library for Android needs only {', '.join(sorted(NEEDED[name]))}"
    if "libc.so" not in elf.needed:
        yield "it does not need bionic's libc.so"
    if elf.soname != name:
        yield f"it calls itself '{elf.soname}', and must call itself {name}"
    if elf.page < PAGE:
        yield f"a segment is aligned to {elf.page}; pages of 16 KiB need {PAGE} (-Wl,-z,max-page-size={PAGE})"
    if elf.misplaced:
        yield "a segment lies elsewhere in its page in the file than in memory"
    if not elf.relro:
        yield "its tables stay writable (-Wl,-z,relro)"
    if elf.executable_stack:
        yield "its stack can be run (-Wl,-z,noexecstack)"
    if elf.text_relocations:
        yield "its code is written to when it is loaded (-Wl,-z,text)"
    if elf.writable_code:
        yield "it has a segment that is both written and run"
    if elf.search_paths:
        yield f"it looks for libraries in {', '.join(elf.search_paths)}"
    for symbol in elf.shown:
        if not SHOWN[name].fullmatch(symbol):
            yield f"it shows the symbol {symbol}"
    if not elf.shown:
        yield "it shows no symbol"


def main(files):
    code = 0
    for file in files:
        elf = read(file)
        name = Path(file).name if Path(file).name in SHOWN else "libwisp.so"
        abi = next(abi for abi, machine in MACHINES.items() if machine == elf.machine)
        for sentence in wrong(elf, name, abi):
            code = 1
            print(f"{file}: {sentence}")
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (ValueError, OSError) as error:
        sys.exit(f"elf.py: {error}")
