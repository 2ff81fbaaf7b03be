"""Reads from CMakeLists.txt which sources a product has.

A source belongs to a library (wisp_library: its folders, without what EXCLUDE names, or only what ONLY names), a
library to the first product that lists it (wisp_product: its PARTS). Products come in the order in which each has all
that the one before has.
"""

import re
from pathlib import Path

PRODUCTS = ("runtime", "text", "training")
# Sources in place of a wing that a build leaves out; the unit has every wing.
ABSENT = ("runtime/device/absent/", "runtime/methods/absent/")
# These sources are built for machines other than the compiling one, from libraries that an app would have to bring, or
# for the port to Python alone.
# The stand-in for Highway's library is not a part; it goes before all parts.
LEFT_OUT = (
    "kernels/cuda/",
    "kernels/module/",
    "kernels/stand_in/",
    "kernels/highway/",
    "runtime/fleet/server/",
    "ports/c/wisp_fleet_server.",
    *ABSENT,
)
OF_WISP = ("kernels", "runtime", "ports/c")
COMMAND = re.compile(r"^\s*(\w+)\(", re.M)
ARGUMENT = re.compile(r'#[^\n]*|"((?:\\.|[^"\\])*)"|([^\s()"#]+)|([()])')


class Refused(Exception):
    """The sentence says what was found and what is needed."""


def commands(text):
    """(name, arguments) of each command; comments are left out."""
    at = 0
    while found := COMMAND.search(text, at):
        depth, arguments, at = 1, [], found.end()
        while depth:
            token = ARGUMENT.search(text, at)
            if token is None:
                raise Refused(f"CMakeLists.txt: '{found[1]}(' has no end")
            at = token.end()
            depth += {"(": 1, ")": -1}.get(token[3], 0)
            if token[1] is not None or token[2] is not None:
                arguments.append(token[1] if token[1] is not None else token[2])
        yield found[1], arguments


def expanded(every):
    """The commands with functions of this file in place: a library may be made by one that takes its name."""
    functions, inside = {}, None
    for name, arguments in every:
        if name == "function":
            inside = arguments[0]
            functions[inside] = (arguments[1:], [])
        elif name == "endfunction":
            inside = None
        elif inside:
            functions[inside][1].append((name, arguments))
        elif name in functions and name not in ("wisp_library", "wisp_product"):
            parameters, body = functions[name]
            values = dict(zip(parameters, arguments))
            for inner, given in body:
                yield inner, [re.sub(r"\$\{(\w+)\}", lambda m: values.get(m[1], m[0]), a) for a in given]
        else:
            yield name, arguments


def part_of(arguments, keyword):
    """Returns the arguments between a keyword and the next one."""
    if keyword not in arguments:
        return []
    rest = arguments[arguments.index(keyword) + 1 :]
    end = next((i for i, a in enumerate(rest) if re.fullmatch("[A-Z]+", a)), len(rest))
    return rest[:end]


def sources_of(root, arguments):
    found = []
    for folder in part_of(arguments, "FOLDERS"):
        found += sorted(str(p.relative_to(root)) for p in (root / folder).glob("*.cc"))
    for exclude in part_of(arguments, "EXCLUDE"):
        pattern = re.compile(exclude.replace("\\\\", "\\"))
        found = [f for f in found if not pattern.search("/" + f)]
    only = part_of(arguments, "ONLY")
    return [f for f in found if not only or Path(f).stem in only]


class Build:
    """version, and for each source its product and its place in it; folder -> product, for headers."""

    def __init__(self, root):
        self.root = Path(root)
        text = (self.root / "CMakeLists.txt").read_text()
        libraries, folders, products, variables = {}, {}, {}, {}
        self.version = None
        for name, arguments in expanded(list(commands(text))):
            if name == "project":
                self.version = part_of(arguments, "VERSION")[0]
            elif name == "set" and len(arguments) <= 2:
                variables.setdefault(arguments[0], arguments[1:])
            elif name == "wisp_library" and arguments[0] not in libraries:
                libraries[arguments[0]] = sources_of(self.root, arguments)
                folders[arguments[0]] = part_of(arguments, "FOLDERS")
            elif name == "wisp_product":
                products[arguments[0]] = [
                    p
                    for a in part_of(arguments, "PARTS")
                    for p in (variables.get(a[2:-1], []) if a.startswith("${") else [a])
                ]
        if tuple(products) != PRODUCTS:
            raise Refused(
                f"CMakeLists.txt makes the products {', '.join(products) or 'none'}; "
                f"{', '.join(PRODUCTS)} are expected"
            )
        self.product_of, self.folder_product, self.sources = {}, {}, []
        for product in PRODUCTS:
            for library in products[product]:
                if library not in libraries:
                    raise Refused(f"CMakeLists.txt: {product} has the part {library}, which no wisp_library " f"makes")
                for folder in folders[library]:
                    self.folder_product.setdefault(folder, product)
                for source in libraries[library]:
                    if source not in self.product_of:
                        self.product_of[source] = product
                        self.sources.append(source)
        self.check_complete()

    def check_complete(self):
        for folder in OF_WISP:
            for path in sorted((self.root / folder).rglob("*.cc")):
                name = str(path.relative_to(self.root))
                if name not in self.product_of and not name.startswith(LEFT_OUT):
                    raise Refused(
                        f"{name} is in no part of a product of CMakeLists.txt: put its folder into a "
                        f"wisp_library that a wisp_product lists, or into LEFT_OUT of "
                        f"tools/amalgamate/products.py"
                    )

    def product_of_header(self, header):
        """Finds the product by its folder; a folder of headers alone belongs to its parent's product."""
        folder = str(Path(header).parent)
        if header.startswith("ports/c/"):
            return PRODUCTS[0]
        while folder not in self.folder_product and folder != ".":
            folder = str(Path(folder).parent)
        return self.folder_product.get(folder, PRODUCTS[0])
