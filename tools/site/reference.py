#!/usr/bin/env python3
"""Makes the pages of the reference: one for each header, in the order of the header.

    reference.py XML ROOT OUT     XML: what tools/site/read_headers wrote

Each name is a place within its page (wisp.h#wisp_model_open), and every mention of a name leads there.
"""

import re
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from doxygen_filter import SECTION

HEADERS = ("ports/c/wisp.h", "ports/c/wisp_embed.h", "ports/c/wisp_deployment.h", "ports/c/wisp_fleet.h",
           "ports/c/wisp_text.h", "ports/cpp/wisp.hpp")
SHARED = "wisp.hpp"  # its names are identified by their scope
SMALL = {"WISP_API", "WISP_ENUM_TYPE"}  # not for use by apps


def escaped(text):
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)


class Reference:
    def __init__(self, folder, root):
        self.root = root
        self.compounds = [
            ElementTree.parse(path).getroot()[0]
            for path in sorted(folder.glob("*.xml"))
            if path.stem not in ("index", "Doxyfile") and not path.stem.startswith("dir_")
        ]
        self.entries = {Path(header).name: [] for header in HEADERS}
        self.places = {}  # maps a name to its page and place
        for compound in self.compounds:
            self.collect(compound)

    def collect(self, compound):
        if compound.get("kind") in ("struct", "class"):
            self.add(compound, compound.findtext("compoundname"))
        elif compound.get("kind") in ("file", "namespace"):
            for member in compound.iter("memberdef"):
                self.add(member, member.findtext("qualifiedname") or member.findtext("name"))

    def add(self, node, name):
        if name.startswith("@"):  # an enum without a name
            name = node.find("enumvalue").findtext("name")
        location = node.find("location")
        header = Path(location.get("declfile") or location.get("file")).name
        known = [line for line, _, other in self.entries[header] if other is node or other.get("id") == node.get("id")]
        if name in SMALL or known:
            return
        self.entries[header].append((int(location.get("declline") or location.get("line")), name, node))
        place = name.split("::")[-1] if header == SHARED else name
        self.places[name.removeprefix("wisp::api::")] = (header, place)
        for value in node.iter("enumvalue"):
            self.places[value.findtext("name")] = (header, place)

    # ---- Text ----

    def linked(self, text, page, own=None):
        """Plain words as Markdown, with names that the reference has as links."""

        def word(match):
            found = self.places.get(match[0])
            if not found or match[0] == own or not match[0].lower().startswith("wisp_"):
                return escaped(match[0])
            return f"[`{match[0]}`]({'' if found[0] == page else found[0] + '.md'}#{found[1]})"

        def file(match):
            if match[0] in self.entries:
                return match[0] if match[0] == page else f"[{escaped(match[0])}]({match[0]}.md)"
            return f"[{match[0]}](../{match[0]})"

        out, end = "", 0
        for match in re.finditer(r"(?P<file>\bwisp\w*\.hp?p?\b|\bdocs/[\w-]+\.md\b)|(?P<word>\w+)", text):
            out += escaped(text[end : match.start()]) + (file(match) if match["file"] else word(match))
            end = match.end()
        return out + escaped(text[end:])

    def inline(self, node, page, own):
        out = self.linked(node.text or "", page, own)
        for child in node:
            if child.tag == "computeroutput":
                out += f"`{''.join(child.itertext())}`"
            elif child.tag in ("itemizedlist", "verbatim", "programlisting", "para", "simplesect"):
                out += self.block(child, page, own)
                child.tail = (child.tail or "").lstrip()
            elif child.tag in ("ndash", "mdash"):
                out += "-"
            else:
                out += self.inline(child, page, own)
            out += self.linked(child.tail or "", page, own)
        return out

    def block(self, node, page, own):
        if node.tag == "itemizedlist":
            return "\n\n" + "".join(f"- {self.inline(item, page, own).strip()}\n" for item in node) + "\n"
        if node.tag in ("verbatim", "programlisting"):
            lines = ["".join(line.itertext()) for line in node] if len(node) else (node.text or "").splitlines()
            for space in node.iter("sp"):
                space.text = " "
            lines = ["".join(line.itertext()) for line in node] if len(node) else lines
            return (
                "\n\n```"
                + ("cpp" if page == SHARED else "c")
                + "\n"
                + textwrap.dedent("\n".join(lines)).strip("\n")
                + "\n```\n\n"
            )
        return self.inline(node, page, own).strip()

    def said(self, node, page, own=None):
        """Returns the description of a node, as paragraphs."""
        paragraphs = [
            self.inline(para, page, own).strip()
            for part in ("briefdescription", "detaileddescription")
            for para in (node.find(part) if node.find(part) is not None else ())
        ]
        return "\n\n".join(filter(None, paragraphs))

    def sentence(self, node, page, own=None):
        """Returns the description if the header has only a few words after a declaration."""
        text = self.said(node, page, own)
        return text[:1].upper() + text[1:] + ("" if re.search(r"[.:`]$", text) else ".")

    # ---- Entries ----

    def declaration(self, header, line):
        """Returns a function, type or macro as the header writes it, without its body and without the comment after
        it."""
        source = (self.root / header).read_text(encoding="utf-8").splitlines()
        text = ""
        for part in source[line - 1 :]:
            text += re.sub(r"\s+(?:/\*.*\*/|// .*)$", "", part) + "\n"
            if part.startswith("#"):
                return re.match(r"#define \w+(?:\([^)]*\))?", part)[0]
            if re.search(r"[;{}]$", text.rstrip()):
                break
        text = re.sub(r"(\)(?: const)?)\s+[:{].*$", r"\1;", text.rstrip(), flags=re.S)
        indent = re.match(r"\s*(?:WISP_API )?", text)[0]
        return re.sub(f"^(?:{indent}| {{{len(indent)}}})", "", text, flags=re.M)

    def fields(self, compound, page):
        rows = ["| field | type | what it is |", "| --- | --- | --- |"]
        for member in compound.iter("memberdef"):
            if member.get("kind") == "variable":
                type_ = "".join(member.find("type").itertext()) + (member.findtext("argsstring") or "")
                words = " ".join(self.said(member, page).split())
                rows.append(f"| `{member.findtext('name')}` | `{type_.strip()}` | {words} |")
        return "\n".join(rows) + "\n" if len(rows) > 2 else ""

    def functions(self, compound, header):
        out = ""
        for member in compound.iter("memberdef"):
            if member.get("kind") == "function" and member.get("prot") == "public":
                line = int(member.find("location").get("line"))
                out += (
                    f"\n```cpp\n{self.declaration(header, line)}\n```\n\n{self.sentence(member, Path(header).name)}\n"
                )
        return out

    def values(self, enum, page):
        rows = ["| constant | value | what it means |", "| --- | --- | --- |"]
        for value in enum.iter("enumvalue"):
            words = " ".join(self.said(value, page).split())
            rows.append(f"| `{value.findtext('name')}` | {value.findtext('initializer', '').strip('= ')} | {words} |")
        return "\n".join(rows) + "\n"

    def entry(self, header, line, name, node):
        page, kind = Path(header).name, node.get("kind")
        short = name.split("::")[-1]
        out = f"\n### `{short}` {{ #{short} }}\n\n"
        if kind in ("function", "typedef", "define"):
            out += f"```{'cpp' if page == SHARED else 'c'}\n{self.declaration(header, line)}\n```\n\n"
        out += self.sentence(node, page, name) + "\n"
        if kind in ("struct", "class"):
            out += "\n" + self.fields(node, page) + (self.functions(node, header) if page == SHARED else "")
        if kind == "enum":
            out += "\n" + self.values(node, page)
        return out

    def page(self, header):
        name = Path(header).name
        sections = [
            (number, match[1])
            for number, line in enumerate((self.root / header).read_text(encoding="utf-8").splitlines(), 1)
            if (match := SECTION.match(line))
        ]
        about = next(c for c in self.compounds if c.get("kind") == "file" and c.findtext("compoundname") == name)
        out = f"# {name}\n\n{self.said(about, name)}\n\n## In all parts\n" if self.entries[name] else ""
        if sections and not any(line < sections[0][0] for line, _, _ in self.entries[name]):
            out = out.replace("\n## In all parts\n", "")
        for line, entry_name, node in sorted(self.entries[name], key=lambda entry: entry[:2]):
            while sections and sections[0][0] < line:
                out += f"\n## {sections.pop(0)[1]}\n"
            out += self.entry(header, line, entry_name, node)
        return out


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: reference.py XML ROOT OUT")
    out = Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    reference = Reference(Path(sys.argv[1]), Path(sys.argv[2]))
    for header in HEADERS:
        (out / f"{Path(header).name}.md").write_text(reference.page(header), encoding="utf-8")


if __name__ == "__main__":
    main()
