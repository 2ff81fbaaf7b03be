"""Finds the names that a C++ source declares for itself alone, and renames them.

In one translation unit the unnamed namespaces of all sources are one. What a source declares there is renamed where any
other source says the same word, whatever it means by it: then no lookup and no choice among overloads can see more
than it sees when the source is compiled alone. A word behind `.`, `->` or `::` belongs to something else and stays.
"""

import re

TOKEN = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/"""
    r"""|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|'?\w|\.)*|\s+|::|->|\.\.\.|[^\w\s]""",
    re.S,
)
WORD = re.compile(r"[A-Za-z_]\w*")
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
WITH_ARGUMENTS = {"__attribute__", "alignas", "decltype", "noexcept", "requires"}
CLOSING = {"(": ")", "{": "}", "[": "]"}
KINDS = {"struct", "class", "union", "enum"}


class Unclear(Exception):
    """A declaration whose name was not found, or a name that means two things."""


def tokens(text):
    """Every token, comments and white space among them."""
    return [m[0] for m in TOKEN.finditer(text)]


def is_code(token):
    return not (token.isspace() or token.startswith(("//", "/*")))


def words(text):
    return {t for t in tokens(text) if WORD.fullmatch(t)}


def group_end(code, at):
    """Returns the position after the bracket that closes the one at `at`."""
    opening, closing, depth = code[at], CLOSING[code[at]], 0
    for i in range(at, len(code)):
        depth += (code[i] == opening) - (code[i] == closing)
        if depth == 0:
            return i + 1
    raise Unclear(f"'{opening}' is never closed behind {' '.join(code[max(0, at - 8):at])}")


def angles_end(code, at):
    """Returns the position after the `>` that closes the `<` at `at`, or `at` itself if that `<` is a comparison."""
    depth, i = 0, at
    while i < len(code):
        if code[i] in CLOSING:
            i = group_end(code, i)
            continue
        if code[i] == ";":
            return at
        depth += (code[i] == "<") - (code[i] == ">")
        i += 1
        if depth == 0:
            return i
    return at


def statements(code):
    """Yields each declaration of a scope: its tokens, with each body in braces as one token, a tuple."""
    i, statement = 0, []
    while i < len(code):
        token = code[i]
        if token == ";":
            if statement:
                yield statement
            statement, i = [], i + 1
        elif token == "{":
            end = group_end(code, i)
            statement.append(tuple(code[i + 1 : end - 1]))
            i = end
            following = code[i] if i < len(code) else ""
            if following not in (";", ",", "{", "(", "[", "=") and "=" not in statement and statement[0] not in KINDS:
                yield statement
                statement = []
        elif token in "([":
            end = group_end(code, i)
            statement += code[i:end]
            i = end
        elif token == ":" and statement and statement[-1] in ("public", "private", "protected"):
            statement, i = [], i + 1
        else:
            statement.append(token)
            i += 1
    if statement:
        yield statement


def without_prefix(statement):
    """Returns the declaration without `template <...>` and attributes."""
    s = list(statement)
    while s:
        if s[0] == "template" and len(s) > 1 and s[1] == "<":
            s = s[angles_end(s, 1) :]
        elif s[0] in WITH_ARGUMENTS and len(s) > 1 and s[1] == "(":
            s = s[group_end(s, 1) :]
        elif s[0] == "[" and s[1] == "[":
            s = s[group_end(s, 0) :]
        else:
            break
    return s


def declarators(s):
    """Names the variables or the function of a declaration."""
    names, i, value = [], 0, False
    while i < len(s):
        token = s[i]
        before = s[i - 1] if i else ""
        if token == "operator":
            return names
        if token == "<" and WORD.fullmatch(before if isinstance(before, str) else ""):
            i = max(i + 1, angles_end(s, i))
            continue
        if token in WITH_ARGUMENTS and i + 1 < len(s) and s[i + 1] == "(":
            i = group_end(s, i + 1)
            continue
        ends = isinstance(token, tuple) or token in ("(", "=", "[", ":", ",")
        if ends and not value:
            if token == "(" and s[i + 1] == "*":  # a pointer to functions
                return names + [
                    word
                    for word, end in zip(s[i + 2 : i + 5], s[i + 3 : i + 6])
                    if end in (")", "[") and WORD.fullmatch(word)
                ]
            if isinstance(before, str) and WORD.fullmatch(before) and (i < 2 or s[i - 2] != "::"):
                names.append(before)
            if token == "(":
                return names
            value = token != ","
        elif token == ",":
            value = False
        if token in ("(", "["):
            i = group_end(s, i)
            continue
        i += 1
    if not value and s and isinstance(s[-1], str) and WORD.fullmatch(s[-1]) and (len(s) < 2 or s[-2] != "::"):
        names.append(s[-1])
    return names


def declared_by(statement):
    """Returns (names, members) that one declaration adds to its scope and to the class that it defines."""
    s = without_prefix(statement)
    if not s or s[0] in ("static_assert", "friend", "namespace", "extern"):
        return set(), set()
    if s[0] == "using":
        return ({s[1]} if len(s) > 2 and s[2] == "=" else set()), set()
    body = next((t for t in s if isinstance(t, tuple)), None)
    if s[0] in KINDS and (body is not None or "(" not in s):
        head = without_prefix(s[2:] if s[1] in ("class", "struct") else s[1:])
        name = {head[0]} if head and isinstance(head[0], str) and WORD.fullmatch(head[0]) else set()
        if s[0] != "enum":
            return name, declared(list(body or ()))[0] - name  # a constructor is the class itself
        if s[1] not in ("class", "struct"):
            name |= {t for before, t in zip((",",) + (body or ()), body or ()) if before == "," and WORD.fullmatch(t)}
        return name, set()
    found = declarators(s)
    if not found and "operator" not in s and "::" not in s:
        raise Unclear("no name was found in '" + " ".join(t if isinstance(t, str) else "{...}" for t in s[:16]) + "'")
    return set(found), set()


def declared(code):
    """(names of a scope, members of the classes that it defines)"""
    names, members = set(), set()
    for statement in statements(code):
        found, inner = declared_by(statement)
        names, members = names | found, members | inner
    return names, members


def code_of(text):
    return [t for t in tokens(DIRECTIVE.sub("", text)) if is_code(t)]


def classes(code):
    """(name, members) of each class that is defined anywhere in a source."""
    for i, token in enumerate(code):
        if token not in ("struct", "class") or (i and code[i - 1] == "enum"):
            continue
        head = code[i + 1 : i + 40]
        stop = next((j for j, t in enumerate(head) if t in ("{", ";", "(", ")", ">", "=")), None)
        if stop and head[stop] == "{" and WORD.fullmatch(head[0]):
            body = i + 1 + stop
            names, _ = declared(code[body + 1 : group_end(code, body) - 1])
            yield head[0], names - {head[0]}


def extended_classes(code):
    """Names the classes of which a source defines member functions outside of the class."""
    for statement in statements(code):
        body = next((t for t in statement if isinstance(t, tuple)), None)
        if body is not None and statement[0] == "namespace":
            yield from extended_classes(list(body))
        elif body is not None and "(" in statement:
            at = statement.index("(")
            if at > 2 and statement[at - 2] == "::":
                yield statement[at - 3]


def namespace_of(head, within):
    """Returns the path of the namespace that `namespace a::b` opens within another."""
    words_of_head = (t for t in head if isinstance(t, str) and WORD.fullmatch(t))
    return within + tuple(t for t in words_of_head if t not in ("namespace", "inline"))


def scope_names(code, within=()):
    """Returns (namespace, name) of the declarations in a header's named namespaces."""
    for statement in statements(code):
        body = next((t for t in statement if isinstance(t, tuple)), None)
        if body is not None and statement[0] == "namespace":
            yield from scope_names(list(body), namespace_of(statement, within))
        elif statement[0] not in ("using", "extern"):
            try:
                yield from ((within, name) for name in declared_by(statement)[0])
            except Unclear:
                pass  # a macro that stands alone


def private_names(code, within=()):
    """Returns (namespace, name) of the declarations in a source's unnamed namespaces."""
    for statement in statements(code):
        body = next((t for t in statement if isinstance(t, tuple)), None)
        if body is not None and statement[0] == "namespace":
            if isinstance(statement[1], tuple):
                yield from ((within, name) for name in declared(list(body))[0])
            yield from private_names(list(body), namespace_of(statement, within))


def renamed(text, new_names):
    """Replaces the words, except where a word is a member or belongs to a namespace."""
    result, before = [], ["", ""]
    for token in tokens(text):
        if token in new_names:
            owner = before[1] if before[0] == "::" else ""
            if before[0] in (".", "->") or (before[0] == "::" and owner != token):
                result.append(token)
            else:
                result.append(new_names[token])
        else:
            result.append(token)
        if is_code(token):
            before = [token, before[0]]
    return "".join(result)
