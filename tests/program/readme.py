"""The C programs of the README and of docs/guide.md."""

import os
import re
import shutil

import pytest
from program import BUILD, ROOT, build, copy, read, root, run, same, write

pytestmark = pytest.mark.usefixtures("cafe")
cc = f"cc -std=c11 -Wall -Wextra -Werror -I{BUILD}/include -L{BUILD} -Wl,-rpath,{BUILD}"


def program(document, *heading):
    """Returns the C program of a document, below a heading."""
    return run(f"{ROOT}/tools/site/snippets.py {ROOT}/{document} c " + " ".join(f"'{word}'" for word in heading)).out


def test_the_readmes_example_compiles_unchanged():
    # Its command line works where it says: in the repository's root. So does the longer example. The programs find the
    # library from elsewhere too.
    os.makedirs("checkout/build")
    for name in ("ports", "models"):
        os.symlink(root / name, f"checkout/{name}")
    os.symlink(build, "checkout/build/release")
    write("checkout/main.c", program("README.md"))
    run(f"{cc} checkout/main.c -o readme -lwisp")
    copy("log.db", "checkout/log.db")
    commands = re.findall("(?m)^    (gcc .*)", read(root / "README.md"))
    assert len(commands) == 1, "the README has not one line that compiles the C program"
    commands += [
        (
            "gcc -std=c99 -Ibuild/release/include ports/c/example.c -Lbuild/release -lwisp"
            ' -Wl,-rpath,"$PWD/build/release" -o example'
        ),
        "./example models/cafe.wisp log.db log.ledger tuned.wisp u00003 3",
    ]
    for command in commands:
        out = run(f"sh -c '{command}'", cwd="checkout").out
        assert out or "./" not in command, f"{command} prints nothing"
    os.mkdir("a")
    copy("log.db", "a/log.db")
    shutil.copytree(root / "models", "a/models")
    run("../checkout/main", cwd="a")


def test_the_guides_program():
    # 40 lines, in a folder with only the shipped model; then with a log of many guests.
    write("guide.c", program("docs/guide.md", "In C"))
    assert sum(map(bool, map(str.strip, read("guide.c").splitlines()))) <= 40
    run(f"{cc} guide.c -o guide -lwisp")
    os.mkdir("app")
    copy(root / "models/cafe.wisp", "app/cafe.wisp")
    for planned_run in (364, 363):
        r = run("../guide", cwd="app")
        assert f"; {planned_run} runs left" in r.out, "the guide's program does not count its runs"
        assert len(r.out.splitlines()) == 6, "the guide's program does not recommend"
    assert same("app/year.wisp", "app/cafe.wisp"), "with one guest another model than the base is served"
