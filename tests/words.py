#!/usr/bin/env python3
"""Finds comments that do not begin with a subject, and comments and messages that call something invalid "none". In
documents it finds sentences of more than 30 words, and our own words where the field has one.

    tests/words.py [FILE...]      default: all sources and documents; prints FILE:LINE: why; exits with 1 if one is bad
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


DOCUMENTS = re.compile(r"(?:^|/)(?:docs/[\w-]+|README|SECURITY|CONTRIBUTING|CHANGELOG|planted)\.md$")
OTHERS = ("docs/papers/", "tests/golden/", "tests/words.py")
MOST_WORDS = 30
FIELD_WORDS = {"judg": "evaluate", "newcomer": "cold start, user without history", "foretell": "predict",
               "roofs?\\b": "roofline", "kept keys": "key/value cache", "widened": "dequantised, converted to float32"}


def sentences(text):
    """(line, sentence) of a document's prose: without blocks, tables, headings; a code span or a link is one word."""
    text = re.sub(r"(?ms)^```.*?^```$", lambda m: "\n" * m[0].count("\n"), text)
    text = re.sub(r"(?m)^(?: {4}|\||#|!).*$", "", text)
    text = re.sub(r"`[^`]*`", lambda m: "code" + "\n" * m[0].count("\n"), text)
    text = re.sub(r"\]\([^)]*\)", lambda m: "]" + "\n" * m[0].count("\n"), text)
    for part in re.finditer(r"(?:^(?!\s*(?:[-*] |\d+\. )?\s*$).+\n?)(?:^(?!\s*(?:[-*] |\d+\. |$)).+\n?)*", text, re.M):
        line = text.count("\n", 0, part.start()) + 1
        for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(part[0].split())):
            yield line, sentence


def document_breaches(text):
    for number, sentence in sentences(text):
        if (words := sum(1 for word in sentence.split() if re.search(r"\w", word))) > MOST_WORDS:
            yield number, f"a sentence has {words} words, {MOST_WORDS} are allowed: {sentence[:60]}"
        for word, field in FIELD_WORDS.items():
            if match := re.search(rf"\b{word}", sentence, re.I):
                yield number, f"'{match[0]}': the field says {field}"


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
    if name.endswith(".md"):
        yield from document_breaches(text)
        return
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
        if not (name.endswith(ENDINGS) or DOCUMENTS.search(name)) or "/generated/" in name or name.startswith(OTHERS):
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
