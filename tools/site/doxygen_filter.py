#!/usr/bin/env python3
"""Shows Doxygen the comments of our headers as documentation. They are plain comments there, as people read them.

    doxygen_filter.py HEADER     prints the header

A comment before a declaration becomes /** */, one behind a declaration /**< */, the first of a file that of the file,
a line of dashes with a name between them a section of that name, and lines three columns in are an example. Fields that
share a line share its comment, or each has its part of it between semicolons. What "Conventions" of wisp.h says once of
all structs is said of each: `size`, and room that is not read; and of what callbacks are given. No line moves.
"""

import re
import sys

SECTION = re.compile(r"^(?:/\*|//) -{4} (.*?) -+(?: \*/)?$")
RULE = re.compile(r"^ \* -{4} .* -+(?: \*/)?$")  # within the comment of a file
EXAMPLE = re.compile(r"^( \*|//)   (?=[^ -])")  # within any comment
NO_DOCUMENTATION = re.compile(r"^\s*#(?!define)|^}  // namespace|// NOLINT|^ \*")
BODY = re.compile(r"\)(?: const)?(?: noexcept)? \{(?:\s*//.*)?$")  # opens the body of a function
# These lines need no comment of their own: rules, and openings of a struct or function with the comment after the
# brace.
RULES = (
    (re.compile(r"^(  size_t size;)$"), r"\1 /**< Set by #WISP_INIT. */"),
    (re.compile(r"^(  u?int\d+_t not_read\w*;)(?: /\*.*)?$"), r"\1 /**< Room, not read. */"),
    (re.compile(r"^(  void\* (?:user_|run_tasks_)?data;)$"), r"\1 /**< Given to the callback above. */"),
    (re.compile(r"^(enum \{ \w+ = \w+) \}; /\* (.*) \*/$"), r"\1 /**< \2 */ };"),
    (re.compile(r"^(\s*\w[^;]*\{)\s+(?:/\*|//) (?!NOLINT)(.*?)(?: \*/)?$"), r"/** \2 */ \1"),
    (re.compile(r"^(\s*)/\* "), r"\1/** "),
    (re.compile(r"^(\s*)//(?= |$)"), r"\1///"),
    (re.compile(r"^(.*\S\s+)/\* (?=.*\*/$)"), r"\1/**< "),
    (re.compile(r"^(.*\S\s+)// "), r"\1///< "),
)
SHARED = re.compile(r"^(  \w+) (\w+(?: = \w+)?(?:, \w+(?: = \w+)?)+);(?:\s*(?:/\*|//) (.*?)(?: \*/)?)?$")


def apart(line, comment_above):
    """`double a, b; /* c */` as two fields, each with the comment."""
    shared = SHARED.match(line)
    if not shared:
        return documented(line)
    names, comment = shared[2].split(", "), shared[3] or comment_above
    parts = comment.split("; ")
    if len(parts) != len(names):
        parts = len(names) * [comment]
    return "".join(f"{shared[1]} {name}; /**< {part} */" for name, part in zip(names, parts))


def documented(line):
    for pattern, replacement in RULES:
        line, count = pattern.subn(replacement, line, count=1)
        if count:
            break
    return line


def comment_text(line, before):
    """Returns the comment that ends or continues in this line and belongs to the declaration in the next."""
    within = re.match(r"^\s+(/?\*) (.*?)(?: \*/)?$", line)
    if not within:
        return ""
    return within[2] if within[1] == "/*" else f"{before} {within[2]}"


def filtered(lines):
    head_ends = next((i for i, line in enumerate(lines) if line.startswith("#")), len(lines)) - 1
    above, open_braces = "", 0
    for number, line in enumerate(lines):
        line = EXAMPLE.sub(r"\1       ", line)
        section = SECTION.match(line)
        if section:
            line = f"/** @name {section[1]} */"
        elif RULE.match(line):
            line = " */" if line.endswith("*/") else " *"
        elif open_braces > 0:
            open_braces += line.count("{") - line.count("}")
        elif not NO_DOCUMENTATION.search(line):
            if BODY.search(line):
                open_braces = line.count("{") - line.count("}")
            line = re.sub(r"; NOLINT\(.*\)$", "", line)
            line, above = apart(line, above), comment_text(line, above)
        if number == head_ends:
            line = line.removesuffix("*/") + " @file" + (" */" if line.endswith("*/") else "")
        yield line


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: doxygen_filter.py HEADER")
    with open(sys.argv[1], encoding="utf-8") as header:
        print("\n".join(filtered(header.read().splitlines())))
