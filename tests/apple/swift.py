#!/usr/bin/env python3
"""Checks the uses of the C interface in Swift sources against the headers, without a Swift compiler.

    swift.py LAYOUT FILE.swift...      LAYOUT: what tests/abi/interface.py writes of the headers

Every name wisp_* and WISP_* must be one of the headers. A field of a variable that is declared with a struct's type
must be one of the struct. A call has as many arguments as the function. A struct that sized() makes conforms to
SizedStruct. Where tree-sitter's grammar of Swift is installed, each file must also be Swift.
"""

import re
import sys
from pathlib import Path


def layout(path):
    names, fields, arguments = set(), {}, {}
    for line in Path(path).read_text().splitlines():
        kind, rest = (line.split(" ", 1) + [""])[:2]
        if kind == "constant" or kind == "struct":
            names.add(rest.split(" ")[0])
        elif kind == "field":
            struct, field = rest.split(" ")[0].split(".")
            fields.setdefault(struct, set()).add(field)
        elif kind == "function":
            name = re.search(r"(\w+)\(", rest)[1]
            inside = rest[rest.index("(") + 1 : rest.rindex(")")]
            arguments[name] = 0 if inside == "void" else inside.count(",") + 1
        elif kind == "callback":
            names.add(re.search(r"\(\*(\w+)\)", rest)[1])
        # Enums are known from functions and fields that use them.
        names.update(re.findall(r"\b(wisp_\w+)", rest))
    return names | set(arguments), fields, arguments


def without_comments(text):
    """Blanks comments and the words of texts; code within a text stays."""
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\\(|\\.|[^"\\\n])*"', lambda m: " ".join(re.findall(r"\\\(([^)]*)\)", m[0])) or '""', text)


def number_of_arguments(text, at):
    """Returns the arguments of a call whose opening parenthesis is at `at`."""
    depth, commas, empty = 0, 0, True
    for c in text[at:]:
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return 0 if empty else commas + 1
        elif c == "," and depth == 1:
            commas += 1
        if depth and not c.isspace() and c != "(":
            empty = False
    return None


def check(file, names, fields, arguments):
    text = without_comments(file.read_text())
    line = lambda at: text.count("\n", 0, at) + 1
    for found in re.finditer(r"\b(wisp_\w+|WISP_[A-Z]\w*)\b", text):
        if found[1] not in names:
            yield f"{file.name}:{line(found.start())}: {found[1]} is not in the headers"
    for found in re.finditer(r"\b(wisp_\w+)\(", text):
        given = number_of_arguments(text, found.end() - 1)
        if found[1] in arguments and given != arguments[found[1]]:
            wanted = arguments[found[1]]
            yield f"{file.name}:{line(found.start())}: {found[1]} has {wanted} arguments, {given} are given"
    # A variable's type holds until the next declaration of its name.
    declared = [
        (m.start(), m[1], m[2] or m[3])
        for m in re.finditer(r"\b(?:var|let) (\w+)(?:: (wisp_\w+)\b|(?:: [^=\n]+)? = (?:(wisp_\w+)\(\)|[^\n]))", text)
    ]
    declared += [(m.start(), m[1], None) for m in re.finditer(r"\b(\w+) in\b", text)]
    for found in re.finditer(r"(?<![\w.])(\w+)\.(\w+)", text):
        before = [d for d in declared if d[0] < found.start() and d[1] == found[1]]
        struct = max(before)[2] if before else None
        if struct in fields and found[2] not in fields[struct]:
            yield f"{file.name}:{line(found.start())}: {struct} has no field {found[2]}"


def without_size(files):
    """A struct that sized() makes conforms to SizedStruct, in one of the files."""
    texts = {file: without_comments(file.read_text()) for file in files}
    sized = {name for text in texts.values() for name in re.findall(r"extension (wisp_\w+): SizedStruct\b", text)}
    for file, text in texts.items():
        for struct in sorted(set(re.findall(r": (wisp_\w+) = sized\(\)", text)) - sized):
            yield f"{file.name}: sized() makes {struct}, which does not conform to SizedStruct"


def is_swift(files):
    try:
        import tree_sitter
        import tree_sitter_swift
    except ImportError:
        print("the grammar of Swift was not asked: it is not installed (PyPI: tree-sitter, tree-sitter-swift)")
        return
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_swift.language()))

    def errors(node):
        if node.is_error or node.is_missing:
            yield node
        for child in node.children:
            yield from errors(child)

    for file in files:
        for node in errors(parser.parse(file.read_bytes()).root_node):
            yield f"{file.name}:{node.start_point[0] + 1}: this is no Swift: {node.text[:60].decode(errors='replace')}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    files = [Path(f) for f in sys.argv[2:]]
    names, fields, arguments = layout(sys.argv[1])
    wrong = [w for file in files for w in check(file, names, fields, arguments)]
    wrong += list(without_size(files)) + list(is_swift(files))
    print(*wrong, f"{len(files)} files, {len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


sys.exit(main())
