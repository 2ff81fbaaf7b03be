#!/usr/bin/env python3
"""Finds comments that do not begin with a subject, and comments and messages that call something invalid "none".

    tests/words.py [FILE...]      default: every source; prints FILE:LINE: why, and exits with 1 if there is one
"""
import re
import subprocess
import sys

ENDINGS = (".cc", ".h", ".hpp", ".c", ".cu", ".kt", ".swift", ".py", ".js", ".mjs", ".ts", ".sh", ".cmake", ".fbs",
           "CMakeLists.txt")
FIRST = re.compile(r"(Of|What|Whether|Nor|As|The same)\b", re.I)
NONE = re.compile(r"\b(is|are|was|were) none\b")
SLASHES, HASHES = re.compile(r"^\s*///?<?\s?(.*)"), re.compile(r"^\s*#\s(.*)")
AFTER_CODE = re.compile(r"\S.*?\s///?<?\s(.*)")


def comments(name, text):
    """(line, the comment, whether it begins there) for each line that has one."""
    whole = HASHES if name.endswith((".py", ".sh", ".cmake", "CMakeLists.txt")) else SLASHES
    goes_on = False
    for number, line in enumerate(text.split("\n"), 1):
        if match := whole.match(line):
            yield number, match[1], not goes_on
            goes_on = match[1] != ""
            continue
        goes_on = False
        if whole is SLASHES and (match := AFTER_CODE.match(line)) and '"' not in match[1]:
            yield number, match[1], True


def breaches(name, text):
    for number, comment, begins in comments(name, text):
        if begins and (match := FIRST.match(comment)):
            yield number, f"a comment begins with '{match[0]}': begin with the subject"
        if match := NONE.search(comment):
            yield number, f"'{match[0]}': say what is wrong: empty, missing, invalid"
    for number, line in enumerate(text.split("\n"), 1):
        for quoted in re.findall(r'"([^"\\]*)"', line):
            if match := NONE.search(quoted):
                yield number, f"a message says '{match[0]}': say what is wrong: empty, missing, invalid"


def main():
    names = sys.argv[1:]
    if not names:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, check=True)
        names = listed.stdout.decode().split("\n")
    bad = 0
    for name in sorted(set(names)):
        if not name.endswith(ENDINGS) or "/generated/" in name or name.startswith(("tests/golden/", "tests/words.py")):
            continue
        try:
            text = open(name, encoding="utf-8").read()
        except (FileNotFoundError, UnicodeDecodeError):
            continue
        for number, why in breaches(name, text):
            print(f"{name}:{number}: {why}")
            bad += 1
    print(f"{bad} breaches")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
