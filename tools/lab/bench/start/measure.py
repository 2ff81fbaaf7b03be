#!/usr/bin/env python3
"""Measures how long a program takes to its first call of the library, beside a program without it.

    tools/lab/bench/start/measure.py BUILD [--runs N] [--model FILE]

Warm: everything is in the page cache. Cold: the library and all that it needs but the C library are read from the disk,
out of copies that nobody else has open. Medians, quartiles and the least, in microseconds. Instructions are valgrind's,
from the loader's first on, less those of the program without the library.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
LIBRARIES = ("wisp-runtime", "wisp-text", "wisp")
OF_THE_SYSTEM = r"(ld-linux|libc\.so|linux-vdso)"  # every process maps these, so they are never cold


def build(folder, out):
    """Programs: one without the library, one linked with each."""
    common = [
        "cc",
        "-std=c99",
        "-D_GNU_SOURCE",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{folder / 'include'}",
        str(Path(__file__).with_name("start.c")),
    ]
    subprocess.run([*common, "-o", out / "without", "-ldl"], check=True)
    for library in LIBRARIES:
        subprocess.run([*common, "-DLINKED", "-o", out / library, f"-L{folder}", f"-l{library}", "-ldl"], check=True)


def copied(library, out):
    """Copies the library and its dependencies into a folder of their own."""
    needs = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    out.mkdir()
    for path in [library, *re.findall(r"=> (/\S+)", needs)]:
        if not re.match(OF_THE_SYSTEM, Path(path).name):
            shutil.copyfile(Path(path).resolve(), out / (Path(path).name + (".0" if path == library else "")))
    return out


def forget(folder):
    """Drops the folder's files from the page cache."""
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    held = subprocess.run(
        ["fincore", "-nbo", "RES", *folder.iterdir()], capture_output=True, text=True, check=True
    ).stdout.split()
    if any(int(n) for n in held):
        sys.exit(
            f"measure.py: {sum(map(int, held))} bytes of {folder} stay in the page cache: nothing cold is measured here"
        )


def environment(folder):
    return {"LD_LIBRARY_PATH": str(folder), "PATH": "/usr/bin:/bin"}


def started(program, folder):
    """Returns the microseconds from before the program's start to the clock that it prints."""
    read, write = os.pipe()
    start = time.monotonic_ns()
    process = os.posix_spawn(program, [program], environment(folder), file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
    os.close(write)
    with os.fdopen(read) as pipe:
        printed = pipe.read()
    if os.waitpid(process, 0)[1]:
        sys.exit(f"measure.py: {program} failed")
    return (int(printed) - start) / 1000


def loaded(program, library, model, folder):
    done = subprocess.run(
        [program, library, model], env=environment(folder), capture_output=True, text=True, check=True
    )
    return [int(n) / 1000 for n in done.stdout.split()]


def instructions(command, folder):
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def shown(samples):
    quartiles = statistics.quantiles(samples, n=4)
    return f"{quartiles[1]:8.0f} ({quartiles[0]:.0f} to {quartiles[2]:.0f}, least {min(samples):.0f})"


def measure(name, out, folder, options):
    print(f"lib{name}.so")
    shared, program = str(folder / f"lib{name}.so.0"), str(out / name)
    without = str(out / "without")
    warm, bare, cold, opened, first = [], [], [], [], []
    for _ in range(options.runs):  # in turns, so that the machine's other work affects all alike
        bare.append(started(without, folder))
        warm.append(started(program, folder))
        load, recommended = loaded(without, shared, options.model, folder)
        opened.append(load)
        first.append(recommended)
    for _ in range(max(5, options.runs // 10)):
        forget(folder)
        cold.append(loaded(without, shared, options.model, folder)[0])
    print(f"  a program without it, from exec to main         {shown(bare)}")
    print(f"  linked, from exec to the first call's return    {shown(warm)}")
    print(f"  dlopen, dlsym and the first call, warm          {shown(opened)}")
    print(f"  the same, cold                                  {shown(cold)}")
    print(f"  from there to the first recommendation          {shown(first)}")
    if shutil.which("valgrind"):
        count = instructions([program], folder) - instructions([without], folder)
        print(f"  instructions to the first call, linked          {count:8,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--model", default=str(ROOT / "models/cafe.wisp"))
    options = parser.parse_args()
    # The folder lies beside the build, because a folder in memory is never cold.
    with tempfile.TemporaryDirectory(dir=options.build) as work:
        out = Path(work).resolve()
        build(options.build.resolve(), out)
        print("microseconds: median (quartiles, least)")
        for name in LIBRARIES:
            measure(
                name, out, copied(str(options.build.resolve() / f"lib{name}.so"), out / f"{name}-libraries"), options
            )


main()
