#!/usr/bin/env python3
"""Lays the documents of the repository out for mkdocs.

    pages.py ROOT PAGES CONFIG [DEMO]     copies into PAGES what mkdocs reads, and writes its CONFIG

Documents keep their places, so links between them hold; only README.md is overview/, for the first page is first.md.in.
A source file or folder that a document links to becomes a page of its own under source/. groups.py has the navigation.
The first page shows DEMO, the page that learns, or says that it is not there.
"""

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

import groups  # it lies beside this file

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
FIRST, OVERVIEW = "index.md", "overview.md"  # README.md would be a second first page
SHOWN = "<!-- the page that learns -->"
ABSENT = """
<p class="absent">This copy of the site was built without the page. <code>tools/dev wasm</code> builds it, and
<a href="docs/wasm/">WebAssembly</a> says how to open it.</p>
"""
DEMO = """
<iframe class="demo" src="demo/index.html" title="A cafe that learns in your browser"></iframe>

[Open it as a page of its own](demo/index.html){ .own }
"""


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
        if name == "README.md":
            return posixpath.relpath(OVERVIEW, posixpath.dirname(document) or ".")
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
        self.write(page_of(name), re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], text))

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


def page_of(document):
    return OVERVIEW if document == "README.md" else document


def listed(root, index):
    """The documents that this index links to."""
    links = LINK.findall((root / index).read_text(encoding="utf-8"))
    return {posixpath.normpath(posixpath.join(posixpath.dirname(index), link)) for _, link, _ in links}


def config(root, pages):
    quoted = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def lines_of(entries, indent):
        for title, entry in entries:
            if isinstance(entry, str):
                yield f"{indent}- {quoted(title)}: {quoted(page_of(entry))}"
            else:
                yield f"{indent}- {quoted(title)}:"
                yield from lines_of(entry, indent + "    ")

    lines = [f"docs_dir: {quoted(str(pages))}", "nav:", *lines_of(groups.GROUPS, "  ")]
    return (root / "tools/site/mkdocs.yml").read_text(encoding="utf-8") + "\n".join(lines) + "\n"


def check(root, documents):
    indices = ("docs/README.md", "docs/papers/README.md")
    known, shown = set(indices).union(*(listed(root, index) for index in indices)), list(groups.pages_of())
    for name in (name for name in documents if name.startswith("docs/")):
        if name not in known:
            index = indices[1] if name.startswith("docs/papers/") else indices[0]
            fail(f"{index} does not name {name}: every document there has its question")
        if shown.count(name) != 1:
            fail(f"tools/site/groups.py has {name} {shown.count(name)} times; every document is in one group")
    for title in groups.too_long():
        fail(f"tools/site/groups.py: '{title}' has more than {groups.MOST} entries")


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit("usage: pages.py ROOT PAGES CONFIG [DEMO]")
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
    first = (root / "tools/site/first.md.in").read_text(encoding="utf-8")
    pages.write(FIRST, first.replace(SHOWN, DEMO if len(sys.argv) == 5 else ABSENT))
    if len(sys.argv) == 5:
        shutil.copytree(sys.argv[4], out / "demo")
    check(root, pages.documents)
    settings.write_text(config(root, out), encoding="utf-8")


if __name__ == "__main__":
    main()
