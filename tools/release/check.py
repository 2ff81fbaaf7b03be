#!/usr/bin/env python3
"""tools/dev release --check makes the same commit twice, at different times, in different folders, under different
settings.

tools/release/check.py FOLDER FOLDER     only compares two folders, byte for byte
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from context import Refused  # noqa: E402
from members import differences  # noqa: E402

SHOWN = 20  # sentences; who has more reads these first
# The second build compiles everything anew, because the compiler's cache would return the first build's results.
SETTINGS = (
    {"TZ": "UTC"},
    {"TZ": "Asia/Kathmandu", "LANG": "C", "CFLAGS": "-O1", "SOURCE_DATE_EPOCH": "1", "CCACHE_DISABLE": "1"},
)
UMASKS = (0o022, 0o077)


def compare(first, second):
    """Prints what differs between the files of two releases. 0: equal bytes. 1: there are differences."""
    found = []
    names = sorted({f.name for folder in (first, second) for f in folder.iterdir()})
    for name in names:
        if not (first / name).is_file() or not (second / name).is_file():
            found.append(f"only the {'first' if (first / name).is_file() else 'second'} has {name}")
        else:
            found += differences(name, (first / name).read_bytes(), (second / name).read_bytes())
    for sentence in found[:SHOWN]:
        print(f"differs: {sentence}")
    if len(found) > SHOWN:
        print(f"differs: {len(found) - SHOWN} more")
    print(f"{len(names)} files, made twice: " + (f"{len(found)} differences" if found else "equal bytes"))
    return 1 if found else 0


def make_once(chosen, out, settings, umask):
    command = [
        sys.executable,
        Path(__file__).with_name("release"),
        "--out",
        out,
        "--only",
        ",".join(chosen.only),
        "--allow-dirty",
    ]
    command += (["--all"] if chosen.all else []) + (["--build", chosen.build] if chosen.build else [])
    if subprocess.run(command, env={**os.environ, **settings}, umask=umask, check=False).returncode:
        raise Refused("--check: the release was not made, as said above")


def check(chosen):
    """The first release stays in --out."""
    make_once(chosen, chosen.out, SETTINGS[0], UMASKS[0])
    with tempfile.TemporaryDirectory(prefix="release-check.") as work:
        second = Path(work) / "another.folder/with-a-longer+name/files"
        second.parent.mkdir(parents=True)
        make_once(chosen, second, SETTINGS[1], UMASKS[1])
        result = compare(chosen.out, second)
    print(f"the first are kept: {chosen.out}")
    return result


if __name__ == "__main__":
    folders = [Path(argument) for argument in sys.argv[1:]]
    if len(folders) != 2 or not all(folder.is_dir() for folder in folders):
        sys.exit("check.py: two folders are needed, each with the files of a release")
    sys.exit(compare(*folders))
