"""Python's source distribution and wheels (docs/python.md)."""

import os
import re
from pathlib import Path

from context import ROOT, Refused, Skipped, folder_files, write_tar

# The extension and the program are built from these folders. The rest of the repository is in the source archive.
FOLDERS = (
    "kernels",
    "runtime",
    "schema",
    "ports/c",
    "ports/cpp",
    "ports/cmake",
    "ports/python",
    "tools/convert",
    "tools/wisp",
)
FILES = ("CMakeLists.txt", "LICENSE", "NOTICE.md", "tools/sbom")


def _replaced(text, old, new):
    if text.count(old) != 1:
        raise Refused(
            f"ports/python/pyproject.toml has '{old}' {text.count(old)} times; tools/release/wheel.py looks for one"
        )
    return text.replace(old, new)


def project(tree):
    """ports/python/pyproject.toml for a folder in which everything lies below it."""
    text = (tree / "ports/python/pyproject.toml").read_text()
    text = _replaced(text, 'input = "../../CMakeLists.txt"', 'input = "CMakeLists.txt"')
    text = _replaced(
        text, 'wheel.packages = ["wisp"]', 'wheel.packages = ["ports/python/wisp"]\ncmake.source-dir = "ports/python"'
    )
    return _replaced(text, 'testpaths = ["tests"]', 'testpaths = ["ports/python/tests"]')


def information(release, text):
    """Writes PKG-INFO, the metadata that an index or pip needs before it builds anything."""
    value = {key: re.search(rf'^{key} = "(.*)"', text, re.M)[1] for key in ("name", "description", "requires-python")}
    needs = re.search(r"^dependencies = \[(.*)\]", text, re.M)[1].replace('"', "").split(", ")
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {value['name']}",
        f"Version: {release.version}",
        f"Summary: {value['description']}",
        "License: Apache-2.0",
        f"Requires-Python: {value['requires-python']}",
        *(f"Requires-Dist: {need}" for need in needs),
    ]
    return "\n".join(lines).encode() + b"\n"


def _environment():
    environment = Path(os.environ.get("WISP_PYTHON") or ROOT / "build/python").absolute()
    if not (environment / "bin/python").is_file():
        raise Skipped(f"Python's packages need a virtual environment at {environment} (tools/dev python makes it)")
    return environment


def make_arm64(release):
    """The wheel for 64-bit Arm Linux, cross-built."""
    environment = _environment()
    release.needs(
        "Python's wheel for 64-bit Arm", "g++-aarch64-linux-gnu qemu-user", "aarch64-linux-gnu-g++", "qemu-aarch64"
    )
    libraries = Path(os.environ.get("WISP_ARM64_LIBRARIES") or ROOT / "build/arm64-libraries").absolute()
    if not (libraries / "usr/bin/python3.11").is_file():
        raise Skipped(
            f"Python's wheel for 64-bit Arm needs Debian's packages at {libraries} "
            "(tools/dev python --arm64 fetches them)"
        )
    release.run(
        "ports/python/arm64",
        release.files,
        release.work / "python-arm64",
        WISP_PYTHON=str(environment),
        WISP_ARM64_LIBRARIES=str(libraries),
    )


def make(release):
    python = _environment() / "bin/python"
    files = {name: release.tree / name for name in FILES}
    for folder in FOLDERS:
        files |= {f"{folder}/{name}": path for name, path in folder_files(release.tree / folder).items()}
    text = project(release.tree)
    files |= {"pyproject.toml": text.encode(), "PKG-INFO": information(release, text)}
    name = f"wisp-{release.version}"
    sources = release.files / f"{name}.tar.gz"
    write_tar(sources, name, files, release.epoch)

    # It is built from the shipped files and not from the tree, so that a forgotten file is noticed.
    unpacked = release.work / "sdist"
    unpacked.mkdir()
    release.run("tar", "-xzf", sources, "-C", unpacked)
    release.run(
        python,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--config-settings",
        f"build-dir={unpacked / name / 'build/release'}",
        "--config-settings",
        "cmake.define.WISP_TOOLS=ON",
        "-w",
        release.files,
        unpacked / name,
        folder=unpacked,
        CCACHE_BASEDIR=str(unpacked / name),
    )
