#!/usr/bin/env python3
"""Lays the documents of the repository out for mkdocs.

    pages.py ROOT PAGES CONFIG     copies into PAGES what mkdocs reads, and writes its CONFIG

Documents keep their places, so links between them hold. A source file or folder that a document links to becomes a page
of its own under source/. The order of pages is that of docs/README.md, whose headings are questions, then
of docs/papers/README.md.
"""

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LANGUAGES = {
    ".py": "python",
    ".js": "js",
    ".cmake": "cmake",
    ".sh": "sh",
    ".h": "c",
    ".hpp": "cpp",
    ".cc": "cpp",
    ".c": "c",
}
REFERENCE = (
    ("wisp.h", "reference/wisp.h.md"),
    ("wisp_embed.h", "reference/wisp_embed.h.md"),
    ("wisp_deployment.h", "reference/wisp_deployment.h.md"),
    ("wisp_fleet.h", "reference/wisp_fleet.h.md"),
    ("wisp_text.h", "reference/wisp_text.h.md"),
    ("wisp.hpp", "reference/wisp.hpp.md"),
)


def fail(sentence):
    sys.exit(f"tools/site/pages.py: {sentence}")


class Pages:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.files = set(
            subprocess.run(
                ["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True
            ).stdout.splitlines()
        )
        self.documents = sorted(name for name in self.files if name.endswith(".md"))
        self.sources = set()

    def write(self, name, text):
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def target(self, document, link):
        """Returns the target of a document's link within the site: a document, or the page of a source file or
        folder."""
        name = posixpath.normpath(posixpath.join(posixpath.dirname(document), link))
        if name in self.files and name.endswith((".md", ".svg")):
            return link
        if name not in self.files and not any(file.startswith(name + "/") for file in self.files):
            fail(f"{document} links to {link}, which is no file of the repository")
        self.sources.add(name)
        return posixpath.relpath(f"source/{name}.md", posixpath.dirname(document) or ".")

    def copy_document(self, name):
        text = (self.root / name).read_text(encoding="utf-8")
        kept = []  # fenced blocks stay as they are
        text = FENCE.sub(lambda m: kept.append(m[0]) or f"\0{len(kept) - 1}\0", text)
        text = LINK.sub(lambda m: f"[{m[1]}]({self.target(name, m[2])}{m[3] or ''})", text)
        self.write(name, re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], text))

    def copy_source(self, name):
        path = self.root / name
        if path.is_dir():
            inside = sorted(file for file in self.files if file.startswith(name + "/"))
            text = "".join(f"- `{file}`\n" for file in inside)
        else:
            source = path.read_text(encoding="utf-8")
            language = LANGUAGES.get(path.suffix) or ("sh" if source.startswith("#!") else "text")
            text = f"`````{language}\n{source.rstrip()}\n`````\n"
        self.write(f"source/{name}.md", f"# `{name}`\n\n{text}")


def navigation(index, papers):
    """The headings of docs/README.md, each with the documents that its list links to; last those of papers."""
    sections = [("Start", [("wisp", "README.md")])]
    for line in index.splitlines():
        if line.startswith("## "):
            sections.append((line[3:], []))
        for title, link, _ in LINK.findall(line) if len(sections) > 1 else ():
            name = posixpath.normpath(posixpath.join("docs", link))
            if name.endswith(".md") and all(name != known for _, pages in sections for _, known in pages):
                sections[-1][1].append((title if title[1:2].isupper() else title[0].upper() + title[1:], name))
    sections.insert(2, ("What does each function do?", list(REFERENCE)))
    tables = [(name, posixpath.join("docs/papers", link)) for name, link, _ in LINK.findall(papers)]
    tables = [(name, page) for name, page in tables if posixpath.dirname(page) == "docs/papers"]
    sections.append(("Tables of papers", tables))
    sections.append(("All", [("Documents, by question", "docs/README.md")]))
    return sections


def config(root, pages, sections):
    quoted = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    lines = [f"docs_dir: {quoted(str(pages))}", "nav:"]
    for title, entries in sections:
        lines.append(f"  - {quoted(title)}:")
        lines += [f"      - {quoted(name)}: {quoted(page)}" for name, page in entries]
    return (root / "tools/site/mkdocs.yml").read_text(encoding="utf-8") + "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: pages.py ROOT PAGES CONFIG")
    root, out, settings = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    pages = Pages(root, out)
    for name in pages.documents:
        pages.copy_document(name)
    for name in sorted(pages.sources):
        pages.copy_source(name)
    for name in sorted(file for file in pages.files if re.match(r"docs/.*\.svg$", file)):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, out / name)
    shutil.copy(root / "tools/site/site.css", out / "site.css")
    indices = ("docs/README.md", "docs/papers/README.md")
    sections = navigation(*((root / name).read_text(encoding="utf-8") for name in indices))
    listed = {page for _, entries in sections for _, page in entries}
    for name in pages.documents:
        if name.startswith("docs/") and name not in listed:
            index = "docs/papers/README.md" if name.startswith("docs/papers/") else "docs/README.md"
            fail(f"{index} does not name {name}: every document there has its question")
    settings.write_text(config(root, out, sections), encoding="utf-8")


if __name__ == "__main__":
    main()
