#!/usr/bin/env python3
"""Checks the links of a built site: every page, file and place within a page exists, and nothing is loaded from
elsewhere.

links.py SITE     prints what is wrong; exits 1 if something is
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "embed": "src",
    "object": "data",
    "link": "href",
}
NO_LOADS = {"canonical", "prev", "next"}  # values of <link rel>
IN_STYLES = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])((?:https?:)?//[^\"')]+)")


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.places, self.links, self.loads, self.style = {"", "top"}, [], [], False
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        said = dict(attributes)
        self.places.update(said[key] for key in ("id", "name") if said.get(key))
        self.style = tag == "style"
        if tag == "a" and said.get("href"):
            self.links.append(said["href"])
        if tag in LOADS and said.get(LOADS[tag]) and said.get("rel") not in NO_LOADS:
            self.loads.append(said[LOADS[tag]])
        if said.get("style"):
            self.loads += IN_STYLES.findall(said["style"])

    def handle_data(self, data):
        if self.style:
            self.loads += IN_STYLES.findall(data)


def file_of(path):
    return path / "index.html" if path.is_dir() else path


def faults_of(site, path, pages):
    page = pages[path]
    for link in page.links + page.loads:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            if link in page.loads and parts.scheme != "data":
                yield f"loads {link}"
            continue
        place = unquote(parts.path)
        # 404.html serves for pages anywhere, so its links begin at the root.
        start = site if place.startswith("/") else path.parent
        target = file_of((start / place.lstrip("/")).resolve()) if place else path
        if not target.is_file():
            yield f"links to {link}, which does not exist"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
            yield f"links to {link}, and there is no such place in that page"


def main():
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "index.html").is_file():
        sys.exit("usage: links.py SITE; SITE is a folder with an index.html")
    site = Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if path.is_file()}
    faults = [f"{path.relative_to(site)} {fault}" for path in pages for fault in faults_of(site, path, pages)]
    for path in sorted(site.rglob("*.css")):
        faults += [
            f"{path.relative_to(site)} loads {url}" for url in IN_STYLES.findall(path.read_text(encoding="utf-8"))
        ]
    print(*faults, sep="\n", end="\n" if faults else "")
    if faults:
        sys.exit(f"{len(faults)} faults")
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links: all lead somewhere")


if __name__ == "__main__":
    main()
