"""One translation unit of many files.

The unit has parts. Part 0 is the unit itself: headers where they are first included, then sources. Other parts are what
is compiled more than once or out of order: the file includes itself, with WISP_PART saying which part is meant.

- Kernels that Highway compiles once for each instruction set are one part together, and Highway's foreach_target.h
  includes that part again and again. So headers of theirs that count on being included once for each set still are.
- A header of another library is a part, which can tell the compiler to be silent about it as about the system's.
"""

import functools
import re

from names import (
    DIRECTIVE,
    TOKEN,
    Unclear,
    classes,
    code_of,
    extended_classes,
    private_names,
    renamed,
    scope_names,
    words,
)
from products import PRODUCTS, Refused

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)[^\n]*\n', re.M)
MACRO_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]+HWY_TARGET_INCLUDE[^\n]*\n", re.M)
TARGET_INCLUDE = re.compile(r"^#(?:undef|define) HWY_TARGET_INCLUDE[^\n]*\n", re.M)
FOREACH = "hwy/foreach_target.h"
# These libraries consist of headers alone, and are small. Highway's vectors of no fixed size are not a target
# (kernels/simd/targets.h).
INLINED = ("hwy/", "flatbuffers/", "xxhash.h")
NOT_INLINED = ("hwy/ops/arm_sve-inl.h", "hwy/ops/rvv-inl.h")
PUBLIC = ("wisp.h", "wisp_embed.h", "wisp_text.h", "wisp_deployment.h", "wisp_fleet.h")


def refer(part):
    return f"#undef WISP_PART\n#define WISP_PART {part}\n#include WISP_AMALGAMATION_FILE\n"


@functools.cache
def directives(text):
    """(position, words) of each line of the preprocessor, comments left out."""
    inside = [m.span() for m in TOKEN.finditer(text) if m[0].startswith("/*")] if "/*" in text else []
    return [
        (found.start(), found[0].strip().lstrip("#").split())
        for found in DIRECTIVE.finditer(text)
        if not any(a < found.start() < b for a, b in inside)
    ]


@functools.cache
def guard_of(text):
    """The macro that guards a header as a whole, or None."""
    lines = directives(text)
    if len(lines) < 3 or lines[0][1][0] != "ifndef" or lines[1][1][:2] != ["define", lines[0][1][1]]:
        return None
    depth = 0
    for i, (_, line) in enumerate(lines):
        depth += line[0] in ("if", "ifdef", "ifndef")
        depth -= line[0] == "endif"
        if depth == 0:
            return lines[0][1][1] if i == len(lines) - 1 else None
    return None


class Unit:
    def __init__(self, build, include_folders):
        self.build, self.include_folders = build, include_folders
        self.parts, self.part_of, self.emitted, self.included = {}, {}, set(), {}
        self.texts = {name: (build.root / name).read_text() for name in build.sources}
        self.kernel_part, self.last_part, self.written, self.before = 1, 1, set(), []
        self.read_words()

    # ---- the words that each file uses ------------------------------------------------------------------------------

    def read_words(self):
        folders = [self.build.root / folder for folder in ("kernels", "runtime", "schema", "ports/c")]
        files = [path for folder in folders for path in folder.rglob("*.h")]
        self.members, self.scopes = {}, {}
        for path in sorted(files):
            code = code_of(path.read_text())
            self.scopes[str(path.relative_to(self.build.root))] = set(scope_names(code))
            for owner, said in classes(code):
                self.members.setdefault(owner, set()).update(said)
        self.words = {str(p.relative_to(self.build.root)): words(p.read_text()) for p in sorted(files)}
        self.words.update({name: words(text) for name, text in self.texts.items()})
        self.sayers = {}
        for name, said in self.words.items():
            for word in said:
                self.sayers.setdefault(word, set()).add(name)

    def private(self, name, text):
        """Renames the source's own names where other files use the same words."""
        code, suffix = code_of(text), re.sub(r"\W+", "_", name.rsplit(".", 1)[0])
        try:
            own = {(space, n) for space, n in private_names(code) if self.sayers.get(n, set()) - {name}}
            new = {n: f"{n}_in_{suffix}" for _, n in own}
            self.check_members(code, new)
            self.check_headers(name, own)
            return renamed(text, new)
        except Unclear as e:
            raise Refused(f"{name}: {e}") from None

    def check_members(self, code, new):
        """Refuses a word that has two meanings. Within a class a word means its member; this code does not resolve
        which one is meant."""
        members = dict(classes(code))
        members.update({c: self.members.get(c, set()) for c in extended_classes(code) if c not in members})
        for owner, said in members.items():
            if both := sorted(set(new) & said):
                raise Unclear(f"'{both[0]}' is a member of {owner} and in the unnamed namespace as well: rename one")

    def check_headers(self, name, own):
        """Refuses overloads that a new name would separate, because the compiler would no longer choose among them."""
        for header in sorted(self.includes_of(name)):
            if self.is_fragment(header):
                continue
            for space, word in sorted(self.scopes.get(header, set())):
                if any(word == n and at[: len(space)] == space for at, n in own):
                    raise Unclear(f"'{word}' is in the unnamed namespace, and {header} declares it too: rename one")

    # ---- headers ----------------------------------------------------------------------------------------------------

    def find(self, include, beside):
        """Returns the text of another library's header that is put in, or None."""
        if not include.startswith(INLINED) or include in NOT_INLINED:
            return None
        for folder in self.include_folders:
            if (folder / include).is_file():
                text = (folder / include).read_text()
                return text if text.endswith("\n") else text + "\n"
        if include.split("/")[0] == "hwy" and beside.startswith("hwy/"):
            return None  # the condition never holds where that version of Highway is installed
        raise Refused(
            f"{include}, which {beside} includes, is in none of {', '.join(map(str, self.include_folders))}: "
            f"install it, or name its folder by --include"
        )

    def theirs(self, include, beside, conditional):
        """Returns the text that replaces an `#include` of another library's header."""
        if include in self.part_of:
            return refer(self.part_of[include])
        if include in self.emitted:
            return ""
        text = self.find(include, beside)
        if text is None:
            return None
        guarded = guard_of(text) is not None
        self.last_part = number = self.last_part + 1
        if guarded and not conditional:
            self.emitted.add(include)
        else:
            self.part_of[include] = number
        once = guarded and not conditional
        body = self.put_in(include, text, lambda i, c: self.theirs_within(i, include, c or not once))
        if include == FOREACH:
            body = MACRO_INCLUDE.sub(lambda m: refer(self.kernel_part), body)
        self.parts[number] = (include, "#pragma GCC system_header\n" + body)
        return refer(number)

    def theirs_within(self, include, beside, conditional):
        """Works like `theirs`, for includes within those headers: a header that is needed once stands where it is
        needed."""
        if conditional or include in self.part_of or include in self.emitted:
            return self.theirs(include, beside, conditional)
        text = self.find(include, beside)
        if text is None:
            return None
        if guard_of(text) is None:
            return self.theirs(include, beside, True)
        self.emitted.add(include)
        return self.put_in(include, text, lambda i, c: self.theirs_within(i, include, c))

    def put_in(self, name, text, replace):
        """Replaces each #include that `replace` knows. The function is told if the include is under a condition."""
        guarded = guard_of(text) is not None
        depths, depth = [], 0
        for at, line in directives(text):
            depths.append((at, depth))
            depth += line[0] in ("if", "ifdef", "ifndef")
            depth -= line[0] == "endif"
        depth_at = dict(depths)

        def one(found):
            if found.start() not in depth_at:
                return found[0]  # within a comment
            result = replace(found[1] or found[2], depth_at[found.start()] > guarded)
            return found[0] if result is None else result

        return INCLUDE.sub(one, text)

    def header(self, include, conditional, beside):
        """Returns the text that replaces an #include in a source or a header of wisp's."""
        if include.startswith("ports/c/") and include.split("/")[-1] in PUBLIC:
            return ""  # wisp.h, in the first lines
        path = self.build.root / include
        if not path.is_file():
            return self.theirs(include, beside, conditional)
        if include in self.emitted:
            return ""
        text = path.read_text()
        if guard_of(text) is None:  # a table in the middle of another file
            return text
        if not conditional:
            self.emitted.add(include)
        body = self.put_in(include, text, lambda i, c: self.header(i, c or conditional, include))
        return f"// ---- {include}\n{body}"

    # ---- sources ----------------------------------------------------------------------------------------------------

    def with_fragments(self, text):
        """Inserts headers that have no guard of any kind: they are pieces of the source."""

        def fragment(include, conditional):
            return (self.build.root / include).read_text() if self.is_fragment(include) else None

        return self.put_in("", text, fragment)

    def is_fragment(self, include):
        path = self.build.root / include
        if not include.endswith("-inl.h") or not path.is_file():
            return False
        lines = (line for _, line in directives(path.read_text()))
        return not any(line[0] in ("ifndef", "if") and "_H_" in " ".join(line) for line in lines)

    @staticmethod
    def own_macros(text):
        """Ends the macros of a source with it."""
        lines = [line for _, line in directives(text)]
        macros = {line[1].split("(")[0] for line in lines if line[0] == "define"}
        return "".join(f"#undef {macro}\n" for macro in sorted(macros))

    def source(self, name):
        return self.private(name, self.with_fragments(TARGET_INCLUDE.sub("", self.texts[name])))

    def kernel(self, name):
        """Handles a source that is compiled once for each instruction set. The parts that it needs only once go
        before all of them."""
        text = self.source(name)

        def replace(include, conditional):
            if include == FOREACH:
                return ""
            return self.per_target(include, conditional, name)

        body = self.put_in(name, text, replace)
        return f"// ---- {name}\n{body}{self.own_macros(text)}"

    def per_target(self, include, conditional, beside):
        """Returns the text that replaces an #include in a kernel. It is empty for a header that is needed once,
        since that goes before all kernels."""
        path = self.build.root / include
        text = path.read_text() if path.is_file() else self.find(include, beside)
        once = text is None or guard_of(text) is not None
        if not once and include in self.written:
            return ""
        if not once:
            self.written.add(include)
        if path.is_file() and not once:
            return f"// ---- {include}\n" + self.put_in(include, text, lambda i, c: self.per_target(i, c, include))
        if not once:
            return self.theirs(include, beside, conditional)
        if text is not None:
            self.before.append(self.header(include, False, beside))
        elif include not in self.written:
            self.written.add(include)
            self.before.append(f"#include <{include}>\n")
        return ""

    def is_kernel(self, name):
        return f'#include "{FOREACH}"' in self.texts[name]

    def includes_of(self, name):
        """Headers of wisp's that a source includes, directly or not."""
        seen, todo = set(), [name]
        while todo:
            more = self.included_by(todo.pop()) - seen
            seen |= more
            todo += more
        return seen

    def included_by(self, path):
        if path not in self.included:
            text = self.texts.get(path) or (self.build.root / path).read_text()
            names = {found[1] for found in INCLUDE.finditer(text) if found[1]}
            self.included[path] = {name for name in names if (self.build.root / name).is_file()}
        return self.included[path]

    def product_of(self, name):
        """Returns the product of its library, or a later one whose headers it includes: not every source serves as
        many products."""
        products = [self.build.product_of[name], *map(self.build.product_of_header, self.includes_of(name))]
        return max(products, key=PRODUCTS.index)

    def make(self, first_source):
        """Returns {part: text}. `first_source` is (name, text) of the stand-in for Highway's library."""
        kernels = [name for name in self.build.sources if self.is_kernel(name)]
        pass_text = "".join(self.kernel(name) for name in kernels)
        main = ["".join(self.before)]
        main.append(f"#define HWY_TARGET_INCLUDE WISP_AMALGAMATION_FILE\n{self.theirs(FOREACH, kernels[0], False)}")
        main.append(refer(self.kernel_part))
        self.parts[self.kernel_part] = ("kernels, once for each instruction set", pass_text)
        by_product = {product: [] for product in PRODUCTS}
        for name in self.build.sources:
            if name not in kernels:
                by_product[self.product_of(name)].append(name)
        main.append(self.whole(*first_source))
        for product in PRODUCTS:
            body = "".join(self.whole(name, self.texts[name]) for name in by_product[product])
            main.append(body if product == PRODUCTS[0] else f"#ifdef WISP_{product.upper()}\n{body}#endif\n")
        self.counts = {product: len(names) for product, names in by_product.items()}
        self.counts[PRODUCTS[0]] += len(kernels)
        return "".join(main)

    def whole(self, name, text):
        self.texts.setdefault(name, text)
        text = self.source(name)
        body = self.put_in(name, text, lambda i, c: self.header(i, c, name))
        return f"// ---- {name}\n{body}{self.own_macros(text)}"
