#!/usr/bin/env python3
"""The blocks of code in documents.

snippets.py DOCUMENT LANGUAGE [HEADING]     prints the one block of that language, below that heading if one is given
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

HEADING = re.compile(r"^#+ (.*)$")
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")


class Block(NamedTuple):
    line: int  # the first line of code
    language: str  # of a fenced block; "" for an indented one
    heading: str
    text: str


def fenced(lines, start):
    """Returns the end of the fenced block whose fence is lines[start]."""
    return next(i for i in range(start + 1, len(lines)) if lines[i] == "```")


def indented(lines, start):
    end = start
    for i in range(start, len(lines)):
        if lines[i].startswith("    "):
            end = i + 1
        elif lines[i]:
            break
    return end


def blocks(text):
    lines, found, heading, in_item, i = text.splitlines(), [], "", False, 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("```"):
            end = fenced(lines, i)
            found.append(Block(i + 2, line[3:].strip(), heading, "\n".join(lines[i + 1 : end]) + "\n"))
            i = end
        elif match := HEADING.match(line):
            heading, in_item = match[1], False
        elif line.startswith("    ") and not in_item and (i == 0 or not lines[i - 1]):
            end = indented(lines, i)
            found.append(Block(i + 1, "", heading, "\n".join(part[4:] for part in lines[i:end]) + "\n"))
            i = end - 1
        elif ITEM.match(line):
            in_item = True
        elif line and not line.startswith(" ") and not lines[i - 1]:
            in_item = False
        i += 1
    return found


def block(path, language, heading=None):
    matching = [
        b
        for b in blocks(Path(path).read_text(encoding="utf-8"))
        if b.language == language and heading in (None, b.heading)
    ]
    if len(matching) != 1:
        below = f" below '{heading}'" if heading else ""
        sys.exit(f"snippets.py: {path} has {len(matching)} blocks of {language or 'commands'}{below}; one is needed")
    return matching[0].text


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: snippets.py DOCUMENT LANGUAGE [HEADING]")
    print(block(*sys.argv[1:]), end="")
