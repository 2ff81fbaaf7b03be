"""Finds the definition of a C++ function in a file, and replaces an expression in it that stands there once.

No parser: comments and strings are blanked, then a name, its parameters and a body in braces make a definition.
Enough for this repository's style; what it does not find is an error of whoever asks, never passed over.
"""
import re


class Stale(Exception):
    """The code no longer has what a fault names."""


def blanked(text):
    """Replaces comments and strings by blanks of the same length."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def closing(code, start):
    """Returns the place of the bracket that closes the one at `start`."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    stack = []
    for i in range(start, len(code)):
        if code[i] in pairs:
            stack.append(pairs[code[i]])
        elif stack and code[i] == stack[-1]:
            stack.pop()
            if not stack:
                return i
    return -1


def skip_blank(code, i):
    while i < len(code) and code[i].isspace():
        i += 1
    return i


def body_after(code, i):
    """Returns the first and last place of the body after a list of parameters that ends before `i`, with a
    constructor's list; or None."""
    while True:
        i = skip_blank(code, i)
        word = re.match(r"(const|override|noexcept|final)\b|->\s*[\w:<>&*\s]+?(?=\{)", code[i:])
        if not word:
            break
        i += word.end()
    start = i
    if code[i:i + 1] == ":" and code[i:i + 2] != "::":
        i += 1
        while True:  # member(...), or member{...}, and the body after the last
            i = skip_blank(code, i)
            member = re.match(r"[\w:<>]+", code[i:])
            if not member:
                return None
            i = skip_blank(code, i + member.end())
            if code[i:i + 1] not in ("(", "{"):
                return None
            i = skip_blank(code, closing(code, i) + 1)
            if code[i:i + 1] != ",":
                break
            i += 1
    if code[i:i + 1] != "{":
        return None
    return start, closing(code, i)


def bodies(text, name):
    """Returns (first, last) of every definition of the function in the file."""
    code = blanked(text)
    found = []
    for match in re.finditer(r"(?<![\w:])" + re.escape(name) + r"\s*\(", code):
        end = closing(code, match.end() - 1)
        body = body_after(code, end + 1) if end >= 0 else None
        if body:
            found.append(body)
    return found


def pattern_of(expression):
    """Matches the expression however its tokens are laid out: blanks and line ends between them do not count."""
    tokens = re.findall(r'"(?:\\.|[^"\\])*"|\w+|\S', expression)
    pattern = re.escape(tokens[0])
    for before, token in zip(tokens, tokens[1:]):
        words = re.match(r"\w", before[-1]) and re.match(r"\w", token)
        pattern += (r"\s+" if words else r"\s*") + re.escape(token)
    return re.compile(pattern)


def planted(text, fault):
    """Returns the text with the fault in it."""
    spans = bodies(text, fault.function) if fault.function else [(0, len(text) - 1)]
    if not spans:
        raise Stale(f"{fault.file} defines no function {fault.function}")
    expression = pattern_of(fault.before)
    hits = [m for first, last in spans for m in expression.finditer(text, first, last + 1)]
    if len(hits) != 1:
        where = f"function {fault.function}" if fault.function else "the file"
        raise Stale(f"{fault.file}, {where}: '{fault.before}' stands there {len(hits)} times, expected once")
    return text[:hits[0].start()] + fault.after + text[hits[0].end():]
