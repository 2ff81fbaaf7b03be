"""Every program and library of a build, as it is installed, is as tests/elf.json says: symbols, libraries, pages,
protection, size. Before that, the reader itself: files that are wrong in one way each are refused for that and nothing
else.

Files of the table that are not installed are checked where they are made: tests/python.sh, tests/python_arm64.sh,
tests/cuda/module. tools/dev arm64 runs this with a build for another processor."""

import json
import os
import platform
import random
import re
import struct
import sys
from pathlib import Path

import pytest
from program import BUILD, ROOT, build, read, remove, root, run, try_run, write

sys.path.insert(0, str(root / "tools/elf"))
import elf_file  # noqa: E402

hold = f"/usr/bin/python3 {ROOT}/tests/elf/hold.py"
MACHINES = {  # name, size of a page, the compiler's mark of landing places
    "x86_64": ("x86-64", 4096, "-fcf-protection=full", "-fcf-protection=none"),
    "aarch64": ("arm64", 65536, "-mbranch-protection=standard", "-mbranch-protection=none"),
}
machine, page, marks, no_marks = MACHINES[platform.machine()]
TABLE = {
    "pages": {machine: page},
    "groups": {"c": ["libc.so.6"]},
    "files": [
        {
            "name": "lib.so", "soname": "lib.so.1", "shows": ["f", "g"], "needs": ["c"],
            "needs_with": {"MATHS": ["libm.so.6"]}, "bytes": {machine: 300000},
        },
        {"name": "program", "shows": [], "needs": ["c"]},
    ],
}  # fmt: skip
SOURCE = """
#include <stdio.h>
#include <string.h>
#define SHOWN __attribute__((visibility("default")))
char g[64];
#ifdef LARGE
SHOWN const char f[400000] = {1};
#endif
#ifdef LONELY /* an address in the code */
__asm__(".pushsection .text\\n.quad g\\n.popsection");
#endif
#ifdef MORE
int more;
#endif
#ifndef NO_F
int f(const char* from, size_t n) {
  char to[64];
  memcpy(to, from, n);
  return to[n / 2];
}
#endif
#ifdef PROGRAM /* `stdout` is a copy of the C library's */
int main(int argc, char** argv) { return fputs("", stdout) + f(argv[0], (size_t)argc); }
#endif
"""
protected = f"-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-all {marks}"
linked = f"-Wl,-z,relro,-z,now,-z,noexecstack,--as-needed,-z,max-page-size={page}"


def library(options="", strip="-s"):
    os.makedirs("crafted", exist_ok=True)
    write("table.json", json.dumps(TABLE))
    write("crafted.c", SOURCE)
    run(f"gcc {protected} {strip} {linked} crafted.c -shared -fPIC -Wl,-soname,lib.so.1 -o crafted/lib.so {options}")


def program(options=""):
    run(f"gcc {protected} -s {linked} crafted.c -DPROGRAM -fPIE -pie -o crafted/program {options}")


def right(options=""):
    return run(f"{hold} --table table.json {options} crafted").out


def wrong(sentence, options=""):
    """The files are refused for this, and for nothing else."""
    result = try_run(f"{hold} --table table.json {options} crafted")
    said = result.out + result.err
    assert result.code != 0 and sentence in said, f"'{sentence}' is not said: {said}"
    besides = [line for line in said.splitlines() if sentence not in line and re.search("^FAILED|Traceback", line)]
    assert not besides


def test_a_good_library():
    library()
    assert "not read: program is not there\n" in right(), "what is not there is not named"
    right("--must lib.so")
    wrong("gone.so is not in crafted", "--must gone.so")


WRONG = {
    "-Wl,-z,lazy": "it binds its symbols late",
    "-Wl,-z,norelro": "no part that becomes read-only",
    "-Wl,-z,execstack": "a stack that can be run",
    "-Wl,-rpath,/opt/lib": "in a folder of its own: /opt/lib",
    "-Wl,-rpath,/opt/lib,--disable-new-dtags": "in a folder of its own: /opt/lib",
    "-fno-stack-protector": "it has no guards on its stack",
    "-U_FORTIFY_SOURCE": "it has no checked copies",
    "-DLONELY -Wl,-z,notext": "relocations in its code",
    f"-Wl,-z,max-page-size={page * 4}": f"aligned to {page * 4} bytes; the table has {page}",
    "-DMORE": "it shows, and the table does not have, more",
    "-fvisibility=hidden '-Dg=SHOWN g'": "it does not show f",
    "-Wl,--no-as-needed -lm": "it needs, and the table does not have, libm.so.6",
    "-Wl,-soname,other.so": "the loader is 'other.so'; the table has 'lib.so.1'",
    f"{no_marks} -nostartfiles": "where branches may go",
}


@pytest.mark.parametrize("options", WRONG)
def test_a_library_that_was_built_wrongly(options):
    library(options)
    wrong(WRONG[options])
    if "-lm" in options:
        right("--with MATHS")


def test_a_library_that_is_not_as_the_table_says():
    library()
    wrong("it does not need libm.so.6", "--with MATHS")
    library(strip="")
    wrong("it is not stripped")
    library()
    write("table.json", json.dumps(TABLE).replace("300000", "3000"))
    wrong("bytes; the table allows 3,000")
    remove("crafted/lib.so")


def test_programs():
    library()
    remove("crafted/lib.so")
    program()
    right()
    program("-no-pie -fno-pie")
    wrong("it lies at a fixed address")
    program("-Wl,--export-dynamic-symbol=f")
    wrong("it shows, and the table does not have, f")
    remove("crafted/program")


class Patched:
    """The bytes of a good library, to be changed."""

    def __init__(self):
        library()
        self.data = bytearray(Path("crafted/lib.so").read_bytes())

    def header(self, kind, flags=None):
        """Returns the place of a segment's header."""
        start, count = struct.unpack_from("<Q", self.data, 32)[0], struct.unpack_from("<H", self.data, 56)[0]
        for at in range(start, start + 56 * count, 56):
            if struct.unpack_from("<I", self.data, at)[0] == kind and flags in (None, self.data[at + 4]):
                return at

    def write(self, at, new):
        new = bytes.fromhex(new)
        self.data[at : at + len(new)] = new
        Path("crafted/lib.so").write_bytes(self.data)


PATCHES = (
    (lambda p: p.header(1, 5) + 4, "07", "both written and run"),
    (lambda p: p.header(0x6474E551), "00", "does not say that its stack cannot be"),
    (lambda p: p.header(1, 6) + 16, "08", "lies elsewhere in its page"),
    (lambda p: p.header(1, 6) + 48, "03", "is no power of two"),
    (lambda p: 18, "08", "it is for machine 8; known are x86-64 (62), arm64 (183)"),
    (lambda p: 4, "01", "it is not of 64 bits"),
    (lambda p: 32, "ffffffffffffffff", "it is cut short"),
    (lambda p: p.header(2), "00", "it has no dynamic section"),
    (lambda p: 60, "0000", "it has no section of dynamic symbols"),
)


@pytest.mark.parametrize("place, new, sentence", PATCHES)
def test_a_library_with_changed_bytes(place, new, sentence):
    patched = Patched()
    patched.write(place(patched), new)
    wrong(sentence)


def test_a_file_that_the_table_does_not_know():
    library()
    os.rename("crafted/lib.so", "crafted/unknown.so")
    wrong("the table does not know it")
    remove("crafted/unknown.so")
    wrong("there is no ELF file in crafted")


def test_a_damaged_file_is_read_or_refused_with_a_sentence():
    library()
    good = Path("crafted/lib.so").read_bytes()
    seed = random.SystemRandom().randrange(2**32)
    chance, refused = random.Random(seed), 0
    for case in range(1500):
        data = bytearray(good)
        if case % 2:
            data = data[: chance.randrange(len(data))]
        else:
            data[chance.randrange(1024 if case % 4 else len(data))] = chance.randrange(256)
        Path("damaged").write_bytes(data)
        try:
            elf_file.read("damaged")
        except elf_file.NotElf:
            refused += 1
    assert refused >= 500, f"only {refused} of 1500 damaged files were refused, seed {seed}"


def test_the_installed_files():
    cached = dict(re.findall(r"(?m)^(\w+):\w+=(.*)$", read(build / "CMakeCache.txt")))
    options = [f"--with {option}" for option in ("WISP_XNNPACK", "WISP_CUDA") if cached.get(option) == "ON"]
    if (cached["WISP_HARDENING"], cached["CMAKE_BUILD_TYPE"]) != ("ON", "Release"):
        options.append("--plain")
    run(f"cmake --install {BUILD} --prefix prefix")
    # A missing file would not be noticed, so these must be there, or the build is not whole.
    version = cached["CMAKE_PROJECT_VERSION"]
    must = [f"libwisp-runtime.so.{version}", f"libwisp-text.so.{version}"]
    if cached["WISP_TRAINING"] == "ON":
        must += [f"libwisp.so.{version}"] + ["wisp"] * (cached["WISP_TOOLS"] == "ON")
    shipped = ["prefix"] + [f"{BUILD}/wisp_example"] * (build / "wisp_example").exists()
    print(run(" ".join([hold, *options, *(f"--must {name}" for name in must), *shipped])).out)
