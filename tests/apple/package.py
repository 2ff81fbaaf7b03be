#!/usr/bin/env python3
"""Checks Package.swift against the folder that it lies in, and prints it as the commands that SwiftPM would run.

package.py check FOLDER                 every path that is listed is there, every source is in a target; no flags
package.py flags FOLDER TARGET          the options that a target's sources are compiled with, one a line
package.py sources FOLDER TARGET        its sources of C and C++, one a line
"""

import re
import sys
from pathlib import Path

COMPILED = {".c", ".cc", ".S", ".m", ".mm"}


def block(text, at):
    """From an opening parenthesis to its closing one."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[at + 1 : i]
    sys.exit("Package.swift: a parenthesis is not closed")


def strings(text, label):
    found = re.search(rf"\b{label}: \[(.*?)\]", text, re.S)
    return re.findall(r'"([^"]*)"', found[1]) if found else []


def targets_of(folder):
    text = re.sub(r"//.*", "", (folder / "Package.swift").read_text())
    targets = {}
    for found in re.finditer(r"\.(target|testTarget)\(", text):
        body = block(text, found.end() - 1)
        name = re.search(r'name: "(\w+)"', body)[1]
        public = re.search(r'publicHeadersPath: "([^"]*)"', body)
        targets[name] = {
            "folder": folder / ("Tests" if found[1] == "testTarget" else "Sources") / name,
            "depends": strings(body, "dependencies"),
            "exclude": strings(body, "exclude"),
            "sources": strings(body, "sources"),
            "public": public[1] if public else None,
            "resources": re.findall(r'\.(?:copy|process)\("([^"]*)"\)', body),
            "search": re.findall(r'\.headerSearchPath\("([^"]*)"\)', body),
            "defines": [
                n + (f"={v}" if v else "") for n, v in re.findall(r'\.define\("(\w+)"(?:, to: "([^"]*)")?\)', body)
            ],
        }
    standard = re.search(r"cxxLanguageStandard: \.cxx(\d+)", text)
    return text, targets, standard[1] if standard else None


def files_of(target):
    base = target["folder"]
    outside = [base / e for e in target["exclude"]]
    roots = [base / s for s in target["sources"]] or [base]
    for file in sorted(f for root in roots for f in ([root] if root.is_file() else root.rglob("*"))):
        if file.is_file() and not any(e == file or e in file.parents for e in outside):
            yield file


def check(folder):
    text, targets, standard = targets_of(folder)
    wrong = []
    if "unsafeFlags" in text:
        wrong.append("unsafeFlags occurs: no other package may then depend on this one")
    if standard is None:
        wrong.append("cxxLanguageStandard is not given")
    if (
        not text.lstrip().startswith("import")
        or "swift-tools-version" not in (folder / "Package.swift").read_text().splitlines()[0]
    ):
        wrong.append("the first line is not the version of the tools")
    for name, t in targets.items():
        listed = t["exclude"] + t["sources"] + t["resources"] + t["search"] + ([t["public"]] if t["public"] else [])
        wrong += [f"target {name}: '{p}' is listed and is not there" for p in listed if not (t["folder"] / p).exists()]
        wrong += [f"target {name}: depends on '{d}', which is no target" for d in t["depends"] if d not in targets]
        wrong += [
            f"target {name}: '{p}' leads out of the package"
            for p in listed
            if ".." in Path(p).parts or p.startswith("/")
        ]
        kinds = {f.suffix for f in files_of(t)}
        if ".swift" in kinds and kinds & COMPILED:
            wrong.append(f"target {name}: Swift and C are in one target, which SwiftPM refuses")
        if not kinds & (COMPILED | {".swift"}):
            wrong.append(f"target {name}: has no source")
        if t["public"] and not (t["folder"] / t["public"] / "module.modulemap").is_file():
            wrong.append(f"target {name}: has no module map")
    for area in ("Sources", "Tests"):
        wrong += [f"{d} is no target of Package.swift" for d in (folder / area).iterdir() if d.name not in targets]
    for line in wrong:
        print(line)
    print(f"{len(targets)} targets, {len(wrong)} wrong")
    return 1 if wrong else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "check":
        return check(Path(sys.argv[2]))
    if len(sys.argv) != 4 or sys.argv[1] not in ("flags", "sources"):
        sys.exit(__doc__)
    _, targets, standard = targets_of(Path(sys.argv[2]))
    t = targets[sys.argv[3]]
    files = [f for f in files_of(t) if f.suffix in COMPILED]
    if sys.argv[1] == "sources":
        print(*files, sep="\n")
        return 0
    if any(f.suffix == ".cc" for f in files):
        print(f"-std=c++{standard}")
    print(*(f"-D{d}" for d in t["defines"]), *(f"-I{t['folder'] / s}" for s in t["search"] + [t["public"]]), sep="\n")
    print(*(f"-I{targets[d]['folder'] / targets[d]['public']}" for d in t["depends"]), sep="\n")
    return 0


sys.exit(main())
